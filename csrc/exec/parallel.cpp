#include "exec/parallel.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <string>

#include "base/allocator.h"
#include "base/error.h"

namespace sampan {

namespace {

struct Scratch {
  char* data = nullptr;
  size_t size = 0;
  ~Scratch() {
    if (data) free_block(data, size);
  }
};

thread_local Scratch scratch;
thread_local int applied_count = 0;  // what OpenMP was last told on this thread

std::atomic<int> thread_count{0};    // 0: not decided yet
std::atomic<bool> is_forked{false};
std::atomic<int> running_regions{0};

// How many cores the control group lets this process use; 0 when it sets no quota. OpenMP counts the machine's.
int quota_cores() {
  double quota = 0, period = 0;
  if (FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    if (std::fscanf(f, "%lf %lf", &quota, &period) != 2) quota = 0;
    std::fclose(f);
  }
  return quota > 0 && period > 0 ? std::max(1, static_cast<int>(quota / period + 0.5)) : 0;
}

void after_fork_in_child() {
  is_forked = true;
  thread_count = 1;
  running_regions = 0;
  omp_set_num_threads(1);
  applied_count = 1;
}

const bool has_fork_handler = pthread_atfork(nullptr, nullptr, after_fork_in_child) == 0;

}  // namespace

int num_threads() {
  int n = thread_count.load(std::memory_order_relaxed);
  if (n == 0) {
    n = has_fork_handler ? std::max(1, omp_get_max_threads()) : 1;
    if (const int cores = quota_cores()) n = std::min(n, cores);
    thread_count = n;
  }
  return n;
}

void set_num_threads(int count) {
  if (count < 1) throw Error(ErrorKind::kValue, "the number of threads must be at least 1, not " + std::to_string(count));
  if (!is_forked) thread_count = std::min(count, 1024);
  sync_thread_count();
}

void sync_thread_count() {
  const int n = num_threads();
  if (applied_count == n) return;
  omp_set_num_threads(n);
  applied_count = n;
}

char* thread_scratch(size_t size_bytes) {
  if (size_bytes <= scratch.size) return scratch.data;
  const size_t size = std::max<size_t>(size_bytes, 4096);
  auto* data = static_cast<char*>(allocate_block(size));
  if (scratch.data) free_block(scratch.data, scratch.size);
  scratch.data = data;
  scratch.size = size;
  return data;
}

namespace detail {

void run_parallel(int64_t total, double cost_ns, void (*fn)(void*, int64_t, int64_t), void* context) {
  const double worth = static_cast<double>(total) * cost_ns / (kParallelThresholdNs / 2);
  int64_t threads = std::min<int64_t>(num_threads(), total);
  if (worth < static_cast<double>(threads)) threads = static_cast<int64_t>(worth);
  if (threads <= 1 || omp_in_parallel()) return fn(context, 0, total);
  // User threads that come at the same time share the cores.
  const int regions = 1 + running_regions.fetch_add(1, std::memory_order_relaxed);
  threads = std::max<int64_t>(1, threads / regions);
  std::exception_ptr error;
  std::atomic_flag has_error = ATOMIC_FLAG_INIT;
#pragma omp parallel num_threads(static_cast<int>(threads))
  {
    const int64_t n = omp_get_num_threads(), i = omp_get_thread_num();
    const int64_t share = total / n, rest = total % n;
    const int64_t begin = i * share + std::min(i, rest), end = begin + share + (i < rest ? 1 : 0);
    try {
      fn(context, begin, end);
    } catch (...) {
      if (!has_error.test_and_set()) error = std::current_exception();
    }
  }
  running_regions.fetch_sub(1, std::memory_order_relaxed);
  if (error) std::rethrow_exception(error);
}

}  // namespace detail

}  // namespace sampan
