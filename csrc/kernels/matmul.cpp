// matmul: the project's own product or oneDNN's, whichever is faster for the shape, with bias and epilogue.
#include <algorithm>
#include <numeric>

#include "exec/parallel.h"
#include "kernels/gemm.h"
#include "kernels/matmul.h"
#include "kernels/onednn.h"

namespace sampan::kernels {
namespace {

// One axis of the result that is not contracted, with the strides of a, b, out, then of the bias and the epilogue's operands.
struct Axis {
  int64_t size;
  Dims strides;
};
constexpr size_t kA = 0, kB = 1, kOut = 2, kExtra = 3;

struct Product {
  DType dtype, out_dtype;
  std::vector<Axis> batch;
  Axis rows, columns;
  int64_t depth, a_depth, b_depth;  // K and the strides of a and b along it
  bool has_bias, accumulate;
  std::vector<EpilogueStep> steps;
  size_t extras;
};

int64_t stride_along(const Layout& l, int axis_from_end) {
  const int at = l.rank - axis_from_end;
  return at < 0 || l.shape[at] == 1 ? 0 : l.strides[at];
}

Product read_product(CallReader& call) {
  Product p;
  p.has_bias = call.flag("has_bias", false);
  p.accumulate = call.flag("accumulate", false);
  p.steps = parse_epilogue(call, call.text("epilogue", ""));
  p.extras = p.has_bias + epilogue_operands(p.steps);
  call.no_more_attributes();
  call.operands(2 + p.extras, 1);
  const Layout &a = call.input(0), &b = call.input(1), &out = call.output(0);
  p.dtype = a.dtype;
  p.out_dtype = out.dtype;
  call.same_dtype(a, b, "a and b");
  if (a.rank < 2 || b.rank < 2) call.fail(ErrorKind::kShape, "a and b need at least two axes");
  p.depth = a.shape[a.rank - 1];
  if (b.shape[b.rank - 2] != p.depth)
    call.fail(ErrorKind::kShape, "the last axis of a (" + std::to_string(p.depth) + ") must equal the second-last of b (" + std::to_string(b.shape[b.rank - 2]) + ")");
  const int rank = std::max(a.rank, b.rank);
  Dims expected(static_cast<size_t>(rank));
  expected[static_cast<size_t>(rank) - 2] = a.shape[a.rank - 2];
  expected[static_cast<size_t>(rank) - 1] = b.shape[b.rank - 1];
  for (int from_end = 3; from_end <= rank; ++from_end) {
    const int64_t x = from_end <= a.rank ? a.shape[a.rank - from_end] : 1, y = from_end <= b.rank ? b.shape[b.rank - from_end] : 1;
    if (x != y && x != 1 && y != 1) call.fail(ErrorKind::kShape, "the batch axes of a and b do not broadcast");
    expected[static_cast<size_t>(rank - from_end)] = x == 1 ? y : x;
  }
  call.same_shape(out, expected, "the output");
  auto axis = [&](int from_end) {
    Axis x{out.shape[out.rank - from_end], {stride_along(a, from_end), stride_along(b, from_end), stride_along(out, from_end)}};
    for (size_t i = 0; i < p.extras; ++i) {
      const Layout& w = call.input(2 + i);
      const int at = w.rank - from_end;
      if (w.rank > rank || (at >= 0 && w.shape[at] != 1 && w.shape[at] != x.size)) call.fail(ErrorKind::kShape, "the bias or an epilogue operand does not broadcast to the output");
      x.strides.push_back(stride_along(w, from_end));
    }
    return x;
  };
  for (int from_end = rank; from_end > 2; --from_end) p.batch.push_back(axis(from_end));
  p.rows = axis(2);
  p.rows.strides[kB] = 0;
  p.columns = axis(1);
  p.columns.strides[kA] = 0;
  p.a_depth = stride_along(a, 1);
  p.b_depth = stride_along(b, 2);
  return p;
}

// Merges axes that continue each other in every operand; a batch that b does not have becomes rows.
void merge_axes(Product* p) {
  std::vector<Axis> merged;
  auto append = [&](const Axis& x) {
    if (x.size == 1) return;
    bool continues = !merged.empty();
    for (size_t i = 0; continues && i < x.strides.size(); ++i) continues = merged.back().strides[i] == x.strides[i] * x.size;
    if (continues)
      merged.back() = {merged.back().size * x.size, x.strides};
    else
      merged.push_back(x);
  };
  for (const Axis& x : p->batch) append(x);
  append(p->rows);
  // With a single row, the innermost batch axis serves as rows when b does not vary along it.
  if (p->rows.size != 1 || (!merged.empty() && merged.back().strides[kB] == 0)) {
    p->rows = merged.back();
    merged.pop_back();
  }
  p->batch = std::move(merged);
}

// out transposed = b transposed x a transposed.
void transpose(Product* p) {
  std::swap(p->rows, p->columns);
  std::swap(p->a_depth, p->b_depth);
  auto swap_operands = [](Axis& x) { std::swap(x.strides[kA], x.strides[kB]); };
  for (Axis& x : p->batch) swap_operands(x);
  swap_operands(p->rows);
  swap_operands(p->columns);
}

class OwnMatmul final : public NativeOp {
 public:
  // packed: b is panels, and the product has no batch.
  OwnMatmul(const CallReader& call, const Product& p, bool packed = false) : p_(p), packed_(packed) {
    for (const Axis& x : p_.batch) batch_.add_axis(x.size, {x.strides[kA], x.strides[kB], x.strides[kOut]});
    const NativeCall& c = call.call();
    finishes_ = finishes();
    if (!finishes_) epilogue_ = Epilogue(call, call.output(0), p_.steps, p_.has_bias, {c.inputs.begin() + 2, c.inputs.end()});
  }

