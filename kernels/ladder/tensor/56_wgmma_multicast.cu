// TMA multicast: two blocks of a cluster compute vertically adjacent tiles and need the same K
// tiles of B. Each loads half of one and multicasts it to both: a third less L2 traffic. Cost: the
// blocks run in lockstep, since a stage is empty only when the consumers of both blocks have
// released it to both producers.
#include <cstddef>

#include "kernels/parts/multiply.cuh"
#include "kernels/parts/store.cuh"
#include "kernels/parts/wgmma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_multicast {
namespace {

constexpr int kStages = 4, kConsumers = 2;  // consumers are warpgroups
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
constexpr int kCluster = 2;
constexpr int kStagedColumns = 128;

template <typename Tile>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_multicast([[maybe_unused]] const __grid_constant__ WgmmaWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<Tile::kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kCluster * kConsumerThreads / 32);
  sync_cluster();
  const int rank = rank_in_cluster();
  const int cluster = static_cast<int>(blockIdx.x) / kCluster,
            clusters = static_cast<int>(gridDim.x) / kCluster;

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<kProducerRegisters>();
    if (threadIdx.x > kConsumerThreads) return;
    for (int index = cluster; index < work.tiles.count(); index += clusters) {
      const auto tile = work.tiles.place(index);
      const int row = (tile.row * kCluster + rank) * Tile::kBM, column = tile.column * Tile::kBN;
      for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
        const int k = k_tile * Tile::kBK;
        ring.begin_stage();
        Tile::A::copy(ring.data(), work.a_map, row, k, ring.full());
        Tile::B::template copy<kCluster>(ring.data() + Tile::A::kBytes, work.b_map, column, k,
                                         ring.full(), rank);
      }
    }
    ring.drain();
    return;
  }

  alloc_registers<kConsumerRegisters>();
  const int consumer = static_cast<int>(threadIdx.x) / 128;
  float acc[1][Tile::kAccumulators];
  for (int index = cluster; index < work.tiles.count(); index += clusters) {
    multiply_k_tiles<Tile, kCluster>(ring, work.k_tiles, consumer, acc);
    const auto tile = work.tiles.place(index);
    const int row = (tile.row * kCluster + rank) * Tile::kBM + 64 * consumer,
              column = tile.column * Tile::kBN;
    store_tile<typename Tile::Output, kStagedColumns>(acc, work, row, column, ring.end(), consumer);
  }
  finish_stores();
#endif
}

constexpr RungShape kShape{.rows = 64 * kConsumers,
                           .columns = 256,
                           .threads = kThreads,
                           .stages = kStages,
                           .cluster = kCluster,
                           .group = 8,
                           .persistent = true,
                           .staging_bytes = kConsumers * staging_bytes(kStagedColumns)};

const Registration registration(wgmma_rung<kShape>(
    [](auto tile) -> WgmmaKernel<WgmmaWork> { return wgmma_multicast<decltype(tile)>; },
    {
        .name = "WgmmaMulticast",
        .idea = "TMA multicast: clusters of two blocks load each K tile of B once.",
        .source = "NVIDIA, CUTLASS 3, TMA multicast; Andrew, fast.cu, kernel 8",
        .rung = 56,
    }));

}  // namespace
}  // namespace gemm::tensor::wgmma_multicast
