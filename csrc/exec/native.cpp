#include "exec/native.h"

#include "base/error.h"

namespace sampan {

namespace {

struct Registered {
  NativeFactory factory;
  OutputStrides strides;
};

// Filled by static objects of other files, so it is built on first use.
std::map<std::string, Registered>& registry() {
  static auto* natives = new std::map<std::string, Registered>;
  return *natives;
}

}  // namespace

void register_native(const std::string& name, NativeFactory factory, OutputStrides strides) { registry()[name] = {std::move(factory), strides}; }

std::unique_ptr<NativeOp> make_native(const std::string& name, const NativeCall& call) {
  auto it = registry().find(name);
  if (it == registry().end()) throw Error(ErrorKind::kNotImplemented, "there is no native primitive named '" + name + "'");
  for (const auto& output : call.outputs) {
    if (output->is_dense || it->second.strides == OutputStrides::kAny) continue;
    throw Error(ErrorKind::kValue, name + ": the output " + layout_text(*output) + " has gaps, repeated elements or flipped axes; it must be dense");
  }
  return it->second.factory(call);
}

std::vector<std::string> native_names() {
  std::vector<std::string> names;
  for (const auto& [name, registered] : registry()) names.push_back(name);
  return names;
}

}  // namespace sampan
