// Turns of two consumers that have tiles of their own (WgmmaPingPong): who multiplies next waits
// for the stages of its tile only once the other has all of its own, since a barrier of the ring
// knows but two phases. Two named barriers, behind those that the consumers have for themselves.
#pragma once

namespace gemm::tensor {

__device__ inline void order_wait(int consumer) {
  asm volatile("bar.sync %0, 256;" ::"r"(4 + consumer) : "memory");
}
__device__ inline void order_arrive(int consumer) {
  asm volatile("bar.arrive %0, 256;" ::"r"(4 + consumer) : "memory");
}

}  // namespace gemm::tensor
