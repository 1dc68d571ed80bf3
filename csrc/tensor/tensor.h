// Storage and strided tensors.
#pragma once
#include <memory>
#include <new>

#include "tensor/layout.h"

struct _object;  // CPython's PyObject

namespace sampan {

// A block of memory that any number of tensors view. The version counts in-place writes; backward compares it.
struct Storage final : RefCounted {
  char* data = nullptr;
  size_t size_bytes = 0;
  std::atomic<uint32_t> version{0};
  void (*deleter)(Storage*) = nullptr;  // null: the caching allocator's own block
  void* context = nullptr;              // the deleter's (a NumPy array, a DLPack capsule, a shared-memory segment)

  // A small block lies behind its Storage in one allocation, so that a small tensor costs one block less.
  static void operator delete(Storage* storage, std::destroying_delete_t);

 protected:
  ~Storage() override = default;

 private:
  Storage() = default;
  friend Ref<Storage> allocate_storage(size_t size_bytes);
  friend Ref<Storage> external_storage(void* data, size_t size_bytes, void (*deleter)(Storage*), void* context);
};

// From the caching allocator, 64-byte aligned, not initialised. Raises Error(kMemory) with the sizes involved.
Ref<Storage> allocate_storage(size_t size_bytes);
// Over memory that someone else owns; deleter runs with the last reference, on any thread.
Ref<Storage> external_storage(void* data, size_t size_bytes, void (*deleter)(Storage*), void* context);

// A Python object as the cycle collector's callbacks take it; this layer only passes it through.
using VisitObject = int (*)(_object* object, void* arg);

// Defined by the eager layer: gradient, graph edge, hooks, name. Kept opaque here so that the layer below does not know autograd.
struct AutogradMeta {
  virtual ~AutogradMeta() = default;
  // For the cycle collector, which asks only while the tensor's Python object is its sole owner.
  virtual int visit_python(VisitObject, void* /*arg*/) const { return 0; }
  virtual void clear_python() {}
};

struct Tensor final : RefCounted {
  Ref<Storage> storage;
  Ref<const Layout> layout;
  int64_t offset_bytes = 0;  // of the first element, from the storage's start
  bool stop_gradient = true;
  std::unique_ptr<AutogradMeta> autograd;  // null for most tensors
  void* python_object = nullptr;           // the living wrapper, borrowed; the bindings', used under the GIL

  static void* operator new(size_t size_bytes);
  static void operator delete(void* p);

  char* data() const { return storage->data + offset_bytes; }
  DType dtype() const { return layout->dtype; }
  int64_t numel() const { return layout->numel; }
  int rank() const { return layout->rank; }
};

Ref<Tensor> empty_tensor(Ref<const Layout> layout);  // strides must be dense
// The same storage, layout and offset under a new identity, without autograd: what detach() gives.
Ref<Tensor> alias_tensor(const Tensor& src);
// Tensors over an existing storage; offset_bytes counts from its start. The layout's reach is checked against the storage's size: Error(kIndex).
Ref<Tensor> view_storage(Ref<Storage> storage, Ref<const Layout> layout, int64_t offset_bytes);
Ref<Tensor> view_tensor(const Tensor& src, Ref<const Layout> layout, int64_t offset_bytes);
// Raises as view_storage does.
void check_reach(const Storage& storage, const Layout& layout, int64_t offset_bytes);

}  // namespace sampan
