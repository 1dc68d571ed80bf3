// Winograd's minimal filtering F(2 x 2, 3 x 3), as Lavin and Gray describe it: https://arxiv.org/abs/1509.09308
//
// result = A' [ (G g G') * (B' d B) ] A for windows d of 4 x 4 and a filter g; the entries' products, summed over channels, are 16 matrix products.
// The gradient to the weights is the same form read backwards: dg = G' [ sum of (A dy A') * (B' d B) ] G.
#include "kernels/conv_winograd.h"

#include <algorithm>
#include <cstring>

#include "exec/parallel.h"
#include "kernels/tiles.h"

namespace sampan::kernels {
namespace {

using V = Vec<float>;
constexpr int kEntries = 16;                         // of a transformed window
constexpr int64_t kLane = kLanes<float>;             // channels that are transformed together
constexpr int64_t kPanel = kTileColumns<float>;      // result channels of one panel of weights
constexpr int64_t kLeastChannels = 32;
constexpr double kMultiplicationNs = 0.03;
constexpr int64_t kChunkBytes = 512 << 10, kWholeBytes = 4 << 20;  // transformed windows and results that are held at once: in L2, and in a shared cache

SAMPAN_INLINE V load_floats(const float* p) { return load(p); }
SAMPAN_INLINE V load_floats(const BFloat16* p) {
  typedef uint16_t Short __attribute__((vector_size(16)));
  Short bits;
  std::memcpy(&bits, p, sizeof bits);
  return reinterpret_cast<V>(__builtin_convertvector(bits, Vec<uint32_t>) << 16);
}

// Four numbers of each half of v.
SAMPAN_INLINE void store_pair(float* low, float* high, V v) {
  std::memcpy(low, &v, 16);
  std::memcpy(high, reinterpret_cast<const char*>(&v) + 16, 16);
}
SAMPAN_INLINE void store_pair(BFloat16* low, BFloat16* high, V v) {
  typedef uint16_t Short __attribute__((vector_size(16)));
  const Vec<uint32_t> b = reinterpret_cast<Vec<uint32_t>>(v), rounded = (b + 0x7fff + ((b >> 16) & 1)) >> 16;  // as to_bfloat16
  const Short bits = __builtin_convertvector((b & 0x7fffffff) > 0x7f800000 ? (b >> 16) | 0x40 : rounded, Short);
  std::memcpy(low, &bits, 8);
  std::memcpy(high, reinterpret_cast<const char*>(&bits) + 8, 8);
}
SAMPAN_INLINE void store_one(float* to, float v) { *to = v; }
SAMPAN_INLINE void store_one(BFloat16* to, float v) { *to = to_bfloat16(v); }

// What is convolved with what: for the gradient to the data the roles of images and channels are swapped, and windows are turned round.
struct Geometry {
  int64_t batch, height, width, channels;  // of the image that windows are taken from
  int64_t rows, columns, filters;          // of the result
  int64_t top, left;                       // padding
  int64_t tile_rows, tile_columns, tiles;

