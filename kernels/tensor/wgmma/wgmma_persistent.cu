// A block for each SM stays for many tiles: it fills the ring for the next while the last is
// stored, and tiles that are computed at once lie in a square, whose rows of A and columns of B the
// L2 holds.
#include "kernels/registry.hpp"
#include "kernels/tensor/wgmma/wgmma_launch.cuh"

namespace gemm::tensor {
namespace {

constexpr WgmmaShape kShape{
    .rows = 128, .columns = 256, .stages = 4, .cluster = 1, .stores_by_copy = false};

const Registration registration(wgmma_rung<kShape, true, 16>(
    "WgmmaPersistent", 54, "As many blocks as SMs, for all tiles, in groups of 16 rows.",
    "NVIDIA, CUTLASS 3, persistent scheduler with rasterization"));

}  // namespace
}  // namespace gemm::tensor
