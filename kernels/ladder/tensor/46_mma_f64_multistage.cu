// A multistage pipeline, two K tiles ahead of the MMAs, with the larger MMAs of compute capability
// 9.0 (elsewhere they are made of m8n8k4), and warp tiles of 32 x 64, which read a quarter less
// from shared memory than 32 x 32.
#include "kernels/parts/mma_f64_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_f64_multistage {
namespace {

struct MmaF64Multistage {
  using Shape = F64Shape<64, 128, 16, 32, 64, 3, 2>;
  static constexpr int kGroup = 8;

  template <typename Tile>
  static __device__ void multiply(Tile& tile, int k_tiles) {
    constexpr int kStages = Shape::kStages;
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) tile.copy_to(tile.stage(stage));
    int reads = 0, writes = kStages - 1;
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      wait_for_copies<kStages - 2>();
      __syncthreads();  // the K tile has arrived, and the previous stage is free
      tile.copy_to(tile.stage(writes));
#pragma unroll
      for (int step = 0; step < Shape::kSteps; ++step) multiply_step(tile, tile.stage(reads), step);
      reads = reads + 1 == kStages ? 0 : reads + 1;
      writes = writes + 1 == kStages ? 0 : writes + 1;
    }
  }
};

const Registration registration(f64_kernel<MmaF64Multistage>({
    .name = "MmaF64Multistage",
    .idea = "A multistage cp.async pipeline, and MMAs of 16 x 8 x 8.",
    .source = "CUTLASS, Efficient GEMM: multistage pipelines of compute capability 8.0",
    .rung = 46,
}));

}  // namespace
}  // namespace gemm::tensor::mma_f64_multistage
