// scatter, scatter_nd, scatter_elements: equal indices are applied in order, whatever the number of threads.
#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/parallel.h"
#include "kernels/indices.h"

namespace sampan::kernels {
namespace {

constexpr int64_t kAhead = 16;  // destinations that are asked for before they are written: they lie anywhere

enum class Mode { kSet, kAdd, kMul, kMax, kMin };

template <class T>
constexpr bool has_mode(Mode m) {
  if (m == Mode::kSet) return true;
  if constexpr (std::is_same_v<T, bool> || is_half<T>)
    return false;  // bool is refused, 16-bit floats come as float32
  else
    return m == Mode::kAdd || m == Mode::kMul || !is_complex<T>;
}

template <Mode m, class T>
SAMPAN_INLINE T combine(T old, T v) {
  if constexpr (m == Mode::kSet) {
    return v;
  } else if constexpr (m == Mode::kAdd) {
    return wrapped_sum(old, v);
  } else if constexpr (m == Mode::kMul) {
    return wrapped_product(old, v);
  } else if constexpr (m == Mode::kMax) {
    return old > v || old != old ? old : v;  // NaN stays, and comes in
  } else {
    return old < v || old != old ? old : v;
  }
}

template <class T>
T identity(Mode m) {
  if constexpr (is_complex<T>) {
    return m == Mode::kMul ? T{1} : T{};
  } else if constexpr (is_half<T>) {
    return T{};
  } else {
    using Limits = std::numeric_limits<T>;
    switch (m) {
      case Mode::kMul: return T{1};
      case Mode::kMax: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      case Mode::kMin: return Limits::has_infinity ? Limits::infinity() : Limits::max();
      default: return T{};
    }
  }
}

// fn.operator()<Mode>() for the modes that T has.
template <class T, class F>
void with_mode(Mode m, F&& fn) {
  switch (m) {
    case Mode::kSet: return fn.template operator()<Mode::kSet>();
    case Mode::kAdd:
      if constexpr (has_mode<T>(Mode::kAdd)) return fn.template operator()<Mode::kAdd>();
      break;
    case Mode::kMul:
      if constexpr (has_mode<T>(Mode::kMul)) return fn.template operator()<Mode::kMul>();
      break;
    case Mode::kMax:
      if constexpr (has_mode<T>(Mode::kMax)) return fn.template operator()<Mode::kMax>();
      break;
    case Mode::kMin:
      if constexpr (has_mode<T>(Mode::kMin)) return fn.template operator()<Mode::kMin>();
      break;
  }
}

// The start of out: x, or zeros; nothing when out is x's own buffer.
class Start {
 public:
  Start(const NativeCall& c, bool has_x) : x_(has_x ? c.inputs[0] : nullptr), out_(c.outputs[0]) {}
  void run(const char* x, char* out) const {
    if (!x_)
      std::memset(out, 0, out_->size_bytes());
    else if (x != out)
      copy_elements(out, *out_, x, *x_);
  }

 private:
  LayoutRef x_, out_;
};

struct ScatterArguments {
  bool has_x;
  Mode mode;
  bool allow_negative;
  size_t index, updates;  // positions of these operands
};

ScatterArguments read_arguments(CallReader& call) {
  ScatterArguments a;
  a.has_x = call.flag("has_x", true);
  a.allow_negative = call.flag("allow_negative", true);
  const std::string mode = call.text("mode", "set");
  const char* names[] = {"set", "add", "mul", "max", "min"};
  const auto* at = std::find(std::begin(names), std::end(names), mode);
  if (at == std::end(names)) call.fail(ErrorKind::kValue, "mode '" + mode + "' is unknown; it is set, add, mul, max or min");
  a.mode = static_cast<Mode>(at - names);
  a.index = a.has_x ? 1 : 0;
  a.updates = a.index + 1;
  call.operands(a.updates + 1, 1);
  const Layout &out = call.output(0), &updates = call.input(a.updates);
  call.index_dtype(call.input(a.index), "index");
  call.same_dtype(updates, out, "updates and the output");
  if (a.has_x) {
    call.same_dtype(call.input(0), out, "x and the output");
    call.same_shape(call.input(0), shape_of(out), "x");
  }
  const char kind = dtype_kind(out.dtype);
  if ((a.mode != Mode::kSet && kind == 'b') || ((a.mode == Mode::kMax || a.mode == Mode::kMin) && kind == 'c'))
    call.fail(ErrorKind::kDType, "mode " + mode + " is not defined for " + dtype_name(out.dtype));
  return a;
}

// Sums and products of 16-bit floats are kept in float32 until the end; the other modes only move values, exactly.
bool needs_widening(const ScatterArguments& a, DType t) { return a.mode != Mode::kSet && (t == DType::k_float16 || t == DType::k_bfloat16); }

// Rows of `inner` elements: out[outer, offsets[i] :] = combine(., updates[outer, i, :]).
class ScatterRows final : public NativeOp {
 public:
  ScatterRows(IndexTable table, const ScatterArguments& a, const NativeCall& c, int64_t outer, int64_t outer_step, int64_t inner)
      : table_(std::move(table)), a_(a), start_(c, a.has_x), dtype_(c.outputs[0]->dtype), outer_(outer), outer_step_(outer_step), inner_(inner) {}
  size_t scratch_bytes() const override { return table_.bytes(); }

