#include "eager/view.h"

#include "base/error.h"
#include "exec/copy.h"

namespace sampan {
namespace {

void fill_zeros(const Tensor& t) {
  const int64_t zero = 0;
  fill_elements(t.data(), *t.layout, &zero, DType::k_int64);
}

// Where a view lies in its base, and the gradients of both.
class ViewNodeBase : public Node {
 public:
  ViewNodeBase(const Tensor& view, const Tensor& base)
      : Node(Kind::kOther), base_(base.layout), view_(view.layout), offset_bytes_(view.offset_bytes - base.offset_bytes) {}
  uint32_t output_count() const override { return 1; }

 protected:
  void check(bool create_graph) const {
    if (create_graph) throw Error(ErrorKind::kNotImplemented, "a view that was changed in place has no second derivative; use the forms that return a new tensor" + where());
    for (int i = 0; i < view_->rank; ++i) {
      if (base_->is_dense && (view_->shape[i] <= 1 || view_->strides[i])) continue;
      throw Error(ErrorKind::kNotImplemented, "a view with repeated elements was changed in place; use the form that returns a new tensor" + where());
    }
  }
  // The part of a gradient that has the base's own layout which belongs to the view.
  Ref<Tensor> part_of(const Tensor& base_grad) const { return view_storage(base_grad.storage, view_, base_grad.offset_bytes + offset_bytes_); }

  const Ref<const Layout> base_, view_;
  const int64_t offset_bytes_;
};

// The base after the view was rewritten: its gradient goes to the old base, and inside the view to the operation that wrote there.
class ViewWriteNode final : public ViewNodeBase {
 public:
  ViewWriteNode(const Tensor& view, const Tensor& base, Edge old_base, Edge written) : ViewNodeBase(view, base), edges_{std::move(old_base), std::move(written)} {}
  std::string name() const override { return "view_write_grad"; }
  const Layout* output_layout(uint32_t) const override { return base_.get(); }
  std::span<Edge> edges() override { return edges_; }
  void backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads, bool create_graph) override {
    check(create_graph);
    Ref<Tensor> outside = empty_tensor(base_);
    copy_into(*outside, *grads[0]);
    const Ref<Tensor> part = part_of(*outside);
    input_grads[1] = copy_tensor(*part, part->dtype());
    fill_zeros(*part);
    input_grads[0] = std::move(outside);
  }

 private:
  Edge edges_[2];
};

// A view of a base that was rewritten after the view was made.
class ViewReadNode final : public ViewNodeBase {
 public:
  ViewReadNode(const Tensor& view, const Tensor& base, Edge new_base) : ViewNodeBase(view, base), edge_(std::move(new_base)) {}
  std::string name() const override { return "view_grad"; }
  const Layout* output_layout(uint32_t) const override { return view_.get(); }
  std::span<Edge> edges() override { return {&edge_, 1}; }
  void backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads, bool create_graph) override {
    check(create_graph);
    Ref<Tensor> whole = empty_tensor(base_);
    fill_zeros(*whole);
    copy_into(*part_of(*whole), *grads[0]);
    input_grads[0] = std::move(whole);
  }

 private:
  Edge edge_;
};

Node* node_of(const Tensor& t) {
  const EagerMeta* meta = meta_if_any(t);
  return meta ? meta->node.get() : nullptr;
}

}  // namespace

void link_view(Tensor& view, Tensor& base) {
  const EagerMeta* base_meta = meta_if_any(base);
  Tensor& root = base_meta && base_meta->view ? *base_meta->view->base : base;
  meta_of(view).view = std::make_unique<ViewLink>(ViewLink{Ref<Tensor>(&root), Ref<Node>(node_of(root))});
}

void refresh_view(EagerMeta& meta) {
  Tensor& base = *meta.view->base;
  Tensor& view = *meta.self;
  if (node_of(base) == meta.view->base_node.get() || !wants_grad(base) || !(base.storage == view.storage)) return;
  const Edge edge = gradient_edge(base);
  meta.view->base_node = edge.node;
  set_history(view, make_ref<ViewReadNode>(view, base, edge), 0);
}

void write_through_view(Tensor& view, bool is_constant) {
  EagerMeta& meta = *meta_if_any(view);
  if (!meta.view) return;
  Tensor& base = *meta.view->base;
  if (!(base.storage == view.storage)) {
    meta.view = nullptr;
    return;
  }
  Ref<Node> node = make_ref<ViewWriteNode>(view, base, wants_grad(base) ? gradient_edge(base) : Edge(), is_constant ? Edge() : Edge{meta.node, meta.index});
  meta.view->base_node = node;
  set_history(base, std::move(node), 0);
}

bool views_leaf(const Tensor& t) {
  const EagerMeta* meta = meta_if_any(t);
  return meta && meta->view && wants_grad(*meta->view->base) && !producer(*meta->view->base);
}

}  // namespace sampan
