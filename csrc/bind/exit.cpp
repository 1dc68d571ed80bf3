#include "bind/exit.h"

#include <nanobind/nanobind.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "bind/bind.h"
#include "eager/state.h"

namespace sampan {
namespace {

constexpr std::chrono::seconds kLongestWait{10};

std::atomic<int> running_unlocked{0};
bool is_exiting = false;  // under Python's lock

// Null: the lock is kept.
void* unlock() {
  if (is_exiting) return nullptr;
  running_unlocked.fetch_add(1);
  return PyEval_SaveThread();
}

void relock(void* token) {
  running_unlocked.fetch_sub(1);
  stopping_at_exit([token] { PyEval_RestoreThread(static_cast<PyThreadState*>(token)); });
}

// Before Python takes itself apart: from here on nothing runs without its lock, so that no kernel outlives its code and the libraries that it calls.
void finish_running() {
  is_exiting = true;
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (running_unlocked.load() > 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

void bind_exit(nanobind::module_& m) {
  eager_host.unlock = unlock;
  eager_host.relock = relock;
  pthread_atfork(nullptr, nullptr, [] { running_unlocked = 0; });
  m.def("finish_running", finish_running, "Wait for what other threads run without Python's lock, and keep the lock from then on. Called at exit.");
  nanobind::module_::import_("atexit").attr("register")(m.attr("finish_running"));
}

}  // namespace sampan
