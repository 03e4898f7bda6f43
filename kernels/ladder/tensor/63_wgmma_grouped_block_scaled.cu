// Groups whose FP8 has a factor for each block: one persistent launch over the tiles of all groups,
// with the promotion of WgmmaBlockScaled.
//
// A tile has up to 256 rows, which halves the loads of B, in parts of 64, two for each consumer,
// since a group rarely has a multiple of 256. Which block computes which tile is decided
// beforehand (group_schedule.hpp): of few large tiles each SM gets its share only if some are cut
// along k. Sums of a piece are scaled, so that they add up.
//
// A row of A's scales goes through all groups, as the rows of A do; each B has its own. A and C of
// each group have tensor maps of their own: TMA loads zeros behind the end of a group, by which
// multiplying takes less power than by the rows of the next group, and stores nothing there.
//
// The next bottleneck: power where groups have many rows, DRAM where they have few.
#include <cuda_fp8.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "kernels/ladder/tensor/batched_tiles.cuh"
#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/device_array.cuh"
#include "kernels/parts/group_schedule.hpp"
#include "kernels/parts/multiply.cuh"
#include "kernels/parts/partial_sums.cuh"
#include "kernels/parts/staged_operand.cuh"
#include "kernels/parts/trial.hpp"
#include "kernels/registry.hpp"
#include "kernels/scales.hpp"

namespace gemm::tensor::wgmma_grouped_block_scaled {
namespace {

using Tile = WgmmaTile<ScaledOperands, 256, 128>;
using Element = Tile::Element;
using Output = Tile::Output;

constexpr int kStages = 4, kConsumers = 2;  // consumers are warpgroups
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
constexpr int kParts = 2;  // of 64 rows, of a consumer at most
constexpr int kSums = kParts * Tile::kAccumulators;
constexpr int kSharedBytes =
    kStages * Tile::kStageBytes + kConsumers * staging_bytes(Tile::kBN) + kSwizzleAlignment;
static_assert(Tile::kBN == kScaleBlock && Tile::kBK == kScaleBlock);

struct GroupsWork {
  std::int64_t rows, n;  // of all groups; of each
  int k_tiles;
  bool by_tma;
  Output* c;
  const float *a_scales, *b_scales;
  std::int64_t scales_of_each_b;
  const GroupPiece* pieces;
  const std::int32_t* starts;  // GroupSchedule
  PartialSums partials;
  const CUtensorMap* maps;  // of the A and of the C of each group
  CUtensorMap b_map;        // of all groups
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// With the interface of partial_sums.cuh; a slot has the sums of a whole tile.
struct Sums {
  static constexpr int kThreads = 128;
  PartialSums partials;
  int consumer, parts;
  float values[kParts][Tile::kAccumulators];

