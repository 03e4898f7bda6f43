// Tensor cores through `wmma`, as in tutorials on mixed precision (NVIDIA, "Programming tensor
// cores in CUDA 9", 2017, and the CUDA samples): 8 warps, each with 64 x 32 of a block tile of 128
// x 128, in fragments of 16 x 16 with FP32 accumulators. The next K tiles of A and B are loaded
// during the MMAs. C goes through shared memory, since the mapping of elements to lanes is
// unspecified. Written from scratch; any m, n and k. BF16 requires compute capability 8.0, FP16
// 7.0.
//
// Usage:
//   gemm_bench --gemm_kernel=wmma_tile.cu --gemm_precisions=bf16
#include <mma.h>

#include "gemm_kernel.h"

namespace wmma = nvcuda::wmma;
using gemm::Input;
using gemm::Output;
static_assert(sizeof(Input) == 2 && sizeof(Output) == 2, "give --gemm_precisions=bf16 or f16");

constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 32;
constexpr int kWarpM = 64, kWarpN = 32, kWarpsAcross = kBlockN / kWarpN;
constexpr int kWarps = kBlockM / kWarpM * kWarpsAcross, kThreads = 32 * kWarps;
constexpr int kSide = 16, kDown = kWarpM / kSide, kAcross = kWarpN / kSide;
constexpr int kEight = 8;  // elements, 16 bytes

// Eight elements of a row, zeros outside the matrix. Vector loads if rows are multiples of 16
// bytes.
uint4 load_eight(const Input* matrix, long long rows, long long columns, long long row,
                 long long column) {
  if (row >= rows || column >= columns) return uint4{};
  const Input* from = matrix + row * columns + column;
  if (columns % kEight == 0) return *reinterpret_cast<const uint4*>(from);
  alignas(16) Input eight[kEight] = {};
  for (int i = 0; i < kEight; ++i)
    if (column + i < columns) eight[i] = from[i];
  return *reinterpret_cast<const uint4*>(eight);
}

void store_eight(const float* acc, Output* to, long long columns, long long column) {
  alignas(16) Output eight[kEight];
  for (int i = 0; i < kEight; ++i) eight[i] = Output(acc[i]);
  if (columns % kEight == 0) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(eight);
    return;
  }
  for (int i = 0; i < kEight; ++i)
    if (column + i < columns) to[i] = eight[i];
}

// A K tile in shared memory. Rows are padded by 16 bytes: rows 2^n bytes apart would have bank
// conflicts.
template <int kRows, int kColumns>
struct KTile {
  static constexpr int kPitch = kColumns + kEight, kAcross = kColumns / kEight;
  static constexpr int kCount = kRows * kAcross / kThreads;
  static_assert(kRows * kAcross % kThreads == 0);
  alignas(32) Input elements[kRows * kPitch];

  // A thread's part of it, in registers.
  struct Loader {
    uint4 eights[kCount];

    void load(const Input* matrix, long long rows, long long columns, long long first_row,
              long long first_column) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int index = i * kThreads + threadIdx.x;
        eights[i] = load_eight(matrix, rows, columns, first_row + index / kAcross,
                               first_column + index % kAcross * kEight);
      }
    }
  };

  void store(const Loader& loader) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int index = i * kThreads + threadIdx.x;
      *reinterpret_cast<uint4*>(elements + index / kAcross * kPitch + index % kAcross * kEight) =
          loader.eights[i];
    }
  }
};

__global__ void __launch_bounds__(kThreads)
    wmma_tile(const Input* a, const Input* b, Output* c, long long m, long long n, long long k) {
  constexpr int kStagingPitch = kSide + 4;
  __shared__ KTile<kBlockM, kBlockK> a_tile;
  __shared__ KTile<kBlockK, kBlockN> b_tile;
  alignas(32) __shared__ float staging[kWarps][kSide * kStagingPitch];
  const long long blocks_across = (n + kBlockN - 1) / kBlockN;
  const long long first_row = blockIdx.x / blocks_across * kBlockM;
  const long long first_column = blockIdx.x % blocks_across * kBlockN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / kWarpsAcross * kWarpM, warp_column = warp % kWarpsAcross * kWarpN;

  wmma::fragment<wmma::accumulator, kSide, kSide, kSide, float> acc[kDown][kAcross];
  for (auto& row : acc)
    for (auto& fragment : row) wmma::fill_fragment(fragment, 0);

  decltype(a_tile)::Loader a_loader;
  decltype(b_tile)::Loader b_loader;
  a_loader.load(a, m, k, first_row, 0);
  b_loader.load(b, k, n, 0, first_column);
  for (long long step = 0; step < k; step += kBlockK) {
    a_tile.store(a_loader);
    b_tile.store(b_loader);
    __syncthreads();
    if (step + kBlockK < k) {
      a_loader.load(a, m, k, first_row, step + kBlockK);
      b_loader.load(b, k, n, step + kBlockK, first_column);
    }
#pragma unroll
    for (int l = 0; l < kBlockK; l += kSide) {
      wmma::fragment<wmma::matrix_b, kSide, kSide, kSide, Input, wmma::row_major>
          b_fragments[kAcross];
#pragma unroll
      for (int j = 0; j < kAcross; ++j)
        wmma::load_matrix_sync(b_fragments[j],
                               b_tile.elements + l * b_tile.kPitch + warp_column + j * kSide,
                               b_tile.kPitch);
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
        wmma::fragment<wmma::matrix_a, kSide, kSide, kSide, Input, wmma::row_major> a_fragment;
        wmma::load_matrix_sync(a_fragment,
                               a_tile.elements + (warp_row + i * kSide) * a_tile.kPitch + l,
                               a_tile.kPitch);
#pragma unroll
        for (int j = 0; j < kAcross; ++j)
          wmma::mma_sync(acc[i][j], a_fragment, b_fragments[j], acc[i][j]);
      }
    }
    __syncthreads();
  }

  // A lane stores eight elements of a row.
  const float* mine = staging[warp] + lane / 2 * kStagingPitch + lane % 2 * kEight;
#pragma unroll
  for (int i = 0; i < kDown; ++i)
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      wmma::store_matrix_sync(staging[warp], acc[i][j], kStagingPitch, wmma::mem_row_major);
      __syncwarp();
      const long long row = first_row + warp_row + i * kSide + lane / 2;
      const long long column = first_column + warp_column + j * kSide + lane % 2 * kEight;
      if (row < m && column < n) store_eight(mine, c + row * n + column, n, column);
      __syncwarp();
    }
}

auto launch(gemm::Call p) {
  return gemm::launch<wmma_tile>({gemm::blocks(p.m, kBlockM) * gemm::blocks(p.n, kBlockN)},
                                 {kThreads}, p.a, p.b, p.c, p.m, p.n, p.k);
}
