#include <algorithm>

#include "exec/parallel.h"
#include "kernels/conv.h"
#include "kernels/gemm.h"

namespace sampan::kernels {
namespace {

template <class T>
class ConvByColumns final : public NativeOp {
 public:
  ConvByColumns(const ConvShape& shape, ConvDirection direction, const Layout& x, const Layout& weight, const Layout& out, const Layout* bias, size_t operands,
                Epilogue epilogue)
      : s_(shape), direction_(direction), x_(strides_of(x)), w_(strides_of(weight)), out_(strides_of(out)), operands_(operands), epilogue_(std::move(epilogue)) {
    if (bias) bias_step_ = bias->strides[0];
    channels_ = s_.in_channels / s_.groups;
    filters_ = s_.out_channels / s_.groups;
    rows_ = channels_ * s_.kernel_size();
  }

  // One image of one group: rows are (channel, kernel position), columns are output positions; then the weights or their gradient, row-major.
  size_t scratch_bytes() const override {
    return align64(static_cast<size_t>(rows_ * s_.out_size()) * sizeof(T)) + align64(static_cast<size_t>(s_.out_channels * rows_) * sizeof(T)) +
           align64(static_cast<size_t>(s_.out_channels * s_.out_size()) * sizeof(T));
  }

  void run(char* const* buffers, char* scratch) const override {
    T* columns = reinterpret_cast<T*>(scratch);
    T* weights = reinterpret_cast<T*>(scratch + align64(static_cast<size_t>(rows_ * s_.out_size()) * sizeof(T)));
    T* plane = reinterpret_cast<T*>(reinterpret_cast<char*>(weights) + align64(static_cast<size_t>(s_.out_channels * rows_) * sizeof(T)));
    if (direction_ == ConvDirection::kForward)
      forward(buffers, columns, weights, plane);
    else if (direction_ == ConvDirection::kBackwardData)
      backward_data(buffers, columns, weights, plane);
    else
      backward_weights(buffers, columns, weights, plane);
  }

 private:
  void forward(char* const* buffers, T* columns, T* weights, T* plane) const {
    const T* x = reinterpret_cast<const T*>(buffers[0]);
    T* out = reinterpret_cast<T*>(buffers[operands_ - 1]);
    each_weight([&](int64_t i, int64_t at) { weights[i] = reinterpret_cast<const T*>(buffers[1])[at]; });
    const int64_t points = s_.out_size();
    for (int64_t n = 0; n < s_.batch; ++n) {
      for (int64_t g = 0; g < s_.groups; ++g) {
        const T* from = x + n * x_[0] + g * channels_ * x_[1];
        each_column([&](int64_t i, int64_t c, int64_t at, bool inside) { columns[i] = inside ? from[c * x_[1] + at] : T{}; });
        gemm({filters_, points, rows_, weights + g * filters_ * rows_, rows_, 1, columns, points, 1, plane + g * filters_ * points, points, 1, false, false});
      }
      each_output([&](int64_t i, int64_t at) { out[n * out_[0] + at] = plane[i]; });
    }
    if (!epilogue_.empty()) epilogue_.run(buffers + 2, buffers[operands_ - 1]);
  }

  void backward_data(char* const* buffers, T* columns, T* weights, T* plane) const {
    const T* grad = reinterpret_cast<const T*>(buffers[0]);
    T* x = reinterpret_cast<T*>(buffers[operands_ - 1]);
    each_weight([&](int64_t i, int64_t at) { weights[i] = reinterpret_cast<const T*>(buffers[1])[at]; });
    const int64_t points = s_.out_size();
    Odometer<1> all;
    all.add_axis(s_.batch, {x_[0]});
    all.add_axis(s_.in_channels, {x_[1]});
    for (int d = 0; d < s_.spatial; ++d) all.add_axis(s_.in[static_cast<size_t>(d)], {x_[static_cast<size_t>(d) + 2]});
    const int64_t total = all.total();
    all.seek(0);
    for (int64_t i = 0; i < total; ++i, all.next()) x[all.offset[0]] = T{};
    for (int64_t n = 0; n < s_.batch; ++n) {
      each_output([&](int64_t i, int64_t at) { plane[i] = grad[n * out_[0] + at]; });
      for (int64_t g = 0; g < s_.groups; ++g) {
        gemm({rows_, points, filters_, weights + g * filters_ * rows_, 1, rows_, plane + g * filters_ * points, points, 1, columns, points, 1, false, false});
        T* to = x + n * x_[0] + g * channels_ * x_[1];
        each_column([&](int64_t i, int64_t c, int64_t at, bool inside) {
          if (inside) to[c * x_[1] + at] += columns[i];
        });
      }
    }
    if (!epilogue_.empty()) epilogue_.run(buffers + 2, buffers[operands_ - 1]);
  }