  void run(char* const* buffers, char*) const override {
    char* out = buffers[2 + p_.extras];
    switch (p_.dtype) {
      case DType::k_float32: products<float>(buffers, out); break;
      case DType::k_float64: products<double>(buffers, out); break;
      case DType::k_int32: products<uint32_t>(buffers, out); break;
      case DType::k_int64: products<uint64_t>(buffers, out); break;
      case DType::k_complex64: complex_products<float>(buffers, out); break;
      default: complex_products<double>(buffers, out); break;
    }
    if (!epilogue_.empty()) epilogue_.run(buffers + 2, out);
  }

 private:
  // Whether the product does bias and steps as it stores its sums: they are a vector for its columns, a tensor like itself, and relu, in this order.
  bool finishes() const {
    if (p_.dtype != DType::k_float32 || !p_.batch.empty() || p_.columns.size == 1 || p_.columns.strides[kOut] != 1) return false;
    if (p_.has_bias && (p_.rows.strides[kExtra] != 0 || p_.columns.strides[kExtra] != 1)) return false;
    size_t next = 0;
    if (next < p_.steps.size() && p_.steps[next].kind == StepKind::kAdd) {
      const size_t at = kExtra + p_.has_bias;
      if (p_.columns.strides[at] != 1 || p_.rows.strides[at] != p_.rows.strides[kOut]) return false;
      ++next;
    }
    if (next < p_.steps.size() && p_.steps[next].kind == StepKind::kRelu) ++next;
    return next == p_.steps.size();
  }
  Finish<float> finish_of(char* const* buffers) const {
    const bool has_add = !p_.steps.empty() && p_.steps[0].takes_operand(), has_relu = !p_.steps.empty() && !p_.steps.back().takes_operand();
    return {p_.has_bias ? reinterpret_cast<const float*>(buffers[2]) : nullptr, has_add ? reinterpret_cast<const float*>(buffers[2 + p_.has_bias]) : nullptr, has_relu};
  }

  template <class T>
  Gemm<T> one(T* a, T* b, T* c) const {
    return {p_.rows.size, p_.columns.size, p_.depth, a, p_.rows.strides[kA], p_.a_depth, b, p_.b_depth, p_.columns.strides[kB], c, p_.rows.strides[kOut], p_.columns.strides[kOut], p_.accumulate, false};
  }

  template <class F>
  void for_each(F&& fn) const {
    const double ns = static_cast<double>(p_.rows.size) * static_cast<double>(p_.columns.size) * static_cast<double>(p_.depth) * 0.08 + 50;
    const int64_t count = batch_.total();
    auto body = [&](int64_t begin, int64_t end) {
      Odometer<3> at = batch_;
      at.seek(begin);
      for (int64_t i = begin; i < end; ++i, at.next()) fn(at.offset[0], at.offset[1], at.offset[2]);
    };
    // Few big products share the threads inside each of them instead.
    if (count < 2 * num_threads() && ns > kParallelThresholdNs)
      body(0, count);
    else
      parallel_for(count, ns, body);
  }

