// Rows of elements from one dtype to another: the only place that knows what a cast means.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace sampan {

// Strides in bytes. The rows may be unaligned only where dst and src have one dtype.
using ConvertRow = void (*)(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t count);

// Integers wrap; floating to integer saturates and NaN gives 0; complex to real keeps the real part; anything but zero is true;
// every other conversion rounds once, to nearest even.
ConvertRow convert_row(DType dst, DType src);

}  // namespace sampan
