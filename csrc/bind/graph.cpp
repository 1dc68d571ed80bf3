// The graph from Python: running it backwards, nodes written in Python, hooks.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <unordered_set>

#include "base/error.h"
#include "bind/convert.h"
#include "bind/eager.h"
#include "bind/exit.h"
#include "bind/op_call.h"
#include "eager/engine.h"
#include "eager/tape.h"

namespace sampan {
namespace {

PyObject* add_op = nullptr;  // owned

nb::object wrap_or_none(const Ref<Tensor>& t) { return t ? take(wrap(t)) : nb::none(); }

Ref<Tensor> tensor_or_null(nb::handle o) { return o.is_none() ? Ref<Tensor>() : Ref<Tensor>(&to_tensor(o)); }

// None, a Tensor, or a list or tuple of Tensors and None.
std::vector<Ref<Tensor>> tensor_list(nb::handle o) {
  std::vector<Ref<Tensor>> tensors;
  if (nb::isinstance<nb::tuple>(o) || nb::isinstance<nb::list>(o)) {
    for (nb::handle item : o) tensors.push_back(tensor_or_null(item));
  } else if (!o.is_none()) {
    tensors.push_back(tensor_or_null(o));
  }
  return tensors;
}

std::vector<Ref<Tensor>> required_tensors(nb::handle o, const char* what) {
  std::vector<Ref<Tensor>> tensors = tensor_list(o);
  for (const auto& t : tensors) {
    if (!t) throw Error(ErrorKind::kType, std::string(what) + " must be Tensors, not None");
  }
  if (tensors.empty()) throw Error(ErrorKind::kValue, std::string(what) + " must not be empty");
  return tensors;
}

void set_roots(BackwardRequest& request, nb::handle tensors, nb::handle grads, const char* tensors_name, const char* grads_name) {
  request.roots = required_tensors(tensors, tensors_name);
  request.root_grads = tensor_list(grads);
  if (grads.is_none()) request.root_grads.resize(request.roots.size());
  if (request.root_grads.size() != request.roots.size()) {
    throw Error(ErrorKind::kValue, std::string(grads_name) + " has " + std::to_string(request.root_grads.size()) + " entries, and " + tensors_name + " " +
                                       std::to_string(request.roots.size()));
  }
}

void backward(nb::handle tensors, nb::handle grad_tensors, bool retain_graph, bool create_graph) {
  BackwardRequest request;
  set_roots(request, tensors, grad_tensors, "backward(): tensors", "backward(): grad_tensors");
  request.retain_graph = retain_graph || create_graph;
  request.create_graph = create_graph;
  run_backward(request);
}

nb::list grad(nb::handle outputs, nb::handle inputs, nb::handle grad_outputs, nb::object retain_graph, bool create_graph, bool allow_unused, nb::handle no_grad_vars) {
  BackwardRequest request;
  set_roots(request, outputs, grad_outputs, "grad(): outputs", "grad(): grad_outputs");
  request.inputs = required_tensors(inputs, "grad(): inputs");
  for (auto& t : tensor_list(no_grad_vars)) {
    if (t) request.blocked.push_back(std::move(t));
  }
  request.retain_graph = retain_graph.is_none() ? create_graph : nb::cast<bool>(retain_graph);
  request.create_graph = create_graph;
  request.allow_unused = allow_unused;
  nb::list result;
  for (const auto& t : run_backward(request)) result.append(wrap_or_none(t));
  return result;
}

class PythonHook final : public GradHook {
 public:
  explicit PythonHook(nb::object function) : function_(std::move(function)) {}
  Ref<Tensor> call(const Ref<Tensor>& gradient) override {
    const nb::object function = function_;  // it may remove itself
    const nb::object result = stopping_at_exit([&] { return function(take(wrap(gradient))); });
    if (result.is_none()) return nullptr;
    Tensor* t = unwrap(result.ptr());
    if (!t) throw Error(ErrorKind::kType, std::string("a gradient hook must return a Tensor or None, not ") + Py_TYPE(result.ptr())->tp_name);
    return Ref<Tensor>(t);
  }
  int visit_python(VisitObject visit, void* arg) const override { return function_.is_valid() ? visit(function_.ptr(), arg) : 0; }
  void drop() { function_.reset(); }

