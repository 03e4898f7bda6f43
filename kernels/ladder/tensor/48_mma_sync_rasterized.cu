// Rasterization and a larger tile: a block of 8 warps computes 128 x 256, all that the registers of
// an SM hold, with a third more FLOP per byte of L2 traffic than 128 x 128. Tiles are computed in
// compact groups, whose blocks share data in the L2. Both save energy, which is the limiter here:
// the clock is what the power cap permits. Cost: one block per SM, so nothing overlaps its
// epilogue.
#include <cstddef>

#include "kernels/parts/mma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_sync_rasterized {
namespace {

template <typename Shape_, int kGroup_>
struct Rung {
  template <typename Of>
  using Shape = Shape_;
  static constexpr int kSince = 80, kGroup = kGroup_;

  template <typename Tile>
  static __device__ void multiply(Tile& tile, int k_tiles, std::byte*) {
    multiply_double_buffered(tile, k_tiles);
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
      .parameters = numbers({{"BM", kBM},
                             {"BN", kBN},
                             {"depth", kDepth},
                             {"WM", kWM},
                             {"WN", kWN},
                             {"stages", kStages},
                             {"group", kGroup}}),
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
}  // namespace gemm::tensor::mma_sync_rasterized
