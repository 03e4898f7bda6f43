// Operands with rows at multiples of 4 bytes, without a copy. TMA and copies of 16 bytes need rows
// at multiples of 16 bytes; kernels that use them copy other operands first, which takes as long as
// the product where k or a side is short. Here cp.async copies 4 bytes per thread, a row of 128
// bytes per warp. Loads run ahead across tiles of C, so that they go on while C is stored, and
// tiles are cut along k where there are few. Cost: four times as many copies, so that large
// products are faster with packed operands.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/common/async_copy.cuh"
#include "kernels/common/cluster_launch.cuh"
#include "kernels/common/partial_sums.cuh"
#include "kernels/common/tile_launch.cuh"
#include "kernels/common/tile_order.cuh"
#include "kernels/common/tile_traffic.hpp"
#include "kernels/layout.hpp"
#include "kernels/registry.hpp"
#include "kernels/tensor/mma_sync/mma_tile.cuh"
#include "kernels/tensor/store_row.cuh"

namespace gemm::tensor::mma_sync_unaligned {
namespace {

using UnalignedShape = MmaShape<64, 64, 128, 16, 32, 4, 3>;
constexpr int kThreads = UnalignedShape::kThreads, kBM = UnalignedShape::kBM,
              kBN = UnalignedShape::kBN;
constexpr int kLine = UnalignedShape::kDepth, kElements = kLine / 2;      // 64 elements of 16 bits
constexpr int kWarps = kThreads / 32, kGroup = 8;                         // kGroup: rows of tiles
constexpr int kSharedBytes = UnalignedShape::kSharedBytes + kBM * kLine;  // and a tile of C
static_assert(kBM == 64 && kBN == 64, "A and B have K tiles of 64 lines by 64 steps, either way");
static_assert(kWarps == 8, "the swizzle repeats after eight rows: a thread has one swizzle");

struct UnalignedWork {
  Problem problem;
  TileOrder tiles;
  simt::TileSchedule schedule;
  PartialSums partials;  // one tile and flag per rank
  const std::byte *a, *b;
  void* c;
};

#if __CUDA_ARCH__ >= 800

// This thread's part of an operand's K tiles: a word of two elements in every eighth of 64 rows.
// Rows are lines (rows of A, columns of B) if kKMajor, else steps of k.
template <bool kKMajor>
class UnalignedOperand {
 public:
  __device__ UnalignedOperand(const std::byte* matrix, int lines, int k)
      : matrix_(matrix), lines_(lines), k_(k) {}

  // Before the loads of a piece: its first line and first step of k.
  __device__ void begin(int line, int step) {
    line_ = line;
    step_ = step;
  }
  // Starts the loads of the next K tile; zeros beyond the edges.
  __device__ void load(std::uint32_t stage) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int first_row = kKMajor ? line_ : step_, first_column = kKMajor ? step_ : line_;
    const int rows = kKMajor ? lines_ : k_, columns = kKMajor ? k_ : lines_;
    const int left = first_column + 2 * lane < columns ? rows - first_row - warp : 0;
    const std::byte* from =
        matrix_ + 2 * (std::int64_t{first_row + warp} * columns + first_column + 2 * lane);
    stage += warp * kLine + swizzled(kLine, warp, lane / 4) * kChunkBytes + lane % 4 * 4;
#pragma unroll
    for (int row = 0; row < 64; row += kWarps) {
      copy_async_bytes<4>(stage + row * kLine, from, row < left);
      from += std::int64_t{2} * kWarps * columns;
    }
    step_ += kElements;
  }

 private:
  const std::byte* matrix_;
  int lines_, k_, line_ = 0, step_ = 0;  // line_, step_: of the next load
};

// The tile of C of a piece, with the interface of partial_sums.cuh.
template <typename Arithmetic, bool kAKMajor, bool kBKMajor>
class UnalignedTile : public MmaTile<Arithmetic, UnalignedShape, kAKMajor, kBKMajor> {
  using Base = MmaTile<Arithmetic, UnalignedShape, kAKMajor, kBKMajor>;

