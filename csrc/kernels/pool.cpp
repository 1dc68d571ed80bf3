// pool_forward, pool_backward and their adaptive forms.
#include <algorithm>
#include <atomic>
#include <limits>

#include "exec/parallel.h"
#include "kernels/conv.h"
#include "kernels/pool.h"

namespace sampan::kernels {
namespace {

// The rows of the input, as numbers over all axes but the last, that the windows at o cover.
template <class F>
SAMPAN_INLINE void each_row(const std::vector<WindowAxis>& axes, const int64_t* o, F&& fn) {
  const size_t n = axes.size();
  int64_t h0 = 0, h1 = 1, h_step = 1, h_in = 1, d0 = 0, d1 = 1, d_step = 1;
  if (n > 1) {
    const WindowAxis& h = axes[n - 2];
    h0 = h.start[static_cast<size_t>(o[n - 2])];
    h1 = h.stop[static_cast<size_t>(o[n - 2])];
    h_step = h.step;
    h_in = h.in;
  }
  if (n > 2) {
    const WindowAxis& d = axes[n - 3];
    d0 = d.start[static_cast<size_t>(o[n - 3])];
    d1 = d.stop[static_cast<size_t>(o[n - 3])];
    d_step = d.step;
  }
  for (int64_t d = d0; d < d1; d += d_step)
    for (int64_t h = h0; h < h1; h += h_step) fn(d * h_in + h);
}

// The positions inside one window, in order: fn(flat position in the input's spatial axes).
template <class F>
SAMPAN_INLINE void each_position(const std::vector<WindowAxis>& axes, const int64_t* o, F&& fn) {
  const WindowAxis& w = axes.back();
  const size_t at = static_cast<size_t>(o[axes.size() - 1]);
  const int64_t first = w.start[at], last = w.stop[at];
  each_row(axes, o, [&](int64_t row) {
    for (int64_t x = first; x < last; x += w.step) fn(row * w.in + x);
  });
}

double window_size(const PoolShape& p) {
  double n = 1;
  for (const WindowAxis& a : p.axes) {
    double longest = 1;
    for (size_t o = 0; o < a.start.size(); ++o) longest = std::max(longest, static_cast<double>(a.stop[o] - a.start[o]) / static_cast<double>(a.step));
    n *= longest;
  }
  return n;
}

int64_t divisor_at(const PoolShape& p, const int64_t* o) {
  if (p.divisor_override > 0) return p.divisor_override;
  int64_t n = 1;
  for (size_t d = 0; d < p.axes.size(); ++d) n *= p.axes[d].extent[static_cast<size_t>(o[d])];
  return n;
}

// NaN wins, and the first of equal elements.
template <class T>
SAMPAN_INLINE bool beats(T v, T best) {
  return v > best || v != v;
}

// One output position of channels that lie together: rows of n channels.
template <class T>
SAMPAN_INLINE void max_rows(const PoolShape& p, const int64_t* o, const T* x, int64_t pixel, T* out, int64_t* at, int64_t n) {
  bool is_first = true;
  each_position(p.axes, o, [&](int64_t position) {
    const T* row = x + position * pixel;
    if (is_first) {
      for (int64_t c = 0; c < n; ++c) out[c] = row[c];
      for (int64_t c = 0; c < n && at; ++c) at[c] = position;
      is_first = false;
    } else if (at) {
      for (int64_t c = 0; c < n; ++c) {
        const bool wins = beats(row[c], out[c]) && out[c] == out[c];
        out[c] = wins ? row[c] : out[c];
        at[c] = wins ? position : at[c];
      }
    } else {
      for (int64_t c = 0; c < n; ++c) out[c] = beats(row[c], out[c]) ? row[c] : out[c];
    }
  });
}
template <class T>
SAMPAN_INLINE void sum_rows(const PoolShape& p, const int64_t* o, const T* x, int64_t pixel, T* out, int64_t n) {
  for (int64_t c = 0; c < n; ++c) out[c] = T{};
  each_position(p.axes, o, [&](int64_t position) {
    const T* row = x + position * pixel;
    for (int64_t c = 0; c < n; ++c) out[c] += row[c];
  });
  const T scale = T{1} / static_cast<T>(divisor_at(p, o));
  for (int64_t c = 0; c < n; ++c) out[c] *= scale;
}

template <class T>
SAMPAN_INLINE void max_down_rows(const T* from, int32_t row, int64_t n, T* best, int32_t* rows) {
  for (int64_t c = 0; c < n; ++c) {
    const bool wins = (from[c] > best[c]) | ((from[c] != from[c]) & (best[c] == best[c]));
    best[c] = wins ? from[c] : best[c];
    rows[c] = wins ? row : rows[c];
  }
}
SAMPAN_CLONES void max_down(const float* from, int32_t row, int64_t n, float* best, int32_t* rows) { max_down_rows(from, row, n, best, rows); }
template <class T>
void max_down(const T* from, int32_t row, int64_t n, T* best, int32_t* rows) {
  max_down_rows(from, row, n, best, rows);
}

SAMPAN_CLONES void sum_floats(const PoolShape& p, const int64_t* o, const float* x, int64_t pixel, float* out, int64_t n) { sum_rows(p, o, x, pixel, out, n); }

// The maxima of one row of output positions in one plane: first down the columns that the row's windows cover, a vector at a time, then along them.
// scratch: as many values and row numbers as the plane is wide.
template <class T>
struct RowScratch {
  std::vector<T> best;
  std::vector<int32_t> rows;
};
template <class T>
SAMPAN_INLINE void max_of_row(const PoolShape& p, const int64_t* o, const T* plane, T* out, int64_t* at, RowScratch<T>* scratch) {
  const size_t n = p.axes.size();
  const WindowAxis& w = p.axes[n - 1];
  const int64_t width = w.in;
  T* best = scratch->best.data();
  int32_t* rows = scratch->rows.data();
  bool is_first = true;
  each_row(p.axes, o, [&](int64_t row) {
    const T* from = plane + row * width;
    if (is_first) {
      std::copy_n(from, width, best);
      std::fill_n(rows, width, static_cast<int32_t>(row));
      is_first = false;
    } else {
      max_down(from, static_cast<int32_t>(row), width, best, rows);
    }
  });
  for (int64_t k = 0; k < w.out; ++k) {
    const int64_t first = w.start[static_cast<size_t>(k)], last = w.stop[static_cast<size_t>(k)];
    T value = best[first];
    int64_t row = rows[first], column = first;
    for (int64_t c = first + w.step; c < last; c += w.step) {
      const T v = best[c];
      // Of equal entries, and of NaNs, the first in row-major order.
      const bool is_equal = v == value || (v != v && value != value);
      if (is_equal ? rows[c] < row : beats(v, value) && value == value) {
        value = v;
        row = rows[c];
        column = c;
      }
    }
    out[k] = value;
    if (at) at[k] = row * width + column;
  }
}

// The sum of n values side by side, in an order that n alone decides.
template <class T>
SAMPAN_INLINE T sum_run(const T* x, int64_t n) {
  constexpr int64_t kL = kLanes<T>;
  if (n < kL) {
    T sum{};
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    return sum;
  }
  Vec<T> sums[4] = {};
  int64_t i = 0;
  for (; i + 4 * kL <= n; i += 4 * kL)
    for (int k = 0; k < 4; ++k) sums[k] += load(x + i + k * kL);
  for (; i + kL <= n; i += kL) sums[0] += load(x + i);
  T total = sum_lanes<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < n; ++i) total += x[i];
  return total;
}
SAMPAN_CLONES float sum_of(const float* x, int64_t n) { return sum_run(x, n); }
SAMPAN_CLONES double sum_of(const double* x, int64_t n) { return sum_run(x, n); }

// Channels-last when any operand is so and nothing else, row-major otherwise.
bool runs_channels_last(const NativeCall& c) {
  auto is_last = [](const LayoutRef& l) { return !pool_layout(l)->is_contiguous; };
  return std::any_of(c.inputs.begin(), c.inputs.end(), is_last) || std::any_of(c.outputs.begin(), c.outputs.end(), is_last);
}

class PoolForward final : public NativeOp {
 public:
  PoolForward(PoolShape p, const NativeCall& c) : p_(std::move(p)), is_last_(runs_channels_last(c)), is_int32_(p_.with_indices && c.outputs[1]->dtype == DType::k_int32) {
    for (const WindowAxis& a : p_.axes) is_whole_ = is_whole_ && a.out == 1 && a.step == 1 && a.start[0] == 0 && a.stop[0] == a.in;
  }

