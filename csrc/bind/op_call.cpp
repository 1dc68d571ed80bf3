// The life of a call: look up, run, record, wrap; or ask Python on a miss.
#include "bind/op_call.h"

#include <bit>

#include "base/error.h"
#include "bind/entry_object.h"
#include "bind/owned.h"
#include "exec/profile.h"
#include "eager/view.h"
#include "exec/copy.h"

namespace sampan {

namespace {

constexpr size_t kInlineOperands = 8;
constexpr size_t kInlineOutputs = 4;

PyObject* wrap_output(const Entry& entry, const OpCall& call, Ref<Tensor>* outputs, int32_t j) {
  if (outputs[j]) [[likely]] return wrap(std::move(outputs[j]));
  return Py_NewRef(call.operand(static_cast<uint32_t>(entry.rewritten_operand[static_cast<size_t>(j)])));
}

// The next item of the structure; item and output move on.
PyObject* build_item(const Entry& entry, const OpCall& call, Ref<Tensor>* outputs, size_t& item, int32_t& output) {
  const Entry::Structure part = entry.structure[item++];
  if (part.kind == Entry::Structure::kTensor) return wrap_output(entry, call, outputs, output++);
  if (part.kind == Entry::Structure::kNone) return Py_NewRef(Py_None);
  Owned sequence(part.kind == Entry::Structure::kTuple ? PyTuple_New(part.count) : PyList_New(part.count));
  for (Py_ssize_t i = 0; sequence && i < part.count; ++i) {
    PyObject* value = build_item(entry, call, outputs, item, output);
    if (!value) return nullptr;
    if (part.kind == Entry::Structure::kTuple) {
      PyTuple_SET_ITEM(sequence.get(), i, value);
    } else {
      PyList_SET_ITEM(sequence.get(), i, value);
    }
  }
  return sequence.release();
}

bool overlaps(const Tensor& a, const Tensor& b) {
  if (!(a.storage == b.storage) || !a.numel() || !b.numel()) return false;
  int64_t a_low, a_high, b_low, b_high;
  a.layout->extent(&a_low, &a_high);
  b.layout->extent(&b_low, &b_high);
  const auto a_item = static_cast<int64_t>(dtype_size(a.dtype())), b_item = static_cast<int64_t>(dtype_size(b.dtype()));
  return a.offset_bytes + a_low * a_item < b.offset_bytes + (b_high + 1) * b_item && b.offset_bytes + b_low * b_item < a.offset_bytes + (a_high + 1) * a_item;
}

// False when no two operands share memory, which is nearly always so; an optimizer's step has hundreds of them.
bool shares_storage(Tensor* const* tensors, size_t count) {
  const size_t mask = std::bit_ceil(2 * count + 1) - 1;
  std::vector<const Storage*> seen(mask + 1);
  for (size_t i = 0; i < count; ++i) {
    const Storage* storage = tensors[i]->storage.get();
    size_t at = (reinterpret_cast<uintptr_t>(storage) >> 4) * 0x9E3779B97F4A7C15u >> 20;
    at &= mask;
    for (; seen[at]; at = (at + 1) & mask) {
      if (seen[at] == storage) return true;
    }
    seen[at] = storage;
  }
  return false;
}

// An operand that the in-place write would change while it is read (x[1:] += x[:-1]) is replaced by a copy. True when one was.
bool separate_overlapping(const Entry& entry, OpCall& call, Tensor* const* tensors) {
  if (call.operand_count() < 2 || !shares_storage(tensors, call.operand_count())) return false;
  bool replaced = false;
  for (const auto& pair : entry.inplace) {
    const Tensor& target = *tensors[pair.operand];
    for (uint32_t i = 0; i < call.operand_count(); ++i) {
      Tensor& other = *tensors[i];
      const bool is_same = other.layout == target.layout && other.offset_bytes == target.offset_bytes;
      if (static_cast<int32_t>(i) == pair.operand || is_same || !overlaps(target, other)) continue;
      Ref<Tensor> copy = copy_tensor(other, other.dtype());
      if (wants_grad(other)) copy = alias_with_history(*copy, gradient_edge(other));
      PyObject* object = wrap(std::move(copy));
      if (!object) throw std::bad_alloc();
      replaced |= call.replace_operand(i, object);
    }
  }
  return replaced;
}

PyObject* dispatch(OpCall& call);

PyObject* run_call(OpCall& call, const Ref<Entry>& entry, bool is_first) {
  SmallArray<Tensor*, kInlineOperands> tensors(call.operand_count());
  ScalarOperands scalars;
  if (!call.gather(tensors.data(), scalars)) return nullptr;
  if (is_first) entry->check_operands(tensors.data(), tensors.size());
  if (!entry->inplace.empty()) {
    for (const auto& pair : entry->inplace) {
      if (!call.is_tensor_operand(static_cast<uint32_t>(pair.operand))) {
        return raise_argument_error(call.op, entry->operand_name(pair.operand) + " is changed in place and must be a Tensor, not a number");
      }
    }
    if (separate_overlapping(*entry, call, tensors.data())) {
      OpCall again(call.op, call.values);
      return dispatch(again);
    }
  }
  SmallArray<Ref<Tensor>, kInlineOutputs> outputs(entry->plan->outputs.size());
  run_entry(entry, tensors.data(), tensors.size(), outputs.data(), call.wants_grad);
  const bool is_one = entry->structure.size() == 1 && entry->structure[0].kind == Entry::Structure::kTensor;
  if (is_one && outputs[0]) [[likely]] return wrap(std::move(outputs[0]));
  size_t item = 0;
  int32_t output = 0;
  return build_item(*entry, call, outputs.data(), item, output);
}

PyObject* call_static(OpCall& call) {
  if (!call.op.static_handler) return raise_argument_error(call.op, "takes Tensors and has no form for static programs");
  Owned args(call.values_tuple());
  if (!args) return nullptr;
  return stopping_at_exit([&] { return PyObject_CallFunctionObjArgs(call.op.static_handler, reinterpret_cast<PyObject*>(&call.op), args.get(), nullptr); });
}

PyObject* call_miss(OpCall& call) {
  // Taken before Python runs: it may change the tensors, and the key holds the addresses of these layouts.
  std::vector<Ref<const Layout>> layouts;
  for (uint32_t i = 0; i < call.operand_count(); ++i) {
    if (const Tensor* t = unwrap(call.operand(i))) layouts.push_back(t->layout);
  }
  SmallArray<Tensor*, kInlineOperands> tensors(call.operand_count());
  ScalarOperands scalars;
  if (!call.gather(tensors.data(), scalars)) return nullptr;  // a wrong number is better found before a compilation
  Owned args(call.values_tuple());
  if (!args) return nullptr;
  Owned made(stopping_at_exit([&] { return PyObject_CallFunctionObjArgs(call.op.miss, reinterpret_cast<PyObject*>(&call.op), args.get(), nullptr); }));
  if (!made) return nullptr;
  if (PyObject* value = immediate_value(made.get())) return Py_NewRef(value);
  const Ref<Entry> entry = entry_of(made.get());
  if (!entry) {
    return PyErr_Format(PyExc_TypeError, "the miss handler of %s must return an Entry or an Immediate, not %s", op_name(call.op), Py_TYPE(made.get())->tp_name);
  }
  if (entry->operand_names.empty()) {
    entry->op_name = op_name(call.op);
    entry->operand_names = call.operand_names();
  }
  PyObject* result = run_call(call, entry, true);
  if (result) call.op.table->insert(call.key, std::move(layouts), entry);
  return result;
}

PyObject* dispatch(OpCall& call) {
  if (call.state.tracing) [[unlikely]] return call_static(call);
  switch (call.encode()) {
    case OpCall::Encoded::kDone: break;
    case OpCall::Encoded::kSymbolic: return call_static(call);
    case OpCall::Encoded::kError: return nullptr;
  }
  if (Entry* known = call.op.table->find(call.key)) [[likely]] return run_call(call, Ref<Entry>(known), false);
  return call_miss(call);
}

// out[...] = result, with the result's history.
bool write_out(const OpObject& op, PyObject* out, PyObject* result) {
  if ((PyTuple_Check(out) || PyList_Check(out)) && (PyTuple_Check(result) || PyList_Check(result))) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(result);
    if (PySequence_Fast_GET_SIZE(out) != count) return raise_argument_error(op, "out must hold " + std::to_string(count) + " Tensors"), false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!write_out(op, PySequence_Fast_GET_ITEM(out, i), PySequence_Fast_GET_ITEM(result, i))) return false;
    }
    return true;
  }
  Tensor* target = unwrap(out);
  Tensor* source = unwrap(result);
  if (!source && symbolic_type && PyObject_TypeCheck(result, symbolic_type)) {  // recorded: the statement's result takes the place of out
    return static_cast<bool>(Owned(PyObject_CallMethod(result, "write_to", "sO", op_name(op), out)));
  }
  if (!target || !source) return raise_argument_error(op, std::string("out must be shaped like the result and hold Tensors, not ") + Py_TYPE(out)->tp_name), false;
  if (target == source) return true;
  if (!same_shape(*target->layout, *source->layout)) {
    throw Error(ErrorKind::kShape, std::string(op_name(op)) + "(): out is " + layout_text(*target->layout) + ", and the result " + layout_text(*source->layout));
  }
  if (target->dtype() != source->dtype()) {
    throw Error(ErrorKind::kDType, std::string(op_name(op)) + "(): out is " + layout_text(*target->layout) + ", and the result " + layout_text(*source->layout));
  }
  const bool record = eager_state.grad_enabled && (wants_grad(*target) || wants_grad(*source));
  if (record) check_rewritable(*target, std::string(op_name(op)) + "(): out");
  copy_into(*target, *source);
  target->storage->version.fetch_add(1, std::memory_order_relaxed);
  if (record) rewrite_history(*target, wants_grad(*source) ? gradient_edge(*source) : Edge());
  return true;
}

