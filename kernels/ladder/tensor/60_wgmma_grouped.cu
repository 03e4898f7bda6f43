// Blocks take the next tile when they are ready for it, from a counter, instead of tiles at a fixed
// distance: the tiles of groups differ, since the last one of a group may have half of the rows,
// and some wait for DRAM. The rest is as in WgmmaBatched.
//
// The last tiles, for half of the SMs, are cut into halves of 64 rows, so that SMs end at about the
// same time.
//
// The producer asks for the next tile while it loads the present one. It writes the tile's index
// beside the stage with the first K tile, before its arrival at the stage's barrier, so that
// consumers that have waited for the stage may read it; the index after the last ends them. The
// last block to end sets the counter to zero for the next launch.
//
// The next bottleneck: power where groups have many rows, DRAM where they have few.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/batched_tiles.cuh"
#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/device_array.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/trial.hpp"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_grouped {
namespace {

using namespace batched;

// Zero before and after each launch.
struct Counters {
  int taken;  // tiles, without the first one of each block
  int ended;  // blocks
};
struct GroupedWork : BatchedWork {
  Counters* counters;
};
static_assert(sizeof(GroupedWork) <= 4096, "kernel parameters");

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_grouped([[maybe_unused]] const __grid_constant__ GroupedWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  __shared__ int tiles[kStages];  // which tile begins with this stage
  let_next_launch_begin();
  Ring<kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  if (threadIdx.x == kConsumerThreads) prefetch_maps(work, work.stores_by_tma());
  __syncthreads();
  const int n = static_cast<int>(work.n);
  Walk walk{work};

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<40>();  // of 168, which 384 threads have at first
    if (threadIdx.x > kConsumerThreads) return;
    wait_for_previous_launch();  // which resets the counters; all else depends on the loads
    while (walk.at_tile()) {
      const int next = static_cast<int>(gridDim.x) + atomicAdd(&work.counters->taken, 1);
      const auto tile = walk.tile();
      const int row = walk.first_row + tile.row, column = walk.which * n + tile.column;
      const bool both = tile.rows > kHalf;
      for (int k_tile = 0; tile.rows > 0 && k_tile < work.k_tiles; ++k_tile, ring.next()) {
        wait(ring.empty(), ring.parity ^ 1);
        if (k_tile == 0) tiles[ring.stage] = walk.index;
        arrive_and_expect(ring.full(), both ? kStageBytes : kStageBytes - kHalfBytes);
        tma_load(ring.data(), work.a_map, k_tile * kBK, row, ring.full());
        if (both)
          tma_load(ring.data() + kHalfBytes, work.a_map, k_tile * kBK, row + kHalf, ring.full());
        tma_load(ring.data() + kABytes, work.b_map, k_tile * kBK, column, ring.full());
      }
      walk.index = next;
    }
    wait(ring.empty(), ring.parity ^ 1);
    tiles[ring.stage] = work.count;  // none
    arrive(ring.full());
    if (atomicAdd(&work.counters->ended, 1) + 1 == static_cast<int>(gridDim.x))
      *work.counters = {0, 0};
    return;
  }

  alloc_registers<232>();
  const int consumer = static_cast<int>(threadIdx.x) / 128;
  const int offset = consumer * kHalfBytes;  // of its rows in a K tile of A
  const std::uint32_t staging = ring.end() + consumer * staging_bytes(kStaged);
  float acc[1][kBN / 2];
  for (;;) {
    ring.wait_for_stage();
    walk.index = tiles[ring.stage];
    if (!walk.at_tile()) break;
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
  const simt::DeviceMemory counters(sizeof(Counters));
  check(cudaMemset(counters.get(), 0, sizeof(Counters)));
  check(cudaStreamSynchronize(nullptr));  // before a launch in any stream
  // Half a wave of tiles in halves.
  const GroupedWork work{batched_work<T>(p, o, device.sm_count / 2),
                         static_cast<Counters*>(counters.get())};
  const Launch enqueued = launched(wgmma_grouped<T>,
                                   {.count = std::min(work.count, std::max(1, device.sm_count)),
                                    .threads = kThreads,
                                    .shared_bytes = kSharedBytes,
                                    .overlaps = true},
                                   work);
  return [enqueued, counters](Stream stream) { enqueued(stream); };
}

Kernel kernel() {
  Kernel rung = nt_rung(
      {
          .name = "WgmmaGrouped",
          .idea = "Blocks take the next tile of all groups from a counter when they are ready.",
          .source = "NVIDIA, CUTLASS 3, dynamic persistent schedulers; Triton's persistent kernels",
          .rung = 60,
          .batches = Batches::only,
          .unsupported = needs_rows_within_limits(wgmma_grouped<__half>),
      },
      {}, {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}});
  rung.traffic = batched::traffic;
  rung.work = batched::work;
  return rung;
}
const Registration registration(kernel());

}  // namespace
}  // namespace gemm::tensor::wgmma_grouped
