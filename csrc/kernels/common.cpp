#include "kernels/common.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <numeric>

#include "exec/parallel.h"

namespace sampan::kernels {

std::string shape_text(const Dims& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

std::string shape_text(const Layout& layout) { return std::string(dtype_name(layout.dtype)) + shape_text(shape_of(layout)); }

Dims row_major_strides(const Dims& shape) {
  Dims strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

int64_t product(const int64_t* first, const int64_t* last) {
  return std::accumulate(first, last, int64_t{1}, std::multiplies<>());
}

const Attribute* CallReader::find(const char* name) {
  read_.insert(name);
  auto it = call_.attributes.find(name);
  return it == call_.attributes.end() ? nullptr : &it->second;
}

int64_t CallReader::integer(const char* name, int64_t otherwise) {
  const Attribute* a = find(name);
  if (!a) return otherwise;
  if (const auto* v = std::get_if<int64_t>(a)) return *v;
  fail(ErrorKind::kType, std::string("attribute ") + name + " must be an integer");
}

bool CallReader::flag(const char* name, bool otherwise) { return integer(name, otherwise) != 0; }

double CallReader::real(const char* name, double otherwise) {
  const Attribute* a = find(name);
  if (!a) return otherwise;
  if (const auto* v = std::get_if<double>(a)) return *v;
  if (const auto* v = std::get_if<int64_t>(a)) return static_cast<double>(*v);
  fail(ErrorKind::kType, std::string("attribute ") + name + " must be a number");
}

std::string CallReader::text(const char* name, const std::string& otherwise) {
  const Attribute* a = find(name);
  if (!a) return otherwise;
  if (const auto* v = std::get_if<std::string>(a)) return *v;
  fail(ErrorKind::kType, std::string("attribute ") + name + " must be a string");
}

Dims CallReader::list(const char* name, const Dims& otherwise) {
  const Attribute* a = find(name);
  if (!a) return otherwise;
  const auto* v = std::get_if<Dims>(a);
  if (!v) fail(ErrorKind::kType, std::string("attribute ") + name + " must be a list of integers");
  if (!otherwise.empty() && v->size() != otherwise.size())
    fail(ErrorKind::kValue, std::string("attribute ") + name + " is " + shape_text(*v) + "; it needs " + std::to_string(otherwise.size()) + " entries");
  return *v;
}

int CallReader::axis(int64_t otherwise, int rank) {
  const int64_t a = integer("axis", otherwise), n = std::max(rank, 1);
  if (a < -n || a >= n) fail(ErrorKind::kValue, "axis is " + std::to_string(a) + "; it must lie between " + std::to_string(-n) + " and " + std::to_string(n - 1));
  return static_cast<int>(a < 0 ? a + n : a);
}

void CallReader::no_more_attributes() const {
  for (const auto& [name, value] : call_.attributes)
    if (!read_.count(name)) fail(ErrorKind::kValue, "unknown attribute " + name);
}

void CallReader::operands(size_t inputs, size_t outputs) const {
  if (call_.inputs.size() == inputs && call_.outputs.size() == outputs) return;
  fail(ErrorKind::kValue, "it takes " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) + " outputs here, and received " +
                              std::to_string(call_.inputs.size()) + " and " + std::to_string(call_.outputs.size()));
}

void CallReader::same_dtype(const Layout& a, const Layout& b, const char* what) const {
  if (a.dtype != b.dtype) fail(ErrorKind::kDType, std::string(what) + " must have one dtype");
}

void CallReader::same_shape(const Layout& a, const Dims& expected, const char* what) const {
  if (shape_of(a) != expected) fail(ErrorKind::kShape, std::string(what) + " is " + shape_text(shape_of(a)) + "; it must be " + shape_text(expected));
}

void CallReader::index_dtype(const Layout& a, const char* what) const {
  if (a.dtype != DType::k_int32 && a.dtype != DType::k_int64)
    fail(ErrorKind::kDType, std::string(what) + " is " + dtype_name(a.dtype) + "; it must be int32 or int64");
}

void CallReader::fail(ErrorKind kind, const std::string& what) const {
  std::string operands;
  for (const auto& l : call_.inputs) operands += (operands.empty() ? "" : ", ") + shape_text(*l);
  std::string outputs;
  for (const auto& l : call_.outputs) outputs += (outputs.empty() ? "" : ", ") + shape_text(*l);
  throw Error(kind, std::string(native_) + ": " + what + " (inputs: " + operands + "; outputs: " + outputs + ")");
}

namespace {

template <class From, class To>
SAMPAN_INLINE To convert(From v) {
  if constexpr (std::is_same_v<From, To>)
    return v;
  else if constexpr (is_complex<From> || is_complex<To>)
    return To{};  // refused by copy_strided
  else
    return from_compute<To>(static_cast<Compute<To>>(to_compute(v)));
}

// One row; both strides are run-time, but the unit-stride loop is what vectorises.
template <class From, class To>
SAMPAN_INLINE void copy_row(const From* from, int64_t from_step, To* to, int64_t to_step, int64_t n) {
  if (from_step == 1 && to_step == 1) {
    if constexpr (std::is_same_v<From, To>) {
      std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(n) * sizeof(To));
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = convert<From, To>(from[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_step] = convert<From, To>(from[i * from_step]);
  }
}

SAMPAN_CLONES void widen_row(const Float16* from, float* to, int64_t n) { copy_row(from, 1, to, 1, n); }
SAMPAN_CLONES void narrow_row(const float* from, Float16* to, int64_t n) { copy_row(from, 1, to, 1, n); }
SAMPAN_CLONES void widen_row(const BFloat16* from, float* to, int64_t n) { copy_row(from, 1, to, 1, n); }
SAMPAN_CLONES void narrow_row(const float* from, BFloat16* to, int64_t n) { copy_row(from, 1, to, 1, n); }

template <class From, class To>
void copy_any_row(const From* from, int64_t from_step, To* to, int64_t to_step, int64_t n) {
  if constexpr (is_half<From> && std::is_same_v<To, float>) {
    if (from_step == 1 && to_step == 1) return widen_row(from, to, n);
  } else if constexpr (is_half<To> && std::is_same_v<From, float>) {
    if (from_step == 1 && to_step == 1) return narrow_row(from, to, n);
  }
  copy_row(from, from_step, to, to_step, n);
}

// A tile side of 32 keeps both sides of a transposition in L1.
constexpr int64_t kTile = 32;

template <class From, class To>
void copy_typed(const Layout& src, const From* from, const Layout& dst, To* to) {
  std::vector<int> order;
  for (int d = 0; d < dst.rank; ++d)
    if (dst.shape[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return dst.strides[a] > dst.strides[b]; });
  Odometer<2> walk;
  for (int d : order) walk.add_axis(dst.shape[d], {src.strides[d], dst.strides[d]});
  if (walk.rank == 0) {
    *to = convert<From, To>(*from);
    return;
  }
  const int last = walk.rank - 1;
  const int64_t n = walk.shape[last], from_step = walk.strides[0][last], to_step = walk.strides[1][last];
  int other = -1;
  for (int d = 0; d < last && from_step != 1; ++d)
    if (walk.strides[0][d] == 1) other = d;
  walk.rank = last;
  if (other < 0) {
    const double cost_ns = 2.0 + static_cast<double>(n) * (from_step == 1 ? 0.3 : 0.8);
    parallel_for(walk.total(), cost_ns, [&](int64_t begin, int64_t end) {
      Odometer<2> at = walk;
      at.seek(begin);
      for (int64_t i = begin; i < end; ++i, at.next()) copy_any_row(from + at.offset[0], from_step, to + at.offset[1], to_step, n);
    });
    return;
  }
  const int64_t m = walk.shape[other], from_other = walk.strides[0][other], to_other = walk.strides[1][other];
  const int64_t tiles = (m + kTile - 1) / kTile;
  walk.shape[other] = tiles;
  walk.strides[0][other] *= kTile;
  walk.strides[1][other] *= kTile;
  const int64_t column_tiles = (n + kTile - 1) / kTile;
  walk.shape[last] = column_tiles;
  walk.strides[0][last] = from_step * kTile;
  walk.strides[1][last] = to_step * kTile;
  walk.rank = last + 1;
  parallel_for(walk.total(), kTile * kTile * 0.8, [&](int64_t begin, int64_t end) {
    Odometer<2> at = walk;
    at.seek(begin);
    for (int64_t i = begin; i < end; ++i, at.next()) {
      const int64_t rows = std::min(kTile, m - at.index[other] * kTile), columns = std::min(kTile, n - at.index[last] * kTile);
      for (int64_t r = 0; r < rows; ++r)
        copy_row(from + at.offset[0] + r * from_other, from_step, to + at.offset[1] + r * to_other, to_step, columns);
    }
  });
}

}  // namespace

void copy_strided(const Layout& src, const char* from, const Layout& dst, char* to) {
  if (dst.numel == 0) return;
  if (src.dtype == dst.dtype) {
    // Equal dtypes move as bits.
    switch (dtype_size(src.dtype)) {
      case 1: return copy_typed(src, reinterpret_cast<const uint8_t*>(from), dst, reinterpret_cast<uint8_t*>(to));
      case 2: return copy_typed(src, reinterpret_cast<const uint16_t*>(from), dst, reinterpret_cast<uint16_t*>(to));
      case 4: return copy_typed(src, reinterpret_cast<const uint32_t*>(from), dst, reinterpret_cast<uint32_t*>(to));
      case 8: return copy_typed(src, reinterpret_cast<const uint64_t*>(from), dst, reinterpret_cast<uint64_t*>(to));
      default: return copy_typed(src, reinterpret_cast<const std::complex<double>*>(from), dst, reinterpret_cast<std::complex<double>*>(to));
    }
  }
  // Narrow dtypes and what they are computed in, both ways.
  auto either_way = [&]<class Narrow, class Wide>(DType narrow, DType wide) {
    if (src.dtype == narrow && dst.dtype == wide)
      copy_typed(src, reinterpret_cast<const Narrow*>(from), dst, reinterpret_cast<Wide*>(to));
    else if (src.dtype == wide && dst.dtype == narrow)
      copy_typed(src, reinterpret_cast<const Wide*>(from), dst, reinterpret_cast<Narrow*>(to));
    else
      return false;
    return true;
  };
  const bool done = either_way.operator()<Float16, float>(DType::k_float16, DType::k_float32) ||
                    either_way.operator()<BFloat16, float>(DType::k_bfloat16, DType::k_float32) ||
                    either_way.operator()<int8_t, int32_t>(DType::k_int8, DType::k_int32) ||
                    either_way.operator()<uint8_t, int32_t>(DType::k_uint8, DType::k_int32) ||
                    either_way.operator()<int16_t, int32_t>(DType::k_int16, DType::k_int32);
  if (!done) throw Error(ErrorKind::kNotImplemented, std::string("no conversion from ") + dtype_name(src.dtype) + " to " + dtype_name(dst.dtype) + " here");
}

char* thread_buffer(size_t bytes) {
  struct Block {
    char* data = nullptr;
    size_t size = 0;
    ~Block() { std::free(data); }
  };
  thread_local Block block;
  if (block.size < bytes) {
    std::free(block.data);
    block.size = 0;
    block.data = static_cast<char*>(std::aligned_alloc(64, align64(bytes)));
    if (!block.data) throw std::bad_alloc();
    block.size = bytes;
  }
  return block.data;
}

namespace {

class ConvertedOp final : public NativeOp {
 public:
  ConvertedOp(const NativeFactory& factory, const NativeCall& call, const std::vector<LayoutRef>& inputs, const std::vector<LayoutRef>& outputs,
              bool reads_outputs)
      : input_count_(call.inputs.size()), reads_outputs_(reads_outputs) {
    auto add = [&](const std::vector<LayoutRef>& given, const std::vector<LayoutRef>& wanted) {
      for (size_t i = 0; i < given.size(); ++i) {
        const bool same = given[i] == wanted[i];
        operands_.push_back({given[i], wanted[i], same ? kInPlace : bytes_});
        if (!same) bytes_ += align64(wanted[i]->size_bytes());
      }
    };
    add(call.inputs, inputs);
    add(call.outputs, outputs);
    inner_ = factory({inputs, outputs, call.attributes});
  }

  size_t scratch_bytes() const override { return bytes_ + inner_->scratch_bytes(); }

  void run(char* const* buffers, char* scratch) const override {
    std::vector<char*> inner(operands_.size());
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Operand& o = operands_[i];
      inner[i] = o.offset == kInPlace ? buffers[i] : scratch + o.offset;
      if (o.offset != kInPlace && (i < input_count_ || reads_outputs_)) copy_strided(*o.given, buffers[i], *o.wanted, inner[i]);
    }
    inner_->run(inner.data(), scratch + bytes_);
    for (size_t i = input_count_; i < operands_.size(); ++i)
      if (operands_[i].offset != kInPlace) copy_strided(*operands_[i].wanted, inner[i], *operands_[i].given, buffers[i]);
  }

 private:
  static constexpr size_t kInPlace = ~size_t{0};
  struct Operand {
    LayoutRef given, wanted;
    size_t offset;
  };
  std::vector<Operand> operands_;
  size_t input_count_;
  size_t bytes_ = 0;
  bool reads_outputs_;
  std::unique_ptr<NativeOp> inner_;
};

class NothingOp final : public NativeOp {
  void run(char* const*, char*) const override {}
};

}  // namespace

std::unique_ptr<NativeOp> make_converted(const NativeFactory& inner, const NativeCall& call, const std::vector<LayoutRef>& inputs,
                                         const std::vector<LayoutRef>& outputs, bool reads_outputs) {
  return std::make_unique<ConvertedOp>(inner, call, inputs, outputs, reads_outputs);
}

std::unique_ptr<NativeOp> make_widened(const NativeFactory& inner, const NativeCall& call, bool reads_outputs) {
  auto widened = [](std::vector<LayoutRef> layouts) {
    for (LayoutRef& l : layouts) {
      if (l->dtype != DType::k_float16 && l->dtype != DType::k_bfloat16) continue;
      l = l->is_dense ? intern_layout(DType::k_float32, l->shape_span(), l->strides_span()) : contiguous_layout(DType::k_float32, l->shape_span());
    }
    return layouts;
  };
  return make_converted(inner, call, widened(call.inputs), widened(call.outputs), reads_outputs);
}

std::unique_ptr<NativeOp> make_nothing() { return std::make_unique<NothingOp>(); }

}  // namespace sampan::kernels
