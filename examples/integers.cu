// The two kernels of a post on 32-bit integers, which make the result comparable with a CPU's bit
// by bit: directly from global memory (`naive`), and in phases over tiles in shared memory
// (`tiled`).
//
// Usage:
//   gemm_bench --gemm_kernel=integers.cu:naive,integers.cu:tiled --gemm_precisions=s32
//
// Fixed in `tiled`: tiles of int, since a float has 24 bits; barriers that every thread reaches;
// zeros where a tile extends beyond A or B. In both: m, n and k instead of one N, 64-bit offsets.
//
// Limit: gridDim.y is at most 65,535, so a launch with more than 1,048,560 rows is refused.
#include "gemm_kernel.h"

constexpr int kTile = 16;

__global__ void naive_kernel(const int* a, const int* b, int* c, long long m, long long n,
                             long long k) {
  const long long x = threadIdx.x + blockDim.x * blockIdx.x;
  const long long y = threadIdx.y + blockDim.y * blockIdx.y;
  if (x >= n || y >= m) return;
  int sum = 0;
  for (long long i = 0; i < k; ++i) sum += a[y * k + i] * b[i * n + x];
  c[y * n + x] = sum;
}

__global__ void tiled_kernel(const int* a, const int* b, int* c, long long m, long long n,
                             long long k, long long phases) {
  __shared__ int a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const long long x = tx + blockDim.x * blockIdx.x, y = ty + blockDim.y * blockIdx.y;
  int sum = 0;
  for (long long phase = 0; phase < phases; ++phase) {
    const long long a_column = phase * kTile + tx, b_row = phase * kTile + ty;
    a_tile[ty][tx] = y < m && a_column < k ? a[y * k + a_column] : 0;
    b_tile[ty][tx] = b_row < k && x < n ? b[b_row * n + x] : 0;
    __syncthreads();
    for (int j = 0; j < kTile; ++j) sum += a_tile[ty][j] * b_tile[j][tx];
    __syncthreads();
  }
  if (x < n && y < m) c[y * n + x] = sum;
}

auto naive(gemm::Call p) {
  return gemm::launch<naive_kernel>({gemm::blocks(p.n, kTile), gemm::blocks(p.m, kTile)},
                                    {kTile, kTile}, p.a, p.b, p.c, p.m, p.n, p.k);
}

auto tiled(gemm::Call p) {
  return gemm::launch<tiled_kernel>({gemm::blocks(p.n, kTile), gemm::blocks(p.m, kTile)},
                                    {kTile, kTile}, p.a, p.b, p.c, p.m, p.n, p.k,
                                    gemm::blocks(p.k, kTile));
}
