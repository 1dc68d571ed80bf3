// The project's own matrix product: small float32 sizes, where a library call costs more than the work, and the dtypes that oneDNN lacks.
#pragma once
#include <cstdint>

#include "kernels/tiles.h"

namespace sampan::kernels {

// C[m, n] (+)= A[m, k] B[k, n]; every stride is in elements and free.
template <class T>
struct Gemm {
  int64_t m, n, k;
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row, b_column;
  T* c;
  int64_t c_row, c_column;
  bool accumulate;
  bool subtract;  // the product is taken negative (complex parts)
  Finish<T> finish = {};  // for a C whose columns are contiguous
};

// T: float, double, uint32_t, uint64_t (signed integers wrap alike). The result does not depend on the number of threads.
void gemm(const Gemm<float>& g);
void gemm(const Gemm<double>& g);
void gemm(const Gemm<uint32_t>& g);
void gemm(const Gemm<uint64_t>& g);

// B packed once for many products: floats that its panels take, packing, and the product with g.b being the packed panels. Sums are those of gemm's tiles.
int64_t gemm_packed_size(int64_t k, int64_t n);
void gemm_pack(const Gemm<float>& g, float* to);
void gemm_packed(const Gemm<float>& g);

}  // namespace sampan::kernels