  Geometry(const ConvShape& s, ConvDirection direction) {
    const bool to_data = direction == ConvDirection::kBackwardData;
    const Dims &from = to_data ? s.out : s.in, &to = to_data ? s.in : s.out;
    batch = s.batch;
    height = from[0];
    width = from[1];
    channels = to_data ? s.out_channels : s.in_channels;
    rows = to[0];
    columns = to[1];
    filters = to_data ? s.in_channels : s.out_channels;
    top = to_data ? 2 - s.padding_low[0] : s.padding_low[0];
    left = to_data ? 2 - s.padding_low[1] : s.padding_low[1];
    tile_rows = (rows + 1) / 2;
    tile_columns = (columns + 1) / 2;
    tiles = batch * tile_rows * tile_columns;
  }
  int64_t panels() const { return filters / kPanel; }
  // From entry to entry of `count` transformed rows: a line more than they take, since multiples of a page would fall on the same few places of the caches.
  static int64_t step(int64_t count, int64_t width) { return count * width + kPanel; }
  size_t weight_bytes() const { return static_cast<size_t>(kEntries * step(channels, filters)) * 4; }
  double cost_ns() const { return kEntries * static_cast<double>(channels) * static_cast<double>(filters) * kMultiplicationNs; }
};

// Where a tile's window and its results begin.
struct Tile {
  int64_t image, row, column;
  Tile(const Geometry& g, int64_t t) : image(t / (g.tile_rows * g.tile_columns)), row(t / g.tile_columns % g.tile_rows * 2), column(t % g.tile_columns * 2) {}
};

// B' d B, entry by entry of 4 x 4.
SAMPAN_INLINE void transform_window(V (&d)[4][4]) {
  for (int i = 0; i < 4; ++i) {
    const V a = d[0][i] - d[2][i], b = d[1][i] + d[2][i], c = d[2][i] - d[1][i], e = d[1][i] - d[3][i];
    d[0][i] = a, d[1][i] = b, d[2][i] = c, d[3][i] = e;
  }
  for (int i = 0; i < 4; ++i) {
    const V a = d[i][0] - d[i][2], b = d[i][1] + d[i][2], c = d[i][2] - d[i][1], e = d[i][1] - d[i][3];
    d[i][0] = a, d[i][1] = b, d[i][2] = c, d[i][3] = e;
  }
}

// Windows of the tiles [begin, end): entry e of channel c of tile t at e * entry + (t - begin) * step + c / kLane * block + c % kLane.
template <class T>
SAMPAN_INLINE void transform_windows(const Geometry& g, const T* x, const T* zeros, int64_t begin, int64_t end, float* to, int64_t entry, int64_t step, int64_t block) {
  for (int64_t t = begin; t < end; ++t, to += step) {
    const Tile tile(g, t);
    const T* pixels[kEntries];
    int64_t moves[kEntries];
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 4; ++j) {
        const int64_t h = tile.row - g.top + i, w = tile.column - g.left + j;
        const bool is_inside = h >= 0 && h < g.height && w >= 0 && w < g.width;
        pixels[4 * i + j] = is_inside ? x + ((tile.image * g.height + h) * g.width + w) * g.channels : zeros;
        moves[4 * i + j] = is_inside ? 1 : 0;
      }
    for (int64_t c = 0; c < g.channels; c += kLane) {
      V d[4][4];
#pragma GCC unroll 16
      for (int e = 0; e < kEntries; ++e) d[e / 4][e % 4] = load_floats(pixels[e] + moves[e] * c);
      transform_window(d);
      float* at = to + c / kLane * block;
#pragma GCC unroll 16
      for (int e = 0; e < kEntries; ++e) store(at + e * entry, d[e / 4][e % 4]);
    }
  }
}

SAMPAN_CLONES void transform_images(const Geometry& g, const float* x, const float* zeros, int64_t begin, int64_t end, float* to, int64_t entry, int64_t step, int64_t block) {
  transform_windows(g, x, zeros, begin, end, to, entry, step, block);
}
SAMPAN_CLONES void transform_images(const Geometry& g, const BFloat16* x, const BFloat16* zeros, int64_t begin, int64_t end, float* to, int64_t entry, int64_t step, int64_t block) {
  transform_windows(g, x, zeros, begin, end, to, entry, step, block);
}

// A' m A: 2 x 2 results of the tiles [begin, end), from entries that lie [entry][tile][filter].
SAMPAN_CLONES void transform_results(const Geometry& g, const float* from, int64_t entry, int64_t begin, int64_t end, float* out) {
  for (int64_t t = begin; t < end; ++t, from += g.filters) {
    const Tile tile(g, t);
    const bool has_row = tile.row + 1 < g.rows, has_column = tile.column + 1 < g.columns;
    float* to = out + ((tile.image * g.rows + tile.row) * g.columns + tile.column) * g.filters;
    for (int64_t f = 0; f < g.filters; f += kLane) {
      V above[4], below[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const V a = load(from + j * entry + f), b = load(from + (4 + j) * entry + f), c = load(from + (8 + j) * entry + f), d = load(from + (12 + j) * entry + f);
        above[j] = a + b + c;
        below[j] = b - c - d;
      }
      store(to + f, above[0] + above[1] + above[2]);
      if (has_column) store(to + g.filters + f, above[1] - above[2] - above[3]);
      if (!has_row) continue;
      float* next = to + g.columns * g.filters + f;
      store(next, below[0] + below[1] + below[2]);
      if (has_column) store(next + g.filters, below[1] - below[2] - below[3]);
    }
  }
}

// A dy A': the tiles [begin, end) of the result's gradient, as panels: [entry][panel][tile][kPanel], `all` tiles in one panel.
template <class T>
SAMPAN_INLINE void gradient_panels(const Geometry& g, const T* grad, int64_t begin, int64_t end, int64_t first, int64_t all, float* to) {
  const int64_t entry = g.step(all, g.filters);
  for (int64_t t = begin; t < end; ++t) {
    const Tile tile(g, t);
    const bool has_row = tile.row + 1 < g.rows, has_column = tile.column + 1 < g.columns;
    const T* from = grad + ((tile.image * g.rows + tile.row) * g.columns + tile.column) * g.filters;
    for (int64_t f = 0; f < g.filters; f += kLane) {
      const V zero{}, y00 = load_floats(from + f), y01 = has_column ? load_floats(from + g.filters + f) : zero;
      const T* next = from + g.columns * g.filters + f;
      const V y10 = has_row ? load_floats(next) : zero, y11 = has_row && has_column ? load_floats(next + g.filters) : zero;
      const V left[4] = {y00, y00 + y10, y00 - y10, -y10}, right[4] = {y01, y01 + y11, y01 - y11, -y11};
      float* at = to + (f / kPanel * all + t - first) * kPanel + f % kPanel;
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        store(at + (4 * i) * entry, left[i]);
        store(at + (4 * i + 1) * entry, left[i] + right[i]);
        store(at + (4 * i + 2) * entry, left[i] - right[i]);
        store(at + (4 * i + 3) * entry, -right[i]);
      }
    }
  }
}

