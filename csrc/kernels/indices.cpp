#include "kernels/indices.h"

#include <algorithm>
#include <atomic>

#include "exec/parallel.h"

namespace sampan::kernels {

IndexTable::IndexTable(const Layout& index, Dims limits, Dims strides, int first_axis, bool allow_negative)
    : index_shape_(shape_of(index)),
      limits_(std::move(limits)),
      strides_(std::move(strides)),
      dtype_(index.dtype),
      first_axis_(first_axis),
      allow_negative_(allow_negative) {
  const int64_t width = static_cast<int64_t>(limits_.size());
  // With no axes addressed every row of the index means the one whole x.
  count_ = width ? index.numel / width : product(index.shape, index.shape + index.rank - 1);
}

void IndexTable::refuse(int64_t position, int64_t value) const {
  const size_t axis = static_cast<size_t>(position % static_cast<int64_t>(limits_.size()));
  std::string where;
  Dims at(index_shape_.size());
  for (size_t d = index_shape_.size(); d-- > 0;) {
    at[d] = position % index_shape_[d];
    position /= index_shape_[d];
  }
  if (!at.empty()) where = shape_text(at);
  const int64_t limit = limits_[axis];
  std::string valid = limit == 0 ? "no index is valid" : std::to_string(allow_negative_ ? -limit : 0) + " to " + std::to_string(limit - 1) + " are valid";
  throw Error(ErrorKind::kIndex, "index" + where + " is " + std::to_string(value) + "; axis " + std::to_string(first_axis_ + static_cast<int>(axis)) + " has " +
                                     std::to_string(limit) + " entries, so " + valid);
}

namespace {

// Of an index that may be bad, before that is known.
SAMPAN_INLINE int64_t multiply(int64_t index, int64_t stride) { return static_cast<int64_t>(static_cast<uint64_t>(index) * static_cast<uint64_t>(stride)); }

// Whether an index of [begin, end) lies outside an axis of `limit` entries; their offsets, where they are wanted.
template <class I>
SAMPAN_INLINE bool scan_indices(const I* index, int64_t begin, int64_t end, int64_t limit, int64_t wrap, int64_t stride, int64_t* offsets) {
  if (offsets) {
    bool is_bad = false;
    for (int64_t i = begin; i < end; ++i) {
      int64_t v = index[i];
      v += v < 0 ? wrap : 0;
      is_bad |= static_cast<uint64_t>(v) >= static_cast<uint64_t>(limit);
      offsets[i] = multiply(v, stride);
    }
    return is_bad;
  }
  I low = 0, high = 0;
  for (int64_t i = begin; i < end; ++i) {
    low = std::min(low, index[i]);
    high = std::max(high, index[i]);
  }
  return begin < end && (low < -wrap || high >= limit);
}
SAMPAN_CLONES bool scan_part(const int32_t* index, int64_t begin, int64_t end, int64_t limit, int64_t wrap, int64_t stride, int64_t* offsets) {
  return scan_indices(index, begin, end, limit, wrap, stride, offsets);
}
SAMPAN_CLONES bool scan_part(const int64_t* index, int64_t begin, int64_t end, int64_t limit, int64_t wrap, int64_t stride, int64_t* offsets) {
  return scan_indices(index, begin, end, limit, wrap, stride, offsets);
}

}  // namespace

template <class I>
bool IndexTable::fill_part(const I* index, int64_t begin, int64_t end, int64_t* offsets) const {
  const int64_t width = static_cast<int64_t>(limits_.size());
  if (width == 1) return scan_part(index, begin, end, limits_[0], allow_negative_ ? limits_[0] : 0, strides_[0], offsets);
  bool is_bad = false;
  for (int64_t i = begin; i < end; ++i) {
    int64_t offset = 0;
    for (int64_t d = 0; d < width; ++d) {
      const size_t axis = static_cast<size_t>(d);
      int64_t v = index[i * width + d];
      v += v < 0 && allow_negative_ ? limits_[axis] : 0;
      is_bad |= static_cast<uint64_t>(v) >= static_cast<uint64_t>(limits_[axis]);
      offset = static_cast<int64_t>(static_cast<uint64_t>(offset) + static_cast<uint64_t>(multiply(v, strides_[axis])));
    }
    offsets[i] = offset;
  }
  return is_bad;
}

template <class I>
int64_t IndexTable::find_bad(const I* index, int64_t begin, int64_t end) const {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t limit = limits_[static_cast<size_t>(i % static_cast<int64_t>(limits_.size()))], v = index[i];
    if (v >= limit || v < (allow_negative_ ? -limit : 0)) return i;
  }
  return -1;
}

template <class I>
void IndexTable::fill_typed(const I* index, int64_t* offsets) const {
  const int64_t width = static_cast<int64_t>(limits_.size());
  std::atomic<int64_t> first_bad{INT64_MAX};
  parallel_for(count_, 1.0 + static_cast<double>(width), [&](int64_t begin, int64_t end) {
    // Again where no bad index is found any more: another thread has written it, and its offset is not to be used.
    while (fill_part(index, begin, end, offsets)) {
      const int64_t i = find_bad(index, begin * width, end * width);
      if (i < 0) continue;
      int64_t seen = first_bad.load();
      while (i < seen && !first_bad.compare_exchange_weak(seen, i)) {
      }
      return;
    }
  });
  if (first_bad != INT64_MAX) refuse(first_bad, index[first_bad]);
}

void IndexTable::fill(const char* index, int64_t* offsets) const {
  if (dtype_ == DType::k_int32)
    fill_typed(reinterpret_cast<const int32_t*>(index), offsets);
  else
    fill_typed(reinterpret_cast<const int64_t*>(index), offsets);
}

std::unique_ptr<NativeOp> make_rows_contiguous(const NativeFactory& factory, const NativeCall& call, const std::vector<size_t>& inputs) {
  std::vector<LayoutRef> wanted = call.inputs, outputs = call.outputs;
  for (size_t i : inputs) wanted[i] = contiguous_layout(wanted[i]->dtype, wanted[i]->shape_span());
  for (LayoutRef& l : outputs) l = contiguous_layout(l->dtype, l->shape_span());
  if (wanted == call.inputs && outputs == call.outputs) return nullptr;
  return make_converted(factory, call, wanted, outputs, false);
}

AxisView view_around(const Layout& l, int axis) {
  if (l.rank == 0) return {1, 1, 1};
  return {product(l.shape, l.shape + axis), l.shape[axis], product(l.shape + axis + 1, l.shape + l.rank)};
}

}  // namespace sampan::kernels