 private:
  nb::object function_;
};

struct HookHandle {
  Ref<GradHook> hook;
  // False when it was removed before.
  bool remove() {
    const bool was_active = hook && hook->active;
    if (hook) hook->active = false;
    hook = nullptr;
    return was_active;
  }
};

struct NodeHandle {
  Ref<Node> node;
};

struct PackedObject final : RefCounted {
  explicit PackedObject(nb::object o) : object(std::move(o)) {}
  nb::object object;
};

class PythonSavedHooks final : public SavedHooks {
 public:
  PythonSavedHooks(nb::object pack, nb::object unpack) : pack_(std::move(pack)), unpack_(std::move(unpack)) {}
  Ref<RefCounted> pack(Ref<Tensor> tensor) override { return make_ref<PackedObject>(stopping_at_exit([&] { return pack_(take(wrap(std::move(tensor)))); })); }
  Ref<Tensor> unpack(RefCounted& packed) override {
    const nb::object result = stopping_at_exit([&] { return unpack_(static_cast<PackedObject&>(packed).object); });
    Tensor* t = unwrap(result.ptr());
    if (!t) throw Error(ErrorKind::kType, std::string("the unpack hook must return a Tensor, not ") + Py_TYPE(result.ptr())->tp_name);
    return Ref<Tensor>(t);
  }

 private:
  nb::object pack_, unpack_;
};

// A node whose backward is a Python function: function(*grads), or function(saved, *grads) when tensors are saved; None where nothing is.
class PythonNode final : public Node {
 public:
  PythonNode(std::string name, nb::object function) : Node(Kind::kOther), name_(std::move(name)), function_(std::move(function)) {}

  void connect(const std::vector<Ref<Tensor>>& inputs, const std::vector<Ref<Tensor>>& outputs, nb::handle saved) {
    for (const auto& t : inputs) edges_.push_back(t && wants_grad(*t) ? gradient_edge(*t) : Edge());
    for (const auto& t : outputs) layouts_.push_back(t ? t->layout : nullptr);
    for (nb::handle o : saved) save(o, outputs);
    if (record_call_sites && eager_host.call_site) {
      CallSite& site = extras().call_site;
      site.file = eager_host.call_site(&site.line);
    }
    for (size_t j = 0; j < outputs.size(); ++j) {
      Tensor* t = outputs[j].get();
      if (!t || !is_differentiable(t->dtype())) continue;
      if (wants_grad(*t) && !producer(*t)) {
        throw Error(ErrorKind::kValue, name_ + ": output " + std::to_string(j) + " is a leaf tensor that wants a gradient, and cannot be changed in place");
      }
      if (EagerMeta* meta = meta_if_any(*t)) meta->view = nullptr;  // what a forward returns has the history that its backward describes
      set_history(*t, Ref<Node>(this), static_cast<uint32_t>(j));
    }
  }

  std::string name() const override { return name_; }
  uint32_t output_count() const override { return static_cast<uint32_t>(layouts_.size()); }
  const Layout* output_layout(uint32_t i) const override { return layouts_[i].get(); }
  std::span<Edge> edges() override { return edges_; }
  bool takes_any_dtype() const override { return true; }

  void backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads, bool) override {
    if (freed_) raise_freed(name_ + where());
    nb::list args, saved;
    for (const auto& s : saved_) saved.append(unpack(s));
    if (!saved_.empty()) args.append(nb::tuple(saved));
    for (const auto& g : grads) args.append(wrap_or_none(g));
    const nb::object function = function_;
    const nb::object result = stopping_at_exit([&] { return function(*args); });
    std::vector<Ref<Tensor>> made;
    if (nb::isinstance<nb::tuple>(result) || nb::isinstance<nb::list>(result)) {
      for (nb::handle o : result) made.push_back(one_gradient(o));
    } else {
      made.push_back(one_gradient(result));
    }
    if (made.size() != input_grads.size() && !(made.size() == 1 && !made[0])) {
      throw Error(ErrorKind::kValue, name_ + ": backward must return one gradient for each of its " + std::to_string(input_grads.size()) + " input tensors, and returned " +
                                         std::to_string(made.size()) + where());
    }
    for (size_t i = 0; i < made.size() && i < input_grads.size(); ++i) input_grads[i] = std::move(made[i]);
  }

