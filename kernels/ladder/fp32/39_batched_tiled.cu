// A batch in one launch: the third dimension of the grid counts the products, and a block moves A,
// B and C to its own product. The blocks of small products fill the GPU together, where a launch
// for each product would leave most SMs idle. The tiles are those of Tiled.
//
// The next bottleneck: that of Tiled, shared memory. The tail of the last wave is now one for the
// whole batch.
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/parts/cluster_launch.cuh"
#include "kernels/parts/element.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::batched_tiled {
namespace {

constexpr int kMostProducts = 65535;  // gridDim.z

template <int kTile>
using Grid = TileGrid<kTile, kTile>;

template <int kTile>
__global__ void __launch_bounds__(kTile* kTile)
    batched_tiled(Problem p, Grid<kTile> grid, const float* __restrict__ all_a,
                  const float* __restrict__ all_b, float* __restrict__ all_c) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const std::int64_t which = blockIdx.z;
  const float* const a = all_a + which * p.m * p.k;
  const float* const b = all_b + which * p.k * p.n;
  const int x = threadIdx.x, y = threadIdx.y;
  const std::int64_t row = grid.first_row() + y, column = grid.first_column() + x;

  float sum = 0;
  for (std::int64_t step = 0; step < p.k; step += kTile) {
    // Zeros beyond the edges of the product, so that the inner loop needs no bounds checks.
    a_tile[y][x] = element_or_zero(a, p.m, p.k, row, step + x);
    b_tile[y][x] = element_or_zero(b, p.k, p.n, step + y, column);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += a_tile[y][l] * b_tile[l][x];
    __syncthreads();  // all threads are done with the tiles before they are overwritten
  }
  if (row < p.m && column < p.n) all_c[(which * p.m + row) * p.n + column] = sum;
}

std::optional<std::string> unsupported(const Problem& p, const Device&) {
  if (p.tokens != Tokens::equal) return "takes no groups";
  if (p.batch <= kMostProducts) return std::nullopt;
  return "requires a batch of at most " + std::to_string(kMostProducts);
}

template <int kTile>
Kernel row() {
  return {
      .name = "BatchedTiled",
      .parameters = numbers({{"tile", kTile}}),
      .idea = "A batch in one launch: the third dimension of the grid counts the products.",
      .source = "CUDA C++ Programming Guide, three-dimensional grids; MAGMA, batched GEMM",
      .rung = 39,
      .precisions = {Precision::f32},
      .batches = Batches::only,
      .unsupported = unsupported,
      .traffic = [](const Problem& p, const Device&) { return square_tile_traffic<kTile>(p); },
      .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
        const Grid<kTile> grid(p);
        LaunchShape shape{static_cast<int>(grid.blocks()), dim3(kTile, kTile), 0};
        shape.deep = p.batch;
        return [=](Stream stream) {
          enqueue(batched_tiled<kTile>, shape, stream, p, grid, static_cast<const float*>(o.a),
                  static_cast<const float*>(o.b), static_cast<float*>(o.c));
        };
      },
  };
}

const Registration tile16(row<16>());
const Registration tile32(row<32>());

}  // namespace
}  // namespace gemm::simt::batched_tiled
