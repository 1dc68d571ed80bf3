// The project's own float32 product for other natives: the call is matmul's, whose operands have two axes.
#pragma once
#include <memory>

#include "exec/native.h"

namespace sampan::kernels {

// packed: b's buffer holds panels, whatever its layout says.
std::unique_ptr<NativeOp> make_own_matmul(const NativeCall& call, bool packed);
// b [depth, columns] into panels, and how much memory they take.
std::unique_ptr<NativeOp> make_own_matmul_panels(const Layout& b);
size_t own_matmul_panel_bytes(const Layout& b);

}  // namespace sampan::kernels
