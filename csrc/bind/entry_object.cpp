// Entry, BackwardPlan and Immediate: what a miss handler makes.
#include "bind/entry_object.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "bind/convert.h"
#include "bind/eager.h"
#include "bind/op_call.h"
#include "eager/gradient.h"

namespace sampan {
namespace {

struct EntryHandle {
  Ref<Entry> entry;
};
struct BackwardPlanHandle {
  Ref<BackwardPlan> plan;
};
struct Immediate {
  nb::object value;
};

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::kValue, "Entry: " + why); }

int32_t index_below(nb::handle o, size_t count, const char* what) {
  const int64_t index = to_int(o);
  if (index < 0 || index >= static_cast<int64_t>(count)) refuse(std::string(what) + " " + std::to_string(index) + " does not exist; there are " + std::to_string(count));
  return static_cast<int32_t>(index);
}

Ref<Plan> plan_argument(nb::handle o) {
  Ref<Plan> plan = as_plan(o.ptr());
  if (!plan) throw Error(ErrorKind::kType, std::string("a Plan is needed, not ") + Py_TYPE(o.ptr())->tp_name);
  return plan;
}

// The result of a backward, from one of these forms: a Tensor, None, or a list or tuple of those.
std::vector<Ref<Tensor>> tensors_of_result(nb::handle result, const std::string& what) {
  std::vector<Ref<Tensor>> tensors;
  const auto add = [&](nb::handle o) {
    if (o.is_none()) return tensors.push_back(nullptr);
    Tensor* t = unwrap(o.ptr());
    if (!t) throw Error(ErrorKind::kType, what + " must return Tensors or None, not " + Py_TYPE(o.ptr())->tp_name);
    tensors.emplace_back(t);
  };
  if (nb::isinstance<nb::tuple>(result) || nb::isinstance<nb::list>(result)) {
    for (nb::handle o : result) add(o);
  } else {
    add(result);
  }
  return tensors;
}

class PythonBackward final : public BackwardBuilder {
 public:
  PythonBackward(nb::object make_backward, const Entry* entry) : make_backward_(std::move(make_backward)), entry_(entry) {}

  Ref<BackwardPlan> build(std::span<const Ref<Tensor>> grads) override {
    nb::list layouts;
    for (const auto& g : grads) {
      if (g) layouts.append(take(wrap_layout(g->layout)));
    }
    GradModeScope mode(true);
    const nb::object made = stopping_at_exit([&] { return make_backward_(mask_of(grads), nb::tuple(layouts)); });
    BackwardPlanHandle* handle = nullptr;
    if (!nb::try_cast(made, handle) || !handle) {
      throw Error(ErrorKind::kType, "make_backward of " + entry_->op_name + " must return a BackwardPlan, not " + Py_TYPE(made.ptr())->tp_name);
    }
    return handle->plan;
  }

  void run_recorded(std::span<Ref<Tensor>> saved, std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads) override {
    if (backward_op.is_none()) {
      throw Error(ErrorKind::kNotImplemented, entry_->op_name + " has no second derivative: its backward cannot be recorded (create_graph=True)");
    }
    std::vector<bool> present;
    for (const auto& g : grads) present.push_back(static_cast<bool>(g));
    auto found = recorded_.find(present);
    if (found == recorded_.end()) {
      const nb::object pair = stopping_at_exit([&] { return backward_op(mask_of({grads.data(), grads.size()})); });
      if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2 || !is_op(PyTuple_GET_ITEM(pair.ptr(), 0))) {
        throw Error(ErrorKind::kType, "backward_op of " + entry_->op_name + " must return (Op, targets)");
      }
      Recorded made{nb::borrow(PyTuple_GET_ITEM(pair.ptr(), 0)), {}};
      for (nb::handle t : nb::borrow(PyTuple_GET_ITEM(pair.ptr(), 1))) made.targets.push_back(index_below(t, input_grads.size(), "backward_op: target"));
      found = recorded_.emplace(std::move(present), std::move(made)).first;
    }
    const Recorded recorded = found->second;
    std::vector<nb::object> args;
    for (auto& t : saved) args.push_back(take(wrap(t)));
    for (auto& t : grads) {
      if (t) args.push_back(take(wrap(t)));
    }
    std::vector<PyObject*> pointers;
    for (const auto& o : args) pointers.push_back(o.ptr());
    const nb::object result = take(call_op(recorded.op.ptr(), pointers.data(), pointers.size()));
    std::vector<Ref<Tensor>> made = tensors_of_result(result, "the backward op of " + entry_->op_name);
    if (made.size() != recorded.targets.size()) {
      throw Error(ErrorKind::kRuntime, "the backward op of " + entry_->op_name + " returned " + std::to_string(made.size()) + " gradients for " +
                                           std::to_string(recorded.targets.size()) + " targets");
    }
    for (size_t k = 0; k < made.size(); ++k) {
      if (made[k]) add_gradient(input_grads[static_cast<size_t>(recorded.targets[k])], std::move(made[k]), true);
    }
  }

  nb::object backward_op = nb::none();

 private:
  struct Recorded {
    nb::object op;
    std::vector<int32_t> targets;
  };

  // Bit j: the gradient of output j is present.
  static nb::object mask_of(std::span<const Ref<Tensor>> grads) {
    nb::object mask = take(PyLong_FromLong(0));
    const nb::object one = take(PyLong_FromLong(1));
    for (size_t j = 0; j < grads.size(); ++j) {
      if (grads[j]) mask = mask | (one << take(PyLong_FromSize_t(j)));
    }
    return mask;
  }

  nb::object make_backward_;
  const Entry* entry_;
  std::map<std::vector<bool>, Recorded> recorded_;
};

