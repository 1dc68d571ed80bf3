#include "exec/copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "exec/convert.h"
#include "exec/parallel.h"
#include "exec/transpose.h"

namespace sampan {

namespace {

constexpr double kByteNs = 0.1;          // one byte read or written in a straight copy
constexpr double kElementNs = 1.0;       // one element cast or gathered
constexpr int64_t kSegment = 4096;       // elements of a row that threads share out
constexpr int64_t kStreamedBytes = 16 << 20;  // transposes of more write past the caches, which they would only sweep
constexpr int64_t kTransposePanel = 64;  // rows of dst that one unit of a transpose writes

struct Axis {
  int64_t size, dst, src;  // strides in bytes
};

// Axes with more than one element, in dst's memory order, adjacent ones that continue each other merged.
struct Walk {
  int rank = 0;
  Axis axes[kMaxRank];

  Walk(const Layout& d, const Layout& s) {
    const auto d_item = static_cast<int64_t>(dtype_size(d.dtype)), s_item = static_cast<int64_t>(dtype_size(s.dtype));
    const auto is_outside = [](const Axis& a, const Axis& b) {
      return std::abs(a.dst) != std::abs(b.dst) ? std::abs(a.dst) > std::abs(b.dst) : std::abs(a.src) > std::abs(b.src);
    };
    Axis all[kMaxRank];
    int n = 0;
    for (int i = 0; i < d.rank; ++i) {
      if (d.shape[i] == 1) continue;
      const Axis a{d.shape[i], d.strides[i] * d_item, s.strides[i] * s_item};
      int k = n++;
      for (; k > 0 && is_outside(a, all[k - 1]); --k) all[k] = all[k - 1];
      all[k] = a;
    }
    for (int i = 0; i < n; ++i) {
      Axis* last = rank ? &axes[rank - 1] : nullptr;
      if (last && last->dst == all[i].dst * all[i].size && last->src == all[i].src * all[i].size) {
        *last = {last->size * all[i].size, all[i].dst, all[i].src};
      } else {
        axes[rank++] = all[i];
      }
    }
  }

  Axis remove(int i) {
    const Axis a = axes[i];
    std::copy(axes + i + 1, axes + rank, axes + i);
    --rank;
    return a;
  }

  int64_t count() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= axes[i].size;
    return n;
  }
};

// Positions of a Walk's axes, from any linear index on.
class Odometer {
 public:
  Odometer(const Walk& walk, int64_t index) : walk_(walk) {
    for (int i = walk.rank - 1; i >= 0; --i) {
      position_[i] = index % walk.axes[i].size;
      index /= walk.axes[i].size;
      dst += position_[i] * walk.axes[i].dst;
      src += position_[i] * walk.axes[i].src;
    }
  }
  void step() {
    for (int i = walk_.rank - 1; i >= 0; --i) {
      const Axis& a = walk_.axes[i];
      dst += a.dst;
      src += a.src;
      if (++position_[i] < a.size) return;
      dst -= a.size * a.dst;
      src -= a.size * a.src;
      position_[i] = 0;
    }
  }
  int64_t dst = 0, src = 0;

 private:
  const Walk& walk_;
  int64_t position_[kMaxRank];
};

void copy_bytes(char* dst, const char* src, int64_t bytes) {
  parallel_for((bytes + 65535) / 65536, 65536 * 2 * kByteNs, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * 65536;
    std::memcpy(dst + first, src + first, static_cast<size_t>(std::min(end * 65536, bytes) - first));
  });
}

// Runs body(dst, src, count) over rows along inner, long rows in segments.
template <class Body>
void for_rows(const Walk& outer, const Axis& inner, char* dst, const char* src, double element_ns, const Body& body) {
  const int64_t segments = (inner.size + kSegment - 1) / kSegment;
  const int64_t length = (inner.size + segments - 1) / segments;
  parallel_for(outer.count() * segments, static_cast<double>(length) * element_ns, [&](int64_t begin, int64_t end) {
    Odometer o(outer, begin / segments);
    int64_t segment = begin % segments;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = segment * length;
      const int64_t count = std::min(length, inner.size - first);
      if (count > 0) body(dst + o.dst + first * inner.dst, src + o.src + first * inner.src, count);
      if (++segment == segments) {
        segment = 0;
        o.step();
      }
    }
  });
}

template <class T>
void fill_row(char* dst, const char* src, int64_t count) {
  T value;
  std::memcpy(&value, src, sizeof(T));
  for (int64_t i = 0; i < count; ++i) std::memcpy(dst + i * sizeof(T), &value, sizeof(T));
}

struct Wide {
  uint64_t words[2];
};

void fill_row(char* dst, const char* src, int64_t count, size_t item) {
  switch (item) {
    case 1: std::memset(dst, *src, static_cast<size_t>(count)); return;
    case 2: return fill_row<uint16_t>(dst, src, count);
    case 4: return fill_row<uint32_t>(dst, src, count);
    case 8: return fill_row<uint64_t>(dst, src, count);
    default: return fill_row<Wide>(dst, src, count);
  }
}

// The axis along which src is contiguous, when dst is contiguous along another and both are long enough for tiles; -1 otherwise.
int find_transposed_axis(const Walk& walk, int64_t item) {
  const Axis& inner = walk.axes[walk.rank - 1];
  if (item > 16 || inner.dst != item || inner.src == item || inner.src == 0 || inner.size < 4) return -1;
  for (int i = walk.rank - 2; i >= 0; --i) {
    if (walk.axes[i].src == item && walk.axes[i].size >= 4) return i;
  }
  return -1;
}