 public:
  static constexpr int kThreads = UnalignedShape::kThreads;  // of partial sums

  __device__ UnalignedTile(const UnalignedWork& work, TileOrder::Place place,
                           const std::byte* shared)
      : Base(work.problem, std::int64_t{place.row} * kBM, std::int64_t{place.column} * kBN, {}, {},
             shared),
        work_(work) {}

  // Stores the tile through shared memory, a row per warp.
  __device__ void store_rows() {
    using Output = typename Base::Output;
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const auto address = [&](int row, int column) {  // of two elements; chunks are swizzled
      return this->stage(UnalignedShape::kStages) + row * kLine +
             swizzled(kLine, row, column / 8) * kChunkBytes + column % 8 * 2;
    };
#pragma unroll
    for (int i = 0; i < Base::kRows; ++i)
#pragma unroll
      for (int j = 0; j < Base::kAcross; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const Output pair[2] = {static_cast<Output>(this->acc_[i][j][2 * half]),
                                  static_cast<Output>(this->acc_[i][j][2 * half + 1])};
          std::uint32_t bits;
          memcpy(&bits, pair, sizeof bits);
          const int row = Base::warp_row() + 16 * i + 8 * half + lane / 4,
                    column = Base::warp_column() + 8 * j + lane % 4 * 2;
          asm volatile("st.shared.u32 [%0], %1;" ::"r"(address(row, column)), "r"(bits) : "memory");
        }
    __syncthreads();
    const int columns = static_cast<int>(min(this->n_ - this->column0_, std::int64_t{kBN}));
    auto* c = static_cast<std::uint16_t*>(work_.c) + this->row0_ * this->n_ + this->column0_;
    constexpr int kRowsOfWarp = kBM / kWarps;
    std::uint32_t rows[kRowsOfWarp][1];
#pragma unroll
    for (int i = 0; i < kRowsOfWarp; ++i)
      asm volatile("ld.shared.u32 %0, [%1];"
                   : "=r"(rows[i][0])
                   : "r"(address(warp + i * kWarps, 2 * lane))
                   : "memory");
#pragma unroll
    for (int i = 0; i < kRowsOfWarp; ++i) {
      const int row = warp + i * kWarps;
      if (this->row0_ + row < this->m_) store_row(c + row * this->n_, rows[i], columns);
    }
  }

  __device__ float* partials_of(int rank) const {
    return work_.partials.sums + std::int64_t{rank} * kBM * kBN + threadIdx.x;
  }
  __device__ int* flag_of(int rank) const { return work_.partials.arrived + rank; }
  __device__ bool is_leader() const { return threadIdx.x == 0; }
  __device__ void sync() const { __syncthreads(); }

 private:
  const UnalignedWork& work_;
};

// The K tiles of all pieces of a block, one after another, loaded ahead into all stages but one.
template <bool kAKMajor, bool kBKMajor>
class UnalignedLoads {
 public:
  __device__ UnalignedLoads(const UnalignedWork& work, std::uint32_t stages)
      : work_(work),
        walk_(work.schedule, static_cast<int>(blockIdx.x)),
        stages_(stages),
        a_(work.a, static_cast<int>(work.problem.m), static_cast<int>(work.problem.k)),
        b_(work.b, static_cast<int>(work.problem.n), static_cast<int>(work.problem.k)) {
    for (int i = 0; i < UnalignedShape::kStages - 1; ++i) load();
  }

  // The stage of the next K tile, which has arrived; the one before is loaded again. A barrier.
  __device__ int next_stage() {
    wait_for_copies<UnalignedShape::kStages - 2>();
    __syncthreads();
    load();
    return stage_;
  }

