#include "kernels/conv_product.h"

#include <algorithm>
#include <cstring>

#include "exec/parallel.h"
#include "kernels/matmul.h"

namespace sampan::kernels {
namespace {

// From input channels to output channels, or back.
LayoutRef weight_matrix(const Conv& c) {
  const size_t from = c.direction == ConvDirection::kForward ? 1 : 0, to = 1 - from;
  return intern_layout(c.weight->dtype, Dims{c.weight->shape[from], c.weight->shape[to]}, Dims{c.weight->strides[from], c.weight->strides[to]});
}

bool all_are(const Dims& d, int64_t value) {
  return std::all_of(d.begin(), d.end(), [&](int64_t v) { return v == value; });
}

// The product of every stride-th pixel: these are copied together before it, or apart, with zeros between them, behind it.
class StridedProduct final : public NativeOp {
 public:
  StridedProduct(const Conv& c, std::unique_ptr<NativeOp> product, size_t operands)
      : axes_(c.shape), product_(std::move(product)), operands_(operands), is_forward_(c.direction == ConvDirection::kForward), batch_(c.shape.batch), channels_(c.shape.in_channels) {}

  size_t scratch_bytes() const override { return pixels_bytes() + product_->scratch_bytes(); }

  void run(char* const* buffers, char* scratch) const override {
    std::vector<char*> of_product(buffers, buffers + operands_);
    of_product[is_forward_ ? 0 : operands_ - 1] = scratch;
    if (is_forward_) gather(reinterpret_cast<const float*>(buffers[0]), reinterpret_cast<float*>(scratch));
    product_->run(of_product.data(), scratch + pixels_bytes());
    if (!is_forward_) spread(reinterpret_cast<const float*>(scratch), reinterpret_cast<float*>(buffers[operands_ - 1]));
  }

 private:
  size_t pixels_bytes() const { return (static_cast<size_t>(batch_ * axes_.out[0] * axes_.out[1] * axes_.out[2] * channels_) * sizeof(float) + 63) / 64 * 64; }
  size_t pixel_bytes() const { return static_cast<size_t>(channels_) * sizeof(float); }

  void gather(const float* image, float* to) const {
    const int64_t lines = batch_ * axes_.out[0] * axes_.out[1];
    parallel_for(lines, static_cast<double>(axes_.out[2] * channels_) * 0.3, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t i1 = line % axes_.out[1] * axes_.stride[1], i0 = line / axes_.out[1] % axes_.out[0] * axes_.stride[0], n = line / axes_.out[1] / axes_.out[0];
        const float* from = image + ((n * axes_.in[0] + i0) * axes_.in[1] + i1) * axes_.in[2] * channels_;
        for (int64_t i = 0; i < axes_.out[2]; ++i) std::memcpy(to + (line * axes_.out[2] + i) * channels_, from + i * axes_.stride[2] * channels_, pixel_bytes());
      }
    });
  }

  void spread(const float* from, float* image) const {
    const int64_t lines = batch_ * axes_.in[0] * axes_.in[1];
    parallel_for(lines, static_cast<double>(axes_.in[2] * channels_) * 0.2, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t i1 = line % axes_.in[1], i0 = line / axes_.in[1] % axes_.in[0], n = line / axes_.in[1] / axes_.in[0];
        float* to = image + line * axes_.in[2] * channels_;
        const bool has_results = i0 % axes_.stride[0] == 0 && i1 % axes_.stride[1] == 0;
        const float* results = from + ((n * axes_.out[0] + i0 / axes_.stride[0]) * axes_.out[1] + i1 / axes_.stride[1]) * axes_.out[2] * channels_;
        for (int64_t i = 0; i < axes_.in[2]; ++i, to += channels_) {
          if (has_results && i % axes_.stride[2] == 0)
            std::memcpy(to, results + i / axes_.stride[2] * channels_, pixel_bytes());
          else
            std::fill_n(to, channels_, 0.f);
        }
      }
    });
  }

  ThreeAxes axes_;
  std::unique_ptr<NativeOp> product_;
  size_t operands_;
  bool is_forward_;
  int64_t batch_, channels_;
};

}  // namespace

bool suits_product(const Conv& c) {
  const ConvShape& s = c.shape;
  constexpr int64_t kLeastChannels = 16;
  if (s.dtype != DType::k_float32 || s.groups != 1 || c.direction == ConvDirection::kBackwardWeights || std::min(s.in_channels, s.out_channels) < kLeastChannels) return false;
  if (!all_are(s.kernel, 1) || !all_are(s.padding_low, 0) || !all_are(s.padding_high, 0)) return false;
  // Copies of pixels are small beside the product only where channels are many.
  constexpr int64_t kLeastStrided = 128;
  if (!all_are(s.strides, 1) && (std::min(s.in_channels, s.out_channels) < kLeastStrided || (c.direction == ConvDirection::kBackwardData && (c.bias || !c.steps.empty())))) return false;
  const Layout& result = c.direction == ConvDirection::kForward ? *c.out : *c.x;
  return std::all_of(c.extras.begin(), c.extras.end(), [&](const LayoutRef& l) { return l->rank == result.rank && l->numel == result.numel && lies_channels_last(*l); });
}

size_t product_weight_bytes(const Conv& c) { return own_matmul_panel_bytes(*weight_matrix(c)); }
std::unique_ptr<NativeOp> make_product_weights(const Conv& c) { return make_own_matmul_panels(*weight_matrix(c)); }

std::unique_ptr<NativeOp> make_conv_product(const NativeCall& given, const Conv& c, bool packed) {
  NativeCall product;
  for (const char* name : {"has_bias", "epilogue"})
    if (const auto it = given.attributes.find(name); it != given.attributes.end()) product.attributes.insert(*it);
  auto pixels = [&](int64_t channels) { return contiguous_layout(c.shape.dtype, Dims{c.shape.batch * c.shape.out_size(), channels}); };
  const bool is_forward = c.direction == ConvDirection::kForward;
  const int64_t from = is_forward ? c.shape.in_channels : c.shape.out_channels, to = is_forward ? c.shape.out_channels : c.shape.in_channels;
  product.inputs = {pixels(from), weight_matrix(c)};
  if (c.bias) product.inputs.push_back(c.bias);
  product.inputs.insert(product.inputs.end(), c.extras.size(), pixels(to));
  product.outputs = {pixels(to)};
  auto op = make_own_matmul(product, packed);
  if (all_are(c.shape.strides, 1)) return op;
  return std::make_unique<StridedProduct>(c, std::move(op), given.inputs.size() + 1);
}

}  // namespace sampan::kernels
