// What makes up the module: each csrc/bind/*.cpp file defines one function that adds its part.
#pragma once
#include <nanobind/nanobind.h>

namespace sampan {

void bind_errors(nanobind::module_& m);   // which classes errors are raised as
void bind_process(nanobind::module_& m);  // threads, allocator, CPU
void bind_exit(nanobind::module_& m);     // what threads do when the process ends
void bind_tensor(nanobind::module_& m);   // Layout, copies, views
void bind_numpy(nanobind::module_& m);    // arrays as tensors and back
void bind_dlpack(nanobind::module_& m);   // tensors of other libraries and back
void bind_plan(nanobind::module_& m);     // Plan and the native registry
void bind_eager(nanobind::module_& m);    // Op, Entry, tape

}  // namespace sampan
