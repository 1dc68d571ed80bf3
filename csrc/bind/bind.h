// What makes up the module: each csrc/bind/*.cpp file defines one function that adds its part.
#pragma once
#include <nanobind/nanobind.h>

namespace sampan {

void bind_base(nanobind::module_& m);    // dtypes, errors, threads, allocator, CPU
void bind_tensor(nanobind::module_& m);  // Layout, Tensor, copies, views
void bind_interop(nanobind::module_& m); // NumPy, DLPack, buffers
void bind_plan(nanobind::module_& m);    // Plan and the native registry
void bind_eager(nanobind::module_& m);   // csrc/eager: Op, Entry, tape

}  // namespace sampan
