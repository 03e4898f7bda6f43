// Negative control with a column of results for each thread: wrong in which rows of A it takes.
#include <cstdint>
#include <vector>

#include "bench/controls/wrong_launch.cuh"

namespace gemm::bench {
namespace {

constexpr int kRows = 128, kColumns = 128, kDepth = 8, kResults = kRows / kDepth;

// A block of 128 x 8 threads. kStride: how many rows of A are between the columns of results of
// two neighbouring threads.
template <int kStride>
__global__ void __launch_bounds__(1024)
    block_tile(Problem p, const float* a, const float* b, float* c) {
  __shared__ float a_tile[kRows][kDepth];
  __shared__ float b_tile[kDepth][kColumns];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t first_row = blockIdx.y * kRows;
  const std::int64_t column = blockIdx.x * kColumns + x;
  float sums[kResults] = {};
  for (std::int64_t first = 0; first < p.k; first += kDepth) {
    const int a_row = (y * kColumns + x) / kDepth, a_l = x % kDepth;
    const std::int64_t row = first_row + a_row;
    a_tile[a_row][a_l] = row < p.m && first + a_l < p.k ? a[row * p.k + first + a_l] : 0.0F;
    b_tile[y][x] = first + y < p.k && column < p.n ? b[(first + y) * p.n + column] : 0.0F;
    __syncthreads();
    for (int l = 0; l < kDepth; ++l)
      for (int i = 0; i < kResults; ++i) sums[i] += a_tile[y * kStride + i][l] * b_tile[l][x];
    __syncthreads();
  }
  for (int i = 0; i < kResults; ++i) {
    const std::int64_t row = first_row + y * kResults + i;
    if (row < p.m && column < p.n) c[row * p.n + column] = sums[i];
  }
}

template <int kStride>
Launch prepare(const Problem& p, const Device&, const Operands& o) {
  return launch<float>(block_tile<kStride>, dim3(pieces(p.n, kColumns), pieces(p.m, kRows)),
                       dim3(kColumns, kDepth), p, o);
}

}  // namespace

std::vector<NegativeControl> wrong_block_tile() {
  return {
      {.name = "WrongRowStride",
       .wrong = "counts the rows of A in steps of BK instead of NR: 72 of 128 are used",
       .source = "course report 2025",
       .problem = {128, 128, 64, Precision::f32},
       .caught_by = {Catcher::verdict},
       .spoiled = prepare<kDepth>,
       .twin = prepare<kResults>},
  };
}

}  // namespace gemm::bench
