#include "kernels/conv_depthwise.h"

#include <algorithm>
#include <limits>

#include "exec/parallel.h"
#include "kernels/simd.h"

namespace sampan::kernels {
namespace {

constexpr int64_t kLane = kLanes<float>;
constexpr int kVectors = 2;  // of channels: a cache line
constexpr int kPixels = 2;   // side by side; with more the registers do not hold what windows share

// For the gradient to the data images change places and windows are turned round.
struct Geometry {
  int64_t batch, channels;
  int64_t height, width;  // of the image that is read
  int64_t rows, columns;  // of the result
  int64_t kernel_rows, kernel_columns, stride_rows, stride_columns, row_dilation, column_dilation, top, left;

  Geometry(const ConvShape& s, ConvDirection direction)
      : batch(s.batch), channels(s.in_channels), kernel_rows(s.kernel[0]), kernel_columns(s.kernel[1]), stride_rows(s.strides[0]), stride_columns(s.strides[1]),
        row_dilation(s.dilations[0]), column_dilation(s.dilations[1]) {
    const bool to_data = direction == ConvDirection::kBackwardData;
    const Dims &from = to_data ? s.out : s.in, &to = to_data ? s.in : s.out;
    height = from[0], width = from[1];
    rows = to[0], columns = to[1];
    top = to_data ? (kernel_rows - 1) * row_dilation - s.padding_low[0] : s.padding_low[0];
    left = to_data ? (kernel_columns - 1) * column_dilation - s.padding_low[1] : s.padding_low[1];
  }
  int64_t taps() const { return kernel_rows * kernel_columns; }
  int64_t weight_count() const { return taps() * channels; }
};

// Of window positions 0, dilation, 2 dilation, ... from `start` on, those inside [0, size): from first to last.
struct Range {
  int64_t first, last;
};
SAMPAN_INLINE Range inside(int64_t start, int64_t dilation, int64_t count, int64_t size) {
  const int64_t first = start < 0 ? (-start + dilation - 1) / dilation : 0;
  const int64_t last = start >= size ? 0 : (size - start + dilation - 1) / dilation;
  return {std::min(first, count), std::clamp<int64_t>(last, 0, count)};
}

struct Window {
  int64_t rows, columns;            // that lie inside the image
  int64_t line, tap, pixel;         // steps in the image: to the window's next row and column, and to the next result's window
  int64_t weight_line, channels;    // steps in the weights: to the window's next row and column
  bool has_relu;
  float ceiling;
};

// kR results side by side, kV vectors of channels. kRows, kColumns: the window's where they are known; 0 otherwise.
template <int kR, int kV, int kRows, int kColumns>
SAMPAN_INLINE void results(const Window& t, const float* image, const float* weights, const float* bias, float* to) {
  Vec<float> sums[kR][kV];
#pragma GCC unroll 2
  for (int p = 0; p < kR; ++p)
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) sums[p][v] = bias ? load(bias + v * kLane) : Vec<float>{};
  const int64_t rows = kRows ? kRows : t.rows, columns = kColumns ? kColumns : t.columns;
  for (int64_t i = 0; i < rows; ++i)
#pragma GCC unroll 3
    for (int64_t j = 0; j < columns; ++j) {
      const float *x = image + i * t.line + j * t.tap, *w = weights + i * t.weight_line + j * t.channels;
      Vec<float> weight[kV];
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) weight[v] = load(w + v * kLane);
#pragma GCC unroll 2
      for (int p = 0; p < kR; ++p)
#pragma GCC unroll 2
        for (int v = 0; v < kV; ++v) sums[p][v] += load(x + p * t.pixel + v * kLane) * weight[v];
    }
  const Vec<float> zero{}, ceiling = zero + t.ceiling;
#pragma GCC unroll 2
  for (int p = 0; p < kR; ++p)
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) {
      if (t.has_relu) {
        sums[p][v] = sums[p][v] < zero ? zero : sums[p][v];
        sums[p][v] = sums[p][v] > ceiling ? ceiling : sums[p][v];
      }
      store(to + p * t.channels + v * kLane, sums[p][v]);
    }
}

