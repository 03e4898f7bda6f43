// Stream-K: a persistent kernel with one or two blocks per SM. Tiles that fill whole waves are
// computed whole. The K tiles of the others are divided into equal shares, one per block, so that
// few SMs are idle in a partial wave. A block computes its share first. The producer loads K tiles
// of the next tile while the consumers store one. A problem with fewer tiles than SMs occupies most
// or all SMs. Launches overlap (programmatic dependent launch). Cost: tiles that are cut exchange
// partial sums through global memory. The producer loads those of other blocks into the ring, like
// K tiles.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/parts/partial_sums.cuh"
#include "kernels/parts/specialized_tile.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::stream_k {
namespace {

struct StreamKWork : SpecializedWork {
  TileSchedule schedule;
  PartialSums partials;  // one tile and flag per rank
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A consumer with the interface of partial_sums.cuh.
template <typename Tile>
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

// Producer thread: loads the partial sums of a rank into the ring, once they are there.
template <typename Tile>
__device__ void load_partials(const PartialSums& partials, std::uint32_t ring,
                              RingPosition<Tile>& position, int rank) {
  wait_for_flag(partials.arrived + rank);
  partials.arrived[rank] = 0;  // for the next launch
  fence_proxy();
  const float* from = partials.sums + std::int64_t{rank} * Tile::kBM * Tile::kBN;
  for (int part = 0; part < Tile::kSumParts; ++part, from += Tile::kSumPartBytes / 4)
    load_sums<Tile>(from, ring, position);
}

#endif

template <typename Tile, Rows kRows>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    stream_k([[maybe_unused]] const __grid_constant__ StreamKWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) std::byte shared[];
  const std::uint32_t ring = shared_address(shared);
  if (threadIdx.x == 0) init_ring<Tile>(ring);
  __syncthreads();
  TileWalk walk(work.schedule, static_cast<int>(blockIdx.x));  // the pieces of this block
  const int rank = work.schedule.rank(static_cast<int>(blockIdx.x));

  if (threadIdx.x >= Tile::kConsumerThreads) {
    dealloc_registers<Tile::kProducerRegisters>();
    if (threadIdx.x > Tile::kConsumerThreads) return;
    begin_loads();
    RingPosition<Tile> position(ring);
    for (TilePiece piece; walk.next(work.schedule, piece);) {
      const auto tile = work.tiles.place(piece.tile);
      for (int k_tile = piece.first; k_tile < piece.end; ++k_tile)
        load_k_tile<Tile>(work, ring, position, tile, k_tile);
      if (piece.first > 0 || piece.end == work.k_tiles) continue;
      const int end = end_of_sharers(work.schedule, rank, piece.tile);
      for (int other = rank + 1; other < end; ++other)
        load_partials<Tile>(work.partials, ring, position, other);
    }
    return;
  }

  alloc_registers<Tile::kConsumerRegisters>();
  StreamKConsumer<Tile> consumer(shared, walk.left(work.schedule), work.partials);
  for (TilePiece piece; walk.next(work.schedule, piece);) {
    const bool adds = piece.first == 0 && piece.end < work.k_tiles;
    const int others = adds ? end_of_sharers(work.schedule, rank, piece.tile) - rank - 1 : 0;
    consumer.expect_sums(others);
    consumer.multiply(piece.end - piece.first);
    if (piece.first > 0) {  // another block stores the tile
      store_partial(consumer, rank);
      continue;
    }
    if (adds) consumer.add_sums(others);
    consumer.template store<kRows>(work.c, work.tiles.place(piece.tile), work.m, work.n, work.one);
  }
#endif
}

template <typename Tile>
constexpr SpecializedKernels kKernels{stream_k<Tile, Rows::aligned>, stream_k<Tile, Rows::any>};

template <typename Tile>
Launch launch_of(const Problem& p, const TileSchedule& schedule, const Operands& o) {
  StreamKWork work{{}, schedule, {}};
  const auto [partials, memory] = partial_sums(
      schedule, std::int64_t{schedule.streaming} * Tile::kBM * Tile::kBN, schedule.streaming);
  work.partials = partials;
  const int blocks = schedule.whole > 0 ? schedule.blocks : schedule.streaming;
  return specialized_launch<Tile, StreamKWork>(kKernels<Tile>, p, o, work, blocks, memory);
}

const Registration registration(specialized_kernel<LargeTile>(
    kKernels<LargeTile>,
    {
        .name = "StreamK",
        .idea = "Stream-K: tiles that do not fill a wave are cut along k into equal shares, one "
                "per block.",
        .source = "Osama et al., Stream-K (2023); CUTLASS",
        .rung = 32,
        .candidates =
            [](const Problem& p, const Device& device) {
              std::vector<Candidate> all;
              for_each_tile([&]<typename Tile>() {
                if (!counts_fit(p, Tile::kBM, Tile::kBN, Tile::kBK)) return;
                for (const TileSchedule& one :
                     tile_schedules(p, Tile::kBM, Tile::kBN, Tile::kBK,
                                    Tile::kBlocks * std::max(1, device.sm_count), 2))
                  all.push_back(
                      {named("tile", Tile::kBM, Tile::kBN) + "/" + name_of(one),
                       specialized_work<Tile>(p, device, one),
                       [p, one](const Operands& o) { return launch_of<Tile>(p, one, o); }});
              });
              return all;
            },
    }));

}  // namespace
}  // namespace gemm::simt::stream_k
