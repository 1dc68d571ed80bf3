// scan: running sums, products, extremes and log-sums along an axis.
#include <cmath>
#include <limits>

#include "exec/parallel.h"
#include "kernels/ordering.h"

namespace sampan::kernels {
namespace {

enum class Kind { kSum, kProd, kMax, kMin, kLogAddExp };

// float32 and 16-bit floats run in double: a running sum is a long chain of roundings otherwise.
template <class T>
using Running = std::conditional_t<is_half<T> || std::is_same_v<T, float>, double, std::conditional_t<std::is_same_v<T, std::complex<float>>, std::complex<double>, T>>;

template <class A>
SAMPAN_INLINE A log_add_exp(A a, A b) {
  const A high = a > b || a != a ? a : b, low = a > b || a != a ? b : a;
  if (high != high || low != low) return high + low;
  if (low == -std::numeric_limits<A>::infinity() || high == std::numeric_limits<A>::infinity()) return high;
  return high + std::log1p(std::exp(low - high));
}

template <Kind kind, class A>
SAMPAN_INLINE A add_one(A a, A v) {
  if constexpr (kind == Kind::kSum) {
    return wrapped_sum(a, v);
  } else if constexpr (kind == Kind::kProd) {
    return wrapped_product(a, v);
  } else {
    return log_add_exp(a, v);
  }
}

template <class T, class A>
SAMPAN_INLINE T result_value(A a) {
  if constexpr (is_half<T>)
    return from_compute<T>(static_cast<float>(a));
  else
    return static_cast<T>(a);
}

// Lines that run side by side, so that their chains hide each other's latency: many where neighbours in memory, few where each is a stream of its own.
constexpr int64_t kNeighbours = 16, kStreams = 4;

// One line, from its first entry in the scan's direction on.
template <class T, class I>
struct Line {
  const T* x;
  T* out;
  I* indices;
};
struct Steps {
  int64_t x, out, index;
};

// kTouch: the lines are neighbours in memory, in x and in out.
template <Kind kind, bool exclusive, int64_t kLines, bool kTouch, class T>
SAMPAN_INLINE void run_lines(const Line<T, int64_t>* lines, Steps step, int64_t n, Running<T> first) {
  using A = Running<T>;
  A a[kLines];
  std::fill(a, a + kLines, first);
  for (int64_t k = 0; k < n; ++k)
#pragma GCC unroll 16
    for (int64_t j = 0; j < kLines; ++j) {
      const A next = add_one<kind>(a[j], static_cast<A>(to_compute(kTouch ? lines[0].x[k * step.x + j] : lines[j].x[k * step.x])));
      (kTouch ? lines[0].out[k * step.out + j] : lines[j].out[k * step.out]) = result_value<T>(exclusive ? a[j] : next);
      a[j] = next;
    }
}

// NaN wins over numbers, and of equal entries the later one: so does the later of two NaNs.
template <bool is_max, class T, class I>
SAMPAN_INLINE void run_extremes(const Line<T, I>& line, Steps step, int64_t n, bool reverse) {
  T best = line.x[0];
  int64_t best_at = 0;
  for (int64_t k = 0; k < n; ++k) {
    const T v = line.x[k * step.x];
    const auto a = to_compute(v), b = to_compute(best);
    if (!(is_max ? a < b : a > b) && (b == b || a != a)) {
      best = v;
      best_at = k;
    }
    line.out[k * step.out] = best;
    line.indices[k * step.index] = static_cast<I>(reverse ? n - 1 - best_at : best_at);
  }
}

class ScanOp final : public NativeOp {
 public:
  ScanOp(const Layout& x, const Layout& out, const Layout* indices, int axis, Kind kind, bool reverse, bool exclusive)
      : dtype_(out.dtype),
        lines_(axis, {&x, &out, indices ? indices : &out}),
        kind_(kind),
        reverse_(reverse),
        exclusive_(exclusive),
        is_int32_(indices && indices->dtype == DType::k_int32) {}

  void run(char* const* buffers, char*) const override {
    with_type(dtype_, [&]<class T>() {
      if (kind_ == Kind::kMax || kind_ == Kind::kMin)
        extremes<T>(buffers);
      else
        sums(reinterpret_cast<const T*>(buffers[0]), reinterpret_cast<T*>(buffers[1]));
    });
  }

 private:
  // fn(lines, steps, how many) for blocks of at most kTogether lines.
  template <class T, class I, class F>
  void each_block(int64_t together, double element_ns, const T* x, T* out, I* indices, F&& fn) const {
    const int64_t count = lines_.starts.total(), blocks = (count + together - 1) / together, last = reverse_ ? lines_.length - 1 : 0, sign = reverse_ ? -1 : 1;
    const Steps steps{sign * lines_.steps[0], sign * lines_.steps[1], sign * lines_.steps[2]};
    parallel_for(blocks, static_cast<double>(together * lines_.length) * element_ns, [&](int64_t begin, int64_t end) {
      Odometer<3> at = lines_.starts;
      at.seek(begin * together);
      for (int64_t b = begin; b < end; ++b) {
        Line<T, I> lines[kNeighbours];
        const int64_t n = std::min(together, count - b * together);
        for (int64_t j = 0; j < n; ++j, at.next())
          lines[j] = {x + at.offset[0] + last * lines_.steps[0], out + at.offset[1] + last * lines_.steps[1], indices ? indices + at.offset[2] + last * lines_.steps[2] : nullptr};
        fn(lines, steps, n);
      }
    });
  }

