// Split-K for a C with few rows: there are far fewer tiles than SMs, and a large matrix to read
// once. k is split over blocks, each of which gets an equal share of the steps of all tiles (as in
// stream-K), and within a block over slices (sliced-K): groups of warps with separate pipelines,
// which need no barrier with each other before their accumulators are reduced. Cost: partial sums
// in global memory and a second launch that reduces them.
//
// Tiles are as high as C. The long matrix streams through shared memory, 16 bytes per copy where
// its rows allow it, in any layout; few columns are the few rows of C^T = B^T A^T.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
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
// n. If kDeep > 1 the other lanes are along k, else along m.
template <int kBM_, int kBN_, int kBK_, int kWM, int kWN, int kAcross_, int kDeep_, int kSlices_,
          int kStages_, int kBlocks_>
struct SplitKTile {
  static constexpr int kBM = kBM_, kBN = kBN_, kBK = kBK_, kBlocks = kBlocks_;
  static constexpr int kAcross = kAcross_, kDeep = kDeep_, kDown = 32 / kAcross / kDeep;
  static constexpr int kSlices = kSlices_, kStages = kStages_;
  static constexpr int kRows = kWM / kDown, kColumns = kWN / kAcross;  // thread tile
  static constexpr int kWarps = kBM / kWM * (kBN / kWN);
  static constexpr int kThreads = 32 * kWarps;  // per slice
  static constexpr int kXPitch = kBK + 4, kYPitch = kBN + 4;
  static constexpr int kStage = kBM * kXPitch + kBK * kYPitch;
  static constexpr int kBarriers = 16;  // of a block; one is for the whole block

  static_assert(kBM % kWM == 0 && kBN % kWN == 0, "warp tiles must divide the tile");
  static_assert(kWM % kDown == 0 && kWN % (4 * kAcross) == 0,
                "thread tiles must divide the warp tile");
  static_assert(kBK % (4 * kDeep) == 0 && (kDeep == 1 || kDown == 1));
  static_assert(kWarps == 1 || kSlices < kBarriers);

  static constexpr int down(int lane) { return kDeep > 1 ? 0 : PairedLanes<kAcross>::down(lane); }
  static constexpr int across(int lane) {
    return kDeep > 1 ? lane % kAcross : PairedLanes<kAcross>::across(lane);
  }
  static constexpr int deep(int lane) { return kDeep > 1 ? lane / kAcross : 0; }
  static __device__ int first_row() { return threadIdx.x % kThreads / 32 / (kBN / kWN) * kWM; }
  static __device__ int first_column() { return threadIdx.x % kThreads / 32 % (kBN / kWN) * kWN; }

