// The DLPack exchange protocol, versions 0 and 1 (dmlc.github.io/dlpack), for memory of the CPU.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstring>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/convert.h"
#include "bind/exit.h"
#include "exec/copy.h"

namespace sampan {

namespace {

constexpr int32_t kCpu = 1;
constexpr uint64_t kReadOnly = 1;

// The two structs of the protocol that nanobind keeps to itself.
struct Managed {
  nb::dlpack::dltensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  nb::dlpack::dltensor tensor;
};

template <class M>
constexpr const char* capsule_name = std::is_same_v<M, Managed> ? "dltensor" : "dltensor_versioned";
template <class M>
constexpr const char* used_name = std::is_same_v<M, Managed> ? "used_dltensor" : "used_dltensor_versioned";

enum Code : uint8_t { kInt = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

nb::dlpack::dtype to_dlpack(DType t) {
  const auto bits = static_cast<uint8_t>(dtype_size(t) * 8);
  if (t == DType::k_bfloat16) return {kBfloat, bits, 1};
  switch (dtype_kind(t)) {
    case 'b': return {kBool, bits, 1};
    case 'u': return {kUnsigned, bits, 1};
    case 'i': return {kInt, bits, 1};
    case 'f': return {kFloat, bits, 1};
    default: return {kComplex, bits, 1};
  }
}

DType from_dlpack_type(nb::dlpack::dtype d) {
  for (int i = 0; i < static_cast<int>(DType::kCount); ++i) {
    if (to_dlpack(static_cast<DType>(i)) == d) return static_cast<DType>(i);
  }
  throw Error(ErrorKind::kDType, "from_dlpack: a Tensor cannot hold elements of DLPack type (code " + std::to_string(d.code) + ", " + std::to_string(d.bits) +
                                     " bits, " + std::to_string(d.lanes) + " lanes)");
}

// What a consumer holds: the struct, its shape and strides, and the storage.
template <class M>
struct Export {
  M managed;
  Ref<const Layout> layout;
  Ref<Storage> storage;
  std::array<int64_t, kMaxRank> shape, strides;
};

template <class M>
void destroy_unused(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, capsule_name<M>)) return;
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, capsule_name<M>));
  m->deleter(m);
}

template <class M>
nb::object export_tensor(const Tensor& t) {
  auto e = std::make_unique<Export<M>>();
  const Layout& l = *t.layout;
  e->storage = t.storage;
  std::copy(l.shape, l.shape + kMaxRank, e->shape.begin());
  std::copy(l.strides, l.strides + kMaxRank, e->strides.begin());
  nb::dlpack::dltensor& d = e->managed.tensor;
  d.data = t.data();
  d.device = {kCpu, 0};
  d.ndim = l.rank;
  d.dtype = to_dlpack(l.dtype);
  d.shape = e->shape.data();
  d.strides = e->strides.data();
  d.byte_offset = 0;
  e->managed.context = e.get();
  e->managed.deleter = [](M* m) { delete static_cast<Export<M>*>(m->context); };
  if constexpr (std::is_same_v<M, ManagedVersioned>) {
    e->managed.version = {1, 0};
    e->managed.flags = 0;
  }
  nb::object capsule = take(PyCapsule_New(&e->managed, capsule_name<M>, destroy_unused<M>));
  e.release();
  return capsule;
}

