// Two-dimensional transposes of elements that are only moved.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sampan {

// dst[i * dst_stride + j] = src[j * src_stride + i] for i < rows, j < columns, with strides in bytes and elements of item_size
// (1, 2, 4, 8 or 16) bytes next to each other along j in dst and along i in src.
// streams: whole lines go to memory past the caches.
void transpose_2d(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows, int64_t columns, size_t item_size, bool streams = false);

}  // namespace sampan
