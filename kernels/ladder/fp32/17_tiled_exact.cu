// The tiled kernel without bounds checks, for sizes that are multiples of the tile. It shows what
// the checks of Tiled cost: little, since a thread checks once per loaded element, which then
// serves kTile FMAs.
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::tiled_exact {
namespace {

template <int kTile>
using Grid = TileGrid<kTile, kTile>;

template <int kTile>
__global__ void __launch_bounds__(kTile* kTile)
    tiled_exact(Problem p, Grid<kTile> grid, const float* __restrict__ a,
                const float* __restrict__ b, float* __restrict__ c) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t row = grid.first_row() + y;
  const std::int64_t column = grid.first_column() + x;
  const float* a_from = a + row * p.k + x;
  const float* b_from = b + y * p.n + column;

  float sum = 0;
  for (std::int64_t step = 0; step < p.k; step += kTile) {
    a_tile[y][x] = *a_from;
    b_tile[y][x] = *b_from;
    a_from += kTile;
    b_from += kTile * p.n;
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += a_tile[y][l] * b_tile[l][x];
    __syncthreads();
  }
  c[row * p.n + column] = sum;
}

template <int kTile>
std::optional<std::string> unsupported(const Problem& p, const Device&) {
  if (p.m % kTile == 0 && p.n % kTile == 0 && p.k % kTile == 0) return std::nullopt;
  return "requires m, n and k to be multiples of " + std::to_string(kTile) +
         " (the kernel has no bounds checks)";
}

template <int kTile>
Kernel row() {
  return {
      .name = "TiledExact",
      .parameters = numbers({{"tile", kTile}}),
      .idea = "Shared-memory tiles without bounds checks, for multiples of the tile size.",
      .source = "course 5kk73 (TU Eindhoven, 2013), tiling, block 16 x 16",
      .rung = 17,
      .precisions = {Precision::f32},
      .unsupported = unsupported<kTile>,
      .traffic = [](const Problem& p, const Device&) { return square_tile_traffic<kTile>(p); },
      .prepare = prepare_tiles<float, Grid<kTile>>(tiled_exact<kTile>, dim3(kTile, kTile)),
  };
}

const Registration tile16(row<16>());
const Registration tile32(row<32>());

}  // namespace
}  // namespace gemm::simt::tiled_exact
