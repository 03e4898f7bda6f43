// A block computes a square tile of C and stages square tiles of A and B in shared memory, so that
// each element is read from global memory once per tile instead of once per product: kTile times
// less traffic. What binds now is shared memory: every multiplication needs a value of A and one of
// B from there, and the load units deliver fewer than the arithmetic units take.
#include "kernels/registry.hpp"
#include "kernels/simt/element.cuh"
#include "kernels/simt/tile_grid.cuh"
#include "kernels/simt/tile_launch.cuh"
#include "kernels/simt/tile_traffic.hpp"

namespace gemm::simt {
namespace {

template <int kTile>
using Grid = TileGrid<kTile, kTile>;

template <int kTile>
constexpr int kThreads = kTile* kTile;

template <typename T, int kTile>
__global__ void __launch_bounds__(kThreads<kTile>)
    tiled(Problem p, Grid<kTile> grid, const T* __restrict__ a, const T* __restrict__ b,
          T* __restrict__ c) {
  __shared__ T a_tile[kTile][kTile];
  __shared__ T b_tile[kTile][kTile];
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const std::int64_t row = grid.first_row() + y;
  const std::int64_t column = grid.first_column() + x;

  const bool in_a = row < p.m, in_b = column < p.n;
  a += row * p.k + x;
  b += y * p.n + column;

  Sum<T> sum = 0;
  for (int left = static_cast<int>(p.k); left > 0; left -= kTile) {
    // Beyond the edges lie zeros, so that the inner loop needs no test.
    a_tile[y][x] = in_a && x < left ? *a : T{};
    b_tile[y][x] = in_b && y < left ? *b : T{};
    a += kTile;
    b += kTile * p.n;
    __syncthreads();
#pragma unroll 16
    for (int l = 0; l < kTile; ++l) sum += widen(a_tile[y][l]) * widen(b_tile[l][x]);
    __syncthreads();  // nobody may overwrite a tile that somebody still reads
  }
  if (in_a && in_b) c[row * p.n + column] = narrow<T>(sum);
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
    return tile_launch<T, Grid<kTile>>(tiled<T, kTile>, kThreads<kTile>, p, o);
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
