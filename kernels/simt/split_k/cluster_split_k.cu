// Split-K within a cluster, for few tiles and long k: the blocks of a thread-block cluster, which
// run at the same time on neighbouring SMs, share the K tiles of one tile. Each leaves its
// accumulators in its shared memory; after a cluster barrier each reduces its share of the tile
// from the distributed shared memory of all, always in the same order. No workspace, no flags, and
// the reduction is parallel. Cost: clusters need SMs of one GPC, so fewer fit at once.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "kernels/registry.hpp"
#include "kernels/simt/asynchronous/specialized_tile.cuh"

namespace gemm::simt::cluster_split_k {
namespace {

using Tile = SpecializedTile<128, 256, 8>;
constexpr int kAccumulators = Tile::kTM * Tile::kTN;  // per thread
static_assert(kAccumulators * Tile::kConsumerThreads * sizeof(float) <=
                  Tile::kStages * Tile::kStageBytes,
              "accumulators must fit the ring");

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

template <Rows kRows>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    cluster_split_k([[maybe_unused]] const __grid_constant__ ClusterWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
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
  const int share = kAccumulators / blocks, first = block * share;
  for (int i = first; i < first + share; i += 4) {
    float four[4] = {};
    for (int other = 0; other < blocks; ++other)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        four[j] += load_from(shared_address(mine + (i + j) * Tile::kConsumerThreads), other);
    Consumer<Tile>::store_four<kRows>(work.c, tile, work.m, work.n, i, four);
  }
  sync_cluster();  // no block exits before all have read its shared memory
#endif
}

// Measured on an H200 (NOTES.md): a K tile of StreamK, and everything after the last one.
constexpr double kKTileSeconds = 2.53e-6, kAddSeconds = 3e-6;

// The cluster size with the shortest predicted time; 1 if none fits. Precondition: counts_fit.
int cluster_size_for(const Problem& p, const Device& device) {
  const TileSchedule whole = whole_tiles(p, Tile::kBM, Tile::kBN, Tile::kBK);
  int best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (const int size : {2, 4, Device::kPortableCluster}) {
    const int at_once = device.clusters(size);
    if (size > whole.k_tiles || at_once == 0) continue;
    const double waves = std::ceil(1.0 * whole.tiles() / at_once);
    const double k_tiles = std::ceil(1.0 * whole.k_tiles / size);
    const double seconds = waves * (k_tiles * kKTileSeconds + kAddSeconds);
    if (!(seconds < least)) continue;
    least = seconds;
    best = size;
  }
  return best;
}

// Each block of a cluster stores a tile of accumulators, and together they load all.
Traffic traffic(const Problem& p, const Device& device) {
  Traffic traffic = specialized_traffic<Tile>(p);
  const TileSchedule whole = whole_tiles(p, Tile::kBM, Tile::kBN, Tile::kBK);
  traffic.shared +=
      2.0 * sizeof(float) * Tile::kBM * Tile::kBN * whole.tiles() * cluster_size_for(p, device);
  return traffic;
}

constexpr SpecializedKernels kKernels{cluster_split_k<Rows::aligned>, cluster_split_k<Rows::any>};

const Registration registration(specialized_kernel<Tile>(
    kKernels,
    {
        .name = "ClusterSplitK",
        .idea =
            "Split-K within a cluster: accumulators are reduced through distributed shared memory.",
        .source = "CUDA Programming Guide, distributed shared memory; split-K of CUTLASS",
        .rung = 33,
        .unsupported = [](const Problem& p, const Device& device) -> std::optional<std::string> {
          if (p.k <= Tile::kBK)
            return "requires k > " + std::to_string(Tile::kBK) + " (more than one K tile)";
          if (cluster_size_for(p, device) == 1)
            return "requires a device on which a cluster of 2 blocks fits";
          return std::nullopt;
        },
        .traffic = traffic,
        .prepare = [](const Problem& p, const Device& device, const Operands& o) -> Launch {
          const int cluster_size = cluster_size_for(p, device);
          const int tiles = whole_tiles(p, Tile::kBM, Tile::kBN, Tile::kBK).tiles();
          return specialized_launch<Tile, ClusterWork>(kKernels, p, o, {{}, cluster_size},
                                                       tiles * cluster_size, cluster_size);
        },
    }));

}  // namespace
}  // namespace gemm::simt::cluster_split_k
