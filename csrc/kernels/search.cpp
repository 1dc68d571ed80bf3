// searchsorted and bincount.
#include <algorithm>
#include <atomic>

#include "exec/parallel.h"
#include "kernels/keys.h"

namespace sampan::kernels {
namespace {

LayoutRef contiguous(const LayoutRef& l) { return contiguous_layout(l->dtype, l->shape_span()); }

class SearchOp final : public NativeOp {
 public:
  SearchOp(DType dtype, bool is_int32, bool right, int64_t length, int64_t rows, int64_t queries)
      : dtype_(dtype), is_int32_(is_int32), right_(right), length_(length), rows_(rows), queries_(queries) {}

  void run(char* const* buffers, char*) const override {
    with_type(dtype_, [&]<class T>() {
      if constexpr (!is_complex<T>) {
        if (is_int32_)
          search(reinterpret_cast<const T*>(buffers[0]), reinterpret_cast<const T*>(buffers[1]), reinterpret_cast<int32_t*>(buffers[2]));
        else
          search(reinterpret_cast<const T*>(buffers[0]), reinterpret_cast<const T*>(buffers[1]), reinterpret_cast<int64_t*>(buffers[2]));
      }
    });
  }

 private:
  template <class T, class I>
  void search(const T* sorted, const T* values, I* out) const {
    parallel_for(rows_ * queries_, 5.0 * static_cast<double>(std::bit_width(static_cast<uint64_t>(length_))), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = sorted + i / queries_ * length_;
        const Key<T> key = to_key(values[i]);
        // Without branches: the compiler turns the choice into a conditional move.
        int64_t low = 0, n = length_;
        while (n > 0) {
          const int64_t half = (n + 1) / 2;
          const Key<T> at = to_key(row[low + half - 1]);
          low += (right_ ? at <= key : at < key) ? half : 0;
          n -= half;
        }
        out[i] = static_cast<I>(low);
      }
    });
  }

  DType dtype_;
  bool is_int32_, right_;
  int64_t length_, rows_, queries_;
};

std::unique_ptr<NativeOp> make_searchsorted(const NativeCall& c) {
  CallReader call("searchsorted", c);
  call.operands(2, 1);
  const bool right = call.flag("right", false);
  call.no_more_attributes();
  const Layout &sorted = call.input(0), &values = call.input(1), &out = call.output(0);
  call.same_dtype(sorted, values, "sorted and values");
  call.same_shape(out, shape_of(values), "the output");
  call.index_dtype(out, "the output");
  if (dtype_kind(sorted.dtype) == 'c') call.fail(ErrorKind::kDType, "complex numbers have no order");
  if (sorted.rank < 1) call.fail(ErrorKind::kShape, "sorted needs an axis");
  const int64_t length = sorted.shape[sorted.rank - 1];
  int64_t rows = 1;
  if (sorted.rank > 1) {
    if (values.rank != sorted.rank || !std::equal(sorted.shape, sorted.shape + sorted.rank - 1, values.shape))
      call.fail(ErrorKind::kShape, "sorted and values must agree in all axes but the last, or sorted has one axis");
    rows = product(sorted.shape, sorted.shape + sorted.rank - 1);
  }
  if (values.numel == 0) return make_nothing();
  const std::vector<LayoutRef> inputs = {contiguous(c.inputs[0]), contiguous(c.inputs[1])}, outputs = {contiguous(c.outputs[0])};
  if (inputs != c.inputs || outputs != c.outputs) return make_converted(make_searchsorted, c, inputs, outputs, false);
  return std::make_unique<SearchOp>(sorted.dtype, out.dtype == DType::k_int32, right, length, rows, values.numel / rows);
}

class BincountOp final : public NativeOp {
 public:
  BincountOp(const NativeCall& c, bool has_weights)
      : x_(c.inputs[0]), weights_(has_weights ? c.inputs[1] : nullptr), out_(c.outputs[0]) {
    walk_.rank = 0;
    for (int d = 0; d < x_->rank; ++d) walk_.add_axis(x_->shape[d], {x_->strides[d], weights_ ? weights_->strides[d] : 0});
  }

  void run(char* const* buffers, char*) const override {
    with_type(x_->dtype, [&]<class I>() {
      if constexpr (std::is_integral_v<I> && !std::is_same_v<I, bool>) {
        const I* x = reinterpret_cast<const I*>(buffers[0]);
        check(x);
        if (!weights_)
          count(x, static_cast<const int64_t*>(nullptr), reinterpret_cast<int64_t*>(buffers[1]));
        else if (weights_->dtype == DType::k_float32)
          count(x, reinterpret_cast<const float*>(buffers[1]), reinterpret_cast<float*>(buffers[2]));
        else if (weights_->dtype == DType::k_float64)
          count(x, reinterpret_cast<const double*>(buffers[1]), reinterpret_cast<double*>(buffers[2]));
        else
          count(x, reinterpret_cast<const int64_t*>(buffers[1]), reinterpret_cast<int64_t*>(buffers[2]));
      }
    });
  }

