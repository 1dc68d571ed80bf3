// The gradient to the weights as one product: filters by (kernel position, channel), summed over all pixels of the result.
#include "kernels/conv_weights.h"

#include <algorithm>
#include <cstring>

#include "exec/parallel.h"
#include "exec/transpose.h"
#include "kernels/tiles.h"

namespace sampan::kernels {
namespace {

constexpr int64_t kPanel = kTileColumns<float>;
constexpr int64_t kPackedPanels = 8;           // of windows, at once
constexpr int64_t kMostGathered = 512;         // columns that are gathered whole, before the product
constexpr int64_t kLeastRows = 96, kLeastPanels = 8;
constexpr double kMultiplicationNs = 0.016;

struct Geometry : ThreeAxes {
  int64_t batch, channels, filters, taps, points, pixels;
  bool is_gathered;      // few channels: rows of a window are copied, since channels of one kernel position would fill no panel
  int64_t channel_step;  // columns from one kernel position to the next
  int64_t panels;

  explicit Geometry(const ConvShape& s) : ThreeAxes(s), batch(s.batch), channels(s.in_channels), filters(s.out_channels), taps(s.kernel_size()), points(s.out_size()), pixels(batch * points) {
    is_gathered = channels < 4 * kPanel && channels % kPanel != 0 && taps * channels <= kMostGathered;
    channel_step = is_gathered ? channels : (channels + kPanel - 1) / kPanel * kPanel;
    panels = (taps * channel_step + kPanel - 1) / kPanel;
  }
  int64_t columns() const { return panels * kPanel; }
  double work_ns() const { return static_cast<double>(pixels) * static_cast<double>(filters) * static_cast<double>(columns()) * kMultiplicationNs * 4; }
};

// Where the windows of some pixels lie: the offset of each one's first position, and its coordinates, which may be outside.
struct Windows {
  int64_t count;
  int64_t offset[kTileDepth];
  int64_t at[3][kTileDepth];

