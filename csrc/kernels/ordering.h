// Sorting of (key, position) entries: every order is total, so results are stable and unique.
#pragma once
#include <algorithm>

#include "kernels/keys.h"

namespace sampan::kernels {

// Keys of up to 32 bits share a word with their position, which makes comparing and moving one instruction.
template <class K>
struct PackedEntry {
  uint64_t word;
  static PackedEntry make(K key, int64_t position) { return {static_cast<uint64_t>(key) << 32 | static_cast<uint32_t>(position)}; }
  K key() const { return static_cast<K>(word >> 32); }
  int64_t position() const { return static_cast<int64_t>(word & 0xffffffffu); }
  bool operator<(const PackedEntry& o) const { return word < o.word; }
};
template <class K>
struct WideEntry {
  K bits;
  int64_t at;
  static WideEntry make(K key, int64_t position) { return {key, position}; }
  K key() const { return bits; }
  int64_t position() const { return at; }
  bool operator<(const WideEntry& o) const { return bits != o.bits ? bits < o.bits : at < o.at; }
};

// Below this length comparisons beat the passes of a radix sort.
constexpr int64_t kRadixLength = 192;

// Sorts n entries that are in the order of their positions; returns entries or spare, whichever holds the result.
template <class K, template <class> class EntryOf>
EntryOf<K>* sort_entries(EntryOf<K>* entries, EntryOf<K>* spare, int64_t n) {
  using Entry = EntryOf<K>;
  if (n < kRadixLength) {
    std::sort(entries, entries + n);
    return entries;
  }
  constexpr int kDigits = sizeof(K);
  int64_t counts[kDigits][256] = {};
  for (int64_t i = 0; i < n; ++i) {
    const K key = entries[i].key();
    for (int d = 0; d < kDigits; ++d) ++counts[d][key >> (8 * d) & 0xff];
  }
  for (int d = 0; d < kDigits; ++d) {
    // A digit that all keys share moves nothing.
    if (counts[d][entries[0].key() >> (8 * d) & 0xff] == n) continue;
    int64_t starts[256], total = 0;
    for (int v = 0; v < 256; ++v) {
      starts[v] = total;
      total += counts[d][v];
    }
    for (int64_t i = 0; i < n; ++i) {
      const Entry e = entries[i];
      spare[starts[e.key() >> (8 * d) & 0xff]++] = e;
    }
    std::swap(entries, spare);
  }
  return entries;
}

// fn.operator()<T, EntryOf>() for the entry that holds T's keys for rows of length n; T is a real dtype's type.
template <class F>
void with_entry(DType t, int64_t n, F&& fn) {
  with_type(t, [&]<class T>() {
    if constexpr (is_complex<T>) {
      throw Error(ErrorKind::kDType, "complex numbers have no order");
    } else if constexpr (sizeof(T) <= 4) {
      if (n <= int64_t{1} << 32)
        fn.template operator()<T, PackedEntry>();
      else
        fn.template operator()<T, WideEntry>();
    } else {
      fn.template operator()<T, WideEntry>();
    }
  });
}

// Lines of a tensor along one axis: the offsets of their starts in each of N operands, and the steps along them.
template <int N>
struct Lines {
  Odometer<N> starts;
  int64_t length = 1;
  int64_t steps[N] = {};

  Lines(int axis, const Layout* const (&operands)[N]) {
    const Layout& first = *operands[0];
    for (int d = 0; d < first.rank; ++d) {
      int64_t strides[N];
      for (int n = 0; n < N; ++n) strides[n] = operands[n]->strides[d];
      if (d == axis) {
        length = first.shape[d];
        std::copy(strides, strides + N, steps);
      } else {
        starts.add_axis(first.shape[d], strides);
      }
    }
  }
};

}  // namespace sampan::kernels
