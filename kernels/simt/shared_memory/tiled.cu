// A block computes a square tile of C and stages square tiles of A and B in shared memory, so that
// each element is read from global memory once per tile instead of once per product: kTile times
// less traffic. What binds now is shared memory: every multiplication needs a value of A and one of
// B from there, and the load units deliver fewer than the arithmetic units take.
#include <cstdint>
#include <string>

#include "kernels/common/element.cuh"
#include "kernels/common/tile_grid.cuh"
#include "kernels/common/tile_launch.cuh"
#include "kernels/common/tile_traffic.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt {
namespace {

template <int kTile>
using Grid = TileGrid<kTile, kTile>;

template <int kTile>
constexpr int kThreads = kTile* kTile;

template <typename T, int kTile>
__global__ void tiled(Problem p, Grid<kTile> grid, const T* __restrict__ a, const T* __restrict__ b,
                      T* __restrict__ c) {
  __shared__ T a_tile[kTile][kTile];
  __shared__ T b_tile[kTile][kTile];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  // Divisions of 32 bits would do. With these, nvcc 13.0 orders the reads of the inner loop so that
  // it is faster on an H200.
  const std::int64_t row = blockIdx.x / grid.tile_columns * kTile + y;
  const std::int64_t column = blockIdx.x % grid.tile_columns * kTile + x;

  Sum<T> sum = 0;
  for (std::int64_t step = 0; step < p.k; step += kTile) {
    // Beyond the edges lie zeros, so that the inner loop needs no test.
    a_tile[y][x] = element_or_zero(a, p.m, p.k, row, step + x);
    b_tile[y][x] = element_or_zero(b, p.k, p.n, step + y, column);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += widen(a_tile[y][l]) * widen(b_tile[l][x]);
    __syncthreads();  // nobody may overwrite a tile that somebody still reads
  }
  if (row < p.m && column < p.n) c[row * p.n + column] = narrow<T>(sum);
}

template <int kTile>
Traffic traffic(const Problem& p, const Device&) {
  const int bytes = traits_of(p.precision).input_bytes;
  const int store = wavefronts(bytes, [](int lane) { return lane; });
  const int of_warp = 2 * store + tiled_reads<kTile>(bytes, read_at_once(p.precision));
  return tile_traffic(p, kTile, kTile, kTile, kThreads<kTile> / kLanes * of_warp);
}

template <int kTile>
Launch prepare(const Problem& p, const Device&, const Operands& o) {
  return with_element(p.precision, [&]<typename T>(T) {
    return tile_launch<T, Grid<kTile>>(tiled<T, kTile>, dim3(kTile, kTile), p, o);
  });
}

template <int kTile>
Kernel row() {
  return {
      .name = "Tiled",
      .parameters = {{"tile", std::to_string(kTile)}},
      .idea = "Square tiles of A and B staged in shared memory and used by the whole block.",
      .source =
          "blog on CUDA matrix multiplication (Tesla T4), block 16 x 16; post on int matrices in "
          "shared memory (GTX 1060), 16 x 16; Numba documentation, fast_matmul, 16 x 16",
      .rung = 18,
      .precisions = element_precisions(),
      .traffic = traffic<kTile>,
      .prepare = prepare<kTile>,
  };
}

const Registration tile16(row<16>());
const Registration tile32(row<32>());

}  // namespace
}  // namespace gemm::simt