  template <class T>
  void sums(const T* x, T* out) const {
    if constexpr (!std::is_same_v<T, bool>) {
      if (kind_ == Kind::kSum)
        chains<Kind::kSum>(x, out);
      else if (kind_ == Kind::kProd)
        chains<Kind::kProd>(x, out);
      else if constexpr (std::is_floating_point_v<Running<T>>)
        chains<Kind::kLogAddExp>(x, out);
    }
  }

  template <Kind kind, class T>
  void chains(const T* x, T* out) const {
    using A = Running<T>;
    A first{};
    if constexpr (kind == Kind::kProd) first = A{1};
    if constexpr (kind == Kind::kLogAddExp) first = -std::numeric_limits<A>::infinity();
    const bool are_streams = std::abs(lines_.steps[0]) == 1;
    each_block(are_streams ? kStreams : kNeighbours, kind == Kind::kLogAddExp ? 20.0 : 1.0, x, out, static_cast<int64_t*>(nullptr), [&](const Line<T, int64_t>* lines, Steps steps, int64_t count) {
      if (exclusive_)
        run_block<kind, true>(lines, steps, count, first);
      else
        run_block<kind, false>(lines, steps, count, first);
    });
  }

  template <Kind kind, bool exclusive, class T>
  void run_block(const Line<T, int64_t>* lines, Steps steps, int64_t count, Running<T> first) const {
    const int64_t n = lines_.length;
    bool touch = count == kNeighbours;
    for (int64_t j = 1; j < count && touch; ++j) touch = lines[j].x == lines[0].x + j && lines[j].out == lines[0].out + j;
    if (touch) return run_lines<kind, exclusive, kNeighbours, true>(lines, steps, n, first);
    for (; count >= kStreams; count -= kStreams, lines += kStreams) run_lines<kind, exclusive, kStreams, false>(lines, steps, n, first);
    for (; count > 0; --count, ++lines) run_lines<kind, exclusive, 1, false>(lines, steps, n, first);
  }

  template <class T>
  void extremes(char* const* buffers) const {
    if constexpr (!is_complex<T>) {
      if (is_int32_)
        extremes_into(reinterpret_cast<const T*>(buffers[0]), reinterpret_cast<T*>(buffers[1]), reinterpret_cast<int32_t*>(buffers[2]));
      else
        extremes_into(reinterpret_cast<const T*>(buffers[0]), reinterpret_cast<T*>(buffers[1]), reinterpret_cast<int64_t*>(buffers[2]));
    }
  }

  template <class T, class I>
  void extremes_into(const T* x, T* out, I* indices) const {
    each_block(kNeighbours, 2.0, x, out, indices, [&](const Line<T, I>* lines, Steps steps, int64_t count) {
      for (int64_t j = 0; j < count; ++j) {
        if (kind_ == Kind::kMax)
          run_extremes<true>(lines[j], steps, lines_.length, reverse_);
        else
          run_extremes<false>(lines[j], steps, lines_.length, reverse_);
      }
    });
  }

  DType dtype_;
  Lines<3> lines_;
  Kind kind_;
  bool reverse_, exclusive_, is_int32_;
};

std::unique_ptr<NativeOp> make_scan(const NativeCall& c) {
  CallReader call("scan", c);
  const std::string name = call.text("kind", "sum");
  const char* names[] = {"sum", "prod", "max", "min", "logaddexp"};
  const auto* found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) call.fail(ErrorKind::kValue, "kind '" + name + "' is unknown; it is sum, prod, max, min or logaddexp");
  const Kind kind = static_cast<Kind>(found - names);
  const bool is_extreme = kind == Kind::kMax || kind == Kind::kMin;
  call.operands(1, is_extreme ? 2 : 1);
  const Layout &x = call.input(0), &out = call.output(0);
  const int axis = call.axis(-1, x.rank);
  const bool reverse = call.flag("reverse", false), exclusive = call.flag("exclusive", false);
  call.no_more_attributes();
  call.same_shape(out, shape_of(x), "the output");
  const char from = dtype_kind(x.dtype), to = dtype_kind(out.dtype);
  if (is_extreme) {
    call.same_dtype(x, out, "x and the output");
    call.same_shape(call.output(1), shape_of(x), "indices");
    call.index_dtype(call.output(1), "indices");
    if (from == 'c') call.fail(ErrorKind::kDType, "complex numbers have no order");
    if (exclusive) call.fail(ErrorKind::kValue, "max and min are not exclusive");
  } else {
    if (to == 'b' || (from == 'c' && to != 'c')) call.fail(ErrorKind::kDType, std::string("no running ") + name + " from " + dtype_name(x.dtype) + " to " + dtype_name(out.dtype));
    if (kind == Kind::kLogAddExp && to != 'f') call.fail(ErrorKind::kDType, "logaddexp needs a floating dtype");
  }
  if (x.numel == 0) return make_nothing();
  if (x.dtype != out.dtype) return make_converted(make_scan, c, {contiguous_layout(out.dtype, x.shape_span())}, c.outputs, false);
  return std::make_unique<ScanOp>(x, out, is_extreme ? &call.output(1) : nullptr, axis, kind, reverse, exclusive);
}

const RegisterNative scan("scan", make_scan);

}  // namespace
}  // namespace sampan::kernels
