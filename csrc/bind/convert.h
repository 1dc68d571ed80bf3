// Arguments from Python for the bindings, with the errors that a caller should see.
#pragma once
#include <nanobind/nanobind.h>

#include <vector>

#include "bind/handles.h"

namespace sampan {

namespace nb = nanobind;

Tensor& to_tensor(nb::handle o);          // raises TypeError
DType to_dtype(nb::handle o);             // a DType or its name
Ref<const Layout> to_layout(nb::handle o);
std::vector<int64_t> to_sizes(nb::handle o);  // any sequence of integers
int64_t to_int(nb::handle o);
bool is_numpy_bool(PyObject* o);  // a scalar of NumPy's bool

// Takes over a new reference, or raises the error that is set.
inline nb::object take(PyObject* o) {
  if (!o) throw nb::python_error();
  return nb::steal(o);
}

}  // namespace sampan
