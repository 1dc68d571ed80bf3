// What a signature leads to: the Plan, and how its backward is made.
#pragma once
#include <string>
#include <vector>

#include "eager/node.h"
#include "exec/plan.h"

namespace sampan {

class EntryNode;

struct BackwardPlan final : RefCounted {
  Ref<Plan> plan;
  std::vector<int32_t> targets;  // output k of the plan is the gradient of operand targets[k]
};

// Made by the bindings from the Python callables of an Entry.
class BackwardBuilder {
 public:
  virtual ~BackwardBuilder() = default;
  // grads: one per output of the Plan, null where none is present.
  virtual Ref<BackwardPlan> build(std::span<const Ref<Tensor>> grads) = 0;
  // The same as an operation that is recorded itself. saved are the saved tensors with their history. Adds to input_grads.
  virtual void run_recorded(std::span<Ref<Tensor>> saved, std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads) = 0;
};

struct Entry final : RefCounted {
  struct Saved {
    bool is_output;
    int32_t index;
  };
  struct Pair {
    int32_t output;
    int32_t operand;
  };
  // The result as a small program in prefix order: a tensor, None, or a tuple or list of the next `count` items.
  struct Structure {
    enum Kind : uint8_t { kTensor, kNone, kTuple, kList } kind;
    int32_t count;
  };

  Ref<Plan> plan;
  std::vector<Structure> structure;
  int32_t result_count = 0;  // tensors in the structure: the first outputs of the Plan
  std::vector<Saved> saved;
  std::vector<int32_t> differentiable;
  std::vector<Pair> inplace;
  std::vector<int32_t> rewritten_operand;  // per output of the Plan, -1 for a new tensor; empty without in-place pairs
  std::vector<Pair> views;  // outputs over an operand's memory that are not in-place, and not cut from its history
  std::unique_ptr<BackwardBuilder> backward;  // null: no gradient
  bool lets_others_run = false;               // while the Plan runs: Python's lock is given up, or a host function is called
  std::string op_name = "op";
  std::vector<std::string> operand_names;  // of the op's parameters; filled when the entry is cached

  std::string operand_name(int32_t i) const {
    return static_cast<size_t>(i) < operand_names.size() ? operand_names[i] : "operand " + std::to_string(i);
  }
  // The backward Plan for these gradients, built when it is met for the first time.
  Ref<BackwardPlan> backward_plan(std::span<const Ref<Tensor>> grads);
  // Raises Error(kRuntime) when the Plan was not made for these operands, since a run would read outside their memory, and
  // Error(kValue) when one that is to be rewritten has elements that share memory.
  void check_operands(Tensor* const* operands, size_t count) const;
  // Raises Error(kValue) when a recorded run would overwrite a leaf that wants a gradient, or a view whose history cannot be known.
  void check_inplace(Tensor* const* operands) const;

 private:
  struct CachedBackward {
    std::vector<Ref<const Layout>> layouts;  // null where no gradient was present
    Ref<BackwardPlan> plan;
  };
  std::vector<CachedBackward> backward_plans_;
  size_t oldest_ = 0;
};

// Runs the plan, applies the in-place rules, and records a node when record is set (some operand wants a gradient and grad mode is on).
// outputs: one per output of the Plan; the one of an in-place pair stays null, its operand is the result.
void run_entry(const Ref<Entry>& entry, Tensor* const* operands, size_t operand_count, Ref<Tensor>* outputs, bool record);

}  // namespace sampan
