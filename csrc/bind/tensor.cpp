// Layouts, and the functions that make, view and copy tensors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/convert.h"
#include "bind/exit.h"
#include "eager/view.h"
#include "exec/copy.h"

namespace sampan {

namespace {

constexpr int64_t kReleaseLockBytes = 1 << 18;

struct LayoutHandle {
  Ref<const Layout> layout;
};

// Copies large tensors without Python's lock. Work on an alias then: another thread may rebind() the tensor meanwhile.
template <class F>
auto unlocked(int64_t bytes, F&& work) {
  if (bytes < kReleaseLockBytes) return work();
  const UnlockScope unlock(true);
  return work();
}

int64_t bytes_of(const Tensor& t) { return static_cast<int64_t>(t.layout->size_bytes()); }

nb::tuple tuple_of(std::span<const int64_t> values) {
  nb::object t = take(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i) PyTuple_SET_ITEM(t.ptr(), static_cast<Py_ssize_t>(i), take(PyLong_FromLongLong(values[i])).release().ptr());
  return nb::borrow<nb::tuple>(t);
}

Ref<const Layout> make_layout(nb::handle dtype, nb::handle shape, nb::handle strides) {
  const std::vector<int64_t> sizes = to_sizes(shape);
  return strides.is_none() ? contiguous_layout(to_dtype(dtype), sizes) : intern_layout(to_dtype(dtype), sizes, to_sizes(strides));
}

int64_t checked_bytes(int64_t elements, DType dtype, int64_t start_bytes) {
  int64_t bytes;
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(dtype_size(dtype)), &bytes) || __builtin_add_overflow(bytes, start_bytes, &bytes)) {
    throw Error(ErrorKind::kIndex, "an offset of " + std::to_string(elements) + " elements is outside any storage");
  }
  return bytes;
}

nb::object empty(nb::handle shape, nb::handle dtype) { return take(wrap(empty_tensor(contiguous_layout(to_dtype(dtype), to_sizes(shape))))); }

nb::object copy(nb::handle src, nb::handle dtype) {
  const Ref<Tensor> t = alias_tensor(to_tensor(src));
  const DType target = dtype.is_none() ? t->dtype() : to_dtype(dtype);
  return take(wrap(unlocked(bytes_of(*t), [&] { return copy_tensor(*t, target); })));
}

void copy_into_bound(nb::handle dst, nb::handle src) {
  const Ref<Tensor> d = alias_tensor(to_tensor(dst)), s = alias_tensor(to_tensor(src));
  unlocked(bytes_of(*d), [&] { copy_into(*d, *s); });
  d->storage->version.fetch_add(1);
}

void fill(nb::handle dst, nb::handle value) {
  const Ref<Tensor> d = alias_tensor(to_tensor(dst));
  const auto write = [&](const void* element, DType dtype) {
    unlocked(bytes_of(*d), [&] { fill_elements(d->data(), *d->layout, element, dtype); });
  };
  if (PyIndex_Check(value.ptr()) && !is_numpy_bool(value.ptr())) {  // before 2.3 NumPy's bool is an index, which warns
    const int64_t v = to_int(value);
    write(&v, DType::k_int64);
  } else if (PyComplex_Check(value.ptr()) || (nb::hasattr(value, "__complex__") && !PyFloat_Check(value.ptr()))) {
    const Py_complex v = PyComplex_AsCComplex(value.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    write(&v, DType::k_complex128);
  } else {
    const double v = PyFloat_AsDouble(value.ptr());
    if (v == -1.0 && PyErr_Occurred()) throw nb::python_error();
    write(&v, DType::k_float64);
  }
  d->storage->version.fetch_add(1);
}

nb::object as_view(nb::handle src, nb::handle shape, nb::handle strides, int64_t offset_elements) {
  Tensor& t = to_tensor(src);
  return take(wrap(view_tensor(t, intern_layout(t.dtype(), to_sizes(shape), to_sizes(strides)), checked_bytes(offset_elements, t.dtype(), t.offset_bytes))));
}

nb::object tensor_over(nb::handle storage, nb::handle layout, int64_t offset_bytes) {
  if (Py_TYPE(storage.ptr()) != storage_type) throw Error(ErrorKind::kType, "tensor_over: storage must be a Storage");
  return take(wrap(view_storage(reinterpret_cast<StorageObject*>(storage.ptr())->storage, to_layout(layout), offset_bytes)));
}

// The object stays, what it looks at changes: the version moves on with the new storage, so that a tape that saved the old one notices.
void rebind(nb::handle dst, nb::handle src) {
  Tensor &d = to_tensor(dst), &s = to_tensor(src);
  if (!(d.storage == s.storage)) part_from_views(d);
  d.storage = s.storage;
  d.layout = s.layout;
  d.offset_bytes = s.offset_bytes;
  d.storage->version.fetch_add(1);
}

void bind_layout(nb::module_& m) {
  nb::class_<LayoutHandle>(m, "Layout", "What a tensor looks like. Equal layouts are one: comparing is comparing pointers.")
      .def("__init__",
           [](LayoutHandle* self, nb::handle dtype, nb::handle shape, nb::handle strides) { new (self) LayoutHandle{make_layout(dtype, shape, strides)}; },
           nb::arg("dtype"), nb::arg("shape"), nb::arg("strides").none() = nb::none())
      .def_prop_ro("dtype", [](const LayoutHandle& self) { return nb::borrow(dtype_object(self.layout->dtype)); })
      .def_prop_ro("shape", [](const LayoutHandle& self) { return tuple_of(self.layout->shape_span()); })
      .def_prop_ro("strides", [](const LayoutHandle& self) { return tuple_of(self.layout->strides_span()); })
      .def_prop_ro("rank", [](const LayoutHandle& self) { return self.layout->rank; })
      .def_prop_ro("numel", [](const LayoutHandle& self) { return self.layout->numel; })
      .def_prop_ro("size_bytes", [](const LayoutHandle& self) { return self.layout->size_bytes(); })
      .def_prop_ro("is_contiguous", [](const LayoutHandle& self) { return self.layout->is_contiguous; })
      .def_prop_ro("is_dense", [](const LayoutHandle& self) { return self.layout->is_dense; })
      .def("__repr__", [](const LayoutHandle& self) { return "Layout(" + layout_text(*self.layout) + ")"; })
      .def("__hash__", [](const LayoutHandle& self) { return static_cast<int64_t>(self.layout->hash >> 1); })
      .def("__eq__", [](const LayoutHandle& self, nb::handle other) { return self.layout == as_layout(other.ptr()); }, nb::arg("other").none());
}

}  // namespace

