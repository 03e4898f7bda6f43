// The tensor cores of compute capability 9.0 as simply as they can be used: a warpgroup computes a
// tile of 64 x 64. One thread asks the copy engine for the next slices of A and B; when they are
// there, four products of 16 steps of k each are enqueued and waited for. Neither fragments nor
// registers are loaded: wgmma reads both factors from shared memory, in either direction.
//
// Copies and products take turns; only other blocks on the SM keep the tensor cores busy meanwhile.
#include <cstddef>
#include <cstdint>

#include "kernels/registry.hpp"
#include "kernels/tensor/wgmma/wgmma_slice.cuh"

namespace gemm::tensor {
namespace {

constexpr int kBM = 64, kBN = 64, kThreads = 128;

template <typename Instance>
__global__ void __launch_bounds__(kThreads)
    wgmma([[maybe_unused]] WgmmaProblem<typename Instance::Element> p,
          [[maybe_unused]] typename Instance::Grid grid,
          [[maybe_unused]] const __grid_constant__ CUtensorMap a_map,
          [[maybe_unused]] const __grid_constant__ CUtensorMap b_map) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  __shared__ __align__(1024) std::byte a_slice[Instance::A::kBytes], b_slice[Instance::B::kBytes];
  __shared__ std::uint64_t full_barrier;
  const std::uint32_t a = shared_address(a_slice), b = shared_address(b_slice),
                      full = shared_address(&full_barrier);
  if (threadIdx.x == 0) {
    init_barrier(full, 1);
    publish_barriers();
  }
  __syncthreads();
  const std::int64_t row = grid.first_row(), column = grid.first_column();
  float sums[Instance::kSums];
  for (int slice = 0; slice < p.slices; ++slice) {
    if (threadIdx.x == 0) {
      arrive_and_expect(full, Instance::kBytes);
      Instance::A::copy(a, a_map, static_cast<int>(row), slice * kSliceDepth, full);
      Instance::B::copy(b, b_map, static_cast<int>(column), slice * kSliceDepth, full);
    }
    wait(full, slice % 2);
    fence_products();
    Instance::enqueue_products(sums, a, b, 0, slice > 0);
    commit_products();
    wait_for_products(sums);
    __syncthreads();  // the products of all four warps have read the slices
  }
  store_sums(sums, p, row, column);
#endif
}

const Registration registration({
    .name = "Wgmma",
    .idea = "A warpgroup multiplies straight out of shared memory, which the copy engine fills.",
    .source = "NVIDIA, PTX ISA, asynchronous warpgroup-level matrix instructions",
    .rung = 50,
    .precisions = {Precision::bf16, Precision::f16},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported =
        [](const Problem& p, const Device& device) {
          return wgmma_unsupported(wgmma<WgmmaInstance<__half, true, true, kBM, kBN>>, p, device);
        },
    .traffic = [](const Problem& p, const Device&) { return wgmma_traffic<kBM, kBN>(p); },
    .prepare =
        [](const Problem& p, const Device&, const Operands& o) {
          return with_instance<kBM, kBN>(p, [&]<typename Instance>(Instance) {
            return wgmma_launch<Instance>(wgmma<Instance>, kThreads, 0, p, o);
          });
        },
});

}  // namespace
}  // namespace gemm::tensor
