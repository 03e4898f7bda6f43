// The two kernels of a blog post on a Tesla T4: one thread per element of C, from global memory
// (`naive`) or from tiles in shared memory (`tiled`). As in the post, a matrix carries its size and
// is passed by value.
//
// Usage:
//   gemm_bench --gemm_kernel=blog.cu:naive,blog.cu:tiled
//
// Fixed in `tiled`: bounds checks compare the row and column in the matrix, not in the block; the
// barriers, of which the post prints only the comments. In both: 64-bit offsets.
//
// Limit: gridDim.y is at most 65,535, so a launch with more than 1,048,560 rows is refused.
#include "gemm_kernel.h"

constexpr int kTile = 16;

template <typename T>
struct Matrix {
  long long height, width;
  T* elements;

  T& at(long long row, long long column) const { return elements[row * width + column]; }
};

__global__ void naive_kernel(Matrix<const float> a, Matrix<const float> b, Matrix<float> c) {
  const long long row = blockIdx.y * blockDim.y + threadIdx.y;
  const long long column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= c.height || column >= c.width) return;
  float sum = 0;
  for (long long l = 0; l < a.width; ++l) sum += a.at(row, l) * b.at(l, column);
  c.at(row, column) = sum;
}

__global__ void tiled_kernel(Matrix<const float> a, Matrix<const float> b, Matrix<float> c) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const long long row = blockIdx.y * blockDim.y + y, column = blockIdx.x * blockDim.x + x;
  float sum = 0;
  for (long long step = 0; step < a.width; step += kTile) {
    a_tile[y][x] = row < a.height && step + x < a.width ? a.at(row, step + x) : 0;
    b_tile[y][x] = step + y < b.height && column < b.width ? b.at(step + y, column) : 0;
    __syncthreads();
    for (int l = 0; l < kTile; ++l) sum += a_tile[y][l] * b_tile[l][x];
    __syncthreads();
  }
  if (row < c.height && column < c.width) c.at(row, column) = sum;
}

template <auto Kernel>
auto with_matrices(gemm::Call p) {
  return gemm::launch<Kernel>({gemm::blocks(p.n, kTile), gemm::blocks(p.m, kTile)}, {kTile, kTile},
                              Matrix<const float>{p.m, p.k, p.a},
                              Matrix<const float>{p.k, p.n, p.b}, Matrix<float>{p.m, p.n, p.c});
}

auto naive(gemm::Call p) { return with_matrices<naive_kernel>(p); }
auto tiled(gemm::Call p) { return with_matrices<tiled_kernel>(p); }
