// A matrix times a few vectors, with k contiguous in the matrix: the lanes of a warp are along k.
// Each lane loads 16 bytes of a few rows, multiplies them by the vectors, and accumulates over all
// of k; at the end the accumulators are reduced over the lanes. A usual tile would have lanes along
// the vectors, of which there are too few.
//
// The matrix is A, or B if it is stored transposed and A has few rows. The steps along k of all
// rows are cut into equal shares for all SMs, as in SplitK. The bottleneck is DRAM bandwidth.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/best/fp32/k_tile_copy.cuh"
#include "kernels/best/fp32/split_plan.hpp"
#include "kernels/best/fp32/split_reduction.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/warp_access.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::gemv {
namespace {

// Warp w has rows w, w + kWarps, ... of its block.
template <int kVectors_, int kRows_, int kStages_, int kBlocks_>
struct GemvTile {
  static constexpr int kVectors = kVectors_, kRows = kRows_, kStages = kStages_;
  static constexpr int kBlocks = kBlocks_;
  static constexpr int kWarps = 8, kThreads = 32 * kWarps;
  static constexpr int kBM = kWarps * kRows, kBK = 4 * 32;
  using XLines = PaddedLines<kBK, 0>;
  using YLines = PaddedLines<kBK>;
  static constexpr int kYPitch = YLines::kPitch;
  static constexpr int kStage = kBM * kBK + kVectors * kYPitch;
  static constexpr int kAccumulators = kRows * kVectors;  // per thread
  static_assert((kAccumulators & (kAccumulators - 1)) == 0,
                "a power of two, so that the reduction can halve it");

  static int shared_bytes(const Device& device) { return 4 * stages_on(device, kStages) * kStage; }
  static int slices_on(const Device& device) {
    return shared_bytes(device) <= shared_memory_limit(device) - kPieceBytes ? 1 : 0;
  }
  // Shared-memory wavefronts per step: the copies, and the vector loads of each warp.
  static constexpr double kWavefronts =
      (kBM + kVectors) * kBK / 32.0 + kWarps * (kRows + kVectors) *
                                          wavefronts(
                                              4, [](int lane) { return 4 * lane; }, 4);
};

// Reduces accumulators over the lanes of a warp; each lane ends up with an equal share of them.
// Returns the index of its first.
template <int kCount, int kDistance = 16>
__device__ int reduce_over_lanes(float* acc) {
  if constexpr (kDistance == 0) {
    return 0;
  } else if constexpr (kCount == 1) {
    acc[0] += __shfl_xor_sync(~0U, acc[0], kDistance);
    return reduce_over_lanes<1, kDistance / 2>(acc);
  } else {
    constexpr int kHalf = kCount / 2;
    const bool upper = threadIdx.x & kDistance;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float given = upper ? acc[i] : acc[i + kHalf];
      const float kept = upper ? acc[i + kHalf] : acc[i];
      acc[i] = kept + __shfl_xor_sync(~0U, given, kDistance);
    }
    return (upper ? kHalf : 0) + reduce_over_lanes<kHalf, kDistance / 2>(acc);
  }
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    gemv(SplitProblem p, SplitShares shares) {
  extern __shared__ __align__(16) float shared[];
  constexpr int kBM = Tile::kBM, kBK = Tile::kBK, kYPitch = Tile::kYPitch;
  constexpr int kRows = Tile::kRows, kVectors = Tile::kVectors, kWarps = Tile::kWarps;
  using Ring = CopyRing<Tile::kStages>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  shares.begin_overlapping();
  shares.for_each_piece([&](const auto& which) {
    const SplitPiece piece = which();
    const std::int64_t row0 = piece.tile / shares.tile_columns * kBM;
    const std::int64_t column0 = piece.tile % shares.tile_columns * kVectors;
    const int rows = static_cast<int>(min(std::int64_t{kBM}, p.m - row0));
    const int columns = static_cast<int>(min(std::int64_t{kVectors}, p.n - column0));
    const std::int64_t first = piece.first_step * kBK;
    int to_copy = piece.steps;
    const int last_depth = static_cast<int>(
        min(p.k - first - (piece.steps - 1) * std::int64_t{kBK}, std::int64_t{kBK}));
    KTileCopy<kBM, kBK, Tile::kThreads, typename Tile::XLines> x(p.x.from(row0, first));
    KTileCopy<kVectors, kBK, Tile::kThreads, typename Tile::YLines, Lines::either> y(
        p.y.from(first, column0).transposed());
    const auto copy = [&](int stage) {
      float* to = shared + stage * Tile::kStage;
      const int depth = --to_copy > 0 ? kBK : last_depth;
      x.copy(to, rows, depth);
      y.copy(to + kBM * kBK, columns, depth);
      x.advance_right(kBK);
      y.advance_right(kBK);
    };
#pragma unroll
    for (int stage = 0; stage < Ring::kDepth - 1; ++stage) {
      if (to_copy > 0) copy(stage);
      commit_copies();
    }
    float acc[Tile::kAccumulators] = {};
    int reads = 0;
#pragma unroll 1
    for (int step = 0; step < piece.steps; ++step) {
      Ring::wait();
      __syncthreads();  // the step has arrived, and the previous stage is free
      if (to_copy > 0) copy(Ring::previous(reads));
      commit_copies();
      const float* xs = shared + reads * Tile::kStage + warp * kBK + 4 * lane;
      const float* ys = shared + reads * Tile::kStage + kBM * kBK + 4 * lane;
      float x_rows[kRows][4];
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        *reinterpret_cast<float4*>(x_rows[i]) =
            *reinterpret_cast<const float4*>(xs + i * kWarps * kBK);
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        float vector[4];
        *reinterpret_cast<float4*>(vector) = *reinterpret_cast<const float4*>(ys + j * kYPitch);
#pragma unroll
        for (int k = 0; k < 4; ++k)
#pragma unroll
          for (int i = 0; i < kRows; ++i) acc[i * kVectors + j] += x_rows[i][k] * vector[k];
      }
      reads = Ring::next(reads);
    }
    const int mine = reduce_over_lanes<Tile::kAccumulators>(acc);
    constexpr int kEnd = Tile::kAccumulators > 32 ? Tile::kAccumulators / 32 : 1;
    constexpr int kSameLanes = Tile::kAccumulators < 32 ? 32 / Tile::kAccumulators : 1;
    __syncthreads();  // the ring is free
    if (lane % kSameLanes == 0)
#pragma unroll
      for (int i = mine; i < mine + kEnd; ++i)
        shared[(i / kVectors * kWarps + warp) * kVectors + i % kVectors] = acc[i - mine];
    __syncthreads();
    reduce_slices<kBM, kVectors, kVectors>(p, shares, which(), shared, 1);
  });
}

