// Slow by the paths that threads take, and by waiting for each other.
#include <cuda_runtime.h>

#include <cstdint>

#include "bench/controls/faulty_kernels/faulty_test.cuh"
#include "kernels/registry.hpp"

namespace gemm::bench {
namespace {

constexpr int kEdge = 32;

// Lanes take eight paths, one after the other.
__global__ void faulty_divergent(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
#pragma unroll 1
  for (int path = 0; path < 8; ++path) {
    if (static_cast<int>(threadIdx.x) % 8 != path) continue;
    for (std::int64_t l = 0; l < p.k; ++l) sum += a[row * p.k + l] * b[l * p.n + column];
  }
  c[row * p.n + column] = sum;
}

// One lane in four computes four elements, the others have left.
__global__ void faulty_few_lanes(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists || threadIdx.x % 4 != 0) return;
  for (std::int64_t j = column; j < min(column + 4, p.n); ++j) {
    float sum = 0;
    for (std::int64_t l = 0; l < p.k; ++l) sum += a[row * p.k + l] * b[l * p.n + j];
    c[row * p.n + j] = sum;
  }
}

// Blocks of eight threads: 24 lanes of each warp do not exist.
__global__ void faulty_small_blocks(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l) sum += a[row * p.k + l] * b[l * p.n + column];
  c[row * p.n + column] = sum;
}

// A barrier after each product of a tile.
__global__ void faulty_barriers(Problem p, const float* a, const float* b, float* c) {
  __shared__ float tile_a[kEdge][kEdge], tile_b[kEdge][kEdge];
  const auto [row, column, exists] = element(p);
  const int x = threadIdx.x, y = threadIdx.y;
  float sum = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kEdge) {
    tile_a[y][x] = row < p.m && k0 + x < p.k ? a[row * p.k + k0 + x] : 0;
    tile_b[y][x] = column < p.n && k0 + y < p.k ? b[(k0 + y) * p.n + column] : 0;
    __syncthreads();
    for (int l = 0; l < kEdge; ++l) {
      sum += tile_a[y][l] * tile_b[l][x];
      __syncthreads();
    }
  }
  if (exists) c[row * p.n + column] = sum;
}

// The first warp loads the tiles of 32, while the others wait.
__global__ void faulty_one_loader(Problem p, const float* a, const float* b, float* c) {
  __shared__ float tile_a[kEdge][kEdge], tile_b[kEdge][kEdge];
  const auto [row, column, exists] = element(p);
  const int x = threadIdx.x, y = threadIdx.y;
  float sum = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kEdge) {
    if (y == 0)
#pragma unroll 1
      for (int i = 0; i < kEdge; ++i) {
        tile_a[i][x] = row + i < p.m && k0 + x < p.k ? a[(row + i) * p.k + k0 + x] : 0;
        tile_b[i][x] = column < p.n && k0 + i < p.k ? b[(k0 + i) * p.n + column] : 0;
      }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kEdge; ++l) sum += tile_a[y][l] * tile_b[l][x];
    __syncthreads();
  }
  if (exists) c[row * p.n + column] = sum;
}

// A function that is not inlined: a call and a return for each product.
__device__ __noinline__ float called(float x, float y, float sum) { return x * y + sum; }
__global__ void faulty_calls(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l) sum = called(a[row * p.k + l], b[l * p.n + column], sum);
  c[row * p.n + column] = sum;
}

const Registration divergent(faulty("FaultyDivergent", "Slow: eight paths in a warp.",
                                    by_elements<faulty_divergent>));
const Registration few_lanes(faulty("FaultyFewLanes", "Slow: one lane of four works.",
                                    by_elements<faulty_few_lanes>));
const Registration small_blocks(faulty("FaultySmallBlocks", "Slow: blocks of eight threads.",
                                       by_elements<faulty_small_blocks, 8, 1>));
const Registration barriers(faulty("FaultyBarriers", "Slow: a barrier for each product.",
                                   by_elements<faulty_barriers>));
const Registration one_loader(faulty("FaultyOneLoader", "Slow: one warp of 32 loads.",
                                     by_elements<faulty_one_loader>));
const Registration calls(faulty("FaultyCalls", "Slow: a call for each product.",
                                by_elements<faulty_calls>));

}  // namespace
}  // namespace gemm::bench