// An index that is out of range: found by a native, which knows neither the operator nor its parameters.
[[noreturn]] void throw_named(const OpObject& op, PyObject* const* values, const Error& error) {
  const std::string text = error.what(), placeholder = "index";
  if (error.kind() != ErrorKind::kIndex || text.rfind(placeholder, 0) != 0) throw error;
  std::string name;
  for (size_t i = 0; i < op.parameters->size(); ++i) {
    const Tensor* t = unwrap(values[i]);
    if (!t || (t->dtype() != DType::k_int32 && t->dtype() != DType::k_int64)) continue;
    name = name.empty() ? text_of(PyObject_Str, (*op.parameters)[i].name) : placeholder;  // of several, nobody knows which
  }
  throw Error(ErrorKind::kIndex, std::string(op_name(op)) + "(): " + (name.empty() ? placeholder : name) + text.substr(placeholder.size()));
}

// "x float32[2, 3], y float32[3], axis=0": a call's tensors and plain settings, for profiles; a list of tensors by its first two.
std::string operands_text(const OpObject& op, PyObject* const* args) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (size_t i = 0; i < op.parameters->size(); ++i) {
    const std::string name = PyUnicode_AsUTF8((*op.parameters)[i].name);
    PyObject* const o = args[i];
    if (const Tensor* tensor = unwrap(o)) {
      add(name + " " + layout_text(*tensor->layout));
    } else if ((PyList_Check(o) || PyTuple_Check(o)) && PySequence_Fast_GET_SIZE(o) > 0 && is_tensor(PySequence_Fast_GET_ITEM(o, 0))) {
      const Py_ssize_t count = PySequence_Fast_GET_SIZE(o);
      for (Py_ssize_t k = 0; k < std::min<Py_ssize_t>(count, 2); ++k) {
        if (const Tensor* tensor = unwrap(PySequence_Fast_GET_ITEM(o, k))) add(name + "[" + std::to_string(k) + "] " + layout_text(*tensor->layout));
      }
      if (count > 2) text += " and " + std::to_string(count - 2) + " more";
    } else if (PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o) || PyList_Check(o) || PyTuple_Check(o)) {
      const Owned shown(PyObject_Repr(o));
      const char* const repr = shown ? PyUnicode_AsUTF8(shown.get()) : nullptr;
      if (repr) add(name + "=" + repr);
      else PyErr_Clear();
    }
  }
  return text;
}