template <typename Tile>
SplitPoint point(double flop_per_second) {
  return {{Tile::kBM, Tile::kVectors, Tile::kBK, Tile::kBlocks, flop_per_second,
           Tile::kBM * Tile::kVectors},
          Tile::slices_on,
          Tile::kWavefronts,
          [](const SplitProblem& p, const SplitPlan& plan, const Device& device) {
            return split_launch<Tile::kBM, Tile::kVectors>(gemv<Tile>, Tile::kThreads,
                                                           Tile::shared_bytes(device), p, plan);
          }};
}

// FLOP/s of an SM, measured on an H200 (NOTES.md): with 16 and 8 vectors at k = 500,000; with
// fewer, which are memory-bound, the same FLOP per byte of shared memory.
const std::array kPoints{
    point<GemvTile<1, 4, 4, 3>>(45.5e9),
    point<GemvTile<4, 4, 4, 3>>(106.1e9),
    point<GemvTile<8, 8, 3, 2>>(166.7e9),
    point<GemvTile<16, 8, 4, 1>>(189.4e9),
};

constexpr std::int64_t kMostVectors = 16;

// Whether operands are swapped (the matrix is B), or nothing if no operand fits.
std::optional<bool> swapped(const Problem& p) {
  if (!transposes_a(p.layout) && p.n <= kMostVectors && p.n <= p.m) return false;
  if (transposes_b(p.layout) && p.m <= kMostVectors) return true;
  if (!transposes_a(p.layout) && p.n <= kMostVectors) return false;
  return std::nullopt;
}

std::optional<std::string> unsupported(const Problem& p, const Device&) {
  if (swapped(p)) return std::nullopt;
  const std::string most = std::to_string(kMostVectors);
  return "requires n <= " + most + " with layout nn or nt, or m <= " + most + " with nt or tt";
}

std::vector<Candidate> candidates(const Problem& p, const Device& device) {
  std::vector<Candidate> all;
  add_candidates(all, kPoints, p, *swapped(p), device);
  return all;
}

const Registration registration({
    .name = "Gemv",
    .idea = "Matrix times few vectors: lanes along k, reduced over the warp at the end.",
    .source = "Bell and Garland 2009, a warp for a row; BLAS 2, gemv of a row-major matrix",
    .rung = 36,
    .precisions = {Precision::f32},
    .layouts = {Layout::nn, Layout::nt, Layout::tt},
    .unsupported = unsupported,
    .candidates = candidates,
});

}  // namespace
}  // namespace gemm::simt::gemv
