// rnn, rnn_backward: a recurrent layer over all steps in one direction. docs/design/003-natives.md says what the operands are.
//
// A unit of work is a strip of the state's columns (one tile wide) with all of its gates, for a block of the batch: the product with the packed weights,
// then the gates' functions while the numbers are in L1. One parallel region a step.
#include <algorithm>
#include <array>
#include <cstring>

#include "exec/parallel.h"
#include "kernels/common.h"
#include "kernels/indices.h"
#include "kernels/tiles.h"
#include "kernels/vector_math.h"

namespace sampan::kernels {
namespace {

enum class Kind { kTanh, kRelu, kLstm, kGru };
constexpr int kGates[] = {1, 1, 4, 3};
constexpr int kMostGates = 4;
constexpr int64_t kBatchBlock = 48;  // with 4 gates of 16 float32 columns: 12 KiB, beside a panel in L1

struct Recurrence {
  Kind kind;
  bool reverse, has_bias, has_projection, has_lengths, has_grad_cells;
  int64_t steps, batch;
  int64_t width, cell_width, state_width;  // of the strips' matrix; of the cell and each gate; of the state, which is narrower where it is projected

  int gates() const { return kGates[static_cast<int>(kind)]; }
  int64_t columns() const { return gates() * cell_width; }
  int64_t cell_items() const { return batch * cell_width; }
  int64_t state_items() const { return batch * state_width; }
  // The same with the state's columns in the place of the cell's, for strips of the state.
  Recurrence of_state() const {
    Recurrence r = *this;
    r.width = state_width;
    return r;
  }
  // The step taken k-th, and the places in the states before and after step t.
  int64_t step(int64_t k) const { return reverse ? steps - 1 - k : k; }
  int64_t before(int64_t t) const { return reverse ? t + 1 : t; }
  int64_t after(int64_t t) const { return reverse ? t : t + 1; }
};

template <class T>
int64_t strips(const Recurrence& r) {
  return (r.width + kTileColumns<T> - 1) / kTileColumns<T>;
}
int64_t batch_blocks(const Recurrence& r) { return (r.batch + kBatchBlock - 1) / kBatchBlock; }

template <int kBytes, class T>
SAMPAN_INLINE Vec<T, kBytes> load_part(const T* p, int64_t n) {
  if (n >= kLanes<T, kBytes>) return load<T, kBytes>(p);
  Vec<T, kBytes> v{};
  if (n > 0) std::memcpy(&v, p, static_cast<size_t>(n) * sizeof(T));
  return v;
}
template <int kBytes, class T>
SAMPAN_INLINE void store_part(T* p, Vec<T, kBytes> v, int64_t n) {
  if (n >= kLanes<T, kBytes>)
    store(p, v);
  else if (n > 0)
    std::memcpy(p, &v, static_cast<size_t>(n) * sizeof(T));
}

// Blocks [rows, tile], kBatchBlock rows apart, = a [rows, depth] times packed panels [depth, tile].
template <int kBytes, class T>
SAMPAN_INLINE void product_blocks(int64_t rows, int64_t depth, const T* a, int64_t count, const T* panels, T* blocks) {
  constexpr int64_t kWidth = kTileColumns<T>;
  for (int64_t k = 0; k < depth; k += kTileDepth)
    tile_panels<T, kBytes>(rows, count, std::min(kTileDepth, depth - k), a + k, depth, 1, panels + k * kWidth, kWidth, depth * kWidth, blocks, kWidth, kBatchBlock * kWidth, k > 0, false);
}

// One strip of the columns of one step, for rows [m0, m1) of the batch.
template <class T>
struct Strip {
  const Recurrence& r;
  int64_t t, first, m0, m1;  // first: its first column
  const int64_t* lengths;

