#include "exec/native.h"

#include "base/error.h"

namespace sampan {

namespace {

// Filled by static objects of other files, so it is built on first use.
std::map<std::string, NativeFactory>& registry() {
  static auto* factories = new std::map<std::string, NativeFactory>;
  return *factories;
}

}  // namespace

void register_native(const std::string& name, NativeFactory factory) { registry()[name] = std::move(factory); }

std::unique_ptr<NativeOp> make_native(const std::string& name, const NativeCall& call) {
  auto it = registry().find(name);
  if (it == registry().end()) throw Error(ErrorKind::kNotImplemented, "there is no native primitive named '" + name + "'");
  return it->second(call);
}

std::vector<std::string> native_names() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : registry()) names.push_back(name);
  return names;
}

}  // namespace sampan
