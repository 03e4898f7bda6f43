// A row of 16-bit elements from registers to an address of any alignment.
#pragma once

#include <cstdint>

namespace gemm::tensor {

// A warp stores the first `count` of 64 * kPairs consecutive 16-bit elements, in words that are
// aligned wherever `to` is; pairs[i] has elements 64 i + 2 lane and the next one. Long rows are
// faster: at both ends sectors are stored in part. 1 <= count <= 64 * kPairs.
template <int kPairs>
__device__ void store_row(std::uint16_t* to, const std::uint32_t (&pairs)[kPairs], int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int odd = static_cast<int>(reinterpret_cast<std::uintptr_t>(to) / 2 % 2);
  if (odd != 0 && lane == 0) to[0] = static_cast<std::uint16_t>(pairs[0]);
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const std::uint32_t first_of_next = pairs[i + 1 < kPairs ? i + 1 : i];
    const std::uint32_t next =
        __shfl_sync(~0U, lane == 0 ? first_of_next : pairs[i], (lane + 1) % 32);
    const std::uint32_t word = odd != 0 ? __funnelshift_r(pairs[i], next, 16) : pairs[i];
    const int first = 64 * i + 2 * lane + odd;
    if (first + 1 < count)
      *reinterpret_cast<std::uint32_t*>(to + first) = word;
    else if (first < count)
      to[first] = static_cast<std::uint16_t>(word);
  }
}

}  // namespace gemm::tensor
