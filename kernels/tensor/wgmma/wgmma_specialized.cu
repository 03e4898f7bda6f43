// Who copies does not multiply: a fifth warp keeps a ring of stages full, and the warpgroup waits
// for slices only, never for room. Each stage has two barriers: `full` ends a phase when its bytes
// are there, `empty` when the four warps are done with it. A slice's products are waited for once
// those of the next are enqueued, so that the tensor cores always have something to do. Two blocks
// share an SM: one multiplies while the other stores its tile.
#include <cstddef>
#include <cstdint>

#include "kernels/registry.hpp"
#include "kernels/tensor/wgmma/wgmma_slice.cuh"

namespace gemm::tensor {
namespace {

constexpr int kBM = 128, kBN = 128;
[[maybe_unused]] constexpr int kHalves = kBM / 64;
constexpr int kStages = 3, kBlocks = 2;  // 96 KiB and 128 sums a thread: two blocks an SM
constexpr int kMultipliers = 128, kThreads = kMultipliers + 32;
constexpr int kAlignment = 1024;  // of the swizzle

template <typename Instance>
constexpr int kSharedBytes = kStages* Instance::kBytes + kAlignment;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The stages of the ring, and how far somebody has come around it.
template <typename Instance>
struct Ring {
  std::uint32_t first_stage, full_barriers, empty_barriers;  // addresses
  int stage = 0, parity = 0;

  __device__ std::uint32_t a() const { return first_stage + stage * Instance::kBytes; }
  __device__ std::uint32_t b() const { return a() + Instance::A::kBytes; }
  __device__ std::uint32_t full() const { return full_barriers + stage * kBarrierBytes; }
  __device__ std::uint32_t empty() const { return empty_barriers + stage * kBarrierBytes; }
  __device__ void next() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

#endif

template <typename Instance>
__global__ void __launch_bounds__(kThreads, kBlocks)
    wgmma_specialized([[maybe_unused]] WgmmaProblem<typename Instance::Element> p,
                      [[maybe_unused]] typename Instance::Grid grid,
                      [[maybe_unused]] const __grid_constant__ CUtensorMap a_map,
                      [[maybe_unused]] const __grid_constant__ CUtensorMap b_map) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ std::uint64_t full[kStages], empty[kStages];
  Ring<Instance> ring{(shared_address(shared) + kAlignment - 1) / kAlignment * kAlignment,
                      shared_address(full), shared_address(empty)};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      init_barrier(ring.full_barriers + stage * kBarrierBytes, 1);
      init_barrier(ring.empty_barriers + stage * kBarrierBytes, kMultipliers / 32);
    }
    publish_barriers();
  }
  __syncthreads();
  const std::int64_t row = grid.first_row(), column = grid.first_column();
  if (threadIdx.x >= kMultipliers) {
    if (threadIdx.x > kMultipliers) return;
    for (int slice = 0; slice < p.slices; ++slice, ring.next()) {
      wait(ring.empty(), ring.parity ^ 1);
      arrive_and_expect(ring.full(), Instance::kBytes);
      Instance::A::copy(ring.a(), a_map, static_cast<int>(row), slice * kSliceDepth, ring.full());
      Instance::B::copy(ring.b(), b_map, static_cast<int>(column), slice * kSliceDepth,
                        ring.full());
    }
    return;
  }
  float sums[kHalves][Instance::kSums];
  std::uint32_t before = 0;
  for (int slice = 0; slice < p.slices; ++slice, ring.next()) {
    wait(ring.full(), ring.parity);
    fence_products();
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
      Instance::enqueue_products(sums[half], ring.a(), ring.b(), half, slice > 0);
    commit_products();
    wait_for_groups<1>();  // those of the slice before
    if (slice > 0 && threadIdx.x % 32 == 0) arrive(before);
    before = ring.empty();
  }
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    wait_for_products(sums[half]);
    store_sums(sums[half], p, row + 64 * half, column);
  }
#endif
}

const Registration registration({
    .name = "WgmmaSpecialized",
    .idea = "A warp of its own keeps a ring of stages full while the warpgroup multiplies.",
    .source = "NVIDIA, CUTLASS: warp-specialised kernels of compute capability 9.0",
    .rung = 52,
    .precisions = {Precision::bf16, Precision::f16},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported =
        [](const Problem& p, const Device& device) {
          return wgmma_unsupported(wgmma_specialized<WgmmaInstance<__half, true, true, kBM, kBN>>,
                                   p, device);
        },
    .traffic = [](const Problem& p, const Device&) { return wgmma_traffic<kBM, kBN>(p); },
    .prepare =
        [](const Problem& p, const Device&, const Operands& o) {
          return with_instance<kBM, kBN>(p, [&]<typename Instance>(Instance) {
            return wgmma_launch<Instance>(wgmma_specialized<Instance>, kThreads,
                                          kSharedBytes<Instance>, p, o);
          });
        },
});

}  // namespace
}  // namespace gemm::tensor
