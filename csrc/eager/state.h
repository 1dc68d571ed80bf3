// What a thread's eager calls depend on besides their arguments, and the hooks that the bindings install.
#pragma once
#include <atomic>
#include <cstdint>

#include "tensor/tensor.h"

namespace sampan {

// Replaces what the tape keeps of a tensor (paddle.autograd.saved_tensors_hooks).
class SavedHooks : public RefCounted {
 public:
  virtual Ref<RefCounted> pack(Ref<Tensor> tensor) = 0;
  virtual Ref<Tensor> unpack(RefCounted& packed) = 0;
  SavedHooks* outer = nullptr;  // the `with` block around; owned while this one is in force
};

struct EagerState {
  uint64_t context = 0;               // interned by Python: AMP state, default dtype, ...
  SavedHooks* saved_hooks = nullptr;  // owned; the innermost
  bool grad_enabled = true;
  bool tracing = false;  // every call goes to Op.static
};

// constinit, so that no access pays for a guard.
extern thread_local constinit EagerState eager_state;

// Set by _rt.set_record_call_sites; read only when a node is recorded.
extern bool record_call_sites;

class GradModeScope {
 public:
  explicit GradModeScope(bool enabled) : previous_(eager_state.grad_enabled) { eager_state.grad_enabled = enabled; }
  ~GradModeScope() { eager_state.grad_enabled = previous_; }
  GradModeScope(const GradModeScope&) = delete;
  GradModeScope& operator=(const GradModeScope&) = delete;

 private:
  bool previous_;
};

// What the layer above lends to this one, which does not know Python. Filled once, when the module is created.
struct EagerHost {
  Ref<Tensor> (*add)(const Ref<Tensor>& a, const Ref<Tensor>& b) = nullptr;  // the registered add op; obeys grad_enabled
  // Sums and dense forms of gradients that hold only some rows (selected_rows.h); the sum may be a, written in place.
  Ref<Tensor> (*add_rows)(const Ref<Tensor>& a, const Ref<Tensor>& b) = nullptr;
  Ref<Tensor> (*rows_to_dense)(const Ref<Tensor>& rows) = nullptr;
  void* (*unlock)() = nullptr;                                             // lets other Python threads run ...
  void (*relock)(void*) = nullptr;                                         // ... until this
  const char* (*call_site)(std::uint32_t* line) = nullptr;                 // file and line of the user's frame; an immortal string
};
extern EagerHost eager_host;

// Gives up Python's lock where the work is worth it: getting it back costs microseconds when another thread wants it.
class UnlockScope {
 public:
  explicit UnlockScope(bool pays) : token_(pays && eager_host.unlock ? eager_host.unlock() : nullptr) {}
  ~UnlockScope() {
    if (token_) eager_host.relock(token_);
  }
  UnlockScope(const UnlockScope&) = delete;
  UnlockScope& operator=(const UnlockScope&) = delete;

 private:
  void* token_;
};

}  // namespace sampan
