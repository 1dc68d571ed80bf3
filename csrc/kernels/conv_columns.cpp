// Convolutions by columns and the project's own product: float64, empty operands, and what oneDNN has no fast code for.
#include <algorithm>
#include <cstring>

#include "exec/parallel.h"
#include "kernels/conv.h"
#include "kernels/gemm.h"

namespace sampan::kernels {
namespace {

constexpr int64_t kTile = 192;  // about how many output positions' columns are made at once: enough that packing the weights for them costs little

// to += a * b
template <class T>
SAMPAN_INLINE void add_products(const T* a, const T* b, T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += a[i] * b[i];
}
SAMPAN_CLONES void add_row(const double* a, const double* b, double* to, int64_t n) { add_products(a, b, to, n); }
SAMPAN_CLONES void add_row(const float* a, const float* b, float* to, int64_t n) { add_products(a, b, to, n); }

// x and out are channels-last. A column holds what one output position reads of a group: [kernel position, channel].
template <class T>
class ConvByColumns final : public NativeOp {
 public:
  ConvByColumns(const ConvShape& shape, ConvDirection direction, const Layout& weight, const Layout* bias, size_t operands, Epilogue epilogue)
      : s_(shape), axes_(shape), direction_(direction), w_(strides_of(weight)), operands_(operands), epilogue_(std::move(epilogue)) {
    if (bias) bias_step_ = bias->strides[0];
    channels_ = s_.in_channels / s_.groups;
    filters_ = s_.out_channels / s_.groups;
    taps_ = s_.kernel_size();
    points_ = s_.out_size();
    is_pointwise_ = taps_ == 1;
    for (int d = 0; d < 3; ++d) is_pointwise_ = is_pointwise_ && axes_.stride[d] == 1 && axes_.in[d] == axes_.out[d] && axes_.padding[d] == 0;
    is_depthwise_ = channels_ == 1 && filters_ == 1;
    tiles_ = std::max<int64_t>(1, (points_ + kTile / 2) / kTile);
    tile_ = (points_ + tiles_ - 1) / tiles_;
    const double multiplications = static_cast<double>(s_.batch * points_) * static_cast<double>(s_.out_channels * taps_ * channels_);
    work_ns_ = multiplications * sizeof(T) * 0.01;
    // Units of work, by the shape alone: images and groups, and blocks of channels or filters where those are few.
    const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(work_ns_ / 1e5), 1, 8), groups = is_depthwise_ ? 1 : s_.groups;
    // The gradient to the weights of few channels is divided by filters instead, which each makes the same columns.
    is_by_filters_ = direction == ConvDirection::kBackwardWeights && (is_pointwise_ || channels_ < 32);
    const int64_t whole = std::max<int64_t>(1, s_.batch * groups), divided = is_depthwise_ ? s_.groups : is_by_filters_ ? filters_ : channels_;
    const int64_t most = std::max<int64_t>(1, divided / 16);
    if (direction == ConvDirection::kBackwardData) {
      blocks_ = std::clamp<int64_t>((wanted + whole - 1) / whole, 1, most);
    } else if (direction == ConvDirection::kBackwardWeights) {
      // Each part of the batch has a gradient of its own to be added: it must be small beside the images.
      const int64_t weights = s_.out_channels * taps_ * channels_, images = s_.batch * (points_ * s_.out_channels + image_size());
      while (2 * parts_ <= std::min({wanted, s_.batch, weights ? images / (2 * weights) : wanted})) parts_ *= 2;
      blocks_ = std::clamp<int64_t>(wanted / (parts_ * groups), 1, most);
    }
    block_ = (divided + blocks_ - 1) / blocks_;
  }

  // The weights in the order of the columns, or the parts of their gradient.
  size_t scratch_bytes() const override { return static_cast<size_t>(parts_ * s_.out_channels * depth()) * sizeof(T); }

  void run(char* const* buffers, char* scratch) const override {
    T* weights = reinterpret_cast<T*>(scratch);
    if (is_depthwise_)
      depthwise(buffers, weights);
    else if (direction_ == ConvDirection::kForward)
      forward(buffers, weights);
    else if (direction_ == ConvDirection::kBackwardData)
      backward_data(buffers, weights);
    else
      backward_weights(buffers, weights);
  }

 private:
  // An output position, and where its window begins in the image.
  struct Position {
    int64_t index[3], at[3];
  };

