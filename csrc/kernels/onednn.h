// oneDNN behind the NativeOp interface: a fixed sequence of primitives whose memory handles are set for each run.
#pragma once
#include <atomic>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/epilogue.h"

namespace sampan::kernels {

const dnnl::engine& onednn_engine();
// undef for a dtype that oneDNN does not have.
dnnl::memory::data_type onednn_type(DType t);
dnnl::memory::desc onednn_desc(DType t, const Dims& shape, const Dims& strides);
inline dnnl::memory::desc onednn_desc(const Layout& l) { return onednn_desc(l.dtype, shape_of(l), strides_of(l)); }
// Appends the steps; operands[i] describes the i-th add or mul.
void append_post_ops(const std::vector<EpilogueStep>& steps, const std::vector<dnnl::memory::desc>& operands, dnnl::post_ops* to);
// The places of the post-ops that take an operand, in order.
std::vector<int> binary_post_ops(const dnnl::primitive_attr& attr);
// Whether a primitive is oneDNN's plain reference loop, which every fallback here beats.
bool is_reference(const char* implementation);

// Primitives in order, each with its memories: operands of the op, or temporaries in its scratch.
class Sequence {
 public:
  int operand(size_t buffer, const dnnl::memory::desc& desc);
  int temporary(const dnnl::memory::desc& desc);
  // args: {DNNL_ARG_..., memory}. The scratchpad must be in user mode.
  void add(const dnnl::primitive& primitive, std::vector<std::pair<int, int>> args, const dnnl::memory::desc& scratchpad);
  // A reorder, when the two descriptors differ; returns where the data is then found.
  int reordered(int memory, const dnnl::memory::desc& wanted);
  void reorder(int from, int to);

  size_t scratch_bytes() const { return temporary_bytes_ + scratchpad_bytes_; }
  int threads() const { return threads_; }

  // Memory objects of one running call; a Sequence itself is never written.
  class Context;
  std::unique_ptr<Context> make_context() const;
  void run(Context& context, char* const* buffers, char* scratch) const;

 private:
  struct Memory {
    dnnl::memory::desc desc;
    size_t buffer;  // kScratch: a temporary
    size_t offset;
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<std::pair<int, int>> args;
    int scratchpad;
  };
  static constexpr size_t kScratch = ~size_t{0};
  std::vector<Memory> memories_;
  std::vector<Step> steps_;
  size_t temporary_bytes_ = 0, scratchpad_bytes_ = 0;
  int threads_ = current_threads();
  static int current_threads();
  friend class OneDnnOp;
};

// Runs what build returns. A primitive is made for one number of threads, so another number gets its own.
class OneDnnOp final : public NativeOp {
 public:
  explicit OneDnnOp(std::function<Sequence()> build);
  ~OneDnnOp() override;
  size_t scratch_bytes() const override { return main_->sequence.scratch_bytes(); }
  void run(char* const* buffers, char* scratch) const override;

 private:
  struct Variant {
    Sequence sequence;
    mutable std::atomic<Sequence::Context*> idle{nullptr};
    void run(char* const* buffers, char* scratch) const;
    explicit Variant(Sequence s) : sequence(std::move(s)) {}
    ~Variant();
  };
  const Variant& variant_for(int threads) const;

  std::function<Sequence()> build_;
  std::unique_ptr<Variant> main_;
  mutable std::mutex mutex_;
  mutable std::map<int, std::unique_ptr<Variant>> others_;
};

// While it lives, oneDNN makes and runs primitives for one thread on the calling thread.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// One problem cut into parts by its shape alone, each a primitive for one thread, so that no result depends on the number of threads:
// a primitive for several threads cuts sums where they divide its work.
class OneDnnParts final : public NativeOp {
 public:
  struct Part {
    size_t kind;                   // which of the sequences
    std::vector<int64_t> offsets;  // bytes, for each buffer
  };
  // build: the sequence of each kind.
  OneDnnParts(const std::vector<std::function<Sequence()>>& build, std::vector<Part> parts, double cost_ns);
  ~OneDnnParts() override;
  void run(char* const* buffers, char* scratch) const override;

 private:
  struct Kind;
  std::vector<std::unique_ptr<Kind>> kinds_;
  std::vector<Part> parts_;
  double cost_ns_;  // of one part
  size_t scratch_bytes_ = 0;
};

// Into how many parts work of so many multiplications goes: a power of two, for eight threads at most, each worth starting one.
int64_t part_count(double multiplications);

// Weights in the form that oneDNN reads fastest.
struct Packing {
  dnnl::memory::desc given, packed;
  // 0 when the given form is already that one.
  size_t bytes() const { return packed.get_size() == 0 || given == packed ? 0 : packed.get_size(); }
};
// The natives ..._packed_size and ..._pack_weights; the call's operands are (weights; int64 or the packed bytes).
std::unique_ptr<NativeOp> make_size(const CallReader& call, size_t bytes);
void check_packed_output(const CallReader& call, size_t bytes);
std::unique_ptr<NativeOp> make_packing(const CallReader& call, const Packing& packing);

}  // namespace sampan::kernels
