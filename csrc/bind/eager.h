// The parts of bind_eager, and what they share.
#pragma once
#include <nanobind/nanobind.h>

#include <utility>

#include "eager/node.h"

namespace sampan {

void bind_entry(nanobind::module_& m);       // Entry, BackwardPlan, Immediate
void bind_graph(nanobind::module_& m);       // backward, grad, PyNode, hooks
void bind_autograd_tensor();                 // what autograd adds to Tensor
void bind_operators(nanobind::module_& m);   // operators and indexing of Tensor

// Puts value (None: nothing) into an owned slot, and gives what was there.
inline nanobind::object exchange_registered(PyObject*& slot, nanobind::object value) {
  PyObject* old = std::exchange(slot, value.is_none() ? nullptr : value.release().ptr());
  return old ? nanobind::steal(old) : nanobind::none();
}

// A hook that calls a Python function with the gradient; its result replaces it unless it is None.
Ref<GradHook> python_hook(nanobind::object function);
nanobind::object hook_handle(Ref<GradHook> hook);
nanobind::object wrap_node(Ref<Node> node);

}  // namespace sampan
