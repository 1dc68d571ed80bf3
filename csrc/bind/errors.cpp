// Errors on their way to Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <new>
#include <string>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/convert.h"

namespace sampan {

namespace {

struct KindClass {
  ErrorKind kind;
  const char* name;
  PyObject* type;  // owned; a built-in until Python registers its own
};

std::array<KindClass, 8> classes = {{
    {ErrorKind::kShape, "shape", nullptr},
    {ErrorKind::kDType, "dtype", nullptr},
    {ErrorKind::kIndex, "index", nullptr},
    {ErrorKind::kValue, "value", nullptr},
    {ErrorKind::kType, "type", nullptr},
    {ErrorKind::kMemory, "memory", nullptr},
    {ErrorKind::kRuntime, "runtime", nullptr},
    {ErrorKind::kNotImplemented, "not_implemented", nullptr},
}};

PyObject* builtin_class(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kShape:
    case ErrorKind::kValue: return PyExc_ValueError;
    case ErrorKind::kDType:
    case ErrorKind::kType: return PyExc_TypeError;
    case ErrorKind::kIndex: return PyExc_IndexError;
    case ErrorKind::kMemory: return PyExc_MemoryError;
    case ErrorKind::kRuntime: return PyExc_RuntimeError;
    case ErrorKind::kNotImplemented: return PyExc_NotImplementedError;
  }
  return PyExc_RuntimeError;
}

void raise_error(const Error& error) noexcept {
  PyObject* type = builtin_class(error.kind());
  for (const KindClass& c : classes) {
    if (c.kind == error.kind() && c.type) type = c.type;
  }
  PyErr_SetString(type, error.what());
}

void set_error_classes(const nb::dict& by_kind) {
  for (auto [key, value] : by_kind) {
    const std::string name = nb::cast<std::string>(nb::str(key));
    KindClass* found = nullptr;
    for (KindClass& c : classes) {
      if (name == c.name) found = &c;
    }
    if (!found) throw Error(ErrorKind::kValue, "set_error_classes: there is no kind of error named '" + name + "'");
    if (!PyExceptionClass_Check(value.ptr())) throw Error(ErrorKind::kType, "set_error_classes: '" + name + "' needs an exception class");
    Py_XSETREF(found->type, Py_NewRef(value.ptr()));
  }
}

}  // namespace

void set_python_error() noexcept {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const Error& e) {
    raise_error(e);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

void bind_errors(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      raise_error(e);
    }
  });
  m.def("set_error_classes", set_error_classes, nb::arg("by_kind"),
        "Register the exception classes to raise: a dict of 'shape', 'dtype', 'index', 'value', 'type', 'memory', 'runtime', 'not_implemented'.");
}

}  // namespace sampan
