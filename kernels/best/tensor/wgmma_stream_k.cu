// The end of the ladder, for every precision of the tensor cores: the tile size is chosen for the
// problem, tiles that do not fill a wave are cut along k (stream-K), and launches
// overlap (programmatic dependent launch). Consumers are cooperative or ping-pong, as the shape
// says. Cost: partial sums through global memory, where tiles are cut.
#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/best/tensor/stream_k_plan.cuh"
#include "kernels/epilogue.hpp"
#include "kernels/parts/activation.cuh"
#include "kernels/parts/multiply.cuh"
#include "kernels/parts/partial_sums.cuh"
#include "kernels/parts/ping_pong.cuh"
#include "kernels/parts/register_operand.cuh"
#include "kernels/parts/store.cuh"
#include "kernels/parts/wgmma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_stream_k {
namespace {

template <typename Operands_, StreamKShape kShape>
struct StreamKTile : WgmmaTile<Operands_, kShape.rows, kShape.columns> {
  using Base = WgmmaTile<Operands_, kShape.rows, kShape.columns>;
  static constexpr int kCluster = kShape.cluster, kStagedColumns = kShape.staged;
  static constexpr bool kPingPong = kShape.ping_pong, kPromoted = kShape.promoted;
  static constexpr bool kThroughRegisters =
      !Operands_::kAKMajor && sizeof(typename Base::Element) == 4;
  static constexpr bool kActivates =
      sizeof(typename Base::Element) == 2 && !Operands_::kTransposesC;
  static constexpr bool kStoresByTma = sizeof(typename Base::Output) == 2;
  static constexpr int kConsumers = kShape.consumers, kSharers = kPingPong ? 1 : kConsumers;
  static constexpr int kParts = kShape.rows / kSharers / 64;  // of 64 rows each, per consumer
  static constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
  // 65,536 registers are 168 for each of 384 threads, 128 for each of 512.
  static constexpr int kProducerRegisters = kConsumers == 2 ? 40 : 32;
  static constexpr int kConsumerRegisters = kConsumers == 2 ? 232 : 160;
  static constexpr int kStagingBytes = kStoresByTma              ? staging_bytes(kStagedColumns)
                                       : Operands_::kTransposesC ? kOddBytes
                                                                 : 0;
  static constexpr int kReservedBytes = kConsumers * kStagingBytes + kSwizzleAlignment;
  static constexpr int kMostBytes = 232448 - 64 * kShape.stages;  // of a block of 9.0
  static constexpr int kStages =
      std::min(kShape.stages, (kMostBytes - kReservedBytes) / Base::kStageBytes);
  static constexpr int kSharedBytes = kStages * Base::kStageBytes + kReservedBytes;
  // Warps that load K tiles in turn. One takes longer to issue the loads of a K tile of a small
  // tile than the tensor cores take to multiply it; large tiles are slower with several (NOTES.md).
  static constexpr int kProducers = kShape.rows * kShape.columns <= 64 * 128 ? 4 : 1;
  static constexpr int kPartialsAtOnce = kParts * Base::kAccumulators > 32 ? 1 : 3;
  static_assert(kParts > 0 && kStages >= 2 &&
                box_columns(kStagedColumns) == box_columns(kShape.columns));
  static_assert(!kPromoted || !kThroughRegisters);
};

struct StreamKWork : WgmmaWork {
  simt::TileSchedule schedule;  // of clusters, as its blocks
  PartialSums partials;
  CUtensorMap a_edge{}, b_edge{};  // of copy_inside
  const float *a_scales = nullptr, *b_scales = nullptr;
  int product_rows = 0;  // of a batch
  Activation activation = Activation::none;
  const void* added = nullptr;  // the bias, or the matrix that is added to C
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A thread's accumulators, with the interface of partial_sums.cuh.
template <typename Tile>
struct StreamKAccumulators {
  static constexpr int kThreads = 128 * Tile::kSharers;
  PartialSums partials;
  int rank, consumer;  // rank in the cluster, consumer in the block
  typename Tile::Accumulator values[Tile::kParts][Tile::kAccumulators];

