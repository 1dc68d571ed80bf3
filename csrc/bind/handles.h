// Layouts and Plans as Python objects. Free of nanobind, like tensor_object.h. Every function here needs the GIL.
#pragma once
#include "bind/tensor_object.h"
#include "exec/plan.h"

namespace sampan {

PyObject* wrap_layout(Ref<const Layout> layout);  // a new reference, or null with an error set
PyObject* wrap_plan(Ref<Plan> plan);

// Null, without an error set, when o is something else.
Ref<const Layout> as_layout(PyObject* o);
Ref<Plan> as_plan(PyObject* o);

}  // namespace sampan