  int64_t left(int64_t v) const { return r.width - first - v; }
  bool is_on(int64_t row) const { return !lengths || t < lengths[row]; }
  int64_t at(int64_t row, int64_t v) const { return row * r.width + first + v; }
  int64_t gate(int64_t row, int g, int64_t v) const { return row * r.columns() + g * r.width + first + v; }
  int64_t activation(int64_t row, int g, int64_t v) const { return (row * 4 + g) * r.width + first + v; }
};

// ------------------------------------------------------------------ forward

template <class T>
struct ForwardStep {
  const T *gates, *bias, *panels, *state, *cell;
  T *new_state, *new_cell, *activations;  // new_state: before its projection, where there is one
};

template <int kBytes, class T>
SAMPAN_INLINE void forward_strip(const Strip<T>& s, const ForwardStep<T>& p) {
  using V = Vec<T, kBytes>;
  constexpr int64_t kWidth = kTileColumns<T>, kL = kLanes<T, kBytes>;
  const Recurrence& r = s.r;
  const int count = r.gates();
  alignas(64) T shifts[kMostGates][kBatchBlock * kWidth];
  const int64_t depth = r.state_width;
  const T* panel = p.panels + s.first * count * depth;
  product_blocks<kBytes>(s.m1 - s.m0, depth, p.state + s.m0 * depth, count, panel, shifts[0]);
  for (int64_t row = s.m0; row < s.m1; ++row) {
    const bool on = s.is_on(row);
    for (int64_t v = 0; v < kWidth && s.left(v) > 0; v += kL) {
      const int64_t n = s.left(v), at = s.at(row, v);
      const V h = r.has_projection ? V{} : load_part<kBytes>(p.state + at, n);
      if (!on) {
        store_part<kBytes>(p.new_state + at, h, n);
        if (r.kind == Kind::kLstm) store_part<kBytes>(p.new_cell + at, load_part<kBytes>(p.cell + at, n), n);
        for (int g = 0; g < 4 && p.activations; ++g) store_part<kBytes>(p.activations + s.activation(row, g, v), V{}, n);
        continue;
      }
      V x[kMostGates], shift[kMostGates], f[kMostGates] = {};
      for (int g = 0; g < count; ++g) {
        x[g] = load_part<kBytes>(p.gates + s.gate(row, g, v), n);
        shift[g] = load<T, kBytes>(shifts[g] + (row - s.m0) * kWidth + v);
        if (p.bias) shift[g] += load_part<kBytes>(p.bias + g * r.width + s.first + v, n);
      }
      if (r.kind == Kind::kLstm) {
        f[0] = sigmoid(x[0] + shift[0]);
        f[1] = sigmoid(x[1] + shift[1]);
        f[2] = tanh(x[2] + shift[2]);
        f[3] = sigmoid(x[3] + shift[3]);
        const V c = f[1] * load_part<kBytes>(p.cell + at, n) + f[0] * f[2];
        store_part<kBytes>(p.new_cell + at, c, n);
        store_part<kBytes>(p.new_state + at, f[3] * tanh(c), n);
      } else if (r.kind == Kind::kGru) {
        f[0] = sigmoid(x[0] + shift[0]);
        f[1] = sigmoid(x[1] + shift[1]);
        f[2] = tanh(x[2] + f[0] * shift[2]);
        f[3] = shift[2];
        store_part<kBytes>(p.new_state + at, (h - f[2]) * f[1] + f[2], n);
      } else {
        const V total = x[0] + shift[0];
        store_part<kBytes>(p.new_state + at, r.kind == Kind::kTanh ? tanh(total) : total < T{0} ? V{} : total, n);
      }
      for (int g = 0; g < 4 && p.activations; ++g) store_part<kBytes>(p.activations + s.activation(row, g, v), f[g], n);
    }
  }
}

// A strip of the state after a step: the product of the rows [N, depth] with the packed projection, or the state before where the step is not taken.
template <int kBytes, class T>
SAMPAN_INLINE void projected_strip(const Strip<T>& s, int64_t depth, const T* rows, const T* panels, const T* state, T* new_state) {
  constexpr int64_t kWidth = kTileColumns<T>, kL = kLanes<T, kBytes>;
  alignas(64) T block[kBatchBlock * kWidth];
  product_blocks<kBytes>(s.m1 - s.m0, depth, rows + s.m0 * depth, 1, panels + s.first * depth, block);
  for (int64_t row = s.m0; row < s.m1; ++row)
    for (int64_t v = 0; v < kWidth && s.left(v) > 0; v += kL) {
      const int64_t n = s.left(v), at = s.at(row, v);
      store_part<kBytes>(new_state + at, s.is_on(row) ? load<T, kBytes>(block + (row - s.m0) * kWidth + v) : load_part<kBytes>(state + at, n), n);
    }
}

// ------------------------------------------------------------------ backward

template <class T>
struct BackwardStep {
  // grad_shifts: of the step taken before this one (null for the first); grad_after, grad_cell_after: what comes to the states after this step.
  // projection: packed, with grad_state [N, P], the gradient of the projected state; null where there is none.
  const T *panels, *grad_shifts, *grad_after, *grad_cell_after, *state, *new_state, *cell, *new_cell, *activations, *projection;
  T *carry, *cell_carry, *grad_gates, *new_grad_shifts, *grad_state;
};

// The gradient of the state after step t, [rows, tile]: through the following step, past it, and from outside.
template <int kBytes, class T>
SAMPAN_INLINE void state_gradient(const Strip<T>& s, const BackwardStep<T>& p, T* block) {
  using V = Vec<T, kBytes>;
  constexpr int64_t kWidth = kTileColumns<T>, kL = kLanes<T, kBytes>;
  if (p.grad_shifts) product_blocks<kBytes>(s.m1 - s.m0, s.r.columns(), p.grad_shifts + s.m0 * s.r.columns(), 1, p.panels + s.first * s.r.columns(), block);
  for (int64_t row = s.m0; row < s.m1; ++row)
    for (int64_t v = 0; v < kWidth && s.left(v) > 0; v += kL) {
      T* to = block + (row - s.m0) * kWidth + v;
      const V outside = load_part<kBytes>(p.grad_after + s.at(row, v), s.left(v));
      store(to, p.grad_shifts ? load<T, kBytes>(to) + load_part<kBytes>(p.carry + s.at(row, v), s.left(v)) + outside : outside);
    }
}

// A strip of the projected state's gradient: of the rows that take the step to grad_state, of the others to carry.
template <int kBytes, class T>
SAMPAN_INLINE void gathered_strip(const Strip<T>& s, const BackwardStep<T>& p) {
  using V = Vec<T, kBytes>;
  constexpr int64_t kWidth = kTileColumns<T>, kL = kLanes<T, kBytes>;
  alignas(64) T block[kBatchBlock * kWidth];
  state_gradient<kBytes>(s, p, block);
  for (int64_t row = s.m0; row < s.m1; ++row)
    for (int64_t v = 0; v < kWidth && s.left(v) > 0; v += kL) {
      const V g = load<T, kBytes>(block + (row - s.m0) * kWidth + v);
      const bool on = s.is_on(row);
      store_part<kBytes>(p.grad_state + s.at(row, v), on ? g : V{}, s.left(v));
      store_part<kBytes>(p.carry + s.at(row, v), on ? V{} : g, s.left(v));
    }
}

template <int kBytes, class T>
SAMPAN_INLINE void backward_strip(const Strip<T>& s, const BackwardStep<T>& p) {
  using V = Vec<T, kBytes>;
  constexpr int64_t kWidth = kTileColumns<T>, kL = kLanes<T, kBytes>;
  const Recurrence& r = s.r;
  alignas(64) T block[kBatchBlock * kWidth];
  if (p.projection)
    product_blocks<kBytes>(s.m1 - s.m0, r.state_width, p.grad_state + s.m0 * r.state_width, 1, p.projection + s.first * r.state_width, block);
  else
    state_gradient<kBytes>(s, p, block);
  const V zero{};
  for (int64_t row = s.m0; row < s.m1; ++row) {
    const bool on = s.is_on(row);
    for (int64_t v = 0; v < kWidth && s.left(v) > 0; v += kL) {
      const int64_t n = s.left(v), at = s.at(row, v);
      const V g = load<T, kBytes>(block + (row - s.m0) * kWidth + v);
      V carry = on ? zero : g, grads[kMostGates] = {}, last_shift{};
      V grad_c{};
      if (r.kind == Kind::kLstm) {
        if (p.grad_shifts) grad_c = load_part<kBytes>(p.cell_carry + at, n);
        if (p.grad_cell_after) grad_c += load_part<kBytes>(p.grad_cell_after + at, n);
      }
      if (on && r.kind == Kind::kLstm) {
        V f[4];
        for (int k = 0; k < 4; ++k) f[k] = load_part<kBytes>(p.activations + s.activation(row, k, v), n);
        const V squashed = tanh(load_part<kBytes>(p.new_cell + at, n));
        grad_c += g * f[3] * (T{1} - squashed * squashed);
        grads[0] = grad_c * f[2] * f[0] * (T{1} - f[0]);
        grads[1] = grad_c * load_part<kBytes>(p.cell + at, n) * f[1] * (T{1} - f[1]);
        grads[2] = grad_c * f[0] * (T{1} - f[2] * f[2]);
        grads[3] = g * squashed * f[3] * (T{1} - f[3]);
        grad_c *= f[1];
      } else if (on && r.kind == Kind::kGru) {
        V f[4];
        for (int k = 0; k < 4; ++k) f[k] = load_part<kBytes>(p.activations + s.activation(row, k, v), n);
        grads[2] = g * (T{1} - f[1]) * (T{1} - f[2] * f[2]);
        grads[0] = grads[2] * f[3] * f[0] * (T{1} - f[0]);
        grads[1] = g * (load_part<kBytes>(p.state + at, n) - f[2]) * f[1] * (T{1} - f[1]);
        last_shift = grads[2] * f[0];
        carry = g * f[1];
      } else if (on) {
        const V y = load_part<kBytes>(p.new_state + at, n);
        grads[0] = r.kind == Kind::kTanh ? g * (T{1} - y * y) : y > T{0} ? g : zero;
      }
      if (!p.projection) store_part<kBytes>(p.carry + at, carry, n);
      if (r.kind == Kind::kLstm) store_part<kBytes>(p.cell_carry + at, grad_c, n);
      for (int k = 0; k < r.gates(); ++k) store_part<kBytes>(p.grad_gates + s.gate(row, k, v), grads[k], n);
      if (r.kind == Kind::kGru)
        for (int k = 0; k < 3; ++k) store_part<kBytes>(p.new_grad_shifts + s.gate(row, k, v), k < 2 ? grads[k] : last_shift, n);
    }
  }
}

// The gradients of the first states, where the walk ends.
template <int kBytes, class T>
SAMPAN_INLINE void first_strip(const Strip<T>& s, const BackwardStep<T>& p, T* grad_state) {
  constexpr int64_t kWidth = kTileColumns<T>, kL = kLanes<T, kBytes>;
  alignas(64) T block[kBatchBlock * kWidth];
  state_gradient<kBytes>(s, p, block);
  for (int64_t row = s.m0; row < s.m1; ++row)
    for (int64_t v = 0; v < kWidth && s.left(v) > 0; v += kL) store_part<kBytes>(grad_state + s.at(row, v), load<T, kBytes>(block + (row - s.m0) * kWidth + v), s.left(v));
}

template <class T>
void first_cells(const BackwardStep<T>& p, int64_t items, T* grad_cell) {
  for (int64_t i = 0; i < items; ++i) grad_cell[i] = (p.grad_shifts ? p.cell_carry[i] : T{0}) + (p.grad_cell_after ? p.grad_cell_after[i] : T{0});
}

// ------------------------------------------------------------------ whole layers

SAMPAN_CLONES void pack(const float* b, int64_t b_row, int64_t b_column, int64_t depth, int64_t columns, float* to) { pack_columns(b, b_row, b_column, depth, columns, to); }
SAMPAN_CLONES void pack(const double* b, int64_t b_row, int64_t b_column, int64_t depth, int64_t columns, double* to) { pack_columns(b, b_row, b_column, depth, columns, to); }

// fn(RegisterBytes, strip) for every strip of step t.
template <class T, class F>
void for_strips(const Recurrence& r, int64_t t, const int64_t* lengths, F&& fn) {
  const int64_t blocks = batch_blocks(r), rows = std::min(r.batch, kBatchBlock);
  const double items = static_cast<double>(rows * kTileColumns<T>), multiplies = items * static_cast<double>(r.columns());
  parallel_for(strips<T>(r) * blocks, multiplies * sizeof(T) * 0.016 + items * r.gates() * 1.5, [&](int64_t begin, int64_t end) {
    with_registers([&](auto bytes) SAMPAN_INLINED {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t m0 = unit % blocks * kBatchBlock;
        fn(bytes, Strip<T>{r, t, unit / blocks * kTileColumns<T>, m0, std::min(m0 + kBatchBlock, r.batch), lengths});
      }
    });
  });
}

// Strips of columns of a matrix [depth, columns], packed one behind the other.
template <class T>
void pack_strips(const T* b, int64_t b_row, int64_t b_column, int64_t depth, int64_t columns, T* to) {
  constexpr int64_t kWidth = kTileColumns<T>;
  parallel_for((columns + kWidth - 1) / kWidth, static_cast<double>(depth * kWidth), [&](int64_t begin, int64_t end) {
    for (int64_t column = begin * kWidth; column < std::min(end * kWidth, columns); column += kWidth)
      pack(b + column * b_column, b_row, b_column, depth, std::min(kWidth, columns - column), to + column * depth);
  });
}
template <class T>
size_t strips_bytes(int64_t depth, int64_t columns) {
  return align64(static_cast<size_t>((columns + kTileColumns<T> - 1) / kTileColumns<T> * kTileColumns<T> * depth) * sizeof(T));
}

template <class T>
class RnnOp final : public NativeOp {
 public:
  explicit RnnOp(const Recurrence& r) : r_(r) {}
  size_t scratch_bytes() const override { return panel_bytes() + projection_bytes() + (r_.has_projection ? hidden_bytes() : 0); }