PyObject* wrap_layout(Ref<const Layout> layout) { return nb::cast(LayoutHandle{std::move(layout)}).release().ptr(); }

Ref<const Layout> as_layout(PyObject* o) {
  LayoutHandle* handle = nullptr;
  return nb::try_cast(nb::handle(o), handle) && handle ? handle->layout : Ref<const Layout>();
}

Tensor& to_tensor(nb::handle o) {
  Tensor* t = unwrap(o.ptr());
  if (!t) throw Error(ErrorKind::kType, std::string("expected a Tensor, not ") + Py_TYPE(o.ptr())->tp_name);
  return *t;
}

DType to_dtype(nb::handle o) {
  if (const DType* t = as_dtype(o.ptr())) return *t;
  if (PyUnicode_Check(o.ptr())) {
    for (int i = 0; i < static_cast<int>(DType::kCount); ++i) {
      if (PyUnicode_CompareWithASCIIString(o.ptr(), dtype_name(static_cast<DType>(i))) == 0) return static_cast<DType>(i);
    }
  }
  throw Error(ErrorKind::kDType, "there is no dtype " + nb::cast<std::string>(nb::repr(o)));
}

Ref<const Layout> to_layout(nb::handle o) {
  Ref<const Layout> layout = as_layout(o.ptr());
  if (!layout) throw Error(ErrorKind::kType, std::string("expected a Layout, not ") + Py_TYPE(o.ptr())->tp_name);
  return layout;
}

int64_t to_int(nb::handle o) {
  const nb::object index = take(stopping_at_exit([o] { return PyNumber_Index(o.ptr()); }));
  const int64_t v = PyLong_AsLongLong(index.ptr());
  if (v == -1 && PyErr_Occurred()) throw nb::python_error();
  return v;
}

std::vector<int64_t> to_sizes(nb::handle o) {
  if (!PySequence_Check(o.ptr())) throw Error(ErrorKind::kType, std::string("expected a list or tuple of integers, not ") + Py_TYPE(o.ptr())->tp_name);
  // A tuple, since an item's __index__ may change the list.
  const nb::object items = take(PySequence_Tuple(o.ptr()));
  const auto n = static_cast<size_t>(PyTuple_GET_SIZE(items.ptr()));
  std::vector<int64_t> sizes(n);
  for (size_t i = 0; i < n; ++i) sizes[i] = to_int(PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i)));
  return sizes;
}

void bind_tensor(nb::module_& m) {
  bind_layout(m);
  m.def("empty", empty, nb::arg("shape"), nb::arg("dtype"), "A new contiguous tensor, not initialised.");
  m.def("empty_with_layout", [](nb::handle layout) { return take(wrap(empty_tensor(to_layout(layout)))); }, nb::arg("layout"),
        "A new tensor of a dense layout, not initialised.");
  m.def("copy", copy, nb::arg("src"), nb::arg("dtype").none() = nb::none(), "A new contiguous tensor with src's elements, cast to dtype.");
  m.def("copy_into", copy_into_bound, nb::arg("dst"), nb::arg("src"), "Write src, broadcast and cast, into dst; dst's version moves on.");
  m.def("fill", fill, nb::arg("dst"), nb::arg("value"), "Write one number into every element of dst; dst's version moves on.");
  m.def("as_view", as_view, nb::arg("src"), nb::arg("shape"), nb::arg("strides"), nb::arg("offset_elements") = 0,
        "A view of src's storage; the offset counts from src's first element. IndexError when it reaches outside the storage.");
  m.def("tensor_over", tensor_over, nb::arg("storage"), nb::arg("layout"), nb::arg("offset_bytes") = 0, "A tensor over a Storage.");
  m.def("alias", [](nb::handle src) { return take(wrap(alias_tensor(to_tensor(src)))); }, nb::arg("src"),
        "Another tensor over the same elements, without history: what detach() gives.");
  m.def("rebind", rebind, nb::arg("dst"), nb::arg("src"), "Make dst look at src's elements from now on.");
  m.def("shares_storage", [](nb::handle a, nb::handle b) { return to_tensor(a).storage == to_tensor(b).storage; }, nb::arg("a"), nb::arg("b"));
  m.def("bump_version", [](nb::handle t) { to_tensor(t).storage->version.fetch_add(1); }, nb::arg("tensor"), "Count an in-place write.");
}

}  // namespace sampan
