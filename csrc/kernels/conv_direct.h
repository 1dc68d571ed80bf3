// Convolutions of few channels, whose windows' rows lie together in channels-last memory: products straight from the image.
#pragma once
#include "kernels/conv.h"

namespace sampan::kernels {

// Whether a convolution is computed so: float32 images of two axes, one group, few channels on one side. The images must lie channels-last.
bool suits_direct(const ConvShape& shape, ConvDirection direction);
// Bytes of the weights as panels.
size_t direct_weight_bytes(const ConvShape& shape, ConvDirection direction);
// packed: the weight operand is panels already. has_bias and has_relu are done on the way; the epilogue's operands follow the bias.
std::unique_ptr<NativeOp> make_conv_direct(const NativeCall& call, const ConvShape& shape, ConvDirection direction, bool packed, bool has_bias, bool has_relu, Epilogue epilogue);
// Makes the panels: operands (weights, the panels' bytes).
std::unique_ptr<NativeOp> make_direct_weights(const Layout& weight, const ConvShape& shape, ConvDirection direction);

}  // namespace sampan::kernels
