// Threads, memory and the processor.
#include <dnnl.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "base/allocator.h"
#include "bind/bind.h"
#include "exec/parallel.h"

namespace sampan {

namespace {

namespace nb = nanobind;

nb::dict stats_dict() {
  const MemoryStats s = memory_stats();
  nb::dict d;
  d["allocated_bytes"] = s.allocated_bytes;
  d["reserved_bytes"] = s.reserved_bytes;
  d["peak_allocated_bytes"] = s.peak_allocated_bytes;
  d["peak_reserved_bytes"] = s.peak_reserved_bytes;
  d["allocation_count"] = s.allocation_count;
  d["system_count"] = s.system_count;
  d["limit_bytes"] = s.limit_bytes;
  return d;
}

const char* onednn_isa() {
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41: return "sse41";
    case dnnl_cpu_isa_avx: return "avx";
    case dnnl_cpu_isa_avx2: return "avx2";
    case dnnl_cpu_isa_avx2_vnni: return "avx2_vnni";
    case dnnl_cpu_isa_avx512_core: return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni: return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16: return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_fp16: return "avx512_core_fp16";
    case dnnl_cpu_isa_avx512_core_amx: return "avx512_core_amx";
    default: return "default";
  }
}

nb::dict cpu_info() {
  nb::list flags;
#if defined(__x86_64__)
#define SAMPAN_FLAG(name) \
  if (__builtin_cpu_supports(name)) flags.append(name)
  SAMPAN_FLAG("sse4.2");
  SAMPAN_FLAG("avx");
  SAMPAN_FLAG("f16c");
  SAMPAN_FLAG("fma");
  SAMPAN_FLAG("avx2");
  SAMPAN_FLAG("avx512f");
  SAMPAN_FLAG("avx512bw");
  SAMPAN_FLAG("avx512vl");
  SAMPAN_FLAG("avx512vnni");
  SAMPAN_FLAG("avx512bf16");
#undef SAMPAN_FLAG
#elif defined(__aarch64__)
  flags.append("neon");
#endif
  const dnnl_version_t* v = dnnl_version();
  nb::dict d;
  d["flags"] = flags;
  d["onednn_version"] = nb::make_tuple(v->major, v->minor, v->patch);
  d["onednn_isa"] = onednn_isa();
  d["threads"] = num_threads();
  return d;
}

}  // namespace

void bind_process(nb::module_& m) {
  m.def("set_num_threads", set_num_threads, nb::arg("count"), "Use this many threads; a forked child always uses one.");
  m.def("num_threads", num_threads, "How many threads large work is shared by.");
  m.def("memory_stats", stats_dict, "Bytes allocated, reserved, their peaks and the number of requests, of the whole process.");
  m.def("reset_peak_memory", reset_peak_memory, "Start the peaks again from what is in use now.");
  m.def("set_memory_limit", set_memory_limit, nb::arg("limit_bytes"), "Refuse to reserve more than this; 0: the memory of the machine or its control group.");
  m.def("empty_cache", empty_cache, "Give cached large blocks back to the system.");
  m.def("cpu_info", cpu_info, "The instruction sets of this processor, oneDNN's version and what it uses, and the number of threads.");
}

}  // namespace sampan