SAMPAN_CLONES void transform_gradients(const Geometry& g, const float* grad, int64_t begin, int64_t end, int64_t first, int64_t all, float* to) {
  gradient_panels(g, grad, begin, end, first, all, to);
}
SAMPAN_CLONES void transform_gradients(const Geometry& g, const BFloat16* grad, int64_t begin, int64_t end, int64_t first, int64_t all, float* to) {
  gradient_panels(g, grad, begin, end, first, all, to);
}

// Where an entry of the weights lies: along the result's channels, the image's channels, and the window.
struct WeightStrides {
  int64_t filter, channel, row, column;
  WeightStrides(const Layout& w, ConvDirection direction) : filter(w.strides[0]), channel(w.strides[1]), row(w.strides[2]), column(w.strides[3]) {
    if (direction == ConvDirection::kBackwardData) std::swap(filter, channel);
  }
};

constexpr int kTaps = 9;
constexpr int kQuads[] = {0, 4, 5};  // positions of a window, four at a time

SAMPAN_INLINE V load_pair(const float* low, const float* high) {
  V v;
  std::memcpy(&v, low, 16);
  std::memcpy(reinterpret_cast<char*>(&v) + 16, high, 16);
  return v;
}

// Four by four, in each half.
SAMPAN_INLINE void transpose_quads(V (&v)[4]) {
  using I = Vec<int32_t>;
  const I low{0, 8, 1, 9, 4, 12, 5, 13}, high{2, 10, 3, 11, 6, 14, 7, 15}, even{0, 1, 8, 9, 4, 5, 12, 13}, odd{2, 3, 10, 11, 6, 7, 14, 15};
  const V a = __builtin_shuffle(v[0], v[1], low), b = __builtin_shuffle(v[2], v[3], low), c = __builtin_shuffle(v[0], v[1], high), d = __builtin_shuffle(v[2], v[3], high);
  v[0] = __builtin_shuffle(a, b, even), v[1] = __builtin_shuffle(a, b, odd), v[2] = __builtin_shuffle(c, d, even), v[3] = __builtin_shuffle(c, d, odd);
}

// The windows of a panel's filters, position by position.
SAMPAN_INLINE void read_windows(const float* from, const WeightStrides& w, float (&taps)[kTaps][kPanel]) {
  if (w.row != 3 || w.column != 1) {
    for (int64_t f = 0; f < kPanel; ++f)
      for (int i = 0; i < kTaps; ++i) taps[i][f] = from[f * w.filter + i / 3 * w.row + i % 3 * w.column];
    return;
  }
  for (int64_t f = 0; f < kPanel; f += kLane)
    for (const int at : kQuads) {
      V v[4];
      for (int i = 0; i < 4; ++i) v[i] = load_pair(from + (f + i) * w.filter + at, from + (f + 4 + i) * w.filter + at);
      transpose_quads(v);
      for (int i = 0; i < 4; ++i) store(taps[at + i] + f, v[i]);
    }
}

