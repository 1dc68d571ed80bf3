// Eager dispatch from Python: the state of a thread, the caches, the profiler.
#include "bind/eager.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <mutex>

#include "base/allocator.h"
#include "base/error.h"
#include "bind/bind.h"
#include "bind/convert.h"
#include "bind/op_call.h"
#include "exec/profile.h"

namespace sampan {
namespace {

// Collects every call until it is taken. Ops run on several threads; names are copied because an op may die.
class CallRecorder final : public ProfileSink {
 public:
  struct Call {
    std::string name, detail;
    int64_t begin_ns, end_ns, begin_bytes, end_bytes;
    uint64_t thread;
  };
  void record(const ProfileRecord& r) override {
    const std::lock_guard lock(mutex_);
    calls_.push_back({r.name, r.detail, r.begin_ns, r.end_ns, r.begin_bytes, r.end_bytes, PyThread_get_thread_ident()});
  }
  int64_t allocated_bytes() const override { return with_memory.load(std::memory_order_relaxed) ? memory_stats().allocated_bytes : 0; }
  bool wants_details() const override { return with_shapes.load(std::memory_order_relaxed); }
  std::vector<Call> take_calls() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, {});
  }

  std::atomic<bool> with_memory{false}, with_shapes{false};

 private:
  std::mutex mutex_;
  std::vector<Call> calls_;
};

CallRecorder& recorder() {
  static auto* instance = new CallRecorder();  // a thread may still be inside it when the process ends
  return *instance;
}

nb::list stop_profile() {
  profile_sink.store(nullptr);
  instruction_sink.store(nullptr);
  const bool is_detailed = recorder().with_memory || recorder().with_shapes;
  nb::list calls;
  for (const auto& c : recorder().take_calls()) {
    if (is_detailed) {
      calls.append(nb::make_tuple(c.name, c.begin_ns, c.end_ns, c.thread, c.begin_bytes, c.end_bytes, c.detail));
    } else {
      calls.append(nb::make_tuple(c.name, c.begin_ns, c.end_ns, c.thread));
    }
  }
  return calls;
}

nb::object set_symbolic_type(nb::object type) {
  if (!type.is_none() && !PyType_Check(type.ptr())) throw Error(ErrorKind::kType, "set_symbolic_type: a class is needed");
  PyObject* slot = reinterpret_cast<PyObject*>(symbolic_type);
  nb::object old = exchange_registered(slot, std::move(type));
  symbolic_type = reinterpret_cast<PyTypeObject*>(slot);
  return old;
}

}  // namespace

void bind_eager(nb::module_& m) {
  // Ops, their entries and what those hold live until the process ends; that is no leak.
  nb::set_leak_warnings(false);
  if (!add_op_type(m.ptr())) throw nb::python_error();
  bind_entry(m);
  bind_graph(m);
  bind_autograd_tensor();
  bind_operators(m);

  m.def("set_context", [](uint64_t context) { return std::exchange(eager_state.context, context); }, nb::arg("context"),
        "The number of everything else that signatures depend on, for this thread; returns what was.");
  m.def("context", [] { return eager_state.context; });
  m.def("set_tracing", [](bool on) { return std::exchange(eager_state.tracing, on); }, nb::arg("on"),
        "Sends every call of this thread to Op.static; returns what was.");
  m.def("tracing", [] { return eager_state.tracing; });
  m.def("set_symbolic_type", set_symbolic_type, nb::arg("type").none(), "Calls with an instance of this class, in lists too, go to Op.static. Returns what was.");
  m.def("set_cache_limit", SignatureTable::set_limit, nb::arg("calls_per_op"));
  m.def("cached_calls", signature_count, "How many signatures are cached, of all ops.");
  m.def("clear_caches", clear_interned_objects, "Forgets every signature.");
  m.def(
      "start_profile",
      [](bool instructions, bool memory, bool shapes) {
        recorder().take_calls();
        recorder().with_memory = memory;
        recorder().with_shapes = shapes;
        profile_sink.store(&recorder());
        if (instructions) instruction_sink.store(&recorder());
      },
      nb::arg("instructions") = false, nb::arg("memory") = false, nb::arg("shapes") = false,
      "Record every call; with instructions, also those of Plans, named `kernel ...`, `native ...` or `host ...`.");
  m.def("stop_profile", stop_profile,
        "(op, begin_ns, end_ns, thread) of every call since start_profile(); with memory or shapes also the bytes allocated before and after, and the "
        "operands.");
}

}  // namespace sampan