  void run(char* const* buffers, char*) const override {
    with_type(p_.dtype, [&]<class T>() {
      if constexpr (!is_complex<T> && !is_half<T> && !std::is_same_v<T, bool>) {
        const T* x = reinterpret_cast<const T*>(buffers[0]);
        T* out = reinterpret_cast<T*>(buffers[1]);
        if (is_last_)
          channels_last(x, out, buffers);
        else
          planes(x, out, buffers);
      }
    });
  }

 private:
  static constexpr int64_t kChannels = 256;  // at a time: their running positions stay in L1

  template <class T>
  void channels_last(const T* x, T* out, char* const* buffers) const {
    const int64_t points = p_.out_size(), in_size = p_.in_size(), channels = p_.channels;
    parallel_for(p_.batch * points, window_size(p_) * static_cast<double>(channels) * (p_.with_indices ? 0.6 : 0.2), [&](int64_t begin, int64_t end) {
      Position at;
      at.seek(p_.axes, begin % points);
      if constexpr (std::is_same_v<T, float>) {
        if (p_.is_max && in_size <= INT32_MAX) {
          for (int64_t i = begin, count; i < end; i += count, at = {}) {
            count = std::min(end, (i / points + 1) * points) - i;
            const float* image = x + i / points * in_size * channels;
            if (!p_.with_indices)
              max_run(p_, at, count, image, channels, out + i * channels);
            else if (is_int32_)
              max_run(p_, at, count, image, channels, out + i * channels, reinterpret_cast<int32_t*>(buffers[2]) + i * channels);
            else
              max_run(p_, at, count, image, channels, out + i * channels, reinterpret_cast<int64_t*>(buffers[2]) + i * channels);
          }
          return;
        }
      }
      int64_t indices[kChannels], image_number = begin / points;
      for (int64_t i = begin, left = points - begin % points; i < end; ++i, at.next(p_.axes)) {
        const T* image = x + image_number * in_size * channels;
        if (--left == 0) {
          ++image_number;
          left = points;
        }
        for (int64_t c = 0; c < channels; c += kChannels) {
          const int64_t n = std::min(kChannels, channels - c);
          T* to = out + i * channels + c;
          int64_t* found = p_.with_indices ? indices : nullptr;
          if (p_.is_max) {
            max_rows(p_, at.o, image + c, channels, to, found, n);
          } else if constexpr (std::is_same_v<T, float>) {
            sum_floats(p_, at.o, image + c, channels, to, n);
          } else if constexpr (std::is_floating_point_v<T>) {
            sum_rows(p_, at.o, image + c, channels, to, n);
          }
          for (int64_t j = 0; j < n && found; ++j) store_index(buffers[2], i * channels + c + j, found[j]);
        }
      }
    });
  }

