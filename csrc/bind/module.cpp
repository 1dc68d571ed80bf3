#include "bind/bind.h"
#include "bind/tensor_object.h"

NB_MODULE(_rt, m) {
  m.attr("__doc__") = "The compiled runtime: tensors, Plans, eager dispatch and the tape.";
  if (sampan::make_dtype_type(m.ptr()) < 0 || sampan::make_storage_type(m.ptr()) < 0 || sampan::make_tensor_type(m.ptr()) < 0) throw nanobind::python_error();
  sampan::bind_errors(m);
  sampan::bind_process(m);
  sampan::bind_exit(m);
  sampan::bind_tensor(m);
  sampan::bind_numpy(m);
  sampan::bind_dlpack(m);
  sampan::bind_plan(m);
  sampan::bind_eager(m);
}
