#include "bind/tensor_object.h"

#include <structmember.h>

#include <vector>

#include "base/half.h"
#include "bind/handles.h"
#include "bind/owned.h"
#include "eager/node.h"

namespace sampan {

PyTypeObject* tensor_type = nullptr;

namespace {

constexpr int kKeptObjects = 256;
TensorObject* kept_objects[kKeptObjects];
int kept_count = 0;

TensorObject* object_of(PyObject* self) { return reinterpret_cast<TensorObject*>(self); }
Tensor& tensor_of(PyObject* self) { return *object_of(self)->tensor; }

// Not tracked by the collector: without a __dict__ or a hook nothing it holds can point back to it.
PyObject* new_object(Ref<Tensor> tensor) {
  TensorObject* o;
  if (kept_count > 0) {
    o = kept_objects[--kept_count];
    PyObject_Init(reinterpret_cast<PyObject*>(o), tensor_type);
  } else {
    o = PyObject_GC_New(TensorObject, tensor_type);
    if (!o) return nullptr;
  }
  o->dict = nullptr;
  o->weak_references = nullptr;
  tensor->python_object = o;
  new (&o->tensor) Ref<Tensor>(std::move(tensor));
  return reinterpret_cast<PyObject*>(o);
}

void dealloc(PyObject* self) {
  TensorObject* o = object_of(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  // From here on wrap() makes a new object: this one cannot come back.
  if (o->tensor && o->tensor->python_object == self) o->tensor->python_object = nullptr;
  if (o->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->dict);
  o->tensor.~Ref();
  if (type == tensor_type && kept_count < kKeptObjects) {
    kept_objects[kept_count++] = o;
  } else {
    PyObject_GC_Del(self);
  }
  Py_DECREF(type);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  TensorObject* o = object_of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(o->dict);
  if (o->tensor && o->tensor->autograd && o->tensor->use_count() == 1) return o->tensor->autograd->visit_python(visit, arg);
  return 0;
}

int clear(PyObject* self) {
  TensorObject* o = object_of(self);
  Py_CLEAR(o->dict);
  if (o->tensor && o->tensor->autograd && o->tensor->use_count() == 1) o->tensor->autograd->clear_python();
  return 0;
}

// Tensor(source=None): another tensor over source's memory, or an empty one; of other arguments its Python side makes one. A subclass may take any: its
// __init__ then fills the empty one.
PyObject* make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  const bool has_first = PyTuple_GET_SIZE(args) > 0 && PyTuple_GET_ITEM(args, 0) != Py_None;
  Tensor* source = has_first ? unwrap(PyTuple_GET_ITEM(args, 0)) : nullptr;
  if (!source && type == tensor_type && (has_first || (keywords && PyDict_GET_SIZE(keywords) > 0))) {
    const Owned from_data(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "_from_data"));
    return from_data ? PyObject_Call(from_data.get(), args, keywords) : nullptr;
  }
  try {
    const int64_t empty = 0;
    Ref<Tensor> tensor = source ? alias_tensor(*source) : empty_tensor(contiguous_layout(DType::k_float32, {&empty, 1}));
    if (source) tensor->stop_gradient = source->stop_gradient;
    if (type == tensor_type) return new_object(std::move(tensor));
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    tensor->python_object = self;
    new (&object_of(self)->tensor) Ref<Tensor>(std::move(tensor));
    return self;
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

// A subclass may take any arguments, which object.__init__ would refuse.
int init(PyObject*, PyObject*, PyObject*) { return 0; }

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(self, name, value);
  if (object_of(self)->dict) track_tensor(self);
  return status;
}

PyObject* get_dict(PyObject* self, void* context) {
  PyObject* dict = PyObject_GenericGetDict(self, context);
  if (dict) track_tensor(self);
  return dict;
}

int set_dict(PyObject* self, PyObject* value, void* context) {
  track_tensor(self);
  return PyObject_GenericSetDict(self, value, context);
}

PyObject* list_of(std::span<const int64_t> values) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(values.size()));
  if (!list) return nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject* v = PyLong_FromLongLong(values[i]);
    if (!v) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), v);
  }
  return list;
}

