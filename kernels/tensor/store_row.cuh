// A row of 16-bit elements from registers to an address of any alignment.
#pragma once

#include <cstdint>

namespace gemm::tensor {

// Stores elements `first` and first + 1 of a row, or first + 1 and first + 2 where these are
// aligned to a word: `next` has elements first + 2 and first + 3. Element 0 is never left out,
// `count` and later ones always. A thread for each even `first` stores the row.
__device__ inline void store_pair(std::uint16_t* row, int first, std::uint32_t pair,
                                  std::uint32_t next, int count) {
  const int odd = static_cast<int>(reinterpret_cast<std::uintptr_t>(row) / 2 % 2);
  if (odd != 0 && first == 0) row[0] = static_cast<std::uint16_t>(pair);
  if (odd != 0) pair = __funnelshift_r(pair, next, 16);
  first += odd;
  if (first + 1 < count)
    *reinterpret_cast<std::uint32_t*>(row + first) = pair;
  else if (first < count)
    row[first] = static_cast<std::uint16_t>(pair);
}

// A warp stores the first `count` of 64 * kPairs consecutive elements; pairs[i] has elements
// 64 i + 2 lane and the next one. Long rows are faster: at both ends sectors are stored in part.
// 1 <= count <= 64 * kPairs.
template <int kPairs>
__device__ void store_row(std::uint16_t* to, const std::uint32_t (&pairs)[kPairs], int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const std::uint32_t first_of_next = pairs[i + 1 < kPairs ? i + 1 : i];
    const std::uint32_t next =
        __shfl_sync(~0U, lane == 0 ? first_of_next : pairs[i], (lane + 1) % 32);
    store_pair(to, 64 * i + 2 * lane, pairs[i], next, count);
  }
}

}  // namespace gemm::tensor