  void run(char* const* buffers, char* scratch) const override {
    const bool is_lstm = r_.kind == Kind::kLstm;
    size_t next = 0;
    auto take = [&](bool is_there) { return is_there ? reinterpret_cast<T*>(buffers[next++]) : nullptr; };
    const T *gates = take(true), *h = take(true), *c = take(is_lstm), *weight = take(true), *bias = take(r_.has_bias), *projection = take(r_.has_projection);
    const auto* lengths = reinterpret_cast<const int64_t*>(take(r_.has_lengths));
    T *states = take(true), *cells = take(is_lstm), *activations = take(r_.gates() > 1), *panels = reinterpret_cast<T*>(scratch);
    T *projection_panels = reinterpret_cast<T*>(scratch + panel_bytes()), *hidden = reinterpret_cast<T*>(scratch + panel_bytes() + projection_bytes());
    const int64_t items = r_.state_items(), cell_items = r_.cell_items(), first = r_.reverse ? r_.steps : 0, w = r_.width, depth = r_.state_width;
    std::memcpy(states + first * items, h, static_cast<size_t>(items) * sizeof(T));
    if (is_lstm) std::memcpy(cells + first * cell_items, c, static_cast<size_t>(cell_items) * sizeof(T));
    parallel_for(strips<T>(r_) * r_.gates(), static_cast<double>(depth * kTileColumns<T>), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t column = k / r_.gates() * kTileColumns<T>;
        pack(weight + (k % r_.gates() * w + column) * depth, 1, depth, depth, std::min(kTileColumns<T>, w - column), panels + k * depth * kTileColumns<T>);
      }
    });
    if (projection) pack_strips(projection, depth, 1, w, depth, projection_panels);
    const Recurrence of_state = r_.of_state();
    for (int64_t k = 0; k < r_.steps; ++k) {
      const int64_t t = r_.step(k), from = r_.before(t), to = r_.after(t);
      const ForwardStep<T> p{gates + t * r_.batch * r_.columns(), bias, panels, states + from * items, is_lstm ? cells + from * cell_items : nullptr,
                             projection ? hidden : states + to * items, is_lstm ? cells + to * cell_items : nullptr,
                             activations ? activations + t * cell_items * 4 : nullptr};
      for_strips<T>(r_, t, lengths, [&](auto bytes, const Strip<T>& s) SAMPAN_INLINED { forward_strip<bytes.value>(s, p); });
      if (!projection) continue;
      for_strips<T>(of_state, t, lengths, [&](auto bytes, const Strip<T>& s) SAMPAN_INLINED { projected_strip<bytes.value>(s, w, hidden, projection_panels, p.state, states + to * items); });
    }
  }

 private:
  size_t panel_bytes() const { return align64(static_cast<size_t>(strips<T>(r_) * kTileColumns<T> * r_.gates() * r_.state_width) * sizeof(T)); }
  size_t projection_bytes() const { return r_.has_projection ? strips_bytes<T>(r_.width, r_.state_width) : 0; }
  size_t hidden_bytes() const { return static_cast<size_t>(r_.cell_items()) * sizeof(T); }
  Recurrence r_;
};