  void release_saved() override {
    if (saved_.empty()) return;
    freed_ = true;
    saved_.clear();
  }

  int visit_python(VisitObject visit, void* arg) const override {
    if (function_.is_valid()) {
      if (const int stop = visit(function_.ptr(), arg)) return stop;
    }
    return Node::visit_python(visit, arg);
  }

 private:
  struct Saved {
    SavedTensor tensor;
    Edge history;
    int32_t own_output = -1;  // its history is this node, which must not own itself
    Ref<SavedHooks> hooks;
    Ref<RefCounted> packed;
    bool is_none = false;
  };

  void save(nb::handle o, const std::vector<Ref<Tensor>>& outputs) {
    Saved s;
    if (o.is_none()) {
      s.is_none = true;
      saved_.push_back(std::move(s));
      return;
    }
    Tensor& t = to_tensor(o);
    for (size_t j = 0; j < outputs.size(); ++j) {
      if (outputs[j].get() == &t) s.own_output = static_cast<int32_t>(j);
    }
    if (s.own_output < 0 && wants_grad(t)) s.history = gradient_edge(t);
    if (eager_state.saved_hooks) {
      s.hooks = Ref<SavedHooks>(eager_state.saved_hooks);
      s.packed = s.hooks->pack(alias_tensor(t));
    } else {
      s.tensor.set(t);
    }
    saved_.push_back(std::move(s));
  }

  nb::object unpack(const Saved& s) {
    if (s.is_none) return nb::none();
    Ref<Tensor> t;
    if (s.packed) {
      t = s.hooks->unpack(*s.packed);
    } else {
      if (s.tensor.is_stale()) s.tensor.raise_stale(name_ + ": a tensor that it saved" + where());
      t = s.tensor.get();
    }
    const Edge edge = s.own_output >= 0 ? Edge{Ref<Node>(this), static_cast<uint32_t>(s.own_output)} : s.history;
    return take(wrap(alias_with_history(*t, is_differentiable(t->dtype()) ? edge : Edge())));
  }

  Ref<Tensor> one_gradient(nb::handle o) const {
    if (o.is_none()) return nullptr;
    Tensor* t = unwrap(o.ptr());
    if (!t) throw Error(ErrorKind::kType, name_ + ": backward must return Tensors or None, not " + Py_TYPE(o.ptr())->tp_name + where());
    return Ref<Tensor>(t);
  }

