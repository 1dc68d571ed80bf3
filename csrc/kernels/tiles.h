// The inner part of a matrix product: tiles of C in registers, over a packed panel of B. Compiled into each caller's clones.
#pragma once
#include <algorithm>

#include "exec/transpose.h"
#include "kernels/simd.h"

namespace sampan::kernels {

constexpr int64_t kTileDepth = 256;  // a group of A's rows (6 or 12 x 256) and the panels of B beside it (256 x 16 or 32) stay in L1

// A panel of B is a cache line wide: two vectors, or one of 512 bits.
template <class T>
constexpr int64_t kTileColumns = 2 * kLanes<T>;

// With two vectors a row: 12 accumulators, and 3 of 16 registers left for operands; with 32 registers, 24.
template <int kBytes>
constexpr int kMostTileRows = kBytes == kWideBytes ? 12 : 6;
constexpr int kTileRows = kMostTileRows<kVectorBytes>;

// What is done to finished sums while they are in the first caches: a bias and another tensor are added, then negative numbers become zero. NaN stays.
template <class T>
struct Finish {
  const T* bias = nullptr;  // for C's first column and those behind it
  const T* add = nullptr;   // for C's first element, with C's strides
  bool has_relu = false;

  explicit operator bool() const { return bias || add || has_relu; }
};

// Rows and columns of C [.., ..] from (row, column) on.
template <class T, int kBytes>
SAMPAN_INLINE void finish_block(const Finish<T>& f, T* c, int64_t c_row, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  using V = Vec<T, kBytes>;
  for (int64_t r = row; r < row + rows; ++r) {
    T* to = c + r * c_row;
    const T* add = f.add ? f.add + r * c_row : nullptr;
    int64_t n = column;
    for (; n + kLanes<T, kBytes> <= column + columns; n += kLanes<T, kBytes>) {
      V v = load<T, kBytes>(to + n);
      if (f.bias) v += load<T, kBytes>(f.bias + n);
      if (add) v += load<T, kBytes>(add + n);
      if (f.has_relu) v = v < V{} ? V{} : v;
      store(to + n, v);
    }
    for (; n < column + columns; ++n) {
      T v = to[n];
      if (f.bias) v += f.bias[n];
      if (add) v += add[n];
      to[n] = f.has_relu && v < T{} ? T{} : v;
    }
  }
}

// Asks for a line of L2 that is soon read, or written; it may lie beyond the array, where nothing happens.
template <class T>
SAMPAN_INLINE void ask_for(const T* base, int64_t items) {
  __builtin_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(base) + static_cast<uintptr_t>(items) * sizeof(T)), 0, 2);
}
template <class T>
SAMPAN_INLINE void ask_to_write(const T* base, int64_t items) {
  __builtin_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(base) + static_cast<uintptr_t>(items) * sizeof(T)), 1, 2);
}

// C tile [kR, kV vectors] = A [kR, depth] B [depth, kV vectors]; the second vector lies b_step and c_step behind the first. kAhead: the
// panels behind these are asked for meanwhile. So are the rows of A and C below these where a tile of
// them is next: too many streams for the processor to see.
template <class T, int kBytes, int kR, int kV, bool kAhead = false>
SAMPAN_INLINE void tile(int64_t depth, const T* a, int64_t a_row, int64_t a_column, const T* b, int64_t b_row, int64_t b_step, T* c, int64_t c_row, int64_t c_step,
                        bool accumulate, bool subtract, bool has_next = true) {
  using V = Vec<T, kBytes>;
  V sums[kR][kV];
  for (int r = 0; r < kR; ++r)
    for (int v = 0; v < kV; ++v) sums[r][v] = V{};
  for (int r = 0; r < kR && has_next; ++r)
    for (int v = 0; v < kV; ++v) ask_to_write(c, (kR + r) * c_row + v * c_step);
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t from = 0; from < depth; from += kLine) {
    if (a_column == 1 && has_next)
      for (int r = 0; r < kR; ++r) ask_for(a, (kR + r) * a_row);
    for (int64_t k = from; k < std::min(depth, from + kLine); ++k) {
      V row[kV];
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) row[v] = load<T, kBytes>(b + v * b_step);
      if constexpr (kAhead && kBytes == kVectorBytes) __builtin_prefetch(b + depth * b_row);
      if constexpr (kAhead && kBytes != kVectorBytes)
#pragma GCC unroll 2
        for (int v = 0; v < kV; ++v) ask_for(b, (kV + v) * b_step);
#pragma GCC unroll 12
      for (int r = 0; r < kR; ++r) {
        const T x = a[r * a_row];
#pragma GCC unroll 2
        for (int v = 0; v < kV; ++v) sums[r][v] += x * row[v];
      }
      a += a_column;
      b += b_row;
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) {
      T* to = c + r * c_row + v * c_step;
      if (subtract) sums[r][v] = -sums[r][v];
      if (accumulate) sums[r][v] += load<T, kBytes>(to);
      store(to, sums[r][v]);
    }
}

