// Slow by where values are kept and how they are added.
#include <cuda_runtime.h>

#include <cstdint>

#include "bench/controls/faulty_kernels/faulty_test.cuh"
#include "kernels/registry.hpp"

namespace gemm::bench {
namespace {

// Sixteen sums, chosen by an index that the compiler does not know: an array in local memory.
__global__ void faulty_indexed_sums(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sums[16] = {};
#pragma unroll 1
  for (std::int64_t l = 0; l < p.k; ++l) sums[l * 7 % 16] += a[row * p.k + l] * b[l * p.n + column];
  float sum = 0;
  for (int i = 0; i < 16; ++i) sum += sums[i];
  c[row * p.n + column] = sum;
}

// 32 elements of A are copied first, and read at run-time indices.
__global__ void faulty_indexed_operands(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float kept[32], sum = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += 32) {
    for (int i = 0; i < 32; ++i) kept[i] = k0 + i < p.k ? a[row * p.k + k0 + i] : 0;
#pragma unroll 1
    for (int i = 0; i < 32; ++i) {
      const std::int64_t l = k0 + (i * 5 + row) % 32;
      if (l < p.k) sum += kept[l - k0] * b[l * p.n + column];
    }
  }
  c[row * p.n + column] = sum;
}

// 8 x 8 sums a thread, and so many blocks promised that 32 registers are left for them.
constexpr int kSide = 8;
__global__ void __launch_bounds__(256, 8)
    faulty_launch_bounds(Problem p, const float* a, const float* b, float* c) {
  const std::int64_t columns = pieces(p.n, 16 * kSide);
  const std::int64_t row = (blockIdx.x / columns * 16 + threadIdx.y) * kSide;
  const std::int64_t column = blockIdx.x % columns * 16 * kSide + threadIdx.x;
  float sums[kSide][kSide] = {};
  for (std::int64_t l = 0; l < p.k; ++l) {
    float of_a[kSide], of_b[kSide];
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      of_a[i] = row + i < p.m ? a[(row + i) * p.k + l] : 0;
      of_b[i] = column + 16 * i < p.n ? b[l * p.n + column + 16 * i] : 0;
    }
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
      for (int j = 0; j < kSide; ++j) sums[i][j] += of_a[i] * of_b[j];
  }
#pragma unroll
  for (int i = 0; i < kSide; ++i)
#pragma unroll
    for (int j = 0; j < kSide; ++j)
      if (row + i < p.m && column + 16 * j < p.n) c[(row + i) * p.n + column + 16 * j] = sums[i][j];
}

// Each product is added to C in memory.
__global__ void faulty_atomic_products(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  for (std::int64_t l = 0; l < p.k; ++l)
    atomicAdd(c + row * p.n + column, a[row * p.k + l] * b[l * p.n + column]);
}

// A warp's lanes share k; each adds what it has to one sum in shared memory, step by step.
__global__ void faulty_shared_atomics(Problem p, const float* a, const float* b, float* c) {
  __shared__ float sums[32];
  const std::int64_t columns = pieces(p.n, 32);
  const std::int64_t row = blockIdx.x / columns;
  const std::int64_t column = blockIdx.x % columns * 32 + threadIdx.y;
  if (threadIdx.x == 0) sums[threadIdx.y] = 0;
  __syncwarp();
  if (row < p.m && column < p.n)
    for (std::int64_t l = threadIdx.x; l < p.k; l += 32)
      atomicAdd(sums + threadIdx.y, a[row * p.k + l] * b[l * p.n + column]);
  __syncwarp();
  if (threadIdx.x == 0 && row < p.m && column < p.n) c[row * p.n + column] = sums[threadIdx.y];
}

const Registration indexed_sums(faulty("FaultyIndexedSums", "Slow: run-time indices of sums.",
                                       by_elements<faulty_indexed_sums>));
const Registration indexed_operands(faulty("FaultyIndexedOperands",
                                           "Slow: run-time indices of operands.",
                                           by_elements<faulty_indexed_operands>));
const Registration launch_bounds(
    faulty("FaultyLaunchBounds", "Slow: launch bounds leave 32 registers.",
           [](const Problem& p, const Device&, const Operands& o) -> Launch {
             const std::int64_t blocks = pieces(p.m, 16 * kSide) * pieces(p.n, 16 * kSide);
             return [=](Stream stream) {
               start(faulty_launch_bounds, blocks, dim3(16, 16), p, o, stream);
             };
           }));
const Registration atomic_products(faulty("FaultyAtomicProducts", "Slow: an atomic per product.",
                                          adding<faulty_atomic_products>));
const Registration shared_atomics(
    faulty("FaultySharedAtomics", "Slow: atomics of a warp meet in one word.",
           [](const Problem& p, const Device&, const Operands& o) -> Launch {
             const std::int64_t blocks = p.m * pieces(p.n, 32);
             return [=](Stream stream) {
               start(faulty_shared_atomics, blocks, dim3(32, 32), p, o, stream);
             };
           }));

}  // namespace
}  // namespace gemm::bench
