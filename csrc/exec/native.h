// Hand-tuned primitives (oneDNN, sorting, scatter): what a Plan calls beside generated kernels.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tensor/layout.h"

namespace sampan {

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using Attributes = std::map<std::string, Attribute>;

// One prepared call: the layouts are fixed, everything that can be decided (a oneDNN primitive, a packed size) is.
// run() is const and thread safe: several user threads may run one Plan at once.
class NativeOp {
 public:
  virtual ~NativeOp() = default;
  // buffers: the inputs' first elements, then the outputs'. scratch has scratch_bytes(), 64-byte aligned.
  virtual void run(char* const* buffers, char* scratch) const = 0;
  virtual size_t scratch_bytes() const { return 0; }
};

struct NativeCall {
  std::vector<Ref<const Layout>> inputs;
  std::vector<Ref<const Layout>> outputs;
  Attributes attributes;
};

using NativeFactory = std::function<std::unique_ptr<NativeOp>(const NativeCall&)>;

// What a native can write to; anything else is refused before its factory sees the call.
enum class OutputStrides : uint8_t { kDense, kAny };

// One registry; only csrc/kernels registers. Raises Error(kNotImplemented) for an unknown name.
void register_native(const std::string& name, NativeFactory factory, OutputStrides strides);
std::unique_ptr<NativeOp> make_native(const std::string& name, const NativeCall& call);
std::vector<std::string> native_names();

struct RegisterNative {
  RegisterNative(const char* name, NativeFactory f, OutputStrides strides = OutputStrides::kDense) { register_native(name, std::move(f), strides); }
};

}  // namespace sampan
