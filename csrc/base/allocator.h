// The caching allocator of the process: tensors, their storages and a Plan's arenas.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sampan {

// A 64-byte aligned block, not initialised. Raises Error(kMemory) when the limit or the system refuses.
void* allocate_block(size_t size_bytes);
// Raises as allocate_block() does when not even an empty process could meet the request. Allocates nothing.
void require_allocatable(size_t size_bytes);
// size_bytes is what was asked for. Any thread may free any block.
void free_block(void* block, size_t size_bytes) noexcept;

struct MemoryStats {
  int64_t allocated_bytes;       // in blocks that are in use, rounded up to their size classes
  int64_t reserved_bytes;        // taken from the system
  int64_t peak_allocated_bytes;  // small blocks enter it in steps of a quarter of a megabyte per thread
  int64_t peak_reserved_bytes;
  int64_t allocation_count;      // blocks handed out so far
  int64_t system_count;          // requests to the system so far
  int64_t limit_bytes;
};

MemoryStats memory_stats();
void reset_peak_memory();
// 0: the default, which is the memory of the machine or of its control group. Applies to reserved memory.
void set_memory_limit(size_t limit_bytes);
// Gives cached large blocks and wholly free slabs of small blocks back to the system. What other threads keep in their own lists stays.
void empty_cache();

}  // namespace sampan