// None: a tensor. "none": None. (kind, n): n tensors. (kind, n, item, ...): n items. kind is "tuple" or "list".
void parse_structure(nb::handle o, Entry& entry, int depth) {
  using S = Entry::Structure;
  if (depth > 8) refuse("the structure is nested too deeply");
  if (o.is_none()) {
    entry.structure.push_back({S::kTensor, 1});
    ++entry.result_count;
    return;
  }
  if (PyUnicode_Check(o.ptr()) && nb::cast<std::string>(o) == "none") return entry.structure.push_back({S::kNone, 1});
  const bool is_tuple = PyTuple_Check(o.ptr()) && PyTuple_GET_SIZE(o.ptr()) >= 2 && PyUnicode_Check(PyTuple_GET_ITEM(o.ptr(), 0));
  const std::string kind = is_tuple ? nb::cast<std::string>(nb::handle(PyTuple_GET_ITEM(o.ptr(), 0))) : "";
  if (kind != "tuple" && kind != "list") refuse("a structure is None, 'none', ('tuple', n) or ('list', n), followed by the structures of the n items unless all are tensors");
  const int32_t n = index_below(nb::handle(PyTuple_GET_ITEM(o.ptr(), 1)), size_t{1} << 24, "a structure of size");
  entry.structure.push_back({kind == "tuple" ? S::kTuple : S::kList, n});
  const Py_ssize_t items = PyTuple_GET_SIZE(o.ptr()) - 2;
  if (items && items != n) refuse("a structure of size " + std::to_string(n) + " has " + std::to_string(items) + " items");
  for (int32_t i = 0; i < n; ++i) parse_structure(items ? nb::handle(PyTuple_GET_ITEM(o.ptr(), i + 2)) : nb::handle(Py_None), entry, depth + 1);
}

