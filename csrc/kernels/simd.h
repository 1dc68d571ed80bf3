// Portable vectors: GCC's vector extensions, compiled once for each level of x86 and chosen at load time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

// Level 4 has 512-bit registers but these kernels keep 256-bit vectors: it still gains masked tails and 32 registers.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SAMPAN_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SAMPAN_CLONES  // a sanitizer's runtime is not yet up when the loader resolves clones
#endif
// A clone compiles only what is inlined into it for its own target.
#define SAMPAN_INLINE __attribute__((always_inline)) inline

namespace sampan::kernels {

constexpr int kVectorBytes = 32;

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
  typedef T unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
  static constexpr int lanes = kVectorBytes / static_cast<int>(sizeof(T));
};
template <class T>
using Vec = typename VectorOf<T>::type;
template <class T>
constexpr int kLanes = VectorOf<T>::lanes;

template <class T>
SAMPAN_INLINE Vec<T> load(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::unaligned*>(p);
}
template <class T>
SAMPAN_INLINE void store(T* p, Vec<T> v) {
  *reinterpret_cast<typename VectorOf<T>::unaligned*>(p) = v;
}
template <class T>
SAMPAN_INLINE T sum_lanes(Vec<T> v) {
  T s[kLanes<T>];
  std::memcpy(s, &v, sizeof s);
  for (int step = kLanes<T> / 2; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) s[i] += s[i + step];
  return s[0];
}

}  // namespace sampan::kernels
