// B is transposed beforehand (not timed), so that the tile of B^T is loaded along rows, coalesced,
// like the tile of A. The cost moves to shared memory: each thread now reads a row of that tile,
// rows are 16 words apart, and the lanes of a warp have 8-way bank conflicts. The compiler softens
// this with vector loads of four words: sixteen wavefronts for four FMAs.
#include <cstdint>

#include "kernels/parts/element.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/parts/transpose.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::tiled_transposed_b {
namespace {

constexpr int kTile = 16, kThreads = kTile * kTile;
using Grid = TileGrid<kTile, kTile>;

// b_transposed is B^T, n x k.
__global__ void __launch_bounds__(kThreads)
    tiled_transposed_b(Problem p, Grid grid, const float* __restrict__ a,
                       const float* __restrict__ b_transposed, float* __restrict__ c) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t row = grid.first_row() + y;
  const std::int64_t first_column = grid.first_column();

  float sum = 0;
  for (std::int64_t step = 0; step < p.k; step += kTile) {
    a_tile[y][x] = element_or_zero(a, p.m, p.k, row, step + x);
    b_tile[y][x] = element_or_zero(b_transposed, p.n, p.k, first_column + y, step + x);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += a_tile[y][l] * b_tile[x][l];
    __syncthreads();
  }
  const std::int64_t column = first_column + x;
  if (row < p.m && column < p.n) c[row * p.n + column] = sum;
}

Traffic traffic(const Problem& p, const Device&) {
  constexpr int kBytes = sizeof(float), kAtOnce = 4;  // the compiler vectorizes the loads
  constexpr int kStore = wavefronts(kBytes, [](int lane) { return lane; });
  constexpr int kReadA = wavefronts(
      kBytes, [](int lane) { return lane / kTile * kTile; }, kAtOnce);
  constexpr int kReadB = wavefronts(
      kBytes, [](int lane) { return lane % kTile * kTile; }, kAtOnce);
  constexpr int kOfWarp = 2 * kStore + kTile / kAtOnce * (kReadA + kReadB);
  return tile_traffic(p, kTile, kTile, kTile, kThreads / kLanes * kOfWarp);
}

const Registration registration{{
    .name = "TiledTransposedB",
    .idea = "B transposed beforehand (untimed): coalesced loads, but 8-way bank conflicts.",
    .source = "course 5kk73 (TU Eindhoven, 2013), B transposed on the CPU, block 16 x 16",
    .rung = 14,
    .rearranges = true,
    .precisions = {Precision::f32},
    .traffic = traffic,
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      const auto b_transposed = transposed<float>(o.b, p.k, p.n);
      return keeping(b_transposed, tile_launch<float, Grid>(tiled_transposed_b, dim3(kTile, kTile),
                                                            p, {o.a, b_transposed.get(), o.c}));
    },
}};

}  // namespace
}  // namespace gemm::simt::tiled_transposed_b
