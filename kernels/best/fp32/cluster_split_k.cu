// Split-K within a cluster, intended for few tiles and long k. The blocks of a thread-block cluster
// run at the same time on SMs of one GPC (a group of some 16 SMs); small tiles have two blocks per
// SM. They share the K tiles of one tile. Each leaves its accumulators in its shared memory; after
// a cluster barrier each reduces its share of the tile from the distributed shared memory of all,
// always in the same order. No workspace, no flags, and the reduction is parallel. Cost: fewer
// clusters than blocks fit at once.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/parts/specialized_tile.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::cluster_split_k {
namespace {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
__device__ float load_from(std::uint32_t address, int block) {
  float value;
  asm volatile(
      "{\n.reg .u32 there;\n"
      "mapa.shared::cluster.u32 there, %1, %2;\n"
      "ld.shared::cluster.f32 %0, [there];\n}"
      : "=f"(value)
      : "r"(address), "r"(block));
  return value;
}
#endif

struct ClusterWork : SpecializedWork {
  int blocks;  // per cluster
};

template <typename Tile, Rows kRows>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    cluster_split_k([[maybe_unused]] const __grid_constant__ ClusterWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kFours = Tile::kTM * Tile::kTN / 4;  // of accumulators, per thread
  static_assert(
      kFours * 4 * Tile::kConsumerThreads * sizeof(float) <= Tile::kStages * Tile::kStageBytes,
      "accumulators must fit the ring");
  extern __shared__ __align__(128) std::byte shared[];
  const std::uint32_t ring = shared_address(shared);
  if (threadIdx.x == 0) init_ring<Tile>(ring);
  __syncthreads();
  // A cluster computes a tile; its blocks have equal shares of the K tiles.
  const int blocks = work.blocks, block = static_cast<int>(blockIdx.x) % blocks;
  const auto tile = work.tiles.place(static_cast<int>(blockIdx.x) / blocks);
  const int begin = static_cast<int>(std::int64_t{work.k_tiles} * block / blocks),
            end = static_cast<int>(std::int64_t{work.k_tiles} * (block + 1) / blocks);

  if (threadIdx.x >= Tile::kConsumerThreads) {
    dealloc_registers<Tile::kProducerRegisters>();
    if (threadIdx.x > Tile::kConsumerThreads) return;
    begin_loads();
    RingPosition<Tile> position(ring);
    for (int k_tile = begin; k_tile < end; ++k_tile)
      load_k_tile<Tile>(work, ring, position, tile, k_tile);
    return;
  }

  alloc_registers<Tile::kConsumerRegisters>();
  Consumer<Tile> consumer(shared, end - begin);
  consumer.multiply(end - begin);
  auto* mine = reinterpret_cast<float*>(shared) + threadIdx.x;
  sync_consumers<Tile>();  // all consumers are done with the ring
  consumer.for_each_accumulator([&](float acc, int i) { mine[i * Tile::kConsumerThreads] = acc; });
  sync_cluster();
  for (int i = kFours * block / blocks * 4; i < kFours * (block + 1) / blocks * 4; i += 4) {
    float four[4] = {};
    for (int other = 0; other < blocks; ++other)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        four[j] += load_from(shared_address(mine + (i + j) * Tile::kConsumerThreads), other);
    Consumer<Tile>::template store_four<kRows>(work.c, tile, work.m, work.n, i, four);
  }
  sync_cluster();  // no block exits before all have read its shared memory
#endif
}

// Each block of a cluster stores a tile of accumulators, and together they load all.
template <typename Tile>
Work work_for(const Problem& p, int size, const Device& device) {
  TileSchedule whole = whole_tiles(p, Tile::kBM, Tile::kBN, Tile::kBK);
  whole.blocks = whole.whole = whole.tiles();
  Work work = specialized_work<Tile>(p, device, whole);
  const double sums = sizeof(float) * Tile::kBM * Tile::kBN;
  work.traffic.shared += 2 * sums * whole.tiles() * size;
  // Clusters that run at once: blocks of one may share an SM.
  const double at_once =
                   std::max({1, Tile::kBlocks * device.clusters(size),
                             device.clusters(static_cast<int>(ceil_div(size, Tile::kBlocks)))}),
               waves = std::ceil(whole.tiles() / at_once);
  const double k_tiles = static_cast<double>(ceil_div(whole.k_tiles, size));
  work.busiest =
      waves * Tile::kBlocks * k_tiles * device.sm_count / (1.0 * whole.tiles() * whole.k_tiles);
  work.tiles = waves;
  work.tail = waves * 2 * sums;
  work.exchanges = waves;
  return work;
}

template <typename Tile>
constexpr SpecializedKernels kKernels{cluster_split_k<Tile, Rows::aligned>,
                                      cluster_split_k<Tile, Rows::any>};

std::vector<Candidate> candidates(const Problem& p, const Device& device) {
  std::vector<Candidate> all;
  for_each_tile([&]<typename Tile>() {
    if (!counts_fit(p, Tile::kBM, Tile::kBN, Tile::kBK)) return;
    const TileSchedule whole = whole_tiles(p, Tile::kBM, Tile::kBN, Tile::kBK);
    for (int size = 2; size <= std::min(Device::kPortableCluster, whole.k_tiles); ++size) {
      if (device.clusters(size) == 0) continue;
      all.push_back({named("tile", Tile::kBM, Tile::kBN) + "/cluster:" + std::to_string(size),
                     work_for<Tile>(p, size, device),
                     [p, size, tiles = whole.tiles()](const Operands& o) {
                       return specialized_launch<Tile, ClusterWork>(kKernels<Tile>, p, o,
                                                                    {{}, size}, tiles * size, size);
                     }});
    }
  });
  return all;
}

const Registration registration(specialized_kernel<LargeTile>(
    kKernels<LargeTile>,
    {
        .name = "ClusterSplitK",
        .idea =
            "Split-K within a cluster: accumulators are reduced through distributed shared memory.",
        .source = "CUDA Programming Guide, distributed shared memory; split-K of CUTLASS",
        .rung = 33,
        .unsupported = [](const Problem& p, const Device& device) -> std::optional<std::string> {
          constexpr int kDepth = LargeTile::kBK;
          if (p.k <= kDepth)
            return "requires k > " + std::to_string(kDepth) + " (more than one K tile)";
          if (candidates(p, device).empty())
            return "requires a device on which a cluster of 2 blocks fits";
          return std::nullopt;
        },
        .candidates = candidates,
    }));

}  // namespace
}  // namespace gemm::simt::cluster_split_k