PyObject* dlpack_method(PyObject* self, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", const_cast<char**>(names), &stream, &version, &device, &copy)) return nullptr;
  try {
    if (device != Py_None && to_sizes(device) != std::vector<int64_t>{kCpu, 0}) {
      PyErr_SetString(PyExc_BufferError, "__dlpack__: this tensor is in the memory of the CPU, device (1, 0)");
      return nullptr;
    }
    Ref<Tensor> t(unwrap(self));
    if (copy == Py_True) t = copy_tensor(*t, t->dtype());
    const bool is_versioned = version != Py_None && !to_sizes(version).empty() && to_sizes(version)[0] >= 1;
    return (is_versioned ? export_tensor<ManagedVersioned>(*t) : export_tensor<Managed>(*t)).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* dlpack_device_method(PyObject*, PyObject*) { return Py_BuildValue("(ii)", kCpu, 0); }

template <class M>
void release_import(Storage* s) {
  auto* m = static_cast<M*>(s->context);
  if (!m->deleter || !Py_IsInitialized()) return;
  // The producer's deleter may be Python's own.
  const PythonLock lock;
  m->deleter(m);
}

template <class M>
Ref<Tensor> import_tensor(PyObject* capsule) {
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, capsule_name<M>));
  if (!m) throw nb::python_error();
  bool is_read_only = false;
  if constexpr (std::is_same_v<M, ManagedVersioned>) {
    if (m->version.major > 1) throw Error(ErrorKind::kValue, "from_dlpack: version " + std::to_string(m->version.major) + " of the protocol is not known");
    is_read_only = m->flags & kReadOnly;
  }
  const nb::dlpack::dltensor& d = m->tensor;
  if (d.device.device_type != kCpu) throw Error(ErrorKind::kValue, "from_dlpack: the tensor is on a device of type " + std::to_string(d.device.device_type) + "; copy it to the CPU first");
  if (d.ndim < 0 || (d.ndim > 0 && !d.shape)) throw Error(ErrorKind::kShape, "from_dlpack: the producer gave no shape");
  const std::span<const int64_t> shape(d.shape, static_cast<size_t>(d.ndim));
  const DType dtype = from_dlpack_type(d.dtype);
  Ref<const Layout> layout = d.strides ? intern_layout(dtype, shape, {d.strides, shape.size()}) : contiguous_layout(dtype, shape);
  int64_t lowest, highest;
  layout->extent(&lowest, &highest);
  const auto item = static_cast<int64_t>(dtype_size(dtype));
  char* first = static_cast<char*>(d.data) + d.byte_offset;
  const auto size = static_cast<size_t>(layout->numel ? (highest - lowest + 1) * item : 0);
  Ref<Storage> storage = external_storage(first + lowest * item, size, release_import<M>, m);
  PyCapsule_SetName(capsule, used_name<M>);
  Ref<Tensor> t = view_storage(std::move(storage), std::move(layout), -lowest * item);
  return is_read_only ? copy_tensor(*t, dtype) : t;
}

nb::object from_dlpack(nb::handle source) {
  nb::object capsule = nb::borrow(source);
  if (!PyCapsule_CheckExact(source.ptr())) {
    if (!nb::hasattr(source, "__dlpack__")) throw Error(ErrorKind::kType, std::string("from_dlpack: ") + Py_TYPE(source.ptr())->tp_name + " has no __dlpack__");
    const nb::object method = source.attr("__dlpack__");
    try {
      capsule = method(nb::arg("max_version") = nb::make_tuple(1, 0));
    } catch (nb::python_error& e) {
      if (!e.matches(PyExc_TypeError)) throw;
      capsule = method();  // a producer from before version 1
    }
  }
  if (PyCapsule_IsValid(capsule.ptr(), capsule_name<ManagedVersioned>)) return take(wrap(import_tensor<ManagedVersioned>(capsule.ptr())));
  if (PyCapsule_IsValid(capsule.ptr(), capsule_name<Managed>)) return take(wrap(import_tensor<Managed>(capsule.ptr())));
  throw Error(ErrorKind::kValue, "from_dlpack: expected an unused DLPack capsule or an object with __dlpack__");
}

PyMethodDef methods[] = {
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dlpack_method)), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", dlpack_device_method, METH_NOARGS, nullptr},
};

}  // namespace

void bind_dlpack(nb::module_& m) {
  for (PyMethodDef& method : methods) {
    const nb::object descriptor = take(PyDescr_NewMethod(tensor_type, &method));
    nb::setattr(nb::handle(reinterpret_cast<PyObject*>(tensor_type)), method.ml_name, descriptor);
  }
  m.def("from_dlpack", from_dlpack, nb::arg("source"), "A tensor over the memory of another library's tensor; a copy when that is read-only.");
}

}  // namespace sampan
