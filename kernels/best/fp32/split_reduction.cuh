// Split-K over blocks: the share of each block, the workspace for its partial sums, and the launch
// that reduces the partial sums of each tile, always in the same order.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/best/fp32/k_tile_copy.cuh"
#include "kernels/best/fp32/split_plan.hpp"
#include "kernels/gemm.hpp"
#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/cluster_launch.cuh"
#include "kernels/parts/device_array.cuh"
#include "kernels/parts/tile_launch.cuh"

namespace gemm::simt {

// X (m x k) times Y (k x n): A times B, or if swapped B^T times A^T, which is C^T.
struct SplitProblem {
  std::int64_t m, n, k;
  Strided x, y;
  float* c;
  std::int64_t c_down, c_right;
};

inline SplitProblem split_problem(const Problem& p, const Operands& o, bool swapped) {
  const bool a_transposed = transposes_a(p.layout), b_transposed = transposes_b(p.layout);
  const Strided a{static_cast<const float*>(o.a), a_transposed ? 1 : p.k, a_transposed ? p.m : 1};
  const Strided b{static_cast<const float*>(o.b), b_transposed ? 1 : p.n, b_transposed ? p.k : 1};
  auto* c = static_cast<float*>(o.c);
  if (swapped) return {p.n, p.m, p.k, b.transposed(), a.transposed(), c, 1, p.n};
  return {p.m, p.n, p.k, a, b, c, p.n, 1};
}

// At least the static shared memory of a block (for_each_piece), besides that of its tiles.
inline constexpr int kPieceBytes = 128;

// A block's share of one tile.
struct SplitPiece {
  std::int64_t tile, first_step;
  int steps;
};

// The plan, with its workspace.
struct SplitShares : SplitPlan {
  float* partials;  // of shared tiles: [block][2][four][4], in the order of first_of_four
  bool cut;         // whether a second launch reduces them