  __device__ float* partials_of(int slot) const {
    return partials.sums + (std::int64_t{slot} * kConsumers + consumer) * kSums * kThreads +
           threadIdx.x % kThreads;
  }
  __device__ int* flag_of(int slot) const {
    return partials.arrived + slot * kConsumers + consumer;
  }
  __device__ bool is_leader() const { return threadIdx.x % kThreads == 0; }
  __device__ void sync() const { sync_consumer(consumer); }
  template <typename F>
  __device__ void for_each_accumulator(F f) {
#pragma unroll
    for (int part = 0; part < kParts; ++part)
      if (part < parts) {
#pragma unroll
        for (int i = 0; i < Tile::kAccumulators; ++i)
          f(values[part][i], part * Tile::kAccumulators + i);
      }
  }
  // Adds those of other blocks, always in the same order.
  __device__ void add(int first, int count) {
    for (int slot = first; slot < first + count; ++slot) {
      wait_for_flag(flag_of(slot));
      const float* from = partials_of(slot);
      for_each_accumulator([&](float& sum, int i) { sum += __ldcg(from + i * kThreads); });
    }
    sync();  // every warp has seen the flags; reset them for the next launch
    if (is_leader())
      for (int slot = first; slot < first + count; ++slot) *flag_of(slot) = 0;
  }
};

// Of a map in global memory, before a block uses it.
__device__ inline void acquire_tensor_map(const CUtensorMap& map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&map) : "memory");
}

// The sums of a consumer's parts, from part `first` of the tile on.
template <int kOfThem>
__device__ void multiply_parts(float (&acc)[kParts][Tile::kAccumulators],
                               Ring<Tile::kStageBytes>& ring, const GroupsWork& work,
                               const GroupPiece& piece, int first) {
  BlockFactors<kOfThem> factors(work.a_scales, work.b_scales + piece.group * work.scales_of_each_b,
                                work.rows, work.k_tiles, piece.row + 64 * first, piece.column,
                                piece.first);
  multiply_scaled<Tile, 1>(ring, piece.end - piece.first, first, factors,
                           *reinterpret_cast<float(*)[kOfThem][Tile::kAccumulators]>(&acc), [] {});
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

__global__ void __launch_bounds__(kThreads, 1)
    wgmma_grouped_block_scaled([[maybe_unused]] const __grid_constant__ GroupsWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  let_next_launch_begin();
  Ring<Tile::kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  __syncthreads();
  const int end = uniform(work.starts[blockIdx.x + 1]);
  int next = uniform(work.starts[blockIdx.x]);

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<40>();  // of 168, which 384 threads have at first
    if (threadIdx.x > kConsumerThreads) return;
    wait_for_previous_launch();
    for (; next < end; ++next) {
      const GroupPiece piece = work.pieces[next];
      const float* b_scales = work.b_scales + piece.group * work.scales_of_each_b;
      const CUtensorMap& a_map = work.maps[2 * piece.group];
      acquire_tensor_map(a_map);
      const int column = piece.group * static_cast<int>(work.n) + piece.column;  // of all B
      for (int k_tile = piece.first; k_tile < piece.end; ++k_tile, ring.next()) {
        prefetch_factors(work.a_scales, b_scales, work.rows, work.k_tiles, piece.row,
                         64 * piece.parts, piece.column, k_tile, k_tile == piece.first);
        ring.begin_stage(piece.parts * kPartBytes + Tile::B::kBytes);
        for (int part = 0; part < piece.parts; ++part)
          tma_load(ring.data() + part * kPartBytes, a_map, k_tile * Tile::kBK,
                   piece.row - piece.first_row + 64 * part, ring.full());
        tma_load(ring.data() + Tile::A::kBytes, work.b_map, k_tile * Tile::kBK, column,
                 ring.full());
      }
    }
    return;
  }

  alloc_registers<232>();
  wait_for_previous_launch();  // which may write scales
  const int consumer = warp_of_block() / 4;
  const std::uint32_t staging = ring.end() + consumer * staging_bytes(Tile::kBN);
  Sums sums{work.partials, consumer, 0, {}};
  for (; next < end; ++next) {
    GroupPiece piece = work.pieces[next];
    piece.parts = static_cast<std::int16_t>(uniform(piece.parts));
    piece.first = uniform(piece.first);
    piece.end = uniform(piece.end);
    const int of_first = (piece.parts + 1) / 2, first = consumer * of_first;
    sums.parts = consumer == 0 ? of_first : piece.parts - of_first;
    if (sums.parts == 0) {
      for (int k_tile = piece.first; k_tile < piece.end; ++k_tile, ring.next()) {
        ring.wait_for_stage();
        release(ring.empty());
      }
      continue;
    }
    if (sums.parts == kParts)
      multiply_parts<kParts>(sums.values, ring, work, piece, first);
    else
      multiply_parts<1>(sums.values, ring, work, piece, first);

    if (piece.others == GroupPiece::kStored) {
      store_partial(sums, piece.slot);
    } else {
      if (piece.others > 0) sums.add(piece.slot, piece.others);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        if (part == sums.parts) break;
        const int row = piece.row + 64 * (first + part);
        const CUtensorMap& c_map = work.maps[2 * piece.group + 1];
        if (work.by_tma && part == 0 && sums.is_leader()) acquire_tensor_map(c_map);
        if (work.by_tma)
          store_by_tma<Output, Tile::kBN>(sums.values[part], c_map, row - piece.first_row,
                                          piece.column, staging, consumer);
        else
          store_accumulators<Output>(sums.values[part], work.c, piece.end_row, work.n, row,
                                     piece.column);
      }
    }
    sums.sync();  // single threads may have branched off
  }
  if (threadIdx.x % 128 == 0) tma_store_wait_read();  // shared memory is freed at the end
#endif
}

