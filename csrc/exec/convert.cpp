#include "exec/convert.h"

#include <array>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sampan {

namespace {

struct Bool {
  uint8_t value;
};
template <class T>
struct Complex {
  T real, imag;
};

using ElementTypes = std::tuple<Bool, uint8_t, int8_t, int16_t, int32_t, int64_t, Half, BFloat16, float, double, Complex<float>, Complex<double>>;
template <int t>
using Element = std::tuple_element_t<t, ElementTypes>;
constexpr int kTypes = static_cast<int>(DType::kCount);
static_assert(std::tuple_size_v<ElementTypes> == kTypes);

template <class T>
constexpr bool is_complex = std::is_same_v<T, Complex<float>> || std::is_same_v<T, Complex<double>>;
template <class T>
constexpr bool is_16_bit_float = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// Selections, not branches, so that the loops vectorise.
template <class D, class S>
inline D saturate(S v) {
  using Integer = std::numeric_limits<D>;
  using Floating = std::numeric_limits<S>;
  // The first value above the range is a power of two, so it is exact in S; the lowest value is too.
  constexpr S above = static_cast<S>(uint64_t{1} << (Integer::digits - 1)) * 2;
  constexpr S lowest = static_cast<S>(Integer::min());
  constexpr bool has_max = Integer::digits <= Floating::digits;
  constexpr S highest = has_max ? static_cast<S>(Integer::max()) : above * (1 - Floating::epsilon() / 2);
  const S low = v > lowest ? v : lowest;
  const S inside = low < highest ? low : highest;
  D result = static_cast<D>(inside);
  if constexpr (!has_max) result = v >= above ? Integer::max() : result;
  return v == v ? result : D{0};
}

// A double that rounds to any shorter type as the integer itself would: bits that do not fit leave a sticky one.
inline double to_double_sticky(int64_t v) {
  constexpr int64_t low = 0x7ff;
  const bool fits = v >= -(int64_t{1} << 53) && v <= int64_t{1} << 53;
  return static_cast<double>(fits || (v & low) == 0 ? v : (v & ~low) | (low + 1));
}

template <class D, class S>
inline D cast_value(S v) {
  if constexpr (std::is_same_v<D, S>) {
    return v;
  } else if constexpr (is_complex<D> && is_complex<S>) {
    using T = decltype(D::real);
    return {static_cast<T>(v.real), static_cast<T>(v.imag)};
  } else if constexpr (is_complex<D>) {
    return {cast_value<decltype(D::real)>(v), 0};
  } else if constexpr (is_complex<S>) {
    if constexpr (std::is_same_v<D, Bool>) return {static_cast<uint8_t>(v.real != 0 || v.imag != 0)};
    else return cast_value<D>(v.real);
  } else if constexpr (is_16_bit_float<S>) {
    return cast_value<D>(to_float(v));
  } else if constexpr (std::is_same_v<S, Bool>) {
    return cast_value<D>(static_cast<uint8_t>(v.value != 0));
  } else if constexpr (std::is_same_v<D, Bool>) {
    return {static_cast<uint8_t>(v != 0)};
  } else if constexpr (std::is_same_v<D, BFloat16>) {
    if constexpr (std::is_same_v<S, int64_t>) return to_bfloat16(to_double_sticky(v));
    else if constexpr (std::is_same_v<S, float>) return to_bfloat16(v);
    else return to_bfloat16(static_cast<double>(v));
  } else if constexpr (std::is_same_v<D, Half>) {
    return to_half(static_cast<double>(v));
  } else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<D>) {
    return saturate<D>(v);
  } else {
    return static_cast<D>(v);
  }
}

template <class D, class S>
void convert(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t count) {
  if (dst_stride == sizeof(D) && src_stride == sizeof(S)) {
    auto* __restrict d = reinterpret_cast<D*>(dst);
    const auto* __restrict s = reinterpret_cast<const S*>(src);
    for (int64_t i = 0; i < count; ++i) d[i] = cast_value<D>(s[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    *reinterpret_cast<D*>(dst + i * dst_stride) = cast_value<D>(*reinterpret_cast<const S*>(src + i * src_stride));
  }
}

template <size_t size>
void move(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(dst + i * dst_stride, src + i * src_stride, size);
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) void half_to_float_f16c(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t count) {
  int64_t i = 0;
  if (dst_stride == 4 && src_stride == 2) {
    for (; i + 8 <= count; i += 8) {
      _mm256_storeu_ps(reinterpret_cast<float*>(dst) + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src + 2 * i))));
    }
  }
  convert<float, Half>(dst + i * dst_stride, dst_stride, src + i * src_stride, src_stride, count - i);
}

__attribute__((target("avx,f16c"))) void float_to_half_f16c(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t count) {
  int64_t i = 0;
  if (dst_stride == 2 && src_stride == 4) {
    for (; i + 8 <= count; i += 8) {
      const __m256 v = _mm256_loadu_ps(reinterpret_cast<const float*>(src) + i);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + 2 * i), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
  }
  convert<Half, float>(dst + i * dst_stride, dst_stride, src + i * src_stride, src_stride, count - i);
}
#endif

using Row = std::array<ConvertRow, kTypes>;
using Table = std::array<Row, kTypes>;  // [dst][src]

template <int d, int s>
constexpr ConvertRow entry() {
  if constexpr (d == s) return move<sizeof(Element<d>)>;
  else return convert<Element<d>, Element<s>>;
}
template <int d, int... s>
constexpr Row make_row(std::integer_sequence<int, s...>) {
  return {entry<d, s>()...};
}
template <int... d>
Table make_table(std::integer_sequence<int, d...> types) {
  Table t{make_row<d>(types)...};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("f16c")) {
    t[static_cast<int>(DType::k_float32)][static_cast<int>(DType::k_float16)] = half_to_float_f16c;
    t[static_cast<int>(DType::k_float16)][static_cast<int>(DType::k_float32)] = float_to_half_f16c;
  }
#endif
  return t;
}

}  // namespace

ConvertRow convert_row(DType dst, DType src) {
  static const Table table = make_table(std::make_integer_sequence<int, kTypes>());
  return table[static_cast<int>(dst)][static_cast<int>(src)];
}

}  // namespace sampan
