// Operators, comparisons, indexing and conversion of Tensor: slots that call the Ops that Python registered.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "bind/convert.h"
#include "bind/eager.h"
#include "bind/op_call.h"
#include "bind/owned.h"
#include "eager/view.h"
#include "exec/copy.h"

namespace sampan {
namespace {

// SAMPAN_OPERATORS(X): X(name), the name of Python's special method without underscores.
#define SAMPAN_OPERATORS(X)                                                                                                             \
  X(add) X(radd) X(iadd) X(sub) X(rsub) X(isub) X(mul) X(rmul) X(imul) X(truediv) X(rtruediv) X(itruediv) X(floordiv) X(rfloordiv)      \
  X(ifloordiv) X(mod) X(rmod) X(imod) X(pow) X(rpow) X(ipow) X(matmul) X(rmatmul) X(imatmul) X(and) X(rand) X(iand) X(or) X(ror) X(ior) \
  X(xor) X(rxor) X(ixor) X(lshift) X(rlshift) X(ilshift) X(rshift) X(rrshift) X(irshift) X(neg) X(pos) X(abs) X(invert) X(lt) X(le)     \
  X(eq) X(ne) X(gt) X(ge)

enum Operator {
#define SAMPAN_ENUM(name) k_##name,
  SAMPAN_OPERATORS(SAMPAN_ENUM)
#undef SAMPAN_ENUM
      kOperatorCount
};

constexpr const char* operator_names[] = {
#define SAMPAN_NAME(name) "__" #name "__",
    SAMPAN_OPERATORS(SAMPAN_NAME)
#undef SAMPAN_NAME
};

PyObject* operators[kOperatorCount];  // owned; null: not registered
PyObject* get_handler = nullptr;
PyObject* set_handler = nullptr;

Tensor& tensor_of(PyObject* self) { return *reinterpret_cast<TensorObject*>(self)->tensor; }

bool is_operand(PyObject* o) {
  if (is_tensor(o) || PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  return (symbolic_type && PyObject_TypeCheck(o, symbolic_type)) || is_numpy_value(o);
}

PyObject* not_implemented() { return Py_NewRef(Py_NotImplemented); }

PyObject* call_two(PyObject* function, PyObject* a, PyObject* b) {
  PyObject* args[] = {a, b};
  return call_op(function, args, 2);
}

// The slot is called with the Tensor on either side. The op takes its operands in the order they are written in.
template <Operator kForward, Operator kReflected>
PyObject* binary(PyObject* a, PyObject* b) {
  if (is_tensor(a)) [[likely]] {
    if (!operators[kForward] || !is_operand(b)) return not_implemented();
    return call_two(operators[kForward], a, b);
  }
  if (!is_operand(a)) return not_implemented();
  if (operators[kReflected]) return call_two(operators[kReflected], b, a);
  return operators[kForward] ? call_two(operators[kForward], a, b) : not_implemented();
}

template <Operator kForward, Operator kReflected>
PyObject* ternary(PyObject* a, PyObject* b, PyObject* modulus) {
  return modulus == Py_None ? binary<kForward, kReflected>(a, b) : not_implemented();
}

// Without a registered form Python falls back to a = a + b.
template <Operator kInplace>
PyObject* in_place(PyObject* a, PyObject* b) {
  return operators[kInplace] && is_operand(b) ? call_two(operators[kInplace], a, b) : not_implemented();
}

template <Operator kInplace>
PyObject* in_place_ternary(PyObject* a, PyObject* b, PyObject*) {
  return in_place<kInplace>(a, b);
}

template <Operator kUnary>
PyObject* unary(PyObject* a) {
  if (operators[kUnary]) return call_op(operators[kUnary], &a, 1);
  return PyErr_Format(PyExc_TypeError, "%s is not registered", operator_names[kUnary]);
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  static constexpr Operator by_operation[] = {k_lt, k_le, k_eq, k_ne, k_gt, k_ge};
  static_assert(Py_LT == 0 && Py_LE == 1 && Py_EQ == 2 && Py_NE == 3 && Py_GT == 4 && Py_GE == 5);
  PyObject* op = operators[by_operation[operation]];
  return op && is_operand(b) ? call_two(op, a, b) : not_implemented();
}

// The only element; null with an error that says what it was for.
PyObject* only_element(PyObject* self, const char* purpose) {
  const Tensor& t = tensor_of(self);
  if (t.numel() == 1) return read_element(t.dtype(), t.data());
  return PyErr_Format(PyExc_ValueError, "%s needs a tensor of one element; this one is %s", purpose, layout_text(*t.layout).c_str());
}

int as_bool(PyObject* self) {
  if (tensor_of(self).numel() != 1) {
    PyErr_Format(PyExc_ValueError, "the truth of a tensor of %lld elements is ambiguous: reduce it with any() or all()", static_cast<long long>(tensor_of(self).numel()));
    return -1;
  }
  Owned value(only_element(self, "bool()"));
  return value ? PyObject_IsTrue(value.get()) : -1;
}

PyObject* as_float(PyObject* self) {
  Owned value(only_element(self, "float()"));
  return value ? PyNumber_Float(value.get()) : nullptr;
}

PyObject* as_int(PyObject* self) {
  Owned value(only_element(self, "int()"));
  return value ? PyNumber_Long(value.get()) : nullptr;
}

PyObject* as_index(PyObject* self) {
  const DType dtype = tensor_of(self).dtype();
  if (dtype_kind(dtype) == 'f' || dtype_kind(dtype) == 'c') return PyErr_Format(PyExc_TypeError, "a %s tensor cannot be an index: it must hold an integer", dtype_name(dtype));
  Owned value(only_element(self, "an index"));
  return value ? PyNumber_Index(value.get()) : nullptr;
}

Py_ssize_t length(PyObject* self) {
  const Layout& l = *tensor_of(self).layout;
  if (l.rank) return static_cast<Py_ssize_t>(l.shape[0]);
  PyErr_SetString(PyExc_TypeError, "len() of a 0-D tensor");
  return -1;
}

// A view by one integer or slice on the first axis; null without an error when the general way must be taken.
Ref<Tensor> simple_view(const Tensor& t, PyObject* index) {
  const Layout& l = *t.layout;
  if (!l.rank || eager_state.tracing || (eager_state.grad_enabled && wants_grad(t))) return nullptr;
  const auto item = static_cast<int64_t>(dtype_size(l.dtype));
  if (PyLong_CheckExact(index)) {
    int overflow;
    const int64_t given = PyLong_AsLongLongAndOverflow(index, &overflow);
    const int64_t i = given < 0 ? given + l.shape[0] : given;
    if (overflow || i < 0 || i >= l.shape[0]) {
      throw Error(ErrorKind::kIndex, "index " + text_of(PyObject_Str, index) + " is outside axis 0 of " + layout_text(l));
    }
    return view_tensor(t, intern_layout(l.dtype, l.shape_span().subspan(1), l.strides_span().subspan(1)), t.offset_bytes + i * l.strides[0] * item);
  }
  if (!PySlice_Check(index)) return nullptr;
  const auto* slice = reinterpret_cast<PySliceObject*>(index);
  for (PyObject* part : {slice->start, slice->stop, slice->step}) {
    if (part != Py_None && !PyLong_CheckExact(part)) return nullptr;
  }
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(index, &start, &stop, &step)) return PyErr_Clear(), nullptr;
  const Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(l.shape[0]), &start, &stop, step);
  if (step < 1) return nullptr;
  int64_t shape[kMaxRank], strides[kMaxRank];
  std::copy(l.shape, l.shape + l.rank, shape);
  std::copy(l.strides, l.strides + l.rank, strides);
  shape[0] = count;
  strides[0] = l.strides[0] * std::min<int64_t>(step, std::max<int64_t>(l.shape[0], 1));
  const auto rank = static_cast<size_t>(l.rank);
  return view_tensor(t, intern_layout(l.dtype, {shape, rank}, {strides, rank}), t.offset_bytes + (count ? start * l.strides[0] * item : 0));
}

PyObject* get_item(PyObject* self, PyObject* index) {
  try {
    Tensor& t = tensor_of(self);
    if (Ref<Tensor> view = simple_view(t, index)) {
      link_view(*view, t);
      return wrap(std::move(view));
    }
  } catch (...) {
    set_python_error();
    return nullptr;
  }
  if (!get_handler) return PyErr_Format(PyExc_TypeError, "no index handler is registered (_rt.set_index_handlers)");
  return call_two(get_handler, self, index);
}

bool has_repeated_elements(const Layout& l) {
  for (int i = 0; i < l.rank; ++i) {
    if (l.shape[i] > 1 && l.strides[i] == 0) return true;
  }
  return false;
}

// True when value was written into the view; false when the general way must be taken.
bool simple_write(const Tensor& view, PyObject* value) {
  if (has_repeated_elements(*view.layout)) return false;
  if (const Tensor* source = unwrap(value)) {
    if (source->dtype() != view.dtype() || !std::ranges::equal(source->layout->shape_span(), view.layout->shape_span())) return false;
    if (eager_state.grad_enabled && wants_grad(*source)) return false;
    copy_into(view, *source);
  } else if (PyFloat_CheckExact(value) || PyBool_Check(value) || PyLong_CheckExact(value)) {
    const char kind = dtype_kind(view.dtype());
    if (PyFloat_CheckExact(value) && kind != 'f' && kind != 'c') return false;
    int overflow = 0;
    const int64_t integer = PyFloat_CheckExact(value) ? 0 : PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return false;
    if (PyFloat_CheckExact(value)) {
      const double number = PyFloat_AS_DOUBLE(value);
      fill_elements(view.data(), *view.layout, &number, DType::k_float64);
    } else {
      fill_elements(view.data(), *view.layout, &integer, DType::k_int64);
    }
  } else {
    return false;
  }
  view.storage->version.fetch_add(1, std::memory_order_relaxed);
  return true;
}

int set_item(PyObject* self, PyObject* index, PyObject* value) {
  if (!value) {
    PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
    return -1;
  }
  try {
    if (const Ref<Tensor> view = simple_view(tensor_of(self), index); view && simple_write(*view, value)) return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
  if (!set_handler) {
    PyErr_SetString(PyExc_TypeError, "no index handler is registered (_rt.set_index_handlers)");
    return -1;
  }
  PyObject* args[] = {self, index, value};
  Owned done(call_op(set_handler, args, 3));
  return done ? 0 : -1;
}

// The sequence protocol's own indexing: iteration ends with the IndexError.
PyObject* sequence_item(PyObject* self, Py_ssize_t i) {
  const Layout& l = *tensor_of(self).layout;
  if (!l.rank || i < 0 || i >= l.shape[0]) return PyErr_Format(PyExc_IndexError, "index %zd is outside axis 0 of %s", i, layout_text(l).c_str());
  Owned index(PyLong_FromSsize_t(i));
  return index ? get_item(self, index.get()) : nullptr;
}

PyObject* iterate(PyObject* self) {
  if (tensor_of(self).rank()) return PySeqIter_New(self);
  return PyErr_Format(PyExc_TypeError, "a 0-D tensor cannot be iterated over");
}

Py_hash_t hash_identity(PyObject* self) {
  const auto address = reinterpret_cast<size_t>(self);
  const auto hash = static_cast<Py_hash_t>((address >> 4) | (address << (8 * sizeof(size_t) - 4)));
  return hash == -1 ? -2 : hash;
}

#define SAMPAN_BINARY(slot, name) {Py_nb_##slot, reinterpret_cast<void*>(binary<k_##name, k_r##name>)}, \
                                  {Py_nb_inplace_##slot, reinterpret_cast<void*>(in_place<k_i##name>)}

PyType_Slot tensor_slots[] = {
    SAMPAN_BINARY(add, add),
    SAMPAN_BINARY(subtract, sub),
    SAMPAN_BINARY(multiply, mul),
    SAMPAN_BINARY(true_divide, truediv),
    SAMPAN_BINARY(floor_divide, floordiv),
    SAMPAN_BINARY(remainder, mod),
    SAMPAN_BINARY(matrix_multiply, matmul),
    SAMPAN_BINARY(and, and),
    SAMPAN_BINARY(or, or),
    SAMPAN_BINARY(xor, xor),
    SAMPAN_BINARY(lshift, lshift),
    SAMPAN_BINARY(rshift, rshift),
    {Py_nb_power, reinterpret_cast<void*>(ternary<k_pow, k_rpow>)},
    {Py_nb_inplace_power, reinterpret_cast<void*>(in_place_ternary<k_ipow>)},
    {Py_nb_negative, reinterpret_cast<void*>(unary<k_neg>)},
    {Py_nb_positive, reinterpret_cast<void*>(unary<k_pos>)},
    {Py_nb_absolute, reinterpret_cast<void*>(unary<k_abs>)},
    {Py_nb_invert, reinterpret_cast<void*>(unary<k_invert>)},
    {Py_nb_bool, reinterpret_cast<void*>(as_bool)},
    {Py_nb_float, reinterpret_cast<void*>(as_float)},
    {Py_nb_int, reinterpret_cast<void*>(as_int)},
    {Py_nb_index, reinterpret_cast<void*>(as_index)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_hash, reinterpret_cast<void*>(hash_identity)},
    {Py_tp_iter, reinterpret_cast<void*>(iterate)},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {Py_mp_subscript, reinterpret_cast<void*>(get_item)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(set_item)},
    {Py_sq_length, reinterpret_cast<void*>(length)},
    {Py_sq_item, reinterpret_cast<void*>(sequence_item)},
    {0, nullptr},
};

// Both return what was registered before.
nb::object set_operator(nb::handle name, nb::object op) {
  const char* text = PyUnicode_Check(name.ptr()) ? PyUnicode_AsUTF8(name.ptr()) : nullptr;
  const auto* found = text ? std::ranges::find(operator_names, std::string_view(text)) : std::end(operator_names);
  if (found == std::end(operator_names)) {
    PyErr_Clear();
    throw Error(ErrorKind::kValue, "set_operator: there is no operator " + text_of(PyObject_Repr, name.ptr()));
  }
  if (!op.is_none() && !PyCallable_Check(op.ptr())) throw Error(ErrorKind::kType, "set_operator: an Op or a function is needed");
  return exchange_registered(operators[found - operator_names], std::move(op));
}

nb::tuple set_index_handlers(nb::object get, nb::object set) {
  nb::object old_get = exchange_registered(get_handler, std::move(get));
  return nb::make_tuple(std::move(old_get), exchange_registered(set_handler, std::move(set)));
}

}  // namespace

PyType_Slot* eager_tensor_slots() { return tensor_slots; }

void bind_operators(nb::module_& m) {
  m.def("set_operator", set_operator, nb::arg("name"), nb::arg("op").none(), "The Op behind an operator of Tensor, such as '__add__'; None takes it away. Returns what was.");
  m.def("set_index_handlers", set_index_handlers, nb::arg("get").none(), nb::arg("set").none(),
        "get(tensor, index) and set(tensor, index, value), for what the fast path leaves. Returns what was.");
}

}  // namespace sampan