template <class T>
SAMPAN_INLINE void write_windows(const float (&taps)[kTaps][kPanel], const WeightStrides& w, T* to) {
  if (w.row != 3 || w.column != 1) {
    for (int64_t f = 0; f < kPanel; ++f)
      for (int i = 0; i < kTaps; ++i) store_one(to + f * w.filter + i / 3 * w.row + i % 3 * w.column, taps[i][f]);
    return;
  }
  for (int64_t f = 0; f < kPanel; f += kLane)
    for (const int at : kQuads) {
      V v[4];
      for (int i = 0; i < 4; ++i) v[i] = load(taps[at + i] + f);
      transpose_quads(v);
      for (int i = 0; i < 4; ++i) store_pair(to + (f + i) * w.filter + at, to + (f + 4 + i) * w.filter + at, v[i]);
    }
}

// G g G' of the panels [begin, end): [entry][panel][channel][kPanel]. is_turned: windows are read backwards.
SAMPAN_CLONES void transform_weights(const Geometry& g, const float* weights, const WeightStrides& w, bool is_turned, int64_t begin, int64_t end, float* to) {
  const int64_t entry = g.step(g.channels, g.filters);
  for (int64_t panel = begin; panel < end; ++panel)
    for (int64_t c = 0; c < g.channels; ++c) {
      float taps[kTaps][kPanel];
      read_windows(weights + panel * kPanel * w.filter + c * w.channel, w, taps);
      float* at = to + (panel * g.channels + c) * kPanel;
      for (int64_t l = 0; l < kPanel; l += kLane) {
        V rows[4][3];
        for (int j = 0; j < 3; ++j) {
          auto tap = [&](int i) SAMPAN_INLINED { return load(taps[is_turned ? kTaps - 1 - i : i] + l); };
          const V a = tap(j), b = tap(3 + j), d = tap(6 + j), sum = (a + d) * 0.5f;
          rows[0][j] = a, rows[1][j] = sum + b * 0.5f, rows[2][j] = sum - b * 0.5f, rows[3][j] = d;
        }
        for (int i = 0; i < 4; ++i) {
          const V sum = (rows[i][0] + rows[i][2]) * 0.5f, middle = rows[i][1] * 0.5f;
          store(at + (4 * i) * entry + l, rows[i][0]);
          store(at + (4 * i + 1) * entry + l, sum + middle);
          store(at + (4 * i + 2) * entry + l, sum - middle);
          store(at + (4 * i + 3) * entry + l, rows[i][2]);
        }
      }
    }
}

// G' u G of the panels [begin, end) into the gradient of the weights.
template <class T>
SAMPAN_INLINE void weights_of(const Geometry& g, const float* sums, const WeightStrides& w, int64_t begin, int64_t end, T* weights) {
  const int64_t entry = g.step(g.channels, g.filters);
  for (int64_t panel = begin; panel < end; ++panel)
    for (int64_t c = 0; c < g.channels; ++c) {
      float taps[kTaps][kPanel];
      const float* at = sums + (panel * g.channels + c) * kPanel;
      for (int64_t l = 0; l < kPanel; l += kLane) {
        V rows[3][4];
        for (int j = 0; j < 4; ++j) {
          const V a = load(at + j * entry + l), b = load(at + (4 + j) * entry + l), d = load(at + (8 + j) * entry + l), e = load(at + (12 + j) * entry + l);
          const V half = (b + d) * 0.5f;
          rows[0][j] = a + half, rows[1][j] = (b - d) * 0.5f, rows[2][j] = half + e;
        }
        for (int i = 0; i < 3; ++i) {
          const V half = (rows[i][1] + rows[i][2]) * 0.5f;
          store(taps[3 * i] + l, rows[i][0] + half);
          store(taps[3 * i + 1] + l, (rows[i][1] - rows[i][2]) * 0.5f);
          store(taps[3 * i + 2] + l, half + rows[i][3]);
        }
      }
      write_windows(taps, w, weights + panel * kPanel * w.filter + c * w.channel);
    }
}

