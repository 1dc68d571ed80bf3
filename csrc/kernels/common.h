// What every native needs: attributes, messages, walks over strided operands, typed dispatch.
#pragma once
#include <complex>
#include <set>

#include "base/allocator.h"
#include "base/error.h"
#include "base/half.h"
#include "exec/copy.h"
#include "exec/native.h"
#include "kernels/simd.h"

namespace sampan::kernels {

using LayoutRef = Ref<const Layout>;
using Dims = std::vector<int64_t>;

std::string shape_text(const Dims& shape);
std::string shape_text(const Layout& layout);
inline Dims shape_of(const Layout& l) { return {l.shape, l.shape + l.rank}; }
inline Dims strides_of(const Layout& l) { return {l.strides, l.strides + l.rank}; }
Dims row_major_strides(const Dims& shape);
int64_t product(const int64_t* first, const int64_t* last);

// An index that was found to lie in [0, limit), read again: another thread may have written it since.
SAMPAN_INLINE int64_t within(int64_t index, int64_t limit) { return static_cast<uint64_t>(index) < static_cast<uint64_t>(limit) ? index : 0; }

// Reads one call's attributes and operands, and fails with the native's name and the operands' shapes.
class CallReader {
 public:
  CallReader(const char* native, const NativeCall& call) : native_(native), call_(call) {}

  int64_t integer(const char* name, int64_t otherwise);
  bool flag(const char* name, bool otherwise);
  double real(const char* name, double otherwise);
  std::string text(const char* name, const std::string& otherwise);
  Dims list(const char* name, const Dims& otherwise);
  // A list of numbers from `lowest` to 2^31 - 1, whose sums and products with sizes then fit in 64 bits.
  Dims steps(const char* name, const Dims& otherwise, int64_t lowest);
  // An axis in [0, rank); rank 0 counts as 1.
  int axis(int64_t otherwise, int rank);
  void no_more_attributes() const;

  void operands(size_t inputs, size_t outputs) const;
  const Layout& input(size_t i) const { return *call_.inputs[i]; }
  const Layout& output(size_t i) const { return *call_.outputs[i]; }
  void same_dtype(const Layout& a, const Layout& b, const char* what) const;
  void same_shape(const Layout& a, const Dims& expected, const char* what) const;
  void index_dtype(const Layout& a, const char* what) const;

  [[noreturn]] void fail(ErrorKind kind, const std::string& what) const;
  const NativeCall& call() const { return call_; }
  const char* name() const { return native_; }

 private:
  const Attribute* find(const char* name);

  const char* native_;
  const NativeCall& call_;
  std::set<std::string> read_;
};

// Walks the positions of one shape in row-major order and keeps the element offset of each of N operands.
template <int N>
struct Odometer {
  int rank = 0;
  int64_t shape[kMaxRank];
  int64_t strides[N][kMaxRank];
  int64_t index[kMaxRank];
  int64_t offset[N];

