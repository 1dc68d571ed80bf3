#include "bind/bind.h"
#include "bind/tensor_object.h"

namespace {

// A processor without it would end the process in the middle of a product, where oneDNN uses it unasked.
void check_processor() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("sse4.1")) {
    throw nanobind::import_error("sampan needs a processor with SSE4.1, which oneDNN is compiled for; this one has none.\n"
                                 "  Every x86-64 processor since 2013 has it; a virtual machine may hide it: choose the host's own model for its processor.");
  }
#endif
}

}  // namespace

NB_MODULE(_rt, m) {
  check_processor();
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
