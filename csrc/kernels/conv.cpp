// conv_forward, conv_backward_data, conv_backward_weights: oneDNN's convolutions over the memory as it lies.
#include "kernels/conv.h"

#include <algorithm>

#include "kernels/onednn.h"

namespace sampan::kernels {

ConvShape read_conv_shape(CallReader& call, const Layout& x, const Dims& weight, const Layout& out) {
  ConvShape s;
  s.dtype = x.dtype;
  s.spatial = x.rank - 2;
  if (s.spatial < 1 || s.spatial > 3 || out.rank != x.rank || static_cast<int>(weight.size()) != x.rank)
    call.fail(ErrorKind::kShape, "x, weight and the output need 3, 4 or 5 axes, all alike");
  if (dtype_kind(x.dtype) != 'f') call.fail(ErrorKind::kDType, "convolutions are of floating dtypes");
  const size_t n = static_cast<size_t>(s.spatial);
  s.strides = call.list("strides", Dims(n, 1));
  s.dilations = call.list("dilations", Dims(n, 1));
  s.padding_low = call.list("padding_low", Dims(n, 0));
  s.padding_high = call.list("padding_high", Dims(n, 0));
  s.groups = call.integer("groups", 1);
  s.batch = x.shape[0];
  s.in_channels = x.shape[1];
  s.out_channels = weight[0];
  s.in.assign(x.shape + 2, x.shape + x.rank);
  s.out.assign(out.shape + 2, out.shape + out.rank);
  s.kernel.assign(weight.begin() + 2, weight.end());
  if (s.groups < 1 || s.in_channels % s.groups || s.out_channels % s.groups || weight[1] != s.in_channels / s.groups)
    call.fail(ErrorKind::kShape, "with groups = " + std::to_string(s.groups) + " a weight " + shape_text(weight) + " does not fit " + std::to_string(s.in_channels) + " input channels");
  if (out.shape[0] != s.batch || out.shape[1] != s.out_channels) call.fail(ErrorKind::kShape, "batch or channels of the output do not fit");
  for (size_t d = 0; d < n; ++d) {
    if (s.strides[d] < 1 || s.dilations[d] < 1) call.fail(ErrorKind::kValue, "strides and dilations must be at least 1");
    if (s.padding_low[d] < 0 || s.padding_high[d] < 0) call.fail(ErrorKind::kValue, "padding must not be negative; slice instead");
    const int64_t reach = s.in[d] + s.padding_low[d] + s.padding_high[d] - (s.dilations[d] * (s.kernel[d] - 1) + 1);
    if (s.kernel[d] < 1 || reach < 0 || reach / s.strides[d] + 1 != s.out[d])
      call.fail(ErrorKind::kShape, "spatial axis " + std::to_string(d) + ": input " + std::to_string(s.in[d]) + ", kernel " + std::to_string(s.kernel[d]) + " and output " +
                                       std::to_string(s.out[d]) + " do not fit together");
  }
  return s;
}

LayoutRef channels_last_layout(DType dtype, const Dims& shape) {
  Dims strides(shape.size());
  int64_t step = shape[1];
  strides[1] = 1;
  for (size_t d = shape.size(); d-- > 2;) {
    strides[d] = step;
    step *= shape[d];
  }
  strides[0] = step;
  return intern_layout(dtype, shape, strides);
}

bool is_channels_last(const Layout& l) { return l.rank >= 3 && channels_last_layout(l.dtype, shape_of(l)).get() == &l; }

namespace {

struct Conv {
  ConvShape shape;
  ConvDirection direction;
  LayoutRef x, weight, out;  // the forward's roles; for an output of this op, its own layout
  LayoutRef bias;            // null without
  std::vector<EpilogueStep> steps;
  std::vector<LayoutRef> extras;
  bool packed = false;  // the weight operand is in oneDNN's own form
};

Dims less_one(Dims d) {
  for (int64_t& v : d) --v;
  return d;
}

// [O, I/g, k...] seen as [g, O/g, I/g, k...] when there are groups.
dnnl::memory::desc weight_desc(const Conv& c) {
  Dims shape = shape_of(*c.weight), strides = strides_of(*c.weight);
  if (c.shape.groups > 1) {
    const int64_t filters = shape[0] / c.shape.groups;
    shape[0] = filters;
    shape.insert(shape.begin(), c.shape.groups);
    strides.insert(strides.begin(), strides[0] * filters);
  }
  return onednn_desc(c.shape.dtype, shape, strides);
}

dnnl::memory::desc any_layout(const dnnl::memory::desc& d) { return {d.get_dims(), d.get_data_type(), dnnl::memory::format_tag::any}; }

// In which form the images go through oneDNN: channels-last, or the primitive's own blocks, with reorders around it.
enum class ImageForm { kChannelsLast, kBlocked };

// oneDNN tells layouts apart by their strides alone, those of axes of length 1 too: a one-channel image is both, and is called channels-last.
dnnl::memory::desc channels_last_desc(const Layout& l) {
  const Dims shape = shape_of(l);
  Dims strides(shape.size());
  strides[1] = 1;
  int64_t step = shape[1];
  for (size_t d = shape.size(); d-- > 2;) {
    strides[d] = step;
    step *= shape[d];
  }
  strides[0] = step;
  return onednn_desc(l.dtype, shape, strides);
}

dnnl::memory::desc given_desc(const Layout& l) { return is_channels_last(l) ? channels_last_desc(l) : onednn_desc(l); }

dnnl::memory::desc image_desc(const LayoutRef& l, ImageForm form) {
  const dnnl::memory::desc last = channels_last_desc(*l);
  return form == ImageForm::kChannelsLast ? last : any_layout(last);
}

dnnl::memory::desc extra_desc(const Layout& l, int rank) {
  Dims shape(static_cast<size_t>(rank), 1), strides(static_cast<size_t>(rank), 1);
  int64_t step = 1;
  for (int d = rank; d-- > 0;) {
    const int at = d - (rank - l.rank);
    const size_t i = static_cast<size_t>(d);
    if (at >= 0 && l.shape[at] != 1) {
      shape[i] = l.shape[at];
      strides[i] = l.strides[at];
    } else {
      strides[i] = step;
    }
    step = std::max(step, strides[i] * shape[i]);
  }
  return onednn_desc(l.dtype, shape, strides);
}

dnnl::primitive_attr attributes_of(const Conv& c) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  std::vector<dnnl::memory::desc> binary;
  for (const LayoutRef& l : c.extras) binary.push_back(extra_desc(*l, c.x->rank));
  dnnl::post_ops post;
  append_post_ops(c.steps, binary, &post);
  attr.set_post_ops(post);
  return attr;
}

dnnl::convolution_forward::primitive_desc forward_desc(const Conv& c, ImageForm form, const dnnl::primitive_attr& attr, bool with_bias) {
  const ConvShape& s = c.shape;
  const auto x = image_desc(c.x, form), out = image_desc(c.out, form), w = any_layout(weight_desc(c));
  const auto kind = dnnl::prop_kind::forward_training;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const Dims dilations = less_one(s.dilations);
  if (with_bias) return {onednn_engine(), kind, algorithm, x, w, onednn_desc(*c.bias), out, s.strides, dilations, s.padding_low, s.padding_high, attr};
  return {onednn_engine(), kind, algorithm, x, w, out, s.strides, dilations, s.padding_low, s.padding_high, attr};
}

dnnl::primitive_attr plain_attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// Inputs of the primitive beyond image and weight: the bias and the post-ops' operands, in the native's order.
void add_extras(const Conv& c, Sequence* s, std::vector<std::pair<int, int>>* args) {
  size_t buffer = 2;
  if (c.bias) args->push_back({DNNL_ARG_BIAS, s->operand(buffer++, onednn_desc(*c.bias))});
  size_t extra = 0;
  for (size_t i = 0; i < c.steps.size(); ++i)
    if (c.steps[i].takes_operand())
      args->push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1, s->operand(buffer++, extra_desc(*c.extras[extra++], c.x->rank))});
}

