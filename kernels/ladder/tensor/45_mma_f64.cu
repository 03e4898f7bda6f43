// FP64 tensor cores: `mma.sync` in FP64 has twice the rate of FP64 FMAs on compute capability 8.0
// and 9.0, and one load of a fragment serves many of them. K tiles are copied by `cp.async`; a
// block waits for each of them, so that only the other block of an SM hides the latency of global
// memory.
#include "kernels/parts/mma_f64_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_f64_rung {
namespace {

struct MmaF64 {
  using Shape = F64Shape<64, 64, 16, 32, 32, 1, 2, F64Mma::m8n8k4>;
  static constexpr int kGroup = 1;

  template <typename Tile>
  static __device__ void multiply(Tile& tile, int k_tiles) {
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      __syncthreads();  // all warps are done with the last K tile
      tile.copy_to(tile.stage(0));
      wait_for_copies<0>();
      __syncthreads();
#pragma unroll
      for (int step = 0; step < Shape::kSteps; ++step) multiply_step(tile, tile.stage(0), step);
    }
  }
};

const Registration registration(f64_kernel<MmaF64>({
    .name = "MmaF64",
    .idea = "FP64 tensor cores: mma.sync m8n8k4, operands in swizzled shared memory.",
    .source = "PTX ISA, mma.sync with .f64",
    .rung = 45,
}));

}  // namespace
}  // namespace gemm::tensor::mma_f64_rung
