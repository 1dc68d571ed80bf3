// Plans from Python's description of them.
#include "exec/plan.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/convert.h"
#include "bind/exit.h"
#include "eager/state.h"

namespace sampan {

namespace {

struct PlanHandle {
  Ref<Plan> plan;
};

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::kValue, "this Plan cannot be built: " + why); }

// Calls function(inputs, outputs) with lists of Tensors.
class PythonFunction final : public HostFunction {
 public:
  explicit PythonFunction(nb::object function) : function_(std::move(function)) {}
  ~PythonFunction() override {
    if (!Py_IsInitialized()) {
      function_.release();
      return;
    }
    const PythonLock lock;
    function_.reset();
  }
  void call(const std::vector<Ref<Tensor>>& inputs, const std::vector<Ref<Tensor>>& outputs) const override {
    const PythonLock lock;
    stopping_at_exit([&] { function_(list_of(inputs), list_of(outputs)); });
  }

 private:
  static nb::list list_of(const std::vector<Ref<Tensor>>& tensors) {
    nb::list list;
    for (const Ref<Tensor>& t : tensors) list.append(take(wrap(t)));
    return list;
  }
  nb::object function_;
};

// The fields of an instruction's tuple, checked for their number.
class Fields {
 public:
  Fields(nb::handle tuple, size_t count, const char* what) : items_(take(PySequence_Tuple(tuple.ptr()))) {
    const auto n = static_cast<size_t>(PyTuple_GET_SIZE(items_.ptr()));
    if (n != count) refuse(std::string(what) + " has " + std::to_string(n) + " fields, not " + std::to_string(count));
  }
  nb::handle operator[](size_t i) const { return PyTuple_GET_ITEM(items_.ptr(), static_cast<Py_ssize_t>(i)); }

 private:
  nb::object items_;
};

int32_t to_slot(nb::handle o) {
  const int64_t v = to_int(o);
  if (v < 0 || v > INT32_MAX) refuse("slot " + std::to_string(v));
  return static_cast<int32_t>(v);
}

size_t to_size(nb::handle o, const char* what) {
  const int64_t v = to_int(o);
  if (v < 0) refuse(std::string(what) + " is " + std::to_string(v));
  return static_cast<size_t>(v);
}

std::vector<Operand> to_operands(nb::handle o) {
  std::vector<Operand> operands;
  for (nb::handle item : nb::iter(o)) {
    const Fields f(item, 2, "an operand (slot, offset)");
    operands.push_back({to_slot(f[0]), to_int(f[1])});
  }
  return operands;
}

std::vector<Ref<const Layout>> to_layouts(nb::handle o) {
  std::vector<Ref<const Layout>> layouts;
  for (nb::handle item : nb::iter(o)) layouts.push_back(to_layout(item));
  return layouts;
}

Attributes to_attributes(nb::handle o) {
  Attributes attributes;
  for (auto [key, value] : nb::cast<nb::dict>(o)) {
    const std::string name = nb::cast<std::string>(key);
    if (PyLong_Check(value.ptr())) attributes[name] = to_int(value);
    else if (PyFloat_Check(value.ptr())) attributes[name] = PyFloat_AS_DOUBLE(value.ptr());
    else if (PyUnicode_Check(value.ptr())) attributes[name] = nb::cast<std::string>(value);
    else if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) attributes[name] = to_sizes(value);
    else refuse("attribute '" + name + "' is a " + Py_TYPE(value.ptr())->tp_name + "; it must be an int, float, str or a list of ints");
  }
  return attributes;
}

void add_instruction(PlanBuilder& builder, nb::handle instruction) {
  const nb::object kind_object = nb::borrow(instruction)[0];
  const std::string kind = nb::cast<std::string>(kind_object);
  if (kind == "kernel") {
    const Fields f(instruction, 7, "a kernel (kind, address, operands, params, parallel_size, cost_ns, scratch_bytes)");
    KernelCall call;
    call.function = reinterpret_cast<KernelFunction>(to_size(f[1], "a kernel's address"));
    call.operands = to_operands(f[2]);
    call.params = to_sizes(f[3]);
    call.parallel_size = to_int(f[4]);
    call.cost_ns = nb::cast<double>(f[5]);
    call.scratch_bytes = to_size(f[6], "a kernel's scratch");
    builder.add_kernel(std::move(call));
  } else if (kind == "native") {
    const Fields f(instruction, 6, "a native (kind, name, operands, input_layouts, output_layouts, attributes)");
    builder.add_native(nb::cast<std::string>(f[1]), {to_layouts(f[3]), to_layouts(f[4]), to_attributes(f[5])}, to_operands(f[2]));
  } else if (kind == "host") {
    const Fields f(instruction, 5, "a host function (kind, function, operands, layouts, input_count)");
    if (!PyCallable_Check(f[1].ptr())) refuse("a host function that is not callable");
    builder.add_host(std::make_unique<PythonFunction>(nb::borrow(f[1])), to_operands(f[2]), to_layouts(f[3]), to_slot(f[4]));
  } else {
    refuse("there is no kind of instruction named '" + kind + "'");
  }
}

