// Each of the two multiplying warpgroups has a tile of its own, 128 x 128, and they take turns: one
// stores while the other multiplies, so that the tensor cores never wait for a store. Before, both
// stored at the same time.
#include "kernels/registry.hpp"
#include "kernels/tensor/wgmma/wgmma_launch.cuh"

namespace gemm::tensor {
namespace {

constexpr WgmmaShape kShape{.rows = 128, .columns = 128, .stages = 6, .ping_pong = true};

const Registration registration(wgmma_rung<kShape, true, 8>(
    "WgmmaPingPong", 57, "One warpgroup stores its tile while the other multiplies.",
    "NVIDIA, CUTLASS 3, warp-specialized ping-pong kernels"));

}  // namespace
}  // namespace gemm::tensor
