// A tile of 128 x 128 where Wgmma has 64 x 64. The warpgroup computes it as two halves of 64 rows,
// which share the slice of B: per byte that is copied, and per byte that wgmma reads of B, twice
// the products. A step of the ring is eight products of 64 x 128 x 16 in place of four of
// 64 x 64 x 16, so that fewer waits and barriers stand between them, too.
#include <cstddef>
#include <cstdint>

#include "kernels/registry.hpp"
#include "kernels/tensor/wgmma/wgmma_slice.cuh"

namespace gemm::tensor {
namespace {

constexpr int kBM = 128, kBN = 128, kThreads = 128;
[[maybe_unused]] constexpr int kHalves = kBM / 64;

template <typename Instance>
__global__ void __launch_bounds__(kThreads)
    wgmma_big_tile([[maybe_unused]] WgmmaProblem<typename Instance::Element> p,
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
  float sums[kHalves][Instance::kSums];
  for (int slice = 0; slice < p.slices; ++slice) {
    if (threadIdx.x == 0) {
      arrive_and_expect(full, Instance::kBytes);
      Instance::A::copy(a, a_map, static_cast<int>(row), slice * kSliceDepth, full);
      Instance::B::copy(b, b_map, static_cast<int>(column), slice * kSliceDepth, full);
    }
    wait(full, slice % 2);
    fence_products();
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
      Instance::enqueue_products(sums[half], a, b, half, slice > 0);
    commit_products();
#pragma unroll
    for (int half = 0; half < kHalves; ++half) wait_for_products(sums[half]);
    __syncthreads();  // the products of all four warps have read the slices
  }
#pragma unroll
  for (int half = 0; half < kHalves; ++half) store_sums(sums[half], p, row + 64 * half, column);
#endif
}

const Registration registration({
    .name = "WgmmaBigTile",
    .idea = "A tile of 128 x 128 a warpgroup: twice the products for each byte copied or read.",
    .source = "NVIDIA, CUTLASS: the hierarchy of tiles",
    .rung = 51,
    .precisions = {Precision::bf16, Precision::f16},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported =
        [](const Problem& p, const Device& device) {
          return wgmma_unsupported(wgmma_big_tile<WgmmaInstance<__half, true, true, kBM, kBN>>, p,
                                   device);
        },
    .traffic = [](const Problem& p, const Device&) { return wgmma_traffic<kBM, kBN>(p); },
    .prepare =
        [](const Problem& p, const Device&, const Operands& o) {
          return with_instance<kBM, kBN>(p, [&]<typename Instance>(Instance) {
            return wgmma_launch<Instance>(wgmma_big_tile<Instance>, kThreads, 0, p, o);
          });
        },
});

}  // namespace
}  // namespace gemm::tensor
