#include "eager/tape.h"

#include "base/error.h"
#include "eager/gradient.h"

namespace sampan {

Ref<Tensor> SavedTensor::get() const {
  Ref<Tensor> t = make_ref<Tensor>();
  t->storage = storage;
  t->layout = layout;
  t->offset_bytes = offset_bytes;
  return t;
}

void SavedTensor::raise_stale(const std::string& what) const {
  throw Error(ErrorKind::kRuntime, what + " (" + layout_text(*layout) + ") was changed in place after the call: it is at version " +
                                       std::to_string(storage->version.load(std::memory_order_relaxed)) + ", and backward needs version " +
                                       std::to_string(version) +
                                       ".\n  Use the form of the in-place operator that returns a new tensor, or change a clone() of it.");
}

void raise_freed(const std::string& node) {
  throw Error(ErrorKind::kRuntime, "backward through " + node + " a second time: the tensors that it needs were freed by the first one.\n"
                                   "  Pass retain_graph=True to every backward() or grad() but the last one over the same graph.");
}

EntryNode::EntryNode(const Ref<Entry>& entry, uint32_t edge_count) : Node(Kind::kEntry), entry_(entry), edge_count_(edge_count) {
  for (uint32_t i = 0; i < edge_count_; ++i) new (edges_() + i) Edge();
  for (size_t k = 0; k < entry_->saved.size(); ++k) new (saved_() + k) SavedTensor();
}

EntryNode::~EntryNode() {
  for (size_t k = 0; k < entry_->saved.size(); ++k) saved_()[k].~SavedTensor();
  for (uint32_t i = 0; i < edge_count_; ++i) edges_()[i].~Edge();
}

Ref<EntryNode> EntryNode::make(const Ref<Entry>& entry, Tensor* const* operands, size_t operand_count) {
  const size_t extra_bytes = operand_count * sizeof(Edge) + entry->saved.size() * sizeof(SavedTensor);
  auto* made = new (extra_bytes) EntryNode(entry, static_cast<uint32_t>(operand_count));
  made->retain_new();
  Ref<EntryNode> node = Ref<EntryNode>::adopt(made);
  for (size_t i = 0; i < operand_count; ++i) {
    if (wants_grad(*operands[i])) node->edges_()[i] = gradient_edge(*operands[i]);
  }
  for (size_t k = 0; k < entry->saved.size(); ++k) {
    const auto& s = entry->saved[k];
    if (s.is_output) continue;
    if (eager_state.saved_hooks) [[unlikely]] {
      node->pack(k, *operands[s.index]);
    } else {
      node->saved_()[k].set(*operands[s.index]);
    }
  }
  if (record_call_sites && eager_host.call_site) [[unlikely]] {
    CallSite& site = node->extras().call_site;
    site.file = eager_host.call_site(&site.line);
  }
  return node;
}

void EntryNode::save_outputs(const Ref<Tensor>* outputs) {
  for (size_t k = 0; k < entry_->saved.size(); ++k) {
    const auto& s = entry_->saved[k];
    if (!s.is_output) continue;
    if (eager_state.saved_hooks) [[unlikely]] {
      pack(k, *outputs[s.index]);
    } else {
      saved_()[k].set(*outputs[s.index]);
    }
  }
}

void EntryNode::pack(size_t k, const Tensor& t) {
  if (!packed_) {
    packed_ = std::make_unique<Packed>();
    packed_->hooks = Ref<SavedHooks>(eager_state.saved_hooks);
    packed_->values.resize(entry_->saved.size());
  }
  GradModeScope mode(false);
  packed_->values[k] = packed_->hooks->pack(alias_tensor(t));
}

std::string EntryNode::describe_saved(size_t k) const {
  const auto& s = entry_->saved[k];
  return entry_->op_name + ": " + (s.is_output ? "its output " + std::to_string(s.index) : "its operand " + entry_->operand_name(s.index)) + where();
}

std::vector<Ref<Tensor>> EntryNode::unpack(bool with_history) {
  if (freed_) raise_freed(name() + where());
  std::vector<Ref<Tensor>> tensors(entry_->saved.size());
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (packed_ && packed_->values[k]) {
      tensors[k] = packed_->hooks->unpack(*packed_->values[k]);
    } else {
      const SavedTensor& saved = saved_()[k];
      if (saved.is_stale()) [[unlikely]] saved.raise_stale(describe_saved(k));
      tensors[k] = saved.get();
    }
    if (!with_history) continue;
    const auto& s = entry_->saved[k];
    Edge edge = s.is_output ? Edge{Ref<Node>(this), static_cast<uint32_t>(s.index)} : edges_()[s.index];
    if (!is_differentiable(tensors[k]->dtype())) edge = {};
    tensors[k] = alias_with_history(*tensors[k], edge);
  }
  return tensors;
}

void EntryNode::backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads, bool create_graph) {
  std::vector<Ref<Tensor>> inputs = unpack(create_graph);
  if (create_graph) {
    entry_->backward->run_recorded(inputs, grads, input_grads);
    return;
  }
  const Ref<BackwardPlan> backward = entry_->backward_plan(grads);
  for (auto& g : grads) {
    if (g) inputs.push_back(g);
  }
  std::vector<Tensor*> pointers;
  pointers.reserve(inputs.size());
  for (auto& t : inputs) pointers.push_back(t.get());
  std::vector<Ref<Tensor>> outputs(backward->plan->outputs.size());
  {
    UnlockScope unlock(backward->plan->should_release_lock);
    backward->plan->run(pointers.data(), outputs.data());
  }
  for (size_t k = 0; k < backward->targets.size(); ++k) add_gradient(input_grads[backward->targets[k]], std::move(outputs[k]), false);
}

void EntryNode::release_saved() {
  if (entry_->saved.empty()) return;
  freed_ = true;
  packed_.reset();
  for (size_t k = 0; k < entry_->saved.size(); ++k) saved_()[k] = {};
}

void record_node(const Ref<Entry>& entry, Tensor* const* operands, size_t operand_count, Ref<Tensor>* outputs) {
  Ref<EntryNode> node = EntryNode::make(entry, operands, operand_count);
  node->save_outputs(outputs);
  for (const int32_t j : entry->differentiable) {
    EagerMeta& meta = meta_of(*outputs[j]);
    meta.node = node;
    meta.index = static_cast<uint32_t>(j);
    outputs[j]->stop_gradient = false;
  }
}

}  // namespace sampan
