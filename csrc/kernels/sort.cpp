// sort and topk.
#include "exec/parallel.h"
#include "kernels/ordering.h"

namespace sampan::kernels {
namespace {

void check_order(const CallReader& call, const Layout& x) {
  if (dtype_kind(x.dtype) == 'c') call.fail(ErrorKind::kDType, "complex numbers have no order");
}

template <class T>
SAMPAN_INLINE Key<T> sort_key(T v, bool descending) {
  const Key<T> key = to_key(v);
  return descending ? static_cast<Key<T>>(~key) : key;
}

// Writes the entries' values and positions along a line.
template <class T, class Entry>
void write_line(const Entry* entries, int64_t n, const T* x, int64_t x_step, T* values, int64_t value_step, char* indices, bool is_int32, int64_t index_step) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = entries[i].position();
    if (values) values[i * value_step] = x[at * x_step];
    if (!indices) continue;
    if (is_int32)
      reinterpret_cast<int32_t*>(indices)[i * index_step] = static_cast<int32_t>(at);
    else
      reinterpret_cast<int64_t*>(indices)[i * index_step] = at;
  }
}

// Fills entries with a line's keys on several threads and sorts them in parts that are merged in pairs.
template <class T, template <class> class EntryOf>
EntryOf<Key<T>>* sort_long_line(const T* x, int64_t step, int64_t n, bool descending, EntryOf<Key<T>>* entries, EntryOf<Key<T>>* spare) {
  using Entry = EntryOf<Key<T>>;
  int64_t parts = 1;
  while (parts * 2 <= num_threads()) parts *= 2;
  auto edge = [&](int64_t p) { return n * p / parts; };
  parallel_for(parts, static_cast<double>(n / parts) * 10.0, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = edge(p), last = edge(p + 1);
      for (int64_t i = first; i < last; ++i) entries[i] = Entry::make(sort_key(x[i * step], descending), i);
      const Entry* sorted = sort_entries<Key<T>, EntryOf>(entries + first, spare + first, last - first);
      if (sorted != entries + first) std::copy(sorted, sorted + (last - first), entries + first);
    }
  });
  for (int64_t width = 1; width < parts; width *= 2) {
    // Each pair of parts is merged by two threads, one from either end: with all entries distinct they meet exactly.
    const int64_t pairs = parts / (2 * width);
    parallel_for(2 * pairs, static_cast<double>(n / (2 * pairs)) * 4.0, [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) {
        const int64_t p = u / 2 * 2 * width, a = edge(p), b = edge(p + width), c = edge(p + 2 * width), half = (c - a) / 2;
        if (u % 2 == 0) {
          int64_t i = a, j = b;
          for (int64_t k = a; k < a + half; ++k) spare[k] = j >= c || (i < b && entries[i] < entries[j]) ? entries[i++] : entries[j++];
        } else {
          int64_t i = b, j = c;
          for (int64_t k = c; k-- > a + half;) spare[k] = j <= b || (i > a && entries[j - 1] < entries[i - 1]) ? entries[--i] : entries[--j];
        }
      }
    });
    std::swap(entries, spare);
  }
  return entries;
}

constexpr int64_t kLongLine = 1 << 16;

class SortOp final : public NativeOp {
 public:
  SortOp(const Layout& x, const Layout* values, const Layout* indices, int axis, bool descending)
      : dtype_(x.dtype),
        lines_(axis, {&x, values ? values : indices, indices ? indices : values}),
        has_values_(values != nullptr),
        has_indices_(indices != nullptr),
        is_int32_(indices && indices->dtype == DType::k_int32),
        descending_(descending) {}

  void run(char* const* buffers, char*) const override {
    char* values = has_values_ ? buffers[1] : nullptr;
    char* indices = has_indices_ ? buffers[has_values_ ? 2 : 1] : nullptr;
    with_entry(dtype_, lines_.length, [&]<class T, template <class> class EntryOf>() {
      sort_lines<T, EntryOf>(reinterpret_cast<const T*>(buffers[0]), reinterpret_cast<T*>(values), indices);
    });
  }