  template <class T>
  void products(char* const* buffers, char* out) const {
    T *a = reinterpret_cast<T*>(buffers[0]), *b = reinterpret_cast<T*>(buffers[1]), *c = reinterpret_cast<T*>(out);
    if constexpr (std::is_same_v<T, float>) {
      if (packed_ || finishes_) {
        Gemm<float> g = one(a, b, c);
        if (finishes_) g.finish = finish_of(buffers);
        return packed_ ? gemm_packed(g) : gemm(g);
      }
    }
    if (batch_.rank == 0) return gemm(one(a, b, c));
    for_each([&](int64_t i, int64_t j, int64_t k) { gemm(one(a + i, b + j, c + k)); });
  }

  // Four products over the real and imaginary parts, which are views with doubled strides.
  template <class T>
  void complex_products(char* const* buffers, char* out) const {
    T *a = reinterpret_cast<T*>(buffers[0]), *b = reinterpret_cast<T*>(buffers[1]), *c = reinterpret_cast<T*>(out);
    for_each([&](int64_t i, int64_t j, int64_t k) {
      Gemm<T> g = one(a + 2 * i, b + 2 * j, c + 2 * k);
      for (int64_t* s : {&g.a_row, &g.a_column, &g.b_row, &g.b_column, &g.c_row, &g.c_column}) *s *= 2;
      const Gemm<T> real = g;
      gemm(g);
      g.accumulate = g.subtract = true;
      ++g.a;
      ++g.b;
      gemm(g);
      g = real;
      ++g.c;
      ++g.a;
      gemm(g);
      --g.a;
      ++g.b;
      g.accumulate = true;
      gemm(g);
    });
  }