  int64_t depth() const { return taps_ * channels_; }
  int64_t part_size() const { return (s_.batch + parts_ - 1) / parts_; }
  int64_t image_size() const { return axes_.in[0] * axes_.in[1] * axes_.in[2] * s_.in_channels; }

  void forward(char* const* buffers, T* weights) const {
    const T* x = reinterpret_cast<const T*>(buffers[0]);
    T* out = reinterpret_cast<T*>(buffers[operands_ - 1]);
    // [group, kernel position, channel, filter]
    each_filter([&](int64_t g, int64_t f, int64_t at) {
      const T* from = reinterpret_cast<const T*>(buffers[1]) + at;
      each_weight([&](int64_t c, int64_t tap, int64_t offset) { weights[((g * taps_ + tap) * channels_ + c) * filters_ + f] = from[offset]; });
    });
    const int64_t units = s_.batch * s_.groups * tiles_;
    parallel_for(units, work_ns_ / static_cast<double>(std::max<int64_t>(units, 1)), [&](int64_t begin, int64_t end) {
      const Block columns(is_pointwise_ ? 0 : static_cast<size_t>(tile_ * depth()) * sizeof(T));
      for (int64_t u = begin; u < end; ++u) {
        const int64_t first = u % tiles_ * tile_, count = std::min(tile_, points_ - first), g = u / tiles_ % s_.groups, n = u / tiles_ / s_.groups;
        if (count <= 0) continue;
        const T* image = x + n * image_size() + g * channels_;
        T* to = out + (n * points_ + first) * s_.out_channels + g * filters_;
        const T* a = image + first * s_.in_channels;
        if (!is_pointwise_) {
          gather_columns(image, channels_, first, count, columns.as<T>());
          a = columns.as<T>();
        }
        gemm({count, filters_, depth(), a, is_pointwise_ ? s_.in_channels : depth(), 1, weights + g * depth() * filters_, filters_, 1, to, s_.out_channels, 1, false, false});
      }
    });
    if (!epilogue_.empty()) epilogue_.run(buffers + 2, buffers[operands_ - 1]);
  }

  void backward_data(char* const* buffers, T* weights) const {
    const T* grad = reinterpret_cast<const T*>(buffers[0]);
    T* x = reinterpret_cast<T*>(buffers[operands_ - 1]);
    // [group, block of channels, filter, kernel position, channel]
    each_filter([&](int64_t g, int64_t f, int64_t at) {
      const T* from = reinterpret_cast<const T*>(buffers[1]) + at;
      each_weight([&](int64_t c, int64_t tap, int64_t offset) {
        const int64_t first = c / block_ * block_, width = std::min(block_, channels_ - first);
        weights[g * depth() * filters_ + first * taps_ * filters_ + (f * taps_ + tap) * width + c - first] = from[offset];
      });
    });
    const int64_t units = s_.batch * s_.groups * blocks_;
    parallel_for(units, work_ns_ / static_cast<double>(std::max<int64_t>(units, 1)), [&](int64_t begin, int64_t end) {
      const Block columns(is_pointwise_ ? 0 : static_cast<size_t>(tile_ * taps_ * block_) * sizeof(T));
      for (int64_t u = begin; u < end; ++u) {
        const int64_t channel = u % blocks_ * block_, width = std::min(block_, channels_ - channel), g = u / blocks_ % s_.groups, n = u / blocks_ / s_.groups;
        if (width <= 0) continue;
        T* image = x + n * image_size() + g * channels_ + channel;
        const T* b = weights + g * depth() * filters_ + channel * taps_ * filters_;
        const int64_t positions = axes_.in[0] * axes_.in[1] * axes_.in[2];
        for (int64_t i = 0; i < positions && !is_pointwise_; ++i) std::fill_n(image + i * s_.in_channels, width, T{});
        for (int64_t first = 0; first < points_; first += tile_) {
          const int64_t count = std::min(tile_, points_ - first), wide = taps_ * width;
          const T* a = grad + (n * points_ + first) * s_.out_channels + g * filters_;
          T* to = is_pointwise_ ? image + first * s_.in_channels : columns.as<T>();
          gemm({count, wide, filters_, a, s_.out_channels, 1, b, wide, 1, to, is_pointwise_ ? s_.in_channels : wide, 1, false, false});
          if (!is_pointwise_) add_columns(columns.as<T>(), width, first, count, image);
        }
      }
    });
    if (!epilogue_.empty()) epilogue_.run(buffers + 2, buffers[operands_ - 1]);
  }

