// Few tiles, long k: a cluster of blocks, which the device starts together on neighbouring SMs,
// shares the slices of one tile. Each leaves its sums in its own shared memory, and after a barrier
// of the cluster each adds up its share of the tile from the shared memory of all, in the same
// order always. No workspace, no flags, and the adding is shared, too.
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
constexpr int kSums = Tile::kTM * Tile::kTN;  // of a thread
static_assert(kSums * Tile::kMultipliers * sizeof(float) <= Tile::kStages * Tile::kStageBytes,
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
  // A cluster has a tile, and its blocks equal shares of the slices.
  const int blocks = work.blocks, block = static_cast<int>(blockIdx.x) % blocks;
  const auto tile = work.tiles.place(static_cast<int>(blockIdx.x) / blocks);
  const int begin = static_cast<int>(std::int64_t{work.slices} * block / blocks),
            end = static_cast<int>(std::int64_t{work.slices} * (block + 1) / blocks);

  if (threadIdx.x >= Tile::kMultipliers) {
    give_up_registers<Tile::kFeederRegisters>();
    if (threadIdx.x > Tile::kMultipliers) return;
    RingPlace<Tile> place(ring);
    for (int slice = begin; slice < end; ++slice) feed<Tile>(work, ring, place, tile, slice);
    return;
  }

  take_registers<Tile::kMultiplierRegisters>();
  Multiplier<Tile> sums(shared, end - begin);
  sums.multiply(end - begin);
  auto* mine = reinterpret_cast<float*>(shared) + threadIdx.x;
  sync_multipliers<Tile>();  // nobody reads the ring any more
  sums.each_sum([&](float sum, int i) { mine[i * Tile::kMultipliers] = sum; });
  sync_cluster();
  const int share = kSums / blocks, first = block * share;
  for (int i = first; i < first + share; i += 4) {
    float four[4] = {};
    for (int other = 0; other < blocks; ++other)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        four[j] += load_from(shared_address(mine + (i + j) * Tile::kMultipliers), other);
    Multiplier<Tile>::store_four(work.c, tile, work.m, work.n, i, four);
  }
  sync_cluster();  // nobody's shared memory goes before all have read it
#endif
}

// Of an H200, by NOTES.md: StreamK's slice, and all that comes after the last one.
constexpr double kSliceSeconds = 2.53e-6, kAddSeconds = 3e-6;

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
    if (size > whole.slices || at_once == 0) continue;
    const double waves = std::ceil(1.0 * whole.tiles() / at_once);
    const double slices = std::ceil(1.0 * whole.slices / size);
    const double seconds = waves * (slices * kSliceSeconds + kAddSeconds);
    if (!(seconds < least)) continue;
    least = seconds;
    best = size;
  }
  return best;
}

// Each block of a cluster stores a tile of sums, and between them they load all.
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
