// Split-K for a C with at most 2,048 rows or columns: its tiles are too few to keep all SMs busy to
// the end, and with few rows a large matrix is read once. k is split over blocks, each of which
// gets an equal share of the steps of all tiles (as in stream-K), and within a block over slices
// (sliced-K): groups of warps with separate pipelines, which need no barrier with each other before
// their accumulators are reduced. Cost: partial sums in global memory and a second launch that
// reduces them.
//
// X and Y are A and B, or B^T and A^T if C^T is computed. Tiles have 1 to 64 rows of X. In shared
// memory a row of a K tile holds one step along k for all rows of X or columns of Y (MN-major), so
// that FMAs have few conflicts of register banks (NOTES.md). An operand is copied 16 bytes at a
// time if it is MN-major and its rows begin at multiples of 16 bytes, else 4 bytes at a time.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/tile_launch.cuh"
#include "kernels/common/warp_access.hpp"
#include "kernels/registry.hpp"
#include "kernels/simt/split_k/k_tile_copy.cuh"
#include "kernels/simt/split_k/split_plan.hpp"
#include "kernels/simt/split_k/split_reduction.cuh"

namespace gemm::simt::split_k {
namespace {

// A slice computes kBM x kBN in steps of kBK along k; warp tile kWM x kWN, with kAcross lanes along
// n. If kDeep > 1 the other lanes are along k, else along m: a lane has kVector consecutive rows.
template <int kBM_, int kBN_, int kBK_, int kWM, int kWN, int kAcross_, int kDeep_, int kSlices_,
          int kStages_, int kBlocks_>
struct SplitKTile {
  static constexpr int kBM = kBM_, kBN = kBN_, kBK = kBK_, kBlocks = kBlocks_;
  static constexpr int kAcross = kAcross_, kDeep = kDeep_, kDown = 32 / kAcross / kDeep;
  static constexpr int kSlices = kSlices_, kStages = kStages_;
  static constexpr int kRows = kWM / kDown, kColumns = kWN / kAcross;  // thread tile
  static constexpr int kWarps = kBM / kWM * (kBN / kWN);
  static constexpr int kThreads = 32 * kWarps;  // per slice
  static constexpr int kVector = std::min(4, kRows);
  static constexpr int kXPitch = kBM > 4 ? kBM + 4 : kBM, kYPitch = kBN + 4;
  static constexpr int kStage = kBK * (kXPitch + kYPitch);
  static constexpr int kBarriers = 16;  // of a block; one is for the whole block

  static_assert(kBM % kWM == 0 && kBN % kWN == 0, "warp tiles must divide the tile");
  static_assert(kWM % (kVector * kDown) == 0 && kWN % (4 * kAcross) == 0,
                "thread tiles must divide the warp tile");
  static_assert(kBK % kDeep == 0 && (kDeep == 1 || kDown == 1));
  static_assert(kVector == 1 || kVector == 4);
  static_assert(kWarps == 1 || kSlices < kBarriers);

  static constexpr int down(int lane) {
    return kDeep > 1 ? 0 : kVector * PairedLanes<kAcross>::down(lane);
  }
  // The row of a lane's accumulators, from its first.
  static constexpr int row(int i) { return i / kVector * kVector * kDown + i % kVector; }
  static constexpr int across(int lane) {
    return kDeep > 1 ? lane % kAcross : PairedLanes<kAcross>::across(lane);
  }
  static constexpr int deep(int lane) { return kDeep > 1 ? lane / kAcross : 0; }
  static __device__ int first_row() { return threadIdx.x % kThreads / 32 / (kBN / kWN) * kWM; }
  static __device__ int first_column() { return threadIdx.x % kThreads / 32 % (kBN / kWN) * kWN; }

