// A ring of stages in shared memory between a producer, who has them filled, and consumers, who
// multiply what is in them (compute capability 9.0). Each stage has two barriers: a phase of `full`
// ends when its bytes have arrived, one of `empty` when all consumers are done with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/asynchronous.cuh"

namespace gemm {

constexpr int kSwizzleAlignment = 1024;  // bytes: where the 128-byte swizzle begins

template <int kStages>
struct RingBarriers {
  std::uint64_t full[kStages], empty[kStages];
};

// The ring, and how far somebody has come around it. All members are addresses and counts, so that
// everyone has a copy.
template <int kStageBytes>
struct Ring {
  std::uint32_t first, full_barriers, empty_barriers;
  int stages;
  int stage = 0, parity = 0;

  // `shared` has kSwizzleAlignment bytes more than the stages.
  template <int kStages>
  __device__ Ring(const std::byte* shared, const RingBarriers<kStages>& barriers,
                  int stages = kStages)
      : first((shared_address(shared) + kSwizzleAlignment - 1) / kSwizzleAlignment *
              kSwizzleAlignment),
        full_barriers(shared_address(barriers.full)),
        empty_barriers(shared_address(barriers.empty)),
        stages(stages) {}

  // By one thread, before all meet at a barrier of the block or cluster.
  __device__ void init_barriers(int consumer_arrivals) const {
    for (int i = 0; i < stages; ++i) {
      init_barrier(full_barriers + i * kBarrierBytes, 1);
      init_barrier(empty_barriers + i * kBarrierBytes, consumer_arrivals);
    }
    publish_barriers();
  }

  __device__ std::uint32_t data() const { return first + stage * kStageBytes; }
  __device__ std::uint32_t end() const { return first + stages * kStageBytes; }
  __device__ std::uint32_t full() const { return full_barriers + stage * kBarrierBytes; }
  __device__ std::uint32_t empty() const { return empty_barriers + stage * kBarrierBytes; }

  // By the producer: the stage may be overwritten, and is about to be.
  __device__ void begin_stage() const {
    wait(empty(), parity ^ 1);
    arrive_and_expect(full(), kStageBytes);
  }
  // By a consumer: the stage is full.
  __device__ void wait_for_stage() const { wait(full(), parity); }
  __device__ void next() {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
  __device__ void skip(int count) {
    stage += count;
    parity ^= stage / stages & 1;
    stage %= stages;
  }
  // By the producer of a cluster: a block must not end while others may arrive at its barriers.
  __device__ void drain() {
    for (int i = 0; i < stages; ++i, next()) wait(empty(), parity ^ 1);
  }
};

// One arrival a warp, in all `kBlocks` blocks of a cluster that wait for it to fill the stage.
template <int kBlocks = 1>
__device__ void release(std::uint32_t empty) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (kBlocks == 1) {
    if (lane == 0) arrive(empty);
  } else {
    if (lane < kBlocks) arrive_at(empty, lane);
  }
}

}  // namespace gemm
