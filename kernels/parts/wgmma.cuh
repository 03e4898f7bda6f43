// wgmma: asynchronous warpgroup MMAs of compute capability 9.0. One function per instruction, with
// its fences and waits.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

namespace gemm::tensor {

// Required before the first wgmma that uses registers written by other instructions.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// For operands of this type (FP32 stands for TF32, its upper 19 bits): elements along k of one
// wgmma, which are 32 bytes, and the accumulator type.
template <typename Element>
constexpr int kMmaK = 32 / static_cast<int>(sizeof(Element));
template <typename Element>
using AccumulatorOf = std::conditional_t<std::is_same_v<Element, std::int8_t>, std::int32_t, float>;

#define GEMM_PLACES_4 "%0, %1, %2, %3"
#define GEMM_PLACES_8 GEMM_PLACES_4 ", %4, %5, %6, %7"
#define GEMM_PLACES_16 GEMM_PLACES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define GEMM_PLACES_24 GEMM_PLACES_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define GEMM_PLACES_32 GEMM_PLACES_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define GEMM_PLACES_40 GEMM_PLACES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define GEMM_PLACES_48 GEMM_PLACES_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define GEMM_PLACES_56 GEMM_PLACES_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define GEMM_PLACES_64 GEMM_PLACES_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define GEMM_PLACES_72 GEMM_PLACES_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define GEMM_PLACES_80 GEMM_PLACES_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define GEMM_PLACES_88 GEMM_PLACES_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define GEMM_PLACES_96 GEMM_PLACES_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define GEMM_PLACES_104 GEMM_PLACES_96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define GEMM_PLACES_112 GEMM_PLACES_104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define GEMM_PLACES_120 GEMM_PLACES_112 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define GEMM_PLACES_128 GEMM_PLACES_120 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define GEMM_LIST_4_AT(sum, i) \
  "+" sum(acc[i]), "+" sum(acc[i + 1]), "+" sum(acc[i + 2]), "+" sum(acc[i + 3])
#define GEMM_LIST_8_AT(sum, i) GEMM_LIST_4_AT(sum, i), GEMM_LIST_4_AT(sum, i + 4)
#define GEMM_LIST_4(sum) GEMM_LIST_4_AT(sum, 0)
#define GEMM_LIST_8(sum) GEMM_LIST_8_AT(sum, 0)
#define GEMM_LIST_16(sum) GEMM_LIST_8(sum), GEMM_LIST_8_AT(sum, 8)
#define GEMM_LIST_24(sum) GEMM_LIST_16(sum), GEMM_LIST_8_AT(sum, 16)
#define GEMM_LIST_32(sum) GEMM_LIST_24(sum), GEMM_LIST_8_AT(sum, 24)
#define GEMM_LIST_40(sum) GEMM_LIST_32(sum), GEMM_LIST_8_AT(sum, 32)
#define GEMM_LIST_48(sum) GEMM_LIST_40(sum), GEMM_LIST_8_AT(sum, 40)
#define GEMM_LIST_56(sum) GEMM_LIST_48(sum), GEMM_LIST_8_AT(sum, 48)
#define GEMM_LIST_64(sum) GEMM_LIST_56(sum), GEMM_LIST_8_AT(sum, 56)
#define GEMM_LIST_72(sum) GEMM_LIST_64(sum), GEMM_LIST_8_AT(sum, 64)
#define GEMM_LIST_80(sum) GEMM_LIST_72(sum), GEMM_LIST_8_AT(sum, 72)
#define GEMM_LIST_88(sum) GEMM_LIST_80(sum), GEMM_LIST_8_AT(sum, 80)
#define GEMM_LIST_96(sum) GEMM_LIST_88(sum), GEMM_LIST_8_AT(sum, 88)
#define GEMM_LIST_104(sum) GEMM_LIST_96(sum), GEMM_LIST_8_AT(sum, 96)
#define GEMM_LIST_112(sum) GEMM_LIST_104(sum), GEMM_LIST_8_AT(sum, 104)
#define GEMM_LIST_120(sum) GEMM_LIST_112(sum), GEMM_LIST_8_AT(sum, 112)
#define GEMM_LIST_128(sum) GEMM_LIST_120(sum), GEMM_LIST_8_AT(sum, 120)
// Each N, the accumulators of a thread, and the numbers of the operands after them.
// clang-format off
#define GEMM_FOR_EACH_SIZE(f) \
  f(8, 4, 5, 6, 7, 8, 9) \
  f(16, 8, 9, 10, 11, 12, 13) \
  f(32, 16, 17, 18, 19, 20, 21) \
  f(48, 24, 25, 26, 27, 28, 29) \
  f(64, 32, 33, 34, 35, 36, 37) \
  f(80, 40, 41, 42, 43, 44, 45) \
  f(96, 48, 49, 50, 51, 52, 53) \
  f(112, 56, 57, 58, 59, 60, 61) \
  f(128, 64, 65, 66, 67, 68, 69) \
  f(144, 72, 73, 74, 75, 76, 77) \
  f(160, 80, 81, 82, 83, 84, 85) \
  f(176, 88, 89, 90, 91, 92, 93) \
  f(192, 96, 97, 98, 99, 100, 101) \
  f(208, 104, 105, 106, 107, 108, 109) \
  f(224, 112, 113, 114, 115, 116, 117) \
  f(240, 120, 121, 122, 123, 124, 125) \
  f(256, 128, 129, 130, 131, 132, 133)
// clang-format on

#define GEMM_WGMMA(n, types, places, sum, list, a_at, b_at, keep_at, flags, ...)            \
  asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, " keep_at                            \
               ", 0;\n"                                                                     \
               "wgmma.mma_async.sync.aligned.m64n" n types " {" places "}, " a_at ", " b_at \
               ", keep" flags ";\n}"                                                        \
               : list(sum)                                                                  \
               : "l"(a), "l"(b), "r"(keep)__VA_ARGS__)