// All channels of kR results side by side.
template <int kR, int kRows, int kColumns>
SAMPAN_INLINE void channels_of(const Window& t, const float* image, const float* weights, const float* bias, float* to) {
  int64_t c = 0;
  for (; c + kVectors * kLane <= t.channels; c += kVectors * kLane) results<kR, kVectors, kRows, kColumns>(t, image + c, weights + c, bias ? bias + c : nullptr, to + c);
  for (; c < t.channels; c += kLane) {
    const int64_t last = std::min(c, t.channels - kLane);  // the last vector overlaps the one before
    results<kR, 1, kRows, kColumns>(t, image + last, weights + last, bias ? bias + last : nullptr, to + last);
  }
}

// Row `h` of one image's results. bias: null without.
SAMPAN_CLONES void row_of(const Geometry& g, const float* image, const float* weights, const float* bias, bool has_relu, float ceiling, int64_t h, float* out) {
  const int64_t top = h * g.stride_rows - g.top, line = g.width * g.channels;
  const Range rows = inside(top, g.row_dilation, g.kernel_rows, g.height);
  const float* first_line = image + (top + rows.first * g.row_dilation) * line;
  const float* first_weights = weights + rows.first * g.kernel_columns * g.channels;
  Window t{std::max<int64_t>(0, rows.last - rows.first), 0, g.row_dilation * line, g.column_dilation * g.channels, g.stride_columns * g.channels, g.kernel_columns * g.channels,
           g.channels, has_relu, ceiling};
  const int64_t reach = (g.kernel_columns - 1) * g.column_dilation + (kPixels - 1) * g.stride_columns;
  for (int64_t w = 0, count; w < g.columns; w += count) {
    const int64_t at = w * g.stride_columns - g.left;
    const Range columns = inside(at, g.column_dilation, g.kernel_columns, g.width);
    t.columns = std::max<int64_t>(0, columns.last - columns.first);
    count = w + kPixels <= g.columns && at >= 0 && at + reach < g.width ? kPixels : 1;
    const float* from = first_line + (at + columns.first * g.column_dilation) * g.channels;
    const float* by = first_weights + columns.first * g.channels;
    float* to = out + w * g.channels;
    if (count == 1)
      channels_of<1, 0, 0>(t, from, by, bias, to);
    else if (t.rows == 3 && t.columns == 3)
      channels_of<kPixels, 3, 3>(t, from, by, bias, to);
    else
      channels_of<kPixels, 0, 0>(t, from, by, bias, to);
  }
}

class DepthwiseWeights final : public NativeOp {
 public:
  DepthwiseWeights(const Geometry& g, const Layout& w, ConvDirection direction)
      : g_(g), channel_(w.strides[0]), row_(w.strides[2]), column_(w.strides[3]), is_turned_(direction == ConvDirection::kBackwardData) {}

  void run(char* const* buffers, char*) const override { run(reinterpret_cast<const float*>(buffers[0]), reinterpret_cast<float*>(buffers[1])); }

  // [window row][window column][channel]
  void run(const float* weights, float* to) const {
    for (int64_t i = 0; i < g_.kernel_rows; ++i)
      for (int64_t j = 0; j < g_.kernel_columns; ++j, to += g_.channels) {
        const float* from = weights + (is_turned_ ? g_.kernel_rows - 1 - i : i) * row_ + (is_turned_ ? g_.kernel_columns - 1 - j : j) * column_;
        for (int64_t c = 0; c < g_.channels; ++c) to[c] = from[c * channel_];
      }
  }

 private:
  Geometry g_;
  int64_t channel_, row_, column_;
  bool is_turned_;
};