 private:
  template <class T, template <class> class EntryOf>
  void sort_lines(const T* x, T* values, char* indices) const {
    using Entry = EntryOf<Key<T>>;
    const int64_t n = lines_.length, count = lines_.starts.total(), index_bytes = is_int32_ ? 4 : 8;
    auto write = [&](const Odometer<3>& at, const Entry* sorted) {
      write_line(sorted, n, x + at.offset[0], lines_.steps[0], values ? values + at.offset[1] : nullptr, lines_.steps[1], indices ? indices + at.offset[2] * index_bytes : nullptr,
                 is_int32_, lines_.steps[2]);
    };
    if (count < num_threads() && n >= kLongLine) {
      const Block work(static_cast<size_t>(2 * n) * sizeof(Entry));
      Odometer<3> at = lines_.starts;
      at.seek(0);
      for (int64_t line = 0; line < count; ++line, at.next())
        write(at, sort_long_line<T, EntryOf>(x + at.offset[0], lines_.steps[0], n, descending_, work.as<Entry>(), work.as<Entry>() + n));
      return;
    }
    parallel_for(count, static_cast<double>(n) * 8.0 + 20.0, [&](int64_t begin, int64_t end) {
      const Block work(static_cast<size_t>(2 * n) * sizeof(Entry));
      Entry *entries = work.as<Entry>(), *spare = entries + n;
      Odometer<3> at = lines_.starts;
      at.seek(begin);
      for (int64_t line = begin; line < end; ++line, at.next()) {
        const T* from = x + at.offset[0];
        for (int64_t i = 0; i < n; ++i) entries[i] = Entry::make(sort_key(from[i * lines_.steps[0]], descending_), i);
        write(at, sort_entries<Key<T>, EntryOf>(entries, spare, n));
      }
    });
  }

  DType dtype_;
  Lines<3> lines_;
  bool has_values_, has_indices_, is_int32_, descending_;
};

std::unique_ptr<NativeOp> make_sort(const NativeCall& c) {
  CallReader call("sort", c);
  const bool with_values = call.flag("with_values", true), with_indices = call.flag("with_indices", true);
  call.operands(1, static_cast<size_t>(with_values) + with_indices);
  const Layout& x = call.input(0);
  const int axis = call.axis(-1, x.rank);
  const bool descending = call.flag("descending", false);
  call.flag("stable", true);
  call.no_more_attributes();
  check_order(call, x);
  for (const LayoutRef& l : c.outputs) call.same_shape(*l, shape_of(x), "an output");
  const Layout* values = with_values ? &call.output(0) : nullptr;
  const Layout* indices = with_indices ? &call.output(with_values ? 1 : 0) : nullptr;
  if (values) call.same_dtype(x, *values, "x and values");
  if (indices) call.index_dtype(*indices, "indices");
  if (x.numel == 0 || c.outputs.empty()) return make_nothing();
  return std::make_unique<SortOp>(x, values, indices, axis, descending);
}

class TopkOp final : public NativeOp {
 public:
  TopkOp(const Layout& x, const Layout& values, const Layout& indices, int axis, int64_t k, bool largest)
      : dtype_(x.dtype), lines_(axis, {&x, &values, &indices}), k_(k), is_int32_(indices.dtype == DType::k_int32), largest_(largest) {}

  void run(char* const* buffers, char*) const override {
    with_entry(dtype_, lines_.length, [&]<class T, template <class> class EntryOf>() {
      const T* x = reinterpret_cast<const T*>(buffers[0]);
      T* values = reinterpret_cast<T*>(buffers[1]);
      parallel_for(lines_.starts.total(), static_cast<double>(lines_.length) * 2.0 + 50.0, [&](int64_t begin, int64_t end) {
        select_lines<T, EntryOf>(x, values, buffers[2], begin, end);
      });
    });
  }

