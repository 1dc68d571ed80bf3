// Loops over threads: the OpenMP pool that oneDNN uses too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sampan {

// Work below this stays on the calling thread. Measured (2 cores, libgomp): an empty region takes 1.7 us while the pool
// spins, which it does for some milliseconds, and 7 us or more when it sleeps.
constexpr double kParallelThresholdNs = 10000;

void set_num_threads(int count);  // Raises Error(kValue) below 1. In a forked child it stays 1: libgomp's pool does not survive a fork.
int num_threads();
// Makes oneDNN's regions on this thread use num_threads(): OpenMP keeps that number per thread.
void sync_thread_count();
// Memory of the calling thread, 64-byte aligned, valid until its next call on this thread.
char* thread_scratch(size_t size_bytes);

namespace detail {
// Runs fn(context, begin, end) over static chunks; an exception of any chunk is rethrown here.
void run_parallel(int64_t total, double cost_ns, void (*fn)(void*, int64_t, int64_t), void* context);
}  // namespace detail

// fn(begin, end) over [0, total), on one thread or in chunks on several; cost_ns is that of one unit. Nested calls run serially.
template <class F>
void parallel_for(int64_t total, double cost_ns, F&& fn) {
  if (total <= 0) return;
  if (total == 1 || static_cast<double>(total) * cost_ns < kParallelThresholdNs) return fn(int64_t{0}, total);
  using Body = std::remove_reference_t<F>;
  detail::run_parallel(
      total, cost_ns, [](void* context, int64_t begin, int64_t end) { (*static_cast<Body*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

}  // namespace sampan
