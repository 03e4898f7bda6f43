// The cost of one memory access of a warp, from the addresses of its lanes: 32-byte sectors in
// global memory, wavefronts in shared memory.
#pragma once

#include <algorithm>
#include <array>

namespace gemm::simt {

constexpr int kLanes = 32;  // of a warp

// The position of a lane in its warp's tile of kAcross lanes along n and 32 / kAcross along m.
// Lanes are paired both along rows, for loads of A, and along columns, for loads of B: a lane
// shares its address with the next lane in one direction and with the next but one in the other.
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
  // The lane at a position.
  static constexpr int lane_at(int down, int across) {
    static_assert(kAcross == 8);
    return across / 2 * 8 + down * 2 + across % 2;
  }
};
static_assert([] {
  using Lanes = PairedLanes<8>;
  for (int lane = 0; lane < kLanes; ++lane)
    if (Lanes::lane_at(Lanes::down(lane), Lanes::across(lane)) != lane) return false;
  return true;
}());

// Sectors of global memory that a warp touches, if consecutive lanes are `stride` bytes apart: one
// if the stride is 0, at most one per lane. `lanes` is the mean number of active lanes where warps
// at an edge have fewer.
constexpr double sectors(double stride, double lanes = kLanes) {
  return std::clamp(stride * lanes / 32, 1.0, lanes);
}

// Wavefronts of a shared-memory access. Each of the 32 banks delivers one 4-byte word per
// wavefront. Lane l accesses `count` elements from element first(l) on. Lanes are served together
// up to 128 bytes: 8 lanes at 16 bytes each, or twice as many if lanes pair up on one address, each
// with the next or each with the next but one. Each such group takes as many wavefronts as its most
// conflicted bank has different words. Verified on an H200
// (l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld).
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
    std::array<int, kLanes * kMostWords> words_read{};
    auto end = words_read.begin();
    for (int lane = from; lane < from + together; ++lane) {
      const int begin = first(lane) * element_bytes, stop = begin + count * element_bytes;
      for (int word = begin / kWordBytes; word * kWordBytes < stop; ++word) *end++ = word;
    }
    std::sort(words_read.begin(), end);
    end = std::unique(words_read.begin(), end);
    std::array<int, kBanks> of_bank{};
    std::for_each(words_read.begin(), end, [&](int word) { ++of_bank[word % kBanks]; });
    all += *std::max_element(of_bank.begin(), of_bank.end());
  }
  return all;
}

}  // namespace gemm::simt