  Product p_;
  bool packed_, finishes_ = false;
  Odometer<3> batch_;
  Epilogue epilogue_;
};

// What oneDNN takes without a copy: one of the two axes contiguous, the other not overlapping, no negative steps.
bool is_plain_matrix(int64_t rows, int64_t row_stride, int64_t columns, int64_t column_stride) {
  if (rows == 1) row_stride = std::max(row_stride, columns);
  if (columns == 1) column_stride = 1;
  if (rows == 1 && column_stride == 1) return true;
  if (columns == 1) return row_stride >= 1;
  return (column_stride == 1 && row_stride >= columns) || (row_stride == 1 && column_stride >= rows);
}

bool onednn_takes(const Product& p) {
  if (std::max({p.rows.size, p.columns.size, p.depth}) > INT32_MAX) return false;  // its blocking divides by sizes that have wrapped to zero
  if (!is_plain_matrix(p.rows.size, p.rows.strides[kA], p.depth, p.a_depth)) return false;
  if (!is_plain_matrix(p.depth, p.b_depth, p.columns.size, p.columns.strides[kB])) return false;
  if (p.columns.size > 1 && p.columns.strides[kOut] != 1) return false;
  if (p.rows.size > 1 && p.rows.strides[kOut] < p.columns.size) return false;
  for (const Axis& x : p.batch)
    for (int64_t s : x.strides)
      if (s < 0) return false;
  for (size_t i = kExtra; i < p.rows.strides.size(); ++i)
    if (p.rows.strides[i] < 0 || p.columns.strides[i] < 0) return false;
  return p.batch.size() + 2 <= DNNL_MAX_NDIMS;
}

struct Descs {
  dnnl::memory::desc a, b, out, bias;
  dnnl::primitive_attr attr;
  bool has_bias = false;
  std::vector<dnnl::memory::desc> binary;
};

Descs describe(const Product& p) {
  auto desc = [&](DType t, size_t operand, int64_t rows, int64_t row_stride, int64_t columns, int64_t column_stride) {
    Dims shape, strides;
    for (const Axis& x : p.batch) {
      shape.push_back(x.strides[operand] == 0 ? 1 : x.size);
      strides.push_back(x.strides[operand]);
    }
    shape.insert(shape.end(), {rows, columns});
    strides.insert(strides.end(), {row_stride, column_stride});
    // An axis of length 1 gets the stride that a dense layout would have: oneDNN compares them.
    int64_t step = 1;
    if (columns == 1) strides.back() = rows == 1 || row_stride > 1 ? 1 : std::max<int64_t>(1, rows);
    if (rows == 1) strides[strides.size() - 2] = std::max<int64_t>(columns, 1);
    for (size_t i = shape.size(); i-- > 0;) step = std::max(step, strides[i] * shape[i]);
    for (size_t i = 0; i + 2 < shape.size(); ++i)
      if (shape[i] == 1) strides[i] = step;
    return onednn_desc(t, shape, strides);
  };
  Descs d;
  d.a = desc(p.dtype, kA, p.rows.size, p.rows.strides[kA], p.depth, p.a_depth);
  d.b = desc(p.dtype, kB, p.depth, p.b_depth, p.columns.size, p.columns.strides[kB]);
  d.out = desc(p.out_dtype, kOut, p.rows.size, p.rows.strides[kOut], p.columns.size, p.columns.strides[kOut]);
  auto extra = [&](size_t i) {
    const int64_t r = p.rows.strides[i], c = p.columns.strides[i];
    return desc(p.out_dtype, i, r == 0 ? 1 : p.rows.size, r, c == 0 ? 1 : p.columns.size, c);
  };
  dnnl::post_ops post;
  if (p.accumulate) post.append_sum(1.f);
  std::vector<EpilogueStep> steps = p.steps;
  size_t next = kExtra;
  if (p.has_bias) {
    bool only_columns = p.rows.strides[kExtra] == 0 && (p.columns.strides[kExtra] == 1 || p.columns.size == 1);
    for (const Axis& x : p.batch) only_columns = only_columns && x.strides[kExtra] == 0;
    if (only_columns) {
      d.has_bias = true;
      d.bias = extra(next++);
    } else {
      steps.insert(steps.begin(), {StepKind::kAdd, 0, 0});
    }
  }
  for (; next < p.rows.strides.size(); ++next) d.binary.push_back(extra(next));
  append_post_ops(steps, d.binary, &post);
  d.attr.set_post_ops(post);
  d.attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return d;
}

// Throws dnnl::error where oneDNN has no implementation.
dnnl::matmul::primitive_desc make_primitive_desc(const Descs& d, bool any_weights) {
  const dnnl::memory::desc b = any_weights ? dnnl::memory::desc(d.b.get_dims(), d.b.get_data_type(), dnnl::memory::format_tag::any) : d.b;
  if (d.has_bias) return {onednn_engine(), d.a, b, d.bias, d.out, d.attr};
  return {onednn_engine(), d.a, b, d.out, d.attr};
}

Sequence build_sequence(const Product& p, size_t a_buffer, size_t b_buffer, bool packed) {
  const Descs d = describe(p);
  const auto pd = make_primitive_desc(d, packed);
  Sequence s;
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, s.operand(a_buffer, d.a)}, {DNNL_ARG_WEIGHTS, s.operand(b_buffer, pd.weights_desc())}};
  size_t next = 2;
  if (d.has_bias) args.push_back({DNNL_ARG_BIAS, s.operand(next++, d.bias)});
  size_t binary = 0;
  for (const int at : binary_post_ops(pd.get_primitive_attr())) args.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1, s.operand(next++, d.binary[binary++])});
  args.push_back({DNNL_ARG_DST, s.operand(2 + p.extras, d.out)});
  s.add(dnnl::matmul(pd), std::move(args), pd.scratchpad_desc());
  return s;
}