template <class T>
class RnnBackwardOp final : public NativeOp {
 public:
  explicit RnnBackwardOp(const Recurrence& r) : r_(r) {}
  size_t scratch_bytes() const override { return panel_bytes() + projection_bytes() + carry_bytes(r_.state_items()) + carry_bytes(r_.cell_items()); }

  void run(char* const* buffers, char* scratch) const override {
    const bool is_lstm = r_.kind == Kind::kLstm, is_gru = r_.kind == Kind::kGru;
    size_t next = 0;
    auto take = [&](bool is_there) { return is_there ? reinterpret_cast<T*>(buffers[next++]) : nullptr; };
    const T *grad_states = take(true), *states = take(true), *weight = take(true), *cells = take(is_lstm), *activations = take(is_lstm || is_gru);
    const T* projection = take(r_.has_projection);
    const auto* lengths = reinterpret_cast<const int64_t*>(take(r_.has_lengths));
    const T* grad_cells = take(r_.has_grad_cells);
    T *grad_gates = take(true), *grad_h = take(true), *grad_c = take(is_lstm), *grad_shifts = take(is_gru), *grad_steps = take(r_.has_projection);
    if (!is_gru) grad_shifts = grad_gates;
    T *panels = reinterpret_cast<T*>(scratch), *projection_panels = reinterpret_cast<T*>(scratch + panel_bytes());
    const int64_t items = r_.state_items(), cell_items = r_.cell_items(), step_items = r_.batch * r_.columns();
    const Recurrence of_state = r_.of_state();
    pack_strips(weight, r_.state_width, 1, r_.columns(), r_.state_width, panels);
    if (projection) pack_strips(projection, 1, r_.state_width, r_.state_width, r_.width, projection_panels);
    BackwardStep<T> p{};
    p.panels = panels;
    p.projection = projection ? projection_panels : nullptr;
    p.carry = reinterpret_cast<T*>(scratch + panel_bytes() + projection_bytes());
    p.cell_carry = p.carry + carry_bytes(items) / sizeof(T);
    for (int64_t k = r_.steps; k-- > 0;) {
      const int64_t t = r_.step(k), from = r_.before(t), to = r_.after(t);
      p.grad_after = grad_states + to * items;
      p.grad_cell_after = grad_cells ? grad_cells + to * cell_items : nullptr;
      p.state = states + from * items;
      p.new_state = states + to * items;
      p.cell = is_lstm ? cells + from * cell_items : nullptr;
      p.new_cell = is_lstm ? cells + to * cell_items : nullptr;
      p.activations = activations ? activations + t * cell_items * 4 : nullptr;
      p.grad_gates = grad_gates + t * step_items;
      p.new_grad_shifts = grad_shifts + t * step_items;
      if (projection) {
        p.grad_state = grad_steps + t * items;
        for_strips<T>(of_state, t, lengths, [&](auto bytes, const Strip<T>& s) SAMPAN_INLINED { gathered_strip<bytes.value>(s, p); });
      }
      for_strips<T>(r_, t, lengths, [&](auto bytes, const Strip<T>& s) SAMPAN_INLINED { backward_strip<bytes.value>(s, p); });
      p.grad_shifts = p.new_grad_shifts;
    }
    const int64_t first = r_.reverse ? r_.steps : 0;
    p.grad_after = grad_states + first * items;
    p.grad_cell_after = grad_cells ? grad_cells + first * cell_items : nullptr;
    for_strips<T>(of_state, 0, nullptr, [&](auto bytes, const Strip<T>& s) SAMPAN_INLINED { first_strip<bytes.value>(s, p, grad_h); });
    if (grad_c) first_cells(p, cell_items, grad_c);
  }

