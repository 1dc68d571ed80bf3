// Elements as unsigned keys whose order is the order of sorting: NaN is the largest, -0 equals 0.
#pragma once
#include "kernels/common.h"

namespace sampan::kernels {

template <size_t bytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> { using type = uint8_t; };
template <>
struct UnsignedOf<2> { using type = uint16_t; };
template <>
struct UnsignedOf<4> { using type = uint32_t; };
template <>
struct UnsignedOf<8> { using type = uint64_t; };
template <class T>
using Key = typename UnsignedOf<sizeof(T)>::type;

template <class K>
constexpr K kTopBit = static_cast<K>(K{1} << (sizeof(K) * 8 - 1));

template <class T>
SAMPAN_INLINE Key<T> to_key(T v) {
  using K = Key<T>;
  if constexpr (std::is_same_v<T, bool> || (std::is_integral_v<T> && std::is_unsigned_v<T>)) {
    return static_cast<K>(v);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<K>(static_cast<K>(v) ^ kTopBit<K>);
  } else {
    constexpr int mantissa = sizeof(T) == 8 ? 52 : sizeof(T) == 4 ? 23 : std::is_same_v<T, Half> ? 10 : 7;
    constexpr K infinity = static_cast<K>(kTopBit<K> - (K{1} << mantissa));
    K b = std::bit_cast<K>(v);
    const K magnitude = static_cast<K>(b & ~kTopBit<K>);
    if (magnitude > infinity) return static_cast<K>(~K{0});
    if (magnitude == 0) b = 0;
    return static_cast<K>(b & kTopBit<K> ? ~b : b | kTopBit<K>);
  }
}

}  // namespace sampan::kernels
