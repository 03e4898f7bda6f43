// Double-buffered fragments: while the FMAs of one step along k run, the operands of the next step
// are loaded from shared memory into a second set of registers, so that no FMA waits the 30 cycles
// of such a load. Cost: registers. The compiler does the same where it unrolls the loop: for
// compute capability 9.0 nvcc 13.0 generates the same instructions as for WarpTile with this tile.
#include <cstdint>

#include "kernels/ladder/fp32/vector_tile.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::register_double_buffer {
namespace {

using Tiling = WarpTiling<64, 128, 16, 32, 64>;

template <bool kAligned>
__global__ void __launch_bounds__(Tiling::kThreads, 3)
    register_double_buffer(Problem p, Tiling::Grid grid, const float* __restrict__ a,
                           const float* __restrict__ b, float* __restrict__ c) {
  __shared__ Tiling::KTile k_tile;
  Tiling::Loader<kAligned> loader(p, grid.first_row(), grid.first_column(), a, b);
  Tiling::Fragments fragments[2];
  float acc[Tiling::kTM][Tiling::kTN] = {};
#pragma unroll 1
  for (std::int64_t step = 0; step < p.k; step += Tiling::kBK) {
    loader.load();
    loader.store(k_tile);
    __syncthreads();
    fragments[0].load(&k_tile.a[0][Tiling::row()], &k_tile.b[0][Tiling::column()]);
#pragma unroll
    for (int k = 0; k < Tiling::kBK; ++k) {
      if (k + 1 < Tiling::kBK)
        fragments[(k + 1) % 2].load(&k_tile.a[k + 1][Tiling::row()],
                                    &k_tile.b[k + 1][Tiling::column()]);
      fragments[k % 2].multiply(acc);
    }
    __syncthreads();
  }
  Tiling::store<kAligned>(p, grid, acc, c);
}

const Registration registration{{
    .name = "RegisterDoubleBuffer",
    .idea = "Fragments double-buffered in registers: the next step's are loaded during the FMAs.",
    .source = "CUTLASS, Efficient GEMM: pipelining; 64 x 128 x 16, warps of 32 x 64",
    .rung = 27,
    .precisions = {Precision::f32},
    .traffic = Tiling::traffic,
    .prepare = prepare_tiles(register_double_buffer<true>, register_double_buffer<false>,
                             Tiling::kThreads),
}};

}  // namespace
}  // namespace gemm::simt::register_double_buffer