SAMPAN_CLONES void finish_weights(const Geometry& g, const float* sums, const WeightStrides& w, int64_t begin, int64_t end, float* weights) { weights_of(g, sums, w, begin, end, weights); }
SAMPAN_CLONES void finish_weights(const Geometry& g, const float* sums, const WeightStrides& w, int64_t begin, int64_t end, BFloat16* weights) { weights_of(g, sums, w, begin, end, weights); }

// Panels [begin, end) of all entries, counted through: results [entry][tile][filter] of `count` tiles.
void multiply(const Geometry& g, const float* windows, const float* weights, int64_t count, int64_t begin, int64_t end, float* results) {
  with_registers([&](auto bytes) SAMPAN_INLINED {
    for (int64_t p = begin, panels; p < end; p += panels) {
      const int64_t entry = p / g.panels(), panel = p % g.panels();
      panels = std::min(kPanelsAtOnce<bytes.value>, std::min(end - p, g.panels() - panel));
      const float* a = windows + entry * g.step(count, g.channels);
      const float* b = weights + entry * g.step(g.channels, g.filters) + panel * g.channels * kPanel;
      float* to = results + entry * g.step(count, g.filters) + panel * kPanel;
      for (int64_t c = 0; c < g.channels; c += kTileDepth)
        tile_panels<float, bytes.value>(count, panels, std::min(kTileDepth, g.channels - c), a + c, g.channels, 1, b + c * kPanel, kPanel, g.channels * kPanel, to, g.filters, kPanel,
                                        c > 0, false);
    }
  });
}

// Panels [begin, end) of all entries: sums over `count` tiles of windows [entry][block of kLane channels][tile][kLane] by gradients [entry][panel][tile][kPanel].
void accumulate(const Geometry& g, const float* windows, const float* gradients, int64_t count, bool is_begun, int64_t begin, int64_t end, float* sums) {
  with_registers([&](auto bytes) SAMPAN_INLINED {
    constexpr int64_t kRows = bytes.value == kWideBytes ? kLane : kLane / 2;
    for (int64_t p = begin, panels; p < end; p += panels) {
      const int64_t entry = p / g.panels(), panel = p % g.panels();
      panels = std::min(kPanelsAtOnce<bytes.value>, std::min(end - p, g.panels() - panel));
      const float* a = windows + entry * g.step(count, g.channels);
      const float* b = gradients + entry * g.step(count, g.filters) + panel * count * kPanel;
      float* to = sums + entry * g.step(g.channels, g.filters) + panel * g.channels * kPanel;
      for (int64_t t = 0; t < count; t += kTileDepth)
        for (int64_t c = 0; c < g.channels; c += kRows)
          tile_rows<float, bytes.value>(kRows, panels, std::min(kTileDepth, count - t), a + (c / kLane * count + t) * kLane + c % kLane, 1, kLane, b + t * kPanel, kPanel, count * kPanel,
                                        to + c * kPanel, kPanel, g.channels * kPanel, is_begun || t > 0, false);
    }
  });
}

class WinogradWeights final : public NativeOp {
 public:
  WinogradWeights(const Geometry& g, const Layout& weight, ConvDirection direction) : g_(g), strides_(weight, direction), is_turned_(direction == ConvDirection::kBackwardData) {}

  void run(char* const* buffers, char*) const override { run(reinterpret_cast<const float*>(buffers[0]), reinterpret_cast<float*>(buffers[1])); }
  void run(const float* weights, float* to) const {
    parallel_for(g_.panels(), static_cast<double>(g_.channels) * 100, [&](int64_t begin, int64_t end) { transform_weights(g_, weights, strides_, is_turned_, begin, end, to); });
  }

 private:
  Geometry g_;
  WeightStrides strides_;
  bool is_turned_;
};

class Winograd final : public NativeOp {
 public:
  Winograd(const Geometry& g, std::unique_ptr<WinogradWeights> weights, size_t operands, Epilogue epilogue)
      : g_(g), weights_(std::move(weights)), operands_(operands), epilogue_(std::move(epilogue)) {
    const int64_t tile_bytes = kEntries * (g.channels + g.filters) * 4;
    chunk_ = std::min(g.tiles, std::clamp<int64_t>(kChunkBytes / tile_bytes, 48, 96) / kTileRows * kTileRows);
  }

