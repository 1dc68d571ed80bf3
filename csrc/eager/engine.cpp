#include "eager/engine.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "eager/gradient.h"
#include "exec/profile.h"

namespace sampan {

// One run. Nodes are found from the roots, then run when every node that sends them a gradient has run; among those that
// are ready the youngest goes first, which is the order of the forward calls reversed.
class Engine {
 public:
  explicit Engine(const BackwardRequest& request);
  ~Engine() { std::erase(active_runs_, run_); }
  std::vector<Ref<Tensor>> run();

 private:
  struct State {
    Ref<Node> node;
    uint32_t first_grad = 0;  // into grads_
    uint32_t waits_for = 0;   // edges of nodes that have not run yet
    bool must_run = false;    // a gradient that someone wants is behind it
    bool is_captured = false;
  };
  struct Captured {
    uint32_t slot;
    uint32_t index;
    size_t input;
  };

  uint32_t slot_of(Node* node);  // finds or adds
  uint32_t find(Node* node) const;
  void discover();
  void mark_wanted();
  void seed();
  void run_node(uint32_t slot);
  void send(const Node& from, std::span<Edge> edges, std::span<Ref<Tensor>> input_grads);
  void finish_gradients(State& state, std::span<Ref<Tensor>> grads);
  bool is_blocked(const Edge& edge) const;
  void push_ready(uint32_t slot);

  static constexpr uint32_t kNone = UINT32_MAX;
  static inline std::vector<uint64_t> active_runs_;
  static inline uint64_t next_run_ = 1;

