// float32 gradients to the weights over channels-last images as one product.
#pragma once
#include "kernels/conv.h"

namespace sampan::kernels {

bool suits_weights_product(const ConvShape& shape, ConvDirection direction);

// x and out lie channels-last; the weight and the bias have any strides.
std::unique_ptr<NativeOp> make_conv_weights_product(const NativeCall& call, const ConvShape& shape, bool has_bias);

}  // namespace sampan::kernels