 private:
  template <class F>
  void each(F&& fn) const {
    Odometer<2> at = walk_;
    const int64_t n = at.total();
    at.seek(0);
    for (int64_t i = 0; i < n; ++i, at.next()) fn(at.offset[0], at.offset[1], i);
  }

  // Pieces of x that are counted side by side, by its size alone.
  int64_t pieces() const { return std::clamp<int64_t>(x_->numel / std::max<int64_t>(1 << 16, 8 * out_->shape[0]), 1, 8); }

  template <class I>
  void check(const I* x) const {
    const int64_t bins = out_->shape[0];
    if (x_->is_contiguous) {
      std::atomic<bool> is_bad{false};
      parallel_for(x_->numel, 0.5, [&](int64_t begin, int64_t end) {
        I low = x[begin], high = low;
        for (int64_t i = begin; i < end; ++i) {
          low = std::min(low, x[i]);
          high = std::max(high, x[i]);
        }
        if (low < 0 || static_cast<uint64_t>(high) >= static_cast<uint64_t>(bins)) is_bad = true;
      });
      if (!is_bad) return;
    }
    each([&](int64_t at, int64_t, int64_t position) {
      const int64_t v = static_cast<int64_t>(x[at]);
      if (v >= 0 && v < bins) return;
      Dims where(static_cast<size_t>(x_->rank));
      for (size_t d = where.size(); d-- > 0;) {
        where[d] = position % x_->shape[d];
        position /= x_->shape[d];
      }
      throw Error(ErrorKind::kIndex, "bincount(x): x" + shape_text(where) + " is " + std::to_string(v) + "; 0 to " + std::to_string(bins - 1) + " are valid");
    });
  }

  template <class W>
  static void add(W& to, W weight) {
    to = wrapped_sum(to, weight);
  }

  template <class I, class W>
  void count(const I* x, const W* weights, W* out) const {
    const int64_t bins = out_->shape[0], step = out_->strides[0], n = x_->numel, parts = pieces();
    const bool is_plain = x_->is_contiguous && (!weights || weights_->is_contiguous);
    const Block tables(static_cast<size_t>(parts * bins) * sizeof(W));
    W* const counts = tables.as<W>();
    parallel_for(parts, static_cast<double>(n) * 2.0 / static_cast<double>(parts), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        W* to = counts + p * bins;
        std::fill_n(to, bins, W{});
        const int64_t first = n * p / parts, last = n * (p + 1) / parts;
        if (is_plain && weights) {
          for (int64_t i = first; i < last; ++i) add(to[within(static_cast<int64_t>(x[i]), bins)], weights[i]);
        } else if (is_plain) {
          for (int64_t i = first; i < last; ++i) ++to[within(static_cast<int64_t>(x[i]), bins)];
        } else {
          Odometer<2> at = walk_;
          at.seek(first);
          for (int64_t i = first; i < last; ++i, at.next()) add(to[within(static_cast<int64_t>(x[at.offset[0]]), bins)], weights ? weights[at.offset[1]] : W{1});
        }
      }
    });
    for (int64_t b = 0; b < bins; ++b) {
      W sum = counts[b];
      for (int64_t p = 1; p < parts; ++p) sum = wrapped_sum(sum, counts[p * bins + b]);
      out[b * step] = sum;
    }
  }

  LayoutRef x_, weights_, out_;
  Odometer<2> walk_;
};

std::unique_ptr<NativeOp> make_bincount(const NativeCall& c) {
  CallReader call("bincount", c);
  const bool has_weights = call.flag("has_weights", false);
  call.no_more_attributes();
  call.operands(has_weights ? 2 : 1, 1);
  const Layout &x = call.input(0), &out = call.output(0);
  if (dtype_kind(x.dtype) != 'i' && dtype_kind(x.dtype) != 'u') call.fail(ErrorKind::kDType, "x must be of integers");
  if (out.rank != 1) call.fail(ErrorKind::kShape, "the output is a vector of bins");
  if (has_weights) {
    call.same_shape(call.input(1), shape_of(x), "weights");
    call.same_dtype(call.input(1), out, "weights and the output");
  }
  if (out.dtype != DType::k_int64 && !(has_weights && (out.dtype == DType::k_float32 || out.dtype == DType::k_float64)))
    call.fail(ErrorKind::kDType, "the output must be int64, or float32 or float64 with weights");
  return std::make_unique<BincountOp>(c, has_weights);
}

const RegisterNative searchsorted("searchsorted", make_searchsorted);
const RegisterNative bincount("bincount", make_bincount);

}  // namespace
}  // namespace sampan::kernels
