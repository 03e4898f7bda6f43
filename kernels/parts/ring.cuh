// The pipeline of a warp-specialized kernel (compute capability 9.0): a ring buffer of stages in
// shared memory between the producer, which issues the loads, and the consumers, which multiply.
// Each stage has two mbarriers: a phase of `full` completes when its bytes have arrived, a phase of
// `empty` when all consumers have released it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/parts/asynchronous.cuh"

namespace gemm {

constexpr int kSwizzleAlignment = 1024;  // bytes; the 128-byte swizzle pattern repeats so

// The value of lane 0, for a value that all lanes of a warp have. The compiler then knows it to be
// the same in all, and keeps it in a uniform register, where wgmma wants its descriptors.
__device__ inline int uniform(int value) { return __shfl_sync(~0U, value, 0); }
// The warp of a block.
__device__ inline int warp_of_block() { return uniform(static_cast<int>(threadIdx.x) / 32); }

template <int kStages>
struct RingBarriers {
  std::uint64_t full[kStages], empty[kStages];
};

// The ring and a position in it. All members are addresses and counts; producer and consumers each
// have a copy. kStageBytes: of a stage; 0 where the constructor's argument says it.
template <int kStageBytes>
struct Ring {
  std::uint32_t first, full_barriers, empty_barriers;
  int stages, stage_bytes;
  int stage = 0, parity = 0;

  // `shared` must have kSwizzleAlignment bytes more than the stages need.
  template <int kStages>
  __device__ Ring(const std::byte* shared, const RingBarriers<kStages>& barriers,
                  int stages = kStages, int stage_bytes = kStageBytes)
      : first((shared_address(shared) + kSwizzleAlignment - 1) / kSwizzleAlignment *
              kSwizzleAlignment),
        full_barriers(shared_address(barriers.full)),
        empty_barriers(shared_address(barriers.empty)),
        stages(stages),
        stage_bytes(stage_bytes) {}

  // Called by one thread, before a barrier of the block or cluster.
  __device__ void init_barriers(int consumer_arrivals, int producer_arrivals = 1) const {
    for (int i = 0; i < stages; ++i) {
      init_barrier(full_barriers + i * kBarrierBytes, producer_arrivals);
      init_barrier(empty_barriers + i * kBarrierBytes, consumer_arrivals);
    }
    fence_barrier_init();
  }

  __device__ std::uint32_t data() const { return first + stage * stage_bytes; }
  __device__ std::uint32_t end() const { return first + stages * stage_bytes; }
  __device__ std::uint32_t full() const { return full_barriers + stage * kBarrierBytes; }
  __device__ std::uint32_t empty() const { return empty_barriers + stage * kBarrierBytes; }

  // Producer: waits until the stage is empty and announces the bytes that will be loaded.
  __device__ void begin_stage(int bytes = kStageBytes) const {
    wait(empty(), parity ^ 1);
    arrive_and_expect(full(), bytes);
  }
  // Consumer: waits until the stage is full.
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
  // Whether this stage is of that producer, where several share the ring. Each has stages of its
  // own: a barrier distinguishes two phases only, and no other producer keeps it within them.
  template <int kProducers>
  __device__ bool is_of(int producer) const {
    return stage % kProducers == producer;
  }
  // Producer in a cluster: a block must not exit while other blocks may still arrive at its
  // barriers.
  template <int kProducers = 1>
  __device__ void drain(int producer = 0) {
    for (int i = 0; i < stages; ++i, next())
      if (is_of<kProducers>(producer)) wait(empty(), parity ^ 1);
  }
};

// Consumer: releases a stage, with one arrival per warp in each of the kBlocks blocks of a cluster
// that fill the stage together.
template <int kBlocks = 1>
__device__ void release(std::uint32_t empty) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (kBlocks == 1) {
    if (lane == 0) arrive(empty);
  } else {
    if (lane < kBlocks) arrive_remote(empty, lane);
  }
}

}  // namespace gemm