 private:
  size_t panel_bytes() const { return strips_bytes<T>(r_.columns(), r_.state_width); }
  size_t projection_bytes() const { return r_.has_projection ? strips_bytes<T>(r_.state_width, r_.width) : 0; }
  static size_t carry_bytes(int64_t items) { return align64(static_cast<size_t>(items) * sizeof(T)); }
  Recurrence r_;
};

Recurrence read_attributes(CallReader* call, bool is_backward) {
  const std::string kind = call->text("kind", "");
  static constexpr std::array<const char*, 4> kNames = {"tanh", "relu", "lstm", "gru"};
  const auto found = std::find(kNames.begin(), kNames.end(), kind);
  if (found == kNames.end()) call->fail(ErrorKind::kValue, "kind is " + kind + "; it must be tanh, relu, lstm or gru");
  Recurrence r{};
  r.kind = static_cast<Kind>(found - kNames.begin());
  r.reverse = call->flag("reverse", false);
  r.has_lengths = call->flag("has_lengths", false);
  r.has_projection = call->flag("has_projection", false);
  if (r.has_projection && r.kind != Kind::kLstm) call->fail(ErrorKind::kValue, "has_projection is true and kind is " + kind + "; only lstm projects its state");
  if (is_backward)
    r.has_grad_cells = call->flag("has_grad_cells", false);
  else
    r.has_bias = call->flag("has_bias", false);
  call->no_more_attributes();
  return r;
}

