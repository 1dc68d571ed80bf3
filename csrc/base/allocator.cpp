#include "base/allocator.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#define SAMPAN_PLAIN_BLOCKS 1  // a cached block would hide a use after free from the sanitizer
#else
#define SAMPAN_PLAIN_BLOCKS 0
#endif

namespace sampan {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kFineLimit = 2048;          // classes of 64 bytes up to here,
constexpr size_t kSmallLimit = 256 << 10;    // four classes per doubling up to here, single blocks above
constexpr int kFineClasses = kFineLimit / kAlignment;
constexpr int kClasses = kFineClasses + 4 * 7;
constexpr size_t kThreadListBytes = 256 << 10;  // what a thread keeps of one class before it shares
constexpr int64_t kFlushBytes = 256 << 10;
constexpr size_t kLargeRounding = 64 << 10;
constexpr size_t kHugePage = 2 << 20;
constexpr size_t kSpareBytes = 256 << 20;
constexpr size_t kMaxRequest = size_t{1} << 62;

int size_class(size_t bytes) {
  if (bytes <= kFineLimit) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / kAlignment);
  const int log = std::bit_width(bytes - 1) - 1;  // 2^log < bytes <= 2^(log+1)
  return kFineClasses + (log - 11) * 4 + static_cast<int>((bytes - 1) >> (log - 2)) - 4;
}

constexpr size_t class_bytes(int k) {
  if (k < kFineClasses) return (static_cast<size_t>(k) + 1) * kAlignment;
  const int j = k - kFineClasses;
  return (static_cast<size_t>(j % 4) + 5) << (j / 4 + 9);
}

struct FreeNode {
  FreeNode* next;
};

struct FreeList {
  FreeNode* head = nullptr;
  uint32_t count = 0;
  uint32_t capacity = 0;
};