  void run(char* const* buffers, char* scratch) const override {
    int64_t* offsets = reinterpret_cast<int64_t*>(scratch);
    table_.fill(buffers[a_.index], offsets);
    char* out = buffers[a_.updates + 1];
    start_.run(buffers[0], out);
    with_type(dtype_, [&]<class T>() {
      with_mode<T>(a_.mode, [&]<Mode m>() { apply<m>(offsets, reinterpret_cast<const T*>(buffers[a_.updates]), reinterpret_cast<T*>(out)); });
    });
  }

 private:
  static constexpr int64_t kPieces = 8;

  template <Mode m, class T>
  void apply(const int64_t* offsets, const T* updates, T* out) const {
    const int64_t count = table_.count();
    if (count == 0 || inner_ == 0) return;
    if constexpr (m != Mode::kSet) {
      if (outer_ == 1 && inner_ == 1 && count >= (int64_t{1} << 16) && outer_step_ * kPieces * 2 <= count) return apply_by_tables<m>(offsets, updates, out);
    }
    // A unit is a piece of the rows, so each destination belongs to one thread, which sees the indices in order.
    constexpr int64_t kPiece = 256;
    const int64_t pieces = (inner_ + kPiece - 1) / kPiece, units = outer_ * pieces;
    if (units >= num_threads()) {
      parallel_for(units, static_cast<double>(count) * (2.0 + static_cast<double>(std::min(inner_, kPiece)) * 0.5), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; ++u) {
          const int64_t o = u / pieces, j = u % pieces * kPiece, n = std::min(kPiece, inner_ - j);
          const T* from = updates + o * count * inner_ + j;
          T* to = out + o * outer_step_ + j;
          for (int64_t i = 0; i < count; ++i) row<m>(from + i * inner_, to + offsets[i], n);
        }
      });
      return;
    }
    // Few columns: threads take ranges of destinations, and each looks at every index.
    const int64_t ranges = num_threads();
    parallel_for(ranges, static_cast<double>(outer_ * count) * (2.0 + static_cast<double>(inner_) * 0.5) / static_cast<double>(ranges), [&](int64_t begin, int64_t end) {
      const int64_t low = outer_step_ * begin / ranges, high = outer_step_ * end / ranges;
      const int64_t last_ahead = inner_ * static_cast<int64_t>(sizeof(T)) >= 32 ? count - kAhead : 0;  // short rows are many to a line
      for (int64_t o = 0; o < outer_; ++o)
        for (int64_t i = 0; i < count; ++i) {
          if (i < last_ahead && offsets[i + kAhead] >= low && offsets[i + kAhead] < high) __builtin_prefetch(out + o * outer_step_ + offsets[i + kAhead], 1);
          if (offsets[i] >= low && offsets[i] < high) row<m>(updates + (o * count + i) * inner_, out + o * outer_step_ + offsets[i], inner_);
        }
    });
  }

