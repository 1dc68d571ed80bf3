// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011), for native primitives.
// The primitive random_bits and its generated kernels draw the same words: random_word(seed, counter).
#pragma once
#include <array>
#include <cstdint>

namespace sampan {

// Four words for one position: the counter is (offset, subsequence), the key is the seed.
constexpr std::array<uint32_t, 4> philox(uint64_t seed, uint64_t subsequence, uint64_t offset) {
  uint32_t c0 = static_cast<uint32_t>(offset), c1 = static_cast<uint32_t>(offset >> 32);
  uint32_t c2 = static_cast<uint32_t>(subsequence), c3 = static_cast<uint32_t>(subsequence >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

constexpr uint32_t random_word(uint64_t seed, uint64_t counter) { return philox(seed, 0, counter / 4)[counter % 4]; }

// The reference implementation's known answers (Random123, kat_vectors).
static_assert(philox(0, 0, 0) == std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox(~0ull, ~0ull, ~0ull) == std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});

// In [0, 1): the upper 24 bits, all values equally spaced.
inline float uniform_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
inline double uniform_double(uint32_t high, uint32_t low) { return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53; }

}  // namespace sampan