// A memory that the primitive writes: the operand itself, or a temporary that finish() reorders into it.
struct Result {
  int given, used;
  Result(Sequence* s, size_t buffer, const dnnl::memory::desc& given_desc, const dnnl::memory::desc& used_desc) {
    given = s->operand(buffer, given_desc);
    used = given_desc == used_desc ? given : s->temporary(used_desc);
  }
  void finish(Sequence* s) const {
    if (given != used) s->reorder(used, given);
  }
};

int weight_operand(const Conv& c, Sequence* s, const dnnl::memory::desc& wanted) {
  return c.packed ? s->operand(1, wanted) : s->reordered(s->operand(1, weight_desc(c)), wanted);
}

Sequence forward_sequence(const Conv& c, ImageForm form) {
  const auto pd = forward_desc(c, form, attributes_of(c), static_cast<bool>(c.bias));
  Sequence s;
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, s.reordered(s.operand(0, given_desc(*c.x)), pd.src_desc())}, {DNNL_ARG_WEIGHTS, weight_operand(c, &s, pd.weights_desc())}};
  add_extras(c, &s, &args);
  const Result out(&s, 2 + (c.bias ? 1 : 0) + c.extras.size(), given_desc(*c.out), pd.dst_desc());
  args.push_back({DNNL_ARG_DST, out.used});
  s.add(dnnl::convolution_forward(pd), std::move(args), pd.scratchpad_desc());
  out.finish(&s);
  return s;
}

