// Tensor cores through `wmma`, as in tutorials on mixed precision (NVIDIA, "Programming tensor
// cores in CUDA 9", 2017, and the CUDA samples): 8 warps, each with 64 x 32 of a block's 128 x 128
// in fragments of 16 x 16, summed in FP32. The next slices of A and B are fetched while the warps
// multiply. C goes through shared memory: which lane has which element of a fragment is not told.
// Written anew; any m, n and k. BF16 needs 8.0, FP16 is for 7.0 and later.
//
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

// Eight elements of a row, zeros where the matrix has ended. Rows begin at multiples of 16 bytes if
// they are multiples of 16 bytes long.
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

void store_eight(const float* sums, Output* to, long long columns, long long column) {
  alignas(16) Output eight[kEight];
  for (int i = 0; i < kEight; ++i) eight[i] = Output(sums[i]);
  if (columns % kEight == 0) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(eight);
    return;
  }
  for (int i = 0; i < kEight; ++i)
    if (column + i < columns) to[i] = eight[i];
}

// A slice in shared memory. Its rows are 16 bytes longer than needed: 2^n bytes apart they would
// lie in the same banks.
template <int kRows, int kColumns>
struct Slice {
  static constexpr int kPitch = kColumns + kEight, kAcross = kColumns / kEight;
  static constexpr int kCount = kRows * kAcross / kThreads;
  static_assert(kRows * kAcross % kThreads == 0);
  alignas(32) Input elements[kRows * kPitch];

  // What a thread holds of it on the way there.
  struct Share {
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

  void store(const Share& share) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int index = i * kThreads + threadIdx.x;
      *reinterpret_cast<uint4*>(elements + index / kAcross * kPitch + index % kAcross * kEight) =
          share.eights[i];
    }
  }
};

__global__ void __launch_bounds__(kThreads)
    wmma_tile(const Input* a, const Input* b, Output* c, long long m, long long n, long long k) {
  constexpr int kSumPitch = kSide + 4;
  __shared__ Slice<kBlockM, kBlockK> a_slice;
  __shared__ Slice<kBlockK, kBlockN> b_slice;
  alignas(32) __shared__ float sums_of_warps[kWarps][kSide * kSumPitch];
  const long long blocks_across = (n + kBlockN - 1) / kBlockN;
  const long long first_row = blockIdx.x / blocks_across * kBlockM;
  const long long first_column = blockIdx.x % blocks_across * kBlockN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / kWarpsAcross * kWarpM, warp_column = warp % kWarpsAcross * kWarpN;

  wmma::fragment<wmma::accumulator, kSide, kSide, kSide, float> sums[kDown][kAcross];
  for (auto& row : sums)
    for (auto& fragment : row) wmma::fill_fragment(fragment, 0);

  decltype(a_slice)::Share a_share;
  decltype(b_slice)::Share b_share;
  a_share.load(a, m, k, first_row, 0);
  b_share.load(b, k, n, 0, first_column);
  for (long long step = 0; step < k; step += kBlockK) {
    a_slice.store(a_share);
    b_slice.store(b_share);
    __syncthreads();
    if (step + kBlockK < k) {
      a_share.load(a, m, k, first_row, step + kBlockK);
      b_share.load(b, k, n, step + kBlockK, first_column);
    }
#pragma unroll
    for (int l = 0; l < kBlockK; l += kSide) {
      wmma::fragment<wmma::matrix_b, kSide, kSide, kSide, Input, wmma::row_major> from_b[kAcross];
#pragma unroll
      for (int j = 0; j < kAcross; ++j)
        wmma::load_matrix_sync(from_b[j],
                               b_slice.elements + l * b_slice.kPitch + warp_column + j * kSide,
                               b_slice.kPitch);
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
        wmma::fragment<wmma::matrix_a, kSide, kSide, kSide, Input, wmma::row_major> from_a;
        wmma::load_matrix_sync(
            from_a, a_slice.elements + (warp_row + i * kSide) * a_slice.kPitch + l, a_slice.kPitch);
#pragma unroll
        for (int j = 0; j < kAcross; ++j) wmma::mma_sync(sums[i][j], from_a, from_b[j], sums[i][j]);
      }
    }
    __syncthreads();
  }

  // A lane takes eight elements of a row.
  const float* mine = sums_of_warps[warp] + lane / 2 * kSumPitch + lane % 2 * kEight;
#pragma unroll
  for (int i = 0; i < kDown; ++i)
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      wmma::store_matrix_sync(sums_of_warps[warp], sums[i][j], kSumPitch, wmma::mem_row_major);
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
