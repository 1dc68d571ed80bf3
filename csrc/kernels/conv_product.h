// float32 convolutions of single pixels over channels-last images: products of pixels by channels.
#pragma once
#include "kernels/conv_onednn.h"

namespace sampan::kernels {

bool suits_product(const Conv& c);
size_t product_weight_bytes(const Conv& c);
std::unique_ptr<NativeOp> make_product_weights(const Conv& c);

// x, out and the extras lie channels-last; the weight has any strides, or is packed.
std::unique_ptr<NativeOp> make_conv_product(const NativeCall& given, const Conv& c, bool packed);

}  // namespace sampan::kernels
