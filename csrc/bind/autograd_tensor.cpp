// What autograd adds to Tensor: gradient, graph, hooks, name.
#include "base/error.h"
#include "bind/convert.h"
#include "bind/eager.h"
#include "bind/owned.h"
#include "eager/engine.h"
#include "eager/gradient.h"
#include "exec/copy.h"

namespace sampan {
namespace {

Tensor& tensor_of(PyObject* self) { return *reinterpret_cast<TensorObject*>(self)->tensor; }

// body() returns a new reference, or null with an error set; what it throws becomes the Python error.
template <class F>
PyObject* guarded(F&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

int refuse_delete(const char* name) {
  PyErr_Format(PyExc_AttributeError, "%s cannot be deleted", name);
  return -1;
}

PyObject* get_grad(PyObject* self, void*) {
  const EagerMeta* meta = meta_if_any(tensor_of(self));
  return meta && meta->grad ? wrap(meta->grad) : Py_NewRef(Py_None);
}

int set_grad(PyObject* self, PyObject* value, void*) {
  Owned done(guarded([&]() -> PyObject* {
    Tensor& t = tensor_of(self);
    if (!value || value == Py_None) {
      if (EagerMeta* meta = meta_if_any(t)) meta->grad = nullptr;
      return Py_NewRef(Py_None);
    }
    Tensor* grad = unwrap(value);
    if (!grad) return PyErr_Format(PyExc_TypeError, "grad must be a Tensor or None, not %s", Py_TYPE(value)->tp_name);
    check_gradient(*grad, *t.layout, "the gradient");
    if (grad == &t) throw Error(ErrorKind::kValue, "a tensor cannot be its own gradient");
    meta_of(t).grad = Ref<Tensor>(grad);
    return Py_NewRef(Py_None);
  }));
  return done ? 0 : -1;
}

PyObject* get_is_leaf(PyObject* self, void*) { return PyBool_FromLong(is_leaf(tensor_of(self))); }

PyObject* get_grad_fn(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    Node* node = t.stop_gradient ? nullptr : producer(t);
    return node ? wrap_node(Ref<Node>(node)).release().ptr() : Py_NewRef(Py_None);
  });
}

PyObject* get_name(PyObject* self, void*) {
  static uint64_t next_name = 0;
  return guarded([&] {
    EagerMeta& meta = meta_of(tensor_of(self));
    if (!meta.name) meta.name = std::make_unique<std::string>("eager_tmp_" + std::to_string(next_name++));
    return PyUnicode_FromStringAndSize(meta.name->data(), static_cast<Py_ssize_t>(meta.name->size()));
  });
}

int set_name(PyObject* self, PyObject* value, void*) {
  if (!value) return refuse_delete("name");
  Owned done(guarded([&]() -> PyObject* {
    const char* text = PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : nullptr;
    if (!text) return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_TypeError, "name must be a string, not %s", Py_TYPE(value)->tp_name);
    meta_of(tensor_of(self)).name = std::make_unique<std::string>(text);
    return Py_NewRef(Py_None);
  }));
  return done ? 0 : -1;
}

PyObject* get_persistable(PyObject* self, void*) {
  const EagerMeta* meta = meta_if_any(tensor_of(self));
  return PyBool_FromLong(meta && meta->persistable);
}

int set_persistable(PyObject* self, PyObject* value, void*) {
  if (!value) return refuse_delete("persistable");
  const int flag = PyObject_IsTrue(value);
  if (flag < 0) return -1;
  Owned done(guarded([&] {
    meta_of(tensor_of(self)).persistable = flag != 0;
    return Py_NewRef(Py_None);
  }));
  return done ? 0 : -1;
}

PyObject* register_hook(PyObject* self, PyObject* function) {
  return guarded([&] {
    Tensor& t = tensor_of(self);
    if (!wants_grad(t)) throw Error(ErrorKind::kRuntime, "register_hook: no gradient arrives at a tensor with stop_gradient=True, or one of integers");
    Ref<GradHook> hook = python_hook(nb::borrow(function));
    add_hook(t, hook);
    track_tensor(self);
    return hook_handle(std::move(hook)).release().ptr();
  });
}

PyObject* register_accumulated_hook(PyObject* self, PyObject* function) {
  return guarded([&] {
    Tensor& t = tensor_of(self);
    if (!wants_grad(t) || producer(t)) throw Error(ErrorKind::kRuntime, "a hook on the accumulated gradient needs a leaf tensor with stop_gradient=False");
    Ref<GradHook> hook = python_hook(nb::borrow(function));
    add_accumulated_hook(t, hook);
    track_tensor(self);
    return hook_handle(std::move(hook)).release().ptr();
  });
}

PyObject* retain_grads(PyObject* self, PyObject*) {
  return guarded([&] {
    Tensor& t = tensor_of(self);
    if (t.stop_gradient) throw Error(ErrorKind::kRuntime, "retain_grads: no gradient arrives at a tensor with stop_gradient=True");
    retain_grad(t);
    return Py_NewRef(Py_None);
  });
}

