// What one access of a warp costs, from what its lanes ask for: sectors of global memory,
// wavefronts of shared memory.
#pragma once

#include <algorithm>
#include <array>

namespace gemm::simt {

constexpr int kLanes = 32;  // of a warp

// Where a lane lies in its warp's tile of kAcross lanes along n and 32 / kAcross along m. Lanes
// pair up both in their rows, where they load A, and in their columns, where they load B: each with
// the next in one of the two and with the next but one in the other.
template <int kAcross>
struct PairedLanes {
  static_assert(kAcross == 4 || kAcross == 8 || kAcross == 16);
  static constexpr int of_16(int lane) { return lane / 4 * 2 + lane % 2; }
  static constexpr int of_8(int lane) { return lane / 8 * 2 + lane % 2; }
  static constexpr int of_4(int lane) { return lane / 2 % 4; }
  static constexpr int of_2(int lane) { return lane / 2 % 2; }
  static constexpr int across(int lane) {
    return kAcross == 16 ? of_16(lane) : kAcross == 8 ? of_8(lane) : of_4(lane);
  }
  static constexpr int down(int lane) {
    return kAcross == 16 ? of_2(lane) : kAcross == 8 ? of_4(lane) : of_8(lane);
  }
};

// Sectors of 32 bytes in global memory, where the addresses of neighbouring lanes lie `stride`
// bytes apart: one if it is 0, and no more than one for each lane. `lanes` is a mean where warps
// at an edge have fewer.
constexpr double sectors(double stride, double lanes = kLanes) {
  return std::clamp(stride * lanes / 32, 1.0, lanes);
}

// Wavefronts of shared memory, which has 32 banks that each give one word of 4 bytes in one of
// them. Lane l asks for `count` elements of so many bytes from element first(l) on. Lanes are
// served together as far as they ask for 128 bytes, 8 of them if each asks for 16, or twice as many
// if lanes pair up on the same address, each with its next or each with its next but one; and those
// served together need as many wavefronts as the most asked-for bank has different words to give.
// Counted so on an H200 (l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld).
template <typename First>
constexpr int wavefronts(int element_bytes, First first, int count = 1) {
  constexpr int kBanks = 32, kWordBytes = 4, kMostWords = 4;  // of an access of 16 bytes
  const int words = (count * element_bytes + kWordBytes - 1) / kWordBytes;
  const auto pair_up = [&](int apart) {
    for (int lane = 0; lane < kLanes; ++lane)
      if (first(lane) != first(lane ^ apart)) return false;
    return true;
  };
  const int together = std::min(kLanes, kLanes / words * (pair_up(1) || pair_up(2) ? 2 : 1));
  int all = 0;
  for (int from = 0; from < kLanes; from += together) {
    std::array<int, kLanes * kMostWords> asked{};
    auto end = asked.begin();
    for (int lane = from; lane < from + together; ++lane) {
      const int begin = first(lane) * element_bytes, stop = begin + count * element_bytes;
      for (int word = begin / kWordBytes; word * kWordBytes < stop; ++word) *end++ = word;
    }
    std::sort(asked.begin(), end);
    end = std::unique(asked.begin(), end);
    std::array<int, kBanks> of_bank{};
    std::for_each(asked.begin(), end, [&](int word) { ++of_bank[word % kBanks]; });
    all += *std::max_element(of_bank.begin(), of_bank.end());
  }
  return all;
}

}  // namespace gemm::simt
