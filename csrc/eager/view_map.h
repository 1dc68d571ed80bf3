// The gradients of reading and of writing a part of a tensor's memory.
#pragma once
#include "eager/node.h"

namespace sampan {

// Where a view lies in its base: both are layouts over one memory.
struct ViewPlace {
  ViewPlace(const Tensor& view, const Tensor& base) : base(base.layout), view(view.layout), offset_bytes(view.offset_bytes - base.offset_bytes) {}

  Ref<const Layout> base, view;
  int64_t offset_bytes;  // of the view's first element, from the base's
};

// The linear maps that the gradients consist of. Each is the gradient of another: kRead and kPlace of one another, kErase of itself.
enum class ViewMap : uint8_t {
  kRead,   // base -> view
  kPlace,  // view -> base, zeros elsewhere; what meets in one place of memory adds up
  kErase,  // base -> base, zeros where the view lies
};

class ViewMapNode final : public Node {
 public:
  ViewMapNode(ViewMap map, ViewPlace place, Edge edge) : Node(Kind::kOther), map_(map), place_(std::move(place)), edge_(std::move(edge)) {}
  std::string name() const override { return "view_grad"; }
  uint32_t output_count() const override { return 1; }
  const Layout* output_layout(uint32_t) const override { return map_ == ViewMap::kRead ? place_.view.get() : place_.base.get(); }
  std::span<Edge> edges() override { return {&edge_, 1}; }
  void backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads, bool create_graph) override;

 private:
  const ViewMap map_;
  const ViewPlace place_;
  Edge edge_;
};

// The base after a view of it was rewritten: its gradient goes to the base from before, and inside the view to the operation that wrote there.
class ViewWriteNode final : public Node {
 public:
  ViewWriteNode(ViewPlace place, Edge old_base, Edge written) : Node(Kind::kOther), place_(std::move(place)), edges_{std::move(old_base), std::move(written)} {}
  std::string name() const override { return "view_write_grad"; }
  uint32_t output_count() const override { return 1; }
  const Layout* output_layout(uint32_t) const override { return place_.base.get(); }
  std::span<Edge> edges() override { return edges_; }
  void backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads, bool create_graph) override;

 private:
  const ViewPlace place_;
  Edge edges_[2];
};

}  // namespace sampan
