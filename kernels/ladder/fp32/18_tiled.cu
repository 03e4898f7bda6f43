// Shared-memory tiling: a block computes a square tile of C and stages square tiles of A and B in
// shared memory. An element is loaded from global memory once per tile instead of once per FMA:
// kTile times less traffic. Cost: two barriers per K tile, and shared-memory bandwidth is the new
// bottleneck, since every FMA still loads both operands from there.
#include <cstdint>

#include "kernels/parts/element.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::tiled {
namespace {

using enum Precision;

template <int kTile>
using Grid = TileGrid<kTile, kTile>;

template <typename T, int kTile>
__global__ void tiled(Problem p, Grid<kTile> grid, const T* __restrict__ a, const T* __restrict__ b,
                      T* __restrict__ c) {
  __shared__ T a_tile[kTile][kTile];
  __shared__ T b_tile[kTile][kTile];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  // A 32-bit division would do. With 64 bits nvcc 13.0 orders the loads of the inner loop such that
  // it is faster on an H200.
  const std::int64_t row = blockIdx.x / grid.tile_columns * kTile + y;
  const std::int64_t column = blockIdx.x % grid.tile_columns * kTile + x;

  Accumulator<T> sum = 0;
  for (std::int64_t step = 0; step < p.k; step += kTile) {
    // Zeros beyond the edges, so that the inner loop needs no bounds checks.
    a_tile[y][x] = element_or_zero(a, p.m, p.k, row, step + x);
    b_tile[y][x] = element_or_zero(b, p.k, p.n, step + y, column);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += widen(a_tile[y][l]) * widen(b_tile[l][x]);
    __syncthreads();  // all threads are done with the tiles before they are overwritten
  }
  if (row < p.m && column < p.n) c[row * p.n + column] = narrow<T>(sum);
}

template <int kTile, Precision... kPrecisions>
Kernel row() {
  return {
      .name = "Tiled",
      .parameters = numbers({{"tile", kTile}}),
      .idea = "Square tiles of A and B in shared memory, reused by the whole block.",
      .source =
          "blog on CUDA matrix multiplication (Tesla T4), block 16 x 16; post on int matrices in "
          "shared memory (GTX 1060), 16 x 16; Numba documentation, fast_matmul, 16 x 16",
      .rung = 18,
      .precisions = {kPrecisions...},
      .traffic = [](const Problem& p, const Device&) { return square_tile_traffic<kTile>(p); },
      .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
        return with_element<kPrecisions...>(p.precision, [&]<typename T>(T) {
          return tile_launch<T, Grid<kTile>>(tiled<T, kTile>, dim3(kTile, kTile), p, o);
        });
      },
  };
}

const Registration tile16(row<16, f32, bf16, f16, f64, s32>());
const Registration tile32(row<32, f32, bf16, f16, f64, s32>());

}  // namespace
}  // namespace gemm::simt::tiled