// Written by its thread only, read by statistics: a plain load and store where an addition would lock.
class Counter {
 public:
  int64_t get() const { return value_.load(std::memory_order_relaxed); }
  void add(int64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  void clear() { value_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

struct ThreadCache {
  FreeList lists[kClasses];
  Counter allocated_delta;  // not yet in the shared counters
  Counter count_delta;
  ThreadCache* next = nullptr;
};

struct LargeBlock {
  char* data;
  size_t bytes;
};

// Memory that was cut into blocks of one class.
struct Slab {
  size_t bytes;
  uint32_t block_count;
  uint32_t free_count;  // filled when wholly free slabs are looked for
};

size_t read_limit_file(const char* path) {
  size_t value = 0;
  if (FILE* f = std::fopen(path, "r")) {
    if (std::fscanf(f, "%zu", &value) != 1) value = 0;
    std::fclose(f);
  }
  return value;
}

size_t machine_memory() {
  size_t bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    if (size_t limit = read_limit_file(path)) bytes = std::min(bytes, limit);
  }
  return bytes;
}

std::string megabytes(size_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return bytes < 1000000 ? std::to_string(bytes) + " bytes" : text;
}

[[noreturn]] void refuse_request(size_t bytes, const std::string& why, int64_t allocated, size_t reserved) {
  throw Error(ErrorKind::kMemory, "cannot allocate " + megabytes(bytes) + ": " + why + "; " + megabytes(static_cast<size_t>(allocated)) + " are in use, " +
                                      megabytes(reserved) +
                                      " are reserved.\n  Use a smaller batch, free tensors that are not needed, or raise the limit with set_memory_limit().");
}

class Central {
 public:
  static Central& get() {
    static auto* central = new Central;  // never destroyed: blocks may be freed by static destructors
    return *central;
  }

  // A chain of free blocks of class k, at least one.
  FreeNode* take_chain(int k, uint32_t* count) {
    std::lock_guard lock(mutex_);
    if (FreeNode* chain = chains_[k].head) {
      *count = chains_[k].count;
      chains_[k] = {};
      const uint32_t wanted = std::max<uint32_t>(1, kThreadListBytes / 2 / class_bytes(k));
      if (*count > wanted) {
        FreeNode* last = chain;
        for (uint32_t i = 1; i < wanted; ++i) last = last->next;
        chains_[k].head = last->next;
        chains_[k].count = *count - wanted;
        last->next = nullptr;
        *count = wanted;
      }
      return chain;
    }
    const size_t block = class_bytes(k);
    const size_t slab = std::max<size_t>(64 << 10, 4 * block);
    char* memory = static_cast<char*>(map_memory(slab));
    *count = static_cast<uint32_t>(slab / block);
    try {
      slabs_.emplace(memory, Slab{slab, *count, 0});
    } catch (...) {
      unmap({memory, slab});
      throw;
    }
    FreeNode* chain = nullptr;
    for (uint32_t i = *count; i-- > 0;) {
      auto* node = reinterpret_cast<FreeNode*>(memory + i * block);
      node->next = chain;
      chain = node;
    }
    return chain;
  }

  void give_chain(int k, FreeNode* head, FreeNode* last, uint32_t count) noexcept {
    std::lock_guard lock(mutex_);
    last->next = chains_[k].head;
    chains_[k].head = head;
    chains_[k].count += count;
  }

  void* take_large(size_t bytes) {
    if (bytes > kMaxRequest) refuse(bytes, 0);
    const size_t need = (bytes + kLargeRounding - 1) / kLargeRounding * kLargeRounding;
    std::lock_guard lock(mutex_);
    LargeBlock block{};
    // A block up to an eighth larger serves too: lengths that vary a little from step to step then share blocks.
    auto it = cached_by_size_.lower_bound(need);
    if (it != cached_by_size_.end() && it->first <= need + need / 8) {
      block = *it->second;
      cached_bytes_ -= block.bytes;
      cached_.erase(it->second);
      cached_by_size_.erase(it);
    } else {
      // Blocks of other sizes may stay cached up to a quarter more than was ever in use at once, so that changing shapes do not pile up memory.
      while (!cached_.empty() && live_large_bytes_ + cached_bytes_ + need > peak_live_large_bytes_ + peak_live_large_bytes_ / 4 + kSpareBytes) unmap_oldest();
      block = {static_cast<char*>(map_memory(need)), need};
    }
    live_large_.emplace(block.data, block.bytes);
    live_large_bytes_ += block.bytes;
    peak_live_large_bytes_ = std::max(peak_live_large_bytes_, live_large_bytes_);
    account(static_cast<int64_t>(block.bytes), 1, sum(&ThreadCache::allocated_delta));
    return block.data;
  }

  void give_large(void* p) noexcept {
    std::lock_guard lock(mutex_);
    auto it = live_large_.find(static_cast<char*>(p));
    const LargeBlock block{it->first, it->second};
    live_large_.erase(it);
    live_large_bytes_ -= block.bytes;
    account(-static_cast<int64_t>(block.bytes), 0);
    try {
      cached_.push_back(block);
      try {
        cached_by_size_.emplace(block.bytes, std::prev(cached_.end()));
      } catch (...) {
        cached_.pop_back();
        throw;
      }
      cached_bytes_ += block.bytes;
    } catch (...) {
      unmap(block);
    }
  }

  void add_cache(ThreadCache* cache) {
    std::lock_guard lock(mutex_);
    cache->next = caches_;
    caches_ = cache;
  }

  void remove_cache(ThreadCache* cache) {
    std::lock_guard lock(mutex_);
    ThreadCache** link = &caches_;
    while (*link != cache) link = &(*link)->next;
    *link = cache->next;
    flush_locked(cache);
  }

  void flush(ThreadCache* cache) noexcept {
    std::lock_guard lock(mutex_);
    flush_locked(cache);
  }

  // unflushed: what threads have allocated and not accounted yet, where the caller holds the lock and can say.
  void account(int64_t bytes, int64_t count, int64_t unflushed = 0) noexcept {
    const int64_t now = allocated_.fetch_add(bytes, std::memory_order_relaxed) + bytes + unflushed;
    allocations_.fetch_add(count, std::memory_order_relaxed);
    int64_t peak = peak_allocated_.load(std::memory_order_relaxed);
    while (now > peak && !peak_allocated_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }

  void empty() {
    std::lock_guard lock(mutex_);
    give_up_cached();
  }

  void require_allocatable(size_t bytes) {
    std::lock_guard lock(mutex_);
    if (bytes > limit_) refuse(bytes, 0);
  }

  void set_limit(size_t bytes) {
    std::lock_guard lock(mutex_);
    limit_ = bytes ? bytes : machine_memory();
  }

  void reset_peaks() {
    std::lock_guard lock(mutex_);
    peak_allocated_ = sum(&ThreadCache::allocated_delta) + allocated_;
    peak_reserved_ = reserved_;
  }

  MemoryStats stats() {
    std::lock_guard lock(mutex_);
    const int64_t allocated = allocated_ + sum(&ThreadCache::allocated_delta);
    return {allocated,
            static_cast<int64_t>(reserved_),
            std::max<int64_t>(peak_allocated_, allocated),
            static_cast<int64_t>(peak_reserved_),
            allocations_ + sum(&ThreadCache::count_delta),
            system_requests_,
            static_cast<int64_t>(limit_)};
  }

 private:
  Central() {
    limit_ = machine_memory();
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); }, [] { get().mutex_.unlock(); });
  }