  // Many entries into few destinations: fixed pieces of the entries fill tables of their own, which are combined in order.
  template <Mode m, class T>
  void apply_by_tables(const int64_t* offsets, const T* updates, T* out) const {
    const int64_t count = table_.count(), size = outer_step_;
    const Block tables(static_cast<size_t>(kPieces * size) * sizeof(T));
    T* const all = tables.as<T>();
    parallel_for(kPieces, static_cast<double>(count) * 2.0 / kPieces, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        T* to = all + p * size;
        std::fill_n(to, size, identity<T>(m));
        for (int64_t i = count * p / kPieces; i < count * (p + 1) / kPieces; ++i) to[offsets[i]] = combine<m>(to[offsets[i]], updates[i]);
      }
    });
    for (int64_t p = 0; p < kPieces; ++p) row<m>(all + p * size, out, size);
  }

  template <Mode m, class T>
  static void row(const T* from, T* to, int64_t n) {
    for (int64_t j = 0; j < n; ++j) to[j] = combine<m>(to[j], from[j]);
  }

  IndexTable table_;
  ScatterArguments a_;
  Start start_;
  DType dtype_;
  int64_t outer_, outer_step_, inner_;
};

std::unique_ptr<NativeOp> make_scatter(const NativeCall& c) {
  CallReader call("scatter", c);
  const ScatterArguments a = read_arguments(call);
  const Layout &out = call.output(0), &index = call.input(a.index), &updates = call.input(a.updates);
  const int axis = call.axis(0, out.rank);
  call.no_more_attributes();
  Dims expected(out.shape, out.shape + (out.rank ? axis : 0));
  expected.insert(expected.end(), index.shape, index.shape + index.rank);
  if (out.rank) expected.insert(expected.end(), out.shape + axis + 1, out.shape + out.rank);
  call.same_shape(updates, expected, "updates");
  if (needs_widening(a, out.dtype)) return make_widened(make_scatter, c, false);
  if (auto op = make_rows_contiguous(make_scatter, c, {a.index, a.updates})) return op;
  const AxisView view = view_around(out, axis);
  IndexTable table(index, {view.length}, {view.inner}, axis, a.allow_negative);
  return std::make_unique<ScatterRows>(std::move(table), a, c, view.outer, view.length * view.inner, view.inner);
}

std::unique_ptr<NativeOp> make_scatter_nd(const NativeCall& c) {
  CallReader call("scatter_nd", c);
  const ScatterArguments a = read_arguments(call);
  call.no_more_attributes();
  const Layout &out = call.output(0), &index = call.input(a.index), &updates = call.input(a.updates);
  if (index.rank < 1 || index.shape[index.rank - 1] > out.rank) call.fail(ErrorKind::kShape, "the last axis of index addresses at most the output's axes");
  const int depth = static_cast<int>(index.shape[index.rank - 1]);
  Dims expected(index.shape, index.shape + index.rank - 1);
  expected.insert(expected.end(), out.shape + depth, out.shape + out.rank);
  call.same_shape(updates, expected, "updates");
  if (needs_widening(a, out.dtype)) return make_widened(make_scatter_nd, c, false);
  if (auto op = make_rows_contiguous(make_scatter_nd, c, {a.index, a.updates})) return op;
  IndexTable table(index, Dims(out.shape, out.shape + depth), Dims(out.strides, out.strides + depth), 0, a.allow_negative);
  const int64_t inner = product(out.shape + depth, out.shape + out.rank);
  return std::make_unique<ScatterRows>(std::move(table), a, c, 1, out.numel, inner);
}

// out[o, index[o, i, j], j] = combine(., updates[o, i, j]).
class ScatterElements final : public NativeOp {
 public:
  ScatterElements(IndexTable table, const ScatterArguments& a, const NativeCall& c, int axis, bool include_self)
      : table_(std::move(table)), a_(a), start_(c, a.has_x), dtype_(c.outputs[0]->dtype), include_self_(include_self) {
    const Layout &index = *c.inputs[a.index], &out = *c.outputs[0];
    const AxisView view = view_around(index, axis);
    count_ = view.length;
    inner_ = view.inner;
    if (index.rank == 0) return;
    reach_ = out.shape[axis] * out.strides[axis];
    // Lines along the axis: where they start in index (and updates) and in out.
    for (int d = 0; d < index.rank; ++d)
      if (d != axis) lines_.add_axis(index.shape[d], {index.strides[d], out.strides[d]});
  }

