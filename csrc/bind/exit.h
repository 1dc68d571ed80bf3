// Threads and the end of the process. At exit Python ends a thread that waits for its lock by unwinding the thread's stack (pthread_exit). That must
// not pass through C++: handlers and destructors would run without the lock. Such a thread stops for good where it waits, as Python 3.14 does itself.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

#include <utility>

namespace sampan {

// f(), which runs Python code or waits for its lock.
template <class F>
decltype(auto) stopping_at_exit(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// Python's lock, on any thread.
class PythonLock {
 public:
  PythonLock() : state_(stopping_at_exit([] { return PyGILState_Ensure(); })) {}
  ~PythonLock() { PyGILState_Release(state_); }
  PythonLock(const PythonLock&) = delete;
  PythonLock& operator=(const PythonLock&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace sampan
