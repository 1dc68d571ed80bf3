// gather, gather_nd, gather_elements.
#include <algorithm>

#include "exec/parallel.h"
#include "kernels/indices.h"

namespace sampan::kernels {
namespace {

constexpr int64_t kAhead = 16;  // rows that are asked for before they are copied: they lie anywhere

// Elements are only moved, so a type is its size.
struct Wide {
  uint64_t words[2];
};
template <class F>
void with_size(size_t bytes, F&& fn) {
  switch (bytes) {
    case 1: return fn.template operator()<uint8_t>();
    case 2: return fn.template operator()<uint16_t>();
    case 4: return fn.template operator()<uint32_t>();
    case 8: return fn.template operator()<uint64_t>();
    default: return fn.template operator()<Wide>();
  }
}

// Rows of `inner` elements, which lie together in x: out[outer, i, :] = x[outer, offsets[i] :].
class GatherRows final : public NativeOp {
 public:
  GatherRows(IndexTable table, Odometer<1> outer, int64_t inner, size_t item) : table_(std::move(table)), outer_(outer), inner_(inner), item_(item) {}
  size_t scratch_bytes() const override { return table_.bytes(); }

  void run(char* const* buffers, char* scratch) const override {
    int64_t* offsets = reinterpret_cast<int64_t*>(scratch);
    table_.fill(buffers[1], offsets);
    const int64_t count = table_.count();
    if (inner_ == 1) return with_size(item_, [&]<class T>() { elements<T>(buffers, offsets); });
    const size_t bytes = static_cast<size_t>(inner_) * item_;
    const int64_t item = static_cast<int64_t>(item_);
    parallel_for(outer_.total() * count, 5.0 + static_cast<double>(bytes) * 0.15, [&](int64_t begin, int64_t end) {
      Odometer<1> at = outer_;
      at.seek(begin / count);
      int64_t i = begin % count;
      for (int64_t p = begin; p < end; ++p) {
        if (i + kAhead < count) __builtin_prefetch(buffers[0] + (at.offset[0] + offsets[i + kAhead]) * item);
        std::memcpy(buffers[2] + p * static_cast<int64_t>(bytes), buffers[0] + (at.offset[0] + offsets[i]) * item, bytes);
        if (++i == count) {
          i = 0;
          at.next();
        }
      }
    });
  }

 private:
  template <class T>
  void elements(char* const* buffers, const int64_t* offsets) const {
    const T* x = reinterpret_cast<const T*>(buffers[0]);
    T* out = reinterpret_cast<T*>(buffers[2]);
    const int64_t count = table_.count();
    parallel_for(outer_.total() * count, 1.5, [&](int64_t begin, int64_t end) {
      Odometer<1> at = outer_;
      at.seek(begin / count);
      for (int64_t p = begin; p < end; at.next()) {
        const int64_t first = p % count, n = std::min(count - first, end - p);
        const T* from = x + at.offset[0];
        for (int64_t i = 0; i < n; ++i) out[p + i] = from[offsets[first + i]];
        p += n;
      }
    });
  }

