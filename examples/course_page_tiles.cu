// Tiles as on a course page of 2013 (5kk73, TU Eindhoven; for a GeForce 8800 GT), in its order:
// loads of B are uncoalesced (`uncoalesced`), are coalesced at the price of bank conflicts
// (`conflicts`), or have neither problem (`tiled`).
//
// Usage:
//   gemm_bench --gemm_kernel=course_page_tiles.cu:uncoalesced,course_page_tiles.cu:conflicts
//   gemm_bench --gemm_kernel=course_page_tiles.cu:tiled
//
// Fixed: the column of B uses blockIdx.x, where one kernel had blockIdx.y and two had the indices
// of A; loops end before their bound; grids are rounded up, with zeros where a tile extends beyond
// A or B, so that any m, n and k work. The page prints only pseudocode.
//
// Limit: gridDim.y is at most 65,535, so a launch with more than 1,048,560 rows is refused.
#include "gemm_kernel.h"

constexpr int kTile = 16;

// An element of a matrix, zero outside it.
float element(const float* matrix, long long rows, long long columns, long long row,
              long long column) {
  return row < rows && column < columns ? matrix[row * columns + column] : 0;
}

enum class Tiles { uncoalesced, conflicts, neither };

template <Tiles kTiles>
__global__ void tiled_kernel(const float* a, const float* b, float* c, long long m, long long n,
                             long long k) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const long long first_column = static_cast<long long>(blockIdx.x) * kTile;
  const long long i = static_cast<long long>(blockIdx.y) * kTile + y, j = first_column + x;
  float sum = 0;
  for (long long step = 0; step < k; step += kTile) {
    a_tile[y][x] = element(a, m, k, i, step + x);
    if (kTiles == Tiles::uncoalesced)
      b_tile[x][y] = element(b, k, n, step + x, first_column + y);
    else if (kTiles == Tiles::conflicts)
      b_tile[x][y] = element(b, k, n, step + y, j);  // the tile of B's transpose
    else
      b_tile[y][x] = element(b, k, n, step + y, j);
    __syncthreads();
    for (int l = 0; l < kTile; ++l)
      sum += a_tile[y][l] * (kTiles == Tiles::conflicts ? b_tile[x][l] : b_tile[l][x]);
    __syncthreads();
  }
  if (i < m && j < n) c[i * n + j] = sum;
}

template <Tiles kTiles>
auto launch_tiled(gemm::Call p) {
  return gemm::launch<tiled_kernel<kTiles>>({gemm::blocks(p.n, kTile), gemm::blocks(p.m, kTile)},
                                            {kTile, kTile}, p.a, p.b, p.c, p.m, p.n, p.k);
}

auto uncoalesced(gemm::Call p) { return launch_tiled<Tiles::uncoalesced>(p); }
auto conflicts(gemm::Call p) { return launch_tiled<Tiles::conflicts>(p); }
auto tiled(gemm::Call p) { return launch_tiled<Tiles::neither>(p); }
