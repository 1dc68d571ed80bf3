// The natives "copy" (any layouts of one shape, with a cast) and "fill" (one number into every element).
#include <algorithm>
#include <complex>
#include <initializer_list>
#include <string_view>

#include "base/error.h"
#include "exec/copy.h"
#include "exec/native.h"

namespace sampan {

namespace {

void check_operands(const char* name, const NativeCall& call, size_t inputs) {
  if (call.inputs.size() != inputs || call.outputs.size() != 1) {
    throw Error(ErrorKind::kValue, std::string(name) + " takes " + std::to_string(inputs) + " inputs and one output");
  }
}

void check_attributes(const char* name, const NativeCall& call, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : call.attributes) {
    if (std::find(known.begin(), known.end(), key) == known.end()) throw Error(ErrorKind::kValue, std::string(name) + " has no attribute '" + key + "'");
  }
}

class CopyOp final : public NativeOp {
 public:
  explicit CopyOp(const NativeCall& call) : src_(call.inputs[0]), dst_(call.outputs[0]) {}
  void run(char* const* buffers, char*) const override { copy_elements(buffers[1], *dst_, buffers[0], *src_); }

 private:
  Ref<const Layout> src_, dst_;
};

class FillOp final : public NativeOp {
 public:
  FillOp(const NativeCall& call, std::complex<double> value) : dst_(call.outputs[0]), complex_(value) {}
  FillOp(const NativeCall& call, int64_t value) : dst_(call.outputs[0]), integer_(value), is_integer_(true) {}
  void run(char* const* buffers, char*) const override {
    if (is_integer_) fill_elements(buffers[0], *dst_, &integer_, DType::k_int64);
    else fill_elements(buffers[0], *dst_, &complex_, DType::k_complex128);
  }

 private:
  Ref<const Layout> dst_;
  std::complex<double> complex_;
  int64_t integer_ = 0;
  bool is_integer_ = false;
};

double real_attribute(const NativeCall& call, const char* name, double otherwise) {
  const auto it = call.attributes.find(name);
  if (it == call.attributes.end()) return otherwise;
  if (const auto* v = std::get_if<int64_t>(&it->second)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<double>(&it->second)) return *v;
  throw Error(ErrorKind::kValue, std::string("fill: the attribute '") + name + "' must be a number");
}

const RegisterNative copy_native("copy", [](const NativeCall& call) -> std::unique_ptr<NativeOp> {
  check_operands("copy", call, 1);
  check_attributes("copy", call, {});
  const Layout &s = *call.inputs[0], &d = *call.outputs[0];
  if (s.rank != d.rank || !std::equal(s.shape, s.shape + s.rank, d.shape)) {
    throw Error(ErrorKind::kShape, "copy: the input is " + layout_text(s) + " and the output " + layout_text(d) + "; their shapes must be equal");
  }
  return std::make_unique<CopyOp>(call);
}, OutputStrides::kAny);

// Attributes: value (int or float), imaginary (for complex outputs).
const RegisterNative fill_native("fill", [](const NativeCall& call) -> std::unique_ptr<NativeOp> {
  check_operands("fill", call, 0);
  check_attributes("fill", call, {"value", "imaginary"});
  const auto it = call.attributes.find("value");
  if (it == call.attributes.end()) throw Error(ErrorKind::kValue, "fill needs the attribute 'value'");
  if (const auto* v = std::get_if<int64_t>(&it->second); v && !call.attributes.count("imaginary")) return std::make_unique<FillOp>(call, *v);
  return std::make_unique<FillOp>(call, std::complex<double>(real_attribute(call, "value", 0), real_attribute(call, "imaginary", 0)));
}, OutputStrides::kAny);

}  // namespace

}  // namespace sampan
