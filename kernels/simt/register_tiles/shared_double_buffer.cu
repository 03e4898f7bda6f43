// Two slices in shared memory: the next one is on its way from global memory to registers while
// this one is multiplied, and then goes into the other half. Nobody waits for global memory any
// more, and since a slice is never overwritten while it is read, one barrier a step is enough. This
// is as far as one gets before compute capability 8.0.
#include "kernels/common/wave_estimate.hpp"
#include "kernels/registry.hpp"
#include "kernels/simt/register_tiles/warp_tile.cuh"

namespace gemm::simt {
namespace {

using Tiling = WarpTiling<64, 128, 16, 32, 64>;

template <bool kAligned>
__global__ void __launch_bounds__(Tiling::kThreads, 3)
    shared_double_buffer(Problem p, Tiling::Grid grid, const float* __restrict__ a,
                         const float* __restrict__ b, float* __restrict__ c) {
  __shared__ Tiling::Slice slices[2];
  Tiling::Carried<kAligned> carried(p, grid.first_row(), grid.first_column(), a, b);
  Tiling::Factors factors[2];
  float sum[Tiling::kTM][Tiling::kTN] = {};

  carried.load();
  carried.store(slices[0]);
  __syncthreads();
  factors[0].load(&slices[0].a[0][Tiling::row()], &slices[0].b[0][Tiling::column()]);
  int current = 0;
#pragma unroll 1
  for (bool more = true; more; current = 1 - current) {
    more = carried.more();
    if (more) carried.load();
#pragma unroll
    for (int k = 0; k < Tiling::kBK; ++k) {
      if (k + 1 < Tiling::kBK) {
        factors[(k + 1) % 2].load(&slices[current].a[k + 1][Tiling::row()],
                                  &slices[current].b[k + 1][Tiling::column()]);
      } else if (more) {  // the next slice, and its first factors
        const int next = 1 - current;
        carried.store(slices[next]);
        __syncthreads();
        factors[0].load(&slices[next].a[0][Tiling::row()], &slices[next].b[0][Tiling::column()]);
      }
      factors[k % 2].multiply(sum);
    }
  }
  Tiling::store<kAligned>(p, grid, sum, c);
}

const Registration registration{{
    .name = "SharedDoubleBuffer",
    .idea =
        "The next slice crosses global memory while this one is multiplied; one barrier a step.",
    .source = "the lecture's prefetch, from both sides; CUTLASS, Efficient GEMM: pipelining",
    .rung = 28,
    .precisions = {Precision::f32},
    .traffic = Tiling::traffic,
    .estimate =
        [](const Problem& p, const Device& device) {
          return wave_estimate(p, device, {64, 128, 3, 344e9, 290e9});
        },
    .prepare =
        [](const Problem& p, const Device&, const Operands& o) {
          return tile_launch<float, Tiling::Grid>(
              rows_of_16_bytes(p) ? shared_double_buffer<true> : shared_double_buffer<false>,
              Tiling::kThreads, p, o);
        },
}};

}  // namespace
}  // namespace gemm::simt