// Every operand against the shape it must have; all of one dtype but the lengths.
void check_operands(const CallReader& call, const std::vector<std::pair<const char*, Dims>>& inputs, const std::vector<std::pair<const char*, Dims>>& outputs, DType dtype) {
  call.operands(inputs.size(), outputs.size());
  auto check = [&](const Layout& l, const std::pair<const char*, Dims>& wanted) {
    call.same_shape(l, wanted.second, wanted.first);
    const DType kind = std::string(wanted.first) == "lengths" ? DType::k_int64 : dtype;
    if (l.dtype != kind) call.fail(ErrorKind::kDType, std::string(wanted.first) + " must be " + dtype_name(kind));
  };
  for (size_t i = 0; i < inputs.size(); ++i) check(call.input(i), inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) check(call.output(i), outputs[i]);
}

std::unique_ptr<NativeOp> contiguous_or_null(const NativeFactory& factory, const NativeCall& c) {
  std::vector<size_t> all(c.inputs.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return make_rows_contiguous(factory, c, all);
}

template <template <class> class Op>
std::unique_ptr<NativeOp> make_typed(const CallReader& call, const Recurrence& r, DType dtype) {
  if (r.batch == 0 || r.width == 0 || r.state_width == 0) return make_nothing();
  if (dtype == DType::k_float32) return std::make_unique<Op<float>>(r);
  if (dtype == DType::k_float64) return std::make_unique<Op<double>>(r);
  call.fail(ErrorKind::kDType, "it computes in float32 and float64");
}

std::unique_ptr<NativeOp> make_rnn(const NativeCall& c) {
  CallReader call("rnn", c);
  Recurrence r = read_attributes(&call, false);
  if (c.inputs.size() < 3 || c.outputs.empty() || call.input(0).rank != 3 || call.input(1).rank != 2)
    call.fail(ErrorKind::kShape, "it takes gates [T, N, G], h [N, H] and weight [G, H] at least");
  r.steps = call.input(0).shape[0];
  r.batch = call.input(1).shape[0];
  r.state_width = call.input(1).shape[1];
  const bool is_lstm = r.kind == Kind::kLstm;
  r.width = r.cell_width = r.has_projection ? call.input(0).shape[2] / r.gates() : r.state_width;
  const Dims state = {r.batch, r.state_width}, states = {r.steps + 1, r.batch, r.state_width}, cells = {r.steps + 1, r.batch, r.width};
  std::vector<std::pair<const char*, Dims>> inputs = {{"gates", {r.steps, r.batch, r.columns()}}, {"h", state}}, outputs = {{"states", states}};
  if (is_lstm) inputs.push_back({"c", {r.batch, r.width}});
  inputs.push_back({"weight", {r.columns(), r.state_width}});
  if (r.has_bias) inputs.push_back({"bias", {r.columns()}});
  if (r.has_projection) inputs.push_back({"projection", {r.width, r.state_width}});
  if (r.has_lengths) inputs.push_back({"lengths", {r.batch}});
  if (is_lstm) outputs.push_back({"cells", cells});
  if (r.gates() > 1) outputs.push_back({"activations", {r.steps, r.batch, 4 * r.width}});
  const DType dtype = call.input(0).dtype;
  check_operands(call, inputs, outputs, dtype);
  if (auto op = contiguous_or_null(make_rnn, c)) return op;
  return make_typed<RnnOp>(call, r, dtype);
}

std::unique_ptr<NativeOp> make_rnn_backward(const NativeCall& c) {
  CallReader call("rnn_backward", c);
  Recurrence r = read_attributes(&call, true);
  if (c.inputs.size() < 3 || c.outputs.empty() || call.input(1).rank != 3 || call.input(1).shape[0] < 1)
    call.fail(ErrorKind::kShape, "it takes grad_states and states [T + 1, N, H] and weight [G, H] at least");
  r.steps = call.input(1).shape[0] - 1;
  r.batch = call.input(1).shape[1];
  r.state_width = call.input(1).shape[2];
  const bool is_lstm = r.kind == Kind::kLstm, is_gru = r.kind == Kind::kGru;
  r.width = r.cell_width = r.has_projection && call.input(2).rank == 2 ? call.input(2).shape[0] / r.gates() : r.state_width;
  const Dims state = {r.batch, r.state_width}, states = {r.steps + 1, r.batch, r.state_width}, cells = {r.steps + 1, r.batch, r.width};
  const Dims gates = {r.steps, r.batch, r.columns()};
  std::vector<std::pair<const char*, Dims>> inputs = {{"grad_states", states}, {"states", states}, {"weight", {r.columns(), r.state_width}}};
  std::vector<std::pair<const char*, Dims>> outputs = {{"grad_gates", gates}, {"grad_h", state}};
  if (is_lstm) inputs.push_back({"cells", cells});
  if (is_lstm || is_gru) inputs.push_back({"activations", {r.steps, r.batch, 4 * r.width}});
  if (r.has_projection) inputs.push_back({"projection", {r.width, r.state_width}});
  if (r.has_lengths) inputs.push_back({"lengths", {r.batch}});
  if (r.has_grad_cells) inputs.push_back({"grad_cells", cells});
  if (is_lstm) outputs.push_back({"grad_c", {r.batch, r.width}});
  if (is_gru) outputs.push_back({"grad_shifts", gates});
  if (r.has_projection) outputs.push_back({"grad_steps", {r.steps, r.batch, r.state_width}});
  const DType dtype = call.input(1).dtype;
  check_operands(call, inputs, outputs, dtype);
  if (auto op = contiguous_or_null(make_rnn_backward, c)) return op;
  return make_typed<RnnBackwardOp>(call, r, dtype);
}

const RegisterNative rnn("rnn", make_rnn);
const RegisterNative rnn_backward("rnn_backward", make_rnn_backward);

}  // namespace
}  // namespace sampan::kernels
