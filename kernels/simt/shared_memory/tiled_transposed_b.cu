// B is transposed beforehand (not timed), so that the tile of its transpose is loaded along rows,
// coalesced, just as the tile of A is. The price moves into shared memory: a thread now needs a row
// of that tile, and rows lie 16 words apart, so that the lanes of a warp meet in few banks: eight
// of them ask for different words of one bank. The compiler softens this by reading four words of
// the row at a time, which costs sixteen wavefronts, but only once for four products.
#include <cstdint>

#include "kernels/common/element.cuh"
#include "kernels/common/tile_grid.cuh"
#include "kernels/common/tile_launch.cuh"
#include "kernels/common/tile_traffic.hpp"
#include "kernels/common/transpose.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt {
namespace {

constexpr int kTile = 16, kThreads = kTile * kTile;
using Grid = TileGrid<kTile, kTile>;

// b_turned is B^T, of n rows and k columns.
__global__ void __launch_bounds__(kThreads)
    tiled_transposed_b(Problem p, Grid grid, const float* __restrict__ a,
                       const float* __restrict__ b_turned, float* __restrict__ c) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t row = grid.first_row() + y;
  const std::int64_t first_column = grid.first_column();

  float sum = 0;
  for (std::int64_t step = 0; step < p.k; step += kTile) {
    a_tile[y][x] = element_or_zero(a, p.m, p.k, row, step + x);
    b_tile[y][x] = element_or_zero(b_turned, p.n, p.k, first_column + y, step + x);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += a_tile[y][l] * b_tile[x][l];
    __syncthreads();
  }
  const std::int64_t column = first_column + x;
  if (row < p.m && column < p.n) c[row * p.n + column] = sum;
}

Traffic traffic(const Problem& p, const Device&) {
  constexpr int kBytes = sizeof(float), kAtOnce = 4;  // the compiler reads rows in fours
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
    .idea = "B transposed beforehand, untimed: its loads coalesce, its reads from shared memory "
            "conflict.",
    .source = "course 5kk73 (TU Eindhoven, 2013), B transposed on the CPU, block 16 x 16",
    .rung = 14,
    .rearranges = true,
    .precisions = {Precision::f32},
    .traffic = traffic,
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      const auto b_turned = transposed<float>(o.b, p.k, p.n);
      return keeping(b_turned, tile_launch<float, Grid>(tiled_transposed_b, dim3(kTile, kTile), p,
                                                        {o.a, b_turned.get(), o.c}));
    },
}};

}  // namespace
}  // namespace gemm::simt
