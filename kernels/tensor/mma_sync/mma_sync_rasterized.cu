// Tiles in compact groups, and twice as large: a block of 8 warps, all that the registers of an SM
// hold, computes 128 x 256. Of each byte that it takes from the L2 it makes a third more products
// than one of 128 x 128, and of what one block takes others of its group find more in the L2. Both
// save energy, which binds here: the clock is what the power cap leaves.
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
    static_assert(kSteps % 2 == 0, "a slice ends with the second set");
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
          // The next K tile has arrived, and all have loaded what they want of this one.
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

// Each point has precisions of its own.
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
      .idea = "Tiles of 128 x 256 in compact groups, both to take less from the L2 and from DRAM.",
      .source = "CUTLASS, threadblock rasterization; MatmulTutorial, 128 x 256 on an A100",
      .rung = 48,
  });
}

// FP8 has two accumulators of each result, or where it is not promoted must be converted on a card
// that lacks its instruction, such as Hopper: registers for a warp's tile of half the size.
const TunableRegistration registration({
    point<128, 256, 64, 64, 64, 4, 1, 8>(Precisions<Bf16, F16, Tf32, S8>{}),
    point<128, 128, 64, 64, 64, 4, 2, 8>(Precisions<Bf16, F16>{}),
    point<128, 128, kPromotion, 64, 32, 3, 1, 8>(Precisions<E4m3, E5m2>{}),
    point<128, 128, 64, 64, 32, 4, 1, 8>(Precisions<E4m3Fast, E5m2Fast>{}),
});

}  // namespace
}  // namespace gemm::tensor