dnnl::convolution_backward_data::primitive_desc backward_data_desc(const Conv& c, ImageForm form) {
  const ConvShape& s = c.shape;
  return {onednn_engine(), dnnl::algorithm::convolution_direct, image_desc(c.x, form), any_layout(weight_desc(c)), image_desc(c.out, form),
          s.strides, less_one(s.dilations), s.padding_low, s.padding_high, forward_desc(c, form, plain_attributes(), false), plain_attributes()};
}

Sequence backward_data_sequence(const Conv& c, ImageForm form) {
  const auto pd = backward_data_desc(c, form);
  Sequence s;
  const int grad = s.reordered(s.operand(0, given_desc(*c.out)), pd.diff_dst_desc());
  const int weight = weight_operand(c, &s, pd.weights_desc());
  const Result x(&s, 2, given_desc(*c.x), pd.diff_src_desc());
  s.add(dnnl::convolution_backward_data(pd), {{DNNL_ARG_DIFF_DST, grad}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_SRC, x.used}}, pd.scratchpad_desc());
  x.finish(&s);
  return s;
}

// A transposed convolution with bias or epilogue: oneDNN's deconvolution, whose weight has the channel axes the other way round.
dnnl::deconvolution_forward::primitive_desc deconvolution_desc(const Conv& c, ImageForm form) {
  const ConvShape& s = c.shape;
  dnnl::memory::dims shape = weight_desc(c).get_dims();
  const size_t o = c.shape.groups > 1 ? 1 : 0;
  std::swap(shape[o], shape[o + 1]);
  const dnnl::memory::desc w(shape, onednn_type(s.dtype), dnnl::memory::format_tag::any);
  const auto from = image_desc(c.out, form), to = image_desc(c.x, form);
  const auto kind = dnnl::prop_kind::forward_training;
  const auto algorithm = dnnl::algorithm::deconvolution_direct;
  if (c.bias) return {onednn_engine(), kind, algorithm, from, w, onednn_desc(*c.bias), to, s.strides, less_one(s.dilations), s.padding_low, s.padding_high, attributes_of(c)};
  return {onednn_engine(), kind, algorithm, from, w, to, s.strides, less_one(s.dilations), s.padding_low, s.padding_high, attributes_of(c)};
}

Sequence deconvolution_sequence(const Conv& c, ImageForm form) {
  const auto pd = deconvolution_desc(c, form);
  Sequence s;
  int weight;
  if (c.packed) {
    weight = s.operand(1, pd.weights_desc());
  } else {
    const dnnl::memory::desc given = weight_desc(c);
    std::vector<int> order(given.get_dims().size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    const size_t o = c.shape.groups > 1 ? 1 : 0;
    std::swap(order[o], order[o + 1]);
    weight = s.reordered(s.operand(1, given.permute_axes(order)), pd.weights_desc());
  }
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, s.reordered(s.operand(0, given_desc(*c.out)), pd.src_desc())}, {DNNL_ARG_WEIGHTS, weight}};
  add_extras(c, &s, &args);
  const Result x(&s, 2 + (c.bias ? 1 : 0) + c.extras.size(), given_desc(*c.x), pd.dst_desc());
  args.push_back({DNNL_ARG_DST, x.used});
  s.add(dnnl::deconvolution_forward(pd), std::move(args), pd.scratchpad_desc());
  x.finish(&s);
  return s;
}

