// Intrusive reference counting: one word, no control block, so that a tensor is a single allocation.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace sampan {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // For an object that no other thread has seen: a plain store where retain() is a locked one.
  void retain_new() const noexcept { count_.store(1, std::memory_order_relaxed); }
  // Deletes the object with the last reference. A count of one can only be ours, so the locked decrement is saved.
  void release() const noexcept {
    if (count_.load(std::memory_order_acquire) == 1 || count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  uint32_t use_count() const noexcept { return count_.load(std::memory_order_relaxed); }

 protected:
  virtual ~RefCounted() = default;

 private:
  mutable std::atomic<uint32_t> count_{0};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT: a null reference converts like a null pointer
  explicit Ref(T* p) : p_(p) {
    if (p_) p_->retain();
  }
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) p_->retain();
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  // Takes over a reference that was counted already.
  static Ref adopt(T* p) noexcept {
    Ref r;
    r.p_ = p;
    return r;
  }
  template <class U>
  Ref(const Ref<U>& o) : p_(o.get()) {  // NOLINT: derived to base
    if (p_) p_->retain();
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_) p_->release();
  }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  // Gives up the reference without releasing it.
  T* detach() noexcept { return std::exchange(p_, nullptr); }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  bool operator==(const Ref& o) const noexcept { return p_ == o.p_; }

 private:
  T* p_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  T* p = new T(std::forward<Args>(args)...);
  p->retain_new();
  return Ref<T>::adopt(p);
}

}  // namespace sampan