  void backward_weights(char* const* buffers, T* sums) const {
    const T *x = reinterpret_cast<const T*>(buffers[0]), *grad = reinterpret_cast<const T*>(buffers[1]);
    const int64_t units = parts_ * s_.groups * blocks_;
    parallel_for(units, work_ns_ / static_cast<double>(units), [&](int64_t begin, int64_t end) {
      const Block columns(is_pointwise_ ? 0 : static_cast<size_t>(tile_ * depth()) * sizeof(T));
      for (int64_t u = begin; u < end; ++u) {
        const int64_t at = u % blocks_ * block_, size = std::min(block_, (is_by_filters_ ? filters_ : channels_) - at), g = u / blocks_ % s_.groups, part = u / blocks_ / s_.groups;
        if (size <= 0) continue;
        const int64_t filter = is_by_filters_ ? at : 0, height = is_by_filters_ ? size : filters_;
        const int64_t channel = is_by_filters_ ? 0 : at, width = is_by_filters_ ? channels_ : size, wide = taps_ * width;
        // [part, group, block of channels or filters, filter, kernel position, channel]
        T* to = sums + (part * s_.out_channels + g * filters_ + filter) * depth() + channel * taps_ * filters_;
        const int64_t last = std::min(s_.batch, (part + 1) * part_size());
        bool is_begun = false;
        for (int64_t n = part * part_size(); n < last; ++n)
          for (int64_t first = 0; first < points_; first += tile_, is_begun = true) {
            const int64_t count = std::min(tile_, points_ - first);
            const T* image = x + n * image_size() + g * channels_ + channel;
            if (!is_pointwise_) gather_columns(image, width, first, count, columns.as<T>());
            const T* b = is_pointwise_ ? image + first * s_.in_channels : columns.as<T>();
            const T* a = grad + (n * points_ + first) * s_.out_channels + g * filters_ + filter;
            gemm({height, wide, count, a, 1, s_.out_channels, b, is_pointwise_ ? s_.in_channels : wide, 1, to, wide, 1, is_begun, false});
          }
        if (!is_begun) std::fill_n(to, height * wide, T{});
      }
    });
    finish_weights(buffers, sums);
  }

  // Adds the parts of the gradient.
  void finish_weights(char* const* buffers, const T* sums) const {
    each_filter([&](int64_t g, int64_t f, int64_t at) {
      T* to = reinterpret_cast<T*>(buffers[2]) + at;
      each_weight([&](int64_t c, int64_t tap, int64_t offset) {
        int64_t i = tap * s_.groups + g;
        if (!is_depthwise_) {
          const int64_t first = is_by_filters_ ? 0 : c / block_ * block_, width = is_by_filters_ ? channels_ : std::min(block_, channels_ - first);
          i = g * filters_ * depth() + first * taps_ * filters_ + (f * taps_ + tap) * width + c - first;
        }
        T sum = sums[i];
        for (int64_t p = 1; p < parts_; ++p) sum += sums[p * s_.out_channels * depth() + i];
        to[offset] = sum;
      });
    });
    if (operands_ > 3) bias_gradient(reinterpret_cast<const T*>(buffers[1]), reinterpret_cast<T*>(buffers[3]));
  }