 private:
  __device__ void load() {
    if (left_ > 0 || next_piece()) {
      const std::uint32_t stage = stages_ + stage_ * UnalignedShape::kStageBytes;
      a_.load(stage);
      b_.load(stage + kBM * kLine);
      --left_;
    }
    commit_copies();
    stage_ = stage_ + 1 == UnalignedShape::kStages ? 0 : stage_ + 1;
  }
  __device__ bool next_piece() {
    simt::TilePiece piece;
    if (!walk_.next(work_.schedule, piece)) return false;
    const TileOrder::Place place = work_.tiles.place(piece.tile);
    a_.begin(place.row * kBM, piece.first * kElements);
    b_.begin(place.column * kBN, piece.first * kElements);
    left_ = piece.end - piece.first;
    return true;
  }

  const UnalignedWork& work_;
  simt::TileWalk walk_;
  int left_ = 0, stage_ = 0;  // K tiles left of the piece that is loaded; where the next one goes
  std::uint32_t stages_;
  UnalignedOperand<kAKMajor> a_;
  UnalignedOperand<kBKMajor> b_;
};

#endif  // __CUDA_ARCH__ >= 800

template <typename Arithmetic, bool kAKMajor, bool kBKMajor>
__global__ void __launch_bounds__(UnalignedShape::kThreads, UnalignedShape::kBlocks)
    mma_sync_unaligned([[maybe_unused]] const __grid_constant__ UnalignedWork work) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(kBankBytes) std::byte shared[];
  wait_for_previous_launch();
  UnalignedLoads<kAKMajor, kBKMajor> loads(work, shared_address(shared));
  simt::TileWalk walk(work.schedule, static_cast<int>(blockIdx.x));
  const int rank = work.schedule.rank(static_cast<int>(blockIdx.x));
  for (simt::TilePiece piece; walk.next(work.schedule, piece);) {
    const TileOrder::Place place = work.tiles.place(piece.tile);
    UnalignedTile<Arithmetic, kAKMajor, kBKMajor> tile(work, place, shared);
#pragma unroll 1
    for (int k_tile = piece.first; k_tile < piece.end; ++k_tile) {
      const std::uint32_t stage = tile.stage(loads.next_stage());
      const int steps = static_cast<int>(
          min((work.problem.k - std::int64_t{k_tile} * kElements + 15) / 16, std::int64_t{4}));
#pragma unroll
      for (int step = 0; step < UnalignedShape::kSteps; ++step) {
        if (step >= steps) break;
        typename decltype(tile)::Fragments fragments;
        tile.load_fragments(fragments, stage, step);
        tile.multiply(fragments);
      }
    }
    if (piece.first > 0) {  // another block stores the tile
      store_partial(tile, rank);
      continue;
    }
    if (piece.end < work.schedule.k_tiles) add_partials(tile, work.schedule, rank, piece.tile);
    tile.store_rows();
  }
#endif
}

// Measured on an H200 (NOTES.md): seconds of a launch; shares of the rates of reads; FLOP/s of an
// SM.
constexpr double kLaunchSeconds = 2.5e-6, kOfDram = 1.8e12 / Device::kH200Dram,
                 kOfL2 = 4e12 / Device::kH200L2, kOfSm = 1.5e12;

struct UnalignedPlan {
  simt::TileSchedule schedule;
  double seconds;
};

UnalignedPlan plan_of(const Problem& p, const Device& device) {
  using Shape = UnalignedShape;
  const int blocks = std::max(1, device.sm_count) * Shape::kBlocks;
  const double l2 = kOfL2 * device.l2_bytes_per_second / blocks;  // of a block
  // A copy of zeros, beyond an edge of A or B, takes as long as another.
  const double k_tile_bytes =
      2.0 * (Shape::kBM + Shape::kBN) * static_cast<double>(std::min<std::int64_t>(p.k, kElements));
  constexpr double kSumBytes = sizeof(float) * Shape::kBM * Shape::kBN;
  constexpr double kFlop = 2.0 * Shape::kBM * Shape::kBN * kElements;
  simt::TileCost cost{};
  cost.k_tile = std::max(device.clock_ratio() * kFlop * Shape::kBlocks / kOfSm, k_tile_bytes / l2);
  cost.finish = 1.6e-6 * device.clock_ratio() + kSumBytes / 2 / l2;
  cost.exchange = 0.5e-6 * device.clock_ratio() + 2 * kSumBytes / l2;
  cost.further = kSumBytes / l2;
  cost.alone = 0.4;
  const simt::TileSchedule schedule =
      simt::tile_schedule(p, Shape::kBM, Shape::kBN, kElements, blocks, cost);
  const double least = bytes_minimum(p) / (kOfDram * device.dram_bytes_per_second);
  return {schedule, kLaunchSeconds + std::max(simt::seconds(schedule, cost), least)};
}

