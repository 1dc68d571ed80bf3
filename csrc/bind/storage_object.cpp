#include "bind/tensor_object.h"

#include "bind/exit.h"

namespace sampan {

PyTypeObject* storage_type = nullptr;

namespace {

Storage* storage_of(PyObject* self) { return reinterpret_cast<StorageObject*>(self)->storage.get(); }

// A shared segment outlives the buffer it came through; the buffer is released with the last reference, on any thread.
void release_buffer(Storage* s) {
  if (!Py_IsInitialized()) return;
  const PythonLock lock;
  auto* view = static_cast<Py_buffer*>(s->context);
  PyBuffer_Release(view);
  delete view;
}

PyObject* storage_from_buffer(PyObject*, PyObject* exporter) {
  auto* view = new (std::nothrow) Py_buffer;
  if (!view) return PyErr_NoMemory();
  if (PyObject_GetBuffer(exporter, view, PyBUF_WRITABLE | PyBUF_SIMPLE) < 0) {
    delete view;
    return nullptr;
  }
  try {
    return wrap_storage(external_storage(view->buf, static_cast<size_t>(view->len), release_buffer, view));
  } catch (...) {
    PyBuffer_Release(view);
    delete view;
    set_python_error();
    return nullptr;
  }
}

PyObject* storage_allocate(PyObject*, PyObject* size) {
  const size_t bytes = PyLong_AsSize_t(size);
  if (bytes == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
  try {
    return wrap_storage(allocate_storage(bytes));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* get_size_bytes(PyObject* self, void*) { return PyLong_FromSize_t(storage_of(self)->size_bytes); }
PyObject* get_data_ptr(PyObject* self, void*) { return PyLong_FromVoidPtr(storage_of(self)->data); }
PyObject* get_version(PyObject* self, void*) { return PyLong_FromUnsignedLong(storage_of(self)->version); }
PyObject* get_is_external(PyObject* self, void*) { return PyBool_FromLong(storage_of(self)->deleter != nullptr); }

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  Storage* s = storage_of(self);
  return PyBuffer_FillInfo(view, self, s->data, static_cast<Py_ssize_t>(s->size_bytes), 0, flags);
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  if (Py_TYPE(b) != storage_type || (operation != Py_EQ && operation != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((storage_of(a) == storage_of(b)) == (operation == Py_EQ));
}

Py_hash_t hash(PyObject* self) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(storage_of(self)) >> 4); }

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<StorageObject*>(self)->storage.~Ref();
  type->tp_free(self);
  Py_DECREF(type);
}

PyGetSetDef getset[] = {
    {"size_bytes", get_size_bytes, nullptr, "Its size.", nullptr},
    {"data_ptr", get_data_ptr, nullptr, "The address of its first byte.", nullptr},
    {"version", get_version, nullptr, "How many in-place writes it has seen.", nullptr},
    {"is_external", get_is_external, nullptr, "Whether another library or another process owns the memory.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"from_buffer", storage_from_buffer, METH_O | METH_STATIC,
     "A Storage over a writable buffer (shared memory, mmap, bytearray), which stays exported as long as the Storage lives."},
    {"allocate", storage_allocate, METH_O | METH_STATIC, "A new Storage of that many bytes, not initialised."},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_tp_doc, const_cast<char*>("The memory that tensors view. A buffer of bytes; equal when it is the same memory block.")},
    {0, nullptr},
};

PyType_Spec spec = {"sampan._rt.Storage", sizeof(StorageObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyObject* wrap_storage(Ref<Storage> storage) {
  PyObject* o = storage_type->tp_alloc(storage_type, 0);
  if (o) new (&reinterpret_cast<StorageObject*>(o)->storage) Ref<Storage>(std::move(storage));
  return o;
}

int make_storage_type(PyObject* module) {
  storage_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return storage_type ? PyModule_AddObjectRef(module, "Storage", reinterpret_cast<PyObject*>(storage_type)) : -1;
}

}  // namespace sampan
