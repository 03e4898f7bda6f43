// A multistage pipeline, three K tiles ahead of the MMAs, with the larger MMAs of compute capability
// 9.0 (elsewhere they are made of m8n8k4), and warp tiles of 64 x 32, which read a quarter less from
// shared memory than 32 x 32.
#include "kernels/registry.hpp"
#include "kernels/tensor/mma_f64/mma_f64_launch.cuh"

namespace gemm::tensor {
namespace {

template <typename Shape_>
struct Multistage {
  using Shape = Shape_;
  static constexpr int kGroup = 8;

  template <typename Tile>
  static __device__ void multiply(Tile& tile, int k_tiles) {
    multiply_multistage(tile, k_tiles);
  }
};

const Registration registration(f64_kernel<Multistage<F64Shape<64, 128, 32, 64, 3, 2>>>({
    .name = "MmaF64Multistage",
    .idea = "A multistage cp.async pipeline, and MMAs of 16 x 8 x 8.",
    .source = "CUTLASS, Efficient GEMM: multistage pipelines of compute capability 8.0",
    .rung = 46,
}));

}  // namespace
}  // namespace gemm::tensor
