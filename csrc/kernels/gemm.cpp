#include "kernels/gemm.h"

#include <algorithm>

#include "exec/parallel.h"
#include "kernels/common.h"
#include "kernels/tiles.h"

namespace sampan::kernels {
namespace {

template <class T>
constexpr int64_t kBlockColumns = 16 * kTileColumns<T>;  // kTileDepth x this is half of a 512 KiB L2

// A block of B: its first `whole` columns are read in place, the others from packed panels that lie `panel` numbers apart.
template <class T>
struct Columns {
  const T *in_place, *packed;
  int64_t depth, count, whole, row, panel;
};

// A strip of C, as wide as the block of B.
template <class T, int kBytes, bool kAhead = false>
SAMPAN_INLINE void strip(const Gemm<T>& g, const Columns<T>& b, int64_t rows, const T* a, int64_t a_row, int64_t a_column, T* c, bool accumulate, bool has_next) {
  constexpr int64_t kWidth = kTileColumns<T>, kRows = kMostTileRows<kBytes>;
  const int64_t panels = (b.count + kWidth - 1) / kWidth, straight = g.c_column == 1 ? b.count / kWidth : 0;
  for (int64_t p = 0, count; p < panels; p += count) {
    const int64_t n = p * kWidth;
    const bool direct = n < b.whole;
    const T* panel = direct ? b.in_place + n : b.packed + (n - b.whole) / kWidth * b.panel;
    const int64_t panel_row = direct ? b.row : kWidth, next = direct ? kWidth : b.panel;
    T* to = c + n * g.c_column;
    if (p < straight) {
      count = std::min(kPanelsAtOnce<kBytes>, (direct ? b.whole / kWidth : straight) - p);
      tile_rows<T, kBytes, kAhead>(rows, count, b.depth, a, a_row, a_column, panel, panel_row, next, to, g.c_row, kWidth, accumulate, g.subtract, has_next);
      continue;
    }
    count = 1;
    const int64_t width = std::min(kWidth, b.count - n);
    T edge[kRows * kWidth];
    tile_rows<T, kBytes>(rows, 1, b.depth, a, a_row, a_column, panel, panel_row, 0, edge, kWidth, 0, false, g.subtract);
    for (int r = 0; r < rows; ++r)
      for (int64_t j = 0; j < width; ++j) {
        T* e = to + r * g.c_row + j * g.c_column;
        *e = accumulate ? *e + edge[r * kWidth + j] : edge[r * kWidth + j];
      }
  }
}

// Rows [m0, m1) and columns [n0, n1) of C.
template <class T, int kBytes>
SAMPAN_INLINE void block(const Gemm<T>& g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
  constexpr int64_t kWidth = kTileColumns<T>, kRows = kMostTileRows<kBytes>;
  const int64_t most_columns = std::min(kBlockColumns<T>, (n1 - n0 + kWidth - 1) / kWidth * kWidth), most_depth = std::min(kTileDepth, g.k);
  // B is read in place where its rows are contiguous and few rows of A would use a packed copy.
  const bool in_place_b = g.b_column == 1 && (m1 - m0 <= 4 * kTileRows || (n1 - n0) * g.b_row <= 4096);
  // Broadcasts walk down a column of A: when that is not the contiguous axis of a big matrix, packed groups spare cache lines.
  const bool pack_a = g.a_column != 1 && g.a_column * g.k > 4096 && n1 - n0 > 2 * kWidth;
  const bool needs_packed_b = !in_place_b || (n1 - n0) % kWidth != 0;
  T* packed_b = nullptr;
  T* packed_a = nullptr;
  if (needs_packed_b || pack_a) {
    const int64_t b_items = needs_packed_b ? most_columns * most_depth : 0, a_items = pack_a ? spaced(most_depth, std::min(kBlockRows, m1 - m0) + kRows) : 0;
    packed_b = reinterpret_cast<T*>(thread_scratch(static_cast<size_t>(b_items + a_items) * sizeof(T)));
    packed_a = packed_b + b_items;
  }
  for (int64_t nb = n0; nb < n1; nb += kBlockColumns<T>) {
    const int64_t columns = std::min(kBlockColumns<T>, n1 - nb);
    for (int64_t kb = 0; kb < g.k; kb += kTileDepth) {
      const int64_t depth = std::min(kTileDepth, g.k - kb);
      const T* in_place = g.b + kb * g.b_row + nb * g.b_column;
      const Columns<T> b{in_place, packed_b, depth, columns, in_place_b ? columns / kWidth * kWidth : 0, g.b_row, kWidth * depth};
      if (b.whole < columns) pack_columns(in_place + b.whole * g.b_column, g.b_row, g.b_column, depth, columns - b.whole, packed_b);
      for (int64_t mb = m0; mb < m1; mb += kBlockRows) {
        const Groups<kBytes> groups(std::min(kBlockRows, m1 - mb));
        const T* rows = g.a + mb * g.a_row + kb * g.a_column;
        if (pack_a) pack_groups(rows, g.a_row, g.a_column, depth, groups, packed_a);
        for (int64_t i = 0; i < groups.count; ++i) {
          const int64_t first = groups.begin[i], count = groups.begin[i + 1] - first;
          const T* a = pack_a ? packed_a + i * spaced(depth, kRows) : rows + first * g.a_row;
          strip<T, kBytes>(g, b, count, a, pack_a ? 1 : g.a_row, pack_a ? kRows : g.a_column, g.c + (mb + first) * g.c_row + nb * g.c_column, g.accumulate || kb > 0, i + 1 < groups.count);
          if (g.finish && kb + depth == g.k) finish_block<T, kBytes>(g.finish, g.c, g.c_row, mb + first, count, nb, columns);
        }
      }
    }
  }
}

// C tile [kM, kN]: dot products of contiguous rows of A and of B's transpose. Two or one accumulators each, so that the chains hide the latency.
template <class T, int kM, int kN>
SAMPAN_INLINE void dot_tile(const Gemm<T>& g, int64_t m, int64_t n) {
  constexpr int kL = kLanes<T>, kChains = kM * kN < 8 ? 2 : 1;
  Vec<T> s[kChains][kM][kN];
  for (int c = 0; c < kChains; ++c)
    for (int i = 0; i < kM; ++i)
      for (int j = 0; j < kN; ++j) s[c][i][j] = Vec<T>{};
  const T *a = g.a + m * g.a_row, *b = g.b + n * g.b_column;
  int64_t k = 0;
  for (; k + kChains * kL <= g.k; k += kChains * kL) {
#pragma GCC unroll 2
    for (int c = 0; c < kChains; ++c) {
      Vec<T> right[kN];
#pragma GCC unroll 4
      for (int j = 0; j < kN; ++j) right[j] = load(b + j * g.b_column + k + c * kL);
#pragma GCC unroll 4
      for (int i = 0; i < kM; ++i) {
        const Vec<T> left = load(a + i * g.a_row + k + c * kL);
#pragma GCC unroll 4
        for (int j = 0; j < kN; ++j) s[c][i][j] += left * right[j];
      }
    }
  }
  for (int i = 0; i < kM; ++i)
    for (int j = 0; j < kN; ++j) {
      T total = sum_lanes<T>(kChains == 2 ? s[0][i][j] + s[kChains - 1][i][j] : s[0][i][j]);
      for (int64_t rest = k; rest < g.k; ++rest) total += a[i * g.a_row + rest] * b[j * g.b_column + rest];
      if (g.subtract) total = -total;
      T* to = g.c + (m + i) * g.c_row + (n + j) * g.c_column;
      *to = g.accumulate ? *to + total : total;
    }
}

// The shape of the tile decides the order of a sum, so it depends on the rows of the whole product only: columns are single where four do not fit.
template <class T>
SAMPAN_INLINE void dots(const Gemm<T>& g, int64_t n0, int64_t n1) {
  if (g.m == 1) {
    int64_t n = n0;
    for (; n + 4 <= n1; n += 4) dot_tile<T, 1, 4>(g, 0, n);
    for (; n < n1; ++n) dot_tile<T, 1, 1>(g, 0, n);
    return;
  }
  int64_t n = n0;
  for (; n + 3 <= n1; n += 3) {
    int64_t m = 0;
    for (; m + 4 <= g.m; m += 4) dot_tile<T, 4, 3>(g, m, n);
    for (; m < g.m; ++m) dot_tile<T, 1, 3>(g, m, n);
  }
  for (; n < n1; ++n)
    for (int64_t m = 0; m < g.m; ++m) dot_tile<T, 1, 1>(g, m, n);
}

// One row of C as a sum of B's rows, four at a time: B is streamed, C's piece stays in L1.
template <class T>
SAMPAN_INLINE void combine_rows(const Gemm<T>& g, int64_t n0, int64_t n1) {
  constexpr int64_t kPiece = 2048;
  constexpr int kL = kLanes<T>;
  for (int64_t piece = n0; piece < n1; piece += kPiece) {
    const int64_t n = std::min(kPiece, n1 - piece);
    T* c = g.c + piece;
    if (!g.accumulate) std::fill(c, c + n, T{});
    for (int64_t k = 0; k < g.k; k += 4) {
      const T* b[4];
      T a[4];
      for (int i = 0; i < 4; ++i) {
        const int64_t at = std::min(k + i, g.k - 1);
        b[i] = g.b + at * g.b_row + piece;
        a[i] = k + i < g.k ? g.a[at * g.a_column] : T{};
        if (g.subtract) a[i] = -a[i];
      }
      // A missing row must not turn an infinity of the repeated one into NaN.
      const int count = static_cast<int>(std::min<int64_t>(4, g.k - k));
      if (count == 4) {
        int64_t j = 0;
        for (; j + kL <= n; j += kL) store(c + j, load(c + j) + a[0] * load(b[0] + j) + a[1] * load(b[1] + j) + a[2] * load(b[2] + j) + a[3] * load(b[3] + j));
        for (; j < n; ++j) c[j] = c[j] + a[0] * b[0][j] + a[1] * b[1][j] + a[2] * b[2][j] + a[3] * b[3][j];
      } else {
        for (int i = 0; i < count; ++i)
          for (int64_t j = 0; j < n; ++j) c[j] += a[i] * b[i][j];
      }
    }
  }
}

enum class Form { kBlock, kDots, kRow };

template <class T>
void run_part(const Gemm<T>& g, Form form, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
  with_registers([&](auto bytes) SAMPAN_INLINED {
    if (form == Form::kBlock) return block<T, bytes.value>(g, m0, m1, n0, n1);
    if (form == Form::kDots)
      dots(g, n0, n1);
    else
      combine_rows(g, n0, n1);
    if (g.finish) finish_block<T, bytes.value>(g.finish, g.c, g.c_row, m0, m1 - m0, n0, n1 - n0);
  });
}

template <class T>
void gemm_any(Gemm<T> g) {
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) {
    for (int64_t i = 0; i < g.m && !g.accumulate; ++i)
      for (int64_t j = 0; j < g.n; ++j) g.c[i * g.c_row + j * g.c_column] = T{};
    if (g.finish) finish_block<T, kVectorBytes>(g.finish, g.c, g.c_row, 0, g.m, 0, g.n);
    return;
  }
  // C transposed is the product of the transposed operands: rows become contiguous, and a single column becomes a row.
  if ((g.c_column != 1 && g.c_row == 1) || (g.n == 1 && g.m > 1)) {
    g = {g.n, g.m, g.k, g.b, g.b_column, g.b_row, g.a, g.a_column, g.a_row, g.c, g.c_column, g.c_row, g.accumulate, g.subtract};  // nothing to finish
  }
  Form form = Form::kBlock;
  // Up to this many rows a transposed B is cheaper to read as dot products than to pack.
  constexpr int64_t kDotRows = 16;
  if (g.m <= kDotRows && g.k >= 4 * kLanes<T> && g.b_row == 1 && g.a_column == 1)
    form = Form::kDots;
  else if (g.m == 1 && g.b_column == 1 && g.c_column == 1)
    form = Form::kRow;
  // A multiply-add takes about 1/16 ns in the tiles; a matrix-vector product runs at the speed of memory.
  const double ns = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) * sizeof(T) * (form == Form::kBlock ? 0.016 : 0.05);
  if (ns < kParallelThresholdNs) return run_part(g, form, 0, g.m, 0, g.n);
  // Pieces are whole tiles, so that the split never changes a result.
  const bool by_rows = form == Form::kBlock && g.m >= g.n;
  const int64_t step = by_rows ? kMostTileRows<kWideBytes> : form == Form::kDots ? 3 * 4 : kTileColumns<T>, size = by_rows ? g.m : g.n, units = (size + step - 1) / step;
  parallel_for(units, ns / static_cast<double>(units), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * step, last = std::min(end * step, size);
    if (by_rows)
      run_part(g, form, first, last, 0, g.n);
    else
      run_part(g, form, 0, g.m, first, last);
  });
}

