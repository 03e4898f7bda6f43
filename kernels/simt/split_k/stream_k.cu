// Stream-K: a persistent kernel with one block per SM. Each block computes whole tiles as long as
// these fill waves, then an equal share of the remaining K tiles, so that no SM is idle in a
// partial last wave. The producer loads the next tile during the epilogue of the last one, and a
// problem with fewer tiles than SMs still uses all of them. Cost: tiles that are cut exchange
// partial sums through global memory.
#include <cstddef>
#include <cstdint>

#include "kernels/common/partial_sums.cuh"
#include "kernels/registry.hpp"
#include "kernels/simt/asynchronous/specialized_tile.cuh"

namespace gemm::simt::stream_k {
namespace {

using Tile = SpecializedTile<128, 256, 8>;

struct StreamKWork : SpecializedWork {
  TileSchedule schedule;
  PartialSums partials;  // one tile and flag per rank
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A consumer with the interface of partial_sums.cuh.
struct StreamKConsumer : Consumer<Tile> {
  static constexpr int kThreads = Tile::kConsumerThreads;
  const PartialSums& partials;

  __device__ StreamKConsumer(std::byte* shared, int left, const PartialSums& partials)
      : Consumer<Tile>(shared, left), partials(partials) {}
  __device__ float* partials_of(int rank) const {
    return partials.sums + std::int64_t{rank} * Tile::kBM * Tile::kBN + threadIdx.x;
  }
  __device__ int* flag_of(int rank) const { return partials.arrived + rank; }
  __device__ bool is_leader() const { return threadIdx.x == 0; }
  __device__ void sync() const { sync_consumers<Tile>(); }
};

#endif

template <Rows kRows>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    stream_k([[maybe_unused]] const __grid_constant__ StreamKWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) std::byte shared[];
  const std::uint32_t ring = shared_address(shared);
  if (threadIdx.x == 0) init_ring<Tile>(ring);
  __syncthreads();
  TileWalk walk(work.schedule, static_cast<int>(blockIdx.x));  // the pieces of this block

  if (threadIdx.x >= Tile::kConsumerThreads) {
    dealloc_registers<Tile::kProducerRegisters>();
    if (threadIdx.x > Tile::kConsumerThreads) return;
    RingPosition<Tile> position(ring);
    for (TilePiece piece; walk.next(work.schedule, piece);) {
      const auto tile = work.tiles.place(piece.tile);
      for (int k_tile = piece.first; k_tile < piece.end; ++k_tile)
        load_k_tile<Tile>(work, ring, position, tile, k_tile);
    }
    return;
  }

  alloc_registers<Tile::kConsumerRegisters>();
  StreamKConsumer consumer(shared, walk.left(work.schedule), work.partials);
  for (TilePiece piece; walk.next(work.schedule, piece);) {
    consumer.multiply(piece.end - piece.first);
    const int rank = work.schedule.rank(static_cast<int>(blockIdx.x));
    if (piece.first > 0) {  // another block stores the tile
      store_partial(consumer, rank);
      continue;
    }
    if (piece.end < work.k_tiles) add_partials(consumer, work.schedule, rank, piece.tile);
    consumer.store<kRows>(work.c, work.tiles.place(piece.tile), work.m, work.n, work.one);
  }
#endif
}

// Measured on an H200 (NOTES.md).
constexpr TileCost kCost{.k_tile = 2.53e-6, .finish = 2e-6, .exchange = 3.5e-6};
constexpr double kLaunchSeconds = 4e-6;     // an empty launch
constexpr double kPatchesSeconds = 2.5e-6;  // what store_patch takes longer, per tile

TileCost cost_of(const Problem& p, const Device& device) {
  TileCost cost = kCost;
  if (p.n % 4 != 0) cost.finish += kPatchesSeconds;
  cost = cost.on(device);
  cost.stored_wave =
      sizeof(float) * Tile::kBM * Tile::kBN * device.sm_count / device.dram_bytes_per_second;
  return cost;
}

TileSchedule schedule_of(const Problem& p, const Device& device) {
  return tile_schedule(p, Tile::kBM, Tile::kBN, Tile::kBK, device.sm_count, cost_of(p, device));
}

constexpr SpecializedKernels kKernels{stream_k<Rows::aligned>, stream_k<Rows::any>};

const Registration registration(specialized_kernel<Tile>(
    kKernels,
    {
        .name = "StreamK",
        .idea = "Stream-K: tiles that do not fill a wave are cut along k into equal shares, one "
                "per SM.",
        .source = "Osama et al., Stream-K (2023); CUTLASS",
        .rung = 32,
        .traffic =
            [](const Problem& p, const Device& device) {
              return specialized_traffic<Tile>(p, continued_pieces(schedule_of(p, device)));
            },
        .estimate =
            [](const Problem& p, const Device& device) {
              return kLaunchSeconds + packing_seconds(p, device) +
                     seconds(schedule_of(p, device), cost_of(p, device));
            },
        .prepare = [](const Problem& p, const Device& device, const Operands& o) -> Launch {
          StreamKWork work{{}, schedule_of(p, device), {}};
          const TileSchedule& schedule = work.schedule;
          const auto [partials, memory] =
              partial_sums(schedule, std::int64_t{schedule.streaming} * Tile::kBM * Tile::kBN,
                           schedule.streaming);
          work.partials = partials;
          const int blocks = schedule.whole > 0 ? schedule.blocks : schedule.streaming;
          return specialized_launch<Tile, StreamKWork>(kKernels, p, o, work, blocks, 1, memory);
        },
    }));

}  // namespace
}  // namespace gemm::simt::stream_k
