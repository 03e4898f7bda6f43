// Few tiles, long k: a cluster of blocks, which the device starts together on neighbouring SMs,
// shares the K tiles of one tile. Each leaves its accumulators in its own shared memory, and after
// a barrier of the cluster each adds up its share of the tile from the shared memory of all, in the
// same order always. No workspace, no flags, and the adding is shared, too.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "kernels/registry.hpp"
#include "kernels/simt/asynchronous/specialized_tile.cuh"

namespace gemm::simt {
namespace {

using Tile = SpecializedTile<128, 256, 8>;
constexpr int kAccumulators = Tile::kTM * Tile::kTN;  // of a thread
static_assert(kAccumulators * Tile::kConsumerThreads * sizeof(float) <=
                  Tile::kStages * Tile::kStageBytes,
              "the sums fit the ring");

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
  int blocks;  // of a cluster
};

__global__ void __launch_bounds__(Tile::kThreads, 1)
    cluster_split_k([[maybe_unused]] const __grid_constant__ ClusterWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) std::byte shared[];
  const std::uint32_t ring = shared_address(shared);
  if (threadIdx.x == 0) init_ring<Tile>(ring);
  __syncthreads();
  // A cluster has a tile, and its blocks equal shares of the K tiles.
  const int blocks = work.blocks, block = static_cast<int>(blockIdx.x) % blocks;
  const auto tile = work.tiles.place(static_cast<int>(blockIdx.x) / blocks);
  const int begin = static_cast<int>(std::int64_t{work.k_tiles} * block / blocks),
            end = static_cast<int>(std::int64_t{work.k_tiles} * (block + 1) / blocks);

  if (threadIdx.x >= Tile::kConsumerThreads) {
    dealloc_registers<Tile::kProducerRegisters>();
    if (threadIdx.x > Tile::kConsumerThreads) return;
    RingPosition<Tile> place(ring);
    for (int k_tile = begin; k_tile < end; ++k_tile)
      load_k_tile<Tile>(work, ring, place, tile, k_tile);
    return;
  }

  alloc_registers<Tile::kConsumerRegisters>();
  Consumer<Tile> acc(shared, end - begin);
  acc.multiply(end - begin);
  auto* mine = reinterpret_cast<float*>(shared) + threadIdx.x;
  sync_consumers<Tile>();  // nobody reads the ring any more
  acc.for_each_accumulator([&](float acc, int i) { mine[i * Tile::kConsumerThreads] = acc; });
  sync_cluster();
  const int share = kAccumulators / blocks, first = block * share;
  for (int i = first; i < first + share; i += 4) {
    float four[4] = {};
    for (int other = 0; other < blocks; ++other)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        four[j] += load_from(shared_address(mine + (i + j) * Tile::kConsumerThreads), other);
    Consumer<Tile>::store_four(work.c, tile, work.m, work.n, i, four);
  }
  sync_cluster();  // nobody's shared memory goes before all have read it
#endif
}

// Of an H200, by NOTES.md: StreamK's K tile, and all that comes after the last one.
constexpr double kKTileSeconds = 2.53e-6, kAddSeconds = 3e-6;

// How many clusters run at once, if the device can be asked: they lie within groups of SMs that are
// not all multiples of their size.
std::optional<int> clusters_at_once(int cluster_size) {
  const ClusterLaunch launch({cluster_size, Tile::kThreads, Tile::kSharedBytes, cluster_size},
                             nullptr);
  int count = 0;
  if (cudaFuncSetAttribute(cluster_split_k, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           Tile::kSharedBytes) == cudaSuccess &&
      cudaOccupancyMaxActiveClusters(&count, cluster_split_k, launch.config()) == cudaSuccess)
    return count;
  cudaGetLastError();  // no device to ask
  return std::nullopt;
}

// The size of cluster that should be the fastest; 1 if none fits. Precondition: counts_fit.
int cluster_size_for(const Problem& p, const Device& device) {
  const TileSchedule whole = whole_tiles(p, Tile::kBM, Tile::kBN, Tile::kBK);
  int best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (const int size : {2, 4, 8}) {  // larger ones are not portable
    const int at_once = clusters_at_once(size).value_or(device.sm_count / size);
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

// Each block of a cluster stores a tile of accumulators, and between them they load all.
Traffic traffic(const Problem& p, const Device& device) {
  Traffic traffic = specialized_traffic<Tile>(p);
  const TileSchedule whole = whole_tiles(p, Tile::kBM, Tile::kBN, Tile::kBK);
  traffic.shared +=
      2.0 * sizeof(float) * Tile::kBM * Tile::kBN * whole.tiles() * cluster_size_for(p, device);
  return traffic;
}

const Registration registration({
    .name = "ClusterSplitK",
    .idea =
        "A cluster shares a tile's slices and adds the sums through each other's shared memory.",
    .source = "CUDA Programming Guide, distributed shared memory; split-K of CUTLASS",
    .rung = 33,
    .precisions = {Precision::f32},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported = [](const Problem& p, const Device& device) -> std::optional<std::string> {
      if (auto why = specialized_unsupported<Tile>(cluster_split_k, p, device)) return why;
      if (p.k <= Tile::kBK) return "k has a single slice of " + std::to_string(Tile::kBK);
      if (cluster_size_for(p, device) == 1) return "no cluster fits the device";
      return std::nullopt;
    },
    .traffic = traffic,
    .prepare = [](const Problem& p, const Device& device, const Operands& o) -> Launch {
      const int cluster_size = cluster_size_for(p, device);
      const int tiles = whole_tiles(p, Tile::kBM, Tile::kBN, Tile::kBK).tiles();
      return specialized_launch<Tile, ClusterWork>(cluster_split_k, p, o, {{}, cluster_size},
                                                   tiles * cluster_size, cluster_size);
    },
});

}  // namespace
}  // namespace gemm::simt
