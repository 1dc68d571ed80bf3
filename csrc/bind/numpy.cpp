// NumPy arrays as tensors and back, without copies where memory allows it.
#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/convert.h"
#include "bind/exit.h"
#include "eager/state.h"
#include "exec/copy.h"

namespace sampan {

namespace {

constexpr int64_t kReleaseLockBytes = 1 << 18;

// ml_dtypes' bfloat16; its number is given at run time. Imported when first needed.
PyArray_Descr* bfloat16_descr() {
  static PyArray_Descr* descr = nullptr;
  if (!descr) {
    const nb::object type = nb::module_::import_("ml_dtypes").attr("bfloat16");
    PyArray_Descr* found = nullptr;
    if (!PyArray_DescrConverter(type.ptr(), &found)) throw nb::python_error();
    descr = found;
  }
  return descr;
}

int type_number(DType t) {
  switch (t) {
    case DType::k_bool: return NPY_BOOL;
    case DType::k_uint8: return NPY_UINT8;
    case DType::k_int8: return NPY_INT8;
    case DType::k_int16: return NPY_INT16;
    case DType::k_int32: return NPY_INT32;
    case DType::k_int64: return NPY_INT64;
    case DType::k_float16: return NPY_FLOAT16;
    case DType::k_float32: return NPY_FLOAT32;
    case DType::k_float64: return NPY_FLOAT64;
    case DType::k_complex64: return NPY_COMPLEX64;
    case DType::k_complex128: return NPY_COMPLEX128;
    default: return -1;
  }
}

// A new reference.
PyArray_Descr* descr_of(DType t) {
  if (t != DType::k_bfloat16) return PyArray_DescrFromType(type_number(t));
  PyArray_Descr* d = bfloat16_descr();
  Py_INCREF(d);
  return d;
}

DType dtype_of(const PyArrayObject* array) {
  PyArray_Descr* d = PyArray_DESCR(array);
  const int number = d->type_num;
  if (number >= NPY_USERDEF) {
    if (number == bfloat16_descr()->type_num) return DType::k_bfloat16;
  } else {
    for (int i = 0; i < static_cast<int>(DType::kCount); ++i) {
      const auto t = static_cast<DType>(i);
      // By kind and size, since NumPy has two types for one C size (long and long long).
      const bool is_same = t != DType::k_bfloat16 && d->kind == dtype_kind(t) && static_cast<size_t>(PyDataType_ELSIZE(d)) == dtype_size(t);
      if (is_same) return t;
    }
  }
  throw Error(ErrorKind::kDType, "a Tensor cannot hold NumPy elements of type " + std::string(nb::str(nb::handle(reinterpret_cast<PyObject*>(d))).c_str()) +
                                     "; convert the array with astype() to one of: bool, uint8, int8 to int64, float16 to float64, bfloat16, complex64, complex128");
}

void release_object(Storage* s) {
  if (!Py_IsInitialized()) return;
  const PythonLock lock;
  Py_DECREF(static_cast<PyObject*>(s->context));
}

// A tensor over the array's own memory, which it keeps alive. Strides must be whole elements.
Ref<Tensor> view_array(PyArrayObject* array, DType dtype) {
  const int rank = PyArray_NDIM(array);
  const auto item = static_cast<int64_t>(dtype_size(dtype));
  std::vector<int64_t> shape(PyArray_DIMS(array), PyArray_DIMS(array) + rank), strides(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) strides[static_cast<size_t>(i)] = PyArray_STRIDE(array, i) / item;
  Ref<const Layout> layout = intern_layout(dtype, shape, strides);
  int64_t lowest, highest;
  layout->extent(&lowest, &highest);
  char* start = static_cast<char*>(PyArray_DATA(array)) + lowest * item;
  const auto size = static_cast<size_t>(layout->numel ? (highest - lowest + 1) * item : 0);
  Ref<Storage> storage = external_storage(start, size, release_object, array);
  Py_INCREF(array);
  return view_storage(std::move(storage), std::move(layout), -lowest * item);
}

bool can_share(PyArrayObject* array, DType dtype) {
  if (!PyArray_ISALIGNED(array) || !PyArray_ISWRITEABLE(array) || !PyArray_ISNOTSWAPPED(array) || PyArray_NDIM(array) > kMaxRank) return false;
  for (int i = 0; i < PyArray_NDIM(array); ++i) {
    if (PyArray_DIM(array, i) > 1 && PyArray_STRIDE(array, i) % static_cast<npy_intp>(dtype_size(dtype)) != 0) return false;
  }
  return true;
}

nb::object from_numpy(nb::handle source, bool copy, nb::handle dtype) {
  nb::object array_object = PyArray_Check(source.ptr()) ? nb::borrow(source) : take(PyArray_FromAny(source.ptr(), nullptr, 0, 0, 0, nullptr));
  auto* array = reinterpret_cast<PyArrayObject*>(array_object.ptr());
  const DType from = dtype_of(array), to = dtype.is_none() ? from : to_dtype(dtype);
  if (!copy && from == to && can_share(array, from)) return take(wrap(view_array(array, from)));
  // Memory that a tensor cannot look at goes through a plain array first.
  if (!PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array) || !can_share(array, from)) {
    const int flags = NPY_ARRAY_CARRAY | NPY_ARRAY_ENSUREARRAY | NPY_ARRAY_ENSURECOPY;
    array_object = take(PyArray_FromArray(array, descr_of(from), flags));
    array = reinterpret_cast<PyArrayObject*>(array_object.ptr());
    if (from == to) return take(wrap(view_array(array, from)));
  }
  const Ref<Tensor> view = view_array(array, from);
  if (PyArray_NBYTES(array) < kReleaseLockBytes) return take(wrap(copy_tensor(*view, to)));
  Ref<Tensor> result;
  {
    const UnlockScope unlock(true);
    result = copy_tensor(*view, to);
  }
  return take(wrap(std::move(result)));
}

// The storage is the array's base, so the memory lives as long as either.
nb::object numpy_view(const Tensor& t) {
  const Layout& l = *t.layout;
  npy_intp shape[kMaxRank], strides[kMaxRank];
  for (int i = 0; i < l.rank; ++i) {
    shape[i] = l.shape[i];
    strides[i] = l.strides[i] * static_cast<npy_intp>(dtype_size(l.dtype));
  }
  nb::object base = take(wrap_storage(t.storage));
  nb::object array = take(PyArray_NewFromDescr(&PyArray_Type, descr_of(l.dtype), l.rank, shape, strides, t.data(), NPY_ARRAY_WRITEABLE, nullptr));
  PyArray_UpdateFlags(reinterpret_cast<PyArrayObject*>(array.ptr()), NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_ALIGNED);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()), base.release().ptr()) < 0) throw nb::python_error();
  return array;
}