  // One channel and one filter a group: rows of channels, [kernel position, group], are multiplied entry by entry.
  void depthwise(char* const* buffers, T* weights) const {
    const int64_t groups = s_.groups;
    const bool is_forward = direction_ == ConvDirection::kForward, to_weights = direction_ == ConvDirection::kBackwardWeights;
    if (!to_weights) {
      each_filter([&](int64_t g, int64_t, int64_t at) {
        const T* from = reinterpret_cast<const T*>(buffers[1]) + at;
        each_weight([&](int64_t, int64_t tap, int64_t offset) { weights[tap * groups + g] = from[offset]; });
      });
    }
    T* x = reinterpret_cast<T*>(buffers[is_forward || to_weights ? 0 : operands_ - 1]);
    T* out = reinterpret_cast<T*>(buffers[is_forward ? operands_ - 1 : to_weights ? 1 : 0]);
    const int64_t outer = is_forward ? s_.batch * tiles_ : to_weights ? parts_ : s_.batch, units = outer * blocks_;
    parallel_for(units, work_ns_ * 3 / static_cast<double>(std::max<int64_t>(units, 1)), [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) {
        const int64_t channel = u % blocks_ * block_, width = std::min(block_, groups - channel), at = u / blocks_;
        if (width <= 0) continue;
        if (is_forward) {
          const int64_t n = at / tiles_, first = at % tiles_ * tile_, last = std::min(points_, first + tile_);
          Position q = position(first);
          for (int64_t p = first; p < last; ++p, advance(&q)) {
            T* row = out + (n * points_ + p) * groups + channel;
            std::fill_n(row, width, T{});
            each_row(q, x + n * image_size() + channel, weights + channel, [&](T* pixel, T* weight) { add_row(pixel, weight, row, width); });
          }
          continue;
        }
        T* sums = weights + at * depth() * groups + channel;
        if (to_weights)
          for (int64_t tap = 0; tap < taps_; ++tap) std::fill_n(sums + tap * groups, width, T{});
        const int64_t first = to_weights ? at * part_size() : at, last = to_weights ? std::min(s_.batch, first + part_size()) : at + 1;
        for (int64_t n = first; n < last; ++n) {
          T* image = x + n * image_size() + channel;
          for (int64_t i = 0; i < image_size() && !to_weights; i += groups) std::fill_n(image + i, width, T{});
          Position q = position(0);
          for (int64_t p = 0; p < points_; ++p, advance(&q)) {
            const T* row = out + (n * points_ + p) * groups + channel;
            if (to_weights)
              each_row(q, image, sums, [&](T* pixel, T* weight) { add_row(pixel, row, weight, width); });
            else
              each_row(q, image, weights + channel, [&](T* pixel, T* weight) { add_row(row, weight, pixel, width); });
          }
        }
      }
    });
    if (to_weights)
      finish_weights(buffers, weights);
    else if (!epilogue_.empty())
      epilogue_.run(buffers + 2, buffers[operands_ - 1]);
  }

  // fn(channels of a pixel, weights of its kernel position) for what the output position p reads.
  template <class F>
  void each_row(const Position& q, T* image, T* weights, F&& fn) const {
    each_run(q, [&](int64_t at, int64_t tap, int64_t run) {
      for (int64_t k = 0; k < run && at >= 0; ++k) fn(image + at + k * s_.in_channels, weights + (tap + k) * s_.groups);
    });
  }

