// Entry, BackwardPlan and Immediate as Python sees them.
#pragma once
#include "bind/op.h"

namespace sampan {

// Null, without an error, when o is something else.
Ref<Entry> entry_of(PyObject* o);
// The value of an Immediate, borrowed; null, without an error, when o is something else.
PyObject* immediate_value(PyObject* o);

}  // namespace sampan