// Rows [m0, m1) and panels [p0, p1) of C. A block of A stays in L2 while the panels pass, each panel's piece in L1 while the rows do.
template <int kBytes>
SAMPAN_INLINE void packed_part(const Gemm<float>& g, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
  constexpr int64_t kWidth = kTileColumns<float>;
  for (int64_t kb = 0; kb < g.k; kb += kTileDepth) {
    const int64_t depth = std::min(kTileDepth, g.k - kb);
    for (int64_t mb = m0; mb < m1; mb += kBlockRows) {
      const Groups<kBytes> groups(std::min(kBlockRows, m1 - mb));
      for (int64_t p = p0; p < p1; p += kPanelsAtOnce<kBytes>) {
        const int64_t n = p * kWidth, columns = std::min(std::min(kPanelsAtOnce<kBytes>, p1 - p) * kWidth, g.n - n);
        const Columns<float> b{nullptr, g.b + (p * g.k + kb) * kWidth, depth, columns, 0, 0, g.k * kWidth};
        for (int64_t i = 0; i < groups.count; ++i) {
          const int64_t m = mb + groups.begin[i];
          const int64_t rows = groups.begin[i + 1] - groups.begin[i];
          const float* a = g.a + m * g.a_row + kb * g.a_column;
          const bool has_next = i + 1 < groups.count;
          if (kBytes == kWideBytes && i == 0 && has_next)
            strip<float, kBytes, true>(g, b, rows, a, g.a_row, g.a_column, g.c + m * g.c_row + n, g.accumulate || kb > 0, has_next);
          else
            strip<float, kBytes>(g, b, rows, a, g.a_row, g.a_column, g.c + m * g.c_row + n, g.accumulate || kb > 0, has_next);
        }
        if (g.finish && kb + depth == g.k) finish_block<float, kBytes>(g.finish, g.c, g.c_row, mb, groups.begin[groups.count], n, columns);
      }
    }
  }
}

