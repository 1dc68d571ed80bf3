// Copies between any two layouts of one shape, with a cast where the dtypes differ.
#pragma once
#include "tensor/tensor.h"

namespace sampan {

// The memory of dst and src must not overlap. Runs on several threads where that pays.
void copy_elements(char* dst, const Layout& dst_layout, const char* src, const Layout& src_layout);
// value: one element of value_dtype, cast to the layout's.
void fill_elements(char* dst, const Layout& layout, const void* value, DType value_dtype);

// A new contiguous tensor of dtype with src's elements.
Ref<Tensor> copy_tensor(const Tensor& src, DType dtype);
// Writes src's elements, broadcast to dst's shape, into dst; handles overlapping memory. Does not count a version.
void copy_into(const Tensor& dst, const Tensor& src);

}  // namespace sampan
