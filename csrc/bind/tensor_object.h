// The Python object of a tensor: a plain CPython heap type, because a wrapped call costs tens of nanoseconds in all.
// Free of nanobind, so that hot files compile fast. Every function here needs the GIL.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "tensor/tensor.h"

namespace sampan {

struct TensorObject {
  PyObject_HEAD
  Ref<Tensor> tensor;  // never null for an object that Python can see
  PyObject* dict;
  PyObject* weak_references;
};

// sampan._rt.Tensor; set when the module is created, lives as long as the process.
extern PyTypeObject* tensor_type;

inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type); }

// Borrowed; null, without an error set, when o is not a Tensor.
inline Tensor* unwrap(PyObject* o) { return is_tensor(o) ? reinterpret_cast<TensorObject*>(o)->tensor.get() : nullptr; }

struct DTypeObject {
  PyObject_HEAD
  DType value;
};

struct StorageObject {
  PyObject_HEAD
  Ref<Storage> storage;
};

extern PyTypeObject* dtype_type;    // sampan._rt.DType
extern PyTypeObject* storage_type;  // sampan._rt.Storage

PyObject* dtype_object(DType dtype);  // the singleton, borrowed
// Null, without an error set, when o is not a DType.
inline const DType* as_dtype(PyObject* o) { return Py_TYPE(o) == dtype_type ? &reinterpret_cast<DTypeObject*>(o)->value : nullptr; }

PyObject* wrap_storage(Ref<Storage> storage);

// A new reference to the tensor's living Python object, or to a new one: a tensor has one identity in Python as long as that object lives.
// Null with MemoryError set when there is no memory.
PyObject* wrap(Ref<Tensor> tensor);

// Lets the cycle collector see the object; called when something that can point back to it (a __dict__, a hook) appears.
void track_tensor(PyObject* o);

// Slots (nb_add, tp_richcompare, mp_subscript, ...) that the eager layer contributes to the type, ended by {0, nullptr}.
// Properties and methods are added to tensor_type after its creation: PyDescr_NewGetSet, PyDescr_NewMethod.
PyType_Slot* eager_tensor_slots();

// One element as bool, int, float or complex, and back. read_element returns null with an error set.
PyObject* read_element(DType dtype, const char* address);

// Sets the Python error for the exception being handled; call inside catch (...).
void set_python_error() noexcept;

// Create the types; -1 with an error set.
int make_dtype_type(PyObject* module);
int make_storage_type(PyObject* module);
int make_tensor_type(PyObject* module);

}  // namespace sampan