  size_t scratch_bytes() const override { return weights_ ? g_.weight_bytes() : 0; }

  void run(char* const* buffers, char* scratch) const override {
    const float *image = reinterpret_cast<const float*>(buffers[0]), *weights = reinterpret_cast<const float*>(weights_ ? scratch : buffers[1]);
    float* out = reinterpret_cast<float*>(buffers[operands_ - 1]);
    if (weights_) weights_->run(reinterpret_cast<const float*>(buffers[1]), reinterpret_cast<float*>(scratch));
    const int64_t chunks = (g_.tiles + chunk_ - 1) / chunk_;
    constexpr int64_t kManyChunks = 6;
    if (chunks >= kManyChunks) {
      parallel_for(chunks, g_.cost_ns() * static_cast<double>(chunk_), [&](int64_t begin, int64_t end) {
        const Space space(g_, chunk_);
        for (int64_t k = begin; k < end; ++k) {
          const int64_t first = k * chunk_, count = std::min(chunk_, g_.tiles - first);
          transform_images(g_, image, space.zeros, first, first + count, space.windows, g_.step(count, g_.channels), g_.channels, kLane);
          multiply(g_, space.windows, weights, count, 0, kEntries * g_.panels(), space.results);
          transform_results(g_, space.results, g_.step(count, g_.filters), first, first + count, out);
        }
      });
    } else {
      // Few tiles: the threads share the transforms and the products of all of them.
      const Space space(g_, g_.tiles);
      const int64_t step = g_.step(g_.tiles, g_.channels);
      parallel_for(g_.tiles, static_cast<double>(g_.channels) * 5, [&](int64_t begin, int64_t end) {
        transform_images(g_, image, space.zeros, begin, end, space.windows + begin * g_.channels, step, g_.channels, kLane);
      });
      parallel_for(kEntries * g_.panels(), g_.cost_ns() * static_cast<double>(g_.tiles) / static_cast<double>(kEntries * g_.panels()),
                   [&](int64_t begin, int64_t end) { multiply(g_, space.windows, weights, g_.tiles, begin, end, space.results); });
      parallel_for(g_.tiles, static_cast<double>(g_.filters) * 4, [&](int64_t begin, int64_t end) {
        transform_results(g_, space.results + begin * g_.filters, g_.step(g_.tiles, g_.filters), begin, end, out);
      });
    }
    if (!epilogue_.empty()) epilogue_.run(buffers + 2, buffers[operands_ - 1]);
  }

 private:
  struct Space {
    Block block;
    float *zeros, *windows, *results;
    Space(const Geometry& g, int64_t tiles)
        : block(static_cast<size_t>(kLane + kEntries * (g.step(tiles, g.channels) + g.step(tiles, g.filters))) * 4),
          zeros(block.as<float>()), windows(zeros + kLane), results(windows + kEntries * g.step(tiles, g.channels)) {
      std::fill_n(zeros, kLane, 0.f);
    }
  };

  Geometry g_;
  std::unique_ptr<WinogradWeights> weights_;  // null: they come transformed
  size_t operands_;
  Epilogue epilogue_;
  int64_t chunk_;
};

// T: the images', and the weights'; sums are float32.
template <class T>
class WinogradGradient final : public NativeOp {
 public:
  WinogradGradient(const Geometry& g, const Layout& weight, const Layout* bias)
      : g_(g), strides_(weight, ConvDirection::kBackwardWeights), bias_step_(bias ? bias->strides[0] : 0), has_bias_(bias != nullptr) {
    chunk_ = std::min(g.tiles, std::max<int64_t>(128, kWholeBytes / (kEntries * (g.channels + g.filters) * 4)));
  }

  // Sums, then a chunk's windows and gradients.
  size_t scratch_bytes() const override {
    return g_.weight_bytes() + static_cast<size_t>(kEntries * (g_.step(chunk_, g_.channels) + g_.step(chunk_, g_.filters)) + kLane) * 4;
  }

