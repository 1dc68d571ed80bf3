#include <algorithm>

#include "kernels/conv.h"
#include "kernels/pool.h"

namespace sampan::kernels {
namespace {

WindowAxis plain_axis(const CallReader& call, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t low, int64_t high, int64_t dilation, bool counts_padding) {
  WindowAxis a{in, out, dilation, {}, {}, {}};
  for (int64_t o = 0; o < out; ++o) {
    const int64_t first = o * stride - low, last = first + (kernel - 1) * dilation + 1;
    // The first position inside, on the window's own grid.
    const int64_t start = first < 0 ? first + (-first + dilation - 1) / dilation * dilation : first;
    const int64_t stop = std::min(last, in);
    if (start >= stop) call.fail(ErrorKind::kShape, "window " + std::to_string(o) + " of an axis of length " + std::to_string(in) + " lies outside the input");
    a.start.push_back(start);
    a.stop.push_back(stop);
    a.extent.push_back(counts_padding ? std::min(last, in + high) - first : stop - start);
  }
  return a;
}

WindowAxis adaptive_axis(int64_t in, int64_t out) {
  WindowAxis a{in, out, 1, {}, {}, {}};
  // Of a product that may not fit in 64 bits.
  const auto scaled = [&](int64_t o) { return static_cast<int64_t>(static_cast<__int128>(o) * in / out); };
  const auto scaled_up = [&](int64_t o) { return static_cast<int64_t>((static_cast<__int128>(o) * in + out - 1) / out); };
  for (int64_t o = 0; o < out; ++o) {
    a.start.push_back(scaled(o));
    a.stop.push_back(scaled_up(o + 1));
    a.extent.push_back(a.stop.back() - a.start.back());
  }
  return a;
}

}  // namespace

int64_t PoolShape::in_size() const {
  int64_t n = 1;
  for (const WindowAxis& a : axes) n *= a.in;
  return n;
}

int64_t PoolShape::out_size() const {
  int64_t n = 1;
  for (const WindowAxis& a : axes) n *= a.out;
  return n;
}

PoolShape read_pool(CallReader& call, const Layout& x, const Layout& out, bool is_adaptive, bool is_backward) {
  PoolShape p;
  p.dtype = x.dtype;
  const std::string kind = call.text("kind", "max");
  if (kind != "max" && kind != "avg") call.fail(ErrorKind::kValue, "kind '" + kind + "' is unknown; it is max or avg");
  p.is_max = kind == "max";
  p.with_indices = call.flag("with_indices", is_backward && p.is_max);
  if (p.with_indices && !p.is_max) call.fail(ErrorKind::kValue, "only max pooling has indices");
  const int spatial = x.rank - 2;
  if (spatial < 1 || spatial > 3 || out.rank != x.rank || out.shape[0] != x.shape[0] || out.shape[1] != x.shape[1])
    call.fail(ErrorKind::kShape, "x and the output need 3, 4 or 5 axes and the same batch and channels");
  p.batch = x.shape[0];
  p.channels = x.shape[1];
  p.divisor_override = 0;
  const size_t n = static_cast<size_t>(spatial);
  // The windows are kept in tables, and gradients of broadcast outputs may be of any number without taking memory.
  for (size_t d = 0; d < n && out.numel; ++d) require_allocatable(static_cast<size_t>(out.shape[d + 2]) * 3 * sizeof(int64_t));
  if (out.numel == 0) {
    // No windows, along an axis that may be of any length.
    for (const char* name : {"kernel", "strides", "padding_low", "padding_high", "dilations"}) call.list(name, {});
    call.flag("count_include_pad", true);
    call.integer("divisor_override", 0);
    for (size_t d = 0; d < n; ++d) p.axes.push_back({x.shape[d + 2], out.shape[d + 2], 1, {}, {}, {}});
  } else if (is_adaptive) {
    for (size_t d = 0; d < n; ++d) {
      if (x.shape[d + 2] == 0) call.fail(ErrorKind::kShape, "an empty axis has no windows");
      p.axes.push_back(adaptive_axis(x.shape[d + 2], out.shape[d + 2]));
    }
  } else {
    const Dims kernel = call.steps("kernel", Dims(n, 0), 1), strides = call.steps("strides", kernel, 1);
    const Dims low = call.steps("padding_low", Dims(n, 0), 0), high = call.steps("padding_high", Dims(n, 0), 0), dilations = call.steps("dilations", Dims(n, 1), 1);
    const bool counts_padding = call.flag("count_include_pad", true);
    p.divisor_override = call.integer("divisor_override", 0);
    if (!p.is_max && dilations != Dims(n, 1)) call.fail(ErrorKind::kNotImplemented, "average pooling has no dilation");
    for (size_t d = 0; d < n; ++d) p.axes.push_back(plain_axis(call, x.shape[d + 2], out.shape[d + 2], kernel[d], strides[d], low[d], high[d], dilations[d], counts_padding));
  }
  call.no_more_attributes();
  return p;
}

LayoutRef pool_layout(const LayoutRef& l) { return l->is_contiguous || is_channels_last(*l) ? l : channels_last_layout(l->dtype, shape_of(*l)); }

}  // namespace sampan::kernels
