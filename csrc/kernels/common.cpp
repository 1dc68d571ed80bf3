#include "kernels/common.h"

#include <algorithm>
#include <numeric>

namespace sampan::kernels {

std::string shape_text(const Dims& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

std::string shape_text(const Layout& layout) { return std::string(dtype_name(layout.dtype)) + shape_text(shape_of(layout)); }

Dims row_major_strides(const Dims& shape) {
  Dims strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

int64_t product(const int64_t* first, const int64_t* last) {
  return std::accumulate(first, last, int64_t{1}, std::multiplies<>());
}

const Attribute* CallReader::find(const char* name) {
  read_.insert(name);
  auto it = call_.attributes.find(name);
  return it == call_.attributes.end() ? nullptr : &it->second;
}

int64_t CallReader::integer(const char* name, int64_t otherwise) {
  const Attribute* a = find(name);
  if (!a) return otherwise;
  if (const auto* v = std::get_if<int64_t>(a)) return *v;
  fail(ErrorKind::kType, std::string("attribute ") + name + " must be an integer");
}

bool CallReader::flag(const char* name, bool otherwise) { return integer(name, otherwise) != 0; }

double CallReader::real(const char* name, double otherwise) {
  const Attribute* a = find(name);
  if (!a) return otherwise;
  if (const auto* v = std::get_if<double>(a)) return *v;
  if (const auto* v = std::get_if<int64_t>(a)) return static_cast<double>(*v);
  fail(ErrorKind::kType, std::string("attribute ") + name + " must be a number");
}

std::string CallReader::text(const char* name, const std::string& otherwise) {
  const Attribute* a = find(name);
  if (!a) return otherwise;
  if (const auto* v = std::get_if<std::string>(a)) return *v;
  fail(ErrorKind::kType, std::string("attribute ") + name + " must be a string");
}

Dims CallReader::list(const char* name, const Dims& otherwise) {
  const Attribute* a = find(name);
  if (!a) return otherwise;
  const auto* v = std::get_if<Dims>(a);
  if (!v) fail(ErrorKind::kType, std::string("attribute ") + name + " must be a list of integers");
  if (!otherwise.empty() && v->size() != otherwise.size())
    fail(ErrorKind::kValue, std::string("attribute ") + name + " is " + shape_text(*v) + "; it needs " + std::to_string(otherwise.size()) + " entries");
  return *v;
}

Dims CallReader::steps(const char* name, const Dims& otherwise, int64_t lowest) {
  const Dims values = list(name, otherwise);
  for (const int64_t v : values) {
    if (v < lowest || v > INT32_MAX) fail(ErrorKind::kValue, std::string(name) + " is " + shape_text(values) + "; it must lie between " + std::to_string(lowest) + " and 2^31 - 1");
  }
  return values;
}

int CallReader::axis(int64_t otherwise, int rank) {
  const int64_t a = integer("axis", otherwise), n = std::max(rank, 1);
  if (a < -n || a >= n) fail(ErrorKind::kValue, "axis is " + std::to_string(a) + "; it must lie between " + std::to_string(-n) + " and " + std::to_string(n - 1));
  return static_cast<int>(a < 0 ? a + n : a);
}

void CallReader::no_more_attributes() const {
  for (const auto& [name, value] : call_.attributes)
    if (!read_.count(name)) fail(ErrorKind::kValue, "unknown attribute " + name);
}

void CallReader::operands(size_t inputs, size_t outputs) const {
  if (call_.inputs.size() == inputs && call_.outputs.size() == outputs) return;
  fail(ErrorKind::kValue, "it takes " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) + " outputs here, and received " +
                              std::to_string(call_.inputs.size()) + " and " + std::to_string(call_.outputs.size()));
}

void CallReader::same_dtype(const Layout& a, const Layout& b, const char* what) const {
  if (a.dtype != b.dtype) fail(ErrorKind::kDType, std::string(what) + " must have one dtype");
}

void CallReader::same_shape(const Layout& a, const Dims& expected, const char* what) const {
  if (shape_of(a) != expected) fail(ErrorKind::kShape, std::string(what) + " is " + shape_text(shape_of(a)) + "; it must be " + shape_text(expected));
}

void CallReader::index_dtype(const Layout& a, const char* what) const {
  if (a.dtype != DType::k_int32 && a.dtype != DType::k_int64)
    fail(ErrorKind::kDType, std::string(what) + " is " + dtype_name(a.dtype) + "; it must be int32 or int64");
}

void CallReader::fail(ErrorKind kind, const std::string& what) const {
  std::string operands;
  for (const auto& l : call_.inputs) operands += (operands.empty() ? "" : ", ") + shape_text(*l);
  std::string outputs;
  for (const auto& l : call_.outputs) outputs += (outputs.empty() ? "" : ", ") + shape_text(*l);
  throw Error(kind, std::string(native_) + ": " + what + " (inputs: " + operands + "; outputs: " + outputs + ")");
}

namespace {

class ConvertedOp final : public NativeOp {
 public:
  ConvertedOp(const NativeFactory& factory, const NativeCall& call, const std::vector<LayoutRef>& inputs, const std::vector<LayoutRef>& outputs,
              bool reads_outputs)
      : input_count_(call.inputs.size()), reads_outputs_(reads_outputs) {
    auto add = [&](const std::vector<LayoutRef>& given, const std::vector<LayoutRef>& wanted) {
      for (size_t i = 0; i < given.size(); ++i) {
        const bool same = given[i] == wanted[i];
        operands_.push_back({given[i], wanted[i], same ? kInPlace : bytes_});
        if (!same) bytes_ += align64(wanted[i]->size_bytes());
      }
    };
    add(call.inputs, inputs);
    add(call.outputs, outputs);
    inner_ = factory({inputs, outputs, call.attributes});
  }

  size_t scratch_bytes() const override { return bytes_ + inner_->scratch_bytes(); }

  void run(char* const* buffers, char* scratch) const override {
    std::vector<char*> inner(operands_.size());
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Operand& o = operands_[i];
      inner[i] = o.offset == kInPlace ? buffers[i] : scratch + o.offset;
      if (o.offset != kInPlace && (i < input_count_ || reads_outputs_)) copy_elements(inner[i], *o.wanted, buffers[i], *o.given);
    }
    inner_->run(inner.data(), scratch + bytes_);
    for (size_t i = input_count_; i < operands_.size(); ++i)
      if (operands_[i].offset != kInPlace) copy_elements(buffers[i], *operands_[i].given, inner[i], *operands_[i].wanted);
  }

 private:
  static constexpr size_t kInPlace = ~size_t{0};
  struct Operand {
    LayoutRef given, wanted;
    size_t offset;
  };
  std::vector<Operand> operands_;
  size_t input_count_;
  size_t bytes_ = 0;
  bool reads_outputs_;
  std::unique_ptr<NativeOp> inner_;
};

class NothingOp final : public NativeOp {
  void run(char* const*, char*) const override {}
};

}  // namespace

std::unique_ptr<NativeOp> make_converted(const NativeFactory& inner, const NativeCall& call, const std::vector<LayoutRef>& inputs,
                                         const std::vector<LayoutRef>& outputs, bool reads_outputs) {
  return std::make_unique<ConvertedOp>(inner, call, inputs, outputs, reads_outputs);
}

std::unique_ptr<NativeOp> make_widened(const NativeFactory& inner, const NativeCall& call, bool reads_outputs) {
  auto widened = [](std::vector<LayoutRef> layouts) {
    for (LayoutRef& l : layouts) {
      if (l->dtype != DType::k_float16 && l->dtype != DType::k_bfloat16) continue;
      l = l->is_dense ? intern_layout(DType::k_float32, l->shape_span(), l->strides_span()) : contiguous_layout(DType::k_float32, l->shape_span());
    }
    return layouts;
  };
  return make_converted(inner, call, widened(call.inputs), widened(call.outputs), reads_outputs);
}

bool has_wide_registers() {
#if defined(__x86_64__)
  static const bool is_wide = __builtin_cpu_supports("x86-64-v4");
  return is_wide;
#else
  return false;
#endif
}

#if defined(__x86_64__)
bool detail::has_level_3() {
  static const bool is_there = __builtin_cpu_supports("x86-64-v3");
  return is_there;
}
#endif

std::unique_ptr<NativeOp> make_nothing() { return std::make_unique<NothingOp>(); }

}  // namespace sampan::kernels
