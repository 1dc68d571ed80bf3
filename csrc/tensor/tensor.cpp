#include "tensor/tensor.h"

#include <algorithm>
#include <string>

#include "base/allocator.h"
#include "base/error.h"

namespace sampan {

namespace {

constexpr size_t kHeader = 64;           // room for a Storage that keeps the data behind it aligned
constexpr size_t kInlineLimit = 2048 - kHeader;  // above, size classes are coarse and the header would cost a quarter of a block

static_assert(sizeof(Storage) <= kHeader);

bool holds_data_inline(const Storage& s) { return s.data == reinterpret_cast<const char*>(&s) + kHeader; }

}  // namespace

void Storage::operator delete(Storage* s, std::destroying_delete_t) {
  if (s->deleter) s->deleter(s);
  const bool is_inline = holds_data_inline(*s);
  const bool owns_block = !s->deleter && !is_inline;
  char* data = s->data;
  const size_t size = s->size_bytes;
  s->~Storage();
  if (owns_block) free_block(data, size);
  free_block(s, kHeader + (is_inline ? size : 0));
}

Ref<Storage> allocate_storage(size_t size_bytes) {
  const bool is_inline = size_bytes <= kInlineLimit;
  void* data = is_inline ? nullptr : allocate_block(size_bytes);
  void* header;
  try {
    header = allocate_block(kHeader + (is_inline ? size_bytes : 0));
  } catch (...) {
    if (data) free_block(data, size_bytes);
    throw;
  }
  auto* s = new (header) Storage;
  s->data = is_inline ? static_cast<char*>(header) + kHeader : static_cast<char*>(data);
  s->size_bytes = size_bytes;
  s->retain_new();
  return Ref<Storage>::adopt(s);
}

Ref<Storage> external_storage(void* data, size_t size_bytes, void (*deleter)(Storage*), void* context) {
  auto* s = new (allocate_block(kHeader)) Storage;
  s->data = static_cast<char*>(data);
  s->size_bytes = size_bytes;
  s->deleter = deleter;
  s->context = context;
  s->retain_new();
  return Ref<Storage>::adopt(s);
}

void* Tensor::operator new(size_t size_bytes) { return allocate_block(size_bytes); }

void Tensor::operator delete(void* p) { free_block(p, sizeof(Tensor)); }

Ref<Tensor> empty_tensor(Ref<const Layout> layout) {
  if (!layout->is_dense) {
    throw Error(ErrorKind::kValue, "a new tensor needs a layout without gaps or overlaps; this one is " + layout_text(*layout));
  }
  Ref<Tensor> t = make_ref<Tensor>();
  t->storage = allocate_storage(layout->size_bytes());
  t->layout = std::move(layout);
  return t;
}

Ref<Tensor> alias_tensor(const Tensor& src) {
  Ref<Tensor> t = make_ref<Tensor>();
  t->storage = src.storage;
  t->layout = src.layout;
  t->offset_bytes = src.offset_bytes;
  return t;
}

void check_reach(const Storage& storage, const Layout& layout, int64_t offset_bytes) {
  int64_t lowest, highest;
  layout.extent(&lowest, &highest);
  const auto item = static_cast<int64_t>(dtype_size(layout.dtype));
  const auto size = static_cast<int64_t>(storage.size_bytes);
  const int64_t used = layout.numel ? (highest + 1) * item : 0;
  // Layouts reach at most 2^62 bytes, so only the offset can make these sums overflow.
  const bool inside = offset_bytes >= 0 && offset_bytes <= size && offset_bytes + lowest * item >= 0 && used <= size - offset_bytes;
  if (!inside) {
    throw Error(ErrorKind::kIndex, "the view " + layout_text(layout) + " at byte " + std::to_string(offset_bytes) + " reaches outside its storage of " +
                                       std::to_string(size) + " bytes");
  }
  const auto alignment = static_cast<uintptr_t>(dtype_kind(layout.dtype) == 'c' ? item / 2 : item);
  if (layout.numel && reinterpret_cast<uintptr_t>(storage.data + offset_bytes) % alignment != 0) {
    throw Error(ErrorKind::kValue, "a view of " + std::string(dtype_name(layout.dtype)) + " elements cannot start at byte " + std::to_string(offset_bytes) +
                                       ": it is not a multiple of " + std::to_string(alignment) + " in memory");
  }
}

Ref<Tensor> view_storage(Ref<Storage> storage, Ref<const Layout> layout, int64_t offset_bytes) {
  check_reach(*storage, *layout, offset_bytes);
  Ref<Tensor> t = make_ref<Tensor>();
  t->storage = std::move(storage);
  t->layout = std::move(layout);
  t->offset_bytes = offset_bytes;
  return t;
}

Ref<Tensor> view_tensor(const Tensor& src, Ref<const Layout> layout, int64_t offset_bytes) {
  return view_storage(src.storage, std::move(layout), offset_bytes);
}

}  // namespace sampan
