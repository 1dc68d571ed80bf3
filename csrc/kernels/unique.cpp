// unique: which rows are equal, by sorting (or between neighbours only).
#include "exec/parallel.h"
#include "kernels/ordering.h"

namespace sampan::kernels {
namespace {

class UniqueOp final : public NativeOp {
 public:
  UniqueOp(DType dtype, int64_t rows, int64_t width, bool is_matrix, bool consecutive)
      : dtype_(dtype), rows_(rows), width_(width), is_matrix_(is_matrix), consecutive_(consecutive) {}

  void run(char* const* buffers, char*) const override {
    auto* first = reinterpret_cast<int64_t*>(buffers[1]);
    auto* inverse = reinterpret_cast<int64_t*>(buffers[2]);
    auto* counts = reinterpret_cast<int64_t*>(buffers[3]);
    auto* number = reinterpret_cast<int64_t*>(buffers[4]);
    // What lies after the used part is defined too: zeros.
    std::fill(first, first + rows_, 0);
    std::fill(counts, counts + rows_, 0);
    with_entry(dtype_, rows_, [&]<class T, template <class> class EntryOf>() {
      const T* x = reinterpret_cast<const T*>(buffers[0]);
      const Block order_block(static_cast<size_t>(rows_) * sizeof(int64_t));
      int64_t* order = order_block.as<int64_t>();
      if (consecutive_)
        for (int64_t i = 0; i < rows_; ++i) order[i] = i;
      else if (is_matrix_)
        sort_rows(x, order);
      else
        sort_elements<T, EntryOf>(x, order);
      int64_t runs = 0;
      for (int64_t i = 0; i < rows_; ++i) {
        if (i == 0 || !equal(x, order[i - 1], order[i])) first[runs++] = order[i];
        inverse[order[i]] = runs - 1;
        ++counts[runs - 1];
      }
      *number = runs;
    });
  }

 private:
  template <class T, template <class> class EntryOf>
  void sort_elements(const T* x, int64_t* order) const {
    using Entry = EntryOf<Key<T>>;
    const Block work(static_cast<size_t>(2 * rows_) * sizeof(Entry));
    Entry* entries = work.as<Entry>();
    for (int64_t i = 0; i < rows_; ++i) entries[i] = Entry::make(to_key(x[i]), i);
    const Entry* sorted = sort_entries<Key<T>, EntryOf>(entries, entries + rows_, rows_);
    for (int64_t i = 0; i < rows_; ++i) order[i] = sorted[i].position();
  }

  template <class T>
  void sort_rows(const T* rows, int64_t* order) const {
    // A copy: a comparison that changes while std::sort runs, by another thread's writes, would lead it outside of the array.
    const Block copy(static_cast<size_t>(rows_ * width_) * sizeof(T));
    T* x = copy.as<T>();
    std::copy(rows, rows + rows_ * width_, x);
    for (int64_t i = 0; i < rows_; ++i) order[i] = i;
    std::sort(order, order + rows_, [&](int64_t a, int64_t b) {
      for (int64_t j = 0; j < width_; ++j) {
        const Key<T> p = to_key(x[a * width_ + j]), q = to_key(x[b * width_ + j]);
        if (p != q) return p < q;
      }
      return a < b;
    });
  }

  template <class T>
  bool equal(const T* x, int64_t a, int64_t b) const {
    for (int64_t j = 0; j < width_; ++j)
      if (!(to_compute(x[a * width_ + j]) == to_compute(x[b * width_ + j]))) return false;
    return true;
  }

  DType dtype_;
  int64_t rows_, width_;
  bool is_matrix_, consecutive_;
};

std::unique_ptr<NativeOp> make_unique_op(const NativeCall& c) {
  CallReader call("unique", c);
  call.operands(1, 4);
  const bool consecutive = call.flag("consecutive", false);
  call.no_more_attributes();
  const Layout& x = call.input(0);
  if (x.rank != 1 && x.rank != 2) call.fail(ErrorKind::kShape, "x must be [R] or [R, D]");
  if (dtype_kind(x.dtype) == 'c') call.fail(ErrorKind::kDType, "complex numbers have no order");
  const int64_t rows = x.shape[0];
  for (size_t i = 0; i < 4; ++i) {
    call.same_shape(call.output(i), {i == 3 ? 1 : rows}, "an output");
    if (call.output(i).dtype != DType::k_int64) call.fail(ErrorKind::kDType, "the outputs must be int64");
  }
  const std::vector<LayoutRef> inputs = {contiguous_layout(x.dtype, x.shape_span())};
  if (inputs != c.inputs) return make_converted(make_unique_op, c, inputs, c.outputs, false);
  return std::make_unique<UniqueOp>(x.dtype, rows, x.rank == 2 ? x.shape[1] : 1, x.rank == 2, consecutive);
}

const RegisterNative unique("unique", make_unique_op);

}  // namespace
}  // namespace sampan::kernels
