#include "kernels/onednn.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

#include "exec/parallel.h"

namespace sampan::kernels {

const dnnl::engine& onednn_engine() {
  // Never destroyed: primitives in static caches may outlive it otherwise.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::memory::data_type onednn_type(DType t) {
  switch (t) {
    case DType::k_float32: return dnnl::memory::data_type::f32;
    case DType::k_float16: return dnnl::memory::data_type::f16;
    case DType::k_bfloat16: return dnnl::memory::data_type::bf16;
    case DType::k_int32: return dnnl::memory::data_type::s32;
    case DType::k_int8: return dnnl::memory::data_type::s8;
    case DType::k_uint8: return dnnl::memory::data_type::u8;
    default: return dnnl::memory::data_type::undef;
  }
}

dnnl::memory::desc onednn_desc(DType t, const Dims& shape, const Dims& strides) { return {shape, onednn_type(t), strides}; }

void append_post_ops(const std::vector<EpilogueStep>& steps, const std::vector<dnnl::memory::desc>& operands, dnnl::post_ops* to) {
  using dnnl::algorithm;
  size_t next = 0;
  for (const EpilogueStep& s : steps) {
    const float alpha = static_cast<float>(s.alpha), beta = static_cast<float>(s.beta);
    switch (s.kind) {
      case StepKind::kRelu:
        // Its relu makes 0 of NaN, its elu does not; the second step turns a negative zero round.
        to->append_eltwise(algorithm::eltwise_elu, 0, 0);
        to->append_eltwise(algorithm::eltwise_linear, 1, 0);
        break;
      case StepKind::kSqrt: to->append_eltwise(algorithm::eltwise_sqrt, 0, 0); break;
      case StepKind::kSquare: to->append_eltwise(algorithm::eltwise_square, 0, 0); break;
      case StepKind::kAbs: to->append_eltwise(algorithm::eltwise_abs, 0, 0); break;
      case StepKind::kLinear: to->append_eltwise(algorithm::eltwise_linear, alpha, beta); break;
      case StepKind::kAdd: to->append_binary(algorithm::binary_add, operands[next++]); break;
      case StepKind::kMul: to->append_binary(algorithm::binary_mul, operands[next++]); break;
    }
  }
}

std::vector<int> binary_post_ops(const dnnl::primitive_attr& attr) {
  const dnnl::post_ops post = attr.get_post_ops();
  std::vector<int> places;
  for (int i = 0; i < post.len(); ++i)
    if (post.kind(i) == dnnl::primitive::kind::binary) places.push_back(i);
  return places;
}

bool is_reference(const char* implementation) { return std::strstr(implementation, "ref") != nullptr; }

int Sequence::current_threads() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

int Sequence::operand(size_t buffer, const dnnl::memory::desc& desc) {
  memories_.push_back({desc, buffer, 0});
  return static_cast<int>(memories_.size()) - 1;
}

int Sequence::temporary(const dnnl::memory::desc& desc) {
  memories_.push_back({desc, kScratch, temporary_bytes_});
  temporary_bytes_ += align64(desc.get_size());
  return static_cast<int>(memories_.size()) - 1;
}

void Sequence::add(const dnnl::primitive& primitive, std::vector<std::pair<int, int>> args, const dnnl::memory::desc& scratchpad) {
  Step step{primitive, std::move(args), -1};
  if (const size_t size = scratchpad.get_size()) {
    step.scratchpad = static_cast<int>(memories_.size());
    step.args.push_back({DNNL_ARG_SCRATCHPAD, step.scratchpad});
    memories_.push_back({scratchpad, kScratch, kScratch});  // all scratchpads share the space after the temporaries
    scratchpad_bytes_ = std::max(scratchpad_bytes_, align64(size));
  }
  steps_.push_back(std::move(step));
}

int Sequence::reordered(int memory, const dnnl::memory::desc& wanted) {
  if (memories_[static_cast<size_t>(memory)].desc == wanted) return memory;
  const int to = temporary(wanted);
  reorder(memory, to);
  return to;
}

void Sequence::reorder(int from, int to) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc pd(onednn_engine(), memories_[static_cast<size_t>(from)].desc, onednn_engine(), memories_[static_cast<size_t>(to)].desc, attr);
  add(dnnl::reorder(pd), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, pd.scratchpad_desc());
}

class Sequence::Context {
 public:
  std::vector<dnnl::memory> memories;
  std::vector<std::vector<dnnl_exec_arg_t>> args;
  dnnl::stream stream{onednn_engine()};
};

std::unique_ptr<Sequence::Context> Sequence::make_context() const {
  auto context = std::make_unique<Context>();
  for (const Memory& m : memories_) context->memories.emplace_back(m.desc, onednn_engine(), nullptr);
  for (const Step& s : steps_) {
    auto& list = context->args.emplace_back();
    for (const auto& [arg, memory] : s.args) list.push_back({arg, context->memories[static_cast<size_t>(memory)].get()});
  }
  return context;
}

void Sequence::run(Context& context, char* const* buffers, char* scratch) const {
  for (size_t i = 0; i < memories_.size(); ++i) {
    const Memory& m = memories_[i];
    char* at = m.buffer != kScratch ? buffers[m.buffer] : scratch + (m.offset == kScratch ? temporary_bytes_ : m.offset);
    dnnl_memory_set_data_handle(context.memories[i].get(), at);
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto& args = context.args[i];
    const dnnl_status_t status = dnnl_primitive_execute(steps_[i].primitive.get(), context.stream.get(), static_cast<int>(args.size()), args.data());
    if (status != dnnl_success) throw Error(ErrorKind::kRuntime, "oneDNN could not run a primitive (status " + std::to_string(status) + ")");
  }
}

