// Copies into shared memory past the registers, by `cp.async` (compute capability 8.0 and later).
// Before, through registers: such a copy is done when it is issued, and there is nothing to wait
// for.
#pragma once

namespace gemm {

// kWidth elements (4, aligned to 16 bytes, or 1); zeros if they are not inside the matrix.
template <int kWidth>
__device__ void copy_async(float* to, const float* from, bool inside) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (kWidth == 4)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(inside ? 16 : 0)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
                 "r"(inside ? 4 : 0)
                 : "memory");
#else
  if constexpr (kWidth == 4)
    *reinterpret_cast<float4*>(to) =
        inside ? *reinterpret_cast<const float4*>(from) : make_float4(0, 0, 0, 0);
  else
    *to = inside ? *from : 0;
#endif
}

// Copies of a thread since its last commit are a group.
__device__ inline void commit_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Until at most so many of the thread's groups have not arrived.
template <int kPending>
__device__ void wait_for_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

}  // namespace gemm
