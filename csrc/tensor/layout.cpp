#include "tensor/layout.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/error.h"

namespace sampan {

namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 62;

std::string shape_text(std::span<const int64_t> shape) {
  std::string s = "[";
  for (const int64_t size : shape) {
    if (s.size() > 1) s += ", ";
    s += std::to_string(size);
  }
  s += "]";
  return s;
}

[[noreturn]] void raise_shape(const std::string& message) { throw Error(ErrorKind::kShape, message); }

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}

// What a layout is compared by, normalised.
struct Key {
  DType dtype;
  int rank;
  bool is_contiguous;
  bool is_dense;
  int64_t numel;
  int64_t shape[kMaxRank];
  int64_t strides[kMaxRank];
  uint64_t hash;
};

bool is_dense_order(const Key& k) {
  int axes[kMaxRank], n = 0;
  for (int i = 0; i < k.rank; ++i) {
    if (k.shape[i] != 1) axes[n++] = i;
  }
  std::sort(axes, axes + n, [&](int a, int b) { return k.strides[a] < k.strides[b]; });
  int64_t expected = 1;
  for (int i = 0; i < n; ++i) {
    if (k.strides[axes[i]] != expected) return false;
    expected *= k.shape[axes[i]];
  }
  return true;
}

// strides null: row-major.
Key make_key(DType dtype, std::span<const int64_t> shape, const int64_t* strides) {
  if (shape.size() > kMaxRank) {
    raise_shape("a tensor has at most " + std::to_string(kMaxRank) + " axes; this shape has " + std::to_string(shape.size()) + ": " + shape_text(shape));
  }
  Key k{};
  k.dtype = dtype;
  k.rank = static_cast<int>(shape.size());
  const int64_t item = static_cast<int64_t>(dtype_size(dtype));
  // Sizes of 0 count as 1, so that a slice of an empty tensor never has a size that the tensor itself could not have.
  int64_t bytes = item;
  k.numel = 1;
  for (int i = k.rank - 1; i >= 0; --i) {
    if (shape[i] < 0) raise_shape("negative size in shape " + shape_text(shape));
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(shape[i], 1), &bytes) || bytes > kMaxBytes) {
      raise_shape("shape " + shape_text(shape) + " of " + dtype_name(dtype) + " needs more than 2^62 bytes");
    }
    k.shape[i] = shape[i];
    k.numel *= shape[i];
  }
  int64_t row_major = 1, reach = 0;
  k.is_contiguous = true;
  int64_t next = 1;  // the stride that would continue the following axis: what an axis of length 1 is given
  for (int i = k.rank - 1; i >= 0; --i) {
    int64_t stride = strides && k.numel ? strides[i] : row_major;
    if (k.shape[i] == 1) {
      stride = next;
    } else if (k.numel && strides) {
      int64_t span;
      if (stride == INT64_MIN || __builtin_mul_overflow(std::abs(stride), (k.shape[i] - 1) * item, &span) ||
          __builtin_add_overflow(reach, span, &reach) || reach > kMaxBytes) {
        raise_shape("the strides of shape " + shape_text(shape) + " reach beyond 2^62 bytes: " + shape_text({strides, shape.size()}));
      }
      if (stride != row_major) k.is_contiguous = false;
    }
    k.strides[i] = stride;
    row_major *= std::max<int64_t>(k.shape[i], 1);
    if (__builtin_mul_overflow(stride, std::max<int64_t>(k.shape[i], 1), &next)) next = stride;
  }
  k.is_dense = k.is_contiguous || is_dense_order(k);
  uint64_t h = mix(static_cast<uint64_t>(dtype), static_cast<uint64_t>(k.rank));
  for (int i = 0; i < k.rank; ++i) h = mix(mix(h, static_cast<uint64_t>(k.shape[i])), static_cast<uint64_t>(k.strides[i]));
  k.hash = h ^ (h >> 29);
  return k;
}