// At most two strips of rows: B is read from memory in one stream, which goes on while the second strip's panel comes from L1. (Wide tiles take so many rows in
// one strip, and two panels at once, whose streams are enough.)
SAMPAN_INLINE void packed_narrow(const Gemm<float>& g, int64_t p0, int64_t p1) {
  constexpr int64_t kWidth = kTileColumns<float>, kRows = kTileRows;
  const int64_t first = g.m > kRows ? (g.m + 1) / 2 : 0, last = g.m - first;
  for (int64_t p = p0; p < p1; ++p) {
    const int64_t width = std::min(kWidth, g.n - p * kWidth);
    float edge[2 * kTileRows * kWidth];
    const bool is_whole = width == kWidth;
    float* c = is_whole ? g.c + p * kWidth : edge;
    const int64_t c_row = is_whole ? g.c_row : kWidth;
    for (int64_t i = 0; i < g.m && !is_whole && g.accumulate; ++i) std::copy_n(g.c + i * g.c_row + p * kWidth, width, edge + i * kWidth);
    for (int64_t kb = 0; kb < g.k; kb += kTileDepth) {
      const int64_t depth = std::min(kTileDepth, g.k - kb);
      const bool accumulate = g.accumulate || kb > 0;
      const float *a = g.a + kb * g.a_column, *panel = g.b + (p * g.k + kb) * kWidth;
      if (first) tile_rows<float, kVectorBytes>(first, 1, depth, a, g.a_row, g.a_column, panel, kWidth, 0, c, c_row, 0, accumulate, false);
      tile_rows<float, kVectorBytes, true>(last, 1, depth, a + first * g.a_row, g.a_row, g.a_column, panel, kWidth, 0, c + first * c_row, c_row, 0, accumulate, false);
    }
    for (int64_t i = 0; i < g.m && !is_whole; ++i) std::copy_n(edge + i * kWidth, width, g.c + i * g.c_row + p * kWidth);
    if (g.finish) finish_block<float, kVectorBytes>(g.finish, g.c, g.c_row, 0, g.m, p * kWidth, width);
  }
}