// The same for a number of rows up to kR.
template <class T, int kBytes, int kR, int kV, bool kAhead = false>
SAMPAN_INLINE void tile_up_to(int64_t rows, int64_t depth, const T* a, int64_t a_row, int64_t a_column, const T* b, int64_t b_row, int64_t b_step, T* c, int64_t c_row,
                              int64_t c_step, bool accumulate, bool subtract, bool has_next = true) {
  if constexpr (kR > 1)
    if (rows < kR) return tile_up_to<T, kBytes, kR - 1, kV, kAhead>(rows, depth, a, a_row, a_column, b, b_row, b_step, c, c_row, c_step, accumulate, subtract, has_next);
  tile<T, kBytes, kR, kV, kAhead>(depth, a, a_row, a_column, b, b_row, b_step, c, c_row, c_step, accumulate, subtract, has_next);
}

// Up to kMostTileRows rows by one panel of kTileColumns, or, with wide vectors, by two that lie b_panel and c_panel apart.
template <class T, int kBytes, bool kAhead = false>
SAMPAN_INLINE void tile_rows(int64_t rows, int64_t panels, int64_t depth, const T* a, int64_t a_row, int64_t a_column, const T* b, int64_t b_row, int64_t b_panel, T* c,
                             int64_t c_row, int64_t c_panel, bool accumulate, bool subtract, bool has_next = true) {
  constexpr int kR = kMostTileRows<kBytes>;
  if constexpr (kBytes == kVectorBytes) {
    tile_up_to<T, kBytes, kR, 2, kAhead>(rows, depth, a, a_row, a_column, b, b_row, kLanes<T>, c, c_row, kLanes<T>, accumulate, subtract, has_next);
  } else if (panels == 2) {
    tile_up_to<T, kBytes, kR, 2, kAhead>(rows, depth, a, a_row, a_column, b, b_row, b_panel, c, c_row, c_panel, accumulate, subtract, has_next);
  } else {
    tile_up_to<T, kBytes, kR, 1, kAhead>(rows, depth, a, a_row, a_column, b, b_row, 0, c, c_row, 0, accumulate, subtract, has_next);
  }
}
template <int kBytes>
constexpr int64_t kPanelsAtOnce = kBytes / kVectorBytes;

// C [rows, panels] (+)= A [rows, depth] B, panel by panel; rows are cut into strips as even as they can be, since few rows cannot hide the latency of their chains.
template <class T, int kBytes>
SAMPAN_INLINE void tile_panels(int64_t rows, int64_t panels, int64_t depth, const T* a, int64_t a_row, int64_t a_column, const T* b, int64_t b_row, int64_t b_panel, T* c,
                               int64_t c_row, int64_t c_panel, bool accumulate, bool subtract) {
  constexpr int64_t kR = kMostTileRows<kBytes>;
  for (int64_t p = 0; p < panels; p += kPanelsAtOnce<kBytes>) {
    const int64_t count = std::min(kPanelsAtOnce<kBytes>, panels - p);
    for (int64_t m = 0, left = (rows + kR - 1) / kR, height; m < rows; m += height, --left) {
      height = (rows - m + left - 1) / left;
      tile_rows<T, kBytes>(height, count, depth, a + m * a_row, a_row, a_column, b + p * b_panel, b_row, b_panel, c + p * c_panel + m * c_row, c_row, c_panel, accumulate, subtract, m + height < rows);
    }
  }
}

