#include "kernels/conv_depthwise.h"

#include <algorithm>

#include "exec/parallel.h"
#include "exec/transpose.h"
#include "kernels/simd.h"

namespace sampan::kernels {
namespace {

constexpr int kPixels = 7;  // side by side: with the weights of a window's row they fit 16 registers, and divide the widths that images commonly have

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
  // Columns that the last window needs beyond the image.
  int64_t right() const { return (columns - 1) * stride_columns + (kernel_columns - 1) * column_dilation + 1 - left - width; }
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
  int64_t line, tap;                // steps in the image, to the window's next row and column
  int64_t weight_line, channels;    // steps in the weights: to the window's next row and column
  bool has_relu;
};

template <int kBytes>
SAMPAN_INLINE Vec<float, kBytes> finished(const Window& t, Vec<float, kBytes> v) {
  using V = Vec<float, kBytes>;
  const V zero{};
  if (t.has_relu) v = v < zero ? zero : v;
  return v;
}

// One result, any window.
template <int kBytes>
SAMPAN_INLINE void result(const Window& t, const float* image, const float* weights, const float* bias, float* to) {
  using V = Vec<float, kBytes>;
  V sum = bias ? load<float, kBytes>(bias) : V{};
  for (int64_t i = 0; i < t.rows; ++i)
    for (int64_t j = 0; j < t.columns; ++j) sum += load<float, kBytes>(image + i * t.line + j * t.tap) * load<float, kBytes>(weights + i * t.weight_line + j * t.channels);
  store(to, finished<kBytes>(t, sum));
}

// kPixels results side by side of windows that are kColumns wide and kStride apart: a pixel is read once for all windows that it is in. Columns of the image
// before `low` and from `high` on lie outside.
template <int kBytes, int kColumns, int kStride>
SAMPAN_INLINE void results(const Window& t, const float* image, const float* weights, const float* bias, float* to, int64_t low, int64_t high) {
  using V = Vec<float, kBytes>;
  constexpr int kSpan = (kPixels - 1) * kStride + kColumns;
  V sums[kPixels];
  for (int p = 0; p < kPixels; ++p) sums[p] = bias ? load<float, kBytes>(bias) : V{};
  for (int64_t i = 0; i < t.rows; ++i, image += t.line, weights += t.weight_line) {
    V w[kColumns];
#pragma GCC unroll 5
    for (int j = 0; j < kColumns; ++j) w[j] = load<float, kBytes>(weights + j * t.channels);
#pragma GCC unroll 20
    for (int k = 0; k < kSpan; ++k) {
      // Only the outermost columns can lie outside.
      if ((k < kColumns && k < low) || (k >= kSpan - kColumns && k >= high)) continue;
      const V x = load<float, kBytes>(image + k * t.channels);
#pragma GCC unroll 5
      for (int j = 0; j < kColumns; ++j)
        if (k >= j && (k - j) % kStride == 0 && (k - j) / kStride < kPixels) sums[(k - j) / kStride] += x * w[j];
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) store(to + p * t.channels, finished<kBytes>(t, sums[p]));
}

// f(channel) for whole vectors of them; the last one overlaps the one before.
template <int kBytes, class F>
SAMPAN_INLINE void each_vector(int64_t channels, const F& f) {
  constexpr int64_t kL = kLanes<float, kBytes>;
  for (int64_t c = 0; c < channels; c += kL) f(std::min(c, channels - kL));
}

// Row `h` of one image's results. bias: null without. kColumns, kStride: the window's where blocks of results are computed together, 0 otherwise.
template <int kBytes, int kColumns, int kStride>
SAMPAN_INLINE void row_of(const Geometry& g, const float* image, const float* weights, const float* bias, bool has_relu, int64_t h, float* out) {
  const int64_t top = h * g.stride_rows - g.top, line = g.width * g.channels;
  const Range rows = inside(top, g.row_dilation, g.kernel_rows, g.height);
  const float* first_line = image + (top + rows.first * g.row_dilation) * line;
  const float* first_weights = weights + rows.first * g.kernel_columns * g.channels;
  Window t{std::max<int64_t>(0, rows.last - rows.first), 0, g.row_dilation * line, g.column_dilation * g.channels, g.kernel_columns * g.channels, g.channels, has_relu};
  if constexpr (kColumns > 0) {
    for (int64_t w = 0; w < g.columns; w += kPixels) {
      const int64_t first = std::min(w, g.columns - kPixels), at = first * kStride - g.left;  // the last block overlaps the one before
      each_vector<kBytes>(g.channels, [&](int64_t c) SAMPAN_INLINED {
        results<kBytes, kColumns, kStride>(t, first_line + at * g.channels + c, first_weights + c, bias ? bias + c : nullptr, out + first * g.channels + c, -at, g.width - at);
      });
    }
  } else {
    for (int64_t w = 0; w < g.columns; ++w) {
      const int64_t at = w * g.stride_columns - g.left;
      const Range columns = inside(at, g.column_dilation, g.kernel_columns, g.width);
      t.columns = std::max<int64_t>(0, columns.last - columns.first);
      const float* from = first_line + (at + columns.first * g.column_dilation) * g.channels;
      each_vector<kBytes>(g.channels, [&](int64_t c) SAMPAN_INLINED {
        result<kBytes>(t, from + c, first_weights + columns.first * g.channels + c, bias ? bias + c : nullptr, out + w * g.channels + c);
      });
    }
  }
}

constexpr int kTaps = 3;
constexpr int64_t kMostDown = 512;  // channels: with more, the lines of neighbouring pixels fall on the same few places of the first cache

// Rows [begin, end) of kPixels results side by side, windows of 3 x 3 pixels, from top to bottom: a line of the image is read once, for the three lines of results
// that it is part of. 32 registers of 512 bits hold the sums of these, and the weights.
SAMPAN_INLINE void down(const Geometry& g, const Window& t, const float* image, const float* weights, const float* bias, int64_t begin, int64_t end, int64_t first, float* out) {
  constexpr int kBytes = kWideBytes, kP = kPixels, kSpan = kP + kTaps - 1;
  using V = Vec<float, kBytes>;
  const int64_t at = first - g.left, low = -at, high = g.width - at;
  V w[kTaps][kTaps], sums[kTaps][kP];  // sums[i]: of the results whose window's row i is read now
  for (int i = 0; i < kTaps; ++i)
    for (int j = 0; j < kTaps; ++j) w[i][j] = load<float, kBytes>(weights + (i * kTaps + j) * g.channels);
  const V start = bias ? load<float, kBytes>(bias) : V{};
  for (int i = 0; i < kTaps; ++i)
    for (int p = 0; p < kP; ++p) sums[i][p] = start;
  for (int64_t h = begin - (kTaps - 1); h < end; ++h) {  // the results that are finished now
    const int64_t row = h - g.top + kTaps - 1;
    if (row >= 0 && row < g.height) {
      const float* x = image + (row * g.width + at) * g.channels;
#pragma GCC unroll 9
      for (int k = 0; k < kSpan; ++k) {
        if ((k < kTaps && k < low) || (k >= kSpan - kTaps && k >= high)) continue;  // only the outermost columns can lie outside
        const V v = load<float, kBytes>(x + k * g.channels);
#pragma GCC unroll 3
        for (int i = 0; i < kTaps; ++i)
#pragma GCC unroll 3
          for (int j = 0; j < kTaps; ++j)
            if (k >= j && k - j < kP) sums[i][k - j] += v * w[i][j];
      }
    }
    if (h >= begin) {
      float* to = out + (h * g.columns + first) * g.channels;
#pragma GCC unroll 7
      for (int p = 0; p < kP; ++p) store(to + p * g.channels, finished<kBytes>(t, sums[kTaps - 1][p]));
    }
#pragma GCC unroll 7
    for (int p = 0; p < kP; ++p) sums[2][p] = sums[1][p], sums[1][p] = sums[0][p], sums[0][p] = start;
  }
}

// Rows [begin, end) of one image's results. bias: null without.
template <int kBytes>
SAMPAN_INLINE void rows_of(const Geometry& g, const float* image, const float* weights, const float* bias, bool has_relu, int64_t begin, int64_t end, float* out) {
  const bool is_plain = g.column_dilation == 1 && std::max(g.left, g.right()) < g.kernel_columns;
  const bool is_three = is_plain && g.kernel_columns == 3, is_wide = g.columns >= kPixels;
  if constexpr (kBytes == kWideBytes) {
    if (is_wide && is_three && g.kernel_rows == 3 && g.row_dilation == 1 && g.stride_rows == 1 && g.stride_columns == 1 && g.channels <= kMostDown) {
      const Window t{0, 0, 0, 0, 0, 0, has_relu};
      for (int64_t w = 0; w < g.columns; w += kPixels) {
        const int64_t first = std::min(w, g.columns - kPixels);  // the last block overlaps the one before
        each_vector<kBytes>(g.channels, [&](int64_t c) SAMPAN_INLINED { down(g, t, image + c, weights + c, bias ? bias + c : nullptr, begin, end, first, out + c); });
      }
      return;
    }
  }
  for (int64_t h = begin; h < end; ++h) {
    float* to = out + h * g.columns * g.channels;
    if (is_wide && is_three && g.stride_columns == 1)
      row_of<kBytes, 3, 1>(g, image, weights, bias, has_relu, h, to);
    else if (is_wide && is_three && g.stride_columns == 2)
      row_of<kBytes, 3, 2>(g, image, weights, bias, has_relu, h, to);
    else if (is_wide && is_plain && g.kernel_columns == 5 && g.stride_columns == 1)
      row_of<kBytes, 5, 1>(g, image, weights, bias, has_relu, h, to);
    else
      row_of<kBytes, 0, 0>(g, image, weights, bias, has_relu, h, to);
  }
}

class DepthwiseWeights final : public NativeOp {
 public:
  DepthwiseWeights(const Geometry& g, const Layout& w, ConvDirection direction)
      : g_(g), channel_(w.strides[0]), row_(w.strides[2]), column_(w.strides[3]), is_turned_(direction == ConvDirection::kBackwardData) {}

  void run(char* const* buffers, char*) const override { run(reinterpret_cast<const float*>(buffers[0]), reinterpret_cast<float*>(buffers[1])); }

  // [window row][window column][channel]
  void run(const float* weights, float* to) const {
    if (row_ == g_.kernel_columns && column_ == 1) {
      constexpr int64_t kItem = sizeof(float);
      const int64_t step = g_.channels * kItem;
      char* last = reinterpret_cast<char*>(to) + (g_.taps() - 1) * step;
      transpose_2d(is_turned_ ? last : reinterpret_cast<char*>(to), is_turned_ ? -step : step, reinterpret_cast<const char*>(weights), channel_ * kItem, g_.taps(), g_.channels, kItem);
      return;
    }
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
  Depthwise(const Geometry& g, std::unique_ptr<DepthwiseWeights> weights, const Layout* bias, bool has_relu, size_t operands, Epilogue epilogue)
      : g_(g), weights_(std::move(weights)), bias_step_(bias ? bias->strides[0] : 0), has_bias_(bias != nullptr), has_relu_(has_relu), operands_(operands),
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
    // Pieces of an image's rows, by the shape alone.
    constexpr int64_t kPieceRows = 28;
    const int64_t pieces = (g_.rows + kPieceRows - 1) / kPieceRows;
    const double ns = static_cast<double>(g_.rows * g_.columns * g_.channels * g_.taps()) / static_cast<double>(pieces) * 0.02;
    parallel_for(g_.batch * pieces, ns, [&](int64_t begin, int64_t end) {
      with_registers([&](auto bytes) SAMPAN_INLINED {
        for (int64_t u = begin; u < end; ++u) {
          const int64_t n = u / pieces, piece = u % pieces;
          rows_of<bytes.value>(g_, x + n * g_.height * g_.width * g_.channels, weights, bias, has_relu_, g_.rows * piece / pieces, g_.rows * (piece + 1) / pieces,
                               out + n * g_.rows * g_.columns * g_.channels);
        }
      });
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
  size_t operands_;
  Epilogue epilogue_;
};

}  // namespace

bool suits_depthwise(const ConvShape& s, ConvDirection direction) {
  if (s.dtype != DType::k_float32 || s.spatial != 2 || direction == ConvDirection::kBackwardWeights || s.batch == 0) return false;
  if (s.groups != s.in_channels || s.groups != s.out_channels || s.groups < kLanes<float, kWideBytes>) return false;
  return direction == ConvDirection::kForward || (s.strides[0] == 1 && s.strides[1] == 1);
}

size_t depthwise_weight_bytes(const ConvShape& s) { return static_cast<size_t>(Geometry(s, ConvDirection::kForward).weight_count()) * 4; }

std::unique_ptr<NativeOp> make_conv_depthwise(const NativeCall& call, const ConvShape& shape, ConvDirection direction, bool packed, bool has_bias, bool has_relu, Epilogue epilogue) {
  const Geometry g(shape, direction);
  auto weights = packed ? nullptr : std::make_unique<DepthwiseWeights>(g, *call.inputs[1], direction);
  const Layout* bias = has_bias ? call.inputs[2].get() : nullptr;
  return std::make_unique<Depthwise>(g, std::move(weights), bias, has_relu, call.inputs.size() + call.outputs.size(), std::move(epilogue));
}

std::unique_ptr<NativeOp> make_depthwise_weights(const Layout& weight, const ConvShape& shape, ConvDirection direction) {
  return std::make_unique<DepthwiseWeights>(Geometry(shape, direction), weight, direction);
}

}  // namespace sampan::kernels