// other_form's function with the op itself before the arguments.
PyObject* call_other_form(OpObject& op, PyObject* const* args, size_t count, PyObject* keyword_names) {
  try {
    std::vector<PyObject*> all{reinterpret_cast<PyObject*>(&op)};
    all.insert(all.end(), args, args + count + static_cast<size_t>(keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0));
    return PyObject_Vectorcall(PyTuple_GET_ITEM(op.other_form, 2), all.data(), count + 1, keyword_names);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace

PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t count_and_flags, PyObject* keyword_names) {
  OpObject& op = *as_op(self);
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(count_and_flags));
  PyObject* bound[kMaxParameters];
  PyObject* out = nullptr;
  Owned packed;
  if (op.other_form && has_other_form(op, args, count, keyword_names)) {
    return call_other_form(op, args, count, keyword_names);
  }
  if (count != op.parameters->size() || count != op.positional_count || op.is_variadic || keyword_names) {
    if (!bind_arguments(op, args, count, keyword_names, bound, &out, packed)) return nullptr;
    args = bound;
  }
  try {
    const ProfileScope profile(profile_sink.load(std::memory_order_relaxed), [&op] { return op_name(op); }, [&] { return operands_text(op, args); });
    Owned result;
    try {
      OpCall call(op, args);
      result = Owned(dispatch(call));
    } catch (const Error& e) {
      throw_named(op, args, e);
    }
    if (!out || !result) [[likely]] return result.release();
    return write_out(op, out, result.get()) ? Py_NewRef(out) : nullptr;
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace sampan