EntryHandle make_entry(nb::handle plan, nb::handle structure, nb::handle saved, nb::handle differentiable, nb::object make_backward, nb::handle inplace) {
  Ref<Entry> made = make_ref<Entry>();
  Entry& entry = *made;
  entry.plan = plan_argument(plan);
  const size_t inputs = static_cast<size_t>(entry.plan->input_count), outputs = entry.plan->outputs.size();
  entry.lets_others_run = entry.plan->should_release_lock ||
                          std::ranges::any_of(entry.plan->instructions, [](const auto& i) { return std::holds_alternative<HostInstruction>(i); });
  parse_structure(structure, entry, 0);
  if (static_cast<size_t>(entry.result_count) > outputs) {
    refuse("the structure has " + std::to_string(entry.result_count) + " tensors, and the Plan " + std::to_string(outputs) + " outputs");
  }
  for (nb::handle item : saved) {
    const nb::tuple pair = nb::cast<nb::tuple>(nb::borrow(item));
    const std::string kind = nb::cast<std::string>(pair[0]);
    if (kind != "input" && kind != "output") refuse("saved is a list of ('input', i) and ('output', j)");
    const bool is_output = kind == "output";
    entry.saved.push_back({is_output, index_below(nb::object(pair[1]), is_output ? outputs : inputs, is_output ? "saved output" : "saved input")});
  }
  for (nb::handle j : differentiable) {
    const int32_t output = index_below(j, outputs, "differentiable output");
    if (!is_differentiable(entry.plan->outputs[static_cast<size_t>(output)].layout->dtype)) {
      refuse("output " + std::to_string(output) + " is " + layout_text(*entry.plan->outputs[static_cast<size_t>(output)].layout) + " and has no gradient");
    }
    entry.differentiable.push_back(output);
  }
  for (nb::handle item : inplace) {
    const nb::tuple pair = nb::cast<nb::tuple>(nb::borrow(item));
    entry.inplace.push_back({index_below(nb::object(pair[0]), outputs, "in-place output"), index_below(nb::object(pair[1]), inputs, "in-place operand")});
  }
  if (!entry.inplace.empty()) entry.rewritten_operand.assign(outputs, -1);
  for (const auto& pair : entry.inplace) entry.rewritten_operand[static_cast<size_t>(pair.output)] = pair.operand;
  for (int32_t j = 0; j < static_cast<int32_t>(outputs); ++j) {
    const int32_t slot = entry.plan->outputs[static_cast<size_t>(j)].slot;
    const bool is_inplace = !entry.inplace.empty() && entry.rewritten_operand[static_cast<size_t>(j)] >= 0;
    const bool is_cut = !make_backward.is_none() && !std::ranges::count(entry.differentiable, j);
    if (slot < entry.plan->input_count && !is_inplace && !is_cut) entry.views.push_back({j, slot});
  }
  if (!make_backward.is_none()) entry.backward = std::make_unique<PythonBackward>(std::move(make_backward), &entry);
  return {std::move(made)};
}

PythonBackward* python_backward(const EntryHandle& handle) { return static_cast<PythonBackward*>(handle.entry->backward.get()); }

BackwardPlanHandle make_backward_plan(nb::handle plan, nb::handle targets) {
  Ref<BackwardPlan> made = make_ref<BackwardPlan>();
  made->plan = plan_argument(plan);
  for (nb::handle t : targets) made->targets.push_back(static_cast<int32_t>(to_int(t)));
  return {std::move(made)};
}

}  // namespace

Ref<Entry> entry_of(PyObject* o) {
  EntryHandle* handle = nullptr;
  return nb::try_cast(nb::handle(o), handle) && handle ? handle->entry : nullptr;
}

PyObject* immediate_value(PyObject* o) {
  Immediate* immediate = nullptr;
  return nb::try_cast(nb::handle(o), immediate) && immediate ? immediate->value.ptr() : nullptr;
}

void bind_entry(nb::module_& m) {
  nb::class_<EntryHandle>(m, "Entry", "What a signature leads to: a Plan, the form of its result, and how its backward is made.")
      .def("__init__",
           [](EntryHandle* self, nb::handle plan, nb::handle structure, nb::handle saved, nb::handle differentiable, nb::object make_backward, nb::handle inplace) {
             new (self) EntryHandle(make_entry(plan, structure, saved, differentiable, std::move(make_backward), inplace));
           },
           nb::arg("plan"), nb::arg("structure").none(), nb::arg("saved"), nb::arg("differentiable"), nb::arg("make_backward").none(), nb::arg("inplace") = nb::tuple())
      .def_prop_rw(
          "backward_op", [](const EntryHandle& self) { return self.entry->backward ? python_backward(self)->backward_op : nb::object(nb::none()); },
          [](EntryHandle& self, nb::object value) {
            if (!self.entry->backward) refuse("backward_op needs make_backward");
            python_backward(self)->backward_op = std::move(value);
          },
          nb::arg("value").none(), "backward_op(grad_mask) gives (op, targets): the backward as an Op of the saved tensors and the present gradients.")
      .def_prop_ro("op_name", [](const EntryHandle& self) { return self.entry->op_name; });
  nb::class_<BackwardPlanHandle>(m, "BackwardPlan", "A Plan of the saved tensors and the present gradients, and which operands its outputs belong to.")
      .def("__init__", [](BackwardPlanHandle* self, nb::handle plan, nb::handle targets) { new (self) BackwardPlanHandle(make_backward_plan(plan, targets)); },
           nb::arg("plan"), nb::arg("targets"));
  nb::class_<Immediate>(m, "Immediate", "The result of a call that a miss handler made by itself; it is not cached.")
      .def("__init__", [](Immediate* self, nb::object value) { new (self) Immediate{std::move(value)}; }, nb::arg("value").none());
}

}  // namespace sampan