// Parts of the result: along a batch axis that is long enough, else along the longer of rows and columns.
std::unique_ptr<NativeOp> make_parts(const Product& p, size_t a_buffer, size_t b_buffer) {
  constexpr int64_t kTile = 32;  // rows and columns are cut at its multiples
  const double rest = static_cast<double>(p.rows.size) * static_cast<double>(p.columns.size) * static_cast<double>(p.depth);
  const double work = std::accumulate(p.batch.begin(), p.batch.end(), rest, [](double w, const Axis& x) { return w * static_cast<double>(x.size); });
  const int64_t count = part_count(work);
  Product part = p;
  Axis* cut = p.rows.size >= p.columns.size ? &part.rows : &part.columns;
  int64_t unit = kTile;
  for (Axis& x : part.batch)
    if (x.size >= count) {
      cut = &x;
      unit = 1;
      break;
    }
  const Axis whole = *cut;
  const int64_t length = ((whole.size + count - 1) / count + unit - 1) / unit * unit;
  std::vector<std::function<Sequence()>> build;
  std::vector<OneDnnParts::Part> parts;
  for (int64_t begin = 0; begin < whole.size; begin += length) {
    const int64_t size = std::min(length, whole.size - begin);
    if (begin == 0 || size != cut->size) {
      cut->size = size;
      build.push_back([part, a_buffer, b_buffer] { return build_sequence(part, a_buffer, b_buffer, false); });
    }
    OneDnnParts::Part one{build.size() - 1, std::vector<int64_t>(kExtra + p.extras)};
    const int64_t item = static_cast<int64_t>(dtype_size(p.dtype)), out_item = static_cast<int64_t>(dtype_size(p.out_dtype));
    one.offsets[a_buffer] = begin * whole.strides[kA] * item;
    one.offsets[b_buffer] = begin * whole.strides[kB] * item;
    for (size_t i = 0; i < p.extras; ++i) one.offsets[2 + i] = begin * whole.strides[kExtra + i] * out_item;
    one.offsets[2 + p.extras] = begin * whole.strides[kOut] * out_item;
    parts.push_back(std::move(one));
  }
  const double cost_ns = work * 0.03 / static_cast<double>(parts.size());
  return std::make_unique<OneDnnParts>(build, std::move(parts), cost_ns);
}

