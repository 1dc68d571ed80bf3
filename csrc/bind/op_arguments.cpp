// From the arguments of a call to its signature and operands.
#include <cmath>

#include "base/error.h"
#include "bind/op_call.h"
#include "bind/owned.h"

namespace sampan {
namespace {

constexpr int kMaxNesting = 32;
constexpr Py_ssize_t kMaxInterned = 4096;

PyObject* interned_objects = nullptr;  // {object: number}
uint64_t next_interned = 1;
PyTypeObject* numpy_array_type = nullptr;
PyTypeObject* numpy_scalar_type = nullptr;

// NumPy is not imported for this: without it there are no such values.
void find_numpy() {
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* numpy = modules ? PyDict_GetItemString(modules, "numpy") : nullptr;
  if (!numpy) return;
  Owned array(PyObject_GetAttrString(numpy, "ndarray"));
  Owned scalar(PyObject_GetAttrString(numpy, "generic"));
  if (!array || !scalar) return PyErr_Clear();  // in the middle of its own import
  numpy_array_type = reinterpret_cast<PyTypeObject*>(array.release());
  numpy_scalar_type = reinterpret_cast<PyTypeObject*>(scalar.release());
}

uint64_t double_bits(double value) {
  if (std::isnan(value)) value = std::nan("");
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

bool is_numpy_value(PyObject* o) {
  if (!numpy_array_type) find_numpy();
  return numpy_array_type && (PyObject_TypeCheck(o, numpy_array_type) || PyObject_TypeCheck(o, numpy_scalar_type));
}

PyObject* tensor_from_numpy(PyObject* o) {
  static PyObject* from_numpy = nullptr;
  if (!is_numpy_value(o)) return nullptr;
  if (!from_numpy) {
    Owned runtime(PyImport_ImportModule("sampan._rt"));
    from_numpy = runtime ? PyObject_GetAttrString(runtime.get(), "from_numpy") : nullptr;
    if (!from_numpy) return nullptr;
  }
  return stopping_at_exit([o]() -> PyObject* {
    if (PyObject_TypeCheck(o, numpy_array_type)) return PyObject_CallOneArg(from_numpy, o);
    Owned array(PyObject_CallMethod(o, "__array__", nullptr));
    return array ? PyObject_CallOneArg(from_numpy, array.get()) : nullptr;
  });
}

void clear_interned_objects() {
  // Numbers are never given out twice, so that an old signature cannot match a new object.
  if (interned_objects) PyDict_Clear(interned_objects);
  clear_signature_tables();
}

namespace {

enum ScalarKind { kBool, kInt, kFloat, kComplex, kScalarKinds };
constexpr DType scalar_dtypes[] = {DType::k_bool, DType::k_int64, DType::k_float64, DType::k_complex128};
constexpr size_t kKeptScalars = 16;

// Never destroyed: the allocator may end first.
std::vector<Ref<Tensor>>& kept_scalars(int kind) {
  static auto* kept = new std::vector<Ref<Tensor>>[kScalarKinds];
  return kept[kind];
}

Ref<Tensor> new_scalar(ScalarKind kind) {
  auto& kept = kept_scalars(kind);
  if (kept.empty()) return empty_tensor(contiguous_layout(scalar_dtypes[kind], {}));
  Ref<Tensor> t = std::move(kept.back());
  kept.pop_back();
  return t;
}

void keep_scalar(Ref<Tensor> t) {
  if (t->use_count() != 1 || t->storage->use_count() != 1 || t->python_object || t->autograd) return;
  for (int kind = 0; kind < kScalarKinds; ++kind) {
    auto& kept = kept_scalars(kind);
    if (scalar_dtypes[kind] == t->dtype() && kept.size() < kKeptScalars) return kept.push_back(std::move(t));
  }
}

}  // namespace

ScalarOperands::~ScalarOperands() {
  for (size_t i = 0; i < std::min(count_, kInline); ++i) keep_scalar(std::move(first_[i]));
  for (auto& t : more_) keep_scalar(std::move(t));
}

Tensor* ScalarOperands::add(PyObject* number) {
  Ref<Tensor> t;
  if (PyFloat_Check(number)) {
    t = new_scalar(kFloat);
    *reinterpret_cast<double*>(t->data()) = PyFloat_AS_DOUBLE(number);
  } else if (PyBool_Check(number)) {
    t = new_scalar(kBool);
    *t->data() = number == Py_True;
  } else if (PyLong_Check(number)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow) {
      PyErr_Format(PyExc_OverflowError, "the integer %S does not fit in 64 bits", number);
      return nullptr;
    }
    t = new_scalar(kInt);
    *reinterpret_cast<int64_t*>(t->data()) = value;
  } else {
    const Py_complex value = PyComplex_AsCComplex(number);
    if (value.real == -1.0 && PyErr_Occurred()) return nullptr;
    t = new_scalar(kComplex);
    reinterpret_cast<double*>(t->data())[0] = value.real;
    reinterpret_cast<double*>(t->data())[1] = value.imag;
  }
  Tensor* borrowed = t.get();
  if (count_ < kInline) {
    first_[count_] = std::move(t);
  } else {
    more_.push_back(std::move(t));
  }
  ++count_;
  return borrowed;
}

void OpCall::grow() {
  auto* larger = new Operand[2 * static_cast<size_t>(operand_capacity_)];
  std::copy(operands_, operands_ + operand_count_, larger);
  if (operands_ != inline_) delete[] operands_;
  operands_ = larger;
  operand_capacity_ *= 2;
}

OpCall::Encoded OpCall::refuse(size_t parameter, const char* wanted, PyObject* got) {
  const Tensor* tensor = unwrap(got);
  const std::string what = tensor ? "the tensor " + layout_text(*tensor->layout) : got == Py_None ? "None" : std::string("a ") + Py_TYPE(got)->tp_name;
  raise_argument_error(op, text_of(PyObject_Str, (*op.parameters)[parameter].name) + " must be " + wanted + ", not " + what);
  return Encoded::kError;
}

void OpCall::replace_value(size_t parameter, PyObject* owned_object) {
  owned_.push_back(owned_object);
  if (values != own_values_) {
    std::copy(values, values + op.parameters->size(), own_values_);
    values = own_values_;
  }
  own_values_[parameter] = owned_object;
}

inline void OpCall::push_tensor(PyObject* object, const Tensor& tensor) {
  const bool wants = !tensor.stop_gradient && state.grad_enabled && is_differentiable(tensor.dtype());
  wants_grad |= wants;
  key.push(reinterpret_cast<uint64_t>(tensor.layout.get()) | static_cast<uint64_t>(wants));
  push_operand({object, 0});
}

inline OpCall::Encoded OpCall::encode_operand(size_t parameter, PyObject* o, PyObject** converted) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == tensor_type) [[likely]] {
    push_tensor(o, *reinterpret_cast<TensorObject*>(o)->tensor);
    return Encoded::kDone;
  }
  uint64_t tag;
  if (type == &PyFloat_Type) {
    tag = kTagScalarFloat;
  } else if (type == &PyLong_Type) {
    tag = kTagScalarInt;
  } else if (type == &PyBool_Type) {
    tag = kTagScalarBool;
  } else if (o == Py_None) {
    key.push(kTagNone);
    return Encoded::kDone;
  } else {
    return encode_operand_slowly(parameter, o, converted);
  }
  key.push(tag);
  push_operand({o, tag});
  return Encoded::kDone;
}

