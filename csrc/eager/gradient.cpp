#include "eager/gradient.h"

#include <algorithm>

#include "base/error.h"
#include "exec/parallel.h"
#include "exec/copy.h"

namespace sampan {
namespace {

// Memory-bound: one core moves about ten bytes in a nanosecond.
constexpr double kUnlockThresholdNs = 20000;
constexpr double kAddCostPerByteNs = 0.1;

template <class T>
__attribute__((optimize("O3"))) void add_elements(T* __restrict into, const T* __restrict a, const T* __restrict b, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) into[i] = a[i] + b[i];
}
template <class T>
__attribute__((optimize("O3"))) void add_elements_in_place(T* __restrict into, const T* __restrict b, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) into[i] += b[i];
}

// Dense memory of one layout, added as a flat array whatever the order of its axes.
template <class T>
void add_flat(char* into, const char* a, const char* b, int64_t count) {
  UnlockScope unlock(static_cast<double>(count) * sizeof(T) * kAddCostPerByteNs > kUnlockThresholdNs);
  parallel_for(count, sizeof(T) * kAddCostPerByteNs, [&](int64_t begin, int64_t end) {
    if (into == a) {
      add_elements_in_place(reinterpret_cast<T*>(into), reinterpret_cast<const T*>(b), begin, end);
    } else {
      add_elements(reinterpret_cast<T*>(into), reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), begin, end);
    }
  });
}

// False when there is no native loop for these tensors. into may be a, and then must not overlap b partly.
bool add_native(Tensor& into, const Tensor& a, const Tensor& b) {
  if (!(a.layout == b.layout) || !(into.layout == a.layout) || !a.layout->is_dense) return false;
  switch (a.dtype()) {
    case DType::k_float32: add_flat<float>(into.data(), a.data(), b.data(), a.numel()); return true;
    case DType::k_complex64: add_flat<float>(into.data(), a.data(), b.data(), 2 * a.numel()); return true;
    case DType::k_float64: add_flat<double>(into.data(), a.data(), b.data(), a.numel()); return true;
    case DType::k_complex128: add_flat<double>(into.data(), a.data(), b.data(), 2 * a.numel()); return true;
    default: return false;
  }
}

Ref<Tensor> add_by_op(const Ref<Tensor>& a, const Ref<Tensor>& b, bool create_graph) {
  if (!eager_host.add) throw Error(ErrorKind::kRuntime, "backward() must add two gradients, and no add op is registered (_rt.set_add_op)");
  GradModeScope mode(create_graph);
  return eager_host.add(a, b);
}

Ref<Tensor> add_selected(const Ref<Tensor>& a, const Ref<Tensor>& b) {
  GradModeScope mode(false);
  return eager_host.add_rows(a, b);
}

}  // namespace

bool is_exclusive(const Ref<Tensor>& t) {
  return t->use_count() == 1 && t->storage->use_count() == 1 && !t->storage->deleter && !t->python_object && !producer(*t);
}

void add_gradient(Ref<Tensor>& into, Ref<Tensor> value, bool create_graph) {
  if (!into) {
    into = std::move(value);
    return;
  }
  if (selected_rows(*into) || selected_rows(*value)) {
    into = add_selected(into, value);
    return;
  }
  if (!create_graph) {
    if (is_exclusive(into) && add_native(*into, *into, *value)) return;
    if (is_exclusive(value) && add_native(*value, *value, *into)) {
      into = std::move(value);
      return;
    }
    if (into->layout == value->layout && into->layout->is_dense) {
      Ref<Tensor> sum = empty_tensor(into->layout);
      if (add_native(*sum, *into, *value)) {
        into = std::move(sum);
        return;
      }
    }
  }
  into = add_by_op(into, value, create_graph);
}

void accumulate_into_leaf(EagerMeta& meta, Ref<Tensor> grad, bool create_graph) {
  if (selected_rows(*grad) || (meta.grad && selected_rows(*meta.grad))) {
    meta.grad = meta.grad ? add_selected(meta.grad, grad) : std::move(grad);
    meta.grad->stop_gradient = false;
    return;
  }
  if (create_graph) {
    meta.grad = meta.grad ? add_by_op(meta.grad, grad, true) : std::move(grad);
    return;
  }
  if (!meta.grad) {
    if (is_exclusive(grad) && grad->layout->is_dense) {
      grad->stop_gradient = false;
      meta.grad = std::move(grad);
      return;
    }
    const Layout& own = *meta.self->layout;
    Ref<Tensor> copy = empty_tensor(own.is_dense && own.dtype == grad->dtype() && same_shape(own, *grad->layout)
                                        ? meta.self->layout
                                        : contiguous_layout(grad->dtype(), grad->layout->shape_span()));
    copy_into(*copy, *grad);
    copy->stop_gradient = false;
    meta.grad = std::move(copy);
    return;
  }
  Tensor& into = *meta.grad;
  if (into.storage == grad->storage || !add_native(into, into, *grad)) {
    const Ref<Tensor> sum = add_by_op(meta.grad, grad, false);
    copy_into(into, *sum);
  }
  into.storage->version.fetch_add(1, std::memory_order_relaxed);
}

Ref<Tensor> ones_like(const Tensor& t) {
  if (!is_differentiable(t.dtype())) {
    throw Error(ErrorKind::kDType, "a " + layout_text(*t.layout) + " tensor has no gradient: only floating and complex ones have");
  }
  Ref<Tensor> ones = empty_tensor(t.layout->is_dense ? t.layout : contiguous_layout(t.dtype(), t.layout->shape_span()));
  const double one = 1;
  fill_elements(ones->data(), *ones->layout, &one, DType::k_float64);
  return ones;
}

void check_gradient(const Tensor& grad, const Layout& expected, const std::string& what, bool any_dtype) {
  const Layout& got = *grad.layout;
  if (const SelectedRows* selected = selected_rows(grad)) {
    const bool fits = got.rank == expected.rank && got.rank > 0 && selected->height == expected.shape[0] && std::equal(got.shape + 1, got.shape + got.rank, expected.shape + 1);
    if (!fits) throw Error(ErrorKind::kShape, what + " holds rows " + layout_text(got) + " of a table of height " + std::to_string(selected->height) + "; it must have the shape of its tensor, " + layout_text(expected));
  } else if (&got == &expected) {
    return;
  } else if (!same_shape(got, expected)) {
    throw Error(ErrorKind::kShape, what + " is " + layout_text(got) + "; it must have the shape of its tensor, " + layout_text(expected));
  }
  if (got.dtype != expected.dtype && !any_dtype) throw Error(ErrorKind::kDType, what + " is " + layout_text(got) + "; it must have the dtype of its tensor, " + layout_text(expected));
}

}  // namespace sampan
