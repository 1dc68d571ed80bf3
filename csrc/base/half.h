// The 16-bit floating types: plain bits with conversions that round once, to nearest even.
#pragma once
#include <bit>
#include <cstdint>

namespace sampan {

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

// Straight from double, since going through float would round twice.
template <int mantissa_bits, int exponent_bits>
inline uint16_t round_to_16_bits(double x) {
  static_assert(1 + mantissa_bits + exponent_bits == 16);
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  constexpr uint16_t infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
  uint64_t b = std::bit_cast<uint64_t>(x);
  const auto sign = static_cast<uint16_t>((b >> 63) << 15);
  b &= ~(uint64_t{1} << 63);
  if (b > uint64_t{0x7ff} << 52) return sign | infinity | (1 << (mantissa_bits - 1));
  const int exponent = static_cast<int>(b >> 52) - 1023;
  if (exponent > bias) return sign | infinity;
  const int missing = exponent < 1 - bias ? 1 - bias - exponent : 0;  // how far below the normal numbers
  const int shift = 52 - mantissa_bits + missing;
  if (shift > 54) return sign;
  const uint64_t mantissa = (b & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  const uint64_t rounded = (mantissa + (uint64_t{1} << (shift - 1)) - 1 + ((mantissa >> shift) & 1)) >> shift;
  // A carry out of the mantissa moves into the exponent, up to infinity, by itself.
  const uint64_t base = missing ? 0 : static_cast<uint64_t>(exponent + bias - 1) << mantissa_bits;
  return static_cast<uint16_t>(sign | (base + rounded));
}

inline Half to_half(double x) { return {round_to_16_bits<10, 5>(x)}; }

inline BFloat16 to_bfloat16(double x) { return {round_to_16_bits<7, 8>(x)}; }
inline BFloat16 to_bfloat16(float x) {
  const uint32_t b = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
  return {static_cast<uint16_t>((b & 0x7fffffff) > 0x7f800000 ? (b >> 16) | 0x40 : rounded)};
}

inline float to_float(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
inline float to_float(Half x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fff) << 13;
  // Normal numbers (and, scaled from the top exponent, infinities and NaN) move by a power of two; subnormal ones by an exact subtraction.
  const float normal = std::bit_cast<float>(magnitude + (uint32_t{0xe0} << 23)) * 0x1p-112f;
  const float subnormal = std::bit_cast<float>((magnitude >> 13) | (uint32_t{126} << 23)) - 0.5f;
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude < (1u << 23) ? subnormal : normal);
  return std::bit_cast<float>(sign | bits);
}

}  // namespace sampan
