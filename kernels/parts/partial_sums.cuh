// Stream-K fix-up: partial sums of tiles that are cut along k. A block whose piece does not start
// at k = 0 stores its accumulators in a workspace and raises a flag; the block that owns the start
// of the tile adds them to its own, always in the same order.
//
// Ranks count down against block indices (tile_schedule.hpp): a block waits only on blocks with
// lower indices, and these store their partial sums before they wait on any other. So there is no
// deadlock even if not all blocks are resident, as long as blocks start in order.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/device_array.cuh"
#include "kernels/parts/tile_schedule.hpp"

namespace gemm {

struct PartialSums {
  float* sums;   // per rank and block of a cluster; INT32 for INT8 operands, FP64 in two words
  int* arrived;  // their flags; all zero between launches
};

struct PartialSumsMemory {
  PartialSums partials;
  simt::DeviceMemory memory;
};

// So many sums and flags, or nothing if there are none: those of the launch that was prepared
// before, if they are as many, since launches follow one another. Throws std::runtime_error.
inline PartialSumsMemory partial_sums(std::int64_t sums, std::int64_t flags) {
  static struct {
    std::int64_t sums, flags;
    std::weak_ptr<void> memory;
  } last;
  if (flags == 0) return {};
  const auto at = [&](const simt::DeviceMemory& memory) {
    auto* first = static_cast<float*>(memory.get());
    return PartialSums{first, reinterpret_cast<int*>(first + sums)};
  };
  if (auto living = last.memory.lock(); living && last.sums == sums && last.flags == flags)
    return {at(simt::DeviceMemory(living)), simt::DeviceMemory(living)};
  const simt::DeviceMemory memory(static_cast<std::size_t>(sums + flags) * sizeof(float));
  last = {sums, flags, memory.weak()};
  const PartialSums partial = at(memory);
  cudaError_t status = cudaMemset(partial.arrived, 0, flags * sizeof(int));
  if (status == cudaSuccess)
    status = cudaStreamSynchronize(nullptr);  // kernels on other streams do not wait for the memset
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("cudaMemset: ") + cudaGetErrorString(status));
  return {partial, memory};
}

// The same; nothing if no tile is cut.
inline PartialSumsMemory partial_sums(const simt::TileSchedule& schedule, std::int64_t sums,
                                      std::int64_t flags) {
  return schedule.streamed() == 0 ? PartialSumsMemory{} : partial_sums(sums, flags);
}

#if __CUDA_ARCH__ >= 800

// The interface of the accumulators that store_partial and add_partials take:
//   partials_of(rank), flag_of(rank)   the workspace of this thread, the flag of its group of
//   threads kThreads                           distance between consecutive sums of a thread
//   is_leader(), sync()                one thread of the group; a barrier of the group
//   for_each_accumulator(f)            f(accumulator, index)

// Stores the accumulators of a rank's first piece and raises its flag.
template <typename Accumulators>
__device__ void store_partial(Accumulators& mine, int rank) {
  auto* to = mine.partials_of(rank);
  mine.for_each_accumulator(
      [&](auto& sum, int i) { __stcg(to + i * Accumulators::kThreads, sum); });
  __threadfence();
  mine.sync();
  if (mine.is_leader()) raise_flag(mine.flag_of(rank));
}

// Adds the partial sums of the next ranks that share the tile, of kAtOnce ranks at a time, which
// takes as many registers per accumulator.
template <int kAtOnce = 1, typename Accumulators>
__device__ void add_partials(Accumulators& mine, const simt::TileSchedule& schedule, int rank,
                             int tile) {
  const int end = (tile + 1) * schedule.k_tiles;
  int other = rank;
  do {
    int count = 1;
    while (count < kAtOnce && schedule.share(other + 1 + count) < end) ++count;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < count) wait_for_flag(mine.flag_of(other + 1 + lane));
    __syncwarp();
    const auto* from = mine.partials_of(other + 1);
    [[maybe_unused]] const auto stride = mine.partials_of(other + 2) - from;
    mine.for_each_accumulator([&](auto& sum, int i) {
      if constexpr (kAtOnce == 1) {
        sum += __ldcg(from + i * Accumulators::kThreads);
      } else {
        std::remove_reference_t<decltype(sum)> others[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j)
          others[j] = j < count ? __ldcg(from + j * stride + i * Accumulators::kThreads) : 0;
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) sum += others[j];
      }
    });
    other += count;
  } while (schedule.share(other + 1) < end);
  mine.sync();  // every warp has seen the flags; reset them for the next launch
  if (mine.is_leader())
    for (int seen = rank + 1; seen <= other; ++seen) *mine.flag_of(seen) = 0;
}

#endif  // __CUDA_ARCH__ >= 800

}  // namespace gemm
