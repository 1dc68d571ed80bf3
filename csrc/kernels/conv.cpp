// conv_forward, conv_backward_data, conv_backward_weights: oneDNN's convolutions over the memory as it lies.
#include "kernels/conv.h"

#include "kernels/conv_depthwise.h"
#include "kernels/conv_direct.h"
#include "kernels/conv_product.h"
#include "kernels/conv_spread.h"
#include "kernels/conv_weights.h"
#include "kernels/conv_winograd.h"

namespace sampan::kernels {

ConvShape read_conv_shape(CallReader& call, const Layout& x, const Dims& weight, const Layout& out) {
  ConvShape s;
  s.dtype = x.dtype;
  s.spatial = x.rank - 2;
  if (s.spatial < 1 || s.spatial > 3 || out.rank != x.rank || static_cast<int>(weight.size()) != x.rank)
    call.fail(ErrorKind::kShape, "x, weight and the output need 3, 4 or 5 axes, all alike");
  if (dtype_kind(x.dtype) != 'f') call.fail(ErrorKind::kDType, "convolutions are of floating dtypes");
  const size_t n = static_cast<size_t>(s.spatial);
  s.strides = call.steps("strides", Dims(n, 1), 1);
  s.dilations = call.steps("dilations", Dims(n, 1), 1);
  s.padding_low = call.steps("padding_low", Dims(n, 0), 0);
  s.padding_high = call.steps("padding_high", Dims(n, 0), 0);
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
    if (s.kernel[d] > INT32_MAX) call.fail(ErrorKind::kShape, "a kernel has at most 2^31 - 1 elements along an axis");
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

bool lies_channels_last(const Layout& l) {
  const LayoutRef last = channels_last_layout(l.dtype, shape_of(l));
  for (int d = 0; d < l.rank; ++d)
    if (l.shape[d] > 1 && l.strides[d] != last->strides[d]) return false;
  return true;
}

namespace {

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

// Bias and steps as loops over the finished result.
Epilogue epilogue_of(const CallReader& call, const Conv& c) {
  if (c.direction == ConvDirection::kBackwardWeights) return {};
  // A bias is a vector of channels, which broadcasting aligns with the last axis unless it is given its axes.
  std::vector<LayoutRef> operands = c.extras;
  if (c.bias) {
    Dims shape(static_cast<size_t>(c.x->rank - 1), 1), strides(shape.size(), 1);
    shape[0] = c.bias->shape[0];
    strides[0] = c.bias->strides[0];
    operands.insert(operands.begin(), intern_layout(c.bias->dtype, shape, strides));
  }
  return {call, call.output(0), c.steps, static_cast<bool>(c.bias), operands};
}

// The project's own code for some convolutions, where oneDNN has none as fast.
enum class OwnForm { kNone, kWinograd, kProduct, kWeightsProduct, kDirect, kSpread, kDepthwise };

OwnForm own_form(const Conv& c) {
  if (suits_winograd(c.shape, c.direction, *c.x, *c.out)) return OwnForm::kWinograd;
  if (!lies_channels_last(*c.x) || !lies_channels_last(*c.out)) return OwnForm::kNone;
  if (suits_product(c)) return OwnForm::kProduct;
  if (suits_weights_product(c.shape, c.direction)) return OwnForm::kWeightsProduct;
  if (suits_depthwise(c.shape, c.direction)) return OwnForm::kDepthwise;
  if (suits_spread(c.shape, c.direction)) return OwnForm::kSpread;
  return suits_direct(c.shape, c.direction) ? OwnForm::kDirect : OwnForm::kNone;
}

size_t own_weight_bytes(const Conv& c, OwnForm form) {
  switch (form) {
    case OwnForm::kWinograd: return winograd_weight_bytes(c.shape);
    case OwnForm::kProduct: return product_weight_bytes(c);
    case OwnForm::kSpread: return spread_weight_bytes(c.shape);
    case OwnForm::kDepthwise: return depthwise_weight_bytes(c.shape);
    default: return direct_weight_bytes(c.shape, c.direction);
  }
}

std::unique_ptr<NativeOp> make_own_weights(const Conv& c, OwnForm form) {
  switch (form) {
    case OwnForm::kWinograd: return make_winograd_weights(*c.weight, c.shape, c.direction);
    case OwnForm::kProduct: return make_product_weights(c);
    case OwnForm::kSpread: return make_spread_weights(*c.weight, c.shape);
    case OwnForm::kDepthwise: return make_depthwise_weights(*c.weight, c.shape, c.direction);
    default: return make_direct_weights(*c.weight, c.shape, c.direction);
  }
}

std::unique_ptr<NativeOp> make_own(const CallReader& call, const NativeCall& given, const Conv& c, OwnForm form, bool packed) {
  if (form == OwnForm::kWinograd) return make_conv_winograd(given, c.shape, c.direction, packed, epilogue_of(call, c));
  if (form == OwnForm::kProduct) return make_conv_product(given, c, packed);
  if (form == OwnForm::kWeightsProduct) return make_conv_weights_product(given, c.shape, static_cast<bool>(c.bias));
  if (form == OwnForm::kSpread) return make_conv_spread(given, c.shape, packed, epilogue_of(call, c));
  const bool has_bias = static_cast<bool>(c.bias), has_relu = !c.steps.empty() && c.steps[0].kind == StepKind::kRelu;
  Epilogue epilogue(call, call.output(0), {c.steps.begin() + has_relu, c.steps.end()}, false, c.extras);
  if (form == OwnForm::kDepthwise) return make_conv_depthwise(given, c.shape, c.direction, packed, has_bias, has_relu, std::move(epilogue));
  return make_conv_direct(given, c.shape, c.direction, packed, has_bias, has_relu, std::move(epilogue));
}

template <ConvDirection direction>
std::unique_ptr<NativeOp> make_by_columns(const CallReader& call, const Conv& c) {
  NativeCall wanted = call.call();
  auto settle = [&](LayoutRef& l) {
    if (!lies_channels_last(*l)) l = channels_last_layout(l->dtype, shape_of(*l));
  };
  settle(wanted.inputs[0]);
  settle(direction == ConvDirection::kBackwardWeights ? wanted.inputs[1] : wanted.outputs[0]);
  if (wanted.inputs != call.call().inputs || wanted.outputs != call.call().outputs) return make_converted(make_conv<direction>, call.call(), wanted.inputs, wanted.outputs, false);
  return make_conv_by_columns(call, c.shape, c.direction, static_cast<bool>(c.bias), epilogue_of(call, c));
}

// None where packing makes no sense: no oneDNN, or operands that are copied first.
std::optional<ImageForm> packed_form(const Conv& c) {
  if (c.shape.dtype == DType::k_float64 || c.x->numel == 0 || c.out->numel == 0 || c.weight->numel == 0) return std::nullopt;
  if (!is_image(*c.x) || !is_image(*c.out) || !c.weight->is_dense) return std::nullopt;
  return choose_form(c);
}

// The call without packing: its weight is row-major, which any packing could have come from.
NativeCall without_packing(const NativeCall& given, const Dims& weight_shape) {
  NativeCall plain = given;
  plain.attributes.erase("packed");
  plain.attributes.erase("weight_shape");
  plain.inputs[1] = contiguous_layout(given.inputs[0]->dtype, weight_shape);
  return plain;
}

std::unique_ptr<NativeOp> make_packed(const NativeCall& given, ConvDirection direction) {
  CallReader call(native_name(direction), given);
  const Dims weight_shape = call.list("weight_shape", {});
  if (given.inputs.size() < 2 || weight_shape.empty()) call.fail(ErrorKind::kValue, "packed weights need weight_shape");
  const NativeCall plain = without_packing(given, weight_shape);
  CallReader reader(native_name(direction), plain);
  Conv c = read_conv(reader, direction);
  if (const OwnForm own = own_form(c); own != OwnForm::kNone) {
    if (given.inputs[1]->dtype != DType::k_uint8 || given.inputs[1]->size_bytes() != own_weight_bytes(c, own))
      call.fail(ErrorKind::kValue, "the packed weights do not belong to this convolution");
    return make_own(call, given, c, own, true);
  }
  const auto form = packed_form(c);
  if (!form || given.inputs[1]->dtype != DType::k_uint8 || given.inputs[1]->size_bytes() != conv_packing(c, *form).packed.get_size())
    call.fail(ErrorKind::kValue, "the packed weights do not belong to this convolution");
  c.packed = true;
  return std::make_unique<OneDnnOp>([c, form] { return conv_sequence(c, *form); });
}

// The convolution that weights are packed for.
Conv read_consumer(CallReader& call, const NativeCall& given) {
  call.operands(1, 1);
  const std::string name = call.text("direction", "forward");
  if (name != "forward" && name != "backward_data") call.fail(ErrorKind::kValue, "direction '" + name + "' is unknown; it is forward or backward_data");
  const ConvDirection direction = name == "forward" ? ConvDirection::kForward : ConvDirection::kBackwardData;
  const LayoutRef weight = given.inputs[0];
  NativeCall consumer;
  consumer.attributes = given.attributes;
  consumer.inputs = {intern_layout(weight->dtype, call.list("x_shape", {}), call.list("x_strides", {})), weight};
  consumer.outputs = {intern_layout(weight->dtype, call.list("out_shape", {}), call.list("out_strides", {}))};
  for (const char* own : {"direction", "x_shape", "x_strides", "out_shape", "out_strides"}) consumer.attributes.erase(own);
  // Operands as they commonly are: a bias for each channel of the output, and the epilogue's as large as the output.
  const Layout& out = *consumer.outputs[0];
  if (call.flag("has_bias", false) && out.rank > 1) consumer.inputs.push_back(contiguous_layout(weight->dtype, Dims{out.shape[1]}));
  for (size_t i = epilogue_operands(parse_epilogue(call, call.text("epilogue", ""))); i > 0; --i) consumer.inputs.push_back(consumer.outputs[0]);
  CallReader reader(native_name(direction), consumer);
  return read_conv(reader, direction);
}

Packing packing_of(const Conv& c) {
  const auto form = packed_form(c);
  return form ? conv_packing(c, *form) : Packing{};
}

std::unique_ptr<NativeOp> make_packed_size(const NativeCall& given) {
  CallReader call("conv_packed_size", given);
  const Conv c = read_consumer(call, given);
  const OwnForm own = own_form(c);
  return make_size(call, own == OwnForm::kNone ? packing_of(c).bytes() : own_weight_bytes(c, own));
}

std::unique_ptr<NativeOp> make_pack_weights(const NativeCall& given) {
  CallReader call("conv_pack_weights", given);
  const Conv c = read_consumer(call, given);
  const OwnForm own = own_form(c);
  if (own == OwnForm::kNone) return make_packing(call, packing_of(c));
  check_packed_output(call, own_weight_bytes(c, own));
  return make_own_weights(c, own);
}

template <ConvDirection direction>
std::unique_ptr<NativeOp> make_conv(const NativeCall& given) {
  CallReader call(native_name(direction), given);
  if (direction != ConvDirection::kBackwardWeights && call.flag("packed", false)) return make_packed(given, direction);
  const Conv c = read_conv(call, direction);
  if (call.output(0).numel == 0 && given.outputs.size() == 1) return make_nothing();
  const bool is_16_bit = c.shape.dtype == DType::k_float16 || c.shape.dtype == DType::k_bfloat16;
  const bool is_empty = c.x->numel == 0 || c.out->numel == 0 || c.weight->numel == 0;
  if (is_16_bit && is_empty) return make_widened(make_conv<direction>, given, false);
  if (c.shape.dtype == DType::k_float64 || is_empty) return make_by_columns<direction>(call, c);
  // Strides that oneDNN does not take are copied away.
  std::vector<LayoutRef> inputs = given.inputs, outputs = given.outputs;
  auto settle = [&](LayoutRef& l) {
    if (l->rank < 3 ? !l->is_contiguous : !(is_image(*l) || (l.get() == c.weight.get() && l->is_dense)))
      l = l->rank < 3 || l.get() == c.weight.get() ? contiguous_layout(l->dtype, l->shape_span()) : channels_last_layout(l->dtype, shape_of(*l));
  };
  for (LayoutRef& l : inputs) settle(l);
  for (LayoutRef& l : outputs) settle(l);
  if (inputs != given.inputs || outputs != given.outputs) return make_converted(make_conv<direction>, given, inputs, outputs, false);
  if (const OwnForm own = own_form(c); own != OwnForm::kNone) return make_own(call, given, c, own, false);
  if (direction != ConvDirection::kForward) {
    if (auto op = make_conv_gradient(c)) return op;
  } else if (const auto form = choose_form(c)) {
    return std::make_unique<OneDnnOp>([c, form] { return conv_sequence(c, *form); });
  }
  return is_16_bit ? make_widened(make_conv<direction>, given, false) : make_by_columns<direction>(call, c);
}

const RegisterNative packed_size("conv_packed_size", make_packed_size);
const RegisterNative pack_weights("conv_pack_weights", make_pack_weights);
const RegisterNative forward("conv_forward", make_conv<ConvDirection::kForward>);
const RegisterNative backward_data("conv_backward_data", make_conv<ConvDirection::kBackwardData>);
const RegisterNative backward_weights("conv_backward_weights", make_conv<ConvDirection::kBackwardWeights>);

}  // namespace
}  // namespace sampan::kernels
