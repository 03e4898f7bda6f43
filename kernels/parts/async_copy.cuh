// Copies from global to shared memory by `cp.async` (compute capability 8.0 and later):
// asynchronous, without a detour through registers. On older devices the same functions copy
// through registers and are complete when they return.
#pragma once

namespace gemm {

// Copies kBytes: 16, 8 or 4, aligned to as many, to an address in shared memory. Writes zeros if
// they are outside the matrix. Compute capability 8.0 and later.
template <int kBytes>
__device__ void copy_async_bytes([[maybe_unused]] unsigned to, [[maybe_unused]] const void* from,
                                 [[maybe_unused]] bool inside) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(inside ? kBytes : 0)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from),
                 "r"(inside ? kBytes : 0), "n"(kBytes)
                 : "memory");
#endif
}

// Copies kWidth elements: 4, 2 or 1, aligned to as many. Writes zeros if they are outside the
// matrix.
template <int kWidth>
__device__ void copy_async(float* to, const float* from, bool inside) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  copy_async_bytes<4 * kWidth>(static_cast<unsigned>(__cvta_generic_to_shared(to)), from, inside);
#else
  struct alignas(4 * kWidth) Elements {
    float values[kWidth];
  };
  *reinterpret_cast<Elements*>(to) = inside ? *reinterpret_cast<const Elements*>(from) : Elements{};
#endif
}

// Ends a group: the copies that this thread issued since its last commit.
__device__ inline void commit_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until at most kPending of the thread's groups are incomplete.
template <int kPending>
__device__ void wait_for_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

}  // namespace gemm