  void run(char* const* buffers, char* scratch) const override {
    const T *image = reinterpret_cast<const T*>(buffers[0]), *grad = reinterpret_cast<const T*>(buffers[1]);
    float* sums = reinterpret_cast<float*>(scratch);
    float* windows = sums + kEntries * g_.step(g_.channels, g_.filters);
    float* gradients = windows + kEntries * g_.step(chunk_, g_.channels);
    T* zeros = reinterpret_cast<T*>(gradients + kEntries * g_.step(chunk_, g_.filters));
    std::fill_n(zeros, kLane, T{});
    const int64_t products = kEntries * g_.panels();
    for (int64_t first = 0; first < g_.tiles; first += chunk_) {
      const int64_t count = std::min(chunk_, g_.tiles - first);
      parallel_for(count, static_cast<double>(g_.channels + g_.filters) * 5, [&](int64_t begin, int64_t end) {
        transform_images(g_, image, zeros, first + begin, first + end, windows + begin * kLane, g_.step(count, g_.channels), kLane, count * kLane);
        transform_gradients(g_, grad, first + begin, first + end, first, count, gradients);
      });
      parallel_for(products, g_.cost_ns() * static_cast<double>(count) / static_cast<double>(products),
                   [&](int64_t begin, int64_t end) { accumulate(g_, windows, gradients, count, first > 0, begin, end, sums); });
    }
    parallel_for(g_.panels(), static_cast<double>(g_.channels) * 100,
                 [&](int64_t begin, int64_t end) { finish_weights(g_, sums, strides_, begin, end, reinterpret_cast<T*>(buffers[2])); });
    if (has_bias_) bias_gradient(grad, reinterpret_cast<T*>(buffers[3]));
  }

 private:
  void bias_gradient(const T* grad, T* to) const {
    const int64_t points = g_.batch * g_.rows * g_.columns;
    parallel_for(g_.panels(), static_cast<double>(points) * 2, [&](int64_t begin, int64_t end) {
      for (int64_t f = begin * kPanel; f < end * kPanel; f += kLane) {
        V sum{};
        for (int64_t p = 0; p < points; ++p) sum += load_floats(grad + p * g_.filters + f);
        for (int l = 0; l < kLane; ++l) store_one(to + (f + l) * bias_step_, sum[l]);
      }
    });
  }

  Geometry g_;
  WeightStrides strides_;
  int64_t bias_step_, chunk_;
  bool has_bias_;
};

}  // namespace

bool suits_winograd(const ConvShape& s, ConvDirection direction, const Layout& x, const Layout& out) {
  const bool takes_dtype = s.dtype == DType::k_float32 || (s.dtype == DType::k_bfloat16 && direction == ConvDirection::kBackwardWeights);
  if (!takes_dtype || s.spatial != 2 || s.groups != 1) return false;
  if (!is_channels_last(x) || !is_channels_last(out)) return false;
  for (size_t d = 0; d < 2; ++d)
    if (s.kernel[d] != 3 || s.strides[d] != 1 || s.dilations[d] != 1 || s.padding_low[d] > 2 || s.padding_high[d] > 2) return false;
  if (s.in_channels % kPanel || s.out_channels % kPanel || std::min(s.in_channels, s.out_channels) < kLeastChannels) return false;
  return s.batch > 0 && s.out[0] >= 4 && s.out[1] >= 4;
}

size_t winograd_weight_bytes(const ConvShape& s) { return Geometry(s, ConvDirection::kForward).weight_bytes(); }

std::unique_ptr<NativeOp> make_conv_winograd(const NativeCall& call, const ConvShape& shape, ConvDirection direction, bool packed, Epilogue epilogue) {
  const Geometry g(shape, direction);
  if (direction == ConvDirection::kBackwardWeights) {
    const Layout *weight = call.outputs[0].get(), *bias = call.outputs.size() > 1 ? call.outputs[1].get() : nullptr;
    if (shape.dtype == DType::k_bfloat16) return std::make_unique<WinogradGradient<BFloat16>>(g, *weight, bias);
    return std::make_unique<WinogradGradient<float>>(g, *weight, bias);
  }
  auto weights = packed ? nullptr : std::make_unique<WinogradWeights>(g, *call.inputs[1], direction);
  return std::make_unique<Winograd>(g, std::move(weights), call.inputs.size() + call.outputs.size(), std::move(epilogue));
}

std::unique_ptr<NativeOp> make_winograd_weights(const Layout& weight, const ConvShape& shape, ConvDirection direction) {
  return std::make_unique<WinogradWeights>(Geometry(shape, direction), weight, direction);
}

}  // namespace sampan::kernels
