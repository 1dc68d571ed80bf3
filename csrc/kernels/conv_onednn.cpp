#include "kernels/conv_onednn.h"

#include <algorithm>

namespace sampan::kernels {
namespace {

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
  return onednn_desc(c.weight->dtype, shape, strides);
}

dnnl::memory::desc any_layout(const dnnl::memory::desc& d) { return {d.get_dims(), d.get_data_type(), dnnl::memory::format_tag::any}; }

// Weights of the images' dtype: the sums of a gradient's parts are wider, and the forward convolution that oneDNN wants as its hint is not of those.
dnnl::memory::desc any_weights(const Conv& c) { return {weight_desc(c).get_dims(), onednn_type(c.shape.dtype), dnnl::memory::format_tag::any}; }

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
  const auto x = image_desc(c.x, form), out = image_desc(c.out, form), w = any_weights(c);
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
void add_extras(const Conv& c, const dnnl::primitive_attr& attr, Sequence* s, std::vector<std::pair<int, int>>* args) {
  size_t buffer = 2;
  if (c.bias) args->push_back({DNNL_ARG_BIAS, s->operand(buffer++, onednn_desc(*c.bias))});
  for (const int at : binary_post_ops(attr)) {
    const Layout& extra = *c.extras[buffer - 2 - (c.bias ? 1 : 0)];
    args->push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1, s->operand(buffer++, extra_desc(extra, c.x->rank))});
  }
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

bool is_transposed_with_epilogue(const Conv& c) { return c.direction == ConvDirection::kBackwardData && (c.bias || !c.steps.empty()); }

// The weights as the primitive's axes see them: a deconvolution has the channel axes the other way round.
dnnl::memory::desc given_weights(const Conv& c) {
  const dnnl::memory::desc given = weight_desc(c);
  if (!is_transposed_with_epilogue(c)) return given;
  std::vector<int> order(given.get_dims().size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const size_t o = c.shape.groups > 1 ? 1 : 0;
  std::swap(order[o], order[o + 1]);
  return given.permute_axes(order);
}

int weight_operand(const Conv& c, Sequence* s, const dnnl::memory::desc& wanted) {
  return c.packed ? s->operand(1, wanted) : s->reordered(s->operand(1, given_weights(c)), wanted);
}

Sequence forward_sequence(const Conv& c, ImageForm form) {
  const auto pd = forward_desc(c, form, attributes_of(c), static_cast<bool>(c.bias));
  Sequence s;
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, s.reordered(s.operand(0, given_desc(*c.x)), pd.src_desc())}, {DNNL_ARG_WEIGHTS, weight_operand(c, &s, pd.weights_desc())}};
  add_extras(c, pd.get_primitive_attr(), &s, &args);
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

// A transposed convolution with bias or epilogue: oneDNN's deconvolution.
dnnl::deconvolution_forward::primitive_desc deconvolution_desc(const Conv& c, ImageForm form) {
  const ConvShape& s = c.shape;
  const auto w = any_layout(given_weights(c));
  const auto from = image_desc(c.out, form), to = image_desc(c.x, form);
  const auto kind = dnnl::prop_kind::forward_training;
  const auto algorithm = dnnl::algorithm::deconvolution_direct;
  if (c.bias) return {onednn_engine(), kind, algorithm, from, w, onednn_desc(*c.bias), to, s.strides, less_one(s.dilations), s.padding_low, s.padding_high, attributes_of(c)};
  return {onednn_engine(), kind, algorithm, from, w, to, s.strides, less_one(s.dilations), s.padding_low, s.padding_high, attributes_of(c)};
}

Sequence deconvolution_sequence(const Conv& c, ImageForm form) {
  const auto pd = deconvolution_desc(c, form);
  Sequence s;
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, s.reordered(s.operand(0, given_desc(*c.out)), pd.src_desc())}, {DNNL_ARG_WEIGHTS, weight_operand(c, &s, pd.weights_desc())}};
  add_extras(c, pd.get_primitive_attr(), &s, &args);
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

std::string implementation(const Conv& c, ImageForm form) {
  switch (c.direction) {
    case ConvDirection::kForward: return forward_desc(c, form, attributes_of(c), static_cast<bool>(c.bias)).impl_info_str();
    case ConvDirection::kBackwardData:
      return is_transposed_with_epilogue(c) ? deconvolution_desc(c, form).impl_info_str() : backward_data_desc(c, form).impl_info_str();
    default: return backward_weights_desc(c, form).impl_info_str();
  }
}

}  // namespace

std::optional<ImageForm> choose_form(const Conv& c) {
  // Channels-last where oneDNN has fast code for it; it has none for few channels on older processors, which its blocked layouts serve.
  for (const ImageForm form : {ImageForm::kChannelsLast, ImageForm::kBlocked}) {
    try {
      if (!is_reference(implementation(c, form).c_str())) return form;
    } catch (const dnnl::error&) {
      continue;  // this form does not take the operands; the next may
    }
  }
  return std::nullopt;
}

Sequence conv_sequence(const Conv& c, ImageForm form) {
  switch (c.direction) {
    case ConvDirection::kForward: return forward_sequence(c, form);
    case ConvDirection::kBackwardData: return is_transposed_with_epilogue(c) ? deconvolution_sequence(c, form) : backward_data_sequence(c, form);
    default: return backward_weights_sequence(c, form);
  }
}

Packing conv_packing(const Conv& c, ImageForm form) {
  if (c.direction == ConvDirection::kForward)
    return {given_weights(c), forward_desc(c, form, attributes_of(c), static_cast<bool>(c.bias)).weights_desc()};
  return {given_weights(c), is_transposed_with_epilogue(c) ? deconvolution_desc(c, form).weights_desc() : backward_data_desc(c, form).weights_desc()};
}

}  // namespace sampan::kernels