class Depthwise final : public NativeOp {
 public:
  Depthwise(const Geometry& g, std::unique_ptr<DepthwiseWeights> weights, const Layout* bias, bool has_relu, float ceiling, size_t operands, Epilogue epilogue)
      : g_(g), weights_(std::move(weights)), bias_step_(bias ? bias->strides[0] : 0), has_bias_(bias != nullptr), has_relu_(has_relu), ceiling_(ceiling), operands_(operands),
        epilogue_(std::move(epilogue)) {}

  size_t scratch_bytes() const override { return static_cast<size_t>(weights_count() + (copies_bias() ? g_.channels : 0)) * 4; }

  void run(char* const* buffers, char* scratch) const override {
    const float* x = reinterpret_cast<const float*>(buffers[0]);
    const float* weights = reinterpret_cast<const float*>(buffers[1]);
    const float* bias = has_bias_ ? reinterpret_cast<const float*>(buffers[2]) : nullptr;
    float *out = reinterpret_cast<float*>(buffers[operands_ - 1]), *space = reinterpret_cast<float*>(scratch);
    if (weights_) {
      weights_->run(weights, space);
      weights = space;
    }
    if (copies_bias()) {
      float* copy = space + weights_count();
      for (int64_t c = 0; c < g_.channels; ++c) copy[c] = bias[c * bias_step_];
      bias = copy;
    }
    const double ns = static_cast<double>(g_.columns * g_.channels * g_.taps()) * 0.03;
    parallel_for(g_.batch * g_.rows, ns, [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u)
        row_of(g_, x + u / g_.rows * g_.height * g_.width * g_.channels, weights, bias, has_relu_, ceiling_, u % g_.rows, out + u * g_.columns * g_.channels);
    });
    if (!epilogue_.empty()) epilogue_.run(buffers + 2 + (has_bias_ ? 1 : 0), buffers[operands_ - 1]);
  }

 private:
  int64_t weights_count() const { return weights_ ? g_.weight_count() : 0; }
  bool copies_bias() const { return has_bias_ && bias_step_ != 1; }

  Geometry g_;
  std::unique_ptr<DepthwiseWeights> weights_;  // null: they come in order
  int64_t bias_step_;
  bool has_bias_, has_relu_;
  float ceiling_;
  size_t operands_;
  Epilogue epilogue_;
};

}  // namespace

bool suits_depthwise(const ConvShape& s, ConvDirection direction) {
  if (s.dtype != DType::k_float32 || s.spatial != 2 || has_wide_registers() || direction == ConvDirection::kBackwardWeights || s.batch == 0) return false;
  if (s.groups != s.in_channels || s.groups != s.out_channels || s.groups < kLane) return false;
  return direction == ConvDirection::kForward || (s.strides[0] == 1 && s.strides[1] == 1);
}

size_t depthwise_weight_bytes(const ConvShape& s) { return static_cast<size_t>(Geometry(s, ConvDirection::kForward).weight_count()) * 4; }

std::unique_ptr<NativeOp> make_conv_depthwise(const NativeCall& call, const ConvShape& shape, ConvDirection direction, bool packed, bool has_bias, const std::vector<EpilogueStep>& first, Epilogue epilogue) {
  const Geometry g(shape, direction);
  auto weights = packed ? nullptr : std::make_unique<DepthwiseWeights>(g, *call.inputs[1], direction);
  const Layout* bias = has_bias ? call.inputs[2].get() : nullptr;
  const float ceiling = !first.empty() && first[0].kind == StepKind::kRelu6 ? 6.f : std::numeric_limits<float>::infinity();
  return std::make_unique<Depthwise>(g, std::move(weights), bias, !first.empty(), ceiling, call.inputs.size() + call.outputs.size(), std::move(epilogue));
}

std::unique_ptr<NativeOp> make_depthwise_weights(const Layout& weight, const ConvShape& shape, ConvDirection direction) {
  return std::make_unique<DepthwiseWeights>(Geometry(shape, direction), weight, direction);
}

}  // namespace sampan::kernels
