// Stores 4 rows x 32 columns of a row-major FP32 matrix whose rows do not begin at multiples of 16
// bytes. Lanes exchange their elements first, so that a warp stores 128 contiguous bytes of a row.
// Stored as lanes hold them, every sector would be written four times, in parts: NOTES.md.
#pragma once

#include <cstdint>

#include "kernels/parts/warp_access.hpp"

namespace gemm::simt {

// x[i] becomes x[(i + by) % 4].
__device__ inline void rotate(float (&x)[4], int by) {
  const bool one = by & 1, two = by & 2;
  const float first = x[0];
#pragma unroll
  for (int i = 0; i < 4; ++i) x[i] = !one ? x[i] : i < 3 ? x[i + 1] : first;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float low = x[i];
    x[i] = two ? x[i + 2] : low;
    x[i + 2] = two ? low : x[i + 2];
  }
}

// Called by all lanes of a warp. A lane of PairedLanes<8> has elements 4 across to 4 across + 3 of
// patch row `down`, which is row `row` + down * `apart` of C, m x n. Elements outside C are
// dropped.
template <typename Index>
__device__ void store_patch(float* c, Index m, Index n, Index row, int apart, Index column,
                            const float (&four)[4]) {
  using Lanes = PairedLanes<8>;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  float given[4] = {four[0], four[1], four[2], four[3]}, taken[4];
  rotate(given, Lanes::down(lane));
#pragma unroll
  for (int i = 0; i < 4; ++i)  // column `lane` of patch row (lane + i) % 4
    taken[i] = __shfl_sync(~0U, given[(4 - i) % 4], Lanes::lane_at((lane + i) % 4, lane / 4));
  rotate(taken, -lane);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (row + i * apart < m && column + lane < n)
      c[std::int64_t{row + i * apart} * n + column + lane] = taken[i];
}

}  // namespace gemm::simt
