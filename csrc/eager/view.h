// Views that are written in place: the write belongs to the history of the tensor behind them too.
#pragma once
#include "eager/node.h"

namespace sampan {

// Notes that view, a recorded output, looks at base's memory.
void link_view(Tensor& view, Tensor& base);
// Gives a view a new history when the tensor behind it was rewritten since.
void refresh_view(EagerMeta& meta);
// After view was rewritten by a recorded operation, and has its new history; is_constant: what was written has no gradient.
void write_through_view(Tensor& view, bool is_constant);
// Whether the tensor behind a view is a leaf that wants a gradient, so that the view must not be rewritten.
bool views_leaf(const Tensor& t);

}  // namespace sampan