  void flush_locked(ThreadCache* cache) noexcept {
    account(cache->allocated_delta.get(), cache->count_delta.get());
    cache->allocated_delta.clear();
    cache->count_delta.clear();
  }

  int64_t sum(Counter ThreadCache::*counter) const {
    int64_t total = 0;
    for (const ThreadCache* c = caches_; c; c = c->next) total += (c->*counter).get();
    return total;
  }

  [[noreturn]] void refuse(size_t bytes, int system_error) {
    refuse_request(bytes, system_error ? "the system refused" : "the limit is " + megabytes(limit_), allocated_, reserved_);
  }

  void* map_memory(size_t bytes) {
    if (reserved_ + bytes > limit_) {
      while (!cached_.empty() && reserved_ + bytes > limit_) unmap_oldest();
      if (reserved_ + bytes > limit_) unmap_free_slabs();
      if (reserved_ + bytes > limit_) refuse(bytes, 0);
    }
    char* p = try_map(bytes);
    if (!p) {
      give_up_cached();
      p = try_map(bytes);
      if (!p) refuse(bytes, 1);
    }
    reserved_ += bytes;
    peak_reserved_ = std::max(peak_reserved_, reserved_);
    ++system_requests_;
    return p;
  }

  // Aligned to a huge page from that size on, where the kernel can then map it with 512 times fewer faults.
  static char* try_map(size_t bytes) {
    const bool huge = bytes >= kHugePage;
    const size_t extra = huge ? kHugePage : 0;
    void* raw = mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return nullptr;
    auto* p = static_cast<char*>(raw);
    if (!huge) return p;
    char* aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(p) + kHugePage - 1) & ~(kHugePage - 1));
    if (aligned > p) munmap(p, static_cast<size_t>(aligned - p));
    if (aligned < p + extra) munmap(aligned + bytes, static_cast<size_t>(p + extra - aligned));
#if defined(MADV_HUGEPAGE)
    madvise(aligned, bytes, MADV_HUGEPAGE);
