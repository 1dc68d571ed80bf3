#include <cstring>

#include "bind/tensor_object.h"

namespace sampan {

PyTypeObject* dtype_type = nullptr;

namespace {

PyObject* singletons[static_cast<int>(DType::kCount)];

DType value_of(PyObject* self) { return reinterpret_cast<DTypeObject*>(self)->value; }

PyObject* dtype_repr(PyObject* self) { return PyUnicode_FromFormat("paddle.%s", dtype_name(value_of(self))); }

PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(dtype_name(value_of(self))); }
PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromSize_t(dtype_size(value_of(self))); }
PyObject* get_kind(PyObject* self, void*) { return PyUnicode_FromFormat("%c", dtype_kind(value_of(self))); }
PyObject* get_index(PyObject* self, void*) { return PyLong_FromLong(static_cast<long>(value_of(self))); }

// Pickles and copies by name, so that the singleton comes back.
PyObject* dtype_reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("(O(s))", reinterpret_cast<PyObject*>(Py_TYPE(self)), dtype_name(value_of(self)));
}

PyObject* dtype_new(PyTypeObject*, PyObject* args, PyObject*) {
  const char* name;
  if (!PyArg_ParseTuple(args, "s:DType", &name)) return nullptr;
  for (PyObject* o : singletons) {
    if (std::strcmp(dtype_name(value_of(o)), name) == 0) return Py_NewRef(o);
  }
  return PyErr_Format(PyExc_TypeError, "there is no dtype named '%s'", name);
}

// Equal to itself, and to a str subclass of its name: what a symbolic value has as its dtype. A plain string is no dtype.
PyObject* dtype_compare(PyObject* self, PyObject* other, int op) {
  if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  bool equal = self == other;
  if (!equal && PyUnicode_Check(other) && !PyUnicode_CheckExact(other)) {
    equal = PyUnicode_CompareWithASCIIString(other, dtype_name(value_of(self))) == 0;
  }
  return PyBool_FromLong(equal == (op == Py_EQ));
}

Py_hash_t dtype_hash(PyObject* self) {
  PyObject* name = get_name(self, nullptr);
  if (!name) return -1;
  const Py_hash_t hash = PyObject_Hash(name);
  Py_DECREF(name);
  return hash;
}

PyGetSetDef getset[] = {
    {"name", get_name, nullptr, "Its name, as in NumPy.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"kind", get_kind, nullptr, "'b' bool, 'u' unsigned, 'i' signed, 'f' floating, 'c' complex.", nullptr},
    {"index", get_index, nullptr, "Its position in the list of dtypes.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(dtype_new)},
    {Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(dtype_compare)},
    {Py_tp_hash, reinterpret_cast<void*>(dtype_hash)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>("An element type. One object for each; compare with `is` or `==`.")},
    {0, nullptr},
};

PyType_Spec spec = {"sampan._rt.DType", sizeof(DTypeObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

PyObject* dtype_object(DType dtype) { return singletons[static_cast<int>(dtype)]; }

int make_dtype_type(PyObject* module) {
  dtype_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!dtype_type || PyModule_AddObjectRef(module, "DType", reinterpret_cast<PyObject*>(dtype_type)) < 0) return -1;
  PyObject* by_name = PyDict_New();
  if (!by_name) return -1;
  for (int i = 0; i < static_cast<int>(DType::kCount); ++i) {
    PyObject* o = dtype_type->tp_alloc(dtype_type, 0);
    if (!o) return -1;
    reinterpret_cast<DTypeObject*>(o)->value = static_cast<DType>(i);
    singletons[i] = o;
    if (PyDict_SetItemString(by_name, dtype_name(static_cast<DType>(i)), o) < 0) return -1;
  }
  const int status = PyModule_AddObjectRef(module, "dtypes", by_name);
  Py_DECREF(by_name);
  return status;
}

}  // namespace sampan