PyObject* get_shape(PyObject* self, void*) { return list_of(tensor_of(self).layout->shape_span()); }
PyObject* get_strides(PyObject* self, void*) { return list_of(tensor_of(self).layout->strides_span()); }
PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(dtype_object(tensor_of(self).dtype())); }
PyObject* get_rank(PyObject* self, void*) { return PyLong_FromLong(tensor_of(self).rank()); }
PyObject* get_numel(PyObject* self, void*) { return PyLong_FromLongLong(tensor_of(self).numel()); }
PyObject* get_offset(PyObject* self, void*) { return PyLong_FromLongLong(tensor_of(self).offset_bytes); }
PyObject* get_version(PyObject* self, void*) { return PyLong_FromUnsignedLong(tensor_of(self).storage->version); }
PyObject* get_layout(PyObject* self, void*) { return wrap_layout(tensor_of(self).layout); }
PyObject* get_storage(PyObject* self, void*) { return wrap_storage(tensor_of(self).storage); }
PyObject* get_stop_gradient(PyObject* self, void*) { return PyBool_FromLong(tensor_of(self).stop_gradient); }

int assign_stop_gradient(PyObject* self, PyObject* value, void*) {
  if (!value) {
    PyErr_SetString(PyExc_AttributeError, "stop_gradient cannot be deleted");
    return -1;
  }
  const int flag = PyObject_IsTrue(value);
  if (flag < 0) return -1;
  try {
    set_stop_gradient(tensor_of(self), flag != 0);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* is_contiguous(PyObject* self, PyObject*) { return PyBool_FromLong(tensor_of(self).layout->is_contiguous); }
PyObject* data_ptr(PyObject* self, PyObject*) { return PyLong_FromVoidPtr(tensor_of(self).data()); }
PyObject* element_size(PyObject* self, PyObject*) { return PyLong_FromSize_t(dtype_size(tensor_of(self).dtype())); }

// The index as an integer; false with TypeError set.
bool item_index(PyObject* given, int64_t* index) {
  if (!PyIndex_Check(given)) {
    PyErr_Format(PyExc_TypeError, "item(): the index is %R; it must be an integer\n  read one element with tensor[i, j].item()", given);
    return false;
  }
  const Owned number(PyNumber_Index(given));
  if (!number) return false;
  *index = PyLong_AsLongLong(number.get());
  if (*index != -1 || !PyErr_Occurred()) return true;
  PyErr_Format(PyExc_IndexError, "item(): the index %S does not fit in 64 bits", number.get());
  return false;
}

PyObject* item(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const Tensor& t = tensor_of(self);
  const Layout& l = *t.layout;
  int64_t offset = 0;
  if (count == 0) {
    if (l.numel != 1) {
      PyErr_Format(PyExc_ValueError, "item(): the tensor is %s; without an index it must have one element\n  pass an index, or use tolist() or numpy()", layout_text(l).c_str());
      return nullptr;
    }
  } else if (count == 1 && l.rank != 1) {
    int64_t flat;
    if (!item_index(args[0], &flat)) return nullptr;
    const int64_t index = flat < 0 ? flat + l.numel : flat;
    if (index < 0 || index >= l.numel) {
      return PyErr_Format(PyExc_IndexError, "item(): the flat index %lld is out of range; the tensor is %s and has %lld elements", static_cast<long long>(flat), layout_text(l).c_str(), static_cast<long long>(l.numel));
    }
    flat = index;
    for (int i = l.rank - 1; i >= 0; --i) {
      offset += flat % l.shape[i] * l.strides[i];
      flat /= l.shape[i];
    }
  } else {
    if (count != l.rank) {
      return PyErr_Format(PyExc_ValueError, "item(): %zd indices were given; the tensor is %s\n  pass one index for each of its %d axes, one flat index, or none for a tensor of one element", count, layout_text(l).c_str(), l.rank);
    }
    for (int i = 0; i < l.rank; ++i) {
      int64_t given;
      if (!item_index(args[i], &given)) return nullptr;
      const int64_t index = given < 0 ? given + l.shape[i] : given;
      if (index < 0 || index >= l.shape[i]) {
        return PyErr_Format(PyExc_IndexError, "item(): index %lld is out of range for axis %d; the tensor is %s", static_cast<long long>(given), i, layout_text(l).c_str());
      }
      offset += index * l.strides[i];
    }
  }
  return read_element(l.dtype, t.data() + offset * static_cast<int64_t>(dtype_size(l.dtype)));
}

PyObject* list_elements(const Layout& l, const char* data, int axis) {
  if (axis == l.rank) return read_element(l.dtype, data);
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(l.shape[axis]));
  if (!list) return nullptr;
  const int64_t stride = l.strides[axis] * static_cast<int64_t>(dtype_size(l.dtype));
  for (int64_t i = 0; i < l.shape[axis]; ++i) {
    PyObject* v = list_elements(l, data + i * stride, axis + 1);
    if (!v) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), v);
  }
  return list;
}