// Null when oneDNN has only its reference loop for this product, or nothing.
std::unique_ptr<NativeOp> try_onednn(const Product& p, bool swapped) {
  if (onednn_type(p.dtype) == dnnl::memory::data_type::undef || !onednn_takes(p)) return nullptr;
  try {
    if (is_reference(make_primitive_desc(describe(p), false).impl_info_str())) return nullptr;
    return make_parts(p, swapped ? 1 : 0, swapped ? 0 : 1);
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

// With 256-bit registers oneDNN's code is no faster than the tiles here, whose sums do not depend on the number of threads. With wider ones it wins by a little from small
// sizes on, but not where it has to keep NaN in a relu, or to copy an operand that lies across.
bool prefers_own(const Product& p) {
  if (p.rows.size == 1 || p.columns.size == 1) return true;
  const double work = static_cast<double>(p.rows.size) * static_cast<double>(p.columns.size) * static_cast<double>(p.depth);
  const bool has_relu = std::any_of(p.steps.begin(), p.steps.end(), [](const EpilogueStep& s) { return s.kind == StepKind::kRelu; });
  constexpr int64_t kDeep = 1024;
  const bool is_across = p.a_depth != 1 || (p.b_depth == 1 && p.depth >= kDeep);
  return !has_wide_registers() || has_relu || is_across || work <= 32.0 * 32 * 32;
}

std::unique_ptr<NativeOp> make_matmul(const NativeCall& c);

std::unique_ptr<NativeOp> make_contiguous(const CallReader& call, bool accumulate) {
  auto contiguous = [](std::vector<LayoutRef> layouts) {
    for (LayoutRef& l : layouts) l = contiguous_layout(l->dtype, l->shape_span());
    return layouts;
  };
  return make_converted(make_matmul, call.call(), contiguous(call.call().inputs), contiguous(call.call().outputs), accumulate);
}

std::unique_ptr<NativeOp> make_integer(const CallReader& call, bool accumulate) {
  auto widened = [](std::vector<LayoutRef> layouts) {
    for (LayoutRef& l : layouts) l = contiguous_layout(DType::k_int32, l->shape_span());
    return layouts;
  };
  return make_converted(make_matmul, call.call(), widened(call.call().inputs), widened(call.call().outputs), accumulate);
}

std::unique_ptr<NativeOp> make_packed(const CallReader& call, const NativeCall& c);

std::unique_ptr<NativeOp> make_matmul(const NativeCall& c) {
  CallReader call("matmul", c);
  if (call.flag("packed", false)) return make_packed(call, c);
  Product p = read_product(call);
  const char kind = dtype_kind(p.dtype);
  if (kind == 'b') call.fail(ErrorKind::kDType, "bool operands are not multiplied; cast them");
  const bool widens = p.out_dtype != p.dtype;
  const bool is_16_bit = p.dtype == DType::k_float16 || p.dtype == DType::k_bfloat16;
  if (widens && !(is_16_bit && p.out_dtype == DType::k_float32) && !(kind != 'f' && kind != 'c' && dtype_size(p.dtype) < 4 && p.out_dtype == DType::k_int32))
    call.fail(ErrorKind::kDType, "the output must have the operands' dtype (or float32 for 16-bit floats, int32 for smaller integers)");
  if (p.rows.size == 0 || p.columns.size == 0 || call.output(0).numel == 0) return make_nothing();
  if (is_16_bit) {
    if (p.depth > 0) {
      Product merged = p;
      merge_axes(&merged);
      if (auto op = try_onednn(merged, false)) return op;
    }
    return make_widened(make_matmul, c, p.accumulate);
  }
  if (dtype_size(p.dtype) < 4) return make_integer(call, p.accumulate);
  merge_axes(&p);
  if (p.dtype != DType::k_float32 || p.depth == 0 || prefers_own(p)) return std::make_unique<OwnMatmul>(call, p);
  const bool swap = p.columns.size > 1 && p.columns.strides[kOut] != 1;
  Product q = p;
  if (swap) transpose(&q);
  if (auto op = try_onednn(q, swap)) return op;
  // A strange layout that the tiles read as it is, or an epilogue that needs oneDNN's functions: then contiguous copies pay.
  const bool all_contiguous = std::all_of(c.inputs.begin(), c.inputs.end(), [](const LayoutRef& l) { return l->is_contiguous; }) && c.outputs[0]->is_contiguous;
  if (all_contiguous) return std::make_unique<OwnMatmul>(call, p);
  return make_contiguous(call, p.accumulate);
}

// The consumer's product as packing sees it: a [.., M, K] and out are row-major.
NativeCall consumer_call(CallReader& call, const NativeCall& given, const Layout& b, const Dims& a_shape) {
  if (a_shape.size() < 2 || b.rank != 2) call.fail(ErrorKind::kShape, "packing needs a_shape [..., M, K] and b [K, N]");
  Dims out_shape = a_shape;
  out_shape.back() = b.shape[1];
  NativeCall consumer;
  consumer.inputs = {contiguous_layout(b.dtype, a_shape), intern_layout(b.dtype, b.shape_span(), b.strides_span())};
  consumer.outputs = {contiguous_layout(b.dtype, out_shape)};
  for (const char* name : {"has_bias", "epilogue", "accumulate"}) {
    auto it = given.attributes.find(name);
    if (it != given.attributes.end()) consumer.attributes.insert(*it);
  }
  CallReader reader("matmul", consumer);
  const size_t extras = reader.flag("has_bias", false) + epilogue_operands(parse_epilogue(call, reader.text("epilogue", "")));
  // The packed form is asked for with the commonest operands: a bias [N], and full-sized operands of the epilogue.
  for (size_t i = 0; i < extras; ++i) {
    const bool is_bias = i == 0 && reader.flag("has_bias", false);
    consumer.inputs.push_back(is_bias ? contiguous_layout(b.dtype, Dims{b.shape[1]}) : contiguous_layout(b.dtype, out_shape));
  }
  return consumer;
}

// Whether the tiles here take packed panels of b.
bool packs_panels(const Product& p) {
  return p.dtype == DType::k_float32 && prefers_own(p) && p.batch.empty() && p.columns.size >= 8 && p.depth >= 8 && p.columns.strides[kOut] == 1;
}

// Makes panels of b.
class PackPanels final : public NativeOp {
 public:
  PackPanels(int64_t k, int64_t n, const Layout& b) : k_(k), n_(n), row_(b.strides[0]), column_(b.strides[1]) {}
  void run(char* const* buffers, char*) const override {
    Gemm<float> g{};
    g.n = n_;
    g.k = k_;
    g.b = reinterpret_cast<const float*>(buffers[0]);
    g.b_row = row_;
    g.b_column = column_;
    gemm_pack(g, reinterpret_cast<float*>(buffers[1]));
  }

 private:
  int64_t k_, n_, row_, column_;
};

// Null when the plain layout is as good.
std::unique_ptr<dnnl::matmul::primitive_desc> packed_primitive(const Product& p) {
  if (p.dtype == DType::k_float32 && prefers_own(p)) return nullptr;
  if (onednn_type(p.dtype) == dnnl::memory::data_type::undef || p.depth == 0 || p.rows.size == 0 || p.columns.size == 0 || !onednn_takes(p)) return nullptr;
  try {
    const Descs d = describe(p);
    auto pd = std::make_unique<dnnl::matmul::primitive_desc>(make_primitive_desc(d, true));
    if (is_reference(pd->impl_info_str()) || pd->weights_desc() == onednn_desc(p.dtype, d.b.get_dims(), row_major_strides(d.b.get_dims()))) return nullptr;
    return pd;
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

// The product that b is packed for.
Product read_consumer(CallReader& call, const NativeCall& c) {
  call.operands(1, 1);
  const Dims a_shape = call.list("a_shape", {});
  for (const char* name : {"has_bias", "accumulate"}) call.integer(name, 0);
  call.text("epilogue", "");
  call.no_more_attributes();
  const NativeCall consumer = consumer_call(call, c, call.input(0), a_shape);
  CallReader reader("matmul", consumer);
  Product p = read_product(reader);
  merge_axes(&p);
  return p;
}

Packing packing_of(const CallReader& call, const Product& p) {
  const auto pd = call.input(0).is_dense ? packed_primitive(p) : nullptr;
  return pd ? Packing{onednn_desc(call.input(0)), pd->weights_desc()} : Packing{};
}

size_t panel_bytes(int64_t depth, int64_t columns) { return static_cast<size_t>(gemm_packed_size(depth, columns)) * sizeof(float); }
size_t panel_bytes(const Product& p) { return panel_bytes(p.depth, p.columns.size); }

std::unique_ptr<NativeOp> make_packed_size(const NativeCall& c) {
  CallReader call("matmul_packed_size", c);
  const Product p = read_consumer(call, c);
  return make_size(call, packs_panels(p) ? panel_bytes(p) : packing_of(call, p).bytes());
}

std::unique_ptr<NativeOp> make_pack_weights(const NativeCall& c) {
  CallReader call("matmul_pack_weights", c);
  const Product p = read_consumer(call, c);
  if (!packs_panels(p)) return make_packing(call, packing_of(call, p));
  check_packed_output(call, panel_bytes(p));
  return std::make_unique<PackPanels>(p.depth, p.columns.size, call.input(0));
}

std::unique_ptr<NativeOp> make_packed(const CallReader& given, const NativeCall& c) {
  CallReader call("matmul", c);
  const Dims b_shape = call.list("b_shape", {});
  if (c.inputs.size() < 2 || b_shape.size() != 2) given.fail(ErrorKind::kValue, "packed needs b_shape [K, N]");
  NativeCall plain = c;
  plain.attributes.erase("packed");
  plain.attributes.erase("b_shape");
  plain.inputs[1] = contiguous_layout(c.inputs[0]->dtype, b_shape);
  CallReader reader("matmul", plain);
  Product p = read_product(reader);
  if (!c.inputs[0]->is_contiguous || !c.outputs[0]->is_contiguous) given.fail(ErrorKind::kValue, "with packed weights a and the output must be row-major");
  merge_axes(&p);
  if (packs_panels(p)) {
    if (c.inputs[1]->dtype != DType::k_uint8 || c.inputs[1]->size_bytes() != panel_bytes(p)) given.fail(ErrorKind::kValue, "the packed weights do not belong to this product");
    return std::make_unique<OwnMatmul>(CallReader("matmul", plain), p, true);
  }
  const auto pd = packed_primitive(p);
  if (!pd || call.input(1).numel != static_cast<int64_t>(pd->weights_desc().get_size()))
    given.fail(ErrorKind::kValue, "the packed weights do not belong to this product");
  return std::make_unique<OneDnnOp>([p] { return build_sequence(p, 0, 1, true); });
}

const RegisterNative matmul("matmul", make_matmul);
const RegisterNative packed_size("matmul_packed_size", make_packed_size);
const RegisterNative pack_weights("matmul_pack_weights", make_pack_weights);

}  // namespace

size_t own_matmul_panel_bytes(const Layout& b) { return panel_bytes(b.shape[0], b.shape[1]); }

std::unique_ptr<NativeOp> make_own_matmul_panels(const Layout& b) { return std::make_unique<PackPanels>(b.shape[0], b.shape[1], b); }

std::unique_ptr<NativeOp> make_own_matmul(const NativeCall& c, bool packed) {
  CallReader call("matmul", c);
  Product p = read_product(call);
  merge_axes(&p);
  return std::make_unique<OwnMatmul>(call, p, packed);
}

}  // namespace sampan::kernels
