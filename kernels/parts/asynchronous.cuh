// Instructions of compute capability 9.0 that only production kernels use, a function each: flags
// between blocks, programmatic dependent launch, cache hints. On other devices they do not exist
// and must not be called. Exception: programmatic dependent launch, which has no effect there.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace gemm {

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

// Prefetches a tensor map before the first TMA load needs it.
__device__ inline void prefetch_tensor_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// A TMA load with an L2 cache hint: evict_first for data that is read once.
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

// The halves of sync_cluster (ring.cuh). Arriving takes as long as the thread's stores to global
// memory.
__device__ inline void arrive_at_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Both without an order of memory accesses, after fence_barrier_init().
__device__ inline void sync_cluster_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  wait_for_cluster();
}

// The value of lane 0, for a value that all lanes of a warp have. The compiler then knows it to be
// the same in all, and keeps it in a uniform register, where wgmma wants its descriptors.
__device__ inline int uniform(int value) { return __shfl_sync(~0U, value, 0); }
// The warp of a block.
__device__ inline int warp_of_block() { return uniform(static_cast<int>(threadIdx.x) / 32); }

}  // namespace gemm
