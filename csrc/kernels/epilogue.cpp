#include "kernels/epilogue.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "exec/parallel.h"

namespace sampan::kernels {
namespace {

struct StepName {
  const char* name;
  StepKind kind;
  int numbers;
};
constexpr StepName kSteps[] = {
    {"relu", StepKind::kRelu, 0}, {"sqrt", StepKind::kSqrt, 0}, {"square", StepKind::kSquare, 0}, {"abs", StepKind::kAbs, 0},
    {"linear", StepKind::kLinear, 2}, {"add", StepKind::kAdd, 0}, {"mul", StepKind::kMul, 0},
};

SAMPAN_CLONES void unary_row(const EpilogueStep& s, float* v, int64_t n) {
  const float alpha = static_cast<float>(s.alpha), beta = static_cast<float>(s.beta);
  switch (s.kind) {
    case StepKind::kRelu:
      for (int64_t i = 0; i < n; ++i) v[i] = v[i] < 0 ? 0 : v[i];
      break;
    case StepKind::kSqrt:
      for (int64_t i = 0; i < n; ++i) v[i] = __builtin_sqrtf(v[i]);
      break;
    case StepKind::kSquare:
      for (int64_t i = 0; i < n; ++i) v[i] *= v[i];
      break;
    case StepKind::kAbs:
      for (int64_t i = 0; i < n; ++i) v[i] = __builtin_fabsf(v[i]);
      break;
    case StepKind::kLinear:
      for (int64_t i = 0; i < n; ++i) v[i] = v[i] * alpha + beta;
      break;
    default:
      break;
  }
}

// Complex numbers come here as pairs for linear; the offset then belongs to the real part, which the caller's step says.
template <class T>
void unary_row(const EpilogueStep& s, T* v, int64_t n) {
  if (s.kind == StepKind::kRelu) {
    if constexpr (!is_complex<T>)
      for (int64_t i = 0; i < n; ++i) v[i] = v[i] < T{} ? T{} : v[i];
  } else if constexpr (!std::is_integral_v<T>) {
    using Real = decltype(std::abs(T{}));
    for (int64_t i = 0; i < n; ++i) v[i] = v[i] * static_cast<Real>(s.alpha) + static_cast<Real>(s.beta);
  }
}

template <class T>
SAMPAN_INLINE void binary_row(StepKind kind, const T* w, int64_t step, T* v, int64_t n) {
  if (kind == StepKind::kAdd) {
    if (step == 1)
      for (int64_t i = 0; i < n; ++i) v[i] = wrapped_sum(v[i], w[i]);
    else
      for (int64_t i = 0; i < n; ++i) v[i] = wrapped_sum(v[i], w[i * step]);
  } else {
    for (int64_t i = 0; i < n; ++i) v[i] = wrapped_product(v[i], w[i * step]);
  }
}
SAMPAN_CLONES void binary_floats(StepKind kind, const float* w, int64_t step, float* v, int64_t n) { binary_row(kind, w, step, v, n); }

}  // namespace

std::vector<EpilogueStep> parse_epilogue(const CallReader& call, const std::string& text) {
  std::vector<EpilogueStep> steps;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ';');) {
    std::istringstream fields(part);
    std::string name, number;
    std::getline(fields, name, ':');
    const auto* entry = std::find_if(std::begin(kSteps), std::end(kSteps), [&](const StepName& s) { return name == s.name; });
    if (entry == std::end(kSteps)) call.fail(ErrorKind::kValue, "epilogue step '" + name + "' is unknown");
    double numbers[2] = {0, 0};
    int count = 0;
    for (; std::getline(fields, number, ':'); ++count) {
      char* end = nullptr;
      if (count < 2) numbers[count] = std::strtod(number.c_str(), &end);
      if (count >= 2 || end == number.c_str() || *end) call.fail(ErrorKind::kValue, "epilogue step '" + part + "' cannot be read");
    }
    if (count != entry->numbers) call.fail(ErrorKind::kValue, "epilogue step '" + part + "' needs " + std::to_string(entry->numbers) + " numbers");
    steps.push_back({entry->kind, numbers[0], numbers[1]});
  }
  return steps;
}

