// The kernels of a course report of 2025 on a Quadro RTX 5000, in its order: one thread per
// element, along rows (`naive`) or down columns (`swapped`); with A transposed; tiles in shared
// memory; and 16 accumulators per thread (`block_tiled`), which reuse each value of B.
//
// Usage:
//   gemm_bench --gemm_kernel=course_report.cu:naive,course_report.cu:swapped
//   gemm_bench --gemm_kernel=course_report.cu:tiled,course_report.cu:block_tiled
//   gemm_bench --gemm_kernel=course_report.cu:transposed_a --gemm_layouts=tn
//
// Fixed: `swapped` swaps its grid too; `transposed_a` reads the transpose (which --gemm_layouts
// provides, untimed) with rows of m elements; `tiled` pads its tiles by a column against 32-way
// bank conflicts; `block_tiled` assigns rows of A in steps of kRows, not of kDepth, and has the
// loads and bounds checks that the report does not print. In all: 64-bit offsets.
//
// Limit: gridDim.y is at most 65,535; a launch that needs more is refused.
#include "gemm_kernel.h"

__global__ void naive_kernel(long long m, long long n, long long k, const float* a, const float* b,
                             float* c) {
  const long long row = blockIdx.y * blockDim.y + threadIdx.y;
  const long long column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (long long l = 0; l < k; ++l) sum += a[row * k + l] * b[l * n + column];
  c[row * n + column] = sum;
}

__global__ void swapped_kernel(long long m, long long n, long long k, const float* a,
                               const float* b, float* c) {
  const long long row = blockIdx.x * blockDim.x + threadIdx.x;
  const long long column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (long long l = 0; l < k; ++l) sum += a[row * k + l] * b[l * n + column];
  c[row * n + column] = sum;
}

// A(row, l) is a[row * a_row + l * a_step], transposed or not.
__global__ void transposed_a_kernel(long long m, long long n, long long k, const float* a,
                                    long long a_row, long long a_step, const float* b, float* c) {
  const long long row = blockIdx.y * blockDim.y + threadIdx.y;
  const long long column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (long long l = 0; l < k; ++l) sum += a[row * a_row + l * a_step] * b[l * n + column];
  c[row * n + column] = sum;
}

constexpr int kTile = 32;

__global__ void tiled_kernel(long long m, long long n, long long k, const float* a, const float* b,
                             float* c) {
  __shared__ float a_tile[kTile][kTile + 1], b_tile[kTile][kTile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const long long row = blockIdx.y * blockDim.y + y, column = blockIdx.x * blockDim.x + x;
  float sum = 0;
  for (long long step = 0; step < k; step += kTile) {
    a_tile[x][y] = row < m && step + x < k ? a[row * k + step + x] : 0;
    b_tile[x][y] = step + y < k && column < n ? b[(step + y) * n + column] : 0;
    __syncthreads();
    for (int l = 0; l < kTile; ++l) sum += a_tile[l][y] * b_tile[x][l];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

// The report's BM, BN, BK and NR.
constexpr int kBlockRows = 128, kBlockColumns = 128, kDepth = 8, kRows = kBlockRows / kDepth;

__global__ void __launch_bounds__(1024)
    block_tiled_kernel(long long m, long long n, long long k, const float* a, const float* b,
                       float* c) {
  __shared__ float a_tile[kBlockRows][kDepth], b_tile[kDepth][kBlockColumns];
  const int x = threadIdx.x, y = threadIdx.y, thread = y * kBlockColumns + x;
  const long long first_row = static_cast<long long>(blockIdx.y) * kBlockRows;
  const long long column = static_cast<long long>(blockIdx.x) * kBlockColumns + x;
  // The element of A's tile that this thread loads; of B's tile it is the one at y and x.
  const int a_y = thread / kDepth, a_x = thread % kDepth;
  float acc[kRows] = {};
  for (long long step = 0; step < k; step += kDepth) {
    a_tile[a_y][a_x] =
        first_row + a_y < m && step + a_x < k ? a[(first_row + a_y) * k + step + a_x] : 0;
    b_tile[y][x] = step + y < k && column < n ? b[(step + y) * n + column] : 0;
    __syncthreads();
    for (int l = 0; l < kDepth; ++l) {
      const float b_value = b_tile[l][x];
      for (int i = 0; i < kRows; ++i) acc[i] += a_tile[y * kRows + i][l] * b_value;
    }
    __syncthreads();
  }
  for (int i = 0; i < kRows; ++i) {
    const long long row = first_row + y * kRows + i;
    if (row < m && column < n) c[row * n + column] = acc[i];
  }
}

template <auto Kernel>
auto in_blocks_of_32(unsigned grid_x, unsigned grid_y, gemm::Call p) {
  return gemm::launch<Kernel>({grid_x, grid_y}, {32, 32}, p.m, p.n, p.k, p.a, p.b, p.c);
}

auto naive(gemm::Call p) {
  return in_blocks_of_32<naive_kernel>(gemm::blocks(p.n, 32), gemm::blocks(p.m, 32), p);
}

auto swapped(gemm::Call p) {
  return in_blocks_of_32<swapped_kernel>(gemm::blocks(p.m, 32), gemm::blocks(p.n, 32), p);
}

auto transposed_a(gemm::Call p) {
  return gemm::launch<transposed_a_kernel>({gemm::blocks(p.n, 32), gemm::blocks(p.m, 32)}, {32, 32},
                                           p.m, p.n, p.k, p.a, p.a_transposed ? 1 : p.k,
                                           p.a_transposed ? p.m : 1, p.b, p.c);
}

auto tiled(gemm::Call p) {
  return in_blocks_of_32<tiled_kernel>(gemm::blocks(p.n, kTile), gemm::blocks(p.m, kTile), p);
}

auto block_tiled(gemm::Call p) {
  return gemm::launch<block_tiled_kernel>(
      {gemm::blocks(p.n, kBlockColumns), gemm::blocks(p.m, kBlockRows)}, {kBlockColumns, kDepth},
      p.m, p.n, p.k, p.a, p.b, p.c);
}
