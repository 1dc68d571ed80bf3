// Errors that cross into Python with the class a caller expects.
#pragma once
#include <stdexcept>
#include <string>

namespace sampan {

// kind names the Python class in sampan/base/errors.py that the bindings raise.
enum class ErrorKind { kShape, kDType, kIndex, kValue, kType, kMemory, kRuntime, kNotImplemented };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace sampan
