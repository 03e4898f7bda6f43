// Two blocks of a cluster compute tiles below each other and need the same slices of B: each reads
// half of one and has it copied into both.
#include "kernels/registry.hpp"
#include "kernels/tensor/wgmma/wgmma_launch.cuh"

namespace gemm::tensor {
namespace {

constexpr WgmmaShape kShape{.rows = 128, .columns = 256, .stages = 4};

const Registration registration(wgmma_rung<kShape, true, 8>(
    "WgmmaMulticast", 56, "Clusters of two blocks read each slice of B once.",
    "NVIDIA, CUTLASS 3, TMA multicast; Andrew, fast.cu, kernel 8"));

}  // namespace
}  // namespace gemm::tensor
