// The naive kernel of README.md: one thread per element of C. Its 32-bit offsets suffice for
// matrices of less than 2^31 elements.
//
// Usage:
//   gemm_bench --gemm_kernel=naive.cu --gemm_define=TILE:16
#include "gemm_kernel.h"

__global__ void naive(const float* a, const float* b, float* c, int m, int n, int k) {
  const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m || j >= n) return;
  float sum = 0;
  for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
  c[i * n + j] = sum;
}

auto launch(gemm::Call p) {
  return gemm::launch<naive>({gemm::blocks(p.n, TILE), gemm::blocks(p.m, TILE)}, {TILE, TILE}, p.a,
                             p.b, p.c, p.m, p.n, p.k);
}
