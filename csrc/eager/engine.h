// Runs the graph backwards.
#pragma once
#include <vector>

#include "eager/node.h"

namespace sampan {

struct BackwardRequest {
  std::vector<Ref<Tensor>> roots;
  std::vector<Ref<Tensor>> root_grads;  // one per root; null: ones
  // Empty: gradients go into the leaves (backward()). Else the gradients of these are returned and no leaf changes (grad()).
  std::vector<Ref<Tensor>> inputs;
  std::vector<Ref<Tensor>> blocked;  // no gradient passes through these (no_grad_vars)
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;
};

// The gradients of request.inputs; null for an input that is not in the graph, when allow_unused.
// Needs Python's lock, which is given away while long plans run. Re-entrant: a hook may call it.
std::vector<Ref<Tensor>> run_backward(const BackwardRequest& request);

}  // namespace sampan