  IndexTable table_;
  Odometer<1> outer_;
  int64_t inner_;
  size_t item_;
};

// Whether x's axes from `first` on lie together in row-major order.
bool has_contiguous_rows(const Layout& x, int first) {
  int64_t step = 1;
  for (int d = x.rank; d-- > first;) {
    if (x.shape[d] != 1 && x.strides[d] != step) return false;
    step *= x.shape[d];
  }
  return true;
}

Odometer<1> outer_axes(const Layout& x, int axis) {
  Odometer<1> outer;
  for (int d = 0; d < axis; ++d) outer.add_axis(x.shape[d], {x.strides[d]});
  return outer;
}

std::unique_ptr<NativeOp> make_gather(const NativeCall& c) {
  CallReader call("gather", c);
  call.operands(2, 1);
  const Layout &x = call.input(0), &index = call.input(1), &out = call.output(0);
  const int axis = call.axis(0, x.rank);
  const bool allow_negative = call.flag("allow_negative", true);
  call.no_more_attributes();
  call.index_dtype(index, "index");
  call.same_dtype(x, out, "x and the output");
  Dims expected(x.shape, x.shape + (x.rank ? axis : 0));
  expected.insert(expected.end(), index.shape, index.shape + index.rank);
  if (x.rank) expected.insert(expected.end(), x.shape + axis + 1, x.shape + x.rank);
  call.same_shape(out, expected, "the output");
  std::vector<size_t> contiguous = {1};
  if (!has_contiguous_rows(x, axis + 1)) contiguous.push_back(0);
  if (auto op = make_rows_contiguous(make_gather, c, contiguous)) return op;
  const AxisView view = view_around(x, axis);
  IndexTable table(index, {view.length}, {x.rank ? x.strides[axis] : 0}, axis, allow_negative);
  return std::make_unique<GatherRows>(std::move(table), outer_axes(x, x.rank ? axis : 0), view.inner, dtype_size(x.dtype));
}

std::unique_ptr<NativeOp> make_gather_nd(const NativeCall& c) {
  CallReader call("gather_nd", c);
  call.operands(2, 1);
  const Layout &x = call.input(0), &index = call.input(1), &out = call.output(0);
  const bool allow_negative = call.flag("allow_negative", true);
  call.no_more_attributes();
  call.index_dtype(index, "index");
  call.same_dtype(x, out, "x and the output");
  if (index.rank < 1 || index.shape[index.rank - 1] > x.rank) call.fail(ErrorKind::kShape, "the last axis of index addresses at most x's axes");
  const int depth = static_cast<int>(index.shape[index.rank - 1]);
  Dims expected(index.shape, index.shape + index.rank - 1);
  expected.insert(expected.end(), x.shape + depth, x.shape + x.rank);
  call.same_shape(out, expected, "the output");
  std::vector<size_t> contiguous = {1};
  if (!has_contiguous_rows(x, depth)) contiguous.push_back(0);
  if (auto op = make_rows_contiguous(make_gather_nd, c, contiguous)) return op;
  IndexTable table(index, Dims(x.shape, x.shape + depth), Dims(x.strides, x.strides + depth), 0, allow_negative);
  return std::make_unique<GatherRows>(std::move(table), Odometer<1>{}, product(x.shape + depth, x.shape + x.rank), dtype_size(x.dtype));
}

// out[o, i, j] = x[o, index[o, i, j], j].
class GatherElements final : public NativeOp {
 public:
  GatherElements(IndexTable table, const Layout& x, const Layout& index, int axis) : table_(std::move(table)), item_(dtype_size(x.dtype)) {
    for (int d = 0; d < index.rank; ++d) {
      // Axes are kept apart around the gathered one, along which x is addressed by the index alone.
      walk_.shape[walk_.rank] = index.shape[d];
      walk_.strides[0][walk_.rank++] = d == axis ? 0 : x.strides[d];
    }
  }

  void run(char* const* buffers, char*) const override {
    table_.check(buffers[1]);
    table_.with_index(buffers[1], [&](const auto* index) {
      with_size(item_, [&]<class T>() { gather(reinterpret_cast<const T*>(buffers[0]), index, reinterpret_cast<T*>(buffers[2])); });
    });
  }

 private:
  template <class T, class I>
  void gather(const T* x, const I* index, T* out) const {
    Odometer<1> rows = walk_;
    int64_t n = 1, step = 0;
    if (rows.rank) {
      n = rows.shape[rows.rank - 1];
      step = rows.strides[0][--rows.rank];
    }
    parallel_for(rows.total(), 2.0 + static_cast<double>(n) * 1.5, [&](int64_t begin, int64_t end) {
      Odometer<1> at = rows;
      at.seek(begin);
      const IndexTable::Offset offset = table_.offset();
      for (int64_t r = begin; r < end; ++r, at.next()) {
        const T* from = x + at.offset[0];
        for (int64_t j = 0; j < n; ++j) out[r * n + j] = from[offset(index[r * n + j]) + j * step];
      }
    });
  }

  IndexTable table_;
  Odometer<1> walk_;
  size_t item_;
};

std::unique_ptr<NativeOp> make_gather_elements(const NativeCall& c) {
  CallReader call("gather_elements", c);
  call.operands(2, 1);
  const Layout &x = call.input(0), &index = call.input(1), &out = call.output(0);
  const int axis = call.axis(0, x.rank);
  const bool allow_negative = call.flag("allow_negative", true);
  call.no_more_attributes();
  call.index_dtype(index, "index");
  call.same_dtype(x, out, "x and the output");
  call.same_shape(out, shape_of(index), "the output");
  if (index.rank != x.rank) call.fail(ErrorKind::kShape, "index must have x's rank");
  for (int d = 0; d < x.rank; ++d)
    if (d != axis && index.shape[d] > x.shape[d]) call.fail(ErrorKind::kShape, "index is longer than x along axis " + std::to_string(d));
  if (auto op = make_rows_contiguous(make_gather_elements, c, {1})) return op;
  IndexTable table(index, {x.rank ? x.shape[axis] : 1}, {x.rank ? x.strides[axis] : 0}, axis, allow_negative);
  return std::make_unique<GatherElements>(std::move(table), x, index, axis);
}

const RegisterNative gather("gather", make_gather);
const RegisterNative gather_nd("gather_nd", make_gather_nd);
const RegisterNative gather_elements("gather_elements", make_gather_elements);

}  // namespace
}  // namespace sampan::kernels
