// Two warpgroups multiply, and the tile is as large as their registers allow: 128 x 256, so that a
// slice that is read serves twice as many products. The warpgroup that copies gives its registers
// away, since 128 sums a thread leave no room for anything else.
#include "kernels/registry.hpp"
#include "kernels/tensor/wgmma/wgmma_launch.cuh"

namespace gemm::tensor {
namespace {

constexpr WgmmaShape kShape{
    .rows = 128, .columns = 256, .stages = 4, .cluster = 1, .stores_by_copy = false};

const Registration registration(wgmma_rung<kShape, false, 1>(
    "WgmmaTwoConsumers", 53, "A tile of 128 x 256, shared by two multiplying warpgroups.",
    "NVIDIA, CUTLASS 3, warp-specialized cooperative kernels; Andrew, fast.cu, kernel 5"));

}  // namespace
}  // namespace gemm::tensor
