// A block computes a square tile of C and stages square tiles of A and B in shared memory, so that
// each element is read from global memory once per tile instead of once per product: kTile times
// less traffic.
#include "kernels/registry.hpp"
#include "kernels/simt/tile_grid.cuh"

namespace gemm::simt {
namespace {

template <int kTile, typename Offset>
__global__ void tiled(Problem p, TileGrid<kTile, kTile> grid, const float* __restrict__ a,
                      const float* __restrict__ b, float* __restrict__ c) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const Offset m = p.m, n = p.n, k = p.k;
  const int x = threadIdx.x, y = threadIdx.y;
  const Offset row = grid.first_row() + y;
  const Offset column = grid.first_column() + x;

  float sum = 0;
  const Offset steps = (k - 1) / kTile + 1;
  for (Offset step = 0; step < steps; ++step) {
    const Offset a_column = step * kTile + x, b_row = step * kTile + y;
    // Beyond the edges the tiles are filled with zeros, so that the inner loop needs no test.
    a_tile[y][x] = row < m && a_column < k ? a[row * k + a_column] : 0.0F;
    b_tile[y][x] = b_row < k && column < n ? b[b_row * n + column] : 0.0F;
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += a_tile[y][l] * b_tile[l][x];
    __syncthreads();  // nobody may overwrite a tile that somebody still reads
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

template <int kTile>
Launch prepare(const Problem& p, const Device&, const Operands& o) {
  const TileGrid<kTile, kTile> grid(p);
  const auto kernel = offsets_fit_int(p) ? tiled<kTile, int> : tiled<kTile, std::int64_t>;
  return [=, blocks = grid.blocks()](Stream stream) {
    kernel<<<blocks, dim3(kTile, kTile), 0, stream>>>(p, grid, static_cast<const float*>(o.a),
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
