// The order of two consumers with separate tiles (ping-pong schedule): a consumer may wait for
// stages only once the other has received all of its own, since an mbarrier distinguishes just two
// phases. Two named barriers, as CUTLASS's OrderedSequenceBarrier; lower ids are the consumers'
// own.
#pragma once

namespace gemm::tensor {

__device__ inline void order_wait(int consumer) {
  asm volatile("bar.sync %0, 256;" ::"r"(4 + consumer) : "memory");
}
__device__ inline void order_arrive(int consumer) {
  asm volatile("bar.arrive %0, 256;" ::"r"(4 + consumer) : "memory");
}

}  // namespace gemm::tensor
