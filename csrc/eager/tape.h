// The node of a recorded operator call.
#pragma once
#include "eager/entry.h"

namespace sampan {

// A tensor that backward needs. It holds the memory and not the Tensor, so that no cycle of references can arise.
struct SavedTensor {
  Ref<Storage> storage;
  Ref<const Layout> layout;
  int64_t offset_bytes = 0;
  uint32_t version = 0;

  void set(const Tensor& t) {
    storage = t.storage;
    layout = t.layout;
    offset_bytes = t.offset_bytes;
    version = t.storage->version.load(std::memory_order_relaxed);
  }
  Ref<Tensor> get() const;
  bool is_stale() const { return storage->version.load(std::memory_order_relaxed) != version; }
  // what: which tensor of which call.
  [[noreturn]] void raise_stale(const std::string& what) const;
};

[[noreturn]] void raise_freed(const std::string& node);

class EntryNode final : public Node {
 public:
  // With the edges and the saved inputs; the outputs are saved when they are complete.
  static Ref<EntryNode> make(const Ref<Entry>& entry, Tensor* const* operands, size_t operand_count);
  void save_outputs(const Ref<Tensor>* outputs);

  std::string name() const override { return entry_->op_name + "_grad"; }
  uint32_t output_count() const override { return static_cast<uint32_t>(entry_->plan->outputs.size()); }
  const Layout* output_layout(uint32_t i) const override { return entry_->plan->outputs[i].layout.get(); }
  std::span<Edge> edges() override { return {edges_(), edge_count_}; }
  void backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads, bool create_graph) override;
  void release_saved() override;

 private:
  EntryNode(const Ref<Entry>& entry, uint32_t edge_count);
  ~EntryNode() override;
  std::vector<Ref<Tensor>> unpack(bool with_history);
  std::string describe_saved(size_t k) const;

  // The arrays lie behind the object: one allocation for a node.
  Edge* edges_() { return reinterpret_cast<Edge*>(this + 1); }
  SavedTensor* saved_() { return reinterpret_cast<SavedTensor*>(edges_() + edge_count_); }

  struct Packed {
    Ref<SavedHooks> hooks;
    std::vector<Ref<RefCounted>> values;  // like Entry::saved; null: not packed
  };
  void pack(size_t k, const Tensor& t);

  Ref<Entry> entry_;
  uint32_t edge_count_;
  bool freed_ = false;
  std::unique_ptr<Packed> packed_;
};

// Records a call whose outputs are new tensors.
void record_node(const Ref<Entry>& entry, Tensor* const* operands, size_t operand_count, Ref<Tensor>* outputs);

}  // namespace sampan
