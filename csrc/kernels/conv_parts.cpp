// Gradients of convolutions through oneDNN in parts of the batch and of channels: oneDNN's own division among threads would decide the order of sums.
#include <algorithm>

#include "exec/parallel.h"
#include "kernels/conv_onednn.h"

namespace sampan::kernels {
namespace {

constexpr double kMultiplicationNs = 0.03;

LayoutRef slice(DType dtype, const Layout& l, int axis, int64_t size) {
  Dims shape = shape_of(l);
  shape[static_cast<size_t>(axis)] = size;
  return intern_layout(dtype, shape, strides_of(l));
}

// How many parts along the batch, and along the channels: of the output for the gradient to the weights, of the input for that to the data.
struct Cut {
  int64_t batch, channels;
};

double work_of(const Conv& c) { return static_cast<double>(c.out->numel) * static_cast<double>(c.weight->numel / c.weight->shape[0]); }

Cut choose_cut(const Conv& c) {
  const ConvShape& s = c.shape;
  const bool to_data = c.direction == ConvDirection::kBackwardData;
  // Each part of the batch reads all weights, or makes a whole gradient of them: they must be small beside the images.
  const int64_t parts = part_count(work_of(c)), most_batch = s.groups == 1 ? (c.x->numel + c.out->numel) / (2 * c.weight->numel) : parts;
  int64_t batch = 1;
  while (2 * batch <= std::min({parts, most_batch, s.batch})) batch *= 2;
  const int64_t fewest = to_data ? 8 : 32;  // channels, in which each part reads the other operand
  const int64_t most = s.groups == 1 ? std::max<int64_t>(1, (to_data ? s.in_channels : s.out_channels) / fewest) : 1;
  return {batch, std::min((parts + batch - 1) / batch, most)};
}

struct Piece {
  int64_t batch_begin, batch, channel_begin, channels;
  size_t kind;  // pieces of equal sizes are alike
};

std::vector<Piece> pieces(const Conv& c, Cut cut) {
  const int64_t all = c.direction == ConvDirection::kBackwardData ? c.shape.in_channels : c.shape.out_channels;
  const int64_t n_size = (c.shape.batch + cut.batch - 1) / cut.batch;
  // Channels in whole groups of eight, as oneDNN's blocks are.
  const int64_t c_size = ((all + cut.channels - 1) / cut.channels + 7) / 8 * 8;
  std::vector<Piece> list;
  size_t kinds = 0;
  for (int64_t n = 0; n < c.shape.batch; n += n_size)
    for (int64_t first = 0; first < all; first += c_size) {
      Piece p{n, std::min(n_size, c.shape.batch - n), first, std::min(c_size, all - first), 0};
      const auto same = std::find_if(list.begin(), list.end(), [&](const Piece& q) { return q.batch == p.batch && q.channels == p.channels; });
      p.kind = same == list.end() ? kinds++ : same->kind;
      list.push_back(p);
    }
  return list;
}

template <class T>
SAMPAN_INLINE void add_any(const float* from, int64_t step, int64_t count, int64_t begin, int64_t end, T* to) {
  for (int64_t i = begin; i < end; ++i) {
    float sum = from[i];
    for (int64_t p = 1; p < count; ++p) sum += from[p * step + i];
    to[i] = from_compute<T>(sum);
  }
}

}  // namespace

SAMPAN_CLONES void add_copies(const float* from, int64_t step, int64_t count, int64_t begin, int64_t end, float* to) { add_any(from, step, count, begin, end, to); }
SAMPAN_CLONES void add_copies(const float* from, int64_t step, int64_t count, int64_t begin, int64_t end, Half* to) { add_any(from, step, count, begin, end, to); }
SAMPAN_CLONES void add_copies(const float* from, int64_t step, int64_t count, int64_t begin, int64_t end, BFloat16* to) { add_any(from, step, count, begin, end, to); }

namespace {

class ConvWeights final : public NativeOp {
 public:
  ConvWeights(const Conv& c, Cut cut, ImageForm form) : dtype_(c.shape.dtype), weight_size_(c.weight->numel), bias_size_(c.bias ? c.bias->numel : 0), cut_(cut) {
    std::vector<std::function<Sequence()>> build;
    std::vector<OneDnnParts::Part> parts;
    const int64_t item = static_cast<int64_t>(dtype_size(dtype_)), sum_item = adds() ? 4 : item;
    for (const Piece& p : pieces(c, cut)) {
      if (p.kind == build.size()) build.push_back([part = part_of(c, p, adds() ? DType::k_float32 : dtype_), form] { return conv_sequence(part, choose_form(part).value_or(form)); });
      copies_ += p.batch_begin > 0 && p.channel_begin == 0;
      const int64_t copy = copies_ - 1;
      parts.push_back({p.kind, {p.batch_begin * c.x->strides[0] * item, (p.batch_begin * c.out->strides[0] + p.channel_begin * c.out->strides[1]) * item,
                                (copy * weight_size_ + p.channel_begin * c.weight->strides[0]) * sum_item}});
      if (c.bias) parts.back().offsets.push_back((copy * bias_size_ + p.channel_begin * c.bias->strides[0]) * sum_item);
    }
    const double cost_ns = work_of(c) * kMultiplicationNs / static_cast<double>(parts.size());
    parts_ = std::make_unique<OneDnnParts>(build, std::move(parts), cost_ns);
  }

