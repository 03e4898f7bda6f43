// Rasterization and a larger tile: a block of 8 warps computes 128 x 256, all that the registers of
// an SM hold, with a third more FLOP per byte of L2 traffic than 128 x 128. Tiles are computed in
// compact groups, whose blocks share data in the L2. Both save energy, which is the limiter here:
// the clock is what the power cap permits. Cost: one block per SM, so nothing overlaps its
// epilogue.
#include <cstddef>
#include <string>

#include "kernels/registry.hpp"
#include "kernels/tensor/mma_sync/mma_launch.cuh"

namespace gemm::tensor {
namespace {

template <typename Shape_, int kGroup_>
struct Rung {
  template <typename Of>
  using Shape = Shape_;
  static constexpr int kSince = 80, kGroup = kGroup_;

  template <typename Tile>
  static __device__ void multiply(Tile& tile, int k_tiles, std::byte*) {
    constexpr int kStages = Tile::Shape::kStages, kSteps = Tile::Shape::kSteps;
    static_assert(kSteps % 2 == 0, "a K tile must end with the second set");
    typename Tile::Fragments fragments[2];
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
      tile.copy_to(tile.stage(stage));
      commit_copies();
    }
    int reads = 0, writes = kStages - 1;
    wait_for_copies<kStages - 2>();
    __syncthreads();
    tile.load_fragments(fragments[0], tile.stage(reads), 0);
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if (step + 1 == kSteps) {
          // The next K tile has arrived, and all warps have loaded the last fragments of this one.
          wait_for_copies<kStages - 3>();
          __syncthreads();
          reads = reads + 1 == kStages ? 0 : reads + 1;
        }
        tile.load_fragments(fragments[(step + 1) % 2], tile.stage(reads), (step + 1) % kSteps);
        tile.multiply(fragments[step % 2], [&](int row) {
          tile.template copy_part_to<kSteps * Tile::kRows>(tile.stage(writes),
                                                           step * Tile::kRows + row);
        });
      }
      commit_copies();
      writes = writes + 1 == kStages ? 0 : writes + 1;
      tile.end_k_tile();
    }
  }
};

// The precisions of a point.
template <typename... Of>
struct Precisions {};

template <int kBM, int kBN, int kDepth, int kWM, int kWN, int kStages, int kBlocks, int kGroup,
          typename... Of>
Kernel point(Precisions<Of...>) {
  using Shape = MmaShape<kBM, kBN, kDepth, kWM, kWN, kStages, kBlocks>;
  return mma_kernel<Rung<Shape, kGroup>, Of...>({
      .name = "MmaSyncRasterized",
      .parameters = {{"BM", std::to_string(kBM)},
                     {"BN", std::to_string(kBN)},
                     {"depth", std::to_string(kDepth)},
                     {"WM", std::to_string(kWM)},
                     {"WN", std::to_string(kWN)},
                     {"stages", std::to_string(kStages)},
                     {"group", std::to_string(kGroup)}},
      .idea = "Rasterization and tiles of 128 x 256: less L2 and DRAM traffic.",
      .source = "CUTLASS, threadblock rasterization; MatmulTutorial, 128 x 256 on an A100",
      .rung = 48,
  });
}

// FP8 needs registers for promoted accumulators, or, without promotion, for the conversion to FP16
// on GPUs without FP8 mma.sync, such as Hopper: hence the warp tile of half the size.
const TunableRegistration registration({
    point<128, 256, 64, 64, 64, 4, 1, 8>(Precisions<Bf16, F16, Tf32, S8>{}),
    point<128, 128, 64, 64, 64, 4, 2, 8>(Precisions<Bf16, F16>{}),
    point<128, 128, kPromotion, 64, 32, 3, 1, 8>(Precisions<E4m3, E5m2>{}),
    point<128, 128, 64, 64, 32, 4, 1, 8>(Precisions<E4m3Fast, E5m2Fast>{}),
});

}  // namespace
}  // namespace gemm::tensor
