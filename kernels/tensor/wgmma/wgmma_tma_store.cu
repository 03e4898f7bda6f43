// C goes through shared memory, in the order in which the copy engine stores it: whole lines, by an
// instruction that no warp waits for. Before, each warp stored 16 bytes of eight rows at a time,
// half of what a sector of memory is.
#include "kernels/registry.hpp"
#include "kernels/tensor/wgmma/wgmma_launch.cuh"

namespace gemm::tensor {
namespace {

constexpr WgmmaShape kShape{.rows = 128, .columns = 256, .stages = 4, .cluster = 1};

const Registration registration(wgmma_rung<kShape, true, 16>(
    "WgmmaTmaStore", 55, "C is stored by the copy engine, whole lines at a time.",
    "NVIDIA, PTX ISA, stmatrix and cp.async.bulk.tensor"));

}  // namespace
}  // namespace gemm::tensor
