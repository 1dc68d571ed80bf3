// 3 x 3 convolutions in tiles of 2 x 2 results: 16 products for each pair of channels and tile, where the windows have 36.
#pragma once
#include "kernels/conv.h"

namespace sampan::kernels {

// Whether a convolution is computed so: float32 images (for the gradient to the weights bfloat16 too, whose numbers are widened on the way) that lie channels-last, windows of 3 x 3 that touch, and channels enough to pay for the transforms.
bool suits_winograd(const ConvShape& shape, ConvDirection direction, const Layout& x, const Layout& out);
// Bytes of the transformed weights of a direction that reads weights.
size_t winograd_weight_bytes(const ConvShape& shape);
// packed: the weight operand is the transformed one. Operands as the native's; the epilogue adds a bias too.
std::unique_ptr<NativeOp> make_conv_winograd(const NativeCall& call, const ConvShape& shape, ConvDirection direction, bool packed, Epilogue epilogue);
// Transforms the weights: operands (weights, the transformed bytes).
std::unique_ptr<NativeOp> make_winograd_weights(const Layout& weight, const ConvShape& shape, ConvDirection direction);

}  // namespace sampan::kernels