OpCall::Encoded OpCall::encode_operand_slowly(size_t parameter, PyObject* o, PyObject** converted) {
  if (Tensor* t = unwrap(o)) {
    push_tensor(o, *t);
    return Encoded::kDone;
  }
  if (symbolic_type && PyObject_TypeCheck(o, symbolic_type)) return Encoded::kSymbolic;
  // np.float64 and np.complex128 are Python numbers too, and count as such.
  if (const auto tag = PyFloat_Check(o) ? kTagScalarFloat : PyLong_Check(o) ? kTagScalarInt : PyComplex_Check(o) ? kTagScalarComplex : kNoTag) {
    key.push(tag);
    push_operand({o, tag});
    return Encoded::kDone;
  }
  if (PyObject* made = tensor_from_numpy(o)) {
    *converted = made;
    push_tensor(made, *unwrap(made));
    return Encoded::kDone;
  }
  PyErr_Clear();  // an array of text or objects
  return refuse(parameter, "a Tensor, a number or an array of numbers", o);
}

OpCall::Encoded OpCall::encode_list(size_t parameter) {
  PyObject* list = values[parameter];
  if (!PyList_Check(list) && !PyTuple_Check(list)) {
    if (list == Py_None && (*op.parameters)[parameter].default_value == Py_None) return key.push(kTagNone), Encoded::kDone;
    if (symbolic_type && PyObject_TypeCheck(list, symbolic_type)) return Encoded::kSymbolic;  // static programs say what is wrong themselves
    return refuse(parameter, "a list or tuple of Tensors", list);
  }
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  key.push(kTagTensors | static_cast<uint64_t>(count) << 8);
  // A copy of a list, which Python code that runs during the call could change.
  PyObject* copy = PyList_Check(list) ? PyList_GetSlice(list, 0, count) : nullptr;
  if (copy) {
    replace_value(parameter, copy);
  } else if (PyList_Check(list)) {
    return Encoded::kError;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* converted = nullptr;
    if (const Encoded done = encode_operand(parameter, PySequence_Fast_GET_ITEM(copy ? copy : list, i), &converted); done != Encoded::kDone) return done;
    if (!converted) continue;
    if (!copy) {
      copy = PySequence_List(list);
      if (!copy) {
        Py_DECREF(converted);
        return Encoded::kError;
      }
      replace_value(parameter, copy);
    }
    if (PyList_SetItem(copy, i, converted)) return Encoded::kError;
  }
  return Encoded::kDone;
}