size_t epilogue_operands(const std::vector<EpilogueStep>& steps) {
  return static_cast<size_t>(std::count_if(steps.begin(), steps.end(), [](const EpilogueStep& s) { return s.takes_operand(); }));
}

Epilogue::Epilogue(const CallReader& call, const Layout& out, std::vector<EpilogueStep> steps, bool has_bias, const std::vector<LayoutRef>& operands)
    : dtype_(out.dtype), numel_(out.numel) {
  if (has_bias) steps.insert(steps.begin(), {StepKind::kAdd, 0, 0});
  // out is walked in the order of its memory, so that its rows are contiguous.
  std::vector<int> order(static_cast<size_t>(out.rank));
  for (int d = 0; d < out.rank; ++d) order[static_cast<size_t>(d)] = d;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return out.strides[a] > out.strides[b]; });
  int next = 0;
  for (const EpilogueStep& s : steps) {
    Pass pass{s, {}, -1};
    if (s.takes_operand()) {
      const Layout& w = *operands[static_cast<size_t>(next)];
      call.same_dtype(w, out, "the output, the bias and the epilogue's operands");
      if (w.rank > out.rank) call.fail(ErrorKind::kShape, "a bias or epilogue operand has more axes than the output");
      for (int d : order) {
        const int at = d - (out.rank - w.rank);
        if (at >= 0 && w.shape[at] != out.shape[d] && w.shape[at] != 1)
          call.fail(ErrorKind::kShape, "the operand " + shape_text(shape_of(w)) + " does not broadcast to the output");
        pass.walk.add_axis(out.shape[d], {out.strides[d], at < 0 || w.shape[at] == 1 ? 0 : w.strides[at]});
      }
      pass.operand = next++;
    } else if (const char kind = dtype_kind(dtype_); dtype_ != DType::k_float32 && !(s.kind == StepKind::kLinear && (kind == 'f' || kind == 'c')) && !(s.kind == StepKind::kRelu && kind != 'c')) {
      call.fail(ErrorKind::kNotImplemented, std::string("for ") + dtype_name(dtype_) + " the epilogue has only " + (kind == 'c' ? "linear, add and mul" : kind == 'f' ? "relu, linear, add and mul" : "relu, add and mul"));
    }
    steps_.push_back(pass);
  }
}

void Epilogue::run(char* const* operands, char* out) const {
  if (numel_ == 0) return;
  with_type(dtype_, [&]<class T>() {
    if constexpr (is_half<T> || std::is_same_v<T, bool>) {
      throw Error(ErrorKind::kNotImplemented, "an epilogue runs in float32");
    } else {
      T* values = reinterpret_cast<T*>(out);
      for (const Pass& pass : steps_) {
        if (pass.operand >= 0) {
          const T* w = reinterpret_cast<const T*>(operands[pass.operand]);
          Odometer<2> walk = pass.walk;
          const int last = walk.rank - 1;
          const int64_t n = walk.rank ? walk.shape[last] : 1, step = walk.rank ? walk.strides[1][last] : 0;
          if (walk.rank) --walk.rank;
          parallel_for(walk.total(), 1.0 + static_cast<double>(n) * 0.3, [&](int64_t begin, int64_t end) {
            Odometer<2> at = walk;
            at.seek(begin);
            for (int64_t i = begin; i < end; ++i, at.next()) {
              if constexpr (std::is_same_v<T, float>)
                binary_floats(pass.step.kind, w + at.offset[1], step, values + at.offset[0], n);
              else
                binary_row(pass.step.kind, w + at.offset[1], step, values + at.offset[0], n);
            }
          });
          continue;
        }
        parallel_for(numel_, 0.2, [&](int64_t begin, int64_t end) { unary_row(pass.step, values + begin, end - begin); });
      }
    }
  });
}

}  // namespace sampan::kernels
