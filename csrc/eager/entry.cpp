#include "eager/entry.h"

#include <algorithm>

#include "base/error.h"
#include "eager/tape.h"
#include "eager/view.h"

namespace sampan {
namespace {

// A gradient's layout rarely changes; a loop over lengths makes more of them, and old ones may go.
constexpr size_t kBackwardPlansPerEntry = 16;

bool matches(const std::vector<Ref<const Layout>>& layouts, std::span<const Ref<Tensor>> grads) {
  for (size_t i = 0; i < grads.size(); ++i) {
    if (layouts[i].get() != (grads[i] ? grads[i]->layout.get() : nullptr)) return false;
  }
  return true;
}

[[noreturn]] void refuse_backward(const Entry& entry, const std::string& why) {
  throw Error(ErrorKind::kRuntime, "the backward Plan of " + entry.op_name + " " + why);
}

void check_backward(const Entry& entry, const BackwardPlan& backward, std::span<const Ref<Tensor>> grads) {
  std::vector<const Layout*> expected;
  for (const auto& s : entry.saved) expected.push_back(s.is_output ? entry.plan->outputs[s.index].layout.get() : entry.plan->input_layouts[s.index].get());
  for (const auto& g : grads) {
    if (g) expected.push_back(g->layout.get());
  }
  const auto& layouts = backward.plan->input_layouts;
  if (layouts.size() != expected.size()) {
    refuse_backward(entry, "has " + std::to_string(layouts.size()) + " inputs; there are " + std::to_string(entry.saved.size()) + " saved tensors and " +
                               std::to_string(expected.size() - entry.saved.size()) + " gradients");
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (layouts[i].get() != expected[i]) {
      refuse_backward(entry, "takes " + layout_text(*layouts[i]) + " as its input " + std::to_string(i) + ", which is " + layout_text(*expected[i]));
    }
  }
  if (backward.targets.size() != backward.plan->outputs.size()) refuse_backward(entry, "must have one target for each output");
  for (const int32_t t : backward.targets) {
    if (t < 0 || t >= entry.plan->input_count) refuse_backward(entry, "names operand " + std::to_string(t) + ", which does not exist");
  }
}

void run_plan(const Entry& e, Tensor* const* operands, size_t operand_count, Ref<Tensor>* outputs) {
  if (!e.lets_others_run) [[likely]] return e.plan->run(operands, outputs);
  // Another thread, or the host function, may give an operand new memory in the meantime.
  std::vector<Ref<Tensor>> held;
  std::vector<Tensor*> pointers;
  for (size_t i = 0; i < operand_count; ++i) {
    held.push_back(alias_tensor(*operands[i]));
    pointers.push_back(held.back().get());
  }
  UnlockScope unlock(e.plan->should_release_lock);
  e.plan->run(pointers.data(), outputs);
}

void bump_version(Storage& storage) { storage.version.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

Ref<BackwardPlan> Entry::backward_plan(std::span<const Ref<Tensor>> grads) {
  for (const auto& cached : backward_plans_) {
    if (matches(cached.layouts, grads)) return cached.plan;
  }
  CachedBackward fresh;
  for (const auto& g : grads) fresh.layouts.push_back(g ? g->layout : nullptr);
  fresh.plan = backward->build(grads);
  Ref<BackwardPlan> plan = fresh.plan;
  check_backward(*this, *plan, grads);
  // Building runs Python, which may have come here before us; a duplicate does no harm.
  if (backward_plans_.size() < kBackwardPlansPerEntry) {
    backward_plans_.push_back(std::move(fresh));
  } else {
    oldest_ = (oldest_ + 1) % kBackwardPlansPerEntry;
    backward_plans_[oldest_] = std::move(fresh);
  }
  return plan;
}

void Entry::check_operands(Tensor* const* operands, size_t count) const {
  const auto& layouts = plan->input_layouts;
  if (layouts.size() != count) {
    throw Error(ErrorKind::kRuntime, "the Plan of " + op_name + " has " + std::to_string(layouts.size()) + " inputs, and the call " + std::to_string(count) + " operands");
  }
  for (const auto& pair : inplace) {
    const Layout& l = *operands[pair.operand]->layout;
    for (int axis = 0; axis < l.rank; ++axis) {
      if (l.strides[axis] || l.shape[axis] <= 1) continue;
      throw Error(ErrorKind::kValue, op_name + "(): " + operand_name(pair.operand) + " (" + layout_text(l) + ") cannot be changed in place: elements along axis " +
                                         std::to_string(axis) + " share memory. Change a clone() of it.");
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (operands[i]->layout == layouts[i]) continue;
    throw Error(ErrorKind::kRuntime, "the Plan of " + op_name + " was made for " + layout_text(*layouts[i]) + " as " + operand_name(static_cast<int32_t>(i)) +
                                         ", which is " + layout_text(*operands[i]->layout));
  }
}

void Entry::check_inplace(Tensor* const* operands) const {
  for (const auto& pair : inplace) check_rewritable(*operands[pair.operand], op_name + "(): " + operand_name(pair.operand));
}

void run_entry(const Ref<Entry>& entry, Tensor* const* operands, size_t operand_count, Ref<Tensor>* outputs, bool record) {
  const Entry& e = *entry;
  if (e.inplace.empty()) [[likely]] {
    run_plan(e, operands, operand_count, outputs);
    if (record && e.backward) record_node(entry, operands, operand_count, outputs);
    for (const auto& pair : e.views) link_view(*outputs[pair.output], *operands[pair.operand]);
    return;
  }

  if (record) e.check_inplace(operands);
  Ref<EntryNode> node;
  try {
    run_plan(e, operands, operand_count, outputs);
    if (record && e.backward) node = EntryNode::make(entry, operands, operand_count);
  } catch (...) {
    // Some of the elements may have been written.
    for (const auto& pair : e.inplace) bump_version(*operands[pair.operand]->storage);
    throw;
  }
  std::vector<bool> is_rewritten;
  for (const auto& pair : e.inplace) {
    Tensor& target = *operands[pair.operand];
    const Tensor& written = *outputs[pair.output];
    // A new layout over the same memory (reshape_, squeeze_) writes nothing; new memory (cast_) leaves the old as it was.
    is_rewritten.push_back(written.storage == target.storage && written.layout == target.layout);
    if (is_rewritten.back()) bump_version(*target.storage);
    if (!(written.storage == target.storage)) part_from_views(target);
    target.storage = written.storage;
    target.layout = written.layout;
    target.offset_bytes = written.offset_bytes;
  }
  if (node) node->save_outputs(outputs);
  for (const auto& pair : e.inplace) outputs[pair.output] = nullptr;
  if (!record) return;
  if (node) {
    for (const int32_t j : e.differentiable) {
      if (e.rewritten_operand[static_cast<size_t>(j)] < 0) set_history(*outputs[j], node, static_cast<uint32_t>(j));
    }
  }
  for (size_t k = 0; k < e.inplace.size(); ++k) {
    Tensor& target = *operands[e.inplace[k].operand];
    const int32_t j = e.inplace[k].output;
    const Edge history = node && std::ranges::count(e.differentiable, j) ? Edge{node, static_cast<uint32_t>(j)} : Edge();
    if (is_rewritten[k]) {
      rewrite_history(target, history);
    } else if (history.node) {
      set_history(target, history.node, history.index);
    } else {
      detach_in_place(target);
    }
  }
}

}  // namespace sampan
