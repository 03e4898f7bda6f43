// Rasterization and a larger tile: a block of 8 warps computes 128 x 256, all that the registers of
// an SM hold, with a third more FLOP per byte of L2 traffic than 128 x 128. Tiles are computed in
// compact groups, whose blocks share data in the L2. Both save energy, which is the limiter here:
// the clock is what the power cap permits. Cost: one block per SM, so nothing overlaps its
// epilogue.
//
// The next bottleneck: on compute capability 9.0 the instruction itself, which reaches about two
// thirds of the rate of wgmma; before that, the tensor cores.
#include <cstddef>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/ladder/tensor/mma_sync_tile.cuh"
#include "kernels/parts/async_copy.cuh"
#include "kernels/parts/mma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_sync_rasterized {
namespace {

constexpr int kGroup = 8;  // rows of tiles
template <typename Arithmetic>
using Of = MmaSyncTile<Arithmetic, 128, 256, 64, 64, 4>;

template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    mma_sync_rasterized(Problem p, Tiles tiles, const typename Tile::Element* __restrict__ a,
                        const typename Tile::Element* __restrict__ b,
                        typename Tile::Output* __restrict__ c) {
  extern __shared__ __align__(128) std::byte shared[];
  Tile tile(p, tiles.place(static_cast<int>(blockIdx.x)), a, b, shared);
  const int k_tiles = Tile::k_tiles(p);
  constexpr int kStages = Tile::kStages;
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    tile.copy_to(tile.stage(stage));
    commit_copies();
  }
  int reads = 0, writes = kStages - 1;
  typename Tile::Fragments fragments[2];
  wait_for_copies<kStages - 2>();
  __syncthreads();
  tile.load(fragments[0], tile.stage(reads), 0);
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
      if (step + 1 == Tile::kSteps) {
        // The next K tile has arrived, and all warps have loaded the last fragments of this one.
        wait_for_copies<kStages - 3>();
        __syncthreads();
        reads = reads + 1 == kStages ? 0 : reads + 1;
      }
      tile.load(fragments[(step + 1) % 2], tile.stage(reads), (step + 1) % Tile::kSteps);
      tile.multiply(fragments[step % 2], [&](int i) {  // copies lie between the MMAs
        tile.template copy_part_to<Tile::kSteps * Tile::kDown>(tile.stage(writes),
                                                               step * Tile::kDown + i);
      });
    }
    commit_copies();
    writes = writes + 1 == kStages ? 0 : writes + 1;
  }
  tile.store(c);
}

template <typename Arithmetic>
Launch launch(const Problem& p, const Device&, const Operands& o) {
  return launched_tiles<Of<Arithmetic>>(mma_sync_rasterized<Of<Arithmetic>>, p, o, kGroup);
}

const Registration registration(nt_rung(
    {
        .name = "MmaSyncRasterized",
        .idea = "Rasterization and tiles of 128 x 256: less L2 and DRAM traffic.",
        .source = "CUTLASS, threadblock rasterization; MatmulTutorial, 128 x 256 on an A100",
        .rung = 48,
        .unsupported = since(80),
    },
    {Of<Bf16>::kBM, Of<Bf16>::kBN, Of<Bf16>::kLine, Of<Bf16>::kMovedBytes},
    {{Precision::bf16, launch<Bf16>},
     {Precision::f16, launch<F16>},
     {Precision::tf32, launch<Tf32>},
     {Precision::s8, launch<S8>}}));

}  // namespace
}  // namespace gemm::tensor::mma_sync_rasterized