  template <class T>
  void planes(const T* x, T* out, char* const* buffers) const {
    const int64_t width = p_.axes.back().out, rows = p_.out_size() / width;
    parallel_for(p_.batch * p_.channels * rows, static_cast<double>(width) * (2.0 + window_size(p_)), [&](int64_t begin, int64_t end) {
      RowScratch<T> scratch{std::vector<T>(static_cast<size_t>(p_.axes.back().in)), std::vector<int32_t>(static_cast<size_t>(p_.axes.back().in))};
      std::vector<int64_t> found(static_cast<size_t>(width));
      Position at;
      at.seek(p_.axes, begin % rows * width);
      for (int64_t i = begin; i < end; ++i, at.next_row(p_.axes)) {
        const T* plane = x + i / rows * p_.in_size();
        if (is_whole_ && !p_.is_max) {
          if constexpr (std::is_floating_point_v<T>) out[i] = sum_of(plane, p_.in_size()) / static_cast<T>(divisor_at(p_, at.o));
        } else if (p_.is_max) {
          max_of_row(p_, at.o, plane, out + i * width, p_.with_indices ? found.data() : nullptr, &scratch);
          for (int64_t k = 0; k < width && p_.with_indices; ++k) store_index(buffers[2], i * width + k, found[static_cast<size_t>(k)]);
        } else if constexpr (std::is_floating_point_v<T>) {
          for (int64_t k = 0; k < width; ++k) {
            int64_t o[3] = {at.o[0], at.o[1], at.o[2]};
            o[p_.axes.size() - 1] = k;
            out[i * width + k] = window_sum(plane, o) / static_cast<T>(divisor_at(p_, o));
          }
        }
      }
    });
  }

