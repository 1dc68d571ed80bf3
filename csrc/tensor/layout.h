// What a tensor looks like: dtype, shape and strides, interned so that equal layouts are one object and compare as pointers.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/dtype.h"
#include "base/ref.h"

namespace sampan {

constexpr int kMaxRank = 16;

struct Layout final {
  DType dtype;
  int8_t rank;
  bool is_contiguous;  // row-major without gaps
  bool is_dense;       // some permutation of the axes is row-major without gaps (channels-last is)
  int64_t numel;
  int64_t shape[kMaxRank];
  int64_t strides[kMaxRank];  // in elements; 0 for a broadcast axis; negative for a flipped one
  uint64_t hash;

  size_t size_bytes() const { return static_cast<size_t>(numel) * dtype_size(dtype); }
  std::span<const int64_t> shape_span() const { return {shape, static_cast<size_t>(rank)}; }
  std::span<const int64_t> strides_span() const { return {strides, static_cast<size_t>(rank)}; }
  // The elements before and after the first one that the strides reach; both 0 for an empty tensor.
  void extent(int64_t* lowest, int64_t* highest) const;

  // Counted like a RefCounted object; apart from it because a lookup may meet a layout whose last reference is just going.
  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) leave_table();
  }

 private:
  friend class LayoutTable;
  void leave_table() const noexcept;
  bool retain_if_alive() const noexcept;
  mutable std::atomic<uint32_t> count_{0};
};

// The one Layout with these properties; thread safe. Strides of axes of length 1, and all strides of an empty layout, are
// normalised, so that they never make two layouts of one.
// Raises Error(kShape) for a negative size, a rank above kMaxRank, or a byte size that does not fit in 2^62.
Ref<const Layout> intern_layout(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides);
Ref<const Layout> contiguous_layout(DType dtype, std::span<const int64_t> shape);

std::string layout_text(const Layout& layout);  // "float32[2, 3]", with strides where they say something

}  // namespace sampan
