#include "eager/view_map.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "exec/copy.h"

namespace sampan {
namespace {

constexpr size_t kUnlockBytes = size_t{1} << 18;

// False only when no two elements share memory; true when they may.
bool may_overlap(const Layout& l) {
  int axes[kMaxRank];
  std::iota(axes, axes + l.rank, 0);
  std::sort(axes, axes + l.rank, [&](int a, int b) { return std::abs(l.strides[a]) < std::abs(l.strides[b]); });
  int64_t reach = 0;  // of the axes so far
  for (int k = 0; k < l.rank; ++k) {
    const int64_t size = l.shape[axes[k]], stride = std::abs(l.strides[axes[k]]);
    if (size <= 1) continue;
    if (stride <= reach) return true;
    reach += (size - 1) * stride;
  }
  return false;
}

template <class T>
void add_along(char* to, const char*& from, const Layout& l, int axis) {
  if (axis == l.rank) {
    *reinterpret_cast<T*>(to) += *reinterpret_cast<const T*>(from);
    from += sizeof(T);
    return;
  }
  for (int64_t i = 0; i < l.shape[axis]; ++i) add_along<T>(to + i * l.strides[axis] * static_cast<int64_t>(sizeof(T)), from, l, axis + 1);
}

// A plain loop, since elements may meet in one place.
void add_into(const Tensor& to, const Tensor& from) {
  const char* source = from.data();
  switch (to.dtype()) {
    case DType::k_float32: return add_along<float>(to.data(), source, *to.layout, 0);
    case DType::k_float64: return add_along<double>(to.data(), source, *to.layout, 0);
    case DType::k_complex64: return add_along<std::complex<float>>(to.data(), source, *to.layout, 0);
    case DType::k_complex128: return add_along<std::complex<double>>(to.data(), source, *to.layout, 0);
    default: throw Error(ErrorKind::kRuntime, "no sum of " + std::string(dtype_name(to.dtype())) + " elements in place");
  }
}

bool is_half(DType dtype) { return dtype == DType::k_float16 || dtype == DType::k_bfloat16; }

struct Bytes {
  int64_t begin, end;
};

Bytes bytes_of(const Layout& l, int64_t offset_bytes) {
  if (!l.numel) return {0, 0};
  int64_t low, high;
  l.extent(&low, &high);
  const auto item = static_cast<int64_t>(dtype_size(l.dtype));
  return {offset_bytes + low * item, offset_bytes + (high + 1) * item};
}

// New memory that base and view lie in as they do in the tensor's own.
struct Image {
  Ref<Tensor> base, view;
};

Image make_image(const ViewPlace& place, DType computed) {
  const auto as_computed = [&](const Ref<const Layout>& l) {
    return l->dtype == computed || !is_half(l->dtype) ? l : intern_layout(computed, l->shape_span(), l->strides_span());
  };
  const Ref<const Layout> base = as_computed(place.base), view = as_computed(place.view);
  const int64_t grown = is_half(place.base->dtype) && base != place.base ? 2 : 1;
  const int64_t offset_bytes = place.offset_bytes * grown;
  const Bytes b = bytes_of(*base, 0), v = bytes_of(*view, offset_bytes);
  const int64_t begin = std::min(b.begin, v.begin), end = std::max(b.end, v.end);
  Ref<Storage> memory = allocate_storage(static_cast<size_t>(end - begin));
  std::memset(memory->data, 0, memory->size_bytes);
  return {view_storage(memory, base, -begin), view_storage(memory, view, view->numel ? offset_bytes - begin : 0)};
}

void fill_zeros(const Tensor& t) {
  const int64_t zero = 0;
  fill_elements(t.data(), *t.layout, &zero, DType::k_int64);
}

Ref<Tensor> run_map(ViewMap map, const ViewPlace& place, const Tensor& x) {
  UnlockScope unlock(place.base->size_bytes() > kUnlockBytes);
  const bool adds = map == ViewMap::kPlace && may_overlap(*place.view);
  const Image image = make_image(place, adds && is_half(place.base->dtype) ? DType::k_float32 : place.base->dtype);
  switch (map) {
    case ViewMap::kRead: copy_into(*image.base, x); return copy_tensor(*image.view, image.view->dtype());
    case ViewMap::kPlace:
      if (!adds) {
        copy_into(*image.view, x);
        return image.base;
      }
      add_into(*image.view, *copy_tensor(x, image.view->dtype()));
      return image.base->dtype() == place.base->dtype ? image.base : copy_tensor(*image.base, place.base->dtype);
    case ViewMap::kErase:
      copy_into(*image.base, x);
      fill_zeros(*image.view);
      return image.base;
  }
  __builtin_unreachable();
}

constexpr ViewMap transposed(ViewMap map) { return map == ViewMap::kRead ? ViewMap::kPlace : map == ViewMap::kPlace ? ViewMap::kRead : map; }

// The map of a gradient; recorded when the gradient is part of a graph itself.
Ref<Tensor> apply(ViewMap map, const ViewPlace& place, const Ref<Tensor>& x, bool create_graph, const Node& node) {
  if (may_overlap(*place.base)) {
    throw Error(ErrorKind::kNotImplemented, "a view of " + layout_text(*place.base) + ", whose elements share memory, was changed in place: it has no gradient." +
                                                "\n  Use the form that returns a new tensor, or clone() the tensor first." + node.where());
  }
  Ref<Tensor> result = run_map(map, place, *x);
  if (create_graph && wants_grad(*x)) set_history(*result, make_ref<ViewMapNode>(map, place, gradient_edge(*x)), 0);
  return result;
}

}  // namespace

void ViewMapNode::backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads, bool create_graph) {
  input_grads[0] = apply(transposed(map_), place_, grads[0], create_graph, *this);
}

void ViewWriteNode::backward(std::span<Ref<Tensor>> grads, std::span<Ref<Tensor>> input_grads, bool create_graph) {
  if (edges_[0].node) input_grads[0] = apply(ViewMap::kErase, place_, grads[0], create_graph, *this);
  if (edges_[1].node) input_grads[1] = apply(ViewMap::kRead, place_, grads[0], create_graph, *this);
}

}  // namespace sampan
