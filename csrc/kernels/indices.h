// Indices as element offsets: checked once, before anything is written.
#pragma once
#include "kernels/common.h"

namespace sampan::kernels {

// Reads index [count, width]: each row addresses one entry of the axes of lengths `limits`, offset = sum of index * strides.
class IndexTable {
 public:
  IndexTable() = default;
  // first_axis: the axis of x that limits[0] belongs to, for messages.
  IndexTable(const Layout& index, Dims limits, Dims strides, int first_axis, bool allow_negative);
  int64_t count() const { return count_; }
  size_t bytes() const { return align64(static_cast<size_t>(count_) * sizeof(int64_t)); }
  // Raises Error(kIndex) for the first index outside its axis. index is contiguous.
  void fill(const char* index, int64_t* offsets) const;
  // The check alone, for those who read each index once and turn it into an offset themselves. The table addresses one axis.
  void check(const char* index) const { fill(index, nullptr); }
  struct Offset {
    int64_t limit, stride;
    SAMPAN_INLINE int64_t operator()(int64_t v) const { return within(v < 0 ? v + limit : v, limit) * stride; }
  };
  Offset offset() const { return {limits_[0], strides_[0]}; }
  // fn(index as its own type)
  template <class F>
  void with_index(const char* index, F&& fn) const {
    if (dtype_ == DType::k_int32)
      fn(reinterpret_cast<const int32_t*>(index));
    else
      fn(reinterpret_cast<const int64_t*>(index));
  }

 private:
  template <class I>
  void fill_typed(const I* index, int64_t* offsets) const;
  // Whether one of the rows [begin, end) lies outside of its axis.
  template <class I>
  bool fill_part(const I* index, int64_t begin, int64_t end, int64_t* offsets) const;
  // The first bad one of the numbers [begin, end), -1 without.
  template <class I>
  int64_t find_bad(const I* index, int64_t begin, int64_t end) const;
  [[noreturn]] void refuse(int64_t position, int64_t value) const;

  Dims index_shape_, limits_, strides_;
  DType dtype_ = DType::k_int64;
  int64_t count_ = 0;
  int first_axis_ = 0;
  bool allow_negative_ = true;
};

// What the natives of this family need contiguous is made so. Null when everything already is.
std::unique_ptr<NativeOp> make_rows_contiguous(const NativeFactory& factory, const NativeCall& call, const std::vector<size_t>& inputs);

// x viewed as [outer, length, inner] around an axis.
struct AxisView {
  int64_t outer, length, inner;
};
AxisView view_around(const Layout& l, int axis);

}  // namespace sampan::kernels