// One row of C, kPanels panels from p on: numbers of B are used once, so as many streams of them as hide the memory's latency. Sums are combine_rows'.
template <int kPanels>
SAMPAN_INLINE void packed_row_of(const Gemm<float>& g, int64_t p) {
  constexpr int64_t kWidth = kTileColumns<float>, kL = kLanes<float>;
  float c[kPanels * kWidth] = {};
  const int64_t width = std::min(kPanels * kWidth, g.n - p * kWidth);
  if (g.accumulate) std::copy_n(g.c + p * kWidth, width, c);
  Vec<float> sums[2 * kPanels];
  for (int i = 0; i < 2 * kPanels; ++i) sums[i] = load(c + i * kL);
  const float* b = g.b + p * g.k * kWidth;
  for (int64_t k = 0; k < g.k; ++k, b += kWidth) {
    const float a = g.a[k * g.a_column];
#pragma GCC unroll 4
    for (int i = 0; i < kPanels; ++i) {
      sums[2 * i] += a * load(b + i * g.k * kWidth);
      sums[2 * i + 1] += a * load(b + i * g.k * kWidth + kL);
    }
  }
  for (int i = 0; i < 2 * kPanels; ++i) store(c + i * kL, sums[i]);
  std::copy_n(c, width, g.c + p * kWidth);
  if (g.finish) finish_block<float, kVectorBytes>(g.finish, g.c, 0, 0, 1, p * kWidth, width);
}

