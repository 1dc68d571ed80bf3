// Each result is a sum over the window's rows of products of neighbouring numbers: tiles of pixels by channels stay in registers over the whole window.
#include "kernels/conv_direct.h"

#include <algorithm>
#include <cstring>

#include "exec/parallel.h"
#include "kernels/tiles.h"

namespace sampan::kernels {
namespace {

constexpr int64_t kLane = kLanes<float>;
constexpr int64_t kPanel = 2 * kLane;  // channels: two vectors, or one of 512 bits

// For the gradient to the data images and channels change places, and windows are turned round.
struct Geometry {
  int64_t batch, height, width, channels;  // of the image that is read
  int64_t rows, columns, filters;          // of the result
  int64_t top, left, bottom, right;        // padding
  int64_t kernel_rows, kernel_columns, stride_rows, stride_columns, dilation;

  Geometry(const ConvShape& s, ConvDirection direction) {
    const bool to_data = direction == ConvDirection::kBackwardData;
    const Dims &from = to_data ? s.out : s.in, &to = to_data ? s.in : s.out;
    batch = s.batch;
    height = from[0], width = from[1];
    rows = to[0], columns = to[1];
    channels = to_data ? s.out_channels : s.in_channels;
    filters = to_data ? s.in_channels : s.out_channels;
    kernel_rows = s.kernel[0], kernel_columns = s.kernel[1];
    stride_rows = s.strides[0], stride_columns = s.strides[1];
    dilation = s.dilations[0];
    top = to_data ? (kernel_rows - 1) * dilation - s.padding_low[0] : s.padding_low[0];
    left = to_data ? kernel_columns - 1 - s.padding_low[1] : s.padding_low[1];
    bottom = std::max<int64_t>(0, (rows - 1) * stride_rows + (kernel_rows - 1) * dilation + 1 - top - height);
    right = std::max<int64_t>(0, (columns - 1) * stride_columns + kernel_columns - left - width);
  }
  bool is_padded() const { return top || left || bottom || right; }
  int64_t padded_width() const { return left + width + right; }
  int64_t depth() const { return kernel_columns * channels; }
  // Panels of two vectors of channels; the last one has one vector where that is enough.
  int64_t padded_filters() const { return (filters + kLane - 1) / kLane * kLane; }
  int64_t weight_count() const { return kernel_rows * depth() * padded_filters(); }
};

struct Tile {
  int64_t kernel_rows, depth;
  int64_t pixel, kernel_row;  // steps in the image: from pixel to pixel of the tile, from row to row of the window
  const float* bias;          // as long as the panel; null without
  bool has_relu;
  int64_t step, width;  // of the result: from pixel to pixel, and channels to write
  bool may_run_over;    // beyond the width lie the tile's next pixels, which are written later
};

// kR pixels by kV vectors of channels.
template <int kBytes, int kV, int kR>
SAMPAN_INLINE void tile(const Tile& t, const float* image, const float* panel, float* to) {
  using V = Vec<float, kBytes>;
  constexpr int64_t kL = kLanes<float, kBytes>;
  V sums[kR][kV];
  for (int r = 0; r < kR; ++r)
    for (int v = 0; v < kV; ++v) sums[r][v] = V{};
  for (int64_t i = 0; i < t.kernel_rows; ++i, image += t.kernel_row) {
    const float* a = image;
    for (int64_t k = 0; k < t.depth; ++k, ++a, panel += kV * kL) {
      V b[kV];
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) b[v] = load<float, kBytes>(panel + v * kL);
#pragma GCC unroll 14
      for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < kV; ++v) sums[r][v] += a[r * t.pixel] * b[v];
    }
  }
  const V zero{};
#pragma GCC unroll 14
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) {
      if (t.bias) sums[r][v] += load<float, kBytes>(t.bias + v * kL);
      if (t.has_relu) sums[r][v] = sums[r][v] < zero ? zero : sums[r][v];
    }
    float* row = to + r * t.step;
    if (t.width == kV * kL || (t.may_run_over && (kR - r) * t.width >= kV * kL)) {
      for (int v = 0; v < kV; ++v) store(row + v * kL, sums[r][v]);
      continue;
    }
    float edge[kV * kL];
    for (int v = 0; v < kV; ++v) store(edge + v * kL, sums[r][v]);
    for (int64_t f = 0; f < t.width; ++f) row[f] = edge[f];
  }
}

// The same for a number of pixels up to kR.
template <int kBytes, int kV, int kR>
SAMPAN_INLINE void tile_up_to(int64_t pixels, const Tile& t, const float* image, const float* panel, float* to) {
  if constexpr (kR > 1)
    if (pixels < kR) return tile_up_to<kBytes, kV, kR - 1>(pixels, t, image, panel, to);
  tile<kBytes, kV, kR>(t, image, panel, to);
}

