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

// Output positions in order, as one index for each axis.
struct Position {
  int64_t o[3] = {0, 0, 0};
  void seek(const std::vector<WindowAxis>& axes, int64_t flat) {
    for (size_t d = axes.size(); d-- > 0;) {
      o[d] = flat % axes[d].out;
      flat /= axes[d].out;
    }
  }
  void next(const std::vector<WindowAxis>& axes) { carry(axes, axes.size()); }
  void next_row(const std::vector<WindowAxis>& axes) { carry(axes, axes.size() - 1); }
  void carry(const std::vector<WindowAxis>& axes, size_t d) {
    while (d-- > 0) {
      if (++o[d] < axes[d].out) return;
      o[d] = 0;
    }
  }
};

// The maxima of one output position over n channels that lie together, and where they are.
void max_floats(const PoolShape& p, const int64_t* o, const float* x, int64_t pixel, float* out, int32_t* at, int64_t n);
// `count` output positions of one image from `at` on, all channels: the maxima, and where they are in an image of fewer than 2^31 positions.
void max_run(const PoolShape& p, Position at, int64_t count, const float* image, int64_t channels, float* out);
void max_run(const PoolShape& p, Position at, int64_t count, const float* image, int64_t channels, float* out, int32_t* indices);
void max_run(const PoolShape& p, Position at, int64_t count, const float* image, int64_t channels, float* out, int64_t* indices);

}  // namespace sampan::kernels
