#include "exec/transpose.h"

#include <algorithm>
#include <cstring>
#include <utility>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace sampan {

namespace {

struct Wide {
  uint64_t words[2];
};

template <class T>
using Vector __attribute__((vector_size(16))) = T;

template <class T, int... lane>
Vector<T> interleave_low(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  constexpr int n = sizeof...(lane);
  return __builtin_shufflevector(a, b, (lane / 2 + (lane % 2) * n)...);
}
template <class T, int... lane>
Vector<T> interleave_high(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  constexpr int n = sizeof...(lane);
  return __builtin_shufflevector(a, b, (n / 2 + lane / 2 + (lane % 2) * n)...);
}

// An n x n tile in n registers: log2(n) perfect shuffles of the rows are a transpose.
template <class T>
inline void transpose_tile(char* dst, int64_t dst_stride, const char* src, int64_t src_stride) {
  constexpr int n = 16 / sizeof(T);
  if constexpr (n == 1) {
    std::memcpy(dst, src, 16);
  } else {
    constexpr auto lanes = std::make_integer_sequence<int, n>();
    Vector<T> rows[n], next[n];
    for (int i = 0; i < n; ++i) std::memcpy(&rows[i], src + i * src_stride, 16);
#pragma GCC unroll 4
    for (int stage = n; stage > 1; stage /= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < n / 2; ++i) {
        next[2 * i] = interleave_low<T>(rows[i], rows[i + n / 2], lanes);
        next[2 * i + 1] = interleave_high<T>(rows[i], rows[i + n / 2], lanes);
      }
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) rows[i] = next[i];
    }
    for (int i = 0; i < n; ++i) std::memcpy(dst + i * dst_stride, &rows[i], 16);
  }
}

// Writes a whole line past the caches, which a plain write would first read it into.
inline void stream_line(char* dst, const char* src) {
#if defined(__SSE2__)
  for (int k = 0; k < 64; k += 16) _mm_stream_si128(reinterpret_cast<__m128i*>(dst + k), _mm_load_si128(reinterpret_cast<const __m128i*>(src + k)));
#else
  std::memcpy(dst, src, 64);
#endif
}

// A block of one cache line in each direction, by way of a small buffer: lines at power-of-two strides share a few places of the first-level cache,
// so each is read whole, or written whole, before the next one can push it out.
template <class T, bool streams>
inline void transpose_block(char* dst, int64_t dst_stride, const char* src, int64_t src_stride) {
  constexpr int64_t n = 16 / sizeof(T), block = 64 / sizeof(T), size = sizeof(T);
  alignas(64) char buffer[block * 64];
  // The next block along the columns: no hardware prefetcher follows strides that cross pages.
  for (int64_t k = 0; k < block; ++k) {
    __builtin_prefetch(src + (block + k) * src_stride);
    if (!streams) __builtin_prefetch(dst + k * dst_stride + 64, 1);
  }
  for (int64_t j = 0; j < block; j += n) {
    for (int64_t i = 0; i < block; i += n) transpose_tile<T>(buffer + i * 64 + j * size, 64, src + j * src_stride + i * size, src_stride);
  }
  for (int64_t i = 0; i < block; ++i) {
    if constexpr (streams)
      stream_line(dst + i * dst_stride, buffer + i * 64);
    else
      std::memcpy(dst + i * dst_stride, buffer + i * 64, 64);
  }
}

template <class T>
void transpose_plain(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) std::memcpy(dst + i * dst_stride + j * sizeof(T), src + j * src_stride + i * sizeof(T), sizeof(T));
  }
}

template <class T, bool streams>
void transpose(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows, int64_t columns) {
  constexpr int64_t block = 64 / sizeof(T), n = 16 / sizeof(T), size = sizeof(T);
  const int64_t block_rows = rows / block * block, block_columns = columns / block * block;
  for (int64_t j = 0; j < block_columns; j += block) {
    for (int64_t i = 0; i < block_rows; i += block) transpose_block<T, streams>(dst + i * dst_stride + j * size, dst_stride, src + j * src_stride + i * size, src_stride);
  }
  // What blocks do not cover: tiles, then single elements.
  const int64_t tiled_rows = rows / n * n, tiled_columns = columns / n * n;
  for (int64_t i = 0; i < tiled_rows; i += n) {
    for (int64_t j = i < block_rows ? block_columns : 0; j < tiled_columns; j += n) {
      transpose_tile<T>(dst + i * dst_stride + j * size, dst_stride, src + j * src_stride + i * size, src_stride);
    }
  }
  transpose_plain<T>(dst + tiled_columns * size, dst_stride, src + tiled_columns * src_stride, src_stride, tiled_rows, columns - tiled_columns);
  transpose_plain<T>(dst + tiled_rows * dst_stride, dst_stride, src + tiled_rows * size, src_stride, rows - tiled_rows, columns);
}

}  // namespace

namespace {

template <bool streams>
void transpose_items(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows, int64_t columns, size_t item_size) {
  switch (item_size) {
    case 1: return transpose<uint8_t, streams>(dst, dst_stride, src, src_stride, rows, columns);
    case 2: return transpose<uint16_t, streams>(dst, dst_stride, src, src_stride, rows, columns);
    case 4: return transpose<uint32_t, streams>(dst, dst_stride, src, src_stride, rows, columns);
    case 8: return transpose<uint64_t, streams>(dst, dst_stride, src, src_stride, rows, columns);
    default: return transpose<Wide, streams>(dst, dst_stride, src, src_stride, rows, columns);
  }
}

}  // namespace

void transpose_2d(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows, int64_t columns, size_t item_size, bool streams) {
  if (!streams || (reinterpret_cast<uintptr_t>(dst) | static_cast<uintptr_t>(dst_stride)) % 64 != 0)
    return transpose_items<false>(dst, dst_stride, src, src_stride, rows, columns, item_size);
  transpose_items<true>(dst, dst_stride, src, src_stride, rows, columns, item_size);
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace sampan
