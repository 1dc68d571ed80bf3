#include "kernels/conv_spread.h"

#include <algorithm>
#include <cstring>

#include "exec/parallel.h"
#include "kernels/tiles.h"

namespace sampan::kernels {
namespace {

constexpr int64_t kLane = kLanes<float>, kWidth = kTileColumns<float>;
constexpr int64_t kPixels = 4 * kTileRows;  // whose products are in L1 at once
typedef int32_t Mask __attribute__((vector_size(kVectorBytes)));

struct Geometry {
  int64_t batch, rows, columns, filters;       // of the gradient that is read
  int64_t height, width, channels;             // of the image
  int64_t top, left, bottom, right;            // padding: the image is added up with it
  int64_t kernel_rows, run, stride_rows, stride_columns, dilation;  // run: numbers in a row of the window

  explicit Geometry(const ConvShape& s)
      : batch(s.batch), rows(s.out[0]), columns(s.out[1]), filters(s.out_channels), height(s.in[0]), width(s.in[1]), channels(s.in_channels), top(s.padding_low[0]),
        left(s.padding_low[1]), bottom(s.padding_high[0]), right(s.padding_high[1]), kernel_rows(s.kernel[0]), run(s.kernel[1] * s.in_channels), stride_rows(s.strides[0]),
        stride_columns(s.strides[1]), dilation(s.dilations[0]) {}
  int64_t line() const { return (left + width + right) * channels; }
  int64_t padded_size() const { return (top + height + bottom) * line() + kLane; }  // runs are written in whole vectors
  int64_t padded_run() const { return (run + kLane - 1) / kLane * kLane; }
  int64_t panels() const { return (kernel_rows * padded_run() + kWidth - 1) / kWidth; }
  int64_t product_width() const { return panels() * kWidth; }
  int64_t weight_count() const { return product_width() * filters; }
};

// What `count` pixels from `first` on add to the image: products [count, product_width].
template <int kBytes>
SAMPAN_INLINE void multiply(const Geometry& g, const float* grad, const float* panels, int64_t count, float* products) {
  tile_panels<float, kBytes>(count, g.panels(), g.filters, grad, g.filters, 1, panels, kWidth, kWidth * g.filters, products, g.product_width(), kWidth, false, false);
}

// Numbers beyond a run are not its own and are left as they are: what stands there in the products may be NaN.
SAMPAN_INLINE void spread(const Geometry& g, int64_t first, int64_t count, const float* products, float* padded) {
  const int64_t whole = g.run / kLane * kLane, line = g.line();
  Mask is_own = {};
  for (int64_t i = 0; i < kLane; ++i) is_own[i] = whole + i < g.run ? -1 : 0;
  int64_t row = first / g.columns, column = first % g.columns;
  for (int64_t i = 0; i < count; ++i) {
    float* window = padded + row * g.stride_rows * line + column * g.stride_columns * g.channels;
    const float* from = products + i * g.product_width();
    for (int64_t k = 0; k < g.kernel_rows; ++k, window += g.dilation * line, from += g.padded_run()) {
      int64_t j = 0;
      for (; j < whole; j += kLane) store(window + j, load(window + j) + load(from + j));
      if (j < g.run) store(window + j, is_own ? load(window + j) + load(from + j) : load(window + j));
    }
    if (++column == g.columns) {
      column = 0;
      ++row;
    }
  }
}

// One image. padded: with zeros to begin with.
void spread_image(const Geometry& g, const float* grad, const float* panels, float* products, float* padded) {
  with_registers([&](auto bytes) SAMPAN_INLINED {
    for (int64_t first = 0; first < g.rows * g.columns; first += kPixels) {
      const int64_t count = std::min(kPixels, g.rows * g.columns - first);
      multiply<bytes.value>(g, grad + first * g.filters, panels, count, products);
      spread(g, first, count, products, padded);
    }
  });
}

class SpreadWeights final : public NativeOp {
 public:
  SpreadWeights(const Geometry& g, const Layout& w) : g_(g), filter_(w.strides[0]), channel_(w.strides[1]), row_(w.strides[2]), column_(w.strides[3]) {}

  void run(char* const* buffers, char*) const override { run(reinterpret_cast<const float*>(buffers[0]), reinterpret_cast<float*>(buffers[1])); }