// One row of results, in tiles of up to kMost pixels; image: the first window's first number.
template <int kBytes, int kV, int kMost>
SAMPAN_INLINE void row_of(const Geometry& g, const Tile& t, const float* image, const float* panel, float* to) {
  for (int64_t c = 0, left = (g.columns + kMost - 1) / kMost, pixels; c < g.columns; c += pixels, --left) {
    pixels = (g.columns - c + left - 1) / left;
    tile_up_to<kBytes, kV, kMost>(pixels, t, image + c * t.pixel, panel, to + c * t.step);
  }
}

// Rows [begin, end) of one image's results. image: where window 0 of row `begin` starts, in lines of `line` pixels.
template <int kBytes>
SAMPAN_INLINE void rows_of(const Geometry& g, const float* image, int64_t line, const float* panels, const float* bias, bool has_relu, int64_t begin, int64_t end, float* out) {
  constexpr bool kIsWide = kBytes == kWideBytes;
  const bool is_one = g.padded_filters() <= kPanel;
  for (int64_t f = 0; f < g.filters; f += kPanel) {
    const int64_t width = std::min(kPanel, g.filters - f);
    const Tile t{g.kernel_rows, g.depth(), g.stride_columns * g.channels, g.dilation * line * g.channels, bias ? bias + f : nullptr, has_relu, g.filters, width, is_one};
    const float* panel = panels + f * g.kernel_rows * g.depth();
    for (int64_t r = begin; r < end; ++r) {
      const float* at = image + (r - begin) * g.stride_rows * line * g.channels;
      float* to = out + r * g.columns * g.filters + f;
      if (width > kLane)
        row_of<kBytes, kPanel / kLanes<float, kBytes>, kIsWide ? 14 : 6>(g, t, at, panel, to);
      else
        row_of<kVectorBytes, 1, kIsWide ? 14 : 8>(g, t, at, panel, to);
    }
  }
}

class DirectWeights final : public NativeOp {
 public:
  DirectWeights(const Geometry& g, const Layout& w, ConvDirection direction)
      : g_(g), filter_(w.strides[0]), channel_(w.strides[1]), row_(w.strides[2]), column_(w.strides[3]), is_turned_(direction == ConvDirection::kBackwardData) {
    if (is_turned_) std::swap(filter_, channel_);
  }

  void run(char* const* buffers, char*) const override { run(reinterpret_cast<const float*>(buffers[0]), reinterpret_cast<float*>(buffers[1])); }

  // [panel][window row][window column, channel][channels of the panel]
  void run(const float* weights, float* to) const {
    for (int64_t f = 0; f < g_.padded_filters(); f += kPanel) {
      const int64_t panel = std::min(kPanel, g_.padded_filters() - f);
      for (int64_t i = 0; i < g_.kernel_rows; ++i)
        for (int64_t j = 0; j < g_.kernel_columns; ++j)
          for (int64_t c = 0; c < g_.channels; ++c)
            for (int64_t l = 0; l < panel; ++l) {
              const int64_t row = is_turned_ ? g_.kernel_rows - 1 - i : i, column = is_turned_ ? g_.kernel_columns - 1 - j : j;
              *to++ = f + l < g_.filters ? weights[(f + l) * filter_ + c * channel_ + row * row_ + column * column_] : 0.f;
            }
    }
  }

 private:
  Geometry g_;
  int64_t filter_, channel_, row_, column_;
  bool is_turned_;
};

class Direct final : public NativeOp {
 public:
  Direct(const Geometry& g, std::unique_ptr<DirectWeights> weights, const Layout* bias, bool has_relu, size_t operands, Epilogue epilogue)
      : g_(g), weights_(std::move(weights)), has_bias_(bias != nullptr), bias_step_(bias ? bias->strides[0] : 0), has_relu_(has_relu), operands_(operands), epilogue_(std::move(epilogue)) {
    constexpr int64_t kUnits = 8;
    blocks_ = std::clamp<int64_t>(kUnits / g.batch, 1, g.rows);
    block_ = (g.rows + blocks_ - 1) / blocks_;
  }

  // The weights as panels, and the bias filled up to whole vectors.
  size_t scratch_bytes() const override { return static_cast<size_t>((weights_ ? g_.weight_count() : 0) + g_.padded_filters()) * 4; }