  Windows(const Geometry& g, int64_t first, int64_t number) : count(number) {
    int64_t index[3], n = first / g.points, p = first % g.points;
    for (size_t d = 3; d-- > 0; p /= g.out[d]) index[d] = p % g.out[d];
    for (int64_t k = 0; k < count; ++k) {
      int64_t image = n;
      for (size_t d = 0; d < 3; ++d) {
        at[d][k] = index[d] * g.stride[d] - g.padding[d];
        image = image * g.in[d] + at[d][k];
      }
      offset[k] = image * g.channels;
      for (size_t d = 3; d-- > 0;) {
        if (++index[d] < g.out[d]) break;
        index[d] = 0;
        if (d == 0) ++n;
      }
    }
  }
};

bool is_inside(int64_t at, int64_t size) { return static_cast<uint64_t>(at) < static_cast<uint64_t>(size); }

// The pixels that one kernel position reads; zeros where that is outside.
void point(const Geometry& g, const Windows& w, int64_t tap, const float* x, const float* zeros, const float** to) {
  const int64_t move[3] = {tap / (g.kernel[1] * g.kernel[2]) * g.dilation[0], tap / g.kernel[2] % g.kernel[1] * g.dilation[1], tap % g.kernel[2] * g.dilation[2]};
  const float* moved = x + ((move[0] * g.in[1] + move[1]) * g.in[2] + move[2]) * g.channels;
  for (int64_t k = 0; k < w.count; ++k) {
    const bool inside = is_inside(w.at[0][k] + move[0], g.in[0]) & is_inside(w.at[1][k] + move[1], g.in[1]) & is_inside(w.at[2][k] + move[2], g.in[2]);
    to[k] = inside ? moved + w.offset[k] : zeros;
  }
}

// Whole windows, one row of `step` numbers a pixel.
SAMPAN_INLINE void gather(const Geometry& g, const Windows& w, const float* x, int64_t step, float* to) {
  const int64_t run = g.dilation[2] == 1 ? g.kernel[2] : 1, width = g.kernel[2] * g.channels;
  for (int64_t k = 0; k < w.count; ++k, to += step) {
    float* row = to;
    for (int64_t i = 0; i < g.kernel[0]; ++i)
      for (int64_t j = 0; j < g.kernel[1]; ++j, row += width) {
        const int64_t h = i * g.dilation[0], v = j * g.dilation[1], left = w.at[2][k];
        if (!is_inside(w.at[0][k] + h, g.in[0]) || !is_inside(w.at[1][k] + v, g.in[1])) {
          std::fill_n(row, width, 0.f);
          continue;
        }
        const float* from = x + w.offset[k] + (h * g.in[1] + v) * g.in[2] * g.channels;
        if (run == g.kernel[2]) {
          const int64_t low = std::clamp<int64_t>(-left, 0, run), high = std::clamp<int64_t>(g.in[2] - left, low, run);
          std::fill_n(row, low * g.channels, 0.f);
          int64_t e = low * g.channels;
          for (; e + kLanes<float> <= high * g.channels; e += kLanes<float>) store(row + e, load(from + e));
          for (; e < high * g.channels; ++e) row[e] = from[e];
          std::fill_n(row + high * g.channels, (run - high) * g.channels, 0.f);
          continue;
        }
        for (int64_t q = 0; q < g.kernel[2]; ++q)
          for (int64_t c = 0; c < g.channels; ++c) row[q * g.channels + c] = is_inside(left + q * g.dilation[2], g.in[2]) ? from[q * g.dilation[2] * g.channels + c] : 0.f;
      }
    std::fill(row, to + step, 0.f);
  }
}

// `count` channels of the pixels from `channel` on, as panels. From pixel to pixel they often lie whole pages apart, so a pixel's numbers are read together.
SAMPAN_INLINE void pack_channels(const float* const* pixels, int64_t depth, int64_t channel, int64_t count, float* to) {
  const int64_t whole = count / kPanel * kPanel;
  for (int64_t k = 0; k < depth; ++k, to += kPanel) {
    const float* from = pixels[k] + channel;
    float* at = to;
    for (int64_t c = 0; c < whole; c += kPanel, at += spaced(depth, kPanel)) {
      store(at, load(from + c));
      store(at + kLanes<float>, load(from + c + kLanes<float>));
    }
    if (whole == count) continue;
    for (int64_t j = 0; j < kPanel; ++j) at[j] = whole + j < count ? from[whole + j] : 0.f;
  }
}

// What one unit of work sums up.
struct Part {
  int64_t first_pixel, last_pixel, first_panel, last_panel, first_filter, last_filter;
};

struct Spaces {
  float *filters, *panels, *windows, *zeros;
  const float** pixels;
};

// to: the part's sums, from filter to filter `step` numbers apart. bias: sums of all filters' gradients, or null.
template <int kBytes>
SAMPAN_INLINE void multiply(const Geometry& g, const float* x, const float* grad, const Part& part, const Spaces& space, float* to, int64_t step, float* bias) {
  constexpr int64_t kRows = Groups<kBytes>::kRows;
  const int64_t all = part.last_pixel - part.first_pixel, blocks = (all + kTileDepth - 1) / kTileDepth, row = g.columns() + kPanel;
  int64_t first = part.first_pixel;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t last = part.first_pixel + all * (b + 1) / blocks, depth = last - first;
    const float* from = grad + first * g.filters;
    const Windows windows(g, first, depth);
    if (bias)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t f = part.first_filter; f < part.last_filter; ++f) bias[f] += from[k * g.filters + f];
    if (g.is_gathered) gather(g, windows, x, row, space.windows);
    for (int64_t f = part.first_filter; f < part.last_filter; f += kBlockRows) {
      const Groups<kBytes> groups(std::min(kBlockRows, part.last_filter - f));
      pack_groups(from + f, 1, g.filters, depth, groups, space.filters);
      for (int64_t p = part.first_panel, panels; p < part.last_panel; p += panels) {
        panels = part.last_panel - p;
        if (!g.is_gathered) {
          const int64_t tap = p * kPanel / g.channel_step, channel = p * kPanel % g.channel_step;
          panels = std::min({panels, kPackedPanels, (g.channel_step - channel) / kPanel});
          point(g, windows, tap, x, space.zeros, space.pixels);
          pack_channels(space.pixels, depth, channel, std::min(panels * kPanel, g.channels - channel), space.panels);
        }
        const float* packed = g.is_gathered ? space.windows + p * kPanel : space.panels;
        const int64_t panel_row = g.is_gathered ? row : kPanel, next = g.is_gathered ? kPanel : spaced(depth, kPanel);
        float* sums = to + (f - part.first_filter) * step + (p - part.first_panel) * kPanel;
        for (int64_t i = 0; i < panels; i += kPanelsAtOnce<kBytes>)
          for (int64_t r = 0; r < groups.count; ++r) {
            const int64_t m = groups.begin[r];
            tile_rows<float, kBytes>(groups.begin[r + 1] - m, std::min(kPanelsAtOnce<kBytes>, panels - i), depth, space.filters + r * spaced(depth, kRows), 1, kRows, packed + i * next, panel_row,
                                     next, sums + m * step + i * kPanel, step, kPanel, b > 0, false);
          }
      }
    }
    first = last;
  }
}

