// A batch, or groups, in one persistent launch: tiles are counted through all products, so that a
// block goes from one product to the next without a pause, and the producer loads the first stages
// of the next one during the epilogue of the last. The pipeline, the tile and the epilogue are
// those of WgmmaTmaStore.
//
// One tensor map has the rows of all A, one those of all B. A tile beyond the last row of its
// product loads rows of the next one: these results are not stored. TMA cuts C at the end of the
// batch only, and not at the end of a product, so that threads store it where a product ends
// within the 64 rows of a consumer. A consumer all of whose rows are beyond it issues no MMAs.
//
// Groups come in order of their rows, the largest first: the last tiles are the short ones, and SMs
// end at about the same time. The row tiles of a column of a product are next to each other, so
// that its B comes from DRAM once.
//
// The next bottleneck: the last wave of tiles. A batch has more tiles than one product, but their
// number still is no multiple of the number of SMs.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/batched_tiles.cuh"
#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_batched {
namespace {

using namespace batched;

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_batched([[maybe_unused]] const __grid_constant__ BatchedWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  let_next_launch_begin();
  Ring<kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  if (threadIdx.x == kConsumerThreads) prefetch_maps(work, work.stores_by_tma());
  __syncthreads();
  const int n = static_cast<int>(work.n);

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<40>();  // of 168, which 384 threads have at first
    if (threadIdx.x > kConsumerThreads) return;
    wait_for_previous_launch();  // everything else in the block depends on the loads
    for (Walk walk{work}; walk.at_tile(); walk.next()) {
      const auto tile = walk.tile();
      const int row = walk.first_row + tile.row, column = walk.which * n + tile.column;
      const bool both = tile.rows > kHalf;
      for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
        ring.begin_stage(both ? kStageBytes : kStageBytes - kHalfBytes);
        tma_load(ring.data(), work.a_map, k_tile * kBK, row, ring.full());
        if (both)
          tma_load(ring.data() + kHalfBytes, work.a_map, k_tile * kBK, row + kHalf, ring.full());
        tma_load(ring.data() + kABytes, work.b_map, k_tile * kBK, column, ring.full());
      }
    }
    return;
  }

  alloc_registers<232>();
  const int consumer = static_cast<int>(threadIdx.x) / 128;
  const int offset = consumer * kHalfBytes;  // of its rows in a K tile of A
  const std::uint32_t staging = ring.end() + consumer * staging_bytes(kStaged);
  float acc[1][kBN / 2];
  for (Walk walk{work}; walk.at_tile(); walk.next()) {
    const auto tile = walk.tile();
    const int row = tile.row + kHalf * consumer;
    if (kHalf * consumer >= tile.rows) {  // beyond the product
      for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
        ring.wait_for_stage();
        release(ring.empty());
      }
      continue;
    }
    std::uint32_t before = 0;
#pragma unroll 1
    for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
      ring.wait_for_stage();
      wgmma_fence();
      multiply_k_tile<T>(acc, ring.data() + offset, ring.data() + kABytes, k_tile > 0);
      wgmma_commit();
      wgmma_wait<1>();  // for the previous K tile
      if (k_tile > 0) release(before);
      before = ring.empty();
    }
    wgmma_wait_all(acc);
    release(before);
    if (work.stores_by_tma() && row + kHalf <= walk.rows)
      store_by_tma<T, kStaged>(acc[0], work.c_map, walk.first_row + row, tile.column, staging,
                               consumer);
    else
      store_accumulators<T>(acc[0], static_cast<T*>(work.c) + std::int64_t{walk.first_row} * n,
                            walk.rows, n, row, tile.column);
  }
  if (threadIdx.x % 128 == 0) tma_store_wait_read();  // shared memory is freed at the end
#endif
}

template <typename T>
Launch launch(const Problem& p, const Device& device, const Operands& o) {
  const BatchedWork work = batched_work<T>(p, o);
  return launched(wgmma_batched<T>,
                  {.count = std::min(work.count, std::max(1, device.sm_count)),
                   .threads = kThreads,
                   .shared_bytes = kSharedBytes,
                   .overlaps = true},
                  work);
}

Kernel kernel() {
  Kernel rung = nt_rung(
      {
          .name = "WgmmaBatched",
          .idea = "A persistent kernel over all products of a batch, or all groups, as if their "
                  "tiles were one C's.",
          .source = "NVIDIA, CUTLASS 3, persistent scheduler over the batch and over groups",
          .rung = 58,
          .batches = Batches::only,
          .unsupported = needs_rows_within_limits(wgmma_batched<__half>),
      },
      {}, {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}});
  rung.traffic = batched::traffic;
  rung.work = batched::work;
  return rung;
}
const Registration registration(kernel());

}  // namespace
}  // namespace gemm::tensor::wgmma_batched