#endif
    return aligned;
  }

  void unmap(const LargeBlock& block) noexcept {
    munmap(block.data, block.bytes);
    reserved_ -= block.bytes;
  }

  void unmap_oldest() {
    auto oldest = cached_.begin();
    auto [first, last] = cached_by_size_.equal_range(oldest->bytes);
    for (auto it = first; it != last; ++it) {
      if (it->second == oldest) {
        cached_by_size_.erase(it);
        break;
      }
    }
    cached_bytes_ -= oldest->bytes;
    unmap(*oldest);
    cached_.pop_front();
  }

  void give_up_cached() {
    while (!cached_.empty()) unmap_oldest();
    unmap_free_slabs();
  }

  // Blocks in the lists of threads count as used: only their thread may touch them.
  void unmap_free_slabs() noexcept {
    for (auto& [memory, slab] : slabs_) slab.free_count = 0;
    for (const FreeList& chain : chains_) {
      for (FreeNode* node = chain.head; node; node = node->next) ++slab_of(node).free_count;
    }
    for (FreeList& chain : chains_) {
      FreeNode** link = &chain.head;
      while (FreeNode* node = *link) {
        const Slab& slab = slab_of(node);
        if (slab.free_count == slab.block_count) {
          *link = node->next;
          --chain.count;
        } else {
          link = &node->next;
        }
      }
    }
    for (auto it = slabs_.begin(); it != slabs_.end();) {
      if (it->second.free_count == it->second.block_count) {
        unmap({it->first, it->second.bytes});
        it = slabs_.erase(it);
      } else {
        ++it;
      }
    }
  }

  Slab& slab_of(const FreeNode* node) { return std::prev(slabs_.upper_bound(reinterpret_cast<char*>(const_cast<FreeNode*>(node))))->second; }

  std::mutex mutex_;
  std::map<char*, Slab> slabs_;  // of all classes, by address
  FreeList chains_[kClasses];
  ThreadCache* caches_ = nullptr;
  std::list<LargeBlock> cached_;  // oldest first
  std::multimap<size_t, std::list<LargeBlock>::iterator> cached_by_size_;
  std::unordered_map<char*, size_t> live_large_;
  size_t cached_bytes_ = 0;
  size_t live_large_bytes_ = 0;
  size_t peak_live_large_bytes_ = 0;
  size_t reserved_ = 0;
  size_t peak_reserved_ = 0;
  size_t limit_ = 0;
  int64_t system_requests_ = 0;
  std::atomic<int64_t> allocated_{0};
  std::atomic<int64_t> peak_allocated_{0};
  std::atomic<int64_t> allocations_{0};
};

// Initial-exec: one load instead of a call to find the variable in a shared library; the pointer fits into glibc's spare static TLS.
__attribute__((tls_model("initial-exec"))) thread_local ThreadCache* thread_cache = nullptr;

// Hands the first count blocks of a list to the other threads.
void share(ThreadCache* cache, int k, uint32_t count) noexcept {
  FreeList& list = cache->lists[k];
  if (count == 0) return;
  FreeNode* last = list.head;
  for (uint32_t i = 1; i < count; ++i) last = last->next;
  FreeNode* head = list.head;
  list.head = last->next;
  list.count -= count;
  Central::get().give_chain(k, head, last, count);
}

void share_all(ThreadCache* cache) noexcept {
  for (int k = 0; k < kClasses; ++k) share(cache, k, cache->lists[k].count);
}

void retire_cache(void* p) {
  auto* cache = static_cast<ThreadCache*>(p);
  thread_cache = nullptr;
  share_all(cache);
  Central::get().remove_cache(cache);
  delete cache;
}

// Null when there is no memory for it.
ThreadCache* open_cache() noexcept {
  static const pthread_key_t key = [] {
    pthread_key_t k;
    if (pthread_key_create(&k, retire_cache) != 0) std::abort();
    return k;
  }();
  auto* cache = new (std::nothrow) ThreadCache;
  if (!cache) return nullptr;
  for (int k = 0; k < kClasses; ++k) cache->lists[k].capacity = static_cast<uint32_t>(std::max<size_t>(2, kThreadListBytes / class_bytes(k)));
  pthread_setspecific(key, cache);
  Central::get().add_cache(cache);
  return thread_cache = cache;
}