  std::string name_;
  nb::object function_;
  std::vector<Edge> edges_;
  std::vector<Ref<const Layout>> layouts_;
  std::vector<Saved> saved_;
  bool freed_ = false;
};

NodeHandle make_python_node(std::string name, nb::object function, nb::handle inputs, nb::handle outputs, nb::handle saved) {
  Ref<PythonNode> node = make_ref<PythonNode>(std::move(name), std::move(function));
  const std::vector<Ref<Tensor>> made = tensor_list(outputs);
  node->connect(tensor_list(inputs), made, saved);
  for (const auto& t : made) {
    if (t && t->python_object) track_tensor(static_cast<PyObject*>(t->python_object));
  }
  return {node};
}

Ref<Tensor> add_tensors(const Ref<Tensor>& a, const Ref<Tensor>& b) {
  const nb::object left = take(wrap(a)), right = take(wrap(b));
  PyObject* args[] = {left.ptr(), right.ptr()};
  const nb::object sum = take(call_op(add_op, args, 2));
  return Ref<Tensor>(&to_tensor(sum));
}

nb::object set_add_op(nb::object op) {
  if (!op.is_none() && !is_op(op.ptr())) throw Error(ErrorKind::kType, "set_add_op: an Op is needed");
  eager_host.add = op.is_none() ? nullptr : add_tensors;
  return exchange_registered(add_op, std::move(op));
}

nb::object& rows_function(bool is_sum) {
  static auto* functions = new nb::object[2];
  return functions[is_sum];
}

Ref<Tensor> add_rows(const Ref<Tensor>& a, const Ref<Tensor>& b) { return Ref<Tensor>(&to_tensor(rows_function(true)(take(wrap(a)), take(wrap(b))))); }
Ref<Tensor> rows_to_dense(const Ref<Tensor>& rows) { return Ref<Tensor>(&to_tensor(rows_function(false)(take(wrap(rows))))); }

void set_rows_functions(nb::object sum, nb::object to_dense) {
  rows_function(true) = std::move(sum);
  rows_function(false) = std::move(to_dense);
  eager_host.add_rows = add_rows;
  eager_host.rows_to_dense = rows_to_dense;
}

nb::object make_selected_rows(nb::handle values, nb::handle rows, int64_t height) {
  const Tensor &given = to_tensor(values), &index = to_tensor(rows);
  if (index.dtype() != DType::k_int64 || index.rank() != 1 || given.rank() < 1 || given.layout->shape[0] != index.layout->shape[0])
    throw Error(ErrorKind::kShape, "selected rows are values [n, ...] and int64 rows [n], not " + layout_text(*given.layout) + " and " + layout_text(*index.layout));
  Ref<Tensor> made = alias_tensor(given);
  meta_of(*made).selected = std::make_unique<SelectedRows>(Ref<Tensor>(&to_tensor(rows)), height);
  return take(wrap(std::move(made)));
}

nb::object selected_rows_of(nb::handle tensor) {
  const SelectedRows* selected = selected_rows(to_tensor(tensor));
  return selected ? nb::make_tuple(take(wrap(selected->rows)), selected->height) : nb::object(nb::none());
}

// Of a sequence of tensors and None: the positions of those that hold only some rows.
nb::list selected_places(nb::handle tensors) {
  nb::list places;
  Py_ssize_t at = 0;
  for (nb::handle item : tensors) {
    const Tensor* t = unwrap(item.ptr());
    if (t && selected_rows(*t)) places.append(at);
    ++at;
  }
  return places;
}

std::string internal_prefix;  // frames of files that begin with this are the framework's own

const char* find_call_site(uint32_t* line) {
  static std::unordered_set<std::string> files;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  const char* found = nullptr;
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    if (!file) PyErr_Clear();
    const bool is_internal = file && !internal_prefix.empty() && std::string_view(file).starts_with(internal_prefix);
    if (file && !is_internal) {
      found = files.emplace(file).first->c_str();
      *line = static_cast<uint32_t>(PyFrame_GetLineNumber(frame));
    }
    Py_DECREF(code);
    PyFrameObject* outer = found ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  return found;
}

// Hooks for saved tensors nest; each thread has its own stack, linked through the hooks.
void push_saved_hooks(nb::object pack, nb::object unpack) {
  Ref<PythonSavedHooks> hooks = make_ref<PythonSavedHooks>(std::move(pack), std::move(unpack));
  hooks->outer = eager_state.saved_hooks;
  eager_state.saved_hooks = hooks.detach();
}

void pop_saved_hooks() {
  if (!eager_state.saved_hooks) throw Error(ErrorKind::kRuntime, "pop_saved_tensor_hooks: none is pushed in this thread");
  const Ref<SavedHooks> last = Ref<SavedHooks>::adopt(eager_state.saved_hooks);
  eager_state.saved_hooks = last->outer;
}

nb::list next_nodes(const NodeHandle& self) {
  nb::list nodes;
  for (const Edge& edge : self.node->edges()) {
    if (edge.node) nodes.append(wrap_node(edge.node));
  }
  return nodes;
}

}  // namespace

