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
SAMPAN_INLINE A step(A a, A v) {
  // Signed integers wrap: the sum and the product are taken without a sign.
  if constexpr (std::is_integral_v<A> && !std::is_same_v<A, bool> && kind != Kind::kLogAddExp) {
    using U = std::conditional_t<(sizeof(A) < 4), uint32_t, std::make_unsigned_t<A>>;
    return static_cast<A>(kind == Kind::kSum ? static_cast<U>(a) + static_cast<U>(v) : static_cast<U>(a) * static_cast<U>(v));
  } else if constexpr (kind == Kind::kSum) {
    return a + v;
  } else if constexpr (kind == Kind::kProd) {
    return a * v;
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

// Lines that run side by side: enough to hide the latency of one chain, few enough for registers and L1.
constexpr int64_t kTogether = 16;

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
  // fn(lines' offsets in x, in out, in indices, how many) for blocks of lines.
  template <class F>
  void each_block(double element_ns, F&& fn) const {
    const int64_t lines = lines_.starts.total(), blocks = (lines + kTogether - 1) / kTogether;
    parallel_for(blocks, static_cast<double>(kTogether * lines_.length) * element_ns, [&](int64_t begin, int64_t end) {
      Odometer<3> at = lines_.starts;
      at.seek(begin * kTogether);
      for (int64_t b = begin; b < end; ++b) {
        int64_t x[kTogether], out[kTogether], indices[kTogether];
        const int64_t n = std::min(kTogether, lines - b * kTogether);
        for (int64_t j = 0; j < n; ++j, at.next()) {
          x[j] = at.offset[0];
          out[j] = at.offset[1];
          indices[j] = at.offset[2];
        }
        fn(x, out, indices, n);
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
    const int64_t n = lines_.length, x_step = lines_.steps[0], out_step = lines_.steps[1];
    each_block(kind == Kind::kLogAddExp ? 20.0 : 1.0, [&](const int64_t* from, const int64_t* to, const int64_t*, int64_t count) {
      A a[kTogether];
      std::fill(a, a + kTogether, first);
      for (int64_t k = 0; k < n; ++k) {
        const int64_t i = reverse_ ? n - 1 - k : k;
        for (int64_t j = 0; j < count; ++j) {
          const A v = static_cast<A>(to_compute(x[from[j] + i * x_step]));
          const A next = step<kind>(a[j], v);
          out[to[j] + i * out_step] = result_value<T>(exclusive_ ? a[j] : next);
          a[j] = next;
        }
      }
    });
  }

  template <class T>
  void extremes(char* const* buffers) const {
    if constexpr (!is_complex<T>) {
      if (is_int32_)
        run_extremes(reinterpret_cast<const T*>(buffers[0]), reinterpret_cast<T*>(buffers[1]), reinterpret_cast<int32_t*>(buffers[2]));
      else
        run_extremes(reinterpret_cast<const T*>(buffers[0]), reinterpret_cast<T*>(buffers[1]), reinterpret_cast<int64_t*>(buffers[2]));
    }
  }

  template <class T, class I>
  void run_extremes(const T* x, T* out, I* indices) const {
    const int64_t n = lines_.length, x_step = lines_.steps[0], out_step = lines_.steps[1], index_step = lines_.steps[2];
    const bool is_max = kind_ == Kind::kMax;
    each_block(2.0, [&](const int64_t* from, const int64_t* to, const int64_t* to_index, int64_t count) {
      for (int64_t j = 0; j < count; ++j) {
        int64_t best_at = reverse_ ? n - 1 : 0;
        T best = n ? x[from[j] + best_at * x_step] : T{};
        for (int64_t k = 0; k < n; ++k) {
          const int64_t i = reverse_ ? n - 1 - k : k;
          const T v = x[from[j] + i * x_step];
          const auto a = to_compute(v), b = to_compute(best);
          if (a != a || (b == b && (is_max ? a >= b : a <= b))) {
            best = v;
            best_at = i;
          }
          out[to[j] + i * out_step] = best;
          indices[to_index[j] + i * index_step] = static_cast<I>(best_at);
        }
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
