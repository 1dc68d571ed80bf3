// Times of operator calls and of the instructions of Plans, for the profiler. Costs one load and a branch when off.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace sampan {

class ProfileSink {
 public:
  virtual ~ProfileSink() = default;
  // name is valid during the call only. Times are of the steady clock.
  virtual void record(const char* name, int64_t begin_ns, int64_t end_ns) = 0;
};

// Null: off. Set under Python's lock; the sink lives as long as the process.
extern std::atomic<ProfileSink*> profile_sink;
// The same for the instructions of Plans.
extern std::atomic<ProfileSink*> instruction_sink;

class ProfileScope {
 public:
  // name() is asked for the name only when it is on.
  template <class F>
  explicit ProfileScope(F&& name) : ProfileScope(profile_sink.load(std::memory_order_relaxed), name) {}
  template <class F>
  ProfileScope(ProfileSink* sink, F&& name) : sink_(sink) {
    if (!sink_) [[likely]] return;
    name_ = name();
    begin_ns_ = now_ns();
  }
  ~ProfileScope() {
    if (sink_) [[unlikely]] sink_->record(name_, begin_ns_, now_ns());
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  static int64_t now_ns() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
  ProfileSink* sink_;
  const char* name_ = nullptr;
  int64_t begin_ns_ = 0;
};

}  // namespace sampan