dnnl::convolution_backward_weights::primitive_desc backward_weights_desc(const Conv& c, ImageForm form) {
  const ConvShape& s = c.shape;
  const auto x = image_desc(c.x, form), out = image_desc(c.out, form), w = any_layout(weight_desc(c));
  const auto hint = forward_desc(c, form, plain_attributes(), false);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  if (c.bias)
    return {onednn_engine(), algorithm, x, w, onednn_desc(*c.bias), out, s.strides, less_one(s.dilations), s.padding_low, s.padding_high, hint, plain_attributes()};
  return {onednn_engine(), algorithm, x, w, out, s.strides, less_one(s.dilations), s.padding_low, s.padding_high, hint, plain_attributes()};
}

Sequence backward_weights_sequence(const Conv& c, ImageForm form) {
  const auto pd = backward_weights_desc(c, form);
  Sequence s;
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, s.reordered(s.operand(0, given_desc(*c.x)), pd.src_desc())},
                                           {DNNL_ARG_DIFF_DST, s.reordered(s.operand(1, given_desc(*c.out)), pd.diff_dst_desc())}};
  const Result weight(&s, 2, weight_desc(c), pd.diff_weights_desc());
  args.push_back({DNNL_ARG_DIFF_WEIGHTS, weight.used});
  if (c.bias) args.push_back({DNNL_ARG_DIFF_BIAS, s.operand(3, onednn_desc(*c.bias))});
  s.add(dnnl::convolution_backward_weights(pd), std::move(args), pd.scratchpad_desc());
  weight.finish(&s);
  return s;
}

bool is_transposed_with_epilogue(const Conv& c) { return c.direction == ConvDirection::kBackwardData && (c.bias || !c.steps.empty()); }

std::string implementation(const Conv& c, ImageForm form) {
  switch (c.direction) {
    case ConvDirection::kForward: return forward_desc(c, form, attributes_of(c), static_cast<bool>(c.bias)).impl_info_str();
    case ConvDirection::kBackwardData:
      return is_transposed_with_epilogue(c) ? deconvolution_desc(c, form).impl_info_str() : backward_data_desc(c, form).impl_info_str();
    default: return backward_weights_desc(c, form).impl_info_str();
  }
}

Sequence sequence(const Conv& c, ImageForm form) {
  switch (c.direction) {
    case ConvDirection::kForward: return forward_sequence(c, form);
    case ConvDirection::kBackwardData: return is_transposed_with_epilogue(c) ? deconvolution_sequence(c, form) : backward_data_sequence(c, form);
    default: return backward_weights_sequence(c, form);
  }
}

// A layout that a oneDNN image may have; others are copied first.
bool is_image(const Layout& l) { return l.is_contiguous || is_channels_last(l); }

const char* native_name(ConvDirection d) {
  return d == ConvDirection::kForward ? "conv_forward" : d == ConvDirection::kBackwardData ? "conv_backward_data" : "conv_backward_weights";
}

Conv read_conv(CallReader& call, ConvDirection direction) {
  Conv c;
  c.direction = direction;
  const bool has_bias = call.flag("has_bias", false);
  if (direction != ConvDirection::kBackwardWeights) c.steps = parse_epilogue(call, call.text("epilogue", ""));
  const size_t extras = epilogue_operands(c.steps);
  const NativeCall& given = call.call();
  if (direction == ConvDirection::kBackwardWeights) {
    call.operands(2, has_bias ? 2 : 1);
    c.x = given.inputs[0];
    c.out = given.inputs[1];
    c.weight = given.outputs[0];
    if (has_bias) c.bias = given.outputs[1];
  } else {
    call.operands(2 + has_bias + extras, 1);
    (direction == ConvDirection::kForward ? c.x : c.out) = given.inputs[0];
    (direction == ConvDirection::kForward ? c.out : c.x) = given.outputs[0];
    c.weight = given.inputs[1];
    if (has_bias) c.bias = given.inputs[2];
    c.extras.assign(given.inputs.begin() + 2 + has_bias, given.inputs.end());
  }
  c.shape = read_conv_shape(call, *c.x, shape_of(*c.weight), *c.out);
  call.no_more_attributes();
  for (const LayoutRef& l : {c.weight, c.out, c.bias})
    if (l) call.same_dtype(*c.x, *l, "all operands of a convolution");
  const int64_t bias_size = direction == ConvDirection::kBackwardData ? c.shape.in_channels : c.shape.out_channels;
  if (c.bias) call.same_shape(*c.bias, {bias_size}, "the bias");
  return c;
}