template <typename Arithmetic>
Launch launch_of(const Problem& p, const Device& device, const Operands& o) {
  using Shape = UnalignedShape;
  const simt::TileSchedule schedule = plan_of(p, device).schedule;
  const auto [partials, memory] = partial_sums(
      schedule, std::int64_t{schedule.streaming} * Shape::kBM * Shape::kBN, schedule.streaming);
  const UnalignedWork work{.problem = p,
                           .tiles = {schedule.tile_rows, schedule.tile_columns, kGroup},
                           .schedule = schedule,
                           .partials = partials,
                           .a = static_cast<const std::byte*>(o.a),
                           .b = static_cast<const std::byte*>(o.b),
                           .c = o.c};
  const auto kernel = with_transposes(p.layout, [&]<bool kTransposesA, bool kTransposesB>() {
    return mma_sync_unaligned<Arithmetic, !kTransposesA, kTransposesB>;
  });
  const LaunchShape grid{.blocks = schedule.whole > 0 ? schedule.blocks : schedule.streaming,
                         .threads = Shape::kThreads,
                         .shared_bytes = kSharedBytes,
                         .overlaps = may_overlap(kernel)};
  simt::allow_shared_bytes(kernel, kSharedBytes);
  return simt::keeping(memory, [=](Stream stream) { enqueue(kernel, grid, stream, work); });
}

Traffic traffic_of(const Problem& p, const Device& device) {
  using Shape = UnalignedShape;
  Traffic traffic = simt::tile_traffic(p, Shape::kBM, Shape::kBN, kElements, Shape::kWavefronts);
  const double partials = simt::continued_pieces(plan_of(p, device).schedule) * 2.0 *
                          sizeof(float) * Shape::kBM * Shape::kBN;
  traffic.dram += partials;
  traffic.l2 += partials;
  return traffic;
}

const Registration registration({
    .name = "MmaSyncUnaligned",
    .idea = "Copies of 4 bytes: rows need not begin at multiples of 16 bytes; stream-K.",
    .source = "PTX ISA, cp.async; Osama et al., Stream-K (2023)",
    .rung = 49,
    .precisions = {Precision::bf16, Precision::f16},
    .layouts = {kLayouts.begin(), kLayouts.end()},
    .unsupported = [](const Problem& p, const Device& device) -> std::optional<std::string> {
      if (device.compute_capability < 80) return "requires compute capability 8.0";
      if (!simt::counts_fit(p, UnalignedShape::kBM, UnalignedShape::kBN, kElements))
        return simt::kCountsDoNotFit;
      if (lda(p) % 2 != 0 || ldb(p) % 2 != 0)
        return "requires rows of A and B with even numbers of elements";
      return simt::shared_memory_unsupported(kSharedBytes, device);
    },
    .traffic = traffic_of,
    .estimate = [](const Problem& p, const Device& device) { return plan_of(p, device).seconds; },
    .prepare =
        [](const Problem& p, const Device& device, const Operands& o) {
          return p.precision == Precision::bf16 ? launch_of<Bf16>(p, device, o)
                                                : launch_of<F16>(p, device, o);
        },
});

}  // namespace
}  // namespace gemm::tensor::mma_sync_unaligned