  static constexpr int slice_bytes(int stages) {
    return 4 * std::max(stages * kStage, kBM * kYPitch * kDeep);
  }
  // As many slices as fit the shared memory of a block.
  static int slices_on(const Device& device) {
    return std::min(kSlices, (shared_memory_limit(device) - kPieceBytes) /
                                 slice_bytes(stages_on(device, kStages)));
  }
  // Shared-memory wavefronts per slice and step: the copies, and the vector loads.
  static constexpr double kWavefronts =
      (kBM * kBK + kBK * kBN) / 32.0 +
      kWarps * kBK / kDeep *
          (kRows / kVector *
               wavefronts(
                   4, [](int lane) { return down(lane) + deep(lane) * kXPitch; }, kVector) +
           kColumns / 4 *
               wavefronts(
                   4, [](int lane) { return across(lane) * 4 + deep(lane) * kYPitch; }, 4));
};

template <typename Tile, int kXWidth, int kYWidth>
__global__ void __launch_bounds__(Tile::kThreads* Tile::kSlices, Tile::kBlocks)
    split_k(SplitProblem p, SplitShares shares) {
  extern __shared__ __align__(16) float shared[];
  constexpr int kBM = Tile::kBM, kBN = Tile::kBN, kBK = Tile::kBK, kThreads = Tile::kThreads;
  constexpr int kXPitch = Tile::kXPitch, kYPitch = Tile::kYPitch;
  constexpr int kRows = Tile::kRows, kColumns = Tile::kColumns;
  using Ring = CopyRing<Tile::kStages>;
  const int slices = blockDim.x / kThreads, slice = threadIdx.x / kThreads;
  const auto synchronize = [&]() {
    if constexpr (kThreads == 32)
      __syncwarp();
    else
      asm volatile("bar.sync %0, %1;" ::"r"(slice + 1), "n"(kThreads) : "memory");
  };
  float* const ring = shared + slice * Ring::kDepth * Tile::kStage;
  const int lane = threadIdx.x % 32;
  const int row = Tile::first_row() + Tile::down(lane);
  const int column = Tile::first_column() + 4 * Tile::across(lane);

  shares.begin_overlapping();
  shares.for_each_piece([&](const auto& which) {
    const SplitPiece piece = which();
    const std::int64_t row0 = piece.tile / shares.tile_columns * kBM;
    const std::int64_t column0 = piece.tile % shares.tile_columns * kBN;
    const int rows = static_cast<int>(min(std::int64_t{kBM}, p.m - row0));
    const int columns = static_cast<int>(min(std::int64_t{kBN}, p.n - column0));
    // Slices take K tiles of kBK round-robin.
    const int stride = slices * kBK;
    const std::int64_t first = piece.first_step * stride + slice * kBK;
    const std::int64_t left = p.k - first;
    const int steps =
        left > 0 ? static_cast<int>(min(std::int64_t{piece.steps}, (left + stride - 1) / stride))
                 : 0;
    int to_copy = steps;
    const int last_depth =
        static_cast<int>(min(left - (steps - 1) * std::int64_t{stride}, std::int64_t{kBK}));
    KTileCopy<kBK, kBM, kXPitch, kThreads, kXWidth> x(p.x.from(row0, first).transposed());
    KTileCopy<kBK, kBN, kYPitch, kThreads, kYWidth> y(p.y.from(first, column0));
    const auto copy = [&](int stage) {
      float* to = ring + stage * Tile::kStage;
      const int depth = --to_copy > 0 ? kBK : last_depth;
      x.copy(to, depth, rows);
      y.copy(to + kBK * kXPitch, depth, columns);
      x.advance_down(stride);
      y.advance_down(stride);
    };
#pragma unroll
    for (int stage = 0; stage < Ring::kDepth - 1; ++stage) {
      if (to_copy > 0) copy(stage);
      commit_copies();
    }
    float acc[kRows][kColumns] = {};
    int reads = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      Ring::wait();
      synchronize();  // the step has arrived, and the previous stage is free
      if (to_copy > 0) copy(Ring::previous(reads));
      commit_copies();
      const float* xs = ring + reads * Tile::kStage + Tile::deep(lane) * kXPitch + row;
      const float* ys =
          ring + reads * Tile::kStage + kBK * kXPitch + Tile::deep(lane) * kYPitch + column;
      float x_rows[2][kRows], y_row[2][kColumns];
      const auto load = [&](int k) {
        using Vector = std::conditional_t<Tile::kVector == 4, float4, float>;
#pragma unroll
        for (int i = 0; i < kRows; i += Tile::kVector)
          *reinterpret_cast<Vector*>(x_rows[k % 2] + i) =
              *reinterpret_cast<const Vector*>(xs + k * Tile::kDeep * kXPitch + Tile::row(i));
#pragma unroll
        for (int j = 0; j < kColumns; j += 4)
          *reinterpret_cast<float4*>(y_row[k % 2] + j) =
              *reinterpret_cast<const float4*>(ys + k * Tile::kDeep * kYPitch + Tile::kAcross * j);
      };
      load(0);
#pragma unroll
      for (int k = 0; k < kBK / Tile::kDeep; ++k) {
        if (k + 1 < kBK / Tile::kDeep) load(k + 1);
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
            const int serpentine = i % 2 == 0 ? j : kColumns - 1 - j;
            acc[i][serpentine] += x_rows[k % 2][i] * y_row[k % 2][serpentine];
          }
      }
      reads = Ring::next(reads);
    }
    __syncthreads();                                 // all slices are done with their rings
    const auto one = static_cast<float>(gridDim.z);  // 1, unknown to the compiler: see AsyncTile
    float* found = shared + (slice * Tile::kDeep + Tile::deep(lane)) * kBM * kYPitch;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; j += 4)
        *reinterpret_cast<float4*>(found + (row + Tile::row(i)) * kYPitch + column +
                                   Tile::kAcross * j) =
            make_float4(acc[i][j] * one, acc[i][j + 1] * one, acc[i][j + 2] * one,
                        acc[i][j + 3] * one);
    __syncthreads();
    reduce_slices<kBM, kBN, kYPitch>(p, shares, which(), shared, slices * Tile::kDeep);
  });
}

