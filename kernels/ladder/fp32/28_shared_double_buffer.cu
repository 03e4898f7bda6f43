// Double-buffered K tiles in shared memory: the next K tile is loaded from global memory into
// registers during the FMAs of the current one, then stored to the other buffer. This hides
// global-memory latency, and one barrier per K tile suffices since a buffer is never overwritten
// while it is read. Cost: twice the shared memory, and registers for the loads in flight. The best
// that is possible before compute capability 8.0.
#include "kernels/ladder/fp32/vector_tile.cuh"
#include "kernels/parts/wave_estimate.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::shared_double_buffer {
namespace {

using Tiling = WarpTiling<64, 128, 16, 32, 64>;

template <bool kAligned>
__global__ void __launch_bounds__(Tiling::kThreads, 3)
    shared_double_buffer(Problem p, Tiling::Grid grid, const float* __restrict__ a,
                         const float* __restrict__ b, float* __restrict__ c) {
  __shared__ Tiling::KTile k_tiles[2];
  Tiling::Loader<kAligned> loader(p, grid.first_row(), grid.first_column(), a, b);
  Tiling::Fragments fragments[2];
  float acc[Tiling::kTM][Tiling::kTN] = {};

  loader.load();
  loader.store(k_tiles[0]);
  __syncthreads();
  fragments[0].load(&k_tiles[0].a[0][Tiling::row()], &k_tiles[0].b[0][Tiling::column()]);
  int current = 0;
#pragma unroll 1
  for (bool more = true; more; current = 1 - current) {
    more = loader.more();
    if (more) loader.load();
#pragma unroll
    for (int k = 0; k < Tiling::kBK; ++k) {
      if (k + 1 < Tiling::kBK) {
        fragments[(k + 1) % 2].load(&k_tiles[current].a[k + 1][Tiling::row()],
                                    &k_tiles[current].b[k + 1][Tiling::column()]);
      } else if (more) {  // the next K tile and its first fragments
        const int next = 1 - current;
        loader.store(k_tiles[next]);
        __syncthreads();
        fragments[0].load(&k_tiles[next].a[0][Tiling::row()],
                          &k_tiles[next].b[0][Tiling::column()]);
      }
      fragments[k % 2].multiply(acc);
    }
  }
  Tiling::store<kAligned>(p, grid, acc, c);
}

const Registration registration{{
    .name = "SharedDoubleBuffer",
    .idea = "K tiles double-buffered in shared memory: global loads overlap FMAs, one barrier per "
            "K tile.",
    .source = "the lecture's prefetch, from both sides; CUTLASS, Efficient GEMM: pipelining",
    .rung = 28,
    .precisions = {Precision::f32},
    .traffic = Tiling::traffic,
    .estimate =
        [](const Problem& p, const Device& device) {
          return wave_estimate(p, device, {64, 128, 3, 4, 344e9, 290e9}, rows_of_16_bytes(p));
        },
    .prepare =
        prepare_tiles(shared_double_buffer<true>, shared_double_buffer<false>, Tiling::kThreads),
}};

}  // namespace
}  // namespace gemm::simt::shared_double_buffer