  __device__ int sharer() const { return Tile::kPingPong ? 0 : consumer; }
  __device__ auto* partials_of(int schedule_rank) const {
    return reinterpret_cast<typename Tile::Accumulator*>(partials.sums) +
           (std::int64_t{schedule_rank} * Tile::kCluster + rank) * Tile::kBM * Tile::kBN +
           static_cast<int>(threadIdx.x) % kThreads;
  }
  __device__ int* flag_of(int schedule_rank) const {
    return partials.arrived + (schedule_rank * Tile::kCluster + rank) * Tile::kConsumers + sharer();
  }
  __device__ bool is_leader() const { return threadIdx.x % 128 == 0; }
  __device__ void sync() const { sync_consumer(consumer); }
  template <typename F>
  __device__ void for_each_accumulator(F f) {
#pragma unroll
    for (int part = 0; part < Tile::kParts; ++part)
#pragma unroll
      for (int i = 0; i < Tile::kAccumulators; ++i)
        f(values[part][i], part * Tile::kAccumulators + i);
  }
};

// values = the product over the K tiles of a piece. Calls on_issued() once all MMAs are issued.
// Blocks with a factor are K tiles, so that pieces of a tile have scaled sums, which add up.
template <typename Tile, typename OnIssued>
__device__ void multiply_piece(StreamKAccumulators<Tile>& acc, Ring<Tile::kStageBytes>& ring,
                               const StreamKWork& work, const simt::TilePiece& piece,
                               OnIssued on_issued) {
  const int first = acc.sharer() * Tile::kParts, k_tiles = piece.end - piece.first;
  if constexpr (Tile::Operands::kScaled) {
    const auto tile = work.tiles.place(piece.tile);
    const int row = (tile.row * Tile::kCluster + acc.rank) * Tile::kBM + 64 * first;
    BlockFactors<Tile::kParts> factors(work.a_scales, work.b_scales, work.m, work.k_tiles, row,
                                       tile.column * Tile::kBN, piece.first);
    multiply_scaled<Tile, Tile::kCluster>(ring, k_tiles, first, factors, acc.values, on_issued);
  } else if constexpr (Tile::kPromoted) {
    multiply_promoted<Tile, Tile::kCluster>(ring, k_tiles, first, acc.values, on_issued);
  } else if constexpr (Tile::kThroughRegisters) {
    multiply_through_registers<Tile, Tile::kCluster>(ring, k_tiles, first, acc.values, on_issued);
  } else {
    multiply_k_tiles<Tile, Tile::kCluster>(ring, k_tiles, first, acc.values, on_issued);
  }
}

template <typename Tile>
__device__ void store_piece(StreamKAccumulators<Tile>& acc, const StreamKWork& work, int row,
                            int column, std::uint32_t staging) {
  using Output = typename Tile::Output;
  row += 64 * Tile::kParts * acc.sharer();
  if constexpr (Tile::kActivates)
    if (work.activation != Activation::none) {
      wait_for_previous_launch();  // which may write what is added
      activate<Output>(work.activation, work.added, acc.values, work.m, work.n, row, column);
    }
  if constexpr (Tile::kStoresByTma && Tile::Operands::kTransposesC)
    store_transposed_tile<Output>(acc.values, work, row, column, staging, acc.consumer);
  else if constexpr (Tile::kStoresByTma)
    store_tile<Output, Tile::kStagedColumns>(acc.values, work, row, column, staging, acc.consumer);
  else if constexpr (Tile::Operands::kTransposesC) {
    if (work.m % 2 == 0)
      store_transposed(acc.values, work.c, work.m, work.n, row, column);
    else
      store_transposed_odd(acc.values, work.c, work.m, work.n, row, column, staging, acc.consumer);
  } else
    store_by_threads<Output, Tile::kThroughRegisters>(acc.values, work.c, work.m, work.n, row,
                                                      column);
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    wgmma_stream_k([[maybe_unused]] const __grid_constant__ StreamKWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<Tile::kStages> barriers;
  let_next_launch_begin();
  Ring<Tile::kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) {
    ring.init_barriers(4 * Tile::kSharers * Tile::kCluster);
  } else if (threadIdx.x == Tile::kConsumerThreads) {
    prefetch_tensor_map(work.a_map);
    prefetch_tensor_map(work.b_map);
    if (work.by_tma) prefetch_tensor_map(work.c_map);
  }
  if constexpr (Tile::kCluster > 1)
    sync_cluster();
  else
    __syncthreads();
  const int in_cluster = Tile::kCluster > 1 ? rank_in_cluster() : 0;
  const int cluster = static_cast<int>(blockIdx.x) / Tile::kCluster;
  const auto row_of = [&](TileOrder::Place tile) {
    return (tile.row * Tile::kCluster + in_cluster) * Tile::kBM;
  };
  simt::TileWalk walk(work.schedule, cluster);
  // Divisions leave the compiler unsure that a warp's threads have the same piece. Only where it is
  // sure, for all branches around a loop over K tiles, does that count in uniform registers
  // (NOTES.md).
  const auto next = [&](simt::TilePiece& piece) {
    walk.map(uniform);
    const bool found = walk.next(work.schedule, piece);
    if (found) piece.map(uniform);
    return found;
  };

  if (warp_of_block() >= Tile::kConsumerThreads / 32) {
    dealloc_registers<Tile::kProducerRegisters>();
    const int producer = (static_cast<int>(threadIdx.x) - Tile::kConsumerThreads) / 32;
    if (threadIdx.x % 32 != 0 || producer >= Tile::kProducers) return;
    for (simt::TilePiece piece; walk.next(work.schedule, piece);) {
      const auto tile = work.tiles.place(piece.tile);
      const int row = row_of(tile), rows = static_cast<int>(work.m);
      // Of a batch, all columns of B are beside each other: beyond the last of a product are those
      // of the next one, whose results are not stored.
      const bool batch = work.product_rows > 0;
      const int n = static_cast<int>(work.n), columns = batch ? INT_MAX : n;
      const int column = tile.column * Tile::kBN + (batch ? row / work.product_rows * n : 0);
      const int bytes = Tile::A::bytes_inside(row, rows) + Tile::B::bytes_inside(column, columns);
      wait_for_previous_launch();  // everything else in the block depends on these loads
      for (int k_tile = piece.first; k_tile < piece.end; ++k_tile, ring.next()) {
        if (!ring.template is_of<Tile::kProducers>(producer)) continue;
        const int k = k_tile * Tile::kBK;
        if constexpr (Tile::Operands::kScaled)
          prefetch_factors(work.a_scales, work.b_scales, work.m, work.k_tiles, row, Tile::kBM,
                           column, k_tile, k_tile == piece.first);
        ring.begin_stage(bytes);
        Tile::A::copy_inside(ring.data(), work.a_map, work.a_edge, row, rows, k, ring.full());
        Tile::B::template copy_inside<Tile::kCluster>(ring.data() + Tile::A::kBytes, work.b_map,
                                                      work.b_edge, column, columns, k, ring.full(),
                                                      in_cluster);
      }
    }
    if (Tile::kCluster > 1) ring.template drain<Tile::kProducers>(producer);
    return;
  }

  alloc_registers<Tile::kConsumerRegisters>();
  if constexpr (Tile::Operands::kScaled) wait_for_previous_launch();  // which may write scales
  const int consumer = warp_of_block() / 4;
  StreamKAccumulators<Tile> acc{work.partials, in_cluster, consumer};
  int number = 0;
  for (simt::TilePiece piece; next(piece); ++number) {
    const int k_tiles = piece.end - piece.first;
    if (Tile::kPingPong && number % Tile::kConsumers != consumer) {
      ring.skip(k_tiles);
      continue;
    }
    if (Tile::kPingPong && number > 0) order_wait(consumer);
    const bool more = walk.more(work.schedule);
    multiply_piece(acc, ring, work, piece, [&] {
      if (Tile::kPingPong && more) order_arrive(1 - consumer);
    });
    const int rank = work.schedule.rank(cluster);
    if (piece.first > 0) {
      store_partial(acc, rank);
    } else {
      if (piece.end < work.k_tiles)
        add_partials<Tile::kPartialsAtOnce>(acc, work.schedule, rank, piece.tile);
      const auto tile = work.tiles.place(piece.tile);
      store_piece(acc, work, row_of(tile), tile.column * Tile::kBN, ring.end());
    }
    // Single threads may have branched off; ping-pong consumers meet in order_wait.
    if (!Tile::kPingPong) acc.sync();
  }
  if constexpr (Tile::kStoresByTma) finish_stores();
#endif
}

template <typename Tile>
Launch launch_tile(const Problem& p, const Operands& o, const Plan& plan, int group) {
  const simt::TileSchedule& schedule = plan.schedule;
  const std::int64_t places = std::int64_t{schedule.streaming} * Tile::kCluster;
  const auto [partials, memory] =
      partial_sums(schedule, places * Tile::kBM * Tile::kBN, places * Tile::kConsumers);
  const StreamKWork work{{.tiles = {schedule.tile_rows, schedule.tile_columns, group}},
                         schedule,
                         partials,
                         {},
                         {},
                         o.a_scales,
                         o.b_scales,
                         p.batch > 1 ? static_cast<int>(p.m) : 0,
                         p.activation,
                         p.activation == Activation::residual ? o.residual : o.bias};
  const int clusters = schedule.whole > 0 ? schedule.blocks : schedule.streaming;
  return wgmma_launch<Tile, StreamKWork>(wgmma_stream_k<Tile>,
                                         {.blocks = clusters * Tile::kCluster,
                                          .threads = Tile::kThreads,
                                          .shared_bytes = Tile::kSharedBytes,
                                          .cluster = Tile::kCluster,
                                          .overlaps = true},
                                         true, p, o, work, memory);
}

template <typename Of, MainLoop kMainLoop, std::size_t... kChoices>
Launch launch_choice(const Problem& p, const Operands& o, const Plan& plan,
                     std::index_sequence<kChoices...>) {
  Launch launch;
  const auto consider = [&]<std::size_t kChoice>() {
    constexpr Choice kOne = choices(kMainLoop)[kChoice];
    if (kChoice == plan.choice)
      launch = launch_tile<StreamKTile<Of, kOne.shape>>(p, o, plan, kOne.group);
  };
  (consider.template operator()<kChoices>(), ...);
  return launch;
}

template <typename Of, MainLoop kMainLoop>
Launch launch_way(const Problem& p, const Operands& o, const Plan& plan) {
  constexpr std::size_t kCount = choices(kMainLoop).size();  // GCC 13 cannot expand it in place
  return launch_choice<Of, kMainLoop>(p, o, plan, std::make_index_sequence<kCount>());
}

Launch launch_of(const Problem& p, const Operands& o, const Plan& plan) {
  if (plan.way == MainLoop::transposed)
    return with_transposed_operands(
        p, [&]<typename Of>() { return launch_way<Of, MainLoop::transposed>(p, o, plan); });
  return with_operands(p, [&]<typename Of>() -> Launch {
    if constexpr (sizeof(typename Of::Element) == 4 && !Of::kAKMajor) {
      return launch_way<Of, MainLoop::through_registers>(p, o, plan);
    } else {
      if constexpr (sizeof(typename Of::Element) == 1 && sizeof(typename Of::Output) == 2)
        if (main_loop_of(p) == MainLoop::promoted)
          return launch_way<Of, MainLoop::promoted>(p, o, plan);
      if constexpr (Of::kScaled)
        throw std::logic_error("sums with scales are promoted");
      else
        return launch_way<Of, MainLoop::fast>(p, o, plan);
    }
  });
}

Traffic traffic_of(const Problem& p, const Plan& plan) {
  const StreamKShape& shape = choices(plan.way)[plan.choice].shape;
  return wgmma_traffic(p, {.rows = shape.rows,
                           .columns = shape.columns,
                           .cluster = shape.cluster,
                           .stores_by_tma = true,
                           .transposed = is_transposed(plan.way, p)});
}

const Registration registration({
    .name = "WgmmaStreamK",
    .idea = "Stream-K with the tile size chosen for the problem, and overlapping launches.",
    .source = "Osama et al., Stream-K (2023); NVIDIA, programmatic dependent launch",
    .rung = 58,
    .precisions = {Precision::bf16, Precision::f16, Precision::tf32, Precision::e4m3,
                   Precision::e4m3fast, Precision::e5m2, Precision::e5m2fast, Precision::s8,
                   Precision::e4m3block},
    .layouts = {kLayouts.begin(), kLayouts.end()},
    .batches = Batches::also,
    .activations = {kActivations.begin(), kActivations.end()},
    .unsupported =
        [](const Problem& p, const Device& device) {
          if (const auto why = batch_unsupported(p)) return why;
          if (p.activation != Activation::none && p.n % 2 != 0)
            return std::optional<std::string>("requires an even n with an epilogue");
          using Of = WgmmaOperands<__nv_bfloat16, __nv_bfloat16, true, true>;
          return wgmma_unsupported(wgmma_stream_k<StreamKTile<Of, kFast[0].shape>>, p, device);
        },
    .candidates =
        [](const Problem& p, const Device& device) {
          std::vector<Candidate> candidates;
          for (const Plan& plan : plans_of(p, device))
            candidates.push_back({name_of(plan), work_of(p, device, plan, traffic_of(p, plan)),
                                  [p, plan](const Operands& o) { return launch_of(p, o, plan); }});
          return candidates;
        },
});

}  // namespace
}  // namespace gemm::tensor::wgmma_stream_k
