// The graph: nodes that turn gradients of outputs into gradients of inputs, and what a tensor knows about its place in it.
// Everything here is used under Python's lock.
#pragma once
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/allocator.h"
#include "eager/state.h"

namespace sampan {

class Node;
struct EagerMeta;

struct Edge {
  Ref<Node> node;  // null: no gradient is wanted
  uint32_t index = 0;
};

// Called with a complete gradient. Returns a replacement or null.
class GradHook : public RefCounted {
 public:
  virtual Ref<Tensor> call(const Ref<Tensor>& gradient) = 0;
  virtual int visit_python(VisitObject visit, void* arg) const = 0;
  bool active = true;  // cleared by the handle; the node drops the hook when it next runs
};

struct CallSite {
  const char* file = nullptr;  // immortal
  uint32_t line = 0;
};

// What few nodes have.
struct NodeExtras {
  struct Hook {
    uint32_t index;
    Ref<GradHook> hook;
  };
  std::vector<Hook> hooks;
  std::vector<Hook> accumulated;     // of a leaf: after its gradient was written; called with that gradient
  std::vector<EagerMeta*> retained;  // tensors that keep their gradient; each leaves when it dies
  CallSite call_site;
};

class Node : public RefCounted {
 public:
  enum class Kind : uint8_t { kEntry, kLeaf, kOther };

  virtual std::string name() const = 0;
  virtual uint32_t output_count() const = 0;
  // The layout that a gradient of this output must have in shape and dtype; null when anything goes.
  // Whether its backward takes a gradient of another dtype than its output's.
  virtual bool takes_any_dtype() const { return false; }
  virtual const Layout* output_layout(uint32_t index) const = 0;
  virtual std::span<Edge> edges() = 0;
  // grads: one per output, null where none arrived. input_grads: one per edge, all null; may stay null.
  virtual void backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads, bool create_graph) = 0;
  // Frees what backward needs, after it ran without retain_graph.
  virtual void release_saved() {}

  // What the cycle collector finds behind a node that only one tensor owns.
  virtual int visit_python(VisitObject visit, void* arg) const;

  NodeExtras& extras() {
    if (!extras_) extras_ = std::make_unique<NodeExtras>();
    return *extras_;
  }
  NodeExtras* extras_if_any() const { return extras_.get(); }
  std::string where() const;  // "\n  recorded at file:line", or nothing

  Kind kind() const { return kind_; }
  uint64_t sequence() const { return sequence_; }

  // A graph is a chain as long as the user's program: nodes die one after the other, never inside each other.
  static void operator delete(Node* node, std::destroying_delete_t);
  static void operator delete(void* memory);  // of a node whose constructor raised
  static void operator delete(void* memory, size_t) { operator delete(memory); }
  static void* operator new(size_t size_bytes) { return allocate(size_bytes, 0); }
  static void* operator new(size_t size_bytes, size_t extra_bytes) { return allocate(size_bytes, extra_bytes); }

 protected:
  // A leaf runs as soon as it can: its hooks start the communication of data-parallel training.
  explicit Node(Kind kind) : kind_(kind), sequence_(kind == Kind::kLeaf ? UINT64_MAX : next_sequence_++) {}

 private:
  friend class Engine;
  static void* allocate(size_t size_bytes, size_t extra_bytes);

  Kind kind_;
  uint32_t engine_slot_ = 0;
  uint64_t engine_run_ = 0;  // the run that engine_slot_ belongs to
  uint64_t sequence_;
  std::unique_ptr<NodeExtras> extras_;
  static uint64_t next_sequence_;
};

// Adds what arrives at a leaf to its gradient.
class LeafNode final : public Node {
 public:
  explicit LeafNode(EagerMeta* owner);
  std::string name() const override { return "accumulate_grad"; }
  uint32_t output_count() const override { return 1; }
  const Layout* output_layout(uint32_t) const override;
  std::span<Edge> edges() override { return {}; }
  void backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads, bool create_graph) override;

  EagerMeta* owner;  // null after the tensor died: its gradient is then of no interest
};

