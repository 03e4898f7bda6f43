// TiledTransposedB with the tile of B^T transposed as it is stored, so that a warp reads a row of B
// again: consecutive words, consecutive banks. With a pitch of 16 or 17 words these stores would
// conflict; with 18 the 16 x 2 threads of a warp store to 32 different banks. No access has bank
// conflicts now. Tiled gets the same without transposing B. The bottleneck is the number of
// shared-memory loads: two per FMA.
#include <cstdint>

#include "kernels/parts/element.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/parts/transpose.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::tiled_conflict_free {
namespace {

constexpr int kTile = 16, kPitch = 18;
using Grid = TileGrid<kTile, kTile>;

// b_transposed is B^T, n x k.
__global__ void __launch_bounds__(kTile* kTile)
    tiled_conflict_free(Problem p, Grid grid, const float* __restrict__ a,
                        const float* __restrict__ b_transposed, float* __restrict__ c) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kPitch];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t row = grid.first_row() + y;
  const std::int64_t first_column = grid.first_column();

  float sum = 0;
  for (std::int64_t step = 0; step < p.k; step += kTile) {
    a_tile[y][x] = element_or_zero(a, p.m, p.k, row, step + x);
    b_tile[x][y] = element_or_zero(b_transposed, p.n, p.k, first_column + y, step + x);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += a_tile[y][l] * b_tile[l][x];
    __syncthreads();
  }
  const std::int64_t column = first_column + x;
  if (row < p.m && column < p.n) c[row * p.n + column] = sum;
}

Traffic traffic(const Problem& p, const Device&) {
  constexpr auto kStoreB = [](int lane) { return lane % kTile * kPitch + lane / kTile; };
  static_assert(wavefronts(sizeof(float), kStoreB) == 1);
  return square_tile_traffic<kTile>(p, kStoreB);
}

const Registration registration{{
    .name = "TiledConflictFree",
    .idea = "B^T's tile transposed as it is stored: coalesced loads, no bank conflicts.",
    .source = "course 5kk73 (TU Eindhoven, 2013), avoiding bank conflicts, block 16 x 16",
    .rung = 19,
    .rearranges = true,
    .precisions = {Precision::f32},
    .traffic = traffic,
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      const auto b_transposed = transposed<float>(o.b, p.k, p.n);
      return keeping(b_transposed, tile_launch<float, Grid>(tiled_conflict_free, dim3(kTile, kTile),
                                                            p, {o.a, b_transposed.get(), o.c}));
    },
}};

}  // namespace
}  // namespace gemm::simt::tiled_conflict_free
