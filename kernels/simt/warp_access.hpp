// What one access of a warp costs, from what its lanes ask for: sectors of global memory,
// wavefronts of shared memory.
#pragma once

#include <algorithm>
#include <array>

namespace gemm::simt {

constexpr int kLanes = 32;  // of a warp

// Sectors of 32 bytes in global memory, where the addresses of neighbouring lanes lie `stride`
// bytes apart: one if it is 0, and no more than one for each lane. `lanes` is a mean where warps
// at an edge have fewer.
constexpr double sectors(double stride, double lanes = kLanes) {
  return std::clamp(stride * lanes / 32, 1.0, lanes);
}

// Wavefronts of shared memory, which has 32 banks that each give one word of 4 bytes in one of
// them: as many as the most asked-for bank has different words to give. Lane l asks for `count`
// elements of so many bytes from element first(l) on.
template <typename First>
constexpr int wavefronts(int element_bytes, First first, int count = 1) {
  constexpr int kBanks = 32, kWordBytes = 4, kMostWords = 4;  // of an access of 16 bytes
  std::array<int, kLanes * kMostWords> words{};
  auto end = words.begin();
  for (int lane = 0; lane < kLanes; ++lane) {
    const int from = first(lane) * element_bytes, to = from + count * element_bytes;
    for (int word = from / kWordBytes; word * kWordBytes < to; ++word) *end++ = word;
  }
  std::sort(words.begin(), end);
  end = std::unique(words.begin(), end);
  std::array<int, kBanks> asked{};
  std::for_each(words.begin(), end, [&](int word) { ++asked[word % kBanks]; });
  return *std::max_element(asked.begin(), asked.end());
}

}  // namespace gemm::simt