void OpCall::encode_text(uint64_t tag, const char* text, Py_ssize_t length) {
  key.push(tag | static_cast<uint64_t>(length) << 8);
  for (Py_ssize_t i = 0; i < length; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text + i, static_cast<size_t>(std::min<Py_ssize_t>(8, length - i)));
    key.push(word);
  }
}

OpCall::Encoded OpCall::encode_integer(PyObject* o) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (value == -1 && !overflow && PyErr_Occurred()) return Encoded::kError;
  if (!overflow) {
    key.push(kTagInt);
    key.push(static_cast<uint64_t>(value));
    return Encoded::kDone;
  }
  Owned hexadecimal(PyNumber_ToBase(o, 16));
  if (!hexadecimal) return Encoded::kError;
  Py_ssize_t length;
  const char* digits = PyUnicode_AsUTF8AndSize(hexadecimal.get(), &length);
  if (!digits) return Encoded::kError;
  encode_text(kTagBigInt, digits, length);
  return Encoded::kDone;
}

OpCall::Encoded OpCall::encode_attribute(size_t parameter, PyObject* o, int depth) {
  PyTypeObject* type = Py_TYPE(o);
  if (o == Py_None) {
    key.push(kTagNone);
  } else if (type == &PyBool_Type) {
    key.push(o == Py_True ? kTagTrue : kTagFalse);
  } else if (type == &PyLong_Type) {
    return encode_integer(o);
  } else if (type == &PyFloat_Type) {
    key.push(kTagFloat);
    key.push(double_bits(PyFloat_AS_DOUBLE(o)));
  } else if (type == &PyTuple_Type || type == &PyList_Type) {
    if (depth == kMaxNesting) {
      raise_argument_error(op, text_of(PyObject_Str, (*op.parameters)[parameter].name) + " is nested too deeply");
      return Encoded::kError;
    }
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(o);
    key.push(kTagSequence | static_cast<uint64_t>(count) << 8);
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (const Encoded done = encode_attribute(parameter, PySequence_Fast_GET_ITEM(o, i), depth + 1); done != Encoded::kDone) return done;
    }
  } else {
    return encode_attribute_slowly(parameter, o, depth);
  }
  return Encoded::kDone;
}

