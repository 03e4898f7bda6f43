// A tiled kernel whose tiles are stored transposed, a_tile[x][y] and b_tile[x][y]. Of the four
// shared-memory accesses only the load of A, a broadcast, is not along a column. The pitch of the
// rows alone decides how many bank conflicts there are.
#pragma once

#include <cstdint>

#include "kernels/gemm.hpp"
#include "kernels/parts/element.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_traffic.hpp"

namespace gemm::simt {

constexpr int kTransposedTile = 32, kTransposedThreads = kTransposedTile * kTransposedTile;
using TransposedGrid = TileGrid<kTransposedTile, kTransposedTile>;

template <int kPitch>
__global__ void __launch_bounds__(kTransposedThreads)
    transposed_tiles(Problem p, TransposedGrid grid, const float* __restrict__ a,
                     const float* __restrict__ b, float* __restrict__ c) {
  __shared__ float a_tile[kTransposedTile][kPitch];
  __shared__ float b_tile[kTransposedTile][kPitch];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t row = grid.first_row() + y;
  const std::int64_t column = grid.first_column() + x;

  float sum = 0;
  for (std::int64_t step = 0; step < p.k; step += kTransposedTile) {
    a_tile[x][y] = element_or_zero(a, p.m, p.k, row, step + x);
    b_tile[x][y] = element_or_zero(b, p.k, p.n, step + y, column);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTransposedTile; ++l) sum += a_tile[l][y] * b_tile[x][l];
    __syncthreads();
  }
  if (row < p.m && column < p.n) c[row * p.n + column] = sum;
}

// A warp is a row of threads: its lanes are x. The compiler vectorizes loads where rows begin at
// multiples of 16 bytes.
template <int kPitch>
Traffic transposed_traffic(const Problem& p, const Device&) {
  constexpr int kBytes = sizeof(float), kAtOnce = kPitch % 4 == 0 ? 4 : 1;
  const auto down = [](int lane) { return lane * kPitch; };
  const int store = wavefronts(kBytes, down);
  const int read_a = wavefronts(kBytes, [](int) { return 0; });
  const int read_b = wavefronts(kBytes, down, kAtOnce);
  const int of_warp = 2 * store + kTransposedTile * read_a + kTransposedTile / kAtOnce * read_b;
  return tile_traffic(p, kTransposedTile, kTransposedTile, kTransposedTile,
                      kTransposedThreads / kLanes * of_warp);
}

}  // namespace gemm::simt