bool equals(const Layout& l, const Key& k) {
  return l.dtype == k.dtype && l.rank == k.rank && std::equal(k.shape, k.shape + k.rank, l.shape) && std::equal(k.strides, k.strides + k.rank, l.strides);
}

}  // namespace

class LayoutTable {
 public:
  // Never destroyed: tensors in static objects may outlive it otherwise.
  static LayoutTable& get() {
    static auto* table = new LayoutTable;
    return *table;
  }

  Ref<const Layout> intern(const Key& k) {
    Shard& shard = shard_of(k.hash);
    std::lock_guard lock(shard.mutex);
    auto [first, last] = shard.layouts.equal_range(k.hash);
    for (auto it = first; it != last; ++it) {
      if (equals(*it->second, k) && it->second->retain_if_alive()) return Ref<const Layout>::adopt(it->second);
    }
    auto* l = new Layout;
    l->dtype = k.dtype;
    l->rank = static_cast<int8_t>(k.rank);
    l->is_contiguous = k.is_contiguous;
    l->is_dense = k.is_dense;
    l->numel = k.numel;
    std::copy(k.shape, k.shape + kMaxRank, l->shape);
    std::copy(k.strides, k.strides + kMaxRank, l->strides);
    l->hash = k.hash;
    l->retain();
    try {
      shard.layouts.emplace(k.hash, l);
    } catch (...) {
      delete l;
      throw;
    }
    return Ref<const Layout>::adopt(l);
  }

  void remove(const Layout* l) noexcept {
    Shard& shard = shard_of(l->hash);
    {
      std::lock_guard lock(shard.mutex);
      auto [first, last] = shard.layouts.equal_range(l->hash);
      for (auto it = first; it != last; ++it) {
        if (it->second == l) {
          shard.layouts.erase(it);
          break;
        }
      }
    }
    delete l;
  }

 private:
  // A child must not inherit a lock that a thread of the parent holds.
  LayoutTable() {
    const auto unlock = [] {
      for (Shard& s : get().shards_) s.mutex.unlock();
    };
    pthread_atfork(
        [] {
          for (Shard& s : get().shards_) s.mutex.lock();
        },
        unlock, unlock);
  }
  struct Shard {
    std::mutex mutex;
    std::unordered_multimap<uint64_t, const Layout*> layouts;
  };
  Shard& shard_of(uint64_t hash) { return shards_[(hash >> 40) % kShards]; }
  static constexpr int kShards = 16;
  Shard shards_[kShards];
};

// A count of zero means that another thread is on its way to remove this layout: it cannot come back.
bool Layout::retain_if_alive() const noexcept {
  uint32_t n = count_.load(std::memory_order_relaxed);
  while (n != 0) {
    if (count_.compare_exchange_weak(n, n + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void Layout::leave_table() const noexcept { LayoutTable::get().remove(this); }

void Layout::extent(int64_t* lowest, int64_t* highest) const {
  *lowest = *highest = 0;
  if (numel == 0) return;
  for (int i = 0; i < rank; ++i) (strides[i] < 0 ? *lowest : *highest) += strides[i] * (shape[i] - 1);
}

Ref<const Layout> intern_layout(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (shape.size() != strides.size()) {
    raise_shape("shape " + shape_text(shape) + " and strides " + shape_text(strides) + " have different lengths");
  }
  return LayoutTable::get().intern(make_key(dtype, shape, strides.data()));
}

Ref<const Layout> contiguous_layout(DType dtype, std::span<const int64_t> shape) {
  return LayoutTable::get().intern(make_key(dtype, shape, nullptr));
}

std::string layout_text(const Layout& layout) {
  std::string s = std::string(dtype_name(layout.dtype)) + shape_text(layout.shape_span());
  return layout.is_contiguous ? s : s + " strides " + shape_text(layout.strides_span());
}

}  // namespace sampan