  const BackwardRequest& request_;
  uint64_t run_;
  std::vector<State> states_;
  std::vector<Ref<Tensor>> grads_;
  std::vector<uint32_t> ready_;  // a heap by sequence
  std::vector<uint32_t> root_slots_;
  std::vector<Captured> captured_;
  std::vector<Edge> blocked_;
  std::vector<Ref<Tensor>> results_;
  std::unordered_map<Node*, uint32_t> shared_;  // nodes that another active run has marked
};

Engine::Engine(const BackwardRequest& request) : request_(request), run_(next_run_++) { active_runs_.push_back(run_); }

uint32_t Engine::find(Node* node) const {
  if (node->engine_run_ == run_) return node->engine_slot_;
  if (shared_.empty()) return kNone;
  const auto it = shared_.find(node);
  return it == shared_.end() ? kNone : it->second;
}

uint32_t Engine::slot_of(Node* node) {
  if (const uint32_t known = find(node); known != kNone) return known;
  const auto slot = static_cast<uint32_t>(states_.size());
  State state;
  state.node = Ref<Node>(node);
  state.first_grad = static_cast<uint32_t>(grads_.size());
  grads_.resize(grads_.size() + node->output_count());
  states_.push_back(std::move(state));
  // A hook or another thread may run backward over the same nodes: the first run's mark stays.
  if (active_runs_.size() > 1 && std::ranges::count(active_runs_, node->engine_run_)) {
    shared_.emplace(node, slot);
  } else {
    node->engine_run_ = run_;
    node->engine_slot_ = slot;
  }
  return slot;
}

void Engine::discover() {
  for (const auto& root : request_.roots) {
    root_slots_.push_back(wants_grad(*root) ? slot_of(gradient_edge(*root).node.get()) : kNone);
  }
  // Every state is looked at once, in the order of discovery; the list itself is the queue.
  for (uint32_t slot = 0; slot < states_.size(); ++slot) {
    const Ref<Node> node = states_[slot].node;
    for (const Edge& edge : node->edges()) {
      if (edge.node) ++states_[slot_of(edge.node.get())].waits_for;
    }
  }
}

void Engine::mark_wanted() {
  if (request_.inputs.empty()) {
    for (auto& state : states_) state.must_run = true;
    return;
  }
  results_.resize(request_.inputs.size());
  for (size_t i = 0; i < request_.inputs.size(); ++i) {
    Tensor& input = *request_.inputs[i];
    if (!wants_grad(input)) continue;
    const Edge edge = gradient_edge(input);
    const uint32_t slot = find(edge.node.get());
    if (slot == kNone) continue;
    states_[slot].is_captured = true;
    captured_.push_back({slot, edge.index, i});
  }
  std::ranges::sort(captured_, {}, &Captured::slot);
  // Behind a node are only nodes whose count of waiting edges it is part of: walk in that order, then judge backwards.
  std::vector<uint32_t> order;
  order.reserve(states_.size());
  std::vector<uint32_t> waits(states_.size());
  for (uint32_t s = 0; s < states_.size(); ++s) {
    waits[s] = states_[s].waits_for;
    if (!waits[s]) order.push_back(s);
  }
  for (size_t k = 0; k < order.size(); ++k) {
    for (const Edge& edge : states_[order[k]].node->edges()) {
      if (edge.node && --waits[find(edge.node.get())] == 0) order.push_back(find(edge.node.get()));
    }
  }
  for (size_t k = order.size(); k-- > 0;) {
    State& state = states_[order[k]];
    for (const Edge& edge : state.node->edges()) {
      if (!edge.node) continue;
      const State& behind = states_[find(edge.node.get())];
      if (behind.must_run || behind.is_captured) state.must_run = true;
    }
  }
}

void Engine::push_ready(uint32_t slot) {
  ready_.push_back(slot);
  std::push_heap(ready_.begin(), ready_.end(), [this](uint32_t a, uint32_t b) { return states_[a].node->sequence() < states_[b].node->sequence(); });
}

void Engine::seed() {
  for (size_t i = 0; i < request_.roots.size(); ++i) {
    if (root_slots_[i] == kNone) continue;
    const Ref<Tensor>& root = request_.roots[i];
    Ref<Tensor> grad = request_.root_grads[i];
    if (grad) {
      check_gradient(*grad, *root->layout, "the gradient given for output " + std::to_string(i));
    } else {
      grad = ones_like(*root);
    }
    const uint32_t index = gradient_edge(*root).index;
    add_gradient(grads_[states_[root_slots_[i]].first_grad + index], std::move(grad), request_.create_graph);
  }
}

bool Engine::is_blocked(const Edge& edge) const {
  return std::ranges::any_of(blocked_, [&](const Edge& b) { return b.node == edge.node && b.index == edge.index; });
}

void Engine::finish_gradients(State& state, std::span<Ref<Tensor>> grads) {
  NodeExtras* extra = state.node->extras_if_any();
  if (extra && !extra->hooks.empty()) {
    std::erase_if(extra->hooks, [](const NodeExtras::Hook& h) { return !h.hook->active; });
    const auto hooks = extra->hooks;  // a hook may add and remove hooks
    for (const auto& h : hooks) {
      Ref<Tensor>& grad = grads[h.index];
      if (!grad) continue;
      if (Ref<Tensor> replacement = h.hook->call(grad)) {
        const SelectedRows* selected = selected_rows(*grad);
        if (!selected || !selected_rows(*replacement)) check_gradient(*replacement, *grad->layout, "the gradient that a hook of " + state.node->name() + " returned");
        if (selected && !selected_rows(*replacement)) {  // other values for the same rows
          replacement = alias_tensor(*replacement);
          meta_of(*replacement).selected = std::make_unique<SelectedRows>(selected->rows, selected->height);
        }
        grad = std::move(replacement);
      }
    }
  }
  if (extra) {
    for (EagerMeta* meta : extra->retained) {
      const Ref<Tensor>& grad = grads[meta->index];
      if (!grad) continue;
      meta->grad = producer(*grad) ? grad : alias_tensor(*grad);
      meta->grad->stop_gradient = false;
    }
  }
}

void Engine::run_node(uint32_t slot) {
  const Ref<Node> node = states_[slot].node;
  const uint32_t count = node->output_count();
  std::vector<Ref<Tensor>> grads(count);
  for (uint32_t i = 0; i < count; ++i) grads[i] = std::move(grads_[states_[slot].first_grad + i]);
  const bool has_gradient = std::ranges::any_of(grads, [](const Ref<Tensor>& g) { return static_cast<bool>(g); });
  if (has_gradient) finish_gradients(states_[slot], grads);
  if (states_[slot].is_captured) {
    const auto mine = std::ranges::equal_range(captured_, slot, {}, &Captured::slot);
    for (const Captured& c : mine) results_[c.input] = grads[c.index];
  }

  const std::span<Edge> edges = node->edges();
  std::vector<Ref<Tensor>> input_grads(edges.size());
  if (has_gradient && states_[slot].must_run) {
    std::string profile_name;
    const ProfileScope profile([&] { return (profile_name = node->name()).c_str(); });
    node->backward(grads, input_grads, request_.create_graph);
    if (!request_.retain_graph) node->release_saved();
  }
  grads.clear();
  send(*node, edges, input_grads);
}

void Engine::send(const Node& from, std::span<Edge> edges, std::span<Ref<Tensor>> input_grads) {
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    if (!edge.node) continue;
    const uint32_t slot = find(edge.node.get());
    State& state = states_[slot];
    if (input_grads[i] && !(blocked_.size() && is_blocked(edge))) {
      // Only a leaf keeps rows of a table; every other node computes with the whole of it.
      if (selected_rows(*input_grads[i]) && edge.node->kind() != Node::Kind::kLeaf) input_grads[i] = eager_host.rows_to_dense(input_grads[i]);
      if (const Layout* expected = edge.node->output_layout(edge.index); expected && input_grads[i]->layout.get() != expected) {
        check_gradient(*input_grads[i], *expected, "the gradient that " + from.name() + " computes for input " + std::to_string(i) + from.where(), edge.node->takes_any_dtype());
      }
      add_gradient(grads_[state.first_grad + edge.index], std::move(input_grads[i]), request_.create_graph);
    }
    if (--state.waits_for == 0) push_ready(slot);
  }
}

std::vector<Ref<Tensor>> Engine::run() {
  GradModeScope mode(request_.create_graph);
  for (const auto& t : request_.blocked) {
    if (meta_if_any(*t) && meta_if_any(*t)->node) blocked_.push_back(gradient_edge(*t));
  }
  discover();
  mark_wanted();
  seed();
  for (uint32_t slot = 0; slot < states_.size(); ++slot) {
    if (!states_[slot].waits_for) push_ready(slot);
  }
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end(), [this](uint32_t a, uint32_t b) { return states_[a].node->sequence() < states_[b].node->sequence(); });
    const uint32_t slot = ready_.back();
    ready_.pop_back();
    run_node(slot);
  }
  if (!request_.allow_unused) {
    for (size_t i = 0; i < results_.size(); ++i) {
      if (results_[i]) continue;
      throw Error(ErrorKind::kValue, "grad(): input " + std::to_string(i) + " (" + layout_text(*request_.inputs[i]->layout) + ") does not take part in the outputs" +
                                         (request_.inputs[i]->stop_gradient ? ": it has stop_gradient=True" : "") +
                                         ".\n  Pass allow_unused=True to get None for it.");
    }
  }
  return std::move(results_);
}

std::vector<Ref<Tensor>> run_backward(const BackwardRequest& request) { return Engine(request).run(); }

}  // namespace sampan
