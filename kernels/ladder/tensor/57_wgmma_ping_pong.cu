// The ping-pong schedule: each of the two consumer warpgroups has its own tile, 128 x 128; one runs
// its epilogue while the other issues MMAs, so that the tensor cores never wait for a store. In the
// cooperative schedule before, both stored at the same time. Cost: a smaller tile, with more bytes
// per FLOP.
//
// The ring holds the K tiles of one tile after another. A consumer skips those of the other, and
// waits for its first one only once the other has received all of its own (ping_pong.cuh).
#include <cstddef>

#include "kernels/parts/multiply.cuh"
#include "kernels/parts/ping_pong.cuh"
#include "kernels/parts/store.cuh"
#include "kernels/parts/wgmma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_ping_pong {
namespace {

constexpr int kStages = 6, kConsumers = 2;  // consumers are warpgroups
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
constexpr int kCluster = 2;
constexpr int kStagedColumns = 128;

template <typename Tile>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_ping_pong([[maybe_unused]] const __grid_constant__ WgmmaWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<Tile::kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kCluster * 128 / 32);  // one consumer per stage
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
  if (consumer == 1) ring.skip(work.k_tiles);
  float acc[Tile::kBM / 64][Tile::kAccumulators];
  for (int index = cluster + consumer * clusters; index < work.tiles.count();
       index += kConsumers * clusters) {
    if (index > cluster) order_wait(consumer);
    multiply_k_tiles<Tile, kCluster>(ring, work.k_tiles, 0, acc, [&] {
      if (index + clusters < work.tiles.count()) order_arrive(1 - consumer);
    });
    ring.skip(work.k_tiles);
    const auto tile = work.tiles.place(index);
    const int row = (tile.row * kCluster + rank) * Tile::kBM, column = tile.column * Tile::kBN;
    store_tile<typename Tile::Output, kStagedColumns>(acc, work, row, column, ring.end(), consumer);
  }
  finish_stores();
#endif
}

constexpr RungShape kShape{.rows = 128,
                           .columns = 128,
                           .threads = kThreads,
                           .stages = kStages,
                           .cluster = kCluster,
                           .group = 8,
                           .persistent = true,
                           .staging_bytes = kConsumers * staging_bytes(kStagedColumns)};

const Registration registration(wgmma_rung<kShape>(
    [](auto tile) -> WgmmaKernel<WgmmaWork> { return wgmma_ping_pong<decltype(tile)>; },
    {
        .name = "WgmmaPingPong",
        .idea = "The ping-pong schedule: one warpgroup stores its tile while the other multiplies.",
        .source = "NVIDIA, CUTLASS 3, warp-specialized ping-pong kernels",
        .rung = 57,
    }));

}  // namespace
}  // namespace gemm::tensor::wgmma_ping_pong
