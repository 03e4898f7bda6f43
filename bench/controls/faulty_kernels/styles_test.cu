// Faults in kernels as textbooks, samples and blogs have them.
#include <cuda_runtime.h>

#include <cstdint>

#include "bench/controls/faulty_kernels/faulty_test.cuh"
#include "kernels/registry.hpp"

namespace gemm::bench {
namespace {

// A textbook's first kernel, with rows along x.
__global__ void faulty_textbook(Problem p, const float* M, const float* N, float* P) {
  const std::int64_t blocks_y = pieces(p.n, 16);
  const std::int64_t Row = blockIdx.x / blocks_y * 16 + threadIdx.x;
  const std::int64_t Col = blockIdx.x % blocks_y * 16 + threadIdx.y;
  if (Row >= p.m || Col >= p.n) return;
  float Pvalue = 0;
  for (std::int64_t k = 0; k < p.k; ++k) Pvalue += M[Row * p.k + k] * N[k * p.n + Col];
  P[Row * p.n + Col] = Pvalue;
}

// A sample's tiles, with As and Bs addressed as if they were stored by columns.
template <int BLOCK_SIZE>
__global__ void faulty_sample(Problem p, const float* A, const float* B, float* C) {
  __shared__ float As[BLOCK_SIZE][BLOCK_SIZE], Bs[BLOCK_SIZE][BLOCK_SIZE];
  const auto [row, column, exists] = element(p);
  const int tx = threadIdx.x, ty = threadIdx.y;
  float Csub = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += BLOCK_SIZE) {
    As[tx][ty] = row < p.m && k0 + tx < p.k ? A[row * p.k + k0 + tx] : 0;
    Bs[tx][ty] = column < p.n && k0 + ty < p.k ? B[(k0 + ty) * p.n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BLOCK_SIZE; ++k) Csub += As[k][ty] * Bs[tx][k];
    __syncthreads();
  }
  if (exists) C[row * p.n + column] = Csub;
}

// A library's template whose alpha and beta are double by default.
template <typename T, typename Scale = double>
__global__ void faulty_template(Problem p, const T* a, const T* b, T* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  const Scale alpha = 1;
  T sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l)
    sum = static_cast<T>(sum + alpha * a[row * p.k + l] * b[l * p.n + column]);
  c[row * p.n + column] = sum;
}

// A reduction: one thread of a block sums what its warps found, while these wait.
__global__ void faulty_reduction(Problem p, const float* a, const float* b, float* c) {
  __shared__ float partial[256];
  const std::int64_t row = blockIdx.x / p.n, column = blockIdx.x % p.n;
  float sum = 0;
  for (std::int64_t l = threadIdx.x; l < p.k; l += 256)
    sum += a[row * p.k + l] * b[l * p.n + column];
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int i = 1; i < 256; ++i) partial[0] += partial[i];
    c[row * p.n + column] = partial[0];
  }
  __syncthreads();
}

const Registration textbook(faulty(
    "FaultyTextbook", "Slow: neighbouring threads have neighbouring rows.",
    [](const Problem& p, const Device&, const Operands& o) -> Launch {
      const std::int64_t blocks = pieces(p.m, 16) * pieces(p.n, 16);
      return [=](Stream stream) { start(faulty_textbook, blocks, dim3(16, 16), p, o, stream); };
    }));
const Registration sample(faulty("FaultySample", "Slow: tiles are read by columns.",
                                 by_elements<faulty_sample<32>>));
const Registration library_template(faulty("FaultyTemplate", "Slow: a scale is a double.",
                                           by_elements<faulty_template<float>>));
const Registration reduction(faulty("FaultyReduction", "Slow: one thread sums, 255 wait.",
                                    [](const Problem& p, const Device&,
                                       const Operands& o) -> Launch {
                                      const std::int64_t blocks = p.m * p.n;
                                      return [=](Stream stream) {
                                        start(faulty_reduction, blocks, dim3(256), p, o, stream);
                                      };
                                    }));

}  // namespace
}  // namespace gemm::bench
