#include "eager/view.h"

#include "base/error.h"
#include "eager/view_map.h"

namespace sampan {
namespace {

Node* node_of(const Tensor& t) {
  const EagerMeta* meta = meta_if_any(t);
  return meta ? meta->node.get() : nullptr;
}

// The link of a view that still looks at its base's memory. One that was given other memory is no view any more.
ViewLink* living_link(EagerMeta* meta) {
  if (!meta || !meta->view) return nullptr;
  if (!(meta->view->base->storage == meta->self->storage)) meta->view = nullptr;
  return meta->view.get();
}

// A tensor that was overwritten by constants takes the histories of its views along.
void forget_histories(EagerMeta& meta) {
  for (ViewLink* link = meta.views; link; link = link->next) {
    Tensor& view = *link->owner.self;
    if (!(view.storage == meta.self->storage)) continue;
    if (link->owner.node) set_history(view, nullptr, 0);
    link->owner.retains_grad = false;
    link->base_node = nullptr;
    view.stop_gradient = true;
  }
}

}  // namespace

ViewLink::ViewLink(EagerMeta& view, Tensor& base_tensor, bool unrecorded) : owner(view), is_unrecorded(unrecorded) { join(base_tensor); }

void ViewLink::join(Tensor& base_tensor) {
  EagerMeta& meta = meta_of(base_tensor);
  base = Ref<Tensor>(&base_tensor);
  base_node = meta.node;
  next = meta.views;
  if (next) next->to_this = &next;
  to_this = &meta.views;
  meta.views = this;
}

void ViewLink::leave() {
  *to_this = next;
  if (next) next->to_this = to_this;
}

void link_view(Tensor& view, Tensor& source) {
  if (!is_differentiable(view.dtype()) || view.dtype() != source.dtype()) return;
  const ViewLink* outer = living_link(meta_if_any(source));
  Tensor& base = outer ? *outer->base : source;
  const bool is_unrecorded = (outer && outer->is_unrecorded) || (!eager_state.grad_enabled && wants_grad(source));
  EagerMeta& meta = meta_of(view);
  meta.view = std::make_unique<ViewLink>(meta, base, is_unrecorded);
}

void refresh_view(EagerMeta& meta) {
  ViewLink* link = living_link(&meta);
  if (!link || meta.self->stop_gradient) return;
  Tensor& base = *link->base;
  if (node_of(base) == link->base_node.get() || !wants_grad(base)) return;
  const Edge edge = gradient_edge(base);
  link->base_node = edge.node;
  set_history(*meta.self, make_ref<ViewMapNode>(ViewMap::kRead, ViewPlace(*meta.self, base), edge), 0);
}

void rewrite_history(Tensor& target, const Edge& written) {
  EagerMeta* meta = meta_if_any(target);
  ViewLink* link = living_link(meta);
  if (!link || !(written.node || wants_grad(*link->base))) {
    if (written.node) return set_history(target, written.node, written.index);
    detach_in_place(target);
    if (meta) forget_histories(*meta);
    return;
  }
  Tensor& base = *link->base;
  Ref<Node> node = make_ref<ViewWriteNode>(ViewPlace(target, base), wants_grad(base) ? gradient_edge(base) : Edge(), written);
  // Without a history of its own the view gets one from its base when it is used next.
  if (written.node) {
    set_history(target, written.node, written.index);
    link->base_node = node;
  }
  set_history(base, std::move(node), 0);
}

void part_from_views(Tensor& t) {
  EagerMeta* meta = meta_if_any(t);
  if (!meta) return;
  meta->view = nullptr;
  if (!meta->views) return;
  const Ref<Tensor> left = alias_tensor(t);
  left->stop_gradient = t.stop_gradient;
  // A leaf's history is the leaf: what its views add to it still arrives there.
  if (wants_grad(t)) {
    const Edge edge = gradient_edge(t);
    set_history(*left, edge.node, edge.index);
  }
  while (ViewLink* link = meta->views) {
    const Ref<Node> base_node = std::move(link->base_node);
    link->leave();
    link->join(*left);
    link->base_node = base_node;
  }
}

void check_rewritable(const Tensor& t, const std::string& what) {
  const EagerMeta* meta = meta_if_any(t);
  const ViewLink* link = meta && meta->view && meta->view->base->storage == t.storage ? meta->view.get() : nullptr;
  const bool is_leaf_view = link && wants_grad(*link->base) && !producer(*link->base);
  if ((wants_grad(t) && !producer(t)) || is_leaf_view) {
    throw Error(ErrorKind::kValue, what + (is_leaf_view ? ", a view of" : ",") + " a leaf tensor that wants a gradient (" + layout_text(*t.layout) +
                                       "), cannot be changed in place: its value from before is what the gradient belongs to.\n"
                                       "  Use the form that returns a new tensor, or change it under no_grad().");
  }
  if (link && link->is_unrecorded) {
    throw Error(ErrorKind::kValue, what + ", a view that was made under no_grad() of a tensor that wants a gradient (" + layout_text(*t.layout) +
                                       "), cannot be changed in place while gradients are recorded: whether the change belongs to that tensor's history cannot be known.\n"
                                       "  Make the view outside of no_grad(), change it under no_grad(), or detach() it.");
  }
}

}  // namespace sampan