  void bias_gradient(const T* grad, T* to) const {
    constexpr int64_t kTogether = 64 / sizeof(T);
    const int64_t rows = s_.batch * points_;
    parallel_for((s_.out_channels + kTogether - 1) / kTogether, static_cast<double>(rows) * 5, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin * kTogether; first < std::min(end * kTogether, s_.out_channels); first += kTogether) {
        const int64_t width = std::min(kTogether, s_.out_channels - first);
        T sums[kTogether] = {};
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t j = 0; j < width; ++j) sums[j] += grad[r * s_.out_channels + first + j];
        for (int64_t j = 0; j < width; ++j) to[(first + j) * bias_step_] = sums[j];
      }
    });
  }

  // fn(group, filter in it, offset of its weights)
  template <class F>
  void each_filter(F&& fn) const {
    parallel_for(s_.out_channels, static_cast<double>(depth()) * 2, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) fn(o / filters_, o % filters_, o * w_[0]);
    });
  }

  // fn(channel, kernel position, offset) for the weights of one filter.
  template <class F>
  void each_weight(F&& fn) const {
    Odometer<1> at;
    for (int d = 0; d < s_.spatial; ++d) at.add_axis(s_.kernel[static_cast<size_t>(d)], {w_[static_cast<size_t>(d) + 2]});
    for (int64_t c = 0; c < channels_; ++c) {
      at.seek(0);
      for (int64_t tap = 0; tap < taps_; ++tap, at.next()) fn(c, tap, c * w_[1] + at.offset[0]);
    }
  }

  Position position(int64_t p) const {
    Position q;
    for (int d = 2; d >= 0; --d) {
      q.index[d] = p % axes_.out[d];
      p /= axes_.out[d];
      q.at[d] = q.index[d] * axes_.stride[d] - axes_.padding[d];
    }
    return q;
  }
  SAMPAN_INLINE void advance(Position* q) const {
    for (int d = 2; d >= 0; --d) {
      q->at[d] += axes_.stride[d];
      if (++q->index[d] < axes_.out[d]) return;
      q->index[d] = 0;
      q->at[d] = -axes_.padding[d];
    }
  }

  // fn(offset in the image, first kernel position, how many) for each run of kernel positions along the last axis that lie inside the image,
  // fn(-1, ...) for those outside.
  template <class F>
  SAMPAN_INLINE void each_run(const Position& q, F&& fn) const {
    const int64_t at0 = q.at[0], at1 = q.at[1], at2 = q.at[2];
    const int64_t step = axes_.dilation[2], width = axes_.kernel[2];
    int64_t low = 0, high = width;
    if (at2 < 0) low = std::min(width, (-at2 + step - 1) / step);
    if (at2 + (width - 1) * step >= axes_.in[2]) high = std::clamp<int64_t>((axes_.in[2] - at2 + step - 1) / step, low, width);
    int64_t tap = 0;
    for (int64_t k0 = 0; k0 < axes_.kernel[0]; ++k0)
      for (int64_t k1 = 0; k1 < axes_.kernel[1]; ++k1, tap += width) {
        const int64_t i0 = at0 + k0 * axes_.dilation[0], i1 = at1 + k1 * axes_.dilation[1];
        if (i0 < 0 || i0 >= axes_.in[0] || i1 < 0 || i1 >= axes_.in[1]) {
          fn(int64_t{-1}, tap, width);
          continue;
        }
        if (low > 0) fn(int64_t{-1}, tap, low);
        const int64_t row = (i0 * axes_.in[1] + i1) * axes_.in[2] + at2;
        if (step == 1) {
          if (high > low) fn((row + low) * s_.in_channels, tap + low, high - low);
        } else {
          for (int64_t k = low; k < high; ++k) fn((row + k * step) * s_.in_channels, tap + k, int64_t{1});
        }
        if (high < width) fn(int64_t{-1}, tap + high, width - high);
      }
  }

  static SAMPAN_INLINE void copy_row(const T* from, int64_t n, T* to) {
    if (n >= 16) {
      std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
      return;
    }
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];  // shorter than a call
  }

  // Of `width` channels from where image points.
  void gather_columns(const T* image, int64_t width, int64_t first, int64_t count, T* columns) const {
    const int64_t pixel = s_.in_channels;
    Position q = position(first);
    for (int64_t p = 0; p < count; ++p, advance(&q)) {
      T* column = columns + p * taps_ * width;
      each_run(q, [&](int64_t at, int64_t tap, int64_t run) {
        T* to = column + tap * width;
        if (at < 0)
          std::fill_n(to, run * width, T{});
        else if (pixel == width)
          copy_row(image + at, run * width, to);
        else
          for (int64_t k = 0; k < run; ++k) copy_row(image + at + k * pixel, width, to + k * width);
      });
    }
  }

  void add_columns(const T* columns, int64_t width, int64_t first, int64_t count, T* image) const {
    Position q = position(first);
    for (int64_t p = 0; p < count; ++p, advance(&q)) {
      const T* column = columns + p * taps_ * width;
      each_run(q, [&](int64_t at, int64_t tap, int64_t run) {
        if (at < 0) return;
        for (int64_t k = 0; k < run; ++k) {
          const T* from = column + (tap + k) * width;
          T* to = image + at + k * s_.in_channels;
          for (int64_t c = 0; c < width; ++c) to[c] += from[c];
        }
      });
    }
  }

  ConvShape s_;
  ThreeAxes axes_;
  ConvDirection direction_;
  Dims w_;
  size_t operands_;
  Epilogue epilogue_;
  int64_t bias_step_ = 1, channels_, filters_, taps_, points_, tiles_, tile_, blocks_ = 1, block_, parts_ = 1;
  bool is_pointwise_, is_depthwise_, is_by_filters_;
  double work_ns_;
};

}  // namespace

std::unique_ptr<NativeOp> make_conv_by_columns(const CallReader& call, const ConvShape& shape, ConvDirection direction, bool has_bias, Epilogue epilogue) {
  const NativeCall& c = call.call();
  const bool weights = direction == ConvDirection::kBackwardWeights;
  const Layout& w = weights ? *c.outputs[0] : *c.inputs[1];
  const Layout* bias = weights && has_bias ? c.outputs[1].get() : nullptr;
  const size_t operands = c.inputs.size() + c.outputs.size();
  if (shape.dtype == DType::k_float64) return std::make_unique<ConvByColumns<double>>(shape, direction, w, bias, operands, std::move(epilogue));
  return std::make_unique<ConvByColumns<float>>(shape, direction, w, bias, operands, std::move(epilogue));
}

}  // namespace sampan::kernels