// Made and ended as often as tensors are: in a block of their allocator, which is several times as fast as malloc.
template <class T>
struct SmallBlock {
  static void* operator new(size_t size_bytes) { return allocate_block(size_bytes); }
  static void operator delete(void* p) { free_block(p, sizeof(T)); }
};

// Of a view: the tensor that owns the memory. The links of one base form a list, so that it finds its living views.
struct ViewLink final : SmallBlock<ViewLink> {
  ViewLink(EagerMeta& view, Tensor& base_tensor, bool unrecorded);
  ~ViewLink() { leave(); }
  ViewLink(const ViewLink&) = delete;
  ViewLink& operator=(const ViewLink&) = delete;
  void join(Tensor& base_tensor);
  void leave();

  EagerMeta& owner;
  Ref<Tensor> base;     // itself no view
  Ref<Node> base_node;  // what the base had when the view's history was made
  bool is_unrecorded;   // made of a base that wants a gradient while nothing was recorded
  ViewLink* next = nullptr;
  ViewLink** to_this = nullptr;
};

// Of a gradient that holds only some rows of a table: tensor row k is row rows[k] of [height, ...]; a row may occur more than once.
struct SelectedRows : SmallBlock<SelectedRows> {
  SelectedRows(Ref<Tensor> rows_tensor, int64_t table_height) : rows(std::move(rows_tensor)), height(table_height) {}
  Ref<Tensor> rows;  // int64 [n]
  int64_t height;
};

struct EagerMeta final : AutogradMeta, SmallBlock<EagerMeta> {
  explicit EagerMeta(Tensor* tensor) : self(tensor) {}
  ~EagerMeta() override;
  int visit_python(VisitObject visit, void* arg) const override;
  void clear_python() override;
  void leave_node();  // before node is replaced: it keeps no pointer to this

  Tensor* self;
  Ref<Node> node;  // the producer, or a leaf's LeafNode
  uint32_t index = 0;
  bool retains_grad = false;
  bool persistable = false;
  Ref<Tensor> grad;
  std::unique_ptr<std::string> name;
  std::unique_ptr<ViewLink> view;  // null unless it is a view
  ViewLink* views = nullptr;       // of this tensor
  std::unique_ptr<SelectedRows> selected;  // null for a dense tensor
};

// Gives a view a new history when the tensor behind it was rewritten since.
void refresh_view(EagerMeta& meta);

inline EagerMeta* meta_if_any(const Tensor& t) { return static_cast<EagerMeta*>(t.autograd.get()); }
EagerMeta& meta_of(Tensor& t);

inline bool wants_grad(const Tensor& t) { return !t.stop_gradient && is_differentiable(t.dtype()); }
inline Node* producer(const Tensor& t) {
  EagerMeta* m = meta_if_any(t);
  if (m && m->view) [[unlikely]] refresh_view(*m);
  return m && m->node && m->node->kind() != Node::Kind::kLeaf ? m->node.get() : nullptr;
}
inline bool is_leaf(const Tensor& t) { return t.stop_gradient || !producer(t); }

// Where t's gradient goes; makes the accumulation node of a leaf.
Edge gradient_edge(Tensor& t);
// Makes t the index-th output of node, and a tensor that wants a gradient; so are its views from then on.
void set_history(Tensor& t, Ref<Node> node, uint32_t index);
// A tensor over the same memory whose gradient goes along edge (nowhere for a null edge).
Ref<Tensor> alias_with_history(const Tensor& t, const Edge& edge);
// Cuts t from the graph.
void detach_in_place(Tensor& t);
// What the user sets; a view without history then leaves the tensor behind it.
void set_stop_gradient(Tensor& t, bool stops);
void retain_grad(Tensor& t);
void add_hook(Tensor& t, Ref<GradHook> hook);
void add_accumulated_hook(Tensor& t, Ref<GradHook> hook);

inline const SelectedRows* selected_rows(const Tensor& t) {
  const EagerMeta* m = meta_if_any(t);
  return m ? m->selected.get() : nullptr;
}

bool same_shape(const Layout& a, const Layout& b);

}  // namespace sampan
