// The tile of C of a block that multiplies FP64 on tensor cores, in four steps: copy K tiles of A
// and B to shared memory, load fragments, multiply, store. The MmaF64 rungs differ in when they do
// each.
//
// A line is a row of A or a column of B. A K tile is 128 bytes of each line of the block, 16 steps
// of k, those of A first, in chunks of two elements. Chunk c of line l is at c ^ f(l), with f = 0,
// 4, 2, 6 for l / 2 % 4 = 0, 1, 2, 3: the 16 lanes that are served together load from all banks
// once.
//
// C^T is computed: the MMA's first operand is B, so that a thread stores two consecutive elements
// of a row of C.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/async_copy.cuh"
#include "kernels/parts/mma_f64.cuh"

namespace gemm::tensor {

// Tiles of C of a block and of a warp, stages of shared memory, and the instruction.
template <int kBM_, int kBN_, int kWM, int kWN, int kStages_, F64Mma kMma>
class MmaF64Tile {
 public:
  static constexpr int kBM = kBM_, kBN = kBN_, kStages = kStages_;
  static constexpr int kThreads = 32 * (kBM / kWM) * (kBN / kWN);
  static constexpr int kLine = 128, kChunk = 16, kDepth = 16;  // bytes, bytes, steps of k
  static constexpr int kStageBytes = (kBM + kBN) * kLine, kSharedBytes = kStages * kStageBytes;
  static constexpr int kSteps = kDepth / 8;  // of MMAs along k
  // Of shared memory per K tile: the copies, and the fragments that each warp loads.
  static constexpr double kMovedBytes = kStageBytes + kThreads / 32.0 * (kWM + kWN) * kLine;

  __device__ MmaF64Tile(const Problem& p, Tiles::Place place, const double* a, const double* b,
                        const std::byte* shared)
      : m_(p.m),
        n_(p.n),
        row0_(std::int64_t{place.row} * kBM),
        column0_(std::int64_t{place.column} * kBN),
        pitch_(p.k),
        shared_(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))) {
    const int line = static_cast<int>(threadIdx.x) / kChunks,
              chunk = static_cast<int>(threadIdx.x) % kChunks;
    a_ = a + (row0_ + line) * pitch_ + 2 * chunk;
    b_ = b + (column0_ + line) * pitch_ + 2 * chunk;
    to_ = place_of(line, chunk);
    rows_ = static_cast<int>(min(m_ - row0_, std::int64_t{kBM})) - line;
    columns_ = static_cast<int>(min(n_ - column0_, std::int64_t{kBN})) - line;
    left_ = pitch_ - 2 * chunk;
    // Lane 4 g + t has lines 2 g and 2 g + 1, and steps t and t + 4.
    const int g = static_cast<int>(threadIdx.x) % 32 / 4, t = static_cast<int>(threadIdx.x) % 4;
    lane_a_ = place_of(warp_row() + 2 * g, t / 2) + t % 2 * 8;
    lane_b_ = place_of(kBM + warp_column() + 2 * g, t / 2) + t % 2 * 8;
  }

  static __device__ int k_tiles(const Problem& p) {
    return static_cast<int>((p.k + kDepth - 1) / kDepth);
  }
  __device__ std::uint32_t stage(int i) const { return shared_ + i * kStageBytes; }

  // Copies the next K tile by cp.async, as one group; zeros beyond the edges.
  __device__ void copy_to(std::uint32_t stage) {
    constexpr int kAtOnce = kThreads / kChunks;  // lines
    if (left_ <= 0) rows_ = columns_ = 0;        // beyond the end of k
#pragma unroll
    for (int line = 0; line < kBM; line += kAtOnce)
      copy_async_bytes<kChunk>(stage + to_ + line * kLine, a_ + line * pitch_, line < rows_);
#pragma unroll
    for (int line = 0; line < kBN; line += kAtOnce)
      copy_async_bytes<kChunk>(stage + to_ + (kBM + line) * kLine, b_ + line * pitch_,
                               line < columns_);
    commit_copies();
    a_ += kDepth;
    b_ += kDepth;
    left_ -= kDepth;
  }

  // Loads the fragments of a step of 8 along k and multiplies them.
  __device__ void multiply(std::uint32_t stage, int step) {
    F64Fragment a[kWM / 16], b[kWN / 16];
#pragma unroll
    for (int i = 0; i < kWM / 16; ++i) load(a[i], stage + lane_a_, i, step);
#pragma unroll
    for (int j = 0; j < kWN / 16; ++j) load(b[j], stage + lane_b_, j, step);
#pragma unroll
    for (int j = 0; j < kWN / 16; ++j)
#pragma unroll
      for (int i = 0; i < kWM / 8; ++i) multiply_f64<kMma>(acc_[j][i], b[j], a[i / 2], i % 2);
  }

  __device__ void store(double* c) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kWM / 8; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const std::int64_t row = row0_ + warp_row() + 16 * (i / 2) + 4 * (lane % 4) + 2 * e + i % 2;
        if (row >= m_) continue;
        const std::int64_t column = column0_ + warp_column() + lane / 4 * 2;
        double* const to = c + row * n_ + column;
#pragma unroll
        for (int j = 0; j < kWN / 16; ++j) {
          if (n_ % 2 == 0) {
            if (column + 16 * j < n_)
              *reinterpret_cast<double2*>(to + 16 * j) = {acc_[j][i][e], acc_[j][i][2 + e]};
          } else {
            if (column + 16 * j < n_) to[16 * j] = acc_[j][i][e];
            if (column + 16 * j + 1 < n_) to[16 * j + 1] = acc_[j][i][2 + e];
          }
        }
      }
  }

 private:
  static constexpr int kChunks = kLine / kChunk;  // of a line
  static_assert(kThreads / kChunks % 8 == 0 && kBM % (kThreads / kChunks) == 0 &&
                    kBN % (kThreads / kChunks) == 0,
                "the lines of a thread are all swizzled alike");
  static_assert(kWM % 16 == 0 && kWN % 16 == 0);

  static __device__ int place_of(int line, int chunk) {
    return line * kLine + (chunk ^ ((line & 2) << 1 | (line & 4) >> 1)) * kChunk;
  }
  static __device__ int warp_row() {
    return static_cast<int>(threadIdx.x) / 32 / (kBN / kWN) * kWM;
  }
  static __device__ int warp_column() {
    return static_cast<int>(threadIdx.x) / 32 % (kBN / kWN) * kWN;
  }
  // 16 lines from 16 * i of the warp tile on, in the order of the MMA's registers.
  static __device__ void load(F64Fragment& to, std::uint32_t lane, int i, int step) {
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int line = 0; line < 2; ++line)
        asm volatile("ld.shared.f64 %0, [%1];"
                     : "=d"(to.parts[part][line])
                     : "r"((lane ^ (step * 64 + part * 32)) + (16 * i + line) * kLine)
                     : "memory");
  }

  std::int64_t m_, n_, row0_, column0_, pitch_, left_;  // left_: what remains of k to copy
  std::uint32_t shared_;
  const double *a_, *b_;  // of this thread's first chunk
  int to_, rows_, columns_, lane_a_, lane_b_;
  double acc_[kWN / 16][kWM / 8][4] = {};
};

}  // namespace gemm::tensor
