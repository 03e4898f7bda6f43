// Double-buffered fragments: `ldmatrix` loads the next step's fragments into a second set of
// registers during the MMAs of the current step, so that a warp waits for shared memory neither
// between steps nor after the barrier of a K tile. Cost: registers.
#include <cstddef>

#include "kernels/registry.hpp"
#include "kernels/tensor/mma_sync/mma_launch.cuh"

namespace gemm::tensor {
namespace {

struct MmaSyncDoubleBuffer {
  template <typename Arithmetic>
  using Shape = MmaShape<128, 128, 64, 64, 64, 4, 2>;
  static constexpr int kSince = 80, kGroup = 1;

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

const Registration registration(mma_kernel<MmaSyncDoubleBuffer, Bf16, F16>({
    .name = "MmaSyncDoubleBuffer",
    .idea = "Fragments double-buffered in registers: ldmatrix overlaps the MMAs.",
    .source = "CUTLASS, Efficient GEMM: warp-level software pipelining",
    .rung = 47,
}));

}  // namespace
}  // namespace gemm::tensor
