// The tile of C of a block with a cp.async pipeline: a ring of stages in shared memory, one barrier
// per K tile (compute capability 8.0 and later).
//
// In shared memory a row of a K tile holds one step along k, for all rows of A or all columns of B
// (MN-major). Copies of A are of single elements, which transposes it; a warp copies 8 steps along
// k of 4 rows, and the padding of 16 bytes puts these into 32 banks. With A along k, so that a
// vector load holds four operands of one row, the operands of a step are in registers of one
// parity, and parities alternate from step to step: half of all FMAs then have a conflict of
// register banks (NOTES.md).
//
// A warp has 4 lanes along m and 8 along n; each lane has 4 of every 16 rows of the warp tile and 4
// of every 32 columns. Operands of the next step are loaded while those of this step are
// multiplied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/gemm.hpp"
#include "kernels/parts/async_copy.cuh"
#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/store_patch.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/warp_access.hpp"

namespace gemm::simt {

// FP32, layout nn. Block tile kBM x kBN with K tiles of kBK, warp tile kWM x kWN, kBlocks blocks
// per SM. kWidth elements per copy of B and per store of C: 4 if their rows begin at multiples of
// 16 bytes, else 1.
template <int kBM_, int kBN_, int kBK_, int kWM_, int kWN_, int kStages_, int kBlocks_, int kWidth_>
class AsyncTile {
 public:
  static constexpr int kBM = kBM_, kBN = kBN_, kBK = kBK_, kWM = kWM_, kWN = kWN_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_, kWidth = kWidth_;
  static constexpr int kThreads = 32 * (kBM / kWM) * (kBN / kWN);
  static constexpr int kRows = kWM / 4, kColumns = kWN / 8;  // thread tile
  static constexpr int kAStride = kBM + 4;
  static constexpr int kStage = kBK * (kAStride + kBN);
  static constexpr int kSharedBytes = kStages * kStage * static_cast<int>(sizeof(float));
  static constexpr int kADepth = 8, kARows = kThreads / kADepth;  // of A, copied at once
  using Lanes = PairedLanes<8>;
  // Shared-memory wavefronts per K tile: the copies, and the vector loads of all warps.
  static constexpr double kWavefronts =
      (kBM * kBK + kBK * kBN) / 32.0 +
      kThreads / 32 * kBK / 4 *
          (kRows * wavefronts(
                       4, [](int lane) { return Lanes::down(lane) * 4; }, 4) +
           kColumns * wavefronts(
                          4, [](int lane) { return Lanes::across(lane) * 4; }, 4));

  static_assert(kBM % kWM == 0 && kBN % kWN == 0, "warp tiles must divide the block tile");
  static_assert(kWM % 16 == 0 && kWN % 32 == 0, "thread tiles must divide the warp tile");
  static_assert(kBK % kADepth == 0 && kBM % kARows == 0 && kThreads <= 1024);
  static_assert(kBK * kBN % (kWidth * kThreads) == 0);

  __device__ AsyncTile(const Problem& p, std::int64_t first_row, std::int64_t first_column,
                       const float* a, const float* b, float* shared)
      : m_(p.m), n_(p.n), k_(p.k), row0_(first_row), column0_(first_column), shared_(shared) {
    const int t = threadIdx.x;
    const int a_row = t / kADepth, a_k = t % kADepth;
    const int b_k = t / kBChunks, b_column = t % kBChunks * kWidth;
    a_from_ = a + (row0_ + a_row) * k_ + a_k;
    b_from_ = b + b_k * n_ + column0_ + b_column;
    a_to_ = a_k * kAStride + a_row;
    b_to_ = kBK * kAStride + b_k * kBN + b_column;
    warp_row_ = t / 32 / (kBN / kWN) * kWM + Lanes::down(t % 32) * 4;
    warp_column_ = t / 32 % (kBN / kWN) * kWN + Lanes::across(t % 32) * 4;
  }

  // The main loop: kStages - 1 K tiles are in flight while one is multiplied.
  __device__ void multiply() {
    const std::int64_t k_tiles = (k_ + kBK - 1) / kBK;
    wait_for_previous_launch();
    copy_first();
#pragma unroll
    for (int stage = 1; stage < kStages - 1; ++stage) copy_next(stage, stage < k_tiles);
    int reads = 0, writes = kStages - 1;
#pragma unroll 1
    for (std::int64_t k_tile = 0; k_tile < k_tiles; ++k_tile) {
      wait_for_copies<kStages - 2>();
      __syncthreads();  // the K tile has arrived, and the previous stage is free
      copy_next(writes, k_tile + kStages - 1 < k_tiles);
      multiply_k_tile(shared_ + reads * kStage);
      reads = reads + 1 == kStages ? 0 : reads + 1;
      writes = writes + 1 == kStages ? 0 : writes + 1;
    }
  }

