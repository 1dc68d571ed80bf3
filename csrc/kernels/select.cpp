// What a mask picks: nonzero_count, nonzero_fill, masked_select, masked_scatter.
#include <algorithm>

#include "exec/parallel.h"
#include "kernels/common.h"

namespace sampan::kernels {
namespace {

// Positions are counted in pieces of this many first, so that threads know where their results begin.
constexpr int64_t kPiece = 8192;

template <class T>
SAMPAN_INLINE bool is_set(T v) {
  if constexpr (is_half<T>)
    return (v.bits & 0x7fff) != 0;
  else
    return v != T{};
}

template <class T>
SAMPAN_INLINE int32_t count_entries(const T* x, int64_t n) {
  int32_t found = 0;
  for (int64_t i = 0; i < n; ++i) found += is_set(x[i]);
  return found;
}
SAMPAN_CLONES int32_t count_set(const float* x, int64_t n) { return count_entries(x, n); }
SAMPAN_CLONES int32_t count_set(const bool* x, int64_t n) { return count_entries(x, n); }
SAMPAN_CLONES int32_t count_set(const int64_t* x, int64_t n) { return count_entries(x, n); }
template <class T>
int32_t count_set(const T* x, int64_t n) {
  return count_entries(x, n);
}

// The entries of x that are not zero, in row-major order, in parallel and in any layout.
class Selection {
 public:
  explicit Selection(const LayoutRef& x) : x_(x) {
    for (int d = 0; d < x->rank; ++d) walk_.add_axis(x->shape[d], {x->strides[d]});
  }
  int64_t pieces() const { return (x_->numel + kPiece - 1) / kPiece; }

  // counts[p]: the entries in piece p; returns their sum.
  int64_t count(const char* x, int64_t* counts) const {
    with_type(x_->dtype, [&]<class T>() {
      const T* data = reinterpret_cast<const T*>(x);
      parallel_for(pieces(), static_cast<double>(kPiece), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          const int64_t first = p * kPiece, last = std::min(first + kPiece, x_->numel);
          int32_t n = 0;
          if (x_->is_contiguous) {
            n = count_set(data + first, last - first);
          } else {
            Odometer<1> at = walk_;
            at.seek(first);
            for (int64_t i = first; i < last; ++i, at.next()) n += is_set(data[at.offset[0]]);
          }
          counts[p] = n;
        }
      });
    });
    int64_t total = 0;
    for (int64_t p = 0; p < pieces(); ++p) total += counts[p];
    return total;
  }

  // fn(rank among the entries, row-major position), counts as count() left them. No more entries than were counted: another thread may write x meanwhile.
  template <class F>
  void each(const char* x, int64_t* counts, F&& fn) const {
    int64_t total = 0;
    for (int64_t p = 0; p < pieces(); ++p) total += std::exchange(counts[p], total);
    with_type(x_->dtype, [&]<class T>() {
      const T* data = reinterpret_cast<const T*>(x);
      parallel_for(pieces(), 2.0 * static_cast<double>(kPiece), [&](int64_t begin, int64_t end) {
        Odometer<1> at = walk_;
        for (int64_t p = begin; p < end; ++p) {
          const int64_t first = p * kPiece, last = std::min(first + kPiece, x_->numel);
          const int64_t end_rank = p + 1 < pieces() ? counts[p + 1] : total;
          int64_t rank = counts[p];
          if (x_->is_contiguous) {
            // Positions are first packed without a branch, which random entries would mispredict.
            int32_t found[kPiece];
            int64_t n = 0;
            for (int64_t i = first; i < last; ++i) {
              found[n] = static_cast<int32_t>(i - first);
              n += is_set(data[i]);
            }
            n = std::min(n, end_rank - rank);
            for (int64_t k = 0; k < n; ++k) fn(rank + k, first + found[k]);
            continue;
          }
          at.seek(first);
          for (int64_t i = first; i < last && rank < end_rank; ++i, at.next())
            if (is_set(data[at.offset[0]])) fn(rank++, i);
        }
      });
    });
  }

 private:
  LayoutRef x_;
  Odometer<1> walk_;
};

class NonzeroCount final : public NativeOp {
 public:
  explicit NonzeroCount(const LayoutRef& x) : selection_(x) {}
  size_t scratch_bytes() const override { return static_cast<size_t>(selection_.pieces()) * sizeof(int64_t); }
  void run(char* const* buffers, char* scratch) const override {
    *reinterpret_cast<int64_t*>(buffers[1]) = selection_.count(buffers[0], reinterpret_cast<int64_t*>(scratch));
  }

 private:
  Selection selection_;
};

std::unique_ptr<NativeOp> make_nonzero_count(const NativeCall& c) {
  CallReader call("nonzero_count", c);
  call.operands(1, 1);
  call.no_more_attributes();
  if (call.output(0).dtype != DType::k_int64 || call.output(0).numel != 1) call.fail(ErrorKind::kShape, "the output is one int64");
  return std::make_unique<NonzeroCount>(c.inputs[0]);
}

[[noreturn]] void refuse_number(const char* native, int64_t found, int64_t expected) {
  throw Error(ErrorKind::kValue, std::string(native) + ": " + std::to_string(found) + " entries are set, but the operand holds " + std::to_string(expected));
}

