// A Plan: what runs. Built in Python from a Program whose layouts are known, run in C++.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "exec/native.h"
#include "tensor/tensor.h"

namespace sampan {

using KernelFunction = void (*)(char* const* buffers, const int64_t* params, int64_t begin, int64_t end, char* scratch);

// Where an instruction finds a buffer: a slot and a byte offset into it, so that views cost no instruction.
struct Operand {
  int32_t slot;
  int64_t offset_bytes;
};

struct KernelCall {
  KernelFunction function;
  std::vector<Operand> operands;
  std::vector<int64_t> params;
  int64_t parallel_size;         // outer_size * blocks
  double cost_ns;                // of one unit of the parallel space, decides threading
  size_t scratch_bytes;          // per thread
};

struct NativeInstruction {
  std::unique_ptr<NativeOp> op;
  std::vector<Operand> operands;
};

// Calls back into Python with tensors (zero copy) and copies nothing: the callable writes its outputs.
// Implemented by the bindings, so that this layer does not know Python.
class HostFunction {
 public:
  virtual ~HostFunction() = default;
  virtual void call(const std::vector<Ref<Tensor>>& inputs, const std::vector<Ref<Tensor>>& outputs) const = 0;
};

struct HostInstruction {
  std::unique_ptr<HostFunction> function;
  std::vector<Operand> operands;
  std::vector<Ref<const Layout>> layouts;
  int32_t input_count;
};

// One result of the Plan. slot < input count: a view of, or an in-place write to, that input's storage.
struct PlanOutput {
  int32_t slot;
  int64_t offset_bytes;
  Ref<const Layout> layout;
  int32_t owner = -1;  // the first output over the same fresh slot; -1: not a fresh slot. Filled by PlanBuilder.
};

// The origin of the instruction that raised last on this thread; empty when that one has none.
extern thread_local std::string last_failure;

class Plan final : public RefCounted {
 public:
  // Slots 0..input_count-1 are inputs; then constants; then buffers allocated by the Plan.
  // A buffer in the arena has arena_offset >= 0 and lives for this run only; the others are fresh storages (results).
  struct Slot {
    size_t size_bytes;
    int64_t arena_offset;
  };

  int32_t input_count = 0;
  std::vector<Ref<const Layout>> input_layouts;
  std::vector<Ref<Tensor>> constants;
  std::vector<Slot> slots;  // for the buffers
  size_t arena_bytes = 0;
  std::vector<std::variant<KernelCall, NativeInstruction, HostInstruction>> instructions;
  std::vector<PlanOutput> outputs;
  std::string text;  // what SAMPAN_DUMP=plans prints
  std::vector<std::string> labels;  // of the instructions, for profiles
  std::vector<std::string> origins;  // the statement that each instruction comes from; empty where it has none

  size_t native_scratch_bytes = 0;
  size_t max_operands = 0;
  double kernel_cost_ns = 0;       // of all kernels, on one thread
  bool should_release_lock = false;  // whether the work is worth giving up Python's lock for

  // Layouts of inputs must be those the Plan was built for. An exception leaves the origin of its instruction in last_failure. outputs receives one new tensor for each PlanOutput; after an exception
  // they are not to be used. Thread safe, with or without Python's lock: a host function takes it by itself.
  void run(Tensor* const* inputs, Ref<Tensor>* outputs) const;

  int32_t constant_slot() const { return input_count; }
  int32_t buffer_slot() const { return input_count + static_cast<int32_t>(constants.size()); }
  int32_t slot_count() const { return buffer_slot() + static_cast<int32_t>(slots.size()); }

 private:
  friend class PlanBuilder;
  Plan() = default;
};

// Checks everything that can be checked before anything runs, so that a wrong Plan raises Error(kValue) and never writes outside a buffer.
class PlanBuilder {
 public:
  PlanBuilder(std::vector<Ref<const Layout>> input_layouts, std::vector<Ref<Tensor>> constants, std::vector<Plan::Slot> slots, size_t arena_bytes);
  void add_kernel(KernelCall call);
  void add_native(const std::string& name, NativeCall call, std::vector<Operand> operands);
  void add_host(std::unique_ptr<HostFunction> function, std::vector<Operand> operands, std::vector<Ref<const Layout>> layouts, int32_t input_count);
  void add_output(int32_t slot, int64_t offset_bytes, Ref<const Layout> layout);
  Ref<Plan> finish(std::string text, std::vector<std::string> labels = {}, std::vector<std::string> origins = {});

 private:
  void check_operand(const Operand& operand, const Layout* layout) const;
  [[noreturn]] void refuse(const std::string& why) const;
  Ref<Plan> plan_;
  // The bytes of each slot around the address that offsets count from.
  struct Range {
    int64_t lowest, end;
  };
  std::vector<Range> ranges_;
  bool has_native_ = false;
};

}  // namespace sampan
