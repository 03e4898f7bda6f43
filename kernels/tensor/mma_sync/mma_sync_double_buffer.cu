// Fragments in two sets of registers: `ldmatrix` fetches those of the next step while the tensor
// cores multiply the ones that are there, so that a warp need not wait for shared memory between
// two steps, nor behind the barrier of a slice.
#include <cstddef>

#include "kernels/registry.hpp"
#include "kernels/tensor/mma_sync/mma_double_buffer.cuh"
#include "kernels/tensor/mma_sync/mma_launch.cuh"

namespace gemm::tensor {
namespace {

struct MmaSyncDoubleBuffer {
  template <typename Arithmetic>
  using Shape = MmaShape<128, 128, 64, 64, 64, 4, 2>;
  static constexpr int kSince = 80, kGroup = 1;

  template <typename Tile>
  static __device__ void multiply(Tile& tile, int slices, std::byte*) {
    multiply_double_buffered(tile, slices);
  }
};

const Registration registration(mma_kernel<MmaSyncDoubleBuffer, Bf16, F16>({
    .name = "MmaSyncDoubleBuffer",
    .idea = "Fragments of the next step are loaded while those of this one are multiplied.",
    .source = "CUTLASS, Efficient GEMM: warp-level software pipelining",
    .rung = 47,
}));

}  // namespace
}  // namespace gemm::tensor
