// The tiled kernel whose tiles are stored turned, a_tile[x][y] and b_tile[x][y], and read so: of
// the four accesses to shared memory only the read of A, the same for all lanes, avoids walking
// down a column. What that costs depends on the pitch of the rows alone.
#pragma once

#include <cstdint>

#include "kernels/common/element.cuh"
#include "kernels/common/tile_grid.cuh"
#include "kernels/common/tile_traffic.hpp"
#include "kernels/gemm.hpp"

namespace gemm::simt {

constexpr int kTurnedTile = 32, kTurnedThreads = kTurnedTile * kTurnedTile;
using TurnedGrid = TileGrid<kTurnedTile, kTurnedTile>;

template <int kPitch>
__global__ void __launch_bounds__(kTurnedThreads)
    turned_tiles(Problem p, TurnedGrid grid, const float* __restrict__ a,
                 const float* __restrict__ b, float* __restrict__ c) {
  __shared__ float a_tile[kTurnedTile][kPitch];
  __shared__ float b_tile[kTurnedTile][kPitch];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t row = grid.first_row() + y;
  const std::int64_t column = grid.first_column() + x;

  float sum = 0;
  for (std::int64_t step = 0; step < p.k; step += kTurnedTile) {
    a_tile[x][y] = element_or_zero(a, p.m, p.k, row, step + x);
    b_tile[x][y] = element_or_zero(b, p.k, p.n, step + y, column);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTurnedTile; ++l) sum += a_tile[l][y] * b_tile[x][l];
    __syncthreads();
  }
  if (row < p.m && column < p.n) c[row * p.n + column] = sum;
}

// A warp is a row of threads: its lanes are x. Rows that begin at multiples of 16 bytes the
// compiler reads in fours.
template <int kPitch>
Traffic turned_traffic(const Problem& p, const Device&) {
  constexpr int kBytes = sizeof(float), kAtOnce = kPitch % 4 == 0 ? 4 : 1;
  const auto down = [](int lane) { return lane * kPitch; };
  const int store = wavefronts(kBytes, down);
  const int read_a = wavefronts(kBytes, [](int) { return 0; });
  const int read_b = wavefronts(kBytes, down, kAtOnce);
  const int of_warp = 2 * store + kTurnedTile * read_a + kTurnedTile / kAtOnce * read_b;
  return tile_traffic(p, kTurnedTile, kTurnedTile, kTurnedTile, kTurnedThreads / kLanes * of_warp);
}

}  // namespace gemm::simt