 private:
  // Up to this many winners are kept sorted while the line passes by; more are selected from all entries.
  static constexpr int64_t kKept = 48;

  template <class T, template <class> class EntryOf>
  void select_lines(const T* x, T* values, char* indices, int64_t begin, int64_t end) const {
    using Entry = EntryOf<Key<T>>;
    const int64_t n = lines_.length, step = lines_.steps[0], index_bytes = is_int32_ ? 4 : 8;
    const bool keeps = k_ <= kKept && k_ * 8 <= n;
    const Block work(static_cast<size_t>(keeps ? k_ + 1 : 2 * n) * sizeof(Entry));
    Entry* entries = work.as<Entry>();
    Odometer<3> at = lines_.starts;
    at.seek(begin);
    for (int64_t line = begin; line < end; ++line, at.next()) {
      const T* from = x + at.offset[0];
      const Entry* winners = entries;
      if (keeps) {
        keep<T, EntryOf>(from, step, n, entries);
      } else {
        for (int64_t i = 0; i < n; ++i) entries[i] = Entry::make(sort_key(from[i * step], largest_), i);
        if (k_ * 4 >= n) {
          winners = sort_entries<Key<T>, EntryOf>(entries, entries + n, n);
        } else {
          std::nth_element(entries, entries + k_, entries + n);
          std::sort(entries, entries + k_);
        }
      }
      write_line(winners, k_, from, step, values + at.offset[1], lines_.steps[1], indices + at.offset[2] * index_bytes, is_int32_, lines_.steps[2]);
    }
  }

  template <class T, template <class> class EntryOf>
  void keep(const T* from, int64_t step, int64_t n, EntryOf<Key<T>>* kept) const {
    using Entry = EntryOf<Key<T>>;
    for (int64_t i = 0; i < k_; ++i) kept[i] = Entry::make(sort_key(from[i * step], largest_), i);
    std::sort(kept, kept + k_);
    Key<T> worst = kept[k_ - 1].key();
    for (int64_t i = k_; i < n; ++i) {
      const Key<T> key = sort_key(from[i * step], largest_);
      if (key >= worst) continue;  // an equal element that comes later loses
      int64_t j = k_ - 1;
      for (; j > 0 && kept[j - 1].key() > key; --j) kept[j] = kept[j - 1];
      kept[j] = Entry::make(key, i);
      worst = kept[k_ - 1].key();
    }
  }

  DType dtype_;
  Lines<3> lines_;
  int64_t k_;
  bool is_int32_, largest_;
};

std::unique_ptr<NativeOp> make_topk(const NativeCall& c) {
  CallReader call("topk", c);
  call.operands(1, 2);
  const Layout &x = call.input(0), &values = call.output(0), &indices = call.output(1);
  const int axis = call.axis(-1, x.rank);
  const int64_t k = call.integer("k", 1), n = x.rank ? x.shape[axis] : 1;
  const bool largest = call.flag("largest", true);
  call.flag("sorted", true);
  call.no_more_attributes();
  check_order(call, x);
  call.same_dtype(x, values, "x and values");
  call.index_dtype(indices, "indices");
  if (k < 0 || k > n) call.fail(ErrorKind::kValue, "k is " + std::to_string(k) + "; the axis has " + std::to_string(n) + " elements");
  Dims expected = shape_of(x);
  if (x.rank)
    expected[static_cast<size_t>(axis)] = k;
  else if (k == 0)
    call.fail(ErrorKind::kValue, "k must be 1 for a single element");
  call.same_shape(values, expected, "values");
  call.same_shape(indices, expected, "indices");
  if (values.numel == 0) return make_nothing();
  return std::make_unique<TopkOp>(x, values, indices, axis, k, largest);
}

const RegisterNative sort("sort", make_sort);
const RegisterNative topk("topk", make_topk);

}  // namespace
}  // namespace sampan::kernels
