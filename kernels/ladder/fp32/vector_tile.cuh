// Shared by the FP32 kernels from Vectorized to SharedDoubleBuffer: K tiles of A and B that go
// through registers into shared memory, 16 bytes at a time, and a thread tile of accumulators. The
// kernels differ in the mapping of threads to elements and in their synchronization. From WarpTile
// on threads are mapped to elements by warp tiles (WarpTiling).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/parts/warp_access.hpp"

namespace gemm::simt {

// A K tile in shared memory. A is stored transposed, so that the rows of a thread are consecutive;
// 4 words of padding spread these stores over the banks.
template <int kBM, int kBN, int kBK>
struct SharedKTile {
  float a[kBK][kBM + 4];
  float b[kBK][kBN];
};

// Loads the thread's part of each K tile into registers and stores it to shared memory. kAligned:
// rows begin at multiples of 16 bytes.
template <int kBM, int kBN, int kBK, int kThreads, bool kAligned>
class KTileLoader {
 public:
  static_assert(kBM * kBK % (4 * kThreads) == 0 && kThreads % (kBK / 4) == 0);
  static_assert(kBK * kBN % (4 * kThreads) == 0 && kThreads % (kBN / 4) == 0);

  __device__ KTileLoader(const Problem& p, std::int64_t first_row, std::int64_t first_column,
                         const float* a, const float* b)
      : n_(p.n),
        k_(p.k),
        k_left_(static_cast<int>(p.k)),
        rows_left_(left(p.m, first_row + row())),
        columns_left_(left(p.n, first_column + column())),
        a_(a + (first_row + row()) * k_ + threadIdx.x % kAChunks * 4),
        b_(b + threadIdx.x / kBChunks * n_ + first_column + column()) {}

  __device__ bool more() const { return k_left_ > 0; }
  // Loads the next K tile from global memory; zeros beyond the edges.
  __device__ void load() {
    const int a_left = k_left_ - static_cast<int>(threadIdx.x % kAChunks * 4);
    const int b_left = k_left_ - static_cast<int>(threadIdx.x / kBChunks);
#pragma unroll
    for (int i = 0; i < kA; ++i)
      a_part_[i] = i * kARows < rows_left_ ? four(a_ + i * kARows * k_, a_left) : zeros();
#pragma unroll
    for (int i = 0; i < kB; ++i)
      b_part_[i] = i * kBRows < b_left ? four(b_ + i * kBRows * n_, columns_left_) : zeros();
    a_ += kBK;
    b_ += kBK * n_;
    k_left_ -= kBK;
  }

  __device__ void store(SharedKTile<kBM, kBN, kBK>& to) const {
    const int row = threadIdx.x / kAChunks, k = threadIdx.x % kAChunks * 4;
#pragma unroll
    for (int i = 0; i < kA; ++i) {
      to.a[k][row + i * kARows] = a_part_[i].x;
      to.a[k + 1][row + i * kARows] = a_part_[i].y;
      to.a[k + 2][row + i * kARows] = a_part_[i].z;
      to.a[k + 3][row + i * kARows] = a_part_[i].w;
    }
#pragma unroll
    for (int i = 0; i < kB; ++i)
      *reinterpret_cast<float4*>(
          &to.b[threadIdx.x / kBChunks + i * kBRows][threadIdx.x % kBChunks * 4]) = b_part_[i];
  }

 private:
  static constexpr int kAChunks = kBK / 4, kBChunks = kBN / 4;  // of 16 bytes in a row
  static constexpr int kARows = kThreads / kAChunks, kBRows = kThreads / kBChunks;  // at a time
  static constexpr int kA = kBM / kARows, kB = kBK / kBRows;

  static __device__ int row() { return threadIdx.x / kAChunks; }
  static __device__ int column() { return threadIdx.x % kBChunks * 4; }
  // Elements left from `from` on, capped so that it fits an int.
  static __device__ int left(std::int64_t size, std::int64_t from) {
    return static_cast<int>(min(size - from, static_cast<std::int64_t>(kBM + kBN + kBK)));
  }
  static __device__ float4 zeros() { return make_float4(0, 0, 0, 0); }
  // `left`: elements until the end of the row.
  static __device__ float4 four(const float* from, int left) {
    if constexpr (kAligned)
      return left > 0 ? *reinterpret_cast<const float4*>(from) : zeros();
    else
      return make_float4(left > 0 ? from[0] : 0, left > 1 ? from[1] : 0, left > 2 ? from[2] : 0,
                         left > 3 ? from[3] : 0);
  }

  std::int64_t n_, k_;
  int k_left_, rows_left_, columns_left_;
  const float *a_, *b_;
  float4 a_part_[kA], b_part_[kB];
};

// The operands of one step along k for a thread tile: groups of four consecutive rows and columns,
// kRowStride and kColumnStride apart.
template <int kTM, int kTN, int kRowStride, int kColumnStride>
struct Fragments {
  float a[kTM], b[kTN];