OpCall::Encoded OpCall::encode_attribute_slowly(size_t parameter, PyObject* o, int depth) {
  if (PyUnicode_Check(o)) {
    Py_ssize_t length;
    const char* text = PyUnicode_AsUTF8AndSize(o, &length);
    if (!text) {
      PyErr_Clear();
      return refuse(parameter, "text that can be encoded", o);
    }
    encode_text(kTagString, text, length);
    return Encoded::kDone;
  }
  if (const DType* dtype = as_dtype(o)) {
    key.push(kTagDType | static_cast<uint64_t>(*dtype) << 8);
    return Encoded::kDone;
  }
  if (is_tensor(o) || is_numpy_value(o)) {
    needs_conversion_ = true;
    return Encoded::kDone;
  }
  if (symbolic_type && PyObject_TypeCheck(o, symbolic_type)) return Encoded::kSymbolic;
  if (PyFloat_Check(o)) {
    key.push(kTagFloat);
    key.push(double_bits(PyFloat_AS_DOUBLE(o)));
    return Encoded::kDone;
  }
  if (PyLong_Check(o)) return encode_integer(o);
  if (PyComplex_Check(o)) {
    const Py_complex value = PyComplex_AsCComplex(o);
    key.push(kTagComplex);
    key.push(double_bits(value.real));
    key.push(double_bits(value.imag));
    return Encoded::kDone;
  }
  if (o == Py_Ellipsis) {
    key.push(kTagEllipsis);
    return Encoded::kDone;
  }
  if (PySlice_Check(o)) {
    auto* slice = reinterpret_cast<PySliceObject*>(o);
    key.push(kTagSlice);
    for (PyObject* part : {slice->start, slice->stop, slice->step}) {
      if (const Encoded done = encode_attribute(parameter, part, depth); done != Encoded::kDone) return done;
    }
    return Encoded::kDone;
  }
  if (PyTuple_Check(o) || PyList_Check(o)) {  // a subclass: torch.Size-like shapes, named tuples
    Owned plain(PySequence_Tuple(o));
    return plain ? encode_attribute(parameter, plain.get(), depth) : Encoded::kError;
  }
  // Whatever else has value semantics: places, NumPy dtypes, classes.
  if (!interned_objects && !(interned_objects = PyDict_New())) return Encoded::kError;
  PyObject* number = PyDict_GetItemWithError(interned_objects, o);
  if (!number) {
    if (PyErr_Occurred()) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) return Encoded::kError;
      PyErr_Clear();
      return refuse(parameter, "None, a bool, number, string, dtype, place, or a list of those", o);
    }
    if (PyDict_GET_SIZE(interned_objects) >= kMaxInterned) clear_interned_objects();
    Owned fresh(PyLong_FromUnsignedLongLong(next_interned));
    if (!fresh || PyDict_SetItem(interned_objects, o, fresh.get())) return Encoded::kError;
    key.push(kTagObject);
    key.push(next_interned++);
    return Encoded::kDone;
  }
  key.push(kTagObject);
  key.push(PyLong_AsUnsignedLongLong(number));
  return Encoded::kDone;
}

