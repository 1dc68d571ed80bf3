// Maxima of windows over float32 channels that lie together.
#include "kernels/pool.h"

// GCC takes a vector that the target lacks, and so assigns in parts, for read before it is written.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace sampan::kernels {
namespace {

// kLength floats side by side, at most one vector, and as many positions.
template <int kLength>
struct Few {
  typedef float Values __attribute__((vector_size(kLength * 4)));
  typedef int32_t Positions __attribute__((vector_size(kLength * 4)));
  typedef float AnyValues __attribute__((vector_size(kLength * 4), aligned(4), may_alias));
  template <class Index>
  struct Of {
    typedef Index Vector __attribute__((vector_size(kLength * sizeof(Index))));
    typedef Index Any __attribute__((vector_size(kLength * sizeof(Index)), aligned(alignof(Index)), may_alias));
  };
};

// One window: rows of the input, as numbers over all axes but the last, and columns.
struct Window {
  int64_t depth_begin = 0, depth_end = 1, depth_step = 1, row_begin = 0, row_end = 1, row_step = 1, rows = 1, column_begin, column_end, column_step, columns;
  Window(const std::vector<WindowAxis>& axes, const int64_t* o) {
    const size_t n = axes.size();
    if (n > 2) read(axes[n - 3], o[n - 3], &depth_begin, &depth_end, &depth_step);
    if (n > 1) {
      read(axes[n - 2], o[n - 2], &row_begin, &row_end, &row_step);
      rows = axes[n - 2].in;
    }
    columns = axes[n - 1].in;
    move_to(axes[n - 1], o[n - 1]);
  }
  // The next windows of a row of windows.
  void move_to(const WindowAxis& a, int64_t o) { read(a, o, &column_begin, &column_end, &column_step); }

 private:
  static void read(const WindowAxis& a, int64_t o, int64_t* begin, int64_t* end, int64_t* step) {
    *begin = a.start[static_cast<size_t>(o)], *end = a.stop[static_cast<size_t>(o)], *step = a.step;
  }
};

// The running maxima of up to 32 channels stay in registers, and their positions, which must fit 32 bits.
template <bool with_positions, int kVectors, int kLength, class Index>
SAMPAN_INLINE void max_vectors(const Window& w, const float* x, int64_t pixel, float* out, Index* at) {
  using F = Few<kLength>;
  using Indices = typename F::template Of<Index>;
  typename F::Values best[kVectors];
  typename F::Positions where[with_positions ? kVectors : 1];
  // The first position counts twice: it does not beat itself, unless it is NaN, and then it stays where it is.
  const int64_t first = (w.depth_begin * w.rows + w.row_begin) * w.columns + w.column_begin;
  const typename F::Positions start = typename F::Positions{} + static_cast<int32_t>(first);
  for (int i = 0; i < kVectors; ++i) {
    best[i] = *reinterpret_cast<const typename F::AnyValues*>(x + first * pixel + i * kLength);
    if constexpr (with_positions) where[i] = start;
  }
  for (int64_t d = w.depth_begin; d < w.depth_end; d += w.depth_step)
    for (int64_t h = w.row_begin; h < w.row_end; h += w.row_step) {
      const int64_t line = (d * w.rows + h) * w.columns;
      for (int64_t c = w.column_begin; c < w.column_end; c += w.column_step) {
        const float* row = x + (line + c) * pixel;
        const typename F::Positions here = typename F::Positions{} + static_cast<int32_t>(line + c);
#pragma GCC unroll 4
        for (int i = 0; i < kVectors; ++i) {
          const typename F::Values v = *reinterpret_cast<const typename F::AnyValues*>(row + i * kLength);
          if constexpr (with_positions) {
            const typename F::Positions wins = (v > best[i]) | ((v != v) & (best[i] == best[i]));
            best[i] = wins ? v : best[i];
            where[i] = wins ? here : where[i];
          } else {
            best[i] = ((v > best[i]) | (v != v)) ? v : best[i];
          }
        }
      }
    }
  for (int i = 0; i < kVectors; ++i) {
    *reinterpret_cast<typename F::AnyValues*>(out + i * kLength) = best[i];
    if constexpr (with_positions) *reinterpret_cast<typename Indices::Any*>(at + i * kLength) = __builtin_convertvector(where[i], typename Indices::Vector);
  }
}

// What is left of the last vector is taken by one that overlaps what is done already: a maximum may be found twice.
template <bool with_positions, class Index>
SAMPAN_INLINE void max_channels(const Window& w, const float* x, int64_t pixel, float* out, Index* at, int64_t n) {
  constexpr int kL = kLanes<float>, kHalf = kL / 2;
  if (n >= kL) {
    int64_t c = 0;
    for (; c + 4 * kL <= n; c += 4 * kL) max_vectors<with_positions, 4, kL>(w, x + c, pixel, out + c, at + c);
    for (; c + kL <= n; c += kL) max_vectors<with_positions, 1, kL>(w, x + c, pixel, out + c, at + c);
    if (c < n) max_vectors<with_positions, 1, kL>(w, x + n - kL, pixel, out + n - kL, at + n - kL);
    return;
  }
  if (n >= kHalf) {
    max_vectors<with_positions, 1, kHalf>(w, x, pixel, out, at);
    if (n > kHalf) max_vectors<with_positions, 1, kHalf>(w, x + n - kHalf, pixel, out + n - kHalf, at + n - kHalf);
    return;
  }
  for (int64_t c = 0; c < n; ++c) max_vectors<with_positions, 1, 1>(w, x + c, pixel, out + c, at + c);
}

template <bool with_positions, class Index>
SAMPAN_INLINE void windows_in_order(const PoolShape& p, Position at, int64_t count, const float* image, int64_t channels, float* out, Index* indices) {
  const WindowAxis& along = p.axes.back();
  int64_t& column = at.o[p.axes.size() - 1];
  while (count > 0) {
    Window w(p.axes, at.o);
    for (; count > 0 && column < along.out; --count, ++column, out += channels) {
      w.move_to(along, column);
      max_channels<with_positions>(w, image, channels, out, indices, channels);
      if constexpr (with_positions) indices += channels;
    }
    column = along.out - 1;
    at.next(p.axes);
  }
}

}  // namespace

SAMPAN_CLONES void max_floats(const PoolShape& p, const int64_t* o, const float* x, int64_t pixel, float* out, int32_t* at, int64_t n) {
  max_channels<true>(Window(p.axes, o), x, pixel, out, at, n);
}

SAMPAN_CLONES void max_run(const PoolShape& p, Position at, int64_t count, const float* image, int64_t channels, float* out) {
  windows_in_order<false, int32_t>(p, at, count, image, channels, out, nullptr);
}
SAMPAN_CLONES void max_run(const PoolShape& p, Position at, int64_t count, const float* image, int64_t channels, float* out, int32_t* indices) {
  windows_in_order<true>(p, at, count, image, channels, out, indices);
}
SAMPAN_CLONES void max_run(const PoolShape& p, Position at, int64_t count, const float* image, int64_t channels, float* out, int64_t* indices) {
  windows_in_order<true>(p, at, count, image, channels, out, indices);
}

}  // namespace sampan::kernels