Ref<GradHook> python_hook(nb::object function) {
  if (!PyCallable_Check(function.ptr())) throw Error(ErrorKind::kType, std::string("a hook must be callable, not ") + Py_TYPE(function.ptr())->tp_name);
  return make_ref<PythonHook>(std::move(function));
}

nb::object hook_handle(Ref<GradHook> hook) { return nb::cast(HookHandle{std::move(hook)}); }

nb::object wrap_node(Ref<Node> node) { return nb::cast(NodeHandle{std::move(node)}); }

void bind_graph(nb::module_& m) {
  eager_host.call_site = find_call_site;

  nb::class_<HookHandle>(m, "HookHandle", "Removes a hook.").def("remove", &HookHandle::remove, "True the first time.");
  nb::class_<NodeHandle>(m, "GradNode", "A node of the graph that backward runs through.")
      .def("name", [](const NodeHandle& self) { return self.node->name(); })
      .def_prop_ro("next_functions", next_nodes, "The nodes that its gradients go to.")
      .def_prop_ro("call_site",
                   [](const NodeHandle& self) -> nb::object {
                     const NodeExtras* extra = self.node->extras_if_any();
                     return extra && extra->call_site.file ? nb::make_tuple(extra->call_site.file, extra->call_site.line) : nb::object(nb::none());
                   })
      .def("__eq__", [](const NodeHandle& self, nb::handle other) {
        NodeHandle* o = nullptr;
        return nb::try_cast(other, o) && o && o->node == self.node;
      })
      .def("__hash__", [](const NodeHandle& self) { return reinterpret_cast<Py_hash_t>(self.node.get()) >> 4; })
      .def("__repr__", [](const NodeHandle& self) { return "<GradNode " + self.node->name() + ">"; });

  m.def("PyNode", make_python_node, nb::arg("name"), nb::arg("function"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("saved") = nb::tuple(),
        "Makes outputs, computed without recording, the results of a node whose backward is function(*grads), or function(saved, *grads) when it saves tensors.");
  m.def("backward", backward, nb::arg("tensors"), nb::arg("grad_tensors") = nb::none(), nb::arg("retain_graph") = false, nb::arg("create_graph") = false);
  m.def("grad", grad, nb::arg("outputs"), nb::arg("inputs"), nb::arg("grad_outputs") = nb::none(), nb::arg("retain_graph") = nb::none(),
        nb::arg("create_graph") = false, nb::arg("allow_unused") = false, nb::arg("no_grad_vars") = nb::none());
  m.def("set_add_op", set_add_op, nb::arg("op").none(), "The Op that adds two gradients where no native loop does. Returns what was.");
  m.def("set_rows_functions", set_rows_functions, nb::arg("sum"), nb::arg("to_dense"), "sum(a, b) of gradients of which one at least holds only some rows, and their dense form.");
  m.def("make_selected_rows", make_selected_rows, nb::arg("values"), nb::arg("rows"), nb::arg("height"), "A tensor over the values' memory that stands for rows of a table.");
  m.def("selected_rows_of", selected_rows_of, nb::arg("tensor"), "(rows, height), or None for a dense tensor.");
  m.def("selected_places", selected_places, nb::arg("tensors"), "The positions of tensors that hold only some rows.");
  m.def("push_saved_tensor_hooks", push_saved_hooks, nb::arg("pack"), nb::arg("unpack"));
  m.def("pop_saved_tensor_hooks", pop_saved_hooks);
  m.def("grad_enabled", [] { return eager_state.grad_enabled; });
  m.def("set_grad_enabled", [](bool enabled) { return std::exchange(eager_state.grad_enabled, enabled); }, nb::arg("enabled"), "For this thread; returns what was.");
  m.def("set_record_call_sites", [](bool on) { record_call_sites = on; }, nb::arg("on"));
  m.def("set_internal_prefix", [](std::string prefix) { internal_prefix = std::move(prefix); }, nb::arg("prefix"),
        "The folder whose frames are not the user's, for call sites.");
}

}  // namespace sampan