namespace {

PyObject* read_attribute(PyObject* o);

// One item of a list: of a tensor of one element its number, whatever its shape.
PyObject* read_item(PyObject* o) {
  Owned read(read_attribute(o));
  while (read && is_tensor(o) && PyList_Check(read.get()) && PyList_GET_SIZE(read.get()) == 1) {
    read = Owned(Py_NewRef(PyList_GET_ITEM(read.get(), 0)));
  }
  return read.release();
}

// A copy of an attribute in which tensors and NumPy values are Python numbers and lists.
PyObject* read_attribute(PyObject* o) {
  if (is_tensor(o) || is_numpy_value(o)) return stopping_at_exit([o] { return PyObject_CallMethod(o, "tolist", nullptr); });
  if (!PyTuple_Check(o) && !PyList_Check(o)) return Py_NewRef(o);
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(o);
  Owned copy(PyTuple_New(count));
  for (Py_ssize_t i = 0; copy && i < count; ++i) {
    PyObject* item = read_item(PySequence_Fast_GET_ITEM(o, i));
    if (!item) return nullptr;
    PyTuple_SET_ITEM(copy.get(), i, item);
  }
  if (PyTuple_Check(o)) return copy.release();
  return copy ? PySequence_List(copy.get()) : nullptr;
}

}  // namespace

OpCall::Encoded OpCall::encode() {
  const Parameter* parameters = op.parameters->data();
  const size_t count = op.parameters->size();
  key.push(state.context);
  for (size_t i = 0; i < count; ++i) {
    PyObject* value = values[i];
    PyObject* converted = nullptr;
    Encoded done;
    if (parameters[i].kind == Parameter::kTensor) {
      done = encode_operand(i, value, &converted);
    } else if (parameters[i].kind == Parameter::kTensors) {
      done = encode_list(i);
    } else {
      const uint32_t begin = key.size();
      done = encode_attribute(i, value, 0);
      if (needs_conversion_ && done == Encoded::kDone) {
        needs_conversion_ = false;
        key.truncate(begin);
        converted = read_attribute(value);
        if (!converted) return Encoded::kError;
        done = encode_attribute(i, converted, 0);
      }
    }
    if (converted) replace_value(i, converted);
    if (done != Encoded::kDone) return done;
  }
  return Encoded::kDone;
}

bool OpCall::gather(Tensor** tensors, ScalarOperands& scalars) const {
  for (uint32_t i = 0; i < operand_count_; ++i) {
    tensors[i] = is_tensor_operand(i) ? reinterpret_cast<TensorObject*>(operands_[i].object)->tensor.get() : scalars.add(operands_[i].object);
    if (tensors[i]) continue;
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
      PyErr_Clear();
      throw Error(ErrorKind::kValue, std::string(op_name(op)) + "(): " + operand_names()[i] + " is " + text_of(PyObject_Repr, operands_[i].object) + ", which does not fit in 64 bits");
    }
    return false;
  }
  return true;
}

PyObject* OpCall::values_tuple() const {
  const size_t count = op.parameters->size();
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(values[i]));
  return tuple;
}

std::vector<std::string> OpCall::operand_names() const {
  std::vector<std::string> names;
  const auto& parameters = *op.parameters;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const std::string name = text_of(PyObject_Str, parameters[p].name);
    if (parameters[p].kind == Parameter::kAttribute) continue;
    if (parameters[p].kind == Parameter::kTensor || !(PyList_Check(values[p]) || PyTuple_Check(values[p]))) {
      if (values[p] != Py_None) names.push_back(name);
      continue;
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values[p]); ++i) {
      if (PySequence_Fast_GET_ITEM(values[p], i) != Py_None) names.push_back(name + "[" + std::to_string(i) + "]");
    }
  }
  return names;
}

bool OpCall::replace_operand(uint32_t i, PyObject* owned_object) {
  for (size_t p = 0; p < op.parameters->size(); ++p) {
    if ((*op.parameters)[p].kind != Parameter::kTensor || values[p] != operands_[i].object) continue;
    replace_value(p, owned_object);
    return true;
  }
  owned_.push_back(owned_object);
  return false;
}

}  // namespace sampan