  // A store of 16 bytes needs four consecutive registers. The products by a 1 that the compiler
  // does not know can be there while the accumulators are allocated freely.
  __device__ void store(float* c) const {
    const auto one = static_cast<float>(gridDim.z);
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; j += 4) {
        const float four[] = {acc_[i][j] * one, acc_[i][j + 1] * one, acc_[i][j + 2] * one,
                              acc_[i][j + 3] * one};
        const int lane = threadIdx.x % 32;
        const std::int64_t row = row0_ + warp_row_ + i / 4 * 16 + i % 4,
                           column = column0_ + warp_column_ + 8 * j;
        if constexpr (kWidth == 4) {
          if (row < m_ && column < n_)
            *reinterpret_cast<float4*>(c + row * n_ + column) =
                make_float4(four[0], four[1], four[2], four[3]);
        } else {
          store_patch(c, m_, n_, row - 4 * Lanes::down(lane), 4, column - 4 * Lanes::across(lane),
                      four);
        }
      }
  }

 private:
  static constexpr int kBChunks = kBN / kWidth;  // per row
  static constexpr int kBRows = kThreads >= kBChunks ? kThreads / kBChunks : 1;
  static constexpr int kBParts = kThreads >= kBChunks ? 1 : kBChunks / kThreads;

  // The partial K tile, if any, comes first, so that no later one needs a bounds check along k.
  __device__ void copy_first() {
    const int first = static_cast<int>((k_ - 1) % kBK) + 1;
    copy<true>(0, first);
    advance(first);
    commit_copies();
  }
  // Starts the copies of the next K tile, if there is one.
  __device__ void copy_next(int stage, bool is_there) {
    if (is_there) copy<false>(stage, kBK);
    advance(kBK);
    commit_copies();
  }
  // Elements outside the matrices become zero.
  template <bool kPartial>
  __device__ void copy(int stage, int depth) {
    float* to = shared_ + stage * kStage;
    const int t = threadIdx.x;
    const int a_row = t / kADepth, a_k = t % kADepth;
#pragma unroll
    for (int i = 0; i < kBM; i += kARows)
#pragma unroll
      for (int j = 0; j < kBK; j += kADepth)
        copy_async<1>(to + a_to_ + j * kAStride + i, a_from_ + i * k_ + j,
                      row0_ + a_row + i < m_ && (!kPartial || a_k + j < depth));
    const int b_k = t / kBChunks, b_column = t % kBChunks * kWidth;
#pragma unroll
    for (int i = 0; i < kBK / kBRows; ++i)
#pragma unroll
      for (int part = 0; part < kBParts; ++part)
        copy_async<kWidth>(to + b_to_ + i * kBRows * kBN + part * kThreads * kWidth,
                           b_from_ + i * kBRows * n_ + part * kThreads * kWidth,
                           column0_ + b_column + part * kThreads * kWidth < n_ &&
                               (!kPartial || b_k + i * kBRows < depth));
  }
  __device__ void advance(int depth) {
    a_from_ += depth;
    b_from_ += depth * n_;
  }

  __device__ void multiply_k_tile(const float* stage) {
    const float* a = stage + warp_row_;
    const float* b = stage + kBK * kAStride + warp_column_;
    float a_rows[2][kRows], b_row[2][kColumns];
    const auto load = [&](int k) {
#pragma unroll
      for (int i = 0; i < kRows; i += 4)
        *reinterpret_cast<float4*>(a_rows[k % 2] + i) =
            *reinterpret_cast<const float4*>(a + k * kAStride + 4 * i);
#pragma unroll
      for (int j = 0; j < kColumns; j += 4)
        *reinterpret_cast<float4*>(b_row[k % 2] + j) =
            *reinterpret_cast<const float4*>(b + k * kBN + 8 * j);
    };
    load(0);
#pragma unroll
    for (int k = 0; k < kBK; ++k) {
      if (k + 1 < kBK) load(k + 1);
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          const int serpentine = i % 2 == 0 ? j : kColumns - 1 - j;
          acc_[i][serpentine] += a_rows[k % 2][i] * b_row[k % 2][serpentine];
        }
    }
  }

  std::int64_t m_, n_, k_, row0_, column0_;
  float* shared_;
  const float *a_from_, *b_from_;
  int a_to_, b_to_, warp_row_, warp_column_;
  float acc_[kRows][kColumns] = {};
};

// Why a device cannot run the tile.
template <typename Tile>
std::optional<std::string> async_tile_unsupported(const Device& device) {
  if (device.compute_capability < 80) return "cp.async requires compute capability 8.0";
  return shared_memory_unsupported(Tile::kSharedBytes, device);
}

}  // namespace gemm::simt