template <ConvDirection direction>
std::unique_ptr<NativeOp> make_conv(const NativeCall& given);

std::unique_ptr<NativeOp> make_by_columns(const CallReader& call, const Conv& c) {
  Epilogue epilogue;
  if (c.direction != ConvDirection::kBackwardWeights) {
    // A bias is a vector of channels, which broadcasting aligns with the last axis unless it is given its axes.
    std::vector<LayoutRef> operands = c.extras;
    if (c.bias) {
      Dims shape(static_cast<size_t>(c.x->rank - 1), 1), strides(shape.size(), 1);
      shape[0] = c.bias->shape[0];
      strides[0] = c.bias->strides[0];
      operands.insert(operands.begin(), intern_layout(c.bias->dtype, shape, strides));
    }
    epilogue = Epilogue(call, call.output(0), c.steps, static_cast<bool>(c.bias), operands);
  }
  return make_conv_by_columns(call, c.shape, c.direction, static_cast<bool>(c.bias), std::move(epilogue));
}

template <ConvDirection direction>
std::unique_ptr<NativeOp> make_conv(const NativeCall& given) {
  CallReader call(native_name(direction), given);
  const Conv c = read_conv(call, direction);
  if (call.output(0).numel == 0 && given.outputs.size() == 1) return make_nothing();
  const bool is_16_bit = c.shape.dtype == DType::k_float16 || c.shape.dtype == DType::k_bfloat16;
  const bool is_empty = c.x->numel == 0 || c.out->numel == 0 || c.weight->numel == 0;
  if (is_16_bit && is_empty) return make_widened(make_conv<direction>, given, false);
  if (c.shape.dtype == DType::k_float64 || is_empty) return make_by_columns(call, c);
  // Strides that oneDNN does not take are copied away.
  std::vector<LayoutRef> inputs = given.inputs, outputs = given.outputs;
  auto settle = [&](LayoutRef& l) {
    if (l->rank < 3 ? !l->is_contiguous : !(is_image(*l) || (l.get() == c.weight.get() && l->is_dense)))
      l = l->rank < 3 || l.get() == c.weight.get() ? contiguous_layout(l->dtype, l->shape_span()) : channels_last_layout(l->dtype, shape_of(*l));
  };
  for (LayoutRef& l : inputs) settle(l);
  for (LayoutRef& l : outputs) settle(l);
  if (inputs != given.inputs || outputs != given.outputs) return make_converted(make_conv<direction>, given, inputs, outputs, false);
  // Channels-last where oneDNN has fast code for it; it has none for few channels on older processors, which its blocked layouts serve.
  for (const ImageForm form : {ImageForm::kChannelsLast, ImageForm::kBlocked}) {
    try {
      if (!is_reference(implementation(c, form).c_str())) return std::make_unique<OneDnnOp>([c, form] { return sequence(c, form); });
    } catch (const dnnl::error&) {
      continue;  // this form does not take the operands; the next may
    }
  }
  return is_16_bit ? make_widened(make_conv<direction>, given, false) : make_by_columns(call, c);
}

const RegisterNative forward("conv_forward", make_conv<ConvDirection::kForward>);
const RegisterNative backward_data("conv_backward_data", make_conv<ConvDirection::kBackwardData>);
const RegisterNative backward_weights("conv_backward_weights", make_conv<ConvDirection::kBackwardWeights>);

}  // namespace
}  // namespace sampan::kernels