  // [panel][filter][window row, window column, channel of the panel]
  void run(const float* weights, float* to) const {
    std::fill_n(to, g_.weight_count(), 0.f);
    for (int64_t i = 0; i < g_.kernel_rows; ++i)
      for (int64_t j = 0; j < g_.run; ++j) {
        const int64_t at = i * g_.padded_run() + j;
        const float* from = weights + j % g_.channels * channel_ + i * row_ + j / g_.channels * column_;
        float* panel = to + at / kWidth * kWidth * g_.filters + at % kWidth;
        for (int64_t f = 0; f < g_.filters; ++f) panel[f * kWidth] = from[f * filter_];
      }
  }

 private:
  Geometry g_;
  int64_t filter_, channel_, row_, column_;
};

class Spread final : public NativeOp {
 public:
  Spread(const Geometry& g, std::unique_ptr<SpreadWeights> weights, size_t operands, Epilogue epilogue)
      : g_(g), weights_(std::move(weights)), operands_(operands), epilogue_(std::move(epilogue)) {}

  size_t scratch_bytes() const override { return weights_ ? static_cast<size_t>(g_.weight_count()) * 4 : 0; }

  void run(char* const* buffers, char* scratch) const override {
    const float* grad = reinterpret_cast<const float*>(buffers[0]);
    const float* panels = reinterpret_cast<const float*>(buffers[1]);
    if (weights_) {
      weights_->run(panels, reinterpret_cast<float*>(scratch));
      panels = reinterpret_cast<const float*>(scratch);
    }
    float* out = reinterpret_cast<float*>(buffers[operands_ - 1]);
    const int64_t points = g_.rows * g_.columns, line = g_.width * g_.channels;
    const double ns = static_cast<double>(points) * static_cast<double>(g_.product_width()) * static_cast<double>(g_.filters + 8) * 0.015;
    parallel_for(g_.batch, ns, [&](int64_t begin, int64_t end) {
      const size_t padded = static_cast<size_t>(g_.padded_size());
      const Block block((padded + static_cast<size_t>(kPixels * g_.product_width())) * 4);
      float* image = block.as<float>();
      for (int64_t n = begin; n < end; ++n) {
        std::fill_n(image, padded, 0.f);
        spread_image(g_, grad + n * points * g_.filters, panels, image + padded, image);
        for (int64_t h = 0; h < g_.height; ++h)
          std::memcpy(out + (n * g_.height + h) * line, image + (g_.top + h) * g_.line() + g_.left * g_.channels, static_cast<size_t>(line) * 4);
      }
    });
    if (!epilogue_.empty()) epilogue_.run(buffers + 2, buffers[operands_ - 1]);
  }

 private:
  Geometry g_;
  std::unique_ptr<SpreadWeights> weights_;  // null: they come as panels
  size_t operands_;
  Epilogue epilogue_;
};

}  // namespace

bool suits_spread(const ConvShape& s, ConvDirection direction) {
  if (direction != ConvDirection::kBackwardData || s.dtype != DType::k_float32 || s.spatial != 2 || s.groups != 1 || s.dilations[1] != 1) return false;
  const Geometry g(s);
  // Whole images are the units of work, and their sums stay in L2 beside the products; a panel stays in L1.
  constexpr int64_t kFewestImages = 4, kMostImage = 64 * 1024, kMostFilters = 128;
  if (g.batch < kFewestImages || g.channels >= kLane || g.padded_size() > kMostImage || g.filters > kMostFilters) return false;
  // Runs of a vector and more, in windows large enough to pay for adding products to memory.
  return g.run >= kLane && g.kernel_rows >= 3;
}

size_t spread_weight_bytes(const ConvShape& s) { return static_cast<size_t>(Geometry(s).weight_count()) * 4; }

std::unique_ptr<NativeOp> make_conv_spread(const NativeCall& call, const ConvShape& shape, bool packed, Epilogue epilogue) {
  const Geometry g(shape);
  auto weights = packed ? nullptr : std::make_unique<SpreadWeights>(g, *call.inputs[1]);
  return std::make_unique<Spread>(g, std::move(weights), call.inputs.size() + call.outputs.size(), std::move(epilogue));
}

std::unique_ptr<NativeOp> make_spread_weights(const Layout& weight, const ConvShape& shape) { return std::make_unique<SpreadWeights>(Geometry(shape), weight); }

}  // namespace sampan::kernels