// All element types for one N.
#define GEMM_WGMMA_OF_SIZE(n, places, list, a_at, b_at, keep_at, ta_at, tb_at)            \
  if constexpr (std::is_same_v<Element, __nv_bfloat16>)                                   \
    GEMM_WGMMA(n, "k16.f32.bf16.bf16", places, "f", list, a_at, b_at, keep_at,            \
               ", 1, 1, " ta_at ", " tb_at, , "n"(kAMnMajor), "n"(kBMnMajor));            \
  else if constexpr (std::is_same_v<Element, __half>)                                     \
    GEMM_WGMMA(n, "k16.f32.f16.f16", places, "f", list, a_at, b_at, keep_at,              \
               ", 1, 1, " ta_at ", " tb_at, , "n"(kAMnMajor), "n"(kBMnMajor));            \
  else if constexpr (std::is_same_v<Element, float>)                                      \
    GEMM_WGMMA(n, "k8.f32.tf32.tf32", places, "f", list, a_at, b_at, keep_at, ", 1, 1");  \
  else if constexpr (std::is_same_v<Element, __nv_fp8_e4m3>)                              \
    GEMM_WGMMA(n, "k32.f32.e4m3.e4m3", places, "f", list, a_at, b_at, keep_at, ", 1, 1"); \
  else if constexpr (std::is_same_v<Element, __nv_fp8_e5m2>)                              \
    GEMM_WGMMA(n, "k32.f32.e5m2.e5m2", places, "f", list, a_at, b_at, keep_at, ", 1, 1"); \
  else                                                                                    \
    GEMM_WGMMA(n, "k32.s32.s8.s8", places, "r", list, a_at, b_at, keep_at, "")
