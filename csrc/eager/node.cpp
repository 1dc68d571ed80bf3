#include "eager/node.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "eager/gradient.h"
#include "exec/profile.h"
#include "eager/view.h"

namespace sampan {

thread_local constinit EagerState eager_state;
bool record_call_sites = false;
EagerHost eager_host;
uint64_t Node::next_sequence_ = 1;

namespace {

// Dead nodes that wait for the one being destroyed; linked through their own memory, so that nothing is allocated.
struct Graveyard {
  Node* next = nullptr;
  bool busy = false;
};
thread_local constinit Graveyard graveyard;

}  // namespace

void* Node::allocate(size_t size_bytes, size_t extra_bytes) {
  void* p = std::malloc(size_bytes + extra_bytes);
  if (!p) throw std::bad_alloc();
  return p;
}

void Node::operator delete(void* memory) { std::free(memory); }

void Node::operator delete(Node* node, std::destroying_delete_t) {
  static_assert(sizeof(node->engine_run_) == sizeof(Node*));
  if (graveyard.busy) {
    node->engine_run_ = reinterpret_cast<uint64_t>(graveyard.next);
    graveyard.next = node;
    return;
  }
  graveyard.busy = true;
  while (node) {
    node->~Node();
    std::free(node);
    node = graveyard.next;
    if (node) graveyard.next = reinterpret_cast<Node*>(node->engine_run_);
  }
  graveyard.busy = false;
}

std::string Node::where() const {
  if (!extras_ || !extras_->call_site.file) return {};
  return "\n  recorded at " + std::string(extras_->call_site.file) + ":" + std::to_string(extras_->call_site.line);
}

int Node::visit_python(VisitObject visit, void* arg) const {
  if (!extras_) return 0;
  for (const auto* hooks : {&extras_->hooks, &extras_->accumulated}) {
    for (const auto& h : *hooks) {
      if (h.hook->use_count() != 1) continue;
      if (const int stop = h.hook->visit_python(visit, arg)) return stop;
    }
  }
  return 0;
}

LeafNode::LeafNode(EagerMeta* o) : Node(Kind::kLeaf), owner(o) {}

const Layout* LeafNode::output_layout(uint32_t) const { return owner ? owner->self->layout.get() : nullptr; }

void LeafNode::backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>>, bool create_graph) {
  if (!owner) return;
  accumulate_into_leaf(*owner, std::move(grads[0]), create_graph);
  NodeExtras* extra = extras_if_any();
  if (!extra) return;
  // A hook may register or remove hooks, and may drop the tensor.
  Ref<Tensor> grad = owner->grad;
  std::erase_if(extra->accumulated, [](const NodeExtras::Hook& h) { return !h.hook->active; });
  const auto hooks = extra->accumulated;
  for (const auto& h : hooks) h.hook->call(grad);
}

EagerMeta::~EagerMeta() {
  leave_node();
  // A gradient may have a gradient, and so on: they die one after the other, never inside each other.
  Ref<Tensor> last = std::move(grad);
  while (last && last->use_count() == 1) {
    EagerMeta* meta = meta_if_any(*last);
    Ref<Tensor> next = meta ? std::move(meta->grad) : nullptr;
    last = std::move(next);
  }
}

int EagerMeta::visit_python(VisitObject visit, void* arg) const { return node && node->use_count() == 1 ? node->visit_python(visit, arg) : 0; }

void EagerMeta::clear_python() {
  leave_node();
  const Ref<Node> last = std::move(node);
}

void EagerMeta::leave_node() {
  if (!node) return;
  // An alias shares the leaf's node without owning it.
  if (node->kind() == Node::Kind::kLeaf && static_cast<LeafNode*>(node.get())->owner == this) static_cast<LeafNode*>(node.get())->owner = nullptr;
  if (retains_grad) std::erase(node->extras().retained, this);
}

EagerMeta& meta_of(Tensor& t) {
  if (!t.autograd) t.autograd = std::make_unique<EagerMeta>(&t);
  return *meta_if_any(t);
}

Edge gradient_edge(Tensor& t) {
  EagerMeta& meta = meta_of(t);
  if (meta.view) [[unlikely]] refresh_view(meta);
  if (!meta.node) {
    meta.node = make_ref<LeafNode>(&meta);
    meta.index = 0;
  }
  return {meta.node, meta.index};
}

void set_history(Tensor& t, Ref<Node> node, uint32_t index) {
  EagerMeta& meta = meta_of(t);
  meta.leave_node();
  if (meta.retains_grad && node) node->extras().retained.push_back(&meta);
  meta.node = std::move(node);
  meta.index = index;
  t.stop_gradient = !meta.node;
  if (!meta.node) return;
  for (ViewLink* link = meta.views; link; link = link->next) {
    if (link->owner.self->storage == t.storage) link->owner.self->stop_gradient = false;
  }
}

Ref<Tensor> alias_with_history(const Tensor& t, const Edge& edge) {
  Ref<Tensor> alias = alias_tensor(t);
  if (edge.node) {
    EagerMeta& meta = meta_of(*alias);
    meta.node = edge.node;
    meta.index = edge.index;
    alias->stop_gradient = false;
  }
  return alias;
}

void detach_in_place(Tensor& t) {
  if (EagerMeta* meta = meta_if_any(t)) {
    meta->view = nullptr;
    if (producer(t)) {
      set_history(t, nullptr, 0);
      meta->retains_grad = false;
    }
  }
  t.stop_gradient = true;
}

void set_stop_gradient(Tensor& t, bool stops) {
  EagerMeta* meta = meta_if_any(t);
  // The user decides what a view is from now on: a constant, or a leaf.
  if (meta && meta->view && (stops || !producer(t))) meta->view = nullptr;
  t.stop_gradient = stops;
}

void retain_grad(Tensor& t) {
  Node* node = producer(t);
  if (!node) return;
  EagerMeta& meta = *meta_if_any(t);
  if (meta.retains_grad) return;
  node->extras().retained.push_back(&meta);
  meta.retains_grad = true;
}

void add_hook(Tensor& t, Ref<GradHook> hook) {
  const Edge edge = gradient_edge(t);
  edge.node->extras().hooks.push_back({edge.index, std::move(hook)});
}

void add_accumulated_hook(Tensor& t, Ref<GradHook> hook) {
  const Edge edge = gradient_edge(t);
  edge.node->extras().accumulated.push_back({edge.index, std::move(hook)});
}

bool same_shape(const Layout& a, const Layout& b) { return std::ranges::equal(a.shape_span(), b.shape_span()); }

}  // namespace sampan
