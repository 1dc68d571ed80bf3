// Eager dispatch from Python: the state of a thread, the caches, the profiler.
#include "bind/eager.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <mutex>

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
    std::string name;
    int64_t begin_ns, end_ns;
    uint64_t thread;
  };
  void record(const char* name, int64_t begin_ns, int64_t end_ns) override {
    const std::lock_guard lock(mutex_);
    calls_.push_back({name, begin_ns, end_ns, PyThread_get_thread_ident()});
  }
  std::vector<Call> take_calls() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, {});
  }

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
  nb::list calls;
  for (const auto& c : recorder().take_calls()) calls.append(nb::make_tuple(c.name, c.begin_ns, c.end_ns, c.thread));
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
      [](bool instructions) {
        recorder().take_calls();
        profile_sink.store(&recorder());
        if (instructions) instruction_sink.store(&recorder());
      },
      nb::arg("instructions") = false, "Record every call; with instructions, also those of Plans, named `kernel ...`, `native ...` or `host ...`.");
  m.def("stop_profile", stop_profile, "(op, begin_ns, end_ns, thread) of every call since start_profile().");
}

}  // namespace sampan
