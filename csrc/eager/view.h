// Views and in-place writes: a write to a view belongs to the history of the tensor behind it too, and its other views see it.
#pragma once
#include "eager/node.h"

namespace sampan {

// Notes that view, a new tensor, looks at source's memory.
void link_view(Tensor& view, Tensor& source);
// After target's elements were rewritten by a call while gradients are recorded. written: their history; none when they are constants.
void rewrite_history(Tensor& target, const Edge& written);
// Before t looks at other memory: its views stay with each other, behind a tensor that t leaves them.
void part_from_views(Tensor& t);
// Raises Error(kValue) that begins with what when a recorded call must not rewrite t.
void check_rewritable(const Tensor& t, const std::string& what);

}  // namespace sampan