PyObject* tolist(PyObject* self, PyObject*) {
  const Tensor& t = tensor_of(self);
  return list_elements(*t.layout, t.data(), 0);
}

PyGetSetDef getset[] = {
    {"__dict__", get_dict, set_dict, nullptr, nullptr},
    {"shape", get_shape, nullptr, "The sizes of its axes, as a list.", nullptr},
    {"strides", get_strides, nullptr, "Elements between neighbours along each axis, as a list.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of its elements.", nullptr},
    {"ndim", get_rank, nullptr, "The number of axes.", nullptr},
    {"rank", get_rank, nullptr, "The number of axes.", nullptr},
    {"size", get_numel, nullptr, "The number of elements.", nullptr},
    {"offset_bytes", get_offset, nullptr, "Where its first element lies in its storage.", nullptr},
    {"inplace_version", get_version, nullptr, "How many in-place writes its storage has seen.", nullptr},
    {"layout", get_layout, nullptr, "Its dtype, shape and strides as one object.", nullptr},
    {"storage", get_storage, nullptr, "The memory that it views.", nullptr},
    {"stop_gradient", get_stop_gradient, assign_stop_gradient, "Whether no gradient flows to it.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"is_contiguous", is_contiguous, METH_NOARGS, "is_contiguous($self, /)\n--\n\nWhether its elements lie in row-major order without gaps."},
    {"data_ptr", data_ptr, METH_NOARGS, "data_ptr($self, /)\n--\n\nThe address of its first element."},
    {"element_size", element_size, METH_NOARGS, "element_size($self, /)\n--\n\nBytes of one element."},
    {"item", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(item)), METH_FASTCALL,
     "item($self, /, *args)\n--\n\nOne element as a Python number: the only one, the one at a flat index, or the one at an index for each axis."},
    {"tolist", tolist, METH_NOARGS, "tolist($self, /)\n--\n\nIts elements as nested lists of Python numbers."},
    {},
};

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
    {},
};

}  // namespace

PyObject* wrap(Ref<Tensor> tensor) {
  auto* o = static_cast<PyObject*>(tensor->python_object);
  // An object without references is being deallocated further up this stack.
  if (o && Py_REFCNT(o) > 0) return Py_NewRef(o);
  return new_object(std::move(tensor));
}

void track_tensor(PyObject* o) {
  if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
}

PyObject* read_element(DType dtype, const char* p) {
  const auto as = [p]<class T>(T) { return *reinterpret_cast<const T*>(p); };
  switch (dtype) {
    case DType::k_bool: return PyBool_FromLong(*p);
    case DType::k_uint8: return PyLong_FromLong(as(uint8_t{}));
    case DType::k_int8: return PyLong_FromLong(as(int8_t{}));
    case DType::k_int16: return PyLong_FromLong(as(int16_t{}));
    case DType::k_int32: return PyLong_FromLong(as(int32_t{}));
    case DType::k_int64: return PyLong_FromLongLong(as(int64_t{}));
    case DType::k_float16: return PyFloat_FromDouble(to_float(as(Half{})));
    case DType::k_bfloat16: return PyFloat_FromDouble(to_float(as(BFloat16{})));
    case DType::k_float32: return PyFloat_FromDouble(as(float{}));
    case DType::k_float64: return PyFloat_FromDouble(as(double{}));
    case DType::k_complex64: return PyComplex_FromDoubles(as(float{}), reinterpret_cast<const float*>(p)[1]);
    case DType::k_complex128: return PyComplex_FromDoubles(as(double{}), reinterpret_cast<const double*>(p)[1]);
    case DType::kCount: break;
  }
  Py_UNREACHABLE();
}

int make_tensor_type(PyObject* module) {
  std::vector<PyType_Slot> slots = {
      {Py_tp_new, reinterpret_cast<void*>(make)},
      {Py_tp_init, reinterpret_cast<void*>(init)},
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
      {Py_tp_hash, reinterpret_cast<void*>(PyBaseObject_Type.tp_hash)},
      {Py_tp_getset, getset},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
  };
  for (const PyType_Slot* s = eager_tensor_slots(); s->slot; ++s) slots.push_back(*s);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"sampan._rt.Tensor", sizeof(TensorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return tensor_type ? PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)) : -1;
}

}  // namespace sampan
