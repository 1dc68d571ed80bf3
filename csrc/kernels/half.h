// The 16-bit floating types as storage: widen to float32, round to nearest even.
#pragma once
#include <bit>

#include "kernels/simd.h"

namespace sampan::kernels {

struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

SAMPAN_INLINE float widen(BFloat16 h) { return std::bit_cast<float>(static_cast<uint32_t>(h.bits) << 16); }

SAMPAN_INLINE float widen(Float16 h) {
  // Subnormals and normals alike: place exponent and mantissa in float32's fields, then scale by 2^112 to fix the bias.
  const uint32_t magnitude = (h.bits & 0x7fffu) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t special = std::bit_cast<uint32_t>(scaled) | 0x7f800000u;
  const uint32_t value = magnitude >= (0x7c00u << 13) ? special : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(value | (static_cast<uint32_t>(h.bits & 0x8000u) << 16));
}

SAMPAN_INLINE void narrow(float f, BFloat16* out) {
  const uint32_t u = std::bit_cast<uint32_t>(f);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const uint32_t quiet = (u >> 16) | 0x40u;
  out->bits = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

SAMPAN_INLINE void narrow(float f, Float16* out) {
  const uint32_t u = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  // Below 2^-14 the sum with 0.5 lines the result up with 0.5's last bits, and the addition itself rounds.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t big = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t r = magnitude < 0x38800000u ? small : magnitude >= 0x477ff000u ? big : normal;
  out->bits = static_cast<uint16_t>(sign | r);
}

}  // namespace sampan::kernels
