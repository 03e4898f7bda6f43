// The pipeline of a kernel for compute capability 9.0, and its instructions, a function each: TMA
// copies boxes of a matrix to shared memory and back, mbarriers count their bytes, and a ring of
// stages lies between the producer, which issues the loads, and the consumers, which multiply. On
// other devices the instructions do not exist and must not be called.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels/driver_function.hpp"

namespace gemm {

// --- Tensor maps: the descriptors of a matrix for TMA --------------------------------------------

// TMA's element types; types of one byte are all alike to it.
template <typename T>
constexpr CUtensorMapDataType kMapType = sizeof(T) == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                         : std::is_same_v<T, __nv_bfloat16>
                                             ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                         : std::is_same_v<T, __half>
                                             ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                             : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;

// Describes a matrix of `rows` rows of `columns` elements, `pitch` elements apart. Boxes are stored
// row by row in shared memory, with the given swizzle (the row of a box must then be as long as the
// swizzle). The matrix and its rows must begin at multiples of 16 bytes. TFLOAT32 rounds FP32 on
// the way. Throws std::runtime_error.
template <typename T>
CUtensorMap tensor_map(const T* matrix, std::int64_t rows, std::int64_t columns, std::int64_t pitch,
                       unsigned box_rows, unsigned box_columns,
                       CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
                       CUtensorMapDataType type = kMapType<T>) {
  const auto encode = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  if (encode == nullptr) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
  const auto unsigned_64 = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const cuuint64_t size[] = {unsigned_64(columns), unsigned_64(rows)};
  const cuuint64_t row_bytes[] = {unsigned_64(pitch) * sizeof(T)};
  const cuuint32_t box[] = {box_columns, box_rows}, every[] = {1, 1};
  CUtensorMap map{};
  const CUresult result =
      encode(&map, type, 2, const_cast<T*>(matrix), size, row_bytes, box, every,
             CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses " + std::to_string(rows) + " x " +
                             std::to_string(columns) + " elements: error " +
                             std::to_string(result));
  return map;
}
// Of a matrix whose lines, rows of A or columns of B, are contiguous along k, with boxes of 128
// bytes of so many lines, in the swizzle in which wgmma reads them.
template <typename T>
CUtensorMap k_major_map(const void* matrix, std::int64_t lines, std::int64_t k,
                        unsigned box_lines) {
  return tensor_map(static_cast<const T*>(matrix), lines, k, k, box_lines, 128 / sizeof(T),
                    CU_TENSOR_MAP_SWIZZLE_128B);
}

// --- mbarriers -----------------------------------------------------------------------------------

// The 32-bit shared-memory address that the instructions below take.
__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// An mbarrier is 8 bytes of shared memory. A phase completes when the expected number of threads
// has arrived and all announced bytes have been transferred.
constexpr int kBarrierBytes = 8;

__device__ inline void init_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
// Makes initialised mbarriers visible to the async proxy (TMA) and, after a barrier of the cluster,
// to its other blocks.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void arrive_and_expect(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Waits for the phase with this parity; the phase before the first one counts as complete.
__device__ inline void wait(std::uint32_t barrier, int parity) {
  asm volatile(
      "{\n.reg .pred ended;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
      "@!ended bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// --- Copies --------------------------------------------------------------------------------------

// TMA load of the box whose first element is (x, y); elements outside the matrix become zero.
__device__ inline void tma_load(std::uint32_t to, const CUtensorMap& map, int x, int y,
                                std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3}], [%4];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}
// Bulk copy of contiguous bytes, a multiple of 16, from global to shared memory.
__device__ inline void bulk_load(std::uint32_t to, const void* from, int bytes,
                                 std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
// Multicast: the box goes to the same shared-memory offset of every block of the cluster that has a
// bit in `blocks`, and each block's own barrier counts the bytes.
__device__ inline void tma_load_multicast(std::uint16_t blocks, std::uint32_t to,
                                          const CUtensorMap& map, int x, int y,
                                          std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(blocks)
      : "memory");
}
// TMA store of a box from shared memory; elements outside the matrix are skipped. The stores since
// the last commit form a group; their shared memory may be overwritten once the group has been
// read.
__device__ inline void tma_store(const CUtensorMap& map, int x, int y, std::uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
          &map),
      "r"(x), "r"(y), "r"(from)
      : "memory");
}
__device__ inline void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ inline void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// --- Clusters and registers ----------------------------------------------------------------------

// Arrives at the barrier at the same offset in another block of the cluster.
__device__ inline void arrive_remote(std::uint32_t barrier, int block) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
      "r"(block)
      : "memory");
}
// Barrier of the whole cluster; orders the blocks' writes to each other's shared memory. Threads
// that have exited count as arrived.
__device__ inline void sync_cluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}
__device__ inline int rank_in_cluster() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// setmaxnreg: moves registers from a warpgroup that needs few to one that needs many.
template <int kRegisters>
__device__ void dealloc_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ void alloc_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// --- The ring ------------------------------------------------------------------------------------

constexpr int kSwizzleAlignment = 1024;  // bytes; the 128-byte swizzle pattern repeats so

// Each stage has two mbarriers: a phase of `full` completes when its bytes have arrived, a phase of
// `empty` when all consumers have released it.
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
