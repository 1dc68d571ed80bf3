// Small helpers over the C API for the files that do without nanobind.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>
#include <utility>

#include "bind/exit.h"

namespace sampan {

// An owned reference.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* o) : object_(o) {}
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    PyObject* old = std::exchange(object_, std::exchange(other.object_, nullptr));
    Py_XDECREF(old);
    return *this;
  }
  ~Owned() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// The text that convert (PyObject_Str, PyObject_Repr) makes of o; leaves no Python error behind.
inline std::string text_of(PyObject* (*convert)(PyObject*), PyObject* o) {
  Owned text(stopping_at_exit([=] { return convert(o); }));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (utf8) return utf8;
  PyErr_Clear();
  return "?";
}

}  // namespace sampan
