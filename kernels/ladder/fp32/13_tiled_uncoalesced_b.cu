// The tiled kernel with uncoalesced loads of B: the lanes of a warp (16 x 2 threads) load B down
// its columns, 16 sectors where 4 would do, and use 8 bytes of each. Each element is now loaded
// once for 16 FMAs, but these loads and the barrier after them take back what that saves. The
// stores to shared memory, with a stride of 16 words, are 8-way bank conflicts too.
#include <cstdint>

#include "kernels/parts/element.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::tiled_uncoalesced_b {
namespace {

constexpr int kTile = 16;
using Grid = TileGrid<kTile, kTile>;

__global__ void __launch_bounds__(kTile* kTile)
    tiled_uncoalesced_b(Problem p, Grid grid, const float* __restrict__ a,
                        const float* __restrict__ b, float* __restrict__ c) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t row = grid.first_row() + y;
  const std::int64_t first_column = grid.first_column();

  float sum = 0;
  for (std::int64_t step = 0; step < p.k; step += kTile) {
    a_tile[y][x] = element_or_zero(a, p.m, p.k, row, step + x);
    b_tile[x][y] = element_or_zero(b, p.k, p.n, step + x, first_column + y);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += a_tile[y][l] * b_tile[l][x];
    __syncthreads();
  }
  const std::int64_t column = first_column + x;
  if (row < p.m && column < p.n) c[row * p.n + column] = sum;
}

Traffic traffic(const Problem& p, const Device&) {
  Traffic traffic =
      square_tile_traffic<kTile>(p, [](int lane) { return lane % kTile * kTile + lane / kTile; });
  constexpr double kSectorsOfB = 16, kCoalesced = 4;
  traffic.l2 += (kSectorsOfB / kCoalesced - 1) * sizeof(float) * ceil_div(p.m, kTile) * p.k * p.n;
  return traffic;
}

const Registration registration{{
    .name = "TiledUncoalescedB",
    .idea = "Shared-memory tiles with uncoalesced loads of B.",
    .source = "course 5kk73 (TU Eindhoven, 2013), tiling before coalescing, block 16 x 16",
    .rung = 13,
    .precisions = {Precision::f32},
    .traffic = traffic,
    .prepare = prepare_tiles(tiled_uncoalesced_b, dim3(kTile, kTile)),
}};

}  // namespace
}  // namespace gemm::simt::tiled_uncoalesced_b
