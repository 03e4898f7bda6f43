// Asynchronous instructions of compute capability 9.0, a function each: mbarriers, TMA loads and
// stores, cluster barriers, programmatic dependent launch, and setmaxnreg. On other devices they do
// not exist and must not be called. Exception: programmatic dependent launch, which has no effect
// there.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace gemm {

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
// Whether the phase with this parity is complete; the phase before the first one counts as
// complete. May block for a bounded time before it returns false.
__device__ inline bool try_wait(std::uint32_t barrier, int parity) {
  std::uint32_t ended;
  asm volatile(
      "{\n.reg .pred ended;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
      "selp.u32 %0, 1, 0, ended;\n}"
      : "=r"(ended)
      : "r"(barrier), "r"(parity)
      : "memory");
  return ended != 0;
}
__device__ inline void wait(std::uint32_t barrier, int parity) {
  asm volatile(
      "{\n.reg .pred ended;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
      "@!ended bra again;\n}" ::"r"(barrier),
      "r"(parity)
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
// Prefetches a tensor map before the first TMA load needs it.
__device__ inline void prefetch_tensor_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// TMA load of the box whose first element is (x, y); elements outside the matrix become zero.
__device__ inline void tma_load(std::uint32_t to, const CUtensorMap& map, int x, int y,
                                std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3}], [%4];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

// The same with an L2 cache hint: evict_first for data that is read once.
__device__ inline std::uint64_t cache_policy(bool read_once) {
  std::uint64_t policy;
  if (read_once)
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  else
    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ inline void tma_load(std::uint32_t to, const CUtensorMap& map, int x, int y,
                                std::uint32_t barrier, std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier), "l"(policy)
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
// that have exited count as arrived. Arriving takes as long as the thread's stores to global
// memory.
__device__ inline void arrive_at_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ inline void sync_cluster() {
  arrive_at_cluster();
  wait_for_cluster();
}
// The same without that order, after fence_barrier_init().
__device__ inline void sync_cluster_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  wait_for_cluster();
}
__device__ inline int rank_in_cluster() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Flags in global memory between any two blocks: writes before raise_flag are visible after
// wait_for_flag (release and acquire).
__device__ inline void raise_flag(int* flag) {
  asm volatile("st.release.gpu.global.b32 [%0], 1;" ::"l"(flag) : "memory");
}
__device__ inline void wait_for_flag(const int* flag) {
  int raised;
  do asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
  while (raised == 0);
}

// Orders what this thread has seen written before what it copies in bulk afterwards.
__device__ inline void fence_proxy() { asm volatile("fence.proxy.async;" ::: "memory"); }

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

// Programmatic dependent launch (cudaLaunchAttributeProgrammaticStreamSerialization). Once all
// blocks of this grid have ended or called let_next_launch_begin, blocks of the next grid start
// where there is room. That grid must call wait_for_previous_launch before it touches what this one
// reads or writes. No effect in other launches, and below compute capability 9.0. If a grid has
// fewer blocks than the SMs have room for, waiting blocks of the next grid fill the free room, and
// its work is divided unevenly: MmaF64StreamK, MmaSyncUnaligned, AsyncCopy and Rasterized therefore
// do not call this function (kernels/ladder/tensor/NOTES.md, "Where blocks begin").
__device__ inline void let_next_launch_begin() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void wait_for_previous_launch() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
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

}  // namespace gemm
