// Two sets of factors in registers: while the products of one step along k are made, the factors of
// the next are already on their way from shared memory, so that no multiply-add waits the 30 cycles
// that such a load takes. So written, it says what the compiler does unasked where it unrolls the
// loop: for compute capability 9.0 nvcc 13.0 makes the same instructions of it as of WarpTile with
// this tile.
#include <cstdint>

#include "kernels/registry.hpp"
#include "kernels/simt/register_tiles/warp_tile.cuh"

namespace gemm::simt {
namespace {

using Tiling = WarpTiling<64, 128, 16, 32, 64>;

template <bool kAligned>
__global__ void __launch_bounds__(Tiling::kThreads, 3)
    register_double_buffer(Problem p, Tiling::Grid grid, const float* __restrict__ a,
                           const float* __restrict__ b, float* __restrict__ c) {
  __shared__ Tiling::Slice slice;
  Tiling::Carried<kAligned> carried(p, grid.first_row(), grid.first_column(), a, b);
  Tiling::Factors factors[2];
  float sum[Tiling::kTM][Tiling::kTN] = {};
#pragma unroll 1
  for (std::int64_t step = 0; step < p.k; step += Tiling::kBK) {
    carried.load();
    carried.store(slice);
    __syncthreads();
    factors[0].load(&slice.a[0][Tiling::row()], &slice.b[0][Tiling::column()]);
#pragma unroll
    for (int k = 0; k < Tiling::kBK; ++k) {
      if (k + 1 < Tiling::kBK)
        factors[(k + 1) % 2].load(&slice.a[k + 1][Tiling::row()],
                                  &slice.b[k + 1][Tiling::column()]);
      factors[k % 2].multiply(sum);
    }
    __syncthreads();
  }
  Tiling::store<kAligned>(p, grid, sum, c);
}

const Registration registration{{
    .name = "RegisterDoubleBuffer",
    .idea =
        "The factors of the next step along k are loaded while those of this one are multiplied.",
    .source = "CUTLASS, Efficient GEMM: pipelining; 64 x 128 x 16, warps of 32 x 64",
    .rung = 27,
    .precisions = {Precision::f32},
    .traffic = Tiling::traffic,
    .prepare =
        [](const Problem& p, const Device&, const Operands& o) {
          return tile_launch<float, Tiling::Grid>(
              rows_of_16_bytes(p) ? register_double_buffer<true> : register_double_buffer<false>,
              Tiling::kThreads, p, o);
        },
}};

}  // namespace
}  // namespace gemm::simt