// clear_gradient(set_to_zero=True): zeros stay as the gradient, so that whoever holds it sees them; else there is none.
PyObject* clear_gradient(PyObject* self, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"set_to_zero", nullptr};
  int to_zero = 1;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|p:clear_gradient", const_cast<char**>(names), &to_zero)) return nullptr;
  return guarded([&] {
    EagerMeta* meta = meta_if_any(tensor_of(self));
    if (!meta || !meta->grad) return Py_NewRef(Py_None);
    if (!to_zero || selected_rows(*meta->grad)) {  // no rows are what zeros are
      meta->grad = nullptr;
      return Py_NewRef(Py_None);
    }
    const Ref<Tensor> grad = meta->grad;
    if (producer(*grad)) detach_in_place(*grad);
    const int64_t zero = 0;
    {
      UnlockScope unlock(grad->layout->size_bytes() > size_t{1} << 18);
      fill_elements(grad->data(), *grad->layout, &zero, DType::k_int64);
    }
    grad->storage->version.fetch_add(1, std::memory_order_relaxed);
    return Py_NewRef(Py_None);
  });
}

PyObject* detach(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(alias_tensor(tensor_of(self))); });
}

PyObject* detach_inplace(PyObject* self, PyObject*) {
  return guarded([&] {
    detach_in_place(tensor_of(self));
    return Py_NewRef(self);
  });
}

PyObject* bump_version(PyObject* self, PyObject*) {
  tensor_of(self).storage->version.fetch_add(1, std::memory_order_relaxed);
  Py_RETURN_NONE;
}

PyObject* backward(PyObject* self, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"grad_tensor", "retain_graph", nullptr};
  PyObject* grad = Py_None;
  int retain_graph = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|Op:backward", const_cast<char**>(names), &grad, &retain_graph)) return nullptr;
  return guarded([&]() -> PyObject* {
    BackwardRequest request;
    request.roots.emplace_back(&tensor_of(self));
    if (grad != Py_None && !is_tensor(grad)) return PyErr_Format(PyExc_TypeError, "backward: grad_tensor must be a Tensor or None, not %s", Py_TYPE(grad)->tp_name);
    request.root_grads.push_back(grad == Py_None ? Ref<Tensor>() : Ref<Tensor>(unwrap(grad)));
    request.retain_graph = retain_graph != 0;
    run_backward(request);
    return Py_NewRef(Py_None);
  });
}

template <class F>
PyCFunction as_method(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyGetSetDef properties[] = {
    {"grad", get_grad, set_grad, "Its gradient, or None.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Whether no recorded operation made it.", nullptr},
    {"grad_fn", get_grad_fn, nullptr, "The node of the operation that made it, or None.", nullptr},
    {"name", get_name, set_name, "Its name; unique when nobody gave one.", nullptr},
    {"persistable", get_persistable, set_persistable, "Whether it is part of a model's state.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"register_hook", register_hook, METH_O, "register_hook($self, hook, /)\n--\n\nCalls the function with the gradient, which its result replaces unless it is None. Returns a handle with remove()."},
    {"_register_accumulated_hook", register_accumulated_hook, METH_O, "Calls the function with a leaf's gradient after backward added to it."},
    {"retain_grads", retain_grads, METH_NOARGS, "retain_grads($self, /)\n--\n\nKeeps the gradient of a tensor that is no leaf in .grad."},
    {"clear_gradient", as_method(clear_gradient), METH_VARARGS | METH_KEYWORDS, "clear_gradient($self, set_to_zero=True)\n--\n\nSets the gradient to zeros, or to None with set_to_zero=False."},
    {"clear_grad", as_method(clear_gradient), METH_VARARGS | METH_KEYWORDS, "clear_grad($self, set_to_zero=True)\n--\n\nSets the gradient to zeros, or to None with set_to_zero=False."},
    {"detach", detach, METH_NOARGS, "detach($self, /)\n--\n\nA tensor over the same memory without history."},
    {"detach_", detach_inplace, METH_NOARGS, "detach_($self, /)\n--\n\nCuts the tensor from its history."},
    {"_bump_inplace_version", bump_version, METH_NOARGS, "Counts a write that the runtime did not see."},
    {"backward", as_method(backward), METH_VARARGS | METH_KEYWORDS, "Adds the gradients of this tensor to the leaves that it was computed from."},
    {},
};

void add(const char* name, PyObject* descriptor) {
  const nb::object owned = take(descriptor);
  if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), name, owned.ptr())) throw nb::python_error();
}

}  // namespace

void bind_autograd_tensor() {
  for (PyGetSetDef* p = properties; p->name; ++p) add(p->name, PyDescr_NewGetSet(tensor_type, p));
  for (PyMethodDef* p = methods; p->ml_name; ++p) add(p->ml_name, PyDescr_NewMethod(tensor_type, p));
}

}  // namespace sampan
