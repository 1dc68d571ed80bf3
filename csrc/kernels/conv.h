// What the convolution natives share: the shape of one convolution, checked, whichever of its three directions runs.
#pragma once
#include <array>

#include "kernels/epilogue.h"

namespace sampan::kernels {

struct ConvShape {
  DType dtype;
  int spatial;  // 1, 2 or 3 axes
  int64_t batch, in_channels, out_channels, groups;
  Dims in, out, kernel, strides, dilations, padding_low, padding_high;
  int64_t kernel_size() const { return product(kernel.data(), kernel.data() + kernel.size()); }
  int64_t out_size() const { return product(out.data(), out.data() + out.size()); }
};

// The spatial axes as three, those that are missing before the others.
struct ThreeAxes {
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, padding{}, dilation{1, 1, 1};

  explicit ThreeAxes(const ConvShape& s) {
    for (int d = 0; d < s.spatial; ++d) {
      const size_t from = static_cast<size_t>(d), to = static_cast<size_t>(d + 3 - s.spatial);
      in[to] = s.in[from], out[to] = s.out[from], kernel[to] = s.kernel[from];
      stride[to] = s.strides[from], padding[to] = s.padding_low[from], dilation[to] = s.dilations[from];
    }
  }
};

// to[i] = the sum of the copies' entries i, in order, for i in [begin, end); copies lie `step` numbers apart. `to` may be the first copy.
void add_copies(const float* from, int64_t step, int64_t count, int64_t begin, int64_t end, float* to);
void add_copies(const float* from, int64_t step, int64_t count, int64_t begin, int64_t end, Half* to);
void add_copies(const float* from, int64_t step, int64_t count, int64_t begin, int64_t end, BFloat16* to);

// Reads the attributes that all directions have and checks the three shapes against each other. x and out are the forward's.
ConvShape read_conv_shape(CallReader& call, const Layout& x, const Dims& weight, const Layout& out);

bool is_channels_last(const Layout& l);
// The same, whatever the strides of axes of length 1 say.
bool lies_channels_last(const Layout& l);
LayoutRef channels_last_layout(DType dtype, const Dims& shape);

enum class ConvDirection { kForward, kBackwardData, kBackwardWeights };

// float32 and float64 by columns and the project's own product, every corner case. Operands as the native's; x and out lie channels-last,
// the weight has any strides. The epilogue adds a bias too.
std::unique_ptr<NativeOp> make_conv_by_columns(const CallReader& call, const ConvShape& shape, ConvDirection direction, bool has_bias, Epilogue epilogue);

}  // namespace sampan::kernels