template <typename Tile>
SplitPoint point(double flop_per_second) {
  return {{Tile::kBM, Tile::kBN, Tile::kBK, Tile::kBlocks, flop_per_second,
           Tile::kBM * Tile::kBN * Tile::kDeep},
          Tile::slices_on,
          Tile::kWavefronts,
          [](const SplitProblem& p, const SplitPlan& plan, const Device& device) {
            constexpr int kXWidth = std::min(4, Tile::kBM);
            constexpr SplitKernels kKernels{split_k<Tile, kXWidth, 4>, split_k<Tile, kXWidth, 1>,
                                            split_k<Tile, 1, 4>, split_k<Tile, 1, 1>};
            const int slices = Tile::slices_on(device);
            return split_launch<Tile::kBM, Tile::kBN>(
                kKernels.of(p.x.transposed(), p.y), slices * Tile::kThreads,
                slices * Tile::slice_bytes(stages_on(device, Tile::kStages)), p, plan);
          }};
}

// FLOP/s of an SM, fitted to measurements on an H200 and an H100 (NOTES.md). The first three are
// guesses: these tiles are memory-bound.
const std::array kPoints{
    point<SplitKTile<1, 32, 32, 1, 32, 8, 4, 8, 3, 2>>(76e9),
    point<SplitKTile<4, 32, 32, 4, 32, 8, 4, 8, 2, 2>>(250e9),
    point<SplitKTile<8, 64, 16, 8, 64, 16, 2, 8, 2, 2>>(350e9),
    point<SplitKTile<16, 64, 16, 16, 64, 16, 1, 8, 2, 2>>(334e9),
    point<SplitKTile<24, 128, 16, 24, 64, 16, 1, 8, 2, 1>>(348e9),
    point<SplitKTile<32, 128, 16, 32, 64, 8, 1, 8, 2, 1>>(392e9),
    point<SplitKTile<40, 128, 16, 40, 64, 16, 1, 6, 3, 1>>(355e9),
    point<SplitKTile<48, 64, 16, 48, 64, 8, 1, 12, 2, 1>>(401e9),
    point<SplitKTile<64, 64, 16, 32, 64, 8, 1, 8, 2, 1>>(416e9),
    point<SplitKTile<64, 128, 16, 32, 64, 8, 1, 4, 3, 1>>(407e9),
};

// Seconds that an element takes an SM of an H200 if it is copied alone: along the rows of the
// matrix, or across them.
constexpr double kAlongSeconds = 0.039e-9, kAcrossSeconds = 0.071e-9;

double copy_seconds(const Strided& from) {
  return from.in_16_bytes() ? 0 : from.right == 1 ? kAlongSeconds : kAcrossSeconds;
}

constexpr std::int64_t kLargest = 2048;  // of the smaller of m and n

std::optional<std::string> unsupported(const Problem& p, const Device&) {
  if (std::min(p.m, p.n) <= kLargest) return std::nullopt;
  const std::string largest = std::to_string(kLargest);
  return "requires m <= " + largest + " or n <= " + largest +
         " (a larger C fills the GPU without split-K)";
}

std::vector<Candidate> candidates(const Problem& p, const Device& device) {
  std::vector<Candidate> all;
  for (const bool swapped : {false, true}) {
    const SplitProblem q = split_problem(p, {}, swapped);
    add_candidates(all, kPoints, p, swapped, device, copy_seconds(q.x.transposed()),
                   copy_seconds(q.y));
  }
  return all;
}

const Registration registration({
    .name = "SplitK",
    .idea =
        "Split-K for few rows or columns: equal shares of k for all SMs, sliced-K within a block.",
    .source = "Stream-K (Osama et al. 2023); slices of a block as in CUTLASS, sliced-K",
    .rung = 35,
    .precisions = {Precision::f32},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported = unsupported,
    .candidates = candidates,
});

}  // namespace
}  // namespace gemm::simt::split_k