PlanHandle build(nb::handle input_layouts, nb::handle constants, nb::handle slots, int64_t arena_bytes, nb::handle instructions, nb::handle outputs,
                 std::string text, std::vector<std::string> labels, std::vector<std::string> origins) {
  std::vector<Ref<Tensor>> constant_tensors;
  for (nb::handle c : nb::iter(constants)) constant_tensors.push_back(alias_tensor(to_tensor(c)));
  std::vector<Plan::Slot> buffers;
  for (nb::handle s : nb::iter(slots)) {
    const Fields f(s, 2, "a buffer (size_bytes, arena_offset)");
    buffers.push_back({to_size(f[0], "a buffer's size"), to_int(f[1])});
  }
  if (arena_bytes < 0) refuse("the arena's size is " + std::to_string(arena_bytes));
  PlanBuilder builder(to_layouts(input_layouts), std::move(constant_tensors), std::move(buffers), static_cast<size_t>(arena_bytes));
  for (nb::handle i : nb::iter(instructions)) add_instruction(builder, i);
  for (nb::handle o : nb::iter(outputs)) {
    const Fields f(o, 3, "an output (slot, offset, layout)");
    builder.add_output(to_slot(f[0]), to_int(f[1]), to_layout(f[2]));
  }
  return {builder.finish(std::move(text), std::move(labels), std::move(origins))};
}

nb::list instructions_of(const PlanHandle& self) {
  nb::list list;
  for (size_t i = 0; i < self.plan->instructions.size(); ++i) {
    nb::list slots;
    std::visit([&slots](const auto& instruction) {
      for (const Operand& o : instruction.operands) slots.append(o.slot);
    }, self.plan->instructions[i]);
    list.append(nb::make_tuple(i < self.plan->labels.size() ? self.plan->labels[i] : std::string("instruction"), slots));
  }
  return list;
}

nb::list run(const PlanHandle& self, nb::handle tensors) {
  const Ref<Plan> plan = self.plan;
  std::vector<Ref<Tensor>> held;  // a host function or another thread may drop or rebind what the list holds
  std::vector<Tensor*> inputs;
  for (nb::handle t : nb::iter(tensors)) {
    held.push_back(alias_tensor(to_tensor(t)));
    inputs.push_back(held.back().get());
  }
  if (inputs.size() != plan->input_layouts.size()) {
    throw Error(ErrorKind::kValue, "this Plan takes " + std::to_string(plan->input_layouts.size()) + " inputs, not " + std::to_string(inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->layout != plan->input_layouts[i]) {
      throw Error(ErrorKind::kShape, "input " + std::to_string(i) + " of this Plan is " + layout_text(*plan->input_layouts[i]) + ", not " +
                                         layout_text(*inputs[i]->layout));
    }
  }
  std::vector<Ref<Tensor>> results(plan->outputs.size());
  {
    const UnlockScope unlock(plan->should_release_lock);
    plan->run(inputs.data(), results.data());
  }
  nb::list list;
  for (Ref<Tensor>& r : results) list.append(take(wrap(std::move(r))));
  return list;
}

}  // namespace

PyObject* wrap_plan(Ref<Plan> plan) { return nb::cast(PlanHandle{std::move(plan)}).release().ptr(); }

Ref<Plan> as_plan(PyObject* o) {
  PlanHandle* handle = nullptr;
  return nb::try_cast(nb::handle(o), handle) && handle ? handle->plan : Ref<Plan>();
}

void bind_plan(nb::module_& m) {
  m.def("take_failure", [] { return std::exchange(last_failure, std::string()); },
        "The origin of the instruction that raised last on this thread, once; empty when it has none.");
  nb::class_<PlanHandle>(m, "Plan", "Kernels, native primitives and host functions over slots: what runs.")
      .def_static("build", build, nb::arg("input_layouts"), nb::arg("constants"), nb::arg("slots"), nb::arg("arena_bytes"), nb::arg("instructions"),
                  nb::arg("outputs"), nb::arg("text") = "", nb::arg("labels") = std::vector<std::string>(), nb::arg("origins") = std::vector<std::string>(),
                  "Check everything and make a Plan; ValueError says what does not fit.")
      .def("run", run, nb::arg("tensors"), "The outputs, as new Tensors. Thread safe.")
      .def_prop_ro("input_layouts",
                   [](const PlanHandle& self) {
                     nb::list list;
                     for (const auto& l : self.plan->input_layouts) list.append(take(wrap_layout(l)));
                     return list;
                   })
      .def_prop_ro("output_layouts",
                   [](const PlanHandle& self) {
                     nb::list list;
                     for (const auto& o : self.plan->outputs) list.append(take(wrap_layout(o.layout)));
                     return list;
                   })
      .def_prop_ro("arena_bytes", [](const PlanHandle& self) { return self.plan->arena_bytes; })
      .def_prop_ro("instruction_count", [](const PlanHandle& self) { return self.plan->instructions.size(); })
      .def_prop_ro("instructions", instructions_of, "(label, slots of its operands in order) of each instruction; slots count inputs, constants, buffers.")
      .def_prop_ro("output_slots",
                   [](const PlanHandle& self) {
                     nb::list list;
                     for (const auto& o : self.plan->outputs) list.append(o.slot);
                     return list;
                   })
      .def_prop_ro("constant_count", [](const PlanHandle& self) { return self.plan->constants.size(); })
      .def_prop_ro("text", [](const PlanHandle& self) { return self.plan->text; });
  m.def("native_names", native_names, "The names of all native primitives.");
}

}  // namespace sampan