PyObject* numpy_view_method(PyObject* self, PyObject*) {
  try {
    return numpy_view(*unwrap(self)).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* array_method(PyObject* self, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"dtype", "copy", nullptr};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OO:__array__", const_cast<char**>(names), &dtype, &copy)) return nullptr;
  try {
    nb::object view = numpy_view(*unwrap(self));
    PyArray_Descr* wanted = nullptr;
    if (dtype != Py_None && !PyArray_DescrConverter(dtype, &wanted)) throw nb::python_error();
    auto* array = reinterpret_cast<PyArrayObject*>(view.ptr());
    const bool is_cast = wanted && !PyArray_EquivTypes(wanted, PyArray_DESCR(array));
    if (is_cast && copy == Py_False) {
      Py_DECREF(wanted);
      throw Error(ErrorKind::kValue, "__array__(copy=False): another dtype needs a copy");
    }
    if (is_cast) return PyArray_CastToType(array, wanted, 0);
    Py_XDECREF(wanted);
    return copy == Py_True ? PyArray_NewCopy(array, NPY_CORDER) : view.release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyMethodDef methods[] = {
    {"numpy_view", numpy_view_method, METH_NOARGS, "A writable NumPy array over the same memory; writes through it count no version."},
    {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(array_method)), METH_VARARGS | METH_KEYWORDS, nullptr},
};

}  // namespace

bool is_numpy_bool(PyObject* o) { return PyArray_IsScalar(o, Bool); }

void bind_numpy(nb::module_& m) {
  if (_import_array() < 0) throw nb::python_error();
  for (PyMethodDef& method : methods) {
    const nb::object descriptor = take(PyDescr_NewMethod(tensor_type, &method));
    nb::setattr(nb::handle(reinterpret_cast<PyObject*>(tensor_type)), method.ml_name, descriptor);
  }
  m.def("from_numpy", from_numpy, nb::arg("array"), nb::arg("copy") = false, nb::arg("dtype").none() = nb::none(),
        "A tensor of the array's elements: over its memory when copy is False and the array is writable, aligned and of a dtype that tensors have; a copy otherwise.");
}

}  // namespace sampan