  void run(char* const* buffers, char* scratch) const override {
    const float* x = reinterpret_cast<const float*>(buffers[0]);
    const float* panels = reinterpret_cast<const float*>(buffers[1]);
    float* space = reinterpret_cast<float*>(scratch);
    if (weights_) {
      weights_->run(panels, space);
      panels = space;
      space += g_.weight_count();
    }
    const float* bias = nullptr;
    if (has_bias_) {
      const float* given = reinterpret_cast<const float*>(buffers[2]);
      for (int64_t f = 0; f < g_.padded_filters(); ++f) space[f] = f < g_.filters ? given[f * bias_step_] : 0.f;
      bias = space;
    }
    float* out = reinterpret_cast<float*>(buffers[operands_ - 1]);
    const int64_t units = g_.batch * blocks_;
    const double ns = static_cast<double>(block_ * g_.columns) * static_cast<double>(g_.kernel_rows * g_.depth() * g_.padded_filters()) * 0.04;
    parallel_for(units, ns, [&](int64_t begin, int64_t end) {
      const int64_t line = g_.padded_width(), window = (g_.kernel_rows - 1) * g_.dilation + 1, lines = (block_ - 1) * g_.stride_rows + window;
      const Block padded(g_.is_padded() ? static_cast<size_t>(lines * line * g_.channels) * 4 : 0);
      for (int64_t u = begin; u < end; ++u) {
        const int64_t first = u % blocks_ * block_, last = std::min(g_.rows, first + block_);
        if (first >= last) continue;
        const float* image = x + u / blocks_ * g_.height * g_.width * g_.channels;
        float* to = out + u / blocks_ * g_.rows * g_.columns * g_.filters;
        const int64_t top = first * g_.stride_rows - g_.top;
        const float* from = g_.is_padded() ? padded.as<float>() : image + top * line * g_.channels;
        if (g_.is_padded()) copy_padded(image, top, (last - first - 1) * g_.stride_rows + window, padded.as<float>());
        with_registers([&](auto bytes) SAMPAN_INLINED { rows_of<bytes.value>(g_, from, line, panels, bias, has_relu_, first, last, to); });
      }
    });
    if (!epilogue_.empty()) epilogue_.run(buffers + 2 + (has_bias_ ? 1 : 0), buffers[operands_ - 1]);
  }

 private:
  // `lines` lines of the image from line `top` on, which may lie outside, with zeros around.
  void copy_padded(const float* image, int64_t top, int64_t lines, float* to) const {
    const int64_t width = g_.width * g_.channels, before = g_.left * g_.channels, after = g_.right * g_.channels;
    for (int64_t i = top; i < top + lines; ++i) {
      if (i < 0 || i >= g_.height) {
        to = std::fill_n(to, before + width + after, 0.f);
        continue;
      }
      to = std::fill_n(to, before, 0.f);
      std::memcpy(to, image + i * width, static_cast<size_t>(width) * 4);
      to = std::fill_n(to + width, after, 0.f);
    }
  }

  Geometry g_;
  std::unique_ptr<DirectWeights> weights_;  // null: they come as panels
  bool has_bias_;
  int64_t bias_step_;
  bool has_relu_;
  size_t operands_;
  Epilogue epilogue_;
  int64_t blocks_, block_;
};

}  // namespace

bool suits_direct(const ConvShape& s, ConvDirection direction) {
  if (s.dtype != DType::k_float32 || s.spatial != 2 || s.groups != 1 || direction == ConvDirection::kBackwardWeights) return false;
  if (s.dilations[1] != 1 || s.batch == 0) return false;
  if (direction == ConvDirection::kBackwardData)
    for (size_t d = 0; d < 2; ++d)
      if (s.strides[d] != 1 || s.padding_low[d] > (s.kernel[d] - 1) * s.dilations[d] || s.padding_high[d] > (s.kernel[d] - 1) * s.dilations[d]) return false;
  // Elsewhere oneDNN has code for whole vectors of channels.
  const Geometry g(s, direction);
  constexpr int64_t kMostFilters = 32, kMostDepth = 512;
  const bool is_odd = g.channels % kLane != 0 || g.filters % kLane != 0;
  return is_odd && g.filters <= kMostFilters && g.depth() <= kMostDepth && g.weight_count() <= kMostDepth * kMostFilters;
}

size_t direct_weight_bytes(const ConvShape& s, ConvDirection direction) { return static_cast<size_t>(Geometry(s, direction).weight_count()) * 4; }

std::unique_ptr<NativeOp> make_conv_direct(const NativeCall& call, const ConvShape& shape, ConvDirection direction, bool packed, bool has_bias, bool has_relu, Epilogue epilogue) {
  const Geometry g(shape, direction);
  auto weights = packed ? nullptr : std::make_unique<DirectWeights>(g, *call.inputs[1], direction);
  const Layout* bias = has_bias ? call.inputs[2].get() : nullptr;
  return std::make_unique<Direct>(g, std::move(weights), bias, has_relu, call.inputs.size() + call.outputs.size(), std::move(epilogue));
}

std::unique_ptr<NativeOp> make_direct_weights(const Layout& weight, const ConvShape& shape, ConvDirection direction) {
  return std::make_unique<DirectWeights>(Geometry(shape, direction), weight, direction);
}

}  // namespace sampan::kernels
