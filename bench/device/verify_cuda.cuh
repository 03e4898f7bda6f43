// Whether a C on the GPU is right: the FP64 product of its operands, the judgement of every
// element, and Freivalds' check of every row (verification/freivalds.hpp).
#pragma once

#include <cstdint>

#include "bench/device/element_types.cuh"
#include "bench/verification/freivalds.hpp"
#include "bench/verification/verdict.hpp"
#include "kernels/layout.hpp"

namespace gemm::bench {

// 64 x 64 results a block, 4 x 4 a thread, in FP64; both sums in one pass over A and B.
constexpr int kTile = 64, kDepth = 16, kThreads = 256;

template <typename T>
__global__ void reference_kernel(Problem p, const T* a, const T* b, double* expected,
                                 double* magnitude) {
  __shared__ double a_tile[kDepth][kTile + 1];
  __shared__ double b_tile[kDepth][kTile];
  const std::int64_t tile_columns = (p.n + kTile - 1) / kTile;
  const std::int64_t row0 = blockIdx.x / tile_columns * kTile;
  const std::int64_t column0 = blockIdx.x % tile_columns * kTile;
  const int x = threadIdx.x % 16;
  const int y = threadIdx.x / 16;
  double sum[4][4] = {}, size[4][4] = {};
  for (std::int64_t step = 0; step < p.k; step += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      const std::int64_t row = row0 + i / kDepth, a_k = step + i % kDepth;
      a_tile[i % kDepth][i / kDepth] =
          row < p.m && a_k < p.k ? as_double(a[index_in_a(p, row, a_k)]) : 0.0;
      const std::int64_t column = column0 + i % kTile, b_k = step + i / kTile;
      b_tile[i / kTile][i % kTile] =
          column < p.n && b_k < p.k ? as_double(b[index_in_b(p, b_k, column)]) : 0.0;
    }
    __syncthreads();
    for (int l = 0; l < kDepth; ++l)
      for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 4; ++s) {
          const double left = a_tile[l][y + 16 * r], right = b_tile[l][x + 16 * s];
          sum[r][s] = fma(left, right, sum[r][s]);
          size[r][s] = fma(fabs(left), fabs(right), size[r][s]);
        }
    __syncthreads();
  }
  for (int r = 0; r < 4; ++r)
    for (int s = 0; s < 4; ++s) {
      const std::int64_t row = row0 + y + 16 * r, column = column0 + x + 16 * s;
      if (row >= p.m || column >= p.n) continue;
      expected[row * p.n + column] = sum[r][s];
      magnitude[row * p.n + column] = size[r][s];
    }
}

constexpr int kJudges = 256;  // threads a block; one partial verdict each block

// The verdicts of a block's threads as one.
__device__ inline void merge_block(const Verdict& mine, Verdict* verdicts) {
  __shared__ Verdict shared[kJudges];
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kJudges / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x].merge(shared[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) verdicts[blockIdx.x] = shared[0];
}

template <typename T>
__global__ void judge_kernel(std::int64_t count, const T* c, const double* expected,
                             const double* magnitude, Bound bound, Verdict* verdicts) {
  Verdict verdict;
  const std::int64_t stride = std::int64_t{gridDim.x} * kJudges;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kJudges + threadIdx.x; i < count; i += stride)
    verdict.add(i, as_double(c[i]), expected[i], magnitude[i], bound);
  merge_block(verdict, verdicts);
}

// A warp for each row, in blocks of so many threads.
constexpr int kWarp = 32, kRowThreads = 256;
inline unsigned row_blocks(std::int64_t rows) {
  return static_cast<unsigned>((rows * kWarp + kRowThreads - 1) / kRowThreads);
}
__device__ inline std::int64_t warp_index() {
  return (std::int64_t{blockIdx.x} * kRowThreads + threadIdx.x) / kWarp;
}

__device__ inline double sum_of_warp(double value) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2)
    value += __shfl_xor_sync(0xffffffff, value, lanes);
  return value;
}
__device__ inline RowCheck sum_of_warp(RowCheck row) {
  for (double& sum : row.sums) sum = sum_of_warp(sum);
  row.size = sum_of_warp(row.size);
  return row;
}

struct AsDouble {
  template <typename T>
  __device__ double operator()(T value) const {
    return as_double(value);
  }
};

template <typename In>
__global__ void project_b_kernel(Problem p, const In* b, RowCheck* b_rows) {
  const std::int64_t l = warp_index();
  if (l >= p.k) return;
  RowCheck row = sum_of_warp(project_b(p, b, l, threadIdx.x % kWarp, kWarp, AsDouble{}));
  row.size = sqrt(row.size);
  if (threadIdx.x % kWarp == 0) b_rows[l] = row;
}

template <typename In>
__global__ void project_a_kernel(Problem p, const In* a, const RowCheck* b_rows, double share,
                                 RowCheck* rows) {
  const std::int64_t i = warp_index();
  if (i >= p.m) return;
  RowCheck row = sum_of_warp(project_a(p, a, b_rows, i, threadIdx.x % kWarp, kWarp, AsDouble{}));
  row.size *= share;
  if (threadIdx.x % kWarp == 0) rows[i] = row;
}

// How many rows of C are wrong, and the first of them.
struct WrongRows {
  unsigned long long count = 0, first = ~0ULL;
};

template <typename T>
__global__ void judge_rows_kernel(Problem p, const T* c, const RowCheck* rows, WrongRows* wrong) {
  const std::int64_t i = warp_index();
  if (i >= p.m) return;
  const RowCheck row = sum_of_warp(project_c(p, c, i, threadIdx.x % kWarp, kWarp, AsDouble{}));
  if (threadIdx.x % kWarp != 0 || row_is_right(row, rows[i])) return;
  atomicAdd(&wrong->count, 1ULL);
  atomicMin(&wrong->first, static_cast<unsigned long long>(i));
}

template <typename In>
__global__ void judge_exactly_kernel(Problem p, const In* a, const In* b, const Out<In>* c,
                                     Bound bound, std::int64_t wrong_row, Verdict* verdicts) {
  Verdict verdict;
  const std::int64_t stride = std::int64_t{gridDim.x} * kJudges;
  for (std::int64_t which = std::int64_t{blockIdx.x} * kJudges + threadIdx.x;
       which < exact_count(p, wrong_row); which += stride)
    add_exactly(verdict, p, a, b, c, bound, exact_index(p, which, wrong_row), AsDouble{});
  merge_block(verdict, verdicts);
}

}  // namespace gemm::bench
