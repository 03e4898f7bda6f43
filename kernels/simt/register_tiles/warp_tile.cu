// A tile between the block's and the thread's: each warp computes a rectangle of its own. Its lanes
// then share more of their factors: with 4 lanes along m and 8 along n, or the reverse, one load of
// a warp touches at most 128 bytes of shared memory, where a row of 16 threads touched 256. That
// alone brings nothing: a load of 16 bytes a lane takes 4 wavefronts. It takes 2 where lanes pair
// up on one address, and so they are dealt out in pairs (PairedLanes). Warps become independent of
// each other between two barriers, which is also how tensor cores will want it.
#include <cstdint>

#include "kernels/registry.hpp"
#include "kernels/simt/register_tiles/warp_tile.cuh"

namespace gemm::simt {
namespace {

template <typename Tiling, bool kAligned>
__global__ void __launch_bounds__(Tiling::kThreads, kAligned ? 2 : 1)
    warp_tile(Problem p, typename Tiling::Grid grid, const float* __restrict__ a,
              const float* __restrict__ b, float* __restrict__ c) {
  __shared__ typename Tiling::Slice slice;
  typename Tiling::template Carried<kAligned> carried(p, grid.first_row(), grid.first_column(), a,
                                                      b);
  typename Tiling::Factors factors;
  float sum[Tiling::kTM][Tiling::kTN] = {};
#pragma unroll 1
  for (std::int64_t step = 0; step < p.k; step += Tiling::kBK) {
    carried.load();
    carried.store(slice);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < Tiling::kBK; ++k) {
      factors.load(&slice.a[k][Tiling::row()], &slice.b[k][Tiling::column()]);
      factors.multiply(sum);
    }
    __syncthreads();
  }
  Tiling::template store<kAligned>(p, grid, sum, c);
}

template <typename Tiling>
Kernel point() {
  return {
      .name = "WarpTile",
      .parameters = Tiling::parameters(),
      .idea =
          "A rectangle for each warp, so that one load of it touches 128 bytes of shared memory.",
      .source = "Boehm, How to Optimize a CUDA Matmul Kernel; CUTLASS, Efficient GEMM",
      .rung = 26,
      .precisions = {Precision::f32},
      .traffic = Tiling::traffic,
      .prepare =
          [](const Problem& p, const Device&, const Operands& o) {
            return tile_launch<float, typename Tiling::Grid>(
                rows_of_16_bytes(p) ? warp_tile<Tiling, true> : warp_tile<Tiling, false>,
                Tiling::kThreads, p, o);
          },
  };
}

const TunableRegistration registration({
    point<WarpTiling<64, 128, 16, 32, 64>>(),
    point<WarpTiling<128, 128, 8, 64, 32>>(),
    point<WarpTiling<128, 128, 8, 32, 64>>(),
    point<WarpTiling<128, 128, 16, 64, 32>>(),
    point<WarpTiling<128, 128, 16, 32, 64>>(),
    point<WarpTiling<64, 64, 16, 32, 64>>(),
});

}  // namespace
}  // namespace gemm::simt