  template <class T>
  T window_sum(const T* plane, const int64_t* o) const {
    const WindowAxis& w = p_.axes.back();
    const size_t k = static_cast<size_t>(o[p_.axes.size() - 1]);
    T sum{};
    each_row(p_.axes, o, [&](int64_t row) {
      const T* from = plane + row * w.in + w.start[k];
      const int64_t n = w.stop[k] - w.start[k];
      if (n >= 2 * kLanes<T>)
        sum += sum_of(from, n);
      else
        for (int64_t c = 0; c < n; ++c) sum += from[c];
    });
    return sum;
  }

  void store_index(char* indices, int64_t i, int64_t v) const {
    if (is_int32_)
      reinterpret_cast<int32_t*>(indices)[i] = static_cast<int32_t>(v);
    else
      reinterpret_cast<int64_t*>(indices)[i] = v;
  }

  PoolShape p_;
  bool is_last_, is_int32_, is_whole_ = true;  // whole: one window covers the plane
};

class PoolBackward final : public NativeOp {
 public:
  PoolBackward(PoolShape p, const NativeCall& c)
      : p_(std::move(p)), is_last_(runs_channels_last(c)), is_int32_(p_.with_indices && c.inputs[1]->dtype == DType::k_int32), output_(c.inputs.size()) {}

  void run(char* const* buffers, char*) const override {
    if (p_.with_indices) check_indices(buffers[1]);
    with_type(p_.dtype, [&]<class T>() {
      if constexpr (std::is_floating_point_v<T>) {
        const T* grad = reinterpret_cast<const T*>(buffers[0]);
        T* to = reinterpret_cast<T*>(buffers[output_]);
        const T* x = p_.is_max && !p_.with_indices ? reinterpret_cast<const T*>(buffers[1]) : nullptr;
        if (is_last_)
          channels_last(grad, x, buffers[1], to);
        else
          planes(grad, x, buffers[1], to);
      }
    });
  }

 private:
  static constexpr int64_t kChannels = 64;  // a cache line or more: threads that share a pixel do not share lines

  // Image by image and by groups of channels: windows overlap, so a plane belongs to one thread.
  template <class T>
  void channels_last(const T* grad, const T* x, const char* indices, T* to) const {
    const int64_t points = p_.out_size(), pixels = p_.in_size(), channels = p_.channels, groups = (channels + kChannels - 1) / kChannels;
    parallel_for(p_.batch * groups, (window_size(p_) * static_cast<double>(points) + static_cast<double>(pixels)) * static_cast<double>(std::min(channels, kChannels)) * 0.3, [&](int64_t begin, int64_t end) {
      T values[kChannels];
      int64_t found[kChannels];
      int32_t positions[kChannels];
      for (int64_t u = begin; u < end; ++u) {
        const int64_t c = u % groups * kChannels, n = std::min(kChannels, channels - c);
        const int64_t image = u / groups;
        T* plane = to + image * pixels * channels + c;
        if (n == channels)
          std::fill_n(plane, pixels * channels, T{});
        else
          for (int64_t i = 0; i < pixels; ++i) std::fill_n(plane + i * channels, n, T{});
        if (p_.is_max && !x) {
          with_index(indices, [&](const auto* index) {
            for (int64_t i = 0; i < points; ++i) {
              const int64_t first = (image * points + i) * channels + c;
              for (int64_t j = 0; j < n; ++j) plane[within(index[first + j], pixels) * channels + j] += grad[first + j];
            }
          });
          continue;
        }
        Position at;
        for (int64_t i = 0; i < points; ++i, at.next(p_.axes)) {
          const int64_t first = (image * points + i) * channels + c;
          const T* row = grad + first;
          if (!p_.is_max) {
            const T scale = T{1} / static_cast<T>(divisor_at(p_, at.o));
            each_position(p_.axes, at.o, [&](int64_t position) {
              T* pixel = plane + position * channels;
              for (int64_t j = 0; j < n; ++j) pixel[j] += row[j] * scale;
            });
            continue;
          }
          if constexpr (std::is_same_v<T, float>) {
            if (pixels <= INT32_MAX) {
              max_floats(p_, at.o, x + image * pixels * channels + c, channels, values, positions, n);
              for (int64_t j = 0; j < n; ++j) plane[positions[j] * channels + j] += row[j];
              continue;
            }
          }
          max_rows(p_, at.o, x + image * pixels * channels + c, channels, values, found, n);
          for (int64_t j = 0; j < n; ++j) plane[found[j] * channels + j] += row[j];
        }
      }
    });
  }