[[maybe_unused]] __attribute__((noinline)) void* allocate_slow(size_t bytes) {
  if (bytes > kSmallLimit) return Central::get().take_large(bytes);
  ThreadCache* cache = thread_cache ? thread_cache : open_cache();
  if (!cache) throw Error(ErrorKind::kMemory, "the system has no memory left for a thread's block cache");
  const int k = size_class(bytes);
  FreeList& list = cache->lists[k];
  if (!list.head) {
    Central::get().flush(cache);
    list.head = Central::get().take_chain(k, &list.count);
  }
  return allocate_block(bytes);
}

[[maybe_unused]] __attribute__((noinline)) void free_slow(void* block, size_t bytes) noexcept {
  if (bytes > kSmallLimit) return Central::get().give_large(block);
  const int k = size_class(bytes);
  auto* node = static_cast<FreeNode*>(block);
  ThreadCache* cache = thread_cache ? thread_cache : open_cache();
  if (!cache) {
    Central::get().account(-static_cast<int64_t>(class_bytes(k)), 0);
    return Central::get().give_chain(k, node, node, 1);
  }
  FreeList& list = cache->lists[k];
  if (list.count >= list.capacity) share(cache, k, (list.count + 1) / 2);
  if (cache->allocated_delta.get() < -kFlushBytes) Central::get().flush(cache);
  node->next = list.head;
  list.head = node;
  ++list.count;
  cache->allocated_delta.add(-static_cast<int64_t>(class_bytes(k)));
}

}  // namespace

#if SAMPAN_PLAIN_BLOCKS

void* allocate_block(size_t bytes) {
  const MemoryStats now = memory_stats();
  void* p = bytes > kMaxRequest || bytes + static_cast<size_t>(now.allocated_bytes) > static_cast<size_t>(now.limit_bytes)
                ? nullptr
                : std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment);
  if (!p) refuse_request(bytes, "the limit is " + megabytes(static_cast<size_t>(now.limit_bytes)), now.allocated_bytes, static_cast<size_t>(now.reserved_bytes));
  Central::get().account(static_cast<int64_t>(bytes), 1);
  return p;
}

void free_block(void* block, size_t bytes) noexcept {
  Central::get().account(-static_cast<int64_t>(bytes), 0);
  std::free(block);
}

#else

void* allocate_block(size_t bytes) {
  ThreadCache* cache = thread_cache;
  if (bytes > kSmallLimit || !cache) return allocate_slow(bytes);
  const int k = size_class(bytes);
  FreeList& list = cache->lists[k];
  FreeNode* node = list.head;
  if (!node) return allocate_slow(bytes);
  list.head = node->next;
  --list.count;
  cache->allocated_delta.add(static_cast<int64_t>(class_bytes(k)));
  cache->count_delta.add(1);
  if (cache->allocated_delta.get() > kFlushBytes) Central::get().flush(cache);
  return node;
}

void free_block(void* block, size_t bytes) noexcept {
  ThreadCache* cache = thread_cache;
  if (bytes > kSmallLimit || !cache) return free_slow(block, bytes);
  const int k = size_class(bytes);
  FreeList& list = cache->lists[k];
  if (list.count >= list.capacity || cache->allocated_delta.get() < -kFlushBytes) return free_slow(block, bytes);
  auto* node = static_cast<FreeNode*>(block);
  node->next = list.head;
  list.head = node;
  ++list.count;
  cache->allocated_delta.add(-static_cast<int64_t>(class_bytes(k)));
}

#endif

void require_allocatable(size_t size_bytes) { Central::get().require_allocatable(size_bytes); }

MemoryStats memory_stats() { return Central::get().stats(); }

void reset_peak_memory() { Central::get().reset_peaks(); }

void set_memory_limit(size_t limit_bytes) { Central::get().set_limit(limit_bytes); }

void empty_cache() {
  if (thread_cache) share_all(thread_cache);
  Central::get().empty();
}

}  // namespace sampan
