// The inner part of a matrix product: tiles of C in registers, over a packed panel of B. Compiled into each caller's clones.
#pragma once
#include <algorithm>

#include "exec/transpose.h"
#include "kernels/simd.h"

namespace sampan::kernels {

constexpr int kTileRows = 6;          // with two vectors a row: 12 accumulators, and 3 of 16 registers left for operands
constexpr int64_t kTileDepth = 256;  // a packed panel of A (6 x 256) and one of B (256 x 16) stay in L1

template <class T>
constexpr int64_t kTileColumns = 2 * kLanes<T>;

// C tile [kR, kTileColumns] = A [kR, depth] B [depth, kTileColumns]; B's rows are contiguous. kAhead: B is read for the last time, and as many of its rows
// behind it are asked for meanwhile.
template <class T, int kR, bool kAhead = false>
SAMPAN_INLINE void tile(int64_t depth, const T* a, int64_t a_row, int64_t a_column, const T* b, int64_t b_row, T* c, int64_t c_row, bool accumulate,
                        bool subtract) {
  Vec<T> left[kR], right[kR];
  for (int r = 0; r < kR; ++r) left[r] = right[r] = Vec<T>{};
  for (int r = 0; r < kR; ++r) __builtin_prefetch(c + r * c_row, 1);
  for (int64_t k = 0; k < depth; ++k) {
    const Vec<T> b0 = load(b), b1 = load(b + kLanes<T>);
    if constexpr (kAhead) __builtin_prefetch(b + depth * b_row);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      const T v = a[r * a_row];
      left[r] += v * b0;
      right[r] += v * b1;
    }
    a += a_column;
    b += b_row;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    T* row = c + r * c_row;
    if (subtract) {
      left[r] = -left[r];
      right[r] = -right[r];
    }
    if (accumulate) {
      left[r] += load(row);
      right[r] += load(row + kLanes<T>);
    }
    store(row, left[r]);
    store(row + kLanes<T>, right[r]);
  }
}

template <class T, bool kAhead = false>
SAMPAN_INLINE void tile_rows(int rows, int64_t depth, const T* a, int64_t a_row, int64_t a_column, const T* b, int64_t b_row, T* c, int64_t c_row,
                             bool accumulate, bool subtract) {
  switch (rows) {
    case 6: return tile<T, 6, kAhead>(depth, a, a_row, a_column, b, b_row, c, c_row, accumulate, subtract);
    case 5: return tile<T, 5, kAhead>(depth, a, a_row, a_column, b, b_row, c, c_row, accumulate, subtract);
    case 4: return tile<T, 4, kAhead>(depth, a, a_row, a_column, b, b_row, c, c_row, accumulate, subtract);
    case 3: return tile<T, 3, kAhead>(depth, a, a_row, a_column, b, b_row, c, c_row, accumulate, subtract);
    case 2: return tile<T, 2, kAhead>(depth, a, a_row, a_column, b, b_row, c, c_row, accumulate, subtract);
    default: return tile<T, 1, kAhead>(depth, a, a_row, a_column, b, b_row, c, c_row, accumulate, subtract);
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
