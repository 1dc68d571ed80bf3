// Times of operator calls and of the instructions of Plans, for the profiler. Costs one load and a branch when off.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace sampan {

struct ProfileRecord {
  const char* name;    // valid during record() only, as is detail
  const char* detail;  // what the call was given, or ""
  int64_t begin_ns, end_ns;        // of the steady clock
  int64_t begin_bytes, end_bytes;  // allocated, of the whole process; 0 unless the sink wants them
};

class ProfileSink {
 public:
  virtual ~ProfileSink() = default;
  virtual void record(const ProfileRecord& record) = 0;
  // Bytes allocated now; 0 when nobody wants to know.
  virtual int64_t allocated_bytes() const { return 0; }
  virtual bool wants_details() const { return false; }
};

// Null: off. Set under Python's lock; the sink lives as long as the process.
extern std::atomic<ProfileSink*> profile_sink;
// The same for the instructions of Plans.
extern std::atomic<ProfileSink*> instruction_sink;

class ProfileScope {
 public:
  // name() is asked for the name only when it is on, detail() only when details are wanted.
  template <class F>
  explicit ProfileScope(F&& name) : ProfileScope(profile_sink.load(std::memory_order_relaxed), name) {}
  template <class F>
  ProfileScope(ProfileSink* sink, F&& name) : ProfileScope(sink, name, [] { return std::string(); }) {}
  template <class F, class G>
  ProfileScope(ProfileSink* sink, F&& name, G&& detail) : sink_(sink) {
    if (!sink_) [[likely]] return;
    name_ = name();
    if (sink_->wants_details()) detail_ = std::make_unique<std::string>(detail());
    begin_bytes_ = sink_->allocated_bytes();
    begin_ns_ = now_ns();
  }
  ~ProfileScope() {
    if (!sink_) [[likely]] return;
    const int64_t end_ns = now_ns();
    sink_->record({name_, detail_ ? detail_->c_str() : "", begin_ns_, end_ns, begin_bytes_, sink_->allocated_bytes()});
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  static int64_t now_ns() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
  ProfileSink* sink_;
  const char* name_ = nullptr;
  std::unique_ptr<std::string> detail_;
  int64_t begin_ns_ = 0;
  int64_t begin_bytes_ = 0;
};

}  // namespace sampan