  void run(char* const* buffers, char*) const override {
    table_.check(buffers[a_.index]);
    char* out = buffers[a_.updates + 1];
    start_.run(buffers[0], out);
    if (table_.count() == 0) return;
    table_.with_index(buffers[a_.index], [&](const auto* index) {
      with_type(dtype_, [&]<class T>() {
        T* to = reinterpret_cast<T*>(out);
        const T* updates = reinterpret_cast<const T*>(buffers[a_.updates]);
        if (!include_self_ && a_.mode != Mode::kSet) {
          const T fresh = identity<T>(a_.mode);
          each(index, [=](int64_t, int64_t destination) { to[destination] = fresh; });
        }
        with_mode<T>(a_.mode, [&]<Mode m>() {
          each(index, [=](int64_t i, int64_t destination) { to[destination] = combine<m>(to[destination], updates[i]); });
        });
      });
    });
  }

 private:
  static constexpr int64_t kTogether = 64;

  // fn(position in updates, position in out), in order along every line; a line stays on one thread.
  template <class I, class F>
  void each(const I* index, F&& fn) const {
    const int64_t lines = lines_.total(), count = count_, inner = inner_;
    const IndexTable::Offset offset = table_.offset();
    if (lines >= num_threads() || table_.count() < 10000) {
      // Blocks of neighbouring lines are walked together, so that memory is read along its rows; lines that are rows themselves one by one.
      const int64_t together = inner_ == 1 ? 1 : kTogether;
      const int64_t blocks = (lines + together - 1) / together;
      parallel_for(blocks, static_cast<double>(together * count_) * 2.0, [&](int64_t begin, int64_t end) {
        int64_t from[kTogether], to[kTogether];
        Odometer<2> at = lines_;
        at.seek(begin * together);
        for (int64_t b = begin; b < end; ++b) {
          const int64_t n = std::min(together, lines - b * together);
          for (int64_t j = 0; j < n; ++j, at.next()) {
            from[j] = at.offset[0];
            to[j] = at.offset[1];
          }
          if (n == 1) {
            const int64_t first = to[0];
            for (int64_t p = from[0], i = 0; i < count; ++i, p += inner) fn(p, first + offset(index[p]));
            continue;
          }
          for (int64_t i = 0; i < count; ++i)
            for (int64_t j = 0; j < n; ++j) {
              const int64_t p = from[j] + i * inner;
              fn(p, to[j] + offset(index[p]));
            }
        }
      });
      return;
    }
    const int64_t ranges = num_threads();
    parallel_for(ranges, static_cast<double>(table_.count()) * 2.0 / static_cast<double>(ranges), [&](int64_t begin, int64_t end) {
      const int64_t low = reach_ * begin / ranges, high = reach_ * end / ranges;
      Odometer<2> at = lines_;
      at.seek(0);
      for (int64_t line = 0; line < lines; ++line, at.next())
        for (int64_t i = 0; i < count; ++i) {
          const int64_t p = at.offset[0] + i * inner, to = offset(index[p]);
          if (to >= low && to < high) fn(p, at.offset[1] + to);
        }
    });
  }

  IndexTable table_;
  ScatterArguments a_;
  Start start_;
  DType dtype_;
  bool include_self_;
  Odometer<2> lines_;
  int64_t count_ = 1, inner_ = 1, reach_ = 1;
};

std::unique_ptr<NativeOp> make_scatter_elements(const NativeCall& c) {
  CallReader call("scatter_elements", c);
  const ScatterArguments a = read_arguments(call);
  const Layout &out = call.output(0), &index = call.input(a.index), &updates = call.input(a.updates);
  const int axis = call.axis(0, out.rank);
  const bool include_self = call.flag("include_self", true);
  call.no_more_attributes();
  call.same_shape(updates, shape_of(index), "updates");
  if (index.rank != out.rank) call.fail(ErrorKind::kShape, "index must have the output's rank");
  for (int d = 0; d < out.rank; ++d)
    if (d != axis && index.shape[d] > out.shape[d]) call.fail(ErrorKind::kShape, "index is longer than the output along axis " + std::to_string(d));
  if (needs_widening(a, out.dtype)) return make_widened(make_scatter_elements, c, false);
  if (auto op = make_rows_contiguous(make_scatter_elements, c, {a.index, a.updates})) return op;
  IndexTable table(index, {out.rank ? out.shape[axis] : 1}, {out.rank ? out.strides[axis] : 0}, axis, a.allow_negative);
  return std::make_unique<ScatterElements>(std::move(table), a, c, axis, include_self);
}

const RegisterNative scatter("scatter", make_scatter);
const RegisterNative scatter_nd("scatter_nd", make_scatter_nd);
const RegisterNative scatter_elements("scatter_elements", make_scatter_elements);

}  // namespace
}  // namespace sampan::kernels
