// Convolutions of one channel and one filter a group over channels-last images: vectors of channels, straight from the image.
#pragma once
#include "kernels/conv.h"

namespace sampan::kernels {

// Whether a convolution is computed so: float32 images of two axes that lie channels-last; the gradient to the data at stride 1.
bool suits_depthwise(const ConvShape& shape, ConvDirection direction);
// Bytes of the weights in the order in which they are read.
size_t depthwise_weight_bytes(const ConvShape& shape);
// packed: the weight operand is in that order already. bias and relu are done on the way; the epilogue's operands follow the bias.
std::unique_ptr<NativeOp> make_conv_depthwise(const NativeCall& call, const ConvShape& shape, ConvDirection direction, bool packed, bool has_bias, bool has_relu, Epilogue epilogue);
// Brings the weights into that order: operands (weights, their bytes).
std::unique_ptr<NativeOp> make_depthwise_weights(const Layout& weight, const ConvShape& shape, ConvDirection direction);

}  // namespace sampan::kernels