  size_t scratch_bytes() const override { return adds() ? static_cast<size_t>(cut_.batch * (weight_size_ + bias_size_)) * 4 : 0; }

  void run(char* const* buffers, char* scratch) const override {
    if (!adds()) return parts_->run(buffers, scratch);
    float *weights = reinterpret_cast<float*>(scratch), *biases = weights + copies_ * weight_size_;
    char* own[] = {buffers[0], buffers[1], reinterpret_cast<char*>(weights), reinterpret_cast<char*>(biases)};
    parts_->run(own, nullptr);
    add(weights, weight_size_, buffers[2]);
    if (bias_size_) add(biases, bias_size_, buffers[3]);
  }

 private:
  bool adds() const { return cut_.batch > 1; }

  // sums: of what dtype the gradients are; 16-bit ones are added in float32.
  static Conv part_of(const Conv& c, const Piece& p, DType sums) {
    Conv part = c;
    part.shape.batch = p.batch;
    part.shape.out_channels = p.channels;
    part.x = slice(c.shape.dtype, *c.x, 0, p.batch);
    part.out = slice(c.shape.dtype, *slice(c.shape.dtype, *c.out, 0, p.batch), 1, p.channels);
    part.weight = slice(sums, *c.weight, 0, p.channels);
    if (c.bias) part.bias = slice(sums, *c.bias, 0, p.channels);
    return part;
  }

  void add(const float* from, int64_t size, char* to) const {
    parallel_for((size + 1023) / 1024, 100.0 * static_cast<double>(copies_), [&](int64_t begin, int64_t end) {
      const int64_t last = std::min(end * 1024, size);
      if (dtype_ == DType::k_float32)
        add_copies(from, size, copies_, begin * 1024, last, reinterpret_cast<float*>(to));
      else if (dtype_ == DType::k_float16)
        add_copies(from, size, copies_, begin * 1024, last, reinterpret_cast<Half*>(to));
      else
        add_copies(from, size, copies_, begin * 1024, last, reinterpret_cast<BFloat16*>(to));
    });
  }

  DType dtype_;
  int64_t weight_size_, bias_size_, copies_ = 1;
  Cut cut_;
  std::unique_ptr<OneDnnParts> parts_;
};

std::unique_ptr<NativeOp> make_data_parts(const Conv& c, ImageForm form) {
  std::vector<std::function<Sequence()>> build;
  std::vector<OneDnnParts::Part> parts;
  const int64_t item = static_cast<int64_t>(dtype_size(c.shape.dtype));
  for (const Piece& p : pieces(c, choose_cut(c))) {
    if (p.kind == build.size()) {
      Conv part = c;
      part.shape.batch = p.batch;
      part.shape.in_channels = p.channels;
      part.x = slice(c.shape.dtype, *slice(c.shape.dtype, *c.x, 0, p.batch), 1, p.channels);
      part.out = slice(c.shape.dtype, *c.out, 0, p.batch);
      if (c.shape.groups == 1) part.weight = slice(c.shape.dtype, *c.weight, 1, p.channels);
      build.push_back([part, form] { return conv_sequence(part, choose_form(part).value_or(form)); });
    }
    const int64_t weight = c.shape.groups == 1 ? p.channel_begin * c.weight->strides[1] : 0;
    parts.push_back({p.kind, {p.batch_begin * c.out->strides[0] * item, weight * item,
                              (p.batch_begin * c.x->strides[0] + p.channel_begin * c.x->strides[1]) * item}});
  }
  const double cost_ns = work_of(c) * kMultiplicationNs / static_cast<double>(parts.size());
  return std::make_unique<OneDnnParts>(build, std::move(parts), cost_ns);
}

}  // namespace

std::unique_ptr<NativeOp> make_conv_gradient(const Conv& c) {
  const auto form = choose_form(c);
  if (!form) return nullptr;
  if (c.direction == ConvDirection::kBackwardWeights) return std::make_unique<ConvWeights>(c, choose_cut(c), *form);
  // To the data, the order of sums varies where windows lie apart; bias and epilogue make it another primitive, which is not cut.
  const bool is_strided = std::any_of(c.shape.strides.begin(), c.shape.strides.end(), [](int64_t s) { return s > 1; });
  if (is_strided && !c.bias && c.steps.empty()) return make_data_parts(c, *form);
  return std::make_unique<OneDnnOp>([c, form] { return conv_sequence(c, *form); });
}

}  // namespace sampan::kernels