constexpr int64_t kBlockRows = 32 * kTileRows;  // of A that are packed at once: with kTileDepth they take 192 KiB of L2

// Rows of tiles as even as they can be: how many groups of up to kMostTileRows.
template <int kBytes>
struct Groups {
  static constexpr int64_t kRows = kMostTileRows<kBytes>;
  int64_t count, begin[kBlockRows / kRows + 1];
  explicit Groups(int64_t rows) : count((rows + kRows - 1) / kRows) {
    for (int64_t i = 0; i <= count; ++i) begin[i] = rows * i / count;
  }
};

// From one packed group or panel to the next: a line more than it takes, since multiples of a page would fall on the same few places of the caches.
constexpr int64_t spaced(int64_t depth, int64_t width) { return (depth + 1) * width; }

// Rows of A as groups [depth][row of the group] that lie spaced(depth, kRows) apart. Where the rows are the contiguous axis, a step of the depth is read as a
// whole: from one to the next lie whole pages, often.
template <class T, int kBytes>
SAMPAN_INLINE void pack_groups(const T* a, int64_t a_row, int64_t a_column, int64_t depth, const Groups<kBytes>& groups, T* to) {
  constexpr int64_t kRows = Groups<kBytes>::kRows, kL = kLanes<T, kBytes>;
  const int64_t step = spaced(depth, kRows), whole = a_row == 1 ? groups.count - 2 : 0;  // groups behind which there are rows to read in excess
  for (int64_t k = 0; k < depth; ++k, a += a_column, to += kRows) {
    int64_t i = 0;
    // Numbers in excess are overwritten by the next step's.
    for (; i < whole; ++i)
      for (int64_t r = 0; r < kRows; r += kL) store(to + i * step + r, load<T, kBytes>(a + groups.begin[i] + r));
    for (; i < groups.count; ++i)
      for (int64_t m = groups.begin[i], r = 0; m < groups.begin[i + 1]; ++m, ++r) to[i * step + r] = a[m * a_row];
  }
}

// B [depth, columns] into panels of kTileColumns, the last one filled up with zeros.
template <class T>
SAMPAN_INLINE void pack_columns(const T* b, int64_t b_row, int64_t b_column, int64_t depth, int64_t columns, T* to) {
  constexpr int64_t kWidth = kTileColumns<T>;
  for (int64_t n = 0; n < columns; n += kWidth, to += depth * kWidth) {
    const int64_t width = std::min(kWidth, columns - n);
    const T* from = b + n * b_column;
    if (b_column == 1 && width == kWidth) {
      for (int64_t k = 0; k < depth; ++k) {
        store(to + k * kWidth, load(from + k * b_row));
        store(to + k * kWidth + kLanes<T>, load(from + k * b_row + kLanes<T>));
      }
    } else if (b_row == 1 && width == kWidth && sizeof(T) >= 4) {
      constexpr int64_t kItem = sizeof(T);
      transpose_2d(reinterpret_cast<char*>(to), kWidth * kItem, reinterpret_cast<const char*>(from), b_column * kItem, depth, kWidth, kItem);
    } else {
      for (int64_t j = 0; j < width; ++j)
        for (int64_t k = 0; k < depth; ++k) to[k * kWidth + j] = from[k * b_row + j * b_column];
      for (int64_t j = width; j < kWidth; ++j)
        for (int64_t k = 0; k < depth; ++k) to[k * kWidth + j] = T{};
    }
  }
}

}  // namespace sampan::kernels