  template <class T>
  void planes(const T* grad, const T* x, const char* indices, T* to) const {
    const int64_t points = p_.out_size(), pixels = p_.in_size();
    parallel_for(p_.batch * p_.channels, window_size(p_) * static_cast<double>(points) + static_cast<double>(pixels), [&](int64_t begin, int64_t end) {
      const int64_t width = p_.axes.back().out;
      const size_t across = static_cast<size_t>(p_.axes.back().in);
      RowScratch<T> scratch{std::vector<T>(across), std::vector<int32_t>(across)};
      std::vector<T> values(static_cast<size_t>(width));
      std::vector<int64_t> found(static_cast<size_t>(width));
      for (int64_t u = begin; u < end; ++u) {
        T* plane = to + u * pixels;
        std::fill_n(plane, pixels, T{});
        const T* from = grad + u * points;
        Position at;
        if (x) {
          for (int64_t i = 0; i < points; i += width, at.next_row(p_.axes)) {
            max_of_row(p_, at.o, x + u * pixels, values.data(), found.data(), &scratch);
            for (int64_t k = 0; k < width; ++k) plane[found[static_cast<size_t>(k)]] += from[i + k];
          }
        } else if (p_.is_max) {
          with_index(indices, [&](const auto* index) {
            for (int64_t i = 0; i < points; ++i) plane[within(index[u * points + i], pixels)] += from[i];
          });
        } else {
          for (int64_t i = 0; i < points; ++i, at.next(p_.axes)) {
            const T share = from[i] / static_cast<T>(divisor_at(p_, at.o));
            each_position(p_.axes, at.o, [&](int64_t position) { plane[position] += share; });
          }
        }
      }
    });
  }

  // fn(indices as their own type)
  template <class F>
  void with_index(const char* indices, F&& fn) const {
    if (is_int32_)
      fn(reinterpret_cast<const int32_t*>(indices));
    else
      fn(reinterpret_cast<const int64_t*>(indices));
  }

  void check_indices(const char* given) const {
    with_index(given, [&](const auto* indices) {
      const int64_t pixels = p_.in_size();
      std::atomic<int64_t> bad{-1};
      parallel_for(p_.batch * p_.channels * p_.out_size(), 0.5, [&](int64_t begin, int64_t end) {
        auto low = indices[begin], high = low;
        for (int64_t i = begin; i < end; ++i) {
          low = std::min(low, indices[i]);
          high = std::max(high, indices[i]);
        }
        for (int64_t i = begin; i < end && (low < 0 || high >= pixels); ++i)
          if (indices[i] < 0 || indices[i] >= pixels) bad = i;
      });
      if (bad < 0) return;
      throw Error(ErrorKind::kIndex, "pool_backward(grad_out, indices): an index is " + std::to_string(indices[bad.load()]) + "; 0 to " + std::to_string(pixels - 1) + " are valid");
    });
  }

  PoolShape p_;
  bool is_last_, is_int32_;
  size_t output_;
};

// Null when all operands already have the one layout.
std::unique_ptr<NativeOp> make_uniform(const NativeFactory& factory, const NativeCall& c) {
  const bool last = runs_channels_last(c);
  auto settle = [&](std::vector<LayoutRef> layouts) {
    for (LayoutRef& l : layouts) l = last ? channels_last_layout(l->dtype, shape_of(*l)) : contiguous_layout(l->dtype, l->shape_span());
    return layouts;
  };
  const std::vector<LayoutRef> inputs = settle(c.inputs), outputs = settle(c.outputs);
  if (inputs == c.inputs && outputs == c.outputs) return nullptr;
  return make_converted(factory, c, inputs, outputs, false);
}

bool is_16_bit(DType t) { return t == DType::k_float16 || t == DType::k_bfloat16; }

// 16-bit images one by one: as float32 numbers they then stay in a cache.
class WidenedImages final : public NativeOp {
 public:
  WidenedImages(const NativeFactory& factory, const NativeCall& c) : batch_(c.outputs[0]->shape[0]) {
    NativeCall one = c;
    for (std::vector<LayoutRef>* layouts : {&one.inputs, &one.outputs})
      for (LayoutRef& l : *layouts) {
        steps_.push_back(l->strides[0] * static_cast<int64_t>(dtype_size(l->dtype)));
        cost_ns_ += static_cast<double>(l->numel) / static_cast<double>(batch_);
        Dims shape = shape_of(*l);
        shape[0] = 1;
        l = intern_layout(l->dtype, shape, strides_of(*l));
      }
    image_ = make_widened(factory, one, false);
  }