class NonzeroFill final : public NativeOp {
 public:
  NonzeroFill(const LayoutRef& x, int64_t number) : x_(x), selection_(x), number_(number) {}
  size_t scratch_bytes() const override { return static_cast<size_t>(selection_.pieces()) * sizeof(int64_t); }
  void run(char* const* buffers, char* scratch) const override {
    auto* counts = reinterpret_cast<int64_t*>(scratch);
    const int64_t found = selection_.count(buffers[0], counts);
    if (found != number_) refuse_number("nonzero_fill", found, number_);
    auto* out = reinterpret_cast<int64_t*>(buffers[1]);
    const int rank = x_->rank;
    if (rank == 1) return selection_.each(buffers[0], counts, [&](int64_t r, int64_t position) { out[r] = position; });
    // Dividing 32-bit numbers takes a third of the time.
    if (x_->numel <= UINT32_MAX) return fill<uint32_t>(buffers[0], counts, out);
    fill<uint64_t>(buffers[0], counts, out);
  }

 private:
  template <class U>
  void fill(const char* x, int64_t* counts, int64_t* out) const {
    const int rank = x_->rank;
    selection_.each(x, counts, [&](int64_t r, int64_t position) {
      U rest = static_cast<U>(position);
      for (int d = rank - 1; d > 0; --d) {
        const U length = static_cast<U>(x_->shape[d]), whole = rest / length;
        out[r * rank + d] = static_cast<int64_t>(rest - whole * length);
        rest = whole;
      }
      if (rank > 0) out[r * rank] = static_cast<int64_t>(rest);
    });
  }

  LayoutRef x_;
  Selection selection_;
  int64_t number_;
};

std::unique_ptr<NativeOp> make_nonzero_fill(const NativeCall& c) {
  CallReader call("nonzero_fill", c);
  call.operands(1, 1);
  call.no_more_attributes();
  const Layout& out = call.output(0);
  if (out.dtype != DType::k_int64 || out.rank != 2 || out.shape[1] != call.input(0).rank || !out.is_contiguous) call.fail(ErrorKind::kShape, "the output is int64 [number, rank], row-major");
  return std::make_unique<NonzeroFill>(c.inputs[0], out.shape[0]);
}

// masked_select: packed = the entries of full where mask is set. masked_scatter: full = x, with those entries taken from packed.
class MaskedOp final : public NativeOp {
 public:
  MaskedOp(const NativeCall& c, bool selects) : mask_(c.inputs[1]), selection_(c.inputs[1]), x_(c.inputs[0]), out_(c.outputs[0]), selects_(selects) {
    const Layout& full = selects ? *x_ : *out_;
    for (int d = 0; d < full.rank; ++d) walk_.add_axis(full.shape[d], {full.strides[d]});
    packed_size_ = selects ? out_->numel : c.inputs[2]->numel;
  }
  size_t scratch_bytes() const override { return static_cast<size_t>(selection_.pieces()) * sizeof(int64_t); }

  void run(char* const* buffers, char* scratch) const override {
    auto* counts = reinterpret_cast<int64_t*>(scratch);
    const int64_t found = selection_.count(buffers[1], counts);
    if (selects_ ? found != packed_size_ : found > packed_size_) refuse_number(selects_ ? "masked_select" : "masked_scatter", found, packed_size_);
    if (!selects_ && buffers[0] != buffers[3]) copy_elements(buffers[3], *out_, buffers[0], *x_);
    with_type(x_->dtype, [&]<class T>() {
      T* full = reinterpret_cast<T*>(buffers[selects_ ? 0 : 3]);
      T* packed = reinterpret_cast<T*>(buffers[2]);
      selection_.each(buffers[1], counts, [&](int64_t r, int64_t position) {
        T* entry = full + offset_of(position);
        if (selects_)
          packed[r] = *entry;
        else
          *entry = packed[r];
      });
    });
  }

 private:
  int64_t offset_of(int64_t position) const {
    if (walk_.rank == 1) return position * walk_.strides[0][0];
    int64_t offset = 0;
    for (int d = walk_.rank; d-- > 0;) {
      offset += position % walk_.shape[d] * walk_.strides[0][d];
      position /= walk_.shape[d];
    }
    return offset;
  }

  LayoutRef mask_;
  Selection selection_;
  LayoutRef x_, out_;
  bool selects_;
  Odometer<1> walk_;
  int64_t packed_size_;
};

void check_masked(const CallReader& call, size_t inputs) {
  call.operands(inputs, 1);
  call.no_more_attributes();
  call.same_dtype(call.input(0), call.output(0), "x and the output");
  call.same_shape(call.input(1), shape_of(call.input(0)), "mask");
  if (call.input(1).dtype != DType::k_bool) call.fail(ErrorKind::kDType, "mask must be bool");
}

std::unique_ptr<NativeOp> make_masked_select(const NativeCall& c) {
  CallReader call("masked_select", c);
  check_masked(call, 2);
  if (call.output(0).rank != 1) call.fail(ErrorKind::kShape, "the output is a vector");
  return std::make_unique<MaskedOp>(c, true);
}

std::unique_ptr<NativeOp> make_masked_scatter(const NativeCall& c) {
  CallReader call("masked_scatter", c);
  check_masked(call, 3);
  call.same_shape(call.output(0), shape_of(call.input(0)), "the output");
  call.same_dtype(call.input(2), call.output(0), "values and the output");
  std::vector<LayoutRef> inputs = c.inputs;
  inputs[2] = contiguous_layout(inputs[2]->dtype, inputs[2]->shape_span());
  if (inputs != c.inputs) return make_converted(make_masked_scatter, c, inputs, c.outputs, false);
  return std::make_unique<MaskedOp>(c, false);
}

const RegisterNative nonzero_count("nonzero_count", make_nonzero_count);
const RegisterNative nonzero_fill("nonzero_fill", make_nonzero_fill);
const RegisterNative masked_select("masked_select", make_masked_select);
const RegisterNative masked_scatter("masked_scatter", make_masked_scatter);

}  // namespace
}  // namespace sampan::kernels
