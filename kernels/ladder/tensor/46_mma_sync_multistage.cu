// A multistage pipeline: `cp.async` copies K tiles into a ring of stages without registers, three K
// tiles ahead of the MMAs. Latency of global memory is spread over three K tiles, and one barrier
// per K tile remains of two. Cost: shared memory.
#include <cstddef>

#include "kernels/parts/mma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_sync_multistage {
namespace {

struct MmaSyncMultistage {
  template <typename Arithmetic>
  using Shape = MmaShape<128, 128, 64, 64, 64, 4, 2>;
  static constexpr int kSince = 80, kGroup = 1;

  template <typename Tile>
  static __device__ void multiply(Tile& tile, int k_tiles, std::byte*) {
    constexpr int kStages = Tile::Shape::kStages;
    typename Tile::Fragments fragments;
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
      tile.copy_to(tile.stage(stage));
      commit_copies();
    }
    int reads = 0, writes = kStages - 1;
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      wait_for_copies<kStages - 2>();
      __syncthreads();  // the K tile has arrived, and the previous stage is free
      tile.copy_to(tile.stage(writes));
      commit_copies();
#pragma unroll
      for (int step = 0; step < Tile::Shape::kSteps; ++step) {
        tile.load_fragments(fragments, tile.stage(reads), step);
        tile.multiply(fragments);
      }
      reads = reads + 1 == kStages ? 0 : reads + 1;
      writes = writes + 1 == kStages ? 0 : writes + 1;
    }
  }
};

const Registration registration(mma_kernel<MmaSyncMultistage, Bf16, F16>({
    .name = "MmaSyncMultistage",
    .idea = "A multistage cp.async pipeline, three K tiles ahead of the MMAs.",
    .source = "CUTLASS, Efficient GEMM: multistage pipelines of compute capability 8.0",
    .rung = 46,
}));

}  // namespace
}  // namespace gemm::tensor::mma_sync_multistage