void transpose_elements(Walk outer, int row_axis, char* dst, const char* src, int64_t item) {
  const Axis columns = outer.remove(outer.rank - 1);
  const Axis rows = outer.remove(row_axis);
  const bool streams = outer.count() * rows.size * columns.size * item >= kStreamedBytes;
  const int64_t panels = (rows.size + kTransposePanel - 1) / kTransposePanel;
  const double panel_ns = static_cast<double>(std::min(rows.size, kTransposePanel) * columns.size) * kElementNs * 0.5;
  parallel_for(outer.count() * panels, panel_ns, [&](int64_t begin, int64_t end) {
    Odometer o(outer, begin / panels);
    int64_t panel = begin % panels;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = panel * kTransposePanel;
      transpose_2d(dst + o.dst + first * rows.dst, rows.dst, src + o.src + first * item, columns.src, std::min(kTransposePanel, rows.size - first),
                   columns.size, static_cast<size_t>(item), streams);
      if (++panel == panels) {
        panel = 0;
        o.step();
      }
    }
  });
}

bool overlaps(const Tensor& a, const Tensor& b) {
  const auto range = [](const Tensor& t) {
    int64_t lowest, highest;
    t.layout->extent(&lowest, &highest);
    const auto item = static_cast<int64_t>(dtype_size(t.dtype()));
    return std::pair{t.data() + lowest * item, t.data() + (highest + 1) * item};
  };
  const auto [a0, a1] = range(a);
  const auto [b0, b1] = range(b);
  return a0 < b1 && b0 < a1;
}

}  // namespace

void copy_elements(char* dst, const Layout& dst_layout, const char* src, const Layout& src_layout) {
  if (dst_layout.numel == 0) return;
  const DType d = dst_layout.dtype, s = src_layout.dtype;
  const auto item = static_cast<int64_t>(dtype_size(d));
  if (d == s && &dst_layout == &src_layout && dst_layout.is_contiguous) return copy_bytes(dst, src, dst_layout.numel * item);
  Walk walk(dst_layout, src_layout);
  if (walk.rank == 0) return convert_row(d, s)(dst, item, src, static_cast<int64_t>(dtype_size(s)), 1);
  if (d == s) {
    const Axis inner = walk.axes[walk.rank - 1];
    if (inner.dst == item && inner.src == item) {
      if (walk.rank == 1) return copy_bytes(dst, src, inner.size * item);
      walk.remove(walk.rank - 1);
      return for_rows(walk, inner, dst, src, 2 * static_cast<double>(item) * kByteNs,
                      [&](char* to, const char* from, int64_t count) { std::memcpy(to, from, static_cast<size_t>(count * item)); });
    }
    if (inner.dst == item && inner.src == 0) {
      walk.remove(walk.rank - 1);
      return for_rows(walk, inner, dst, src, static_cast<double>(item) * kByteNs,
                      [&](char* to, const char* from, int64_t count) { fill_row(to, from, count, static_cast<size_t>(item)); });
    }
    if (const int row_axis = find_transposed_axis(walk, item); row_axis >= 0) return transpose_elements(walk, row_axis, dst, src, item);
  }
  const ConvertRow convert = convert_row(d, s);
  const Axis inner = walk.remove(walk.rank - 1);
  for_rows(walk, inner, dst, src, kElementNs,
           [&](char* to, const char* from, int64_t count) { convert(to, inner.dst, from, inner.src, count); });
}

void fill_elements(char* dst, const Layout& layout, const void* value, DType value_dtype) {
  alignas(16) char element[16];
  convert_row(layout.dtype, value_dtype)(element, 0, static_cast<const char*>(value), 0, 1);
  const int64_t zeros[kMaxRank] = {};
  const Ref<const Layout> repeated = intern_layout(layout.dtype, layout.shape_span(), {zeros, static_cast<size_t>(layout.rank)});
  copy_elements(dst, layout, element, *repeated);
}

Ref<Tensor> copy_tensor(const Tensor& src, DType dtype) {
  Ref<Tensor> dst = empty_tensor(contiguous_layout(dtype, src.layout->shape_span()));
  copy_elements(dst->data(), *dst->layout, src.data(), *src.layout);
  return dst;
}

void copy_into(const Tensor& dst, const Tensor& src) {
  const Layout &d = *dst.layout, &s = *src.layout;
  for (int i = 0; i < d.rank; ++i) {
    if (d.strides[i] == 0 && d.shape[i] > 1) {
      throw Error(ErrorKind::kValue, "cannot write into " + layout_text(d) + ": its elements share memory; write into a copy");
    }
  }
  Ref<const Layout> source_layout = src.layout;
  if (d.rank != s.rank || !std::equal(d.shape, d.shape + d.rank, s.shape)) {
    int64_t strides[kMaxRank] = {};
    int extra = 0;  // leading axes of length 1 that dst does not have
    while (s.rank - extra > d.rank && s.shape[extra] == 1) ++extra;
    const int missing = d.rank - s.rank;
    for (int i = extra; i < s.rank; ++i) {
      const bool fits = missing + i >= 0 && (s.shape[i] == 1 || s.shape[i] == d.shape[missing + i]);
      if (!fits) {
        throw Error(ErrorKind::kShape, "cannot copy " + layout_text(s) + " into " + layout_text(d) + ": the shape must be equal or broadcast to it");
      }
      strides[missing + i] = s.shape[i] == 1 ? 0 : s.strides[i];
    }
    source_layout = intern_layout(s.dtype, d.shape_span(), {strides, static_cast<size_t>(d.rank)});
  }
  if (d.numel == 0) return;
  if (!overlaps(dst, src)) return copy_elements(dst.data(), d, src.data(), *source_layout);
  if (dst.data() == src.data() && dst.layout == src.layout) return;
  copy_into(dst, *copy_tensor(src, s.dtype));
}

}  // namespace sampan
