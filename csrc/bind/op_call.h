// One call of an op on its way from Python objects to tensors. Lives on the stack.
#pragma once
#include "bind/exit.h"
#include "bind/op.h"

namespace sampan {

// A few values on the stack, more of them on the heap. Trivial ones are not initialised.
template <class T, size_t kInline>
class SmallArray {
 public:
  explicit SmallArray(size_t size) : size_(size), data_(size <= kInline ? reinterpret_cast<T*>(inline_) : static_cast<T*>(::operator new(size * sizeof(T)))) {
    if constexpr (!std::is_trivial_v<T>) {
      for (size_t i = 0; i < size_; ++i) new (data_ + i) T();
    }
  }
  ~SmallArray() {
    if constexpr (!std::is_trivial_v<T>) {
      for (size_t i = 0; i < size_; ++i) data_[i].~T();
    }
    if (data_ != reinterpret_cast<T*>(inline_)) ::operator delete(data_);
  }
  SmallArray(const SmallArray&) = delete;
  SmallArray& operator=(const SmallArray&) = delete;
  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  T* data_;
  alignas(T) char inline_[kInline * sizeof(T)];
};

// The 0-D tensors of a call's Python numbers; they are used again when nothing kept them.
class ScalarOperands {
 public:
  ScalarOperands() = default;
  ~ScalarOperands();
  ScalarOperands(const ScalarOperands&) = delete;
  ScalarOperands& operator=(const ScalarOperands&) = delete;
  // Borrowed: bool, int64, float64 or complex128. Null with a Python error set (an int beyond 64 bits).
  Tensor* add(PyObject* number);

 private:
  static constexpr size_t kInline = 2;
  Ref<Tensor> first_[kInline];
  std::vector<Ref<Tensor>> more_;
  size_t count_ = 0;
};

class OpCall {
 public:
  // values: one borrowed object per parameter; not written to.
  OpCall(OpObject& o, PyObject* const* arguments) : op(o), state(eager_state), values(arguments) {}
  ~OpCall() {
    for (PyObject* o : owned_) Py_DECREF(o);
    if (operands_ != inline_) delete[] operands_;
  }
  OpCall(const OpCall&) = delete;
  OpCall& operator=(const OpCall&) = delete;

  enum class Encoded { kDone, kSymbolic, kError };
  // Turns values into the key and the operands; replaces values that had to be converted (NumPy arrays, tensors as attributes).
  Encoded encode();
  // The operands as tensors: scalars become 0-D ones. False with a Python error set.
  bool gather(Tensor** tensors, ScalarOperands& scalars) const;
  // The values as a tuple, for miss and static.
  PyObject* values_tuple() const;
  // Which parameter operand i came from: "x", or "x[2]" of a list.
  std::vector<std::string> operand_names() const;

  uint32_t operand_count() const { return operand_count_; }
  PyObject* operand(uint32_t i) const { return operands_[i].object; }
  bool is_tensor_operand(uint32_t i) const { return operands_[i].scalar == 0; }
  // Gives the call a new object in place of an operand that is itself an argument; false when it is inside a list.
  bool replace_operand(uint32_t i, PyObject* owned_object);

  OpObject& op;
  EagerState& state;       // of this thread, looked up once
  PyObject* const* values;  // the arguments, or own_values_ after a conversion
  SignatureWords key;
  bool wants_grad = false;  // of some operand, and gradients are on

 private:
  struct Operand {
    PyObject* object;  // borrowed
    uint64_t scalar;   // its tag; 0 for a tensor
  };
  void push_tensor(PyObject* object, const Tensor& tensor);
  // converted: receives the Tensor that takes the place of a NumPy value.
  Encoded encode_operand(size_t parameter, PyObject* object, PyObject** converted);
  Encoded encode_operand_slowly(size_t parameter, PyObject* object, PyObject** converted);
  void replace_value(size_t parameter, PyObject* owned_object);
  Encoded encode_list(size_t parameter);
  Encoded encode_attribute(size_t parameter, PyObject* object, int depth);
  Encoded encode_attribute_slowly(size_t parameter, PyObject* object, int depth);
  Encoded encode_integer(PyObject* object);
  void encode_text(uint64_t tag, const char* text, Py_ssize_t length);
  Encoded refuse(size_t parameter, const char* wanted, PyObject* got);
  void push_operand(Operand operand) {
    if (operand_count_ == operand_capacity_) [[unlikely]] grow();
    operands_[operand_count_++] = operand;
  }
  void grow();

  static constexpr uint32_t kInline = 16;
  Operand inline_[kInline];
  Operand* operands_ = inline_;
  uint32_t operand_count_ = 0;
  uint32_t operand_capacity_ = kInline;
  bool needs_conversion_ = false;  // an attribute holds a Tensor or a NumPy value
  std::vector<PyObject*> owned_;
  PyObject* own_values_[kMaxParameters];
};

// A new reference to a Tensor for a NumPy array or scalar; null without an error for anything else, with one when it fails.
PyObject* tensor_from_numpy(PyObject* o);
bool is_numpy_value(PyObject* o);

// Calls an op from C++ with positional arguments.
inline PyObject* call_op(PyObject* op, PyObject* const* args, size_t count) {
  return stopping_at_exit([=] { return PyObject_Vectorcall(op, args, count, nullptr); });
}

// Forgets the numbers of interned attribute objects, and with them every signature.
void clear_interned_objects();

}  // namespace sampan
