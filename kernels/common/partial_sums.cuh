// Tiles of C that are cut along k (stream-K): the sums of a piece that does not begin with the
// first slice go to a workspace, with a flag, and the block with the first slices adds them to its
// own, always in the same order. Ranks count against block indices (tile_schedule.hpp), so who
// waits waits for blocks with lower indices, which waited for nobody before they left their sums:
// waiting ends even if not all blocks run at once, as long as blocks are started in order.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "kernels/common/asynchronous.cuh"
#include "kernels/common/device_array.cuh"
#include "kernels/common/tile_schedule.hpp"

namespace gemm {

struct PartialSums {
  float* sums;   // so many of each rank and block of a cluster; of INT8 they are INT32
  int* arrived;  // a flag for each of these; all zero between launches
};

struct PartialSumsMemory {
  PartialSums partials;
  std::shared_ptr<const void> memory;
};

// Of so many sums and flags; of none if nothing is cut. Throws std::runtime_error.
inline PartialSumsMemory partial_sums(const simt::TileSchedule& schedule, std::int64_t sums,
                                      std::int64_t flags) {
  if (schedule.streamed() == 0) return {};
  const auto memory = simt::device_array<float>(sums + flags);
  PartialSums partial{memory.get(), reinterpret_cast<int*>(memory.get() + sums)};
  cudaError_t status = cudaMemset(partial.arrived, 0, flags * sizeof(int));
  if (status == cudaSuccess) status = cudaStreamSynchronize(nullptr);  // launches do not wait
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("cudaMemset: ") + cudaGetErrorString(status));
  return {partial, memory};
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// What threads that have sums of a tile in registers know of the workspace:
//   sums_of(rank), flag_of(rank)   where this thread's first sum and its threads' flag are
//   kThreads                       from one sum of a thread to its next
//   leads(), sync()                whether it speaks for its threads; a barrier of theirs
//   each_sum(f)                    f(sum, index) for all sums

// Leaves the sums of a rank's first piece, and announces them.
template <typename Sums>
__device__ void leave_partial(Sums& mine, int rank) {
  auto* to = mine.sums_of(rank);
  mine.each_sum([&](auto& sum, int i) { __stcg(to + i * Sums::kThreads, sum); });
  __threadfence();
  mine.sync();
  if (mine.leads()) raise_flag(mine.flag_of(rank));
}

// Adds what the next ranks summed up of the tile.
template <typename Sums>
__device__ void add_partials(Sums& mine, const simt::TileSchedule& schedule, int rank, int tile) {
  const int end = (tile + 1) * schedule.slices;
  int other = rank;
  do {
    ++other;
    if (threadIdx.x % 32 == 0) wait_for_flag(mine.flag_of(other));
    __syncwarp();
    const auto* from = mine.sums_of(other);
    mine.each_sum([&](auto& sum, int i) { sum += __ldcg(from + i * Sums::kThreads); });
  } while (schedule.share(other + 1) < end);
  mine.sync();  // all have seen the flags, which go down for the next launch
  if (mine.leads())
    for (int seen = rank + 1; seen <= other; ++seen) *mine.flag_of(seen) = 0;
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace gemm
