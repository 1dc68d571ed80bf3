// Gradients to images of few channels: a product gives what each pixel of the result's gradient adds to its window, whose rows lie together in channels-last memory.
#pragma once
#include "kernels/conv.h"

namespace sampan::kernels {

// Whether a gradient to the data is computed so: float32 images of two axes that lie channels-last, one group, windows whose rows are a few numbers long.
bool suits_spread(const ConvShape& shape, ConvDirection direction);
// Bytes of the weights as panels.
size_t spread_weight_bytes(const ConvShape& shape);
// packed: the weight operand is panels already. The epilogue adds a bias too.
std::unique_ptr<NativeOp> make_conv_spread(const NativeCall& call, const ConvShape& shape, bool packed, Epilogue epilogue);
// Makes the panels: operands (weights, the panels' bytes).
std::unique_ptr<NativeOp> make_spread_weights(const Layout& weight, const ConvShape& shape);

}  // namespace sampan::kernels
