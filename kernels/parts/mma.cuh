// Warp-level tensor-core instructions: `ldmatrix` loads fragments from shared memory, `mma.sync`
// multiplies them. In bytes all precisions are alike: an MMA takes 32 bytes along k of 16 rows of A
// and 8 columns of B. Compute capability 7.5 has smaller MMAs, of which two (FP16) or four (INT8)
// do the same. Where a device lacks the instruction these functions do nothing: a kernel's
// `unsupported` must refuse it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "kernels/precision.hpp"

namespace gemm::tensor {

// Element, accumulator and output types, and the oldest compute capability that supports them.
// Promoted: accumulators of the tensor cores are so coarse that they are added to FP32 accumulators
// at intervals.
template <Precision kPrecision_, typename Element_, typename Accumulator_, typename Output_,
          int kSince_, bool kPromoted_ = false>
struct Arithmetic {
  using Element = Element_;
  using Accumulator = Accumulator_;
  using Output = Output_;
  static constexpr Precision kPrecision = kPrecision_;
  static constexpr int kSince = kSince_;
  static constexpr bool kPromoted = kPromoted_;
};
using Bf16 = Arithmetic<Precision::bf16, __nv_bfloat16, float, __nv_bfloat16, 80>;
using F16 = Arithmetic<Precision::f16, __half, float, __half, 75>;
using Tf32 = Arithmetic<Precision::tf32, float, float, float, 80>;
using S8 = Arithmetic<Precision::s8, std::int8_t, std::int32_t, std::int32_t, 75>;
using E4m3 = Arithmetic<Precision::e4m3, __nv_fp8_e4m3, float, __nv_bfloat16, 89, true>;
using E4m3Fast = Arithmetic<Precision::e4m3fast, __nv_fp8_e4m3, float, __nv_bfloat16, 89>;
using E5m2 = Arithmetic<Precision::e5m2, __nv_fp8_e5m2, float, __nv_bfloat16, 89, true>;
using E5m2Fast = Arithmetic<Precision::e5m2fast, __nv_fp8_e5m2, float, __nv_bfloat16, 89>;

// A fragment: 32 bytes along k of 16 rows of A or columns of B (lines), in four parts of 8 lines by
// 16 bytes. Their order is that of the registers of an MMA: for A lines 0-7 and 8-15 of the first
// 16 bytes, then of the others; for B both halves of lines 0-7, then of lines 8-15.
constexpr int kStepBytes = 32, kFragmentLines = 16;
struct Fragment {
  std::uint32_t parts[4];
};

// Loads a fragment; 8 lanes each point to the rows of one part. Rows are along k, or, transposed,
// along the lines, which ldmatrix supports only for 16-bit elements.
template <bool kTransposed>
__device__ void load_fragment(Fragment& to, std::uint32_t address) {
  std::uint32_t(&x)[4] = to.parts;
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
}

// Rounds FP32 to TF32. Tensor cores would truncate; rounding to nearest halves the error and has no
// bias. One instruction from compute capability 9.0 on, three before.
__device__ inline std::uint32_t rounded_to_tf32(std::uint32_t word) {
#if __CUDA_ARCH__ >= 900
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(word) : "f"(__uint_as_float(word)));
#elif __CUDA_ARCH__ >= 800
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(__uint_as_float(word)));
#endif
  return word;
}
template <typename Of>
__device__ void round_fragment([[maybe_unused]] Fragment& fragment) {
  if constexpr (Of::kPrecision == Precision::tf32)
#pragma unroll
    for (std::uint32_t& part : fragment.parts) part = rounded_to_tf32(part);
}

// The instruction with these shape and types, and the constraint of its accumulators.
#define MMA_16X8(shape_and_types, sum)                                                        \
  asm volatile("mma.sync.aligned." shape_and_types                                            \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"             \
               : "+" sum(acc[0]), "+" sum(acc[1]), "+" sum(acc[2]), "+" sum(acc[3])           \
               : "r"(a.parts[0]), "r"(a.parts[1]), "r"(a.parts[2]), "r"(a.parts[3]), "r"(b0), \
                 "r"(b1))

// acc += A * B for 16 rows and the first 8 columns of B (half = 0) or the others. A thread has two
// consecutive columns, from lane % 4 * 2 on, of rows lane / 4 and lane / 4 + 8.
template <typename Of>
__device__ void multiply_16x8([[maybe_unused]] typename Of::Accumulator (&acc)[4],
                              [[maybe_unused]] const Fragment& a,
                              [[maybe_unused]] const Fragment& b, [[maybe_unused]] int half) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  [[maybe_unused]] const std::uint32_t b0 = b.parts[2 * half], b1 = b.parts[2 * half + 1];
  if constexpr (Of::kPrecision == Precision::bf16)
    MMA_16X8("m16n8k16.row.col.f32.bf16.bf16.f32", "f");
  else if constexpr (Of::kPrecision == Precision::f16)
    MMA_16X8("m16n8k16.row.col.f32.f16.f16.f32", "f");
  else if constexpr (Of::kPrecision == Precision::tf32)
    MMA_16X8("m16n8k8.row.col.f32.tf32.tf32.f32", "f");
  else if constexpr (Of::kPrecision == Precision::s8)
    MMA_16X8("m16n8k32.row.col.s32.s8.s8.s32", "r");
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
  else if constexpr (std::is_same_v<typename Of::Element, __nv_fp8_e4m3>)
    MMA_16X8("m16n8k32.row.col.f32.e4m3.e4m3.f32", "f");
  else if constexpr (std::is_same_v<typename Of::Element, __nv_fp8_e5m2>)
    MMA_16X8("m16n8k32.row.col.f32.e5m2.e5m2.f32", "f");
#endif
#elif __CUDA_ARCH__ >= 750
  if constexpr (Of::kPrecision == Precision::f16)
#pragma unroll
    for (int k = 0; k < 4; k += 2)
      asm volatile(
          "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
          "{%0, %1, %2, %3};"
          : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
          : "r"(a.parts[k]), "r"(a.parts[k + 1]), "r"(b.parts[2 * half + k / 2]));
  if constexpr (Of::kPrecision == Precision::s8)
#pragma unroll
    for (int k = 0; k < 4; k += 2)
#pragma unroll
      for (int row = 0; row < 2; ++row)
        asm volatile(
            "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+r"(acc[2 * row]), "+r"(acc[2 * row + 1])
            : "r"(a.parts[k + row]), "r"(b.parts[2 * half + k / 2]));
#endif
}
#undef MMA_16X8

}  // namespace gemm::tensor
