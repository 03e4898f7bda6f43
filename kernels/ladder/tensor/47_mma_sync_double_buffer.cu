// Double-buffered fragments: `ldmatrix` loads the next step's fragments into a second set of
// registers during the MMAs of the current step, so that a warp waits for shared memory neither
// between steps nor after the barrier of a K tile. Cost: registers.
#include <cstddef>

#include "kernels/parts/mma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_sync_double_buffer {
namespace {

struct MmaSyncDoubleBuffer {
  template <typename Arithmetic>
  using Shape = MmaShape<128, 128, 64, 64, 64, 4, 2>;
  static constexpr int kSince = 80, kGroup = 1;

  template <typename Tile>
  static __device__ void multiply(Tile& tile, int k_tiles, std::byte*) {
    multiply_double_buffered(tile, k_tiles);
  }
};

const Registration registration(mma_kernel<MmaSyncDoubleBuffer, Bf16, F16>({
    .name = "MmaSyncDoubleBuffer",
    .idea = "Fragments double-buffered in registers: ldmatrix overlaps the MMAs.",
    .source = "CUTLASS, Efficient GEMM: warp-level software pipelining",
    .rung = 47,
}));

}  // namespace
}  // namespace gemm::tensor::mma_sync_double_buffer
