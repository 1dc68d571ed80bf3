#include "exec/plan.h"

#include "base/allocator.h"
#include "exec/parallel.h"
#include "exec/profile.h"

namespace sampan {

std::atomic<ProfileSink*> profile_sink{nullptr};
std::atomic<ProfileSink*> instruction_sink{nullptr};
thread_local std::string last_failure;

namespace {

// Pointers on the stack for the usual Plan, on the heap for a large one.
class PointerArray {
 public:
  explicit PointerArray(size_t count) {
    if (count > kInline) {
      heap_ = std::make_unique<char*[]>(count);
      data_ = heap_.get();
    }
  }
  char*& operator[](size_t i) { return data_[i]; }
  char** data() { return data_; }

 private:
  static constexpr size_t kInline = 32;
  char* inline_[kInline];
  char** data_ = inline_;
  std::unique_ptr<char*[]> heap_;
};

class ScratchBlock {
 public:
  explicit ScratchBlock(size_t size_bytes) : size_(size_bytes), data_(size_bytes ? static_cast<char*>(allocate_block(size_bytes)) : nullptr) {}
  ~ScratchBlock() {
    if (data_) free_block(data_, size_);
  }
  ScratchBlock(const ScratchBlock&) = delete;
  ScratchBlock& operator=(const ScratchBlock&) = delete;
  char* data() const { return data_; }

 private:
  size_t size_;
  char* data_;
};

void run_kernel(const KernelCall& call, char* const* buffers) {
  parallel_for(call.parallel_size, call.cost_ns, [&](int64_t begin, int64_t end) {
    char* scratch = call.scratch_bytes ? thread_scratch(call.scratch_bytes) : nullptr;
    call.function(buffers, call.params.data(), begin, end, scratch);
  });
}

}  // namespace

void Plan::run(Tensor* const* inputs, Ref<Tensor>* results) const {
  PointerArray bases(static_cast<size_t>(slot_count()));
  size_t slot = 0;
  for (; slot < static_cast<size_t>(input_count); ++slot) bases[slot] = inputs[slot]->data();
  for (const Ref<Tensor>& c : constants) bases[slot++] = c->data();
  Ref<Storage> arena;
  if (arena_bytes) {
    arena = allocate_storage(arena_bytes);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].arena_offset >= 0) bases[slot + i] = arena->data + slots[i].arena_offset;
    }
  }
  for (size_t j = 0; j < outputs.size(); ++j) {
    const PlanOutput& o = outputs[j];
    Ref<Tensor> t = make_ref<Tensor>();
    t->offset_bytes = o.offset_bytes;
    if (o.owner == static_cast<int32_t>(j)) {
      t->storage = allocate_storage(slots[static_cast<size_t>(o.slot) - slot].size_bytes);
      bases[static_cast<size_t>(o.slot)] = t->storage->data;
    } else if (o.owner >= 0) {
      t->storage = results[o.owner]->storage;
    } else {
      const Tensor& root = o.slot < input_count ? *inputs[o.slot] : *constants[static_cast<size_t>(o.slot - input_count)];
      t->storage = root.storage;
      t->offset_bytes += root.offset_bytes;
    }
    t->layout = o.layout;
    results[j] = std::move(t);
  }

  const auto storage_of = [&](int32_t s) -> const Ref<Storage>& {
    if (s < input_count) return inputs[s]->storage;
    if (s < buffer_slot()) return constants[static_cast<size_t>(s - input_count)]->storage;
    for (const PlanOutput& o : outputs) {
      if (o.slot == s) return results[o.owner]->storage;
    }
    return arena;
  };
  PointerArray buffers(max_operands);
  const ScratchBlock native_scratch(native_scratch_bytes);
  ProfileSink* const sink = instruction_sink.load(std::memory_order_relaxed);
  size_t at = 0;
  try {
    for (; at < instructions.size(); ++at) {
      const auto& instruction = instructions[at];
      const ProfileScope profile(sink, [&] { return at < labels.size() ? labels[at].c_str() : "instruction"; });
      const auto resolve = [&](const std::vector<Operand>& operands) {
        for (size_t i = 0; i < operands.size(); ++i) buffers[i] = bases[static_cast<size_t>(operands[i].slot)] + operands[i].offset_bytes;
      };
      if (const auto* kernel = std::get_if<KernelCall>(&instruction)) {
        resolve(kernel->operands);
        run_kernel(*kernel, buffers.data());
      } else if (const auto* native = std::get_if<NativeInstruction>(&instruction)) {
        resolve(native->operands);
        sync_thread_count();
        native->op->run(buffers.data(), native_scratch.data());
      } else {
        const auto& host = std::get<HostInstruction>(instruction);
        std::vector<Ref<Tensor>> host_inputs, host_outputs;
        for (size_t i = 0; i < host.operands.size(); ++i) {
          // The storage, not just the memory: Python may keep the tensor beyond this run.
          const Ref<Storage>& storage = storage_of(host.operands[i].slot);
          const int64_t offset = bases[static_cast<size_t>(host.operands[i].slot)] + host.operands[i].offset_bytes - storage->data;
          auto& list = i < static_cast<size_t>(host.input_count) ? host_inputs : host_outputs;
          list.push_back(view_storage(storage, host.layouts[i], offset));
        }
        host.function->call(host_inputs, host_outputs);
      }
    }
  } catch (...) {
    last_failure = at < origins.size() ? origins[at] : std::string();
    throw;
  }
}

}  // namespace sampan
