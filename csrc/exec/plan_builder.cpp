#include <algorithm>

#include "base/allocator.h"
#include "base/error.h"
#include "exec/plan.h"

namespace sampan {

namespace {

constexpr int64_t kSlotAlignment = 64;
constexpr size_t kMaxBytes = size_t{1} << 62;
constexpr int64_t kOutsideArena = -1;
// Giving up Python's lock and taking it again costs about 0.1 us, and more when another thread wants it.
constexpr double kReleaseLockNs = 20000;

std::string operand_text(const Operand& o) { return "(slot " + std::to_string(o.slot) + ", byte " + std::to_string(o.offset_bytes) + ")"; }

}  // namespace

void PlanBuilder::refuse(const std::string& why) const {
  throw Error(ErrorKind::kValue, "this Plan cannot run: instruction " + std::to_string(plan_->instructions.size()) + ": " + why);
}

PlanBuilder::PlanBuilder(std::vector<Ref<const Layout>> input_layouts, std::vector<Ref<Tensor>> constants, std::vector<Plan::Slot> slots,
                         size_t arena_bytes) {
  plan_ = Ref<Plan>(new Plan);
  Plan& p = *plan_;
  const auto add_tensor = [&](const Layout& l) {
    int64_t lowest, highest;
    l.extent(&lowest, &highest);
    const auto item = static_cast<int64_t>(dtype_size(l.dtype));
    ranges_.push_back({lowest * item, l.numel ? (highest + 1) * item : 0});
  };
  for (const auto& l : input_layouts) add_tensor(*l);
  for (const auto& c : constants) add_tensor(*c->layout);
  if (arena_bytes > kMaxBytes) refuse("an arena of " + std::to_string(arena_bytes) + " bytes");
  for (const Plan::Slot& s : slots) {
    if (s.size_bytes >= kMaxBytes) refuse("a buffer of " + std::to_string(s.size_bytes) + " bytes");
    require_allocatable(s.size_bytes);  // before natives prepare tables for it
    if (s.arena_offset >= 0 && s.arena_offset % kSlotAlignment) refuse("arena offset " + std::to_string(s.arena_offset) + " is not a multiple of 64");
    // A buffer that nothing uses need not lie in the arena; one that does not is refused where it is used.
    const size_t offset = s.arena_offset < 0 ? 0 : static_cast<size_t>(s.arena_offset);
    const bool fits = s.arena_offset < 0 || (offset <= arena_bytes && s.size_bytes <= arena_bytes - offset);
    ranges_.push_back({0, fits ? static_cast<int64_t>(s.size_bytes) : kOutsideArena});
  }
  p.input_count = static_cast<int32_t>(input_layouts.size());
  p.input_layouts = std::move(input_layouts);
  p.constants = std::move(constants);
  p.slots = std::move(slots);
  p.arena_bytes = arena_bytes;
}

void PlanBuilder::check_operand(const Operand& o, const Layout* layout) const {
  if (o.slot < 0 || static_cast<size_t>(o.slot) >= ranges_.size()) {
    refuse("operand " + operand_text(o) + " names a slot that does not exist; there are " + std::to_string(ranges_.size()));
  }
  const Range r = ranges_[static_cast<size_t>(o.slot)];
  if (r.end == kOutsideArena) refuse("operand " + operand_text(o) + ": this buffer reaches beyond the arena of " + std::to_string(plan_->arena_bytes) + " bytes");
  bool inside = o.offset_bytes >= r.lowest && o.offset_bytes <= r.end;
  if (inside && layout && layout->numel) {
    int64_t lowest, highest;
    layout->extent(&lowest, &highest);
    const auto item = static_cast<int64_t>(dtype_size(layout->dtype));
    inside = lowest * item >= r.lowest - o.offset_bytes && (highest + 1) * item <= r.end - o.offset_bytes;
  }
  if (!inside) {
    refuse("operand " + operand_text(o) + (layout ? " read as " + layout_text(*layout) : "") + " is outside the slot, which has bytes " +
           std::to_string(r.lowest) + " to " + std::to_string(r.end));
  }
}

void PlanBuilder::add_kernel(KernelCall call) {
  if (!call.function) refuse("a kernel without an address");
  if (call.parallel_size < 0 || !(call.cost_ns >= 0) || call.scratch_bytes > kMaxBytes) refuse("a kernel with a negative size or cost");
  for (const Operand& o : call.operands) check_operand(o, nullptr);
  plan_->max_operands = std::max(plan_->max_operands, call.operands.size());
  plan_->kernel_cost_ns += static_cast<double>(call.parallel_size) * call.cost_ns;
  plan_->instructions.emplace_back(std::move(call));
}

void PlanBuilder::add_native(const std::string& name, NativeCall call, std::vector<Operand> operands) {
  const size_t count = call.inputs.size() + call.outputs.size();
  if (operands.size() != count) {
    refuse("native '" + name + "' has " + std::to_string(operands.size()) + " operands and " + std::to_string(count) + " layouts");
  }
  for (size_t i = 0; i < count; ++i) {
    check_operand(operands[i], (i < call.inputs.size() ? call.inputs[i] : call.outputs[i - call.inputs.size()]).get());
  }
  std::unique_ptr<NativeOp> op = make_native(name, call);
  plan_->max_operands = std::max(plan_->max_operands, count);
  plan_->native_scratch_bytes = std::max(plan_->native_scratch_bytes, op->scratch_bytes());
  plan_->instructions.emplace_back(NativeInstruction{std::move(op), std::move(operands)});
  has_native_ = true;
}

void PlanBuilder::add_host(std::unique_ptr<HostFunction> function, std::vector<Operand> operands, std::vector<Ref<const Layout>> layouts,
                           int32_t input_count) {
  if (operands.size() != layouts.size() || input_count < 0 || static_cast<size_t>(input_count) > operands.size()) {
    refuse("a host function with " + std::to_string(operands.size()) + " operands, " + std::to_string(layouts.size()) + " layouts and " +
           std::to_string(input_count) + " inputs");
  }
  for (size_t i = 0; i < operands.size(); ++i) check_operand(operands[i], layouts[i].get());
  plan_->instructions.emplace_back(HostInstruction{std::move(function), std::move(operands), std::move(layouts), input_count});
}

void PlanBuilder::add_output(int32_t slot, int64_t offset_bytes, Ref<const Layout> layout) {
  check_operand({slot, offset_bytes}, layout.get());
  Plan& p = *plan_;
  PlanOutput output{slot, offset_bytes, std::move(layout), -1};
  if (slot >= p.buffer_slot()) {
    if (p.slots[static_cast<size_t>(slot - p.buffer_slot())].arena_offset >= 0) {
      refuse("output " + std::to_string(p.outputs.size()) + " lies in the arena, which ends with the run");
    }
    const auto same = std::find_if(p.outputs.begin(), p.outputs.end(), [&](const PlanOutput& o) { return o.slot == slot; });
    output.owner = static_cast<int32_t>(same - p.outputs.begin());
  }
  p.outputs.push_back(std::move(output));
}

Ref<Plan> PlanBuilder::finish(std::string text, std::vector<std::string> labels, std::vector<std::string> origins) {
  Plan& p = *plan_;
  // A fresh buffer that no output keeps is a temporary: into the arena.
  for (size_t i = 0; i < p.slots.size(); ++i) {
    Plan::Slot& s = p.slots[i];
    const auto slot = static_cast<int32_t>(i) + p.buffer_slot();
    if (s.arena_offset >= 0 || std::any_of(p.outputs.begin(), p.outputs.end(), [&](const PlanOutput& o) { return o.slot == slot; })) continue;
    p.arena_bytes = (p.arena_bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
    s.arena_offset = static_cast<int64_t>(p.arena_bytes);
    p.arena_bytes += std::max<size_t>(s.size_bytes, 1);
    if (p.arena_bytes > kMaxBytes) refuse("the arena is larger than 2^62 bytes");
  }
  // Buffers of size 0 in an empty arena need an address too.
  const bool has_arena = std::any_of(p.slots.begin(), p.slots.end(), [](const Plan::Slot& s) { return s.arena_offset >= 0; });
  if (has_arena) p.arena_bytes = std::max<size_t>(p.arena_bytes, 1);
  p.should_release_lock = has_native_ || p.kernel_cost_ns >= kReleaseLockNs;
  p.text = std::move(text);
  p.labels = std::move(labels);
  p.origins = std::move(origins);
  return std::move(plan_);
}

}  // namespace sampan