class ConvWeightsProduct final : public NativeOp {
 public:
  ConvWeightsProduct(const ConvShape& shape, const Layout& weight, const Layout* bias) : g_(shape), strides_(strides_of(weight)), bias_step_(bias ? bias->strides[0] : 0), has_bias_(bias != nullptr) {
    // Units of work, by the shape alone. Parts of the pixels have sums of their own to be added: they must be small beside the images.
    const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(g_.work_ns() / 1e5), 1, 8);
    const int64_t most = (shape.batch * shape.in_channels * product(shape.in.data(), shape.in.data() + shape.in.size()) + g_.pixels * g_.filters) / (4 * g_.filters * g_.columns());
    while (2 * parts_ <= std::min({wanted, most, g_.pixels / kTileDepth})) parts_ *= 2;
    // Blocks of filters pack the same windows again, and blocks of panels the same gradients: both must be wide.
    while (2 * rows_ <= std::min(wanted / parts_, g_.filters / kLeastRows)) rows_ *= 2;
    while (2 * blocks_ <= std::min(wanted / (parts_ * rows_), g_.panels / kLeastPanels)) blocks_ *= 2;
    // Row-major kernels are [filter, channel, position].
    int64_t step = 1;
    for (size_t d = strides_.size(); d-- > 2; step *= shape.kernel[d - 2]) is_dense_ = is_dense_ && (strides_[d] == step || shape.kernel[d - 2] == 1);
    is_dense_ = is_dense_ && (strides_[1] == step || g_.channels == 1);
    Odometer<1> at;
    for (size_t d = 0; d < shape.kernel.size(); ++d) at.add_axis(shape.kernel[d], {strides_[d + 2]});
    at.seek(0);
    for (int64_t tap = 0; tap < g_.taps; ++tap, at.next()) taps_.push_back(at.offset[0]);
  }

  // Sums of all parts, and those of the bias. A single part's go out block by block.
  size_t scratch_bytes() const override { return static_cast<size_t>((parts_ > 1 ? parts_ * copy_size() : 0) + (has_bias_ ? parts_ * g_.filters : 0)) * sizeof(float); }

  void run(char* const* buffers, char* scratch) const override {
    const float *x = reinterpret_cast<const float*>(buffers[0]), *grad = reinterpret_cast<const float*>(buffers[1]);
    float *biases = reinterpret_cast<float*>(scratch), *sums = biases + (has_bias_ ? parts_ * g_.filters : 0), *weights = reinterpret_cast<float*>(buffers[2]);
    const int64_t units = parts_ * rows_ * blocks_, rows = std::min(g_.filters, kBlockRows) + kMostTileRows<kWideBytes>, row = g_.columns() + kPanel;
    parallel_for(units, g_.work_ns() / static_cast<double>(units), [&](int64_t begin, int64_t end) {
      const int64_t windows = g_.is_gathered ? kTileDepth * row : kPackedPanels * spaced(kTileDepth, kPanel) + g_.channels;
      const Block memory(static_cast<size_t>(spaced(kTileDepth, rows) + windows) * sizeof(float) + kTileDepth * sizeof(float*));
      Spaces space{};
      space.pixels = memory.as<const float*>();
      space.filters = reinterpret_cast<float*>(space.pixels + kTileDepth);
      space.panels = space.windows = space.filters + spaced(kTileDepth, rows);
      space.zeros = space.panels + kPackedPanels * spaced(kTileDepth, kPanel);
      if (!g_.is_gathered) std::fill_n(space.zeros, g_.channels, 0.f);
      const int64_t most_rows = (g_.filters + rows_ - 1) / rows_, most_panels = (g_.panels + blocks_ - 1) / blocks_;
      const Block own(parts_ > 1 ? 0 : static_cast<size_t>(most_rows * (most_panels + 1) * kPanel) * sizeof(float));
      for (int64_t u = begin; u < end; ++u) {
        const int64_t block = u % blocks_, r = u / blocks_ % rows_, p = u / blocks_ / rows_;
        const Part part{g_.pixels * p / parts_, g_.pixels * (p + 1) / parts_, g_.panels * block / blocks_, g_.panels * (block + 1) / blocks_,
                        g_.filters * r / rows_, g_.filters * (r + 1) / rows_};
        float* bias = has_bias_ && block == 0 ? biases + p * g_.filters : nullptr;
        if (bias) std::fill(bias + part.first_filter, bias + part.last_filter, 0.f);
        const int64_t step = parts_ > 1 ? g_.columns() : (part.last_panel - part.first_panel + 1) * kPanel;
        float* to = parts_ > 1 ? sums + p * copy_size() + part.first_filter * step + part.first_panel * kPanel : own.as<float>();
        with_registers([&](auto bytes) SAMPAN_INLINED { multiply<bytes.value>(g_, x, grad, part, space, to, step, bias); });
        if (parts_ > 1) continue;
        for (int64_t f = part.first_filter; f < part.last_filter; ++f) finish(own.as<float>() + (f - part.first_filter) * step, part.first_panel, part.last_panel, weights + f * strides_[0]);
      }
    });
    if (parts_ > 1) {
      parallel_for(g_.filters, static_cast<double>(g_.columns() * parts_), [&](int64_t begin, int64_t end) {
        for (int64_t f = begin; f < end; ++f) {
          float* from = sums + f * g_.columns();
          add_copies(from, copy_size(), parts_, 0, g_.columns(), from);
          finish(from, 0, g_.panels, weights + f * strides_[0]);
        }
      });
    }
    for (int64_t f = 0; f < g_.filters && has_bias_; ++f) add_copies(biases + f, g_.filters, parts_, 0, 1, reinterpret_cast<float*>(buffers[3]) + f * bias_step_);
  }

 private:
  int64_t copy_size() const { return g_.filters * g_.columns(); }

  // One filter's sums, of these panels, to where the weight's strides want them.
  void finish(const float* from, int64_t first_panel, int64_t last_panel, float* filter) const {
    const int64_t first = first_panel * kPanel, last = last_panel * kPanel, step = g_.channel_step;
    if (is_dense_ && g_.taps > 1 && first == 0 && last_panel == g_.panels) {
      constexpr size_t kItem = sizeof(float);
      transpose_2d(reinterpret_cast<char*>(filter), g_.taps * kItem, reinterpret_cast<const char*>(from), step * kItem, g_.channels, g_.taps, kItem);
      return;
    }
    for (int64_t tap = first / step; tap < g_.taps && tap * step < last; ++tap) {
      const int64_t low = std::max<int64_t>(0, first - tap * step), high = std::min(g_.channels, last - tap * step);
      const float* row = from + tap * step - first;
      float* to = filter + taps_[static_cast<size_t>(tap)];
      for (int64_t c = low; c < high; ++c) to[c * strides_[1]] = row[c];
    }
  }

  Geometry g_;
  Dims strides_, taps_;  // of the weight; where each kernel position lies in a filter
  int64_t bias_step_;
  bool has_bias_, is_dense_ = true;
  int64_t parts_ = 1, rows_ = 1, blocks_ = 1;  // of the pixels, the filters, the panels
};

}  // namespace

bool suits_weights_product(const ConvShape& s, ConvDirection direction) {
  if (direction != ConvDirection::kBackwardWeights || s.dtype != DType::k_float32 || s.groups != 1 || s.batch == 0 || s.out_size() == 0) return false;
  // Small sums stay in registers in oneDNN's code: copies for a product would take longer than the product.
  constexpr int64_t kLeastFilters = 32, kLeastGathered = 96, kLeastWideProduct = 64 * 128;
  const Geometry g(s);
  if (has_wide_registers() && (g.is_gathered || g.channels * g.filters < kLeastWideProduct)) return false;
  return g.filters >= kLeastFilters && (!g.is_gathered || g.taps * g.channels >= kLeastGathered);
}

std::unique_ptr<NativeOp> make_conv_weights_product(const NativeCall& call, const ConvShape& shape, bool has_bias) {
  return std::make_unique<ConvWeightsProduct>(shape, *call.outputs[0], has_bias ? call.outputs[1].get() : nullptr);
}

}  // namespace sampan::kernels
