// A block computes a square tile of C and stages square tiles of A and B in shared memory, so that
// each element is read from global memory once per tile instead of once per product: kTile times
// less traffic.
#include "kernels/registry.hpp"
#include "kernels/simt/tile_grid.cuh"

namespace gemm::simt {
namespace {

template <int kTile>
__global__ void tiled(Problem p, TileGrid<kTile, kTile> grid, const float* __restrict__ a,
                      const float* __restrict__ b, float* __restrict__ c) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t row = grid.first_row() + y;
  const std::int64_t column = grid.first_column() + x;

  float sum = 0;
  for (std::int64_t step = 0; step < p.k; step += kTile) {
    // Beyond the edges the tiles are filled with zeros, so that the inner loop needs no test.
    a_tile[y][x] = row < p.m && step + x < p.k ? a[row * p.k + step + x] : 0.0F;
    b_tile[y][x] = step + y < p.k && column < p.n ? b[(step + y) * p.n + column] : 0.0F;
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += a_tile[y][l] * b_tile[l][x];
    __syncthreads();  // nobody may overwrite a tile that somebody still reads
  }
  if (row < p.m && column < p.n) c[row * p.n + column] = sum;
}

template <int kTile>
Launch prepare(const Problem& p, const Device&, const Operands& o) {
  const TileGrid<kTile, kTile> grid(p);
  return [=, blocks = grid.blocks()](Stream stream) {
    tiled<kTile><<<blocks, dim3(kTile, kTile), 0, stream>>>(p, grid, static_cast<const float*>(o.a),
                                                            static_cast<const float*>(o.b),
                                                            static_cast<float*>(o.c));
  };
}

template <int kTile>
Kernel variant() {
  return {
      .name = "Tiled",
      .parameters = {{"tile", std::to_string(kTile)}},
      .idea = "Square tiles of A and B staged in shared memory and used by the whole block.",
      .source = "CUDA C++ Programming Guide, shared memory",
      .rung = 12,
      .precisions = {Precision::f32},
      .prepare = prepare<kTile>,
  };
}

const Registration tile8(variant<8>());
const Registration tile16(variant<16>());
const Registration tile32(variant<32>());

}  // namespace
}  // namespace gemm::simt