#define GEMM_MULTIPLY(n, count, i1, i2, i3, i4, ...)                                             \
  if constexpr (kAccumulators == count) {                                                        \
    GEMM_WGMMA_OF_SIZE(#n, GEMM_PLACES_##count, GEMM_LIST_##count, "%" #count, "%" #i1, "%" #i2, \
                       "%" #i3, "%" #i4);                                                        \
  }

// acc = keep ? acc + a * b : a * b, for a of 64 x kMmaK and b of kMmaK x 2 kAccumulators elements,
// both in shared memory (descriptors below). MN-major operands must have 16-bit elements.
template <typename Element, bool kAMnMajor, bool kBMnMajor, typename Accumulator, int kAccumulators>
__device__ void multiply(Accumulator (&acc)[kAccumulators], std::uint64_t a, std::uint64_t b,
                         int keep) {
  static_assert(sizeof(Element) == 2 || !(kAMnMajor || kBMnMajor));
  static_assert(kAccumulators == 4 || (kAccumulators % 8 == 0 && kAccumulators <= 128));
  GEMM_FOR_EACH_SIZE(GEMM_MULTIPLY)
}

#define GEMM_MULTIPLY_REGISTERS(n, count, i1, i2, i3, i4, i5, ...)                               \
  if constexpr (kAccumulators == count)                                                          \
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %" #i5                                  \
                 ", 0;\n"                                                                        \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" GEMM_PLACES_##count \
                 "}, {%" #count ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4 ", keep, 1, 1;\n}"      \
                 : GEMM_LIST_##count("f")                                                        \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));

// The same for TF32 with A in registers: a warp has 16 of the 64 rows, a thread rows lane / 4 and
// lane / 4 + 8, and of the 8 steps of k lane % 4 and lane % 4 + 4, rows first. `a` must not be
// overwritten before the wait; ptxas does not know that (seen in 13.0).
template <int kAccumulators>
__device__ void multiply_from_registers(float (&acc)[kAccumulators], const std::uint32_t (&a)[4],
                                        std::uint64_t b, int keep) {
  static_assert(kAccumulators == 4 || (kAccumulators % 8 == 0 && kAccumulators <= 128));
  GEMM_FOR_EACH_SIZE(GEMM_MULTIPLY_REGISTERS)
}

// Waits until at most kGroups committed groups are incomplete.
template <int kGroups>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}
// Compiler fence: accumulators must not be read before the wait.
template <typename Accumulator, int kAccumulators>
__device__ void fence_accumulators(Accumulator (&acc)[kAccumulators]) {
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) {
    if constexpr (std::is_same_v<Accumulator, float>)
      asm volatile("" : "+f"(acc[i])::"memory");
    else
      asm volatile("" : "+r"(acc[i])::"memory");
  }
}
// Waits for all committed groups.
template <typename Accumulator, int kAccumulators>
__device__ void wgmma_wait_all(Accumulator (&acc)[kAccumulators]) {
  wgmma_wait<0>();
  fence_accumulators(acc);
}
template <typename Accumulator, int kParts, int kAccumulators>
__device__ void wgmma_wait_all(Accumulator (&acc)[kParts][kAccumulators]) {
  wgmma_wait<0>();
#pragma unroll
  for (int part = 0; part < kParts; ++part) fence_accumulators(acc[part]);
}

// Shared-memory descriptor of a K-major operand in the 128-byte swizzle: rows of 128 bytes along k,
// in groups of eight. An address that is `bytes` further has a descriptor that is bytes / 16
// larger.
__device__ inline std::uint64_t k_major_descriptor(std::uint32_t address) {
  constexpr std::uint64_t kEightRows = 1024 >> 4, kSwizzle128 = 1;
  return (address & 0x3ffff) >> 4 | std::uint64_t{1} << 16 | kEightRows << 32 | kSwizzle128 << 62;
}

// Shared-memory descriptor of an MN-major operand: rows of 128 or 32 bytes along m or n, one per k,
// in the swizzle of that width; the next ones along m or n are `next` bytes further.
template <int kRowBytes = 128>
__device__ std::uint64_t mn_major_descriptor(std::uint32_t address, std::uint32_t next) {
  static_assert(kRowBytes == 128 || kRowBytes == 32);
  constexpr std::uint64_t kEightRows = 8 * kRowBytes >> 4, kSwizzle = kRowBytes == 128 ? 1 : 3;
  return (address & 0x3ffff) >> 4 | std::uint64_t{next >> 4} << 16 | kEightRows << 32 |
         kSwizzle << 62;
}

// Makes writes to shared memory by ordinary instructions visible to the async proxy (TMA and tensor
// cores).
__device__ inline void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace gemm::tensor
