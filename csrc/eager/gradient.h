// Sums of gradients, and what a leaf keeps.
#pragma once
#include "eager/node.h"

namespace sampan {

// True when nothing but this reference can see the tensor's memory, so that it may be overwritten.
bool is_exclusive(const Ref<Tensor>& t);
// into becomes into + value: in into's memory when it is exclusive, else a new tensor. A recorded operation when create_graph.
void add_gradient(Ref<Tensor>& into, Ref<Tensor> value, bool create_graph);
// meta.grad += grad, written in place unless create_graph; takes the memory of grad when nobody else sees it.
void accumulate_into_leaf(EagerMeta& meta, Ref<Tensor> grad, bool create_graph);
Ref<Tensor> ones_like(const Tensor& t);
// Raises Error(kShape or kDType) that begins with what when grad cannot be the gradient of a tensor with this layout.
void check_gradient(const Tensor& grad, const Layout& expected, const std::string& what, bool any_dtype = false);

}  // namespace sampan
