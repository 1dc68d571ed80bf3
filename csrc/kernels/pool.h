// Windows of pooling as tables: the same loops then serve plain, dilated and adaptive pooling.
#pragma once
#include "kernels/common.h"

namespace sampan::kernels {

// The windows along one spatial axis: window o covers start[o], start[o] + step, ... below stop[o]; all inside the input.
struct WindowAxis {
  int64_t in, out, step;
  std::vector<int64_t> start, stop;
  std::vector<int64_t> extent;  // what an average counts along this axis: with or without padding
};

struct PoolShape {
  DType dtype;
  bool is_max, with_indices;
  int64_t batch, channels;
  std::vector<WindowAxis> axes;
  int64_t divisor_override;
  int64_t in_size() const;
  int64_t out_size() const;
};

// Reads the attributes of a plain or an adaptive pooling and checks x's shape against out's.
PoolShape read_pool(CallReader& call, const Layout& x, const Layout& out, bool is_adaptive, bool is_backward);

// Contiguous or channels-last, in which pooling runs; anything else becomes channels-last.
LayoutRef pool_layout(const LayoutRef& l);

}  // namespace sampan::kernels