  // Loads them from rows of shared memory, at the thread's first row and column.
  __device__ void load(const float* a_row, const float* b_row) {
#pragma unroll
    for (int i = 0; i < kTM; i += 4)
      *reinterpret_cast<float4*>(a + i) =
          *reinterpret_cast<const float4*>(a_row + i / 4 * kRowStride);
#pragma unroll
    for (int j = 0; j < kTN; j += 4)
      *reinterpret_cast<float4*>(b + j) =
          *reinterpret_cast<const float4*>(b_row + j / 4 * kColumnStride);
  }

  __device__ void multiply(float (&acc)[kTM][kTN]) const {
#pragma unroll
    for (int i = 0; i < kTM; ++i)
#pragma unroll
      for (int j = 0; j < kTN; ++j) acc[i][j] += a[i] * b[j];
  }
};

// Shared-memory wavefronts of one K tile: its stores, and the loads of all warps, whose lanes are
// at down(lane) and across(lane) in units of four rows and columns.
template <int kBM, int kBN, int kBK, int kTM, int kTN, typename Down, typename Across>
constexpr int k_tile_wavefronts(Down down, Across across) {
  constexpr int kWarps = kBM / kTM * kBN / kTN / kLanes, kChunks = kBK / 4, kBytes = sizeof(float);
  const auto transposed = [](int lane) { return lane % kChunks * 4 * (kBM + 4) + lane / kChunks; };
  const auto in_fours = [](auto where) { return [=](int lane) { return 4 * where(lane); }; };
  const int stores =
      kBM * kBK / kLanes * wavefronts(kBytes, transposed) +
      kBK * kBN / 4 / kLanes * wavefronts(kBytes, in_fours([](int lane) { return lane; }), 4);
  return stores + kWarps * kBK *
                      (kTM / 4 * wavefronts(kBytes, in_fours(down), 4) +
                       kTN / 4 * wavefronts(kBytes, in_fours(across), 4));
}

// Stores a thread tile whose first element is C[row, column].
template <bool kAligned, int kRowStride, int kColumnStride, int kTM, int kTN>
__device__ void store_results(const Problem& p, std::int64_t row, std::int64_t column,
                              const float (&acc)[kTM][kTN], float* c) {
#pragma unroll
  for (int i = 0; i < kTM; ++i) {
    const std::int64_t at = row + i / 4 * kRowStride + i % 4;
    if (at >= p.m) return;
#pragma unroll
    for (int j = 0; j < kTN; j += 4) {
      const std::int64_t from = column + j / 4 * kColumnStride;
      float* to = c + at * p.n + from;
      if constexpr (kAligned) {
        if (from < p.n)
          *reinterpret_cast<float4*>(to) =
              make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
      } else {
#pragma unroll
        for (int part = 0; part < 4; ++part)
          if (from + part < p.n) to[part] = acc[i][j + part];
      }
    }
  }
}

// Block tile kBM x kBN with K tiles of kBK, warp tile kWM x kWN, thread tile 8 x 8: 4 or 8 lanes
// along m and 8 or 4 along n.
template <int kBM_, int kBN_, int kBK_, int kWM_, int kWN_>
struct WarpTiling {
  static constexpr int kBM = kBM_, kBN = kBN_, kBK = kBK_, kWM = kWM_, kWN = kWN_;
  static constexpr int kTM = 8, kTN = 8;
  static constexpr int kLanesAcross = kWN / kTN, kWarpsAcross = kBN / kWN;
  static constexpr int kThreads = 32 * (kBM / kWM) * kWarpsAcross;
  static constexpr int kRowStride = kWM / 2, kColumnStride = kWN / 2;
  static_assert(kWM * kWN == 32 * kTM * kTN, "32 thread tiles must fill the warp tile");
  static_assert(kBM % kWM == 0 && kBN % kWN == 0, "warp tiles must divide the block tile");

  using Lanes = PairedLanes<kLanesAcross>;
  using Grid = TileGrid<kBM, kBN>;
  using KTile = SharedKTile<kBM, kBN, kBK>;
  template <bool kAligned>
  using Loader = KTileLoader<kBM, kBN, kBK, kThreads, kAligned>;
  using Fragments = Fragments<kTM, kTN, kRowStride, kColumnStride>;

  // The first row and column of the thread tile in the block tile.
  static __device__ int row() {
    return threadIdx.x / 32 / kWarpsAcross * kWM + Lanes::down(threadIdx.x % 32) * 4;
  }
  static __device__ int column() {
    return threadIdx.x / 32 % kWarpsAcross * kWN + Lanes::across(threadIdx.x % 32) * 4;
  }
  template <bool kAligned>
  static __device__ void store(const Problem& p, const Grid& grid, const float (&acc)[kTM][kTN],
                               float* c) {
    store_results<kAligned, kRowStride, kColumnStride>(p, grid.first_row() + row(),
                                                       grid.first_column() + column(), acc, c);
  }

  static Traffic traffic(const Problem& p, const Device&) {
    constexpr int kWavefronts =
        k_tile_wavefronts<kBM, kBN, kBK, kTM, kTN>(Lanes::down, Lanes::across);
    return tile_traffic(p, kBM, kBN, kBK, kWavefronts);
  }
  static std::vector<Parameter> parameters() {
    return numbers({{"BM", kBM}, {"BN", kBN}, {"BK", kBK}, {"WM", kWM}, {"WN", kWN}});
  }
};

}  // namespace gemm::simt
