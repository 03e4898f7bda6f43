// A row of 16-bit elements from registers to an address of any alignment.
#pragma once

#include <cstdint>

namespace gemm::tensor {

// A warp stores the first `count` of 64 consecutive 16-bit elements, of which each lane has two, in
// words that are aligned wherever `to` is. 1 <= count <= 64.
__device__ inline void store_row(std::uint16_t* to, std::uint32_t pair, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int odd = static_cast<int>(reinterpret_cast<std::uintptr_t>(to) / 2 % 2);
  const std::uint32_t next = __shfl_down_sync(~0U, pair, 1);
  if (odd != 0) {
    if (lane == 0) to[0] = static_cast<std::uint16_t>(pair);
    pair = __funnelshift_r(pair, next, 16);
  }
  const int first = 2 * lane + odd;
  if (first + 1 < count)
    *reinterpret_cast<std::uint32_t*>(to + first) = pair;
  else if (first < count)
    to[first] = static_cast<std::uint16_t>(pair);
}

}  // namespace gemm::tensor