SAMPAN_INLINE void packed_row(const Gemm<float>& g, int64_t p0, int64_t p1) {
  int64_t p = p0;
  for (; p + 4 <= p1; p += 4) packed_row_of<4>(g, p);
  for (; p < p1; ++p) packed_row_of<1>(g, p);
}

}  // namespace

int64_t gemm_packed_size(int64_t k, int64_t n) { return (n + kTileColumns<float> - 1) / kTileColumns<float> * kTileColumns<float> * k; }

void gemm_pack(const Gemm<float>& g, float* to) {
  with_registers([&](auto) SAMPAN_INLINED { pack_columns(g.b, g.b_row, g.b_column, g.k, g.n, to); });
}

void gemm_packed(const Gemm<float>& g) {
  const int64_t panels = (g.n + kTileColumns<float> - 1) / kTileColumns<float>, strips = (g.m + kTileRows - 1) / kTileRows;
  const double ns = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) * 0.06;
  if (g.m == 1)
    return parallel_for((panels + 3) / 4, ns * 4 / static_cast<double>(panels), [&](int64_t begin, int64_t end) {
      with_registers([&](auto) SAMPAN_INLINED { packed_row(g, begin * 4, std::min(panels, end * 4)); });
    });
  const bool by_rows = strips > 2 && strips > panels;
  const int64_t units = by_rows ? strips : panels;
  parallel_for(units, ns / static_cast<double>(units), [&](int64_t begin, int64_t end) {
    with_registers([&](auto bytes) SAMPAN_INLINED {
      if (bytes.value == kVectorBytes && strips <= 2)
        packed_narrow(g, begin, end);
      else if (by_rows)
        packed_part<bytes.value>(g, begin * kTileRows, std::min(g.m, end * kTileRows), 0, panels);
      else
        packed_part<bytes.value>(g, 0, g.m, begin, end);
    });
  });
}

void gemm(const Gemm<float>& g) { gemm_any(g); }
void gemm(const Gemm<double>& g) { gemm_any(g); }
void gemm(const Gemm<uint32_t>& g) { gemm_any(g); }
void gemm(const Gemm<uint64_t>& g) { gemm_any(g); }

}  // namespace sampan::kernels