  void backward_weights(char* const* buffers, T* columns, T* weights, T* plane) const {
    const T *x = reinterpret_cast<const T*>(buffers[0]), *grad = reinterpret_cast<const T*>(buffers[1]);
    const int64_t points = s_.out_size();
    std::fill(weights, weights + s_.out_channels * rows_, T{});
    std::vector<T> bias(static_cast<size_t>(s_.out_channels));
    for (int64_t n = 0; n < s_.batch; ++n) {
      each_output([&](int64_t i, int64_t at) { plane[i] = grad[n * out_[0] + at]; });
      for (int64_t o = 0; o < s_.out_channels; ++o)
        for (int64_t i = 0; i < points; ++i) bias[static_cast<size_t>(o)] += plane[o * points + i];
      for (int64_t g = 0; g < s_.groups; ++g) {
        const T* from = x + n * x_[0] + g * channels_ * x_[1];
        each_column([&](int64_t i, int64_t c, int64_t at, bool inside) { columns[i] = inside ? from[c * x_[1] + at] : T{}; });
        gemm({filters_, rows_, points, plane + g * filters_ * points, points, 1, columns, 1, points, weights + g * filters_ * rows_, rows_, 1, true, false});
      }
    }
    T* to = reinterpret_cast<T*>(buffers[2]);
    each_weight([&](int64_t i, int64_t at) { to[at] = weights[i]; });
    for (int64_t o = 0; o < s_.out_channels && operands_ == 4; ++o) reinterpret_cast<T*>(buffers[3])[o * bias_step_] = bias[static_cast<size_t>(o)];
  }

  // fn(row-major position, element offset) over the weights.
  template <class F>
  void each_weight(F&& fn) const {
    Odometer<1> at;
    at.add_axis(s_.out_channels, {w_[0]});
    at.add_axis(channels_, {w_[1]});
    for (size_t d = 0; d < s_.kernel.size(); ++d) at.add_axis(s_.kernel[d], {w_[d + 2]});
    const int64_t total = at.total();
    at.seek(0);
    for (int64_t i = 0; i < total; ++i, at.next()) fn(i, at.offset[0]);
  }

  // The same over one image of the output, [O, points].
  template <class F>
  void each_output(F&& fn) const {
    Odometer<1> at;
    at.add_axis(s_.out_channels, {out_[1]});
    for (size_t d = 0; d < s_.out.size(); ++d) at.add_axis(s_.out[d], {out_[d + 2]});
    const int64_t total = at.total();
    at.seek(0);
    for (int64_t i = 0; i < total; ++i, at.next()) fn(i, at.offset[0]);
  }

  // fn(position in columns, channel, spatial offset into the image, whether that lies inside it); a channel's rows stay on one thread.
  template <class F>
  void each_column(F&& fn) const {
    const int64_t points = s_.out_size(), taps = s_.kernel_size();
    parallel_for(channels_, 2.0 * static_cast<double>(points * taps), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        for (int64_t tap = 0; tap < taps; ++tap)
          for (int64_t p = 0; p < points; ++p) {
            int64_t k = tap, o = p, at = 0;
            bool inside = true;
            for (size_t d = s_.in.size(); d-- > 0;) {
              const int64_t i = o % s_.out[d] * s_.strides[d] - s_.padding_low[d] + k % s_.kernel[d] * s_.dilations[d];
              inside = inside && i >= 0 && i < s_.in[d];
              at += i * x_[d + 2];
              k /= s_.kernel[d];
              o /= s_.out[d];
            }
            fn((c * taps + tap) * points + p, c, at, inside);
          }
    });
  }

  ConvShape s_;
  ConvDirection direction_;
  Dims x_, w_, out_;
  size_t operands_;
  Epilogue epilogue_;
  int64_t bias_step_ = 1, channels_, filters_, rows_;
};

}  // namespace

std::unique_ptr<NativeOp> make_conv_by_columns(const CallReader& call, const ConvShape& shape, ConvDirection direction, bool has_bias, Epilogue epilogue) {
  const NativeCall& c = call.call();
  const bool weights = direction == ConvDirection::kBackwardWeights, forward = direction == ConvDirection::kForward;
  const Layout& x = forward || weights ? *c.inputs[0] : *c.outputs[0];
  const Layout& w = weights ? *c.outputs[0] : *c.inputs[1];
  const Layout& out = forward ? *c.outputs[0] : weights ? *c.inputs[1] : *c.inputs[0];
  const Layout* bias = weights && has_bias ? c.outputs[1].get() : nullptr;
  const size_t operands = c.inputs.size() + c.outputs.size();
  if (shape.dtype == DType::k_float64) return std::make_unique<ConvByColumns<double>>(shape, direction, x, w, out, bias, operands, std::move(epilogue));
  return std::make_unique<ConvByColumns<float>>(shape, direction, x, w, out, bias, operands, std::move(epilogue));
}

}  // namespace sampan::kernels
