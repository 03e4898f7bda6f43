// What compute capability 9.0 does by itself while warps go on: barriers in shared memory that
// count threads and bytes, copies of boxes of a matrix into shared memory, registers that move from
// one warpgroup to another. Each function is one instruction; what must be waited for is said where
// they are used. Where there is no such instruction, nobody may call them.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace gemm {

// Of shared memory, as the instructions below take it.
__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// A barrier is 8 bytes of shared memory. A phase of it ends when so many have arrived and all bytes
// that were announced are there.
constexpr int kBarrierBytes = 8;

__device__ inline void init_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
// Makes barriers known to the units that copy.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void arrive_and_expect(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Whether the phase of this parity has ended; the one before the first counts as ended. May take a
// while to say no.
__device__ inline bool has_ended(std::uint32_t barrier, int parity) {
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

// Contiguous bytes, a multiple of 16.
__device__ inline void copy_bytes(std::uint32_t to, const void* from, int bytes,
                                  std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
// Has a map fetched before the first copy asks for it.
__device__ inline void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// The box of a tensor map whose first element is (x, y); what lies outside the matrix becomes zero.
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap& map, int x, int y,
                                std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3}], [%4];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

// The same, with what the L2 shall do with the lines: keep them as any others, or let them go
// first, as they are read once.
__device__ inline std::uint64_t cache_policy(bool read_once) {
  std::uint64_t policy;
  if (read_once)
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  else
    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap& map, int x, int y,
                                std::uint32_t barrier, std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier), "l"(policy)
      : "memory");
}

// The same into every block of the cluster that `blocks` has a bit for, at the same place of its
// shared memory; its own barrier there counts the bytes.
__device__ inline void copy_box_to(std::uint16_t blocks, std::uint32_t to, const CUtensorMap& map,
                                   int x, int y, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(blocks)
      : "memory");
}
// At the barrier in the same place of another block of the cluster.
__device__ inline void arrive_at(std::uint32_t barrier, int block) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
      "r"(block)
      : "memory");
}

// All blocks of a cluster; what they wrote into each other's shared memory is there. Threads that
// have ended need not come.
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

// Between blocks anywhere, through global memory: what was written before a flag went up is seen by
// who has waited for it.
__device__ inline void raise_flag(int* flag) {
  asm volatile("st.release.gpu.global.b32 [%0], 1;" ::"l"(flag) : "memory");
}
__device__ inline void wait_for_flag(const int* flag) {
  int raised;
  do asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
  while (raised == 0);
}

// A box from shared memory into the matrix of a map; what would lie outside is left out. Copies of
// a thread since its last commit are a group; `from` may be overwritten once its group was read.
__device__ inline void store_box(const CUtensorMap& map, int x, int y, std::uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
          &map),
      "r"(x), "r"(y), "r"(from)
      : "memory");
}
__device__ inline void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void wait_until_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Launches that overlap (cudaLaunchAttributeProgrammaticStreamSerialization): the blocks of the
// next may start once all of this have said so, where there is room for them; they must not touch
// what this one reads or writes before they have waited for its end. Nothing happens in other
// launches.
__device__ inline void let_next_launch_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
__device__ inline void wait_for_previous_launch() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Registers of a thread, moved from a warpgroup that needs few to one that needs many.
template <int kRegisters>
__device__ void give_up_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace gemm
