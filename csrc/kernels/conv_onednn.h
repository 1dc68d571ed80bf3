// One convolution as oneDNN primitives, whichever of its three directions.
#pragma once
#include <optional>

#include "kernels/conv.h"
#include "kernels/onednn.h"

namespace sampan::kernels {

struct Conv {
  ConvShape shape;
  ConvDirection direction;
  LayoutRef x, weight, out;  // the forward's roles; for an output of this op, its own layout
  LayoutRef bias;            // null without
  std::vector<EpilogueStep> steps;
  std::vector<LayoutRef> extras;
  bool packed = false;  // the weight operand is in oneDNN's own form
};

// In which form the images go through oneDNN: channels-last, or the primitive's own blocks, with reorders around it.
enum class ImageForm { kChannelsLast, kBlocked };

// The form for which oneDNN has fast code; none when it has only its reference loop, or nothing.
std::optional<ImageForm> choose_form(const Conv& c);
Sequence conv_sequence(const Conv& c, ImageForm form);
// A gradient, whose sums do not depend on the number of threads; null when oneDNN has no fast code for it.
std::unique_ptr<NativeOp> make_conv_gradient(const Conv& c);
// The weights as given and as the primitive wants them; not for the direction that computes them.
Packing conv_packing(const Conv& c, ImageForm form);

}  // namespace sampan::kernels
