// The steps that follow a product or a convolution: parsed once, run by oneDNN's post-ops or by the loops here.
#pragma once
#include "kernels/common.h"

namespace sampan::kernels {

enum class StepKind {
  kRelu, kSqrt, kSquare, kAbs, kLinear, kAdd, kMul
};

struct EpilogueStep {
  StepKind kind;
  double alpha, beta;
  bool takes_operand() const { return kind == StepKind::kAdd || kind == StepKind::kMul; }
};

std::vector<EpilogueStep> parse_epilogue(const CallReader& call, const std::string& text);
// How many more inputs the steps take.
size_t epilogue_operands(const std::vector<EpilogueStep>& steps);

// bias (may be absent) and the steps over a finished product, by plain loops.
class Epilogue {
 public:
  Epilogue() = default;
  // operands: the bias first when has_bias, then one for each add or mul; each broadcastable to out.
  Epilogue(const CallReader& call, const Layout& out, std::vector<EpilogueStep> steps, bool has_bias, const std::vector<LayoutRef>& operands);
  bool empty() const { return steps_.empty(); }
  void run(char* const* operands, char* out) const;

 private:
  struct Pass {
    EpilogueStep step;
    Odometer<2> walk;  // out and the operand; the last axis is the row
    int operand;
  };
  DType dtype_ = DType::k_float32;
  int64_t numel_ = 0;
  std::vector<Pass> steps_;
};

}  // namespace sampan::kernels