  void add_axis(int64_t size, const int64_t (&s)[N]) {
    if (size == 1) return;
    // An axis that continues the previous one in every operand is merged into it: fewer carries.
    bool merges = rank > 0;
    for (int n = 0; merges && n < N; ++n) merges = strides[n][rank - 1] == s[n] * size;
    if (merges)
      shape[rank - 1] *= size;
    else
      shape[rank++] = size;
    for (int n = 0; n < N; ++n) strides[n][rank - 1] = s[n];
  }
  int64_t total() const { return product(shape, shape + rank); }
  void seek(int64_t linear) {
    for (int n = 0; n < N; ++n) offset[n] = 0;
    for (int d = rank - 1; d >= 0; --d) {
      index[d] = linear % shape[d];
      linear /= shape[d];
      for (int n = 0; n < N; ++n) offset[n] += index[d] * strides[n][d];
    }
  }
  void next() {
    for (int d = rank - 1; d >= 0; --d) {
      for (int n = 0; n < N; ++n) offset[n] += strides[n][d];
      if (++index[d] < shape[d]) return;
      for (int n = 0; n < N; ++n) offset[n] -= strides[n][d] * shape[d];
      index[d] = 0;
    }
  }
};

template <DType t>
struct TypeOf;
#define SAMPAN_TYPE(name, type) \
  template <>                   \
  struct TypeOf<DType::k_##name> { using type_ = type; };
SAMPAN_TYPE(bool, bool)
SAMPAN_TYPE(uint8, uint8_t)
SAMPAN_TYPE(int8, int8_t)
SAMPAN_TYPE(int16, int16_t)
SAMPAN_TYPE(int32, int32_t)
SAMPAN_TYPE(int64, int64_t)
SAMPAN_TYPE(float16, Half)
SAMPAN_TYPE(bfloat16, BFloat16)
SAMPAN_TYPE(float32, float)
SAMPAN_TYPE(float64, double)
SAMPAN_TYPE(complex64, std::complex<float>)
SAMPAN_TYPE(complex128, std::complex<double>)
#undef SAMPAN_TYPE

// fn.operator()<T>() for the C++ type of a dtype.
template <class F>
decltype(auto) with_type(DType t, F&& fn) {
  switch (t) {
#define SAMPAN_CASE(name, size, kind) \
  case DType::k_##name:               \
    return fn.template operator()<typename TypeOf<DType::k_##name>::type_>();
    SAMPAN_DTYPES(SAMPAN_CASE)
#undef SAMPAN_CASE
    default:
      break;
  }
  throw Error(ErrorKind::kDType, "unknown dtype");
}

template <class T>
constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool is_complex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
// What a dtype is computed in.
template <class T>
using Compute = std::conditional_t<is_half<T>, float, T>;

template <class T>
SAMPAN_INLINE Compute<T> to_compute(T v) {
  if constexpr (is_half<T>)
    return to_float(v);
  else
    return v;
}
template <class T>
SAMPAN_INLINE T from_compute(Compute<T> v) {
  if constexpr (std::is_same_v<T, Half>)
    return to_half(v);
  else if constexpr (std::is_same_v<T, BFloat16>)
    return to_bfloat16(v);
  else
    return v;
}

// Sums and products of elements: integers wrap around, so they are taken without a sign.
template <class T>
constexpr bool wraps = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
using Unsigned = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;  // 16-bit products as int could overflow too

template <class T>
SAMPAN_INLINE T wrapped_sum(T a, T b) {
  if constexpr (wraps<T>)
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  else
    return static_cast<T>(a + b);
}
template <class T>
SAMPAN_INLINE T wrapped_product(T a, T b) {
  if constexpr (wraps<T>)
    return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
  else
    return static_cast<T>(a * b);
}

// Working memory from the caching allocator.
class Block {
 public:
  explicit Block(size_t bytes) : bytes_(bytes), data_(bytes ? static_cast<char*>(allocate_block(bytes)) : nullptr) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (data_) free_block(data_, bytes_);
  }
  template <class T>
  T* as() const { return reinterpret_cast<T*>(data_); }

 private:
  size_t bytes_;
  char* data_;
};

inline size_t align64(size_t n) { return (n + 63) & ~size_t{63}; }

// Runs an op on operands of other layouts (equal shapes; float32 for 16-bit floats, or other strides): inputs are converted before, outputs after, in scratch.
// reads_outputs: the op reads what its outputs hold (accumulation), so they are converted before as well.
std::unique_ptr<NativeOp> make_converted(const NativeFactory& inner, const NativeCall& call, const std::vector<LayoutRef>& inputs,
                                         const std::vector<LayoutRef>& outputs, bool reads_outputs);
// The same with every float16 and bfloat16 operand as float32.
std::unique_ptr<NativeOp> make_widened(const NativeFactory& inner, const NativeCall& call, bool reads_outputs);
// Does nothing: for empty results.
std::unique_ptr<NativeOp> make_nothing();

}  // namespace sampan::kernels
