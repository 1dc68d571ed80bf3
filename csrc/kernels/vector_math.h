// Functions of vectors: float32 by polynomials to about 2 ulp, float64 lane by lane. Compiled into each caller's clones.
#pragma once
#include <cmath>
#include <type_traits>
#include <utility>

#include "kernels/simd.h"

namespace sampan::kernels {

template <class V>
using Element = std::remove_reference_t<decltype(std::declval<V&>()[0])>;

template <class V>
SAMPAN_INLINE V splat(Element<V> v) {
  return V{} + v;
}

// e^x for x in [-87, 88]; beyond, the value at the end. NaN stays.
template <class V>
SAMPAN_INLINE V exp_clamped(V x) {
  constexpr float kRound = 12582912.f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  x = x > 88.f ? splat<V>(88.f) : x;
  x = x < -87.f ? splat<V>(-87.f) : x;
  const V shifted = x * 1.44269504f + kRound, n = shifted - kRound;
  const V r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts, the first exact in a product
  V p = splat<V>(1.f / 5040);
  for (const float c : {1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, 0.5f, 1.f, 1.f}) p = p * r + c;
  using Integers = Vec<int32_t, sizeof(V)>;
  const Integers power = ((Integers)shifted - 0x4B400000 + 127) << 23;
  return p * (V)power;
}

template <class V>
SAMPAN_INLINE V sigmoid(V x) {
  if constexpr (std::is_same_v<Element<V>, float>) {
    return 1.f / (1.f + exp_clamped(-x));
  } else {
    for (size_t i = 0; i < sizeof(V) / sizeof(double); ++i) x[i] = 1 / (1 + std::exp(-x[i]));
    return x;
  }
}

template <class V>
SAMPAN_INLINE V tanh(V x) {
  if constexpr (std::is_same_v<Element<V>, float>) {
    const V u = x * x, size = x < 0.f ? -x : x;
    // (tanh(x) / x - 1) / x^2 on [0, 0.625], least squares on Chebyshev's points.
    V p = splat<V>(2.295818397e-3f);
    for (const float c : {-8.346955932e-3f, 2.176995132e-2f, -5.395940427e-2f, 1.333330427e-1f, -3.333333318e-1f}) p = p * u + c;
    const V small = x + x * u * p, large = 1.f - 2.f / (exp_clamped(size + size) + 1.f);
    return size < 0.625f ? small : x < 0.f ? -large : large;
  } else {
    for (size_t i = 0; i < sizeof(V) / sizeof(double); ++i) x[i] = std::tanh(x[i]);
    return x;
  }
}

}  // namespace sampan::kernels