  static constexpr int slice_bytes(int stages) {
    return 4 * std::max(stages * kStage, kBM * kBN * kDeep);
  }
  // As many slices as fit the shared memory of a block.
  static int slices_on(const Device& device) {
    return std::min(kSlices, shared_memory_limit(device) / slice_bytes(stages_on(device, kStages)));
  }
  // Shared-memory wavefronts per slice and step: the copies, and the vector loads.
  static constexpr double kWavefronts =
      (kBM * kBK + kBK * kBN) / 32.0 +
      kWarps * kBK / 4 / kDeep *
          (kRows * wavefronts(
                       4, [](int lane) { return down(lane) * kXPitch + 4 * deep(lane); }, 4) +
           kColumns *
               wavefronts(
                   4, [](int lane) { return across(lane) * 4 + 4 * deep(lane) * kYPitch; }, 4));
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
    KTileCopy<kBM, kBK, kXPitch, kThreads, kXWidth> x(p.x.from(row0, first));
    KTileCopy<kBK, kBN, kYPitch, kThreads, kYWidth> y(p.y.from(first, column0));
    const auto copy = [&](int stage) {
      float* to = ring + stage * Tile::kStage;
      const int depth = --to_copy > 0 ? kBK : last_depth;
      x.copy(to, rows, depth);
      y.copy(to + kBM * kXPitch, depth, columns);
      x.advance_right(stride);
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
      const float* xs = ring + reads * Tile::kStage + row * kXPitch + 4 * Tile::deep(lane);
      const float* ys =
          ring + reads * Tile::kStage + kBM * kXPitch + 4 * Tile::deep(lane) * kYPitch + column;
#pragma unroll
      for (int k4 = 0; k4 < kBK; k4 += 4 * Tile::kDeep) {
        float x_rows[kRows][4];
#pragma unroll
        for (int i = 0; i < kRows; ++i)
          *reinterpret_cast<float4*>(x_rows[i]) =
              *reinterpret_cast<const float4*>(xs + i * Tile::kDown * kXPitch + k4);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          float y_row[kColumns];
#pragma unroll
          for (int j = 0; j < kColumns; j += 4)
            *reinterpret_cast<float4*>(y_row + j) =
                *reinterpret_cast<const float4*>(ys + (k4 + k) * kYPitch + Tile::kAcross * j);
#pragma unroll
          for (int j = 0; j < kColumns; ++j)
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
              const int serpentine = j % 2 == 0 ? i : kRows - 1 - i;
              acc[serpentine][j] += x_rows[serpentine][k] * y_row[j];
            }
        }
      }
      reads = Ring::next(reads);
    }
    __syncthreads();  // all slices are done with their rings
    float* found = shared + (slice * Tile::kDeep + Tile::deep(lane)) * kBM * kBN;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; j += 4)
        *reinterpret_cast<float4*>(found + (row + i * Tile::kDown) * kBN + column +
                                   Tile::kAcross * j) =
            make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
    __syncthreads();
    reduce_slices<kBM, kBN>(p, shares, which(), shared, slices * Tile::kDeep);
  });
}

template <typename Tile>
SplitPoint point(double flop_per_second) {
  return {{Tile::kBM, Tile::kBN, Tile::kBK, Tile::kBlocks, flop_per_second},
          Tile::slices_on,
          Tile::kWavefronts,
          [](const SplitProblem& p, const SplitPlan& plan, const Device& device) {
            constexpr SplitKernels kKernels{split_k<Tile, 4, 4>, split_k<Tile, 4, 1>,
                                            split_k<Tile, 1, 4>, split_k<Tile, 1, 1>};
            const int slices = Tile::slices_on(device);
            return split_launch<Tile::kBM, Tile::kBN>(
                kKernels.of(p, p.y), slices * Tile::kThreads,
                slices * Tile::slice_bytes(stages_on(device, Tile::kStages)), p, plan);
          }};
}

// FLOP/s of an SM, measured on an H200: the slope over 10,240 more of k at n = 4096 (NOTES.md);
// where memory-bound, two thirds of what the shared-memory wavefronts allow.
const std::array kPoints{
    point<SplitKTile<1, 32, 32, 1, 32, 8, 4, 8, 3, 2>>(75.8e9),
    point<SplitKTile<4, 32, 32, 4, 32, 8, 4, 8, 2, 2>>(151.5e9),
    point<SplitKTile<8, 64, 16, 8, 64, 16, 2, 8, 2, 2>>(189.4e9),
    point<SplitKTile<16, 64, 16, 16, 64, 16, 1, 8, 2, 2>>(257.6e9),
    point<SplitKTile<32, 128, 16, 32, 64, 4, 1, 6, 3, 1>>(310.6e9),
    point<SplitKTile<40, 128, 16, 40, 64, 4, 1, 6, 3, 1>>(318.2e9),
    point<SplitKTile<64, 128, 16, 32, 64, 4, 1, 3, 4, 1>>(330.3e9),
    // The long matrix as X, with contiguous k.
    point<SplitKTile<128, 32, 32, 32, 32, 8, 1, 3, 3, 1>>(272.7e9),
};

// Fraction of the rate with copies of 4 bytes of the long matrix, along its rows or across them.
constexpr double kAlong = 0.8, kAcross = 0.6;

constexpr std::int64_t kLargest = 512;

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
    const Strided& streamed = q.m > q.n ? q.x : q.y;
    const double copies = streamed.in_16_bytes() ? 1 : streamed.right == 1 ? kAlong : kAcross;
    add_candidates(all, kPoints, p, swapped, device, copies);
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