  // The workspace slot of a block's partial sums for a tile: the second slot is for a tile that the
  // block ends but did not begin. Tiles between those two belong to the block alone.
  __device__ std::int64_t place(std::int64_t block, std::int64_t tile) const {
    return 2 * block + (begin(block) < tile * tile_steps);
  }
  // Number of tiles that may be shared: all, or those in which a block ends. shared_tile is -1 if
  // that block ends with its tile.
  constexpr std::int64_t shared_tiles() const { return tiles <= blocks ? tiles : blocks - 1; }
  __device__ std::int64_t shared_tile(std::int64_t index) const {
    if (tiles <= blocks) return index;
    const std::int64_t end = begin(index + 1);
    return end % tile_steps == 0 ? -1 : end / tile_steps;
  }
  // Called by all threads before the first load. Launches overlap (programmatic dependent launch):
  // blocks of the launch that reduces partial sums wait where this one leaves room.
  __device__ void begin_overlapping() const {
    wait_for_previous_launch();
    if (cut) let_next_launch_begin();
  }
  // Calls f for each piece of this block, with a function that returns the piece from shared
  // memory: keeping it in registers during the main loop would cost too many.
  template <typename F>
  __device__ void for_each_piece(F&& f) const {
    __shared__ volatile std::int64_t tile, at, end;
    if (threadIdx.x == 0) {
      at = begin(blockIdx.x);
      end = begin(blockIdx.x + 1);
      tile = at / tile_steps;
    }
    __syncthreads();
    const auto piece = [&]() {
      const std::int64_t first = at - tile * tile_steps;
      return SplitPiece{tile, first, static_cast<int>(min(end - at, tile_steps - first))};
    };
    while (at < end) {
      f(piece);
      __syncthreads();
      if (threadIdx.x == 0) {
        tile = tile + 1;
        at = tile * tile_steps;
      }
      __syncthreads();
    }
  }
};

// The first of the four consecutive elements of a tile row that a thread adds and stores. Threads
// go along what is contiguous in C: along the columns of C^T.
template <int kRows, int kColumns>
__device__ int first_of_four(const SplitProblem& p, int four) {
  if (kColumns % 4 == 0 && p.c_down == 1) return four % kRows * kColumns + four / kRows * 4;
  return 4 * four;
}

// Stores these four sums to C.
template <int kRows, int kColumns>
__device__ void store_four(const SplitProblem& p, const SplitShares& shares, std::int64_t tile,
                           int first, float4 sums) {
  const std::int64_t row0 = tile / shares.tile_columns * kRows,
                     column0 = tile % shares.tile_columns * kColumns;
  if (kColumns % 4 == 0 && p.c_right == 1 && p.n % 4 == 0) {
    const std::int64_t row = row0 + first / kColumns, column = column0 + first % kColumns;
    if (row < p.m && column < p.n) *reinterpret_cast<float4*>(p.c + row * p.c_down + column) = sums;
    return;
  }
  const float parts[4] = {sums.x, sums.y, sums.z, sums.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::int64_t row = row0 + (first + i) / kColumns,
                       column = column0 + (first + i) % kColumns;
    if (row < p.m && column < p.n) p.c[row * p.c_down + column * p.c_right] = parts[i];
  }
}

__device__ inline float4 plus(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Reduces the accumulators of a block's slices, which are in shared memory in rows of kPitch, and
// stores C or a partial sum.
template <int kRows, int kColumns, int kPitch>
__device__ void reduce_slices(const SplitProblem& p, const SplitShares& shares,
                              const SplitPiece& piece, const float* found, int slices) {
  constexpr int kAll = kRows * kColumns;
  static_assert(kAll % 4 == 0);
  float* mine = shares.partials + shares.place(blockIdx.x, piece.tile) * kAll;
#pragma unroll 1
  for (int four = threadIdx.x; four < kAll / 4; four += blockDim.x) {
    const int first = first_of_four<kRows, kColumns>(p, four);
    const float* from = found + first / kColumns * kPitch + first % kColumns;
    float4 sums = *reinterpret_cast<const float4*>(from);
#pragma unroll 4
    for (int slice = 1; slice < slices; ++slice)
      sums = plus(sums, *reinterpret_cast<const float4*>(from + slice * kRows * kPitch));
    if (piece.steps == shares.tile_steps)
      store_four<kRows, kColumns>(p, shares, piece.tile, first, sums);
    else
      *reinterpret_cast<float4*>(mine + 4 * four) = sums;
  }
}

constexpr int kReduceThreads = 128;

// Reduces the partial sums of all shared tiles to C.
template <int kRows, int kColumns>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_pieces(SplitProblem p, SplitShares shares) {
  constexpr int kAll = kRows * kColumns;
  let_next_launch_begin();
  const std::int64_t at = 4 * (std::int64_t{blockIdx.x} * kReduceThreads + threadIdx.x);
  const std::int64_t tile = at < shares.shared_tiles() * kAll ? shares.shared_tile(at / kAll) : -1;
  std::int64_t first = 0, last = 0;
  if (tile >= 0) {
    first = shares.block_of(tile * shares.tile_steps);
    last = shares.block_of((tile + 1) * shares.tile_steps - 1);
  }
  wait_for_previous_launch();  // also without a tile: the next launch waits for this one only
  if (first == last) return;
  const int in_tile = static_cast<int>(at % kAll);
  float4 sums = *reinterpret_cast<const float4*>(shares.partials +
                                                 shares.place(first, tile) * kAll + in_tile);
  const float* next = shares.partials + 2 * (first + 1) * kAll + in_tile;
  const int more = static_cast<int>(last - first);
#pragma unroll 8
  for (int piece = 0; piece < more; ++piece)
    sums = plus(sums, *reinterpret_cast<const float4*>(next + std::int64_t{piece} * 2 * kAll));
  store_four<kRows, kColumns>(p, shares, tile, first_of_four<kRows, kColumns>(p, in_tile / 4),
                              sums);
}

using SplitKernel = void (*)(SplitProblem, SplitShares);

// Throws std::runtime_error if allocation fails, std::length_error if there are more tiles than a
// grid can have blocks.
template <int kRows, int kColumns>
Launch split_launch(SplitKernel kernel, int threads, int shared_bytes, const SplitProblem& p,
                    const SplitPlan& plan) {
  constexpr int kAll = kRows * kColumns;
  const bool cut = plan.pieces() > 0;
  const auto partials = device_array<float>(cut ? 2 * plan.blocks * kAll : 1);
  const SplitShares shares{plan, partials.get(), cut};
  const std::int64_t adding = ceil_div(shares.shared_tiles() * kAll / 4, kReduceThreads);
  if (plan.blocks > 0x7fffffff)
    throw std::length_error("C has more tiles than a grid can have blocks (2^31 - 1)");
  allow_shared_bytes(kernel, shared_bytes);
  const bool overlaps = may_overlap(kernel);
  const LaunchShape shape{static_cast<int>(plan.blocks), dim3(threads), shared_bytes, 1, overlaps};
  const LaunchShape reduction{static_cast<int>(adding), dim3(kReduceThreads), 0, 1, overlaps};
  return keeping(partials, [=](Stream stream) {
    enqueue(kernel, shape, stream, p, shares);
    if (cut) enqueue(reduce_pieces<kRows, kColumns>, reduction, stream, p, shares);
  });
}

// A tile, ready to be launched.
struct SplitPoint {
  SplitTile tile;                   // with the step and accumulators of one slice
  int (*slices_on)(const Device&);  // of a block; 0: the device cannot run it
  double wavefronts;                // in shared memory, per slice and step
  Launch (*launch)(const SplitProblem&, const SplitPlan&, const Device&);
};

// Without partial sums.
inline Traffic split_traffic(const Problem& p, const SplitPoint& point, bool swapped,
                             const SplitPlan& plan) {
  const SplitTile& tile = point.tile;
  const std::int64_t m = swapped ? p.n : p.m, n = swapped ? p.m : p.n;
  const double tile_rows = std::ceil(1.0 * m / tile.rows), steps = std::ceil(1.0 * p.k / tile.step);
  return {.dram = bytes_minimum(p),
          .l2 = 4.0 * (1.0 * m * p.k * plan.tile_columns + 1.0 * p.k * n * tile_rows + 1.0 * m * n),
          .shared = 128.0 * point.wavefronts * plan.tiles * steps};
}

// Adds those of the points that run on the device.
inline void add_candidates(std::vector<Candidate>& all, std::span<const SplitPoint> points,
                           const Problem& p, bool swapped, const Device& device) {
  const SplitProblem q = split_problem(p, {}, swapped);
  for (const SplitPoint& point : points) {
    const int slices = point.slices_on(device);
    if (slices == 0) continue;
    SplitTile tile = point.tile;
    tile.step *= slices;
    tile.sums *= slices;
    for (const SplitPlan& plan : split_plans(q.m, q.n, q.k, tile, device))
      all.push_back({named("tile", tile.rows, tile.columns) + (swapped ? "/swapped" : "") +
                         "/per_sm:" + std::to_string(tile.blocks) +
                         "/blocks:" + std::to_string(plan.blocks),
                     split_work(plan, tile, static_cast<double>(p.k),
                                split_traffic(p, point, swapped, plan), device),
                     [=, &point](const Operands& o) {
                       return point.launch(split_problem(p, o, swapped), plan, device);
                     }});
  }
}

}  // namespace gemm::simt
