// Maxima of windows over float32 channels that lie together.
#include "kernels/pool.h"

// GCC takes a vector that the target lacks, and so assigns in parts, for read before it is written.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace sampan::kernels {
namespace {

// kLength floats side by side, at most one vector.
template <int kLength>
struct Few {
  typedef float Values __attribute__((vector_size(kLength * 4)));
  typedef int32_t Positions __attribute__((vector_size(kLength * 4)));
  typedef float AnyValues __attribute__((vector_size(kLength * 4), aligned(4), may_alias));
  typedef int32_t AnyPositions __attribute__((vector_size(kLength * 4), aligned(4), may_alias));
};

// One window, its bounds read once: rows of the input, as numbers over all axes but the last, and columns.
struct Window {
  int64_t depth_begin, depth_end, depth_step, row_begin, row_end, row_step, rows, column_begin, column_end, column_step, columns;
  Window(const std::vector<WindowAxis>& axes, const int64_t* o) {
    const size_t n = axes.size();
    const auto read = [&](size_t from_end, int64_t* begin, int64_t* end, int64_t* step, int64_t* length) {
      if (from_end > n) {
        *begin = 0, *end = *step = *length = 1;
        return;
      }
      const WindowAxis& a = axes[n - from_end];
      const size_t at = static_cast<size_t>(o[n - from_end]);
      *begin = a.start[at], *end = a.stop[at], *step = a.step, *length = a.in;
    };
    int64_t depth;
    read(3, &depth_begin, &depth_end, &depth_step, &depth);
    read(2, &row_begin, &row_end, &row_step, &rows);
    read(1, &column_begin, &column_end, &column_step, &columns);
  }
};

// The running maxima of up to 32 channels stay in registers, and their positions, which must fit 32 bits.
template <bool with_positions, int kVectors, int kLength = kLanes<float>>
SAMPAN_INLINE void max_vectors(const Window& w, const float* x, int64_t pixel, float* out, int32_t* at) {
  using F = Few<kLength>;
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
    if constexpr (with_positions) *reinterpret_cast<typename F::AnyPositions*>(at + i * kLength) = where[i];
  }
}

// What is left of the last vector is taken by one that overlaps what is done already: a maximum may be found twice.
template <bool with_positions>
SAMPAN_INLINE void max_channels(const PoolShape& p, const int64_t* o, const float* x, int64_t pixel, float* out, int32_t* at, int64_t n) {
  constexpr int64_t kL = kLanes<float>, kHalf = kL / 2;
  const Window w(p.axes, o);
  if (n >= kL) {
    int64_t c = 0;
    for (; c + 4 * kL <= n; c += 4 * kL) max_vectors<with_positions, 4>(w, x + c, pixel, out + c, at + c);
    for (; c + kL <= n; c += kL) max_vectors<with_positions, 1>(w, x + c, pixel, out + c, at + c);
    if (c < n) max_vectors<with_positions, 1>(w, x + n - kL, pixel, out + n - kL, at + n - kL);
    return;
  }
  if (n >= kHalf) {
    max_vectors<with_positions, 1, kHalf>(w, x, pixel, out, at);
    if (n > kHalf) max_vectors<with_positions, 1, kHalf>(w, x + n - kHalf, pixel, out + n - kHalf, at + n - kHalf);
    return;
  }
  for (int64_t c = 0; c < n; ++c) max_vectors<with_positions, 1, 1>(w, x + c, pixel, out + c, at + c);
}

}  // namespace

SAMPAN_CLONES void max_floats(const PoolShape& p, const int64_t* o, const float* x, int64_t pixel, float* out, int32_t* at, int64_t n) {
  if (at)
    max_channels<true>(p, o, x, pixel, out, at, n);
  else
    max_channels<false>(p, o, x, pixel, out, at, n);
}

SAMPAN_CLONES void max_run(const PoolShape& p, Position at, int64_t count, const float* image, int64_t channels, float* out) {
  for (; count > 0; --count, at.next(p.axes), out += channels) max_channels<false>(p, at.o, image, channels, out, nullptr, channels);
}

}  // namespace sampan::kernels