  void run(char* const* buffers, char*) const override {
    parallel_for(batch_, cost_ns_, [&](int64_t begin, int64_t end) {
      const Block scratch(image_->scratch_bytes());
      std::vector<char*> at(steps_.size());
      for (int64_t n = begin; n < end; ++n) {
        for (size_t i = 0; i < at.size(); ++i) at[i] = buffers[i] + n * steps_[i];
        image_->run(at.data(), scratch.as<char>());
      }
    });
  }

 private:
  int64_t batch_;
  std::vector<int64_t> steps_;
  double cost_ns_ = 0;
  std::unique_ptr<NativeOp> image_;
};

template <bool is_adaptive>
std::unique_ptr<NativeOp> make_forward(const NativeCall& c) {
  CallReader call(is_adaptive ? "adaptive_pool_forward" : "pool_forward", c);
  const bool with_indices = call.flag("with_indices", false);
  call.operands(1, with_indices ? 2 : 1);
  const PoolShape p = read_pool(call, call.input(0), call.output(0), is_adaptive, false);
  call.same_dtype(call.input(0), call.output(0), "x and the output");
  const char kind = dtype_kind(p.dtype);
  if (kind == 'c' || kind == 'b' || (kind != 'f' && !p.is_max)) call.fail(ErrorKind::kDType, std::string("no such pooling of ") + dtype_name(p.dtype));
  if (with_indices) {
    call.same_shape(call.output(1), shape_of(call.output(0)), "indices");
    call.index_dtype(call.output(1), "indices");
  }
  if (call.output(0).numel == 0) return make_nothing();
  if (is_16_bit(p.dtype)) return std::make_unique<WidenedImages>(make_forward<is_adaptive>, c);
  if (auto op = make_uniform(make_forward<is_adaptive>, c)) return op;
  return std::make_unique<PoolForward>(p, c);
}

template <bool is_adaptive>
std::unique_ptr<NativeOp> make_backward(const NativeCall& c) {
  CallReader call(is_adaptive ? "adaptive_pool_backward" : "pool_backward", c);
  const bool is_max = call.text("kind", "max") == "max";
  call.operands(is_max ? 2 : 1, 1);
  const Layout &grad = call.input(0), &out = call.output(0);
  const PoolShape p = read_pool(call, out, grad, is_adaptive, true);
  call.same_dtype(grad, out, "the gradients");
  if (dtype_kind(p.dtype) != 'f') call.fail(ErrorKind::kDType, "gradients are of floating dtypes");
  if (p.with_indices) {
    call.same_shape(call.input(1), shape_of(grad), "indices");
    call.index_dtype(call.input(1), "indices");
  } else if (is_max) {
    call.same_shape(call.input(1), shape_of(out), "x");
    call.same_dtype(call.input(1), out, "x and the gradients");
  }
  if (out.numel == 0) return make_nothing();
  if (is_16_bit(p.dtype)) return std::make_unique<WidenedImages>(make_backward<is_adaptive>, c);
  if (auto op = make_uniform(make_backward<is_adaptive>, c)) return op;
  return std::make_unique<PoolBackward>(p, c);
}

const RegisterNative forward("pool_forward", make_forward<false>);
const RegisterNative backward("pool_backward", make_backward<false>);
const RegisterNative adaptive_forward("adaptive_pool_forward", make_forward<true>);
const RegisterNative adaptive_backward("adaptive_pool_backward", make_backward<true>);

}  // namespace
}  // namespace sampan::kernels