namespace {

class SizeOp final : public NativeOp {
 public:
  explicit SizeOp(size_t bytes) : bytes_(static_cast<int64_t>(bytes)) {}
  void run(char* const* buffers, char*) const override { std::memcpy(buffers[1], &bytes_, sizeof bytes_); }

 private:
  int64_t bytes_;
};

}  // namespace

std::unique_ptr<NativeOp> make_size(const CallReader& call, size_t bytes) {
  if (call.output(0).dtype != DType::k_int64 || call.output(0).numel != 1) call.fail(ErrorKind::kShape, "the output is one int64");
  return std::make_unique<SizeOp>(bytes);
}

void check_packed_output(const CallReader& call, size_t bytes) {
  if (bytes == 0) call.fail(ErrorKind::kValue, "packing does not pay here: the packed size is 0");
  if (call.output(0).dtype != DType::k_uint8) call.fail(ErrorKind::kDType, "the packed buffer is of uint8");
  call.same_shape(call.output(0), {static_cast<int64_t>(bytes)}, "the packed buffer");
}

std::unique_ptr<NativeOp> make_packing(const CallReader& call, const Packing& packing) {
  check_packed_output(call, packing.bytes());
  return std::make_unique<OneDnnOp>([packing] {
    Sequence s;
    s.reorder(s.operand(0, packing.given), s.operand(1, packing.packed));
    return s;
  });
}

OneDnnOp::OneDnnOp(std::function<Sequence()> build) : build_(std::move(build)), main_(std::make_unique<Variant>(build_())) {}
OneDnnOp::~OneDnnOp() = default;

OneDnnOp::Variant::~Variant() { delete idle.load(); }

void OneDnnOp::Variant::run(char* const* buffers, char* scratch) const {
  // Threads that meet here make contexts of their own; one of them is kept.
  std::unique_ptr<Sequence::Context> context(idle.exchange(nullptr, std::memory_order_acquire));
  if (!context) context = sequence.make_context();
  sequence.run(*context, buffers, scratch);
  Sequence::Context* expected = nullptr;
  if (idle.compare_exchange_strong(expected, context.get(), std::memory_order_release)) context.release();
}

const OneDnnOp::Variant& OneDnnOp::variant_for(int threads) const {
  std::lock_guard lock(mutex_);
  auto& variant = others_[threads];
  if (!variant) variant = std::make_unique<Variant>(build_());
  return *variant;
}

void OneDnnOp::run(char* const* buffers, char* scratch) const {
  sync_thread_count();
  const int threads = Sequence::current_threads();
  if (threads == main_->sequence.threads()) return main_->run(buffers, scratch);
  const Variant& variant = variant_for(threads);
  if (variant.sequence.scratch_bytes() <= scratch_bytes()) return variant.run(buffers, scratch);
  const Block own(variant.sequence.scratch_bytes());
  variant.run(buffers, own.as<char>());
}

OneThread::OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneThread::~OneThread() { omp_set_num_threads(before_); }

struct OneDnnParts::Kind {
  explicit Kind(Sequence s) : sequence(std::move(s)) {}
  Sequence sequence;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Sequence::Context>> idle;

  std::unique_ptr<Sequence::Context> take() const {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto context = std::move(idle.back());
        idle.pop_back();
        return context;
      }
    }
    return sequence.make_context();
  }
  void give_back(std::unique_ptr<Sequence::Context> context) const {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(context));
  }
};

OneDnnParts::OneDnnParts(const std::vector<std::function<Sequence()>>& build, std::vector<Part> parts, double cost_ns) : parts_(std::move(parts)), cost_ns_(cost_ns) {
  const OneThread one;
  for (const auto& b : build) {
    kinds_.push_back(std::make_unique<Kind>(b()));
    scratch_bytes_ = std::max(scratch_bytes_, kinds_.back()->sequence.scratch_bytes());
  }
}
OneDnnParts::~OneDnnParts() = default;

void OneDnnParts::run(char* const* buffers, char*) const {
  parallel_for(static_cast<int64_t>(parts_.size()), cost_ns_, [&](int64_t begin, int64_t end) {
    const OneThread one;
    const Block scratch(scratch_bytes_);
    std::vector<char*> own;
    for (int64_t i = begin; i < end; ++i) {
      const Part& part = parts_[static_cast<size_t>(i)];
      own.assign(buffers, buffers + part.offsets.size());
      for (size_t k = 0; k < own.size(); ++k) own[k] += part.offsets[k];
      const Kind& kind = *kinds_[part.kind];
      auto context = kind.take();
      kind.sequence.run(*context, own.data(), scratch.as<char>());
      kind.give_back(std::move(context));
    }
  });
}

int64_t part_count(double multiplications) {
  constexpr double kWorth = 1 << 20;  // some 30 us
  int64_t parts = 1;
  while (parts < 8 && multiplications >= static_cast<double>(2 * parts) * kWorth) parts *= 2;
  return parts;
}

}  // namespace sampan::kernels
