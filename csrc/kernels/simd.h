// Portable vectors: GCC's vector extensions, compiled once for each level of x86 and chosen at load time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

// Code that keeps 256-bit vectors at level 4 too still gains masked tails and 32 registers there. with_registers is for code that takes 512-bit ones.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SAMPAN_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SAMPAN_CLONES  // a sanitizer's runtime is not yet up when the loader resolves clones
#endif
// A clone compiles only what is inlined into it for its own target.
#define SAMPAN_INLINE __attribute__((always_inline)) inline
#define SAMPAN_INLINED __attribute__((always_inline))  // of a lambda, behind its parameters

namespace sampan::kernels {

constexpr int kVectorBytes = 32, kWideBytes = 64;

template <class T, int kBytes = kVectorBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
  static constexpr int lanes = kBytes / static_cast<int>(sizeof(T));
};
template <class T, int kBytes = kVectorBytes>
using Vec = typename VectorOf<T, kBytes>::type;
template <class T, int kBytes = kVectorBytes>
constexpr int kLanes = VectorOf<T, kBytes>::lanes;

template <class T, int kBytes = kVectorBytes>
SAMPAN_INLINE Vec<T, kBytes> load(const T* p) {
  Vec<T, kBytes> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T, class V>
SAMPAN_INLINE void store(T* p, V v) {
  static_assert(sizeof v > sizeof(T));
  std::memcpy(p, &v, sizeof v);
}
template <class T>
SAMPAN_INLINE T sum_lanes(Vec<T> v) {
  T s[kLanes<T>];
  std::memcpy(s, &v, sizeof s);
  for (int step = kLanes<T> / 2; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) s[i] += s[i + step];
  return s[0];
}

// Whether the processor has 512-bit registers (level 4 of x86-64).
bool has_wide_registers();

template <int kBytes>
struct RegisterBytes {
  static constexpr int value = kBytes;
};

namespace detail {
#if defined(__x86_64__)
template <class F>
__attribute__((target("arch=x86-64-v4"))) void at_level_4(const F& f) {
  f(RegisterBytes<kWideBytes>{});
}
template <class F>
__attribute__((target("arch=x86-64-v3"))) void at_level_3(const F& f) {
  f(RegisterBytes<kVectorBytes>{});
}
bool has_level_3();
#endif
}  // namespace detail

// Calls f with the size of this processor's registers, compiled for them: f is a lambda that is SAMPAN_INLINED, as is all that it calls.
template <class F>
void with_registers(const F& f) {
#if defined(__x86_64__)
  if (has_wide_registers()) return detail::at_level_4(f);
  if (detail::has_level_3()) return detail::at_level_3(f);
#endif
  f(RegisterBytes<kVectorBytes>{});
}

}  // namespace sampan::kernels