std::vector<CUtensorMap> maps_of(const Products& p, const Operands& all) {
  std::vector<CUtensorMap> maps(2 * p.batch);
  for (std::int64_t which = 0; which < p.batch; ++which) {
    const Operands one = p.operands(all, which);
    const std::int64_t rows = p.rows(which);
    if (rows == 0) continue;
    maps[2 * which] = k_major_map<Element>(one.a, rows, p.k, 64);
    if (p.n % 8 == 0)
      maps[2 * which + 1] = tensor_map(static_cast<Output*>(one.c), rows, p.n, p.n, 64, 64,
                                       CU_TENSOR_MAP_SWIZZLE_128B);
  }
  return maps;
}

Launch launch(const Problem& problem, const Device& device, const Operands& o) {
  const Products p(problem);
  const int blocks = std::max(1, device.sm_count);
  const GroupSchedule schedule = GroupScheduler(p, blocks, Tile::kBN, Tile::kBK).schedule();
  const auto pieces = simt::device_array<GroupPiece>(std::ssize(schedule.pieces));
  const auto starts = simt::device_array<std::int32_t>(std::ssize(schedule.starts));
  const auto maps = simt::device_array<CUtensorMap>(2 * p.batch);
  const auto copy = [](auto* to, const auto& from) {
    check(cudaMemcpy(to, from.data(), from.size() * sizeof from[0], cudaMemcpyHostToDevice));
  };
  copy(pieces.get(), schedule.pieces);
  copy(starts.get(), schedule.starts);
  copy(maps.get(), maps_of(p, o));
  check(cudaStreamSynchronize(nullptr));  // other streams do not wait for the copies
  const std::int64_t flags = std::int64_t{schedule.slots} * kConsumers;
  const auto [partials, memory] = partial_sums(flags * kSums * 128, flags);
  const bool by_tma = p.n % 8 == 0;
  const GroupsWork work{p.batch * p.m,
                        p.n,
                        static_cast<int>(ceil_div(p.k, Tile::kBK)),
                        by_tma,
                        static_cast<Output*>(o.c),
                        o.a_scales,
                        o.b_scales,
                        scales_of_each_b(p),
                        pieces.get(),
                        starts.get(),
                        partials,
                        maps.get(),
                        k_major_map<Element>(o.b, p.batch * p.n, p.k, Tile::kBN)};
  simt::allow_shared_bytes(wgmma_grouped_block_scaled, kSharedBytes);
  const LaunchShape shape{blocks, kThreads, kSharedBytes, 1, true};
  return [=, kept = std::tuple(pieces, starts, maps, memory)](Stream stream) {
    enqueue(wgmma_grouped_block_scaled, shape, stream, work);
  };
}

Traffic traffic(const Problem& p, const Device&) {
  return batched::traffic_of_products(
      p, {Tile::kBM, Tile::kBN, 128, wgmma_bytes(Tile::kBM, Tile::kBN), Epilogue::tma});
}

// For Best, to which no other plan for such a problem is offered.
gemm::Work work(const Problem& p, const Device& device) {
  return {.traffic = traffic(p, device),
          .cycles = tensor_cycles(flop(p) / 2, sizeof(Element), device)};
}

Kernel kernel() {
  Kernel rung = nt_rung(
      {
          .name = "WgmmaGroupedBlockScaled",
          .idea = "Groups with a factor for each block; tiles are shared out evenly beforehand.",
          .source = "DeepSeek-AI, DeepGEMM; McNaughton, Scheduling with deadlines (1959)",
          .rung = 63,
          .batches = Batches::only,
          .unsupported = batched::needs_rows_within_limits(wgmma_grouped_block_scaled),
      },
      {}, {{Precision::e4m3block, launch}});
  rung.traffic = traffic;
  rung.work = work;
  return rung;
}
const Registration registration(kernel());

}  // namespace
}  // namespace gemm::tensor::wgmma_grouped_block_scaled
