// FP64 on tensor cores: `mma.sync` with operands and accumulators in FP64. Each product is added by
// a fused multiply-add that rounds to nearest, so the result is as accurate as that of CUDA cores.
//
// The order of k and of lines (rows of A, columns of B) within an MMA is free, as long as both
// operands agree. Here lane 4 g + t has lines 2 g and 2 g + 1, and k = 2 t and 2 t + 1 or t and t
// + 4.
#pragma once

namespace gemm::tensor {

// The part of a lane of 16 lines by 8 steps of k: [k][line], the register order of the MMA's first
// operand. Of the second operand an MMA takes one line of each lane: 8 lines.
struct F64Fragment {
  double parts[2][2];
};

// m8n8k4 is the one of compute capability 8.0; m16n8k8 needs 9.0, and is made of m8n8k4 elsewhere.
enum class F64Mma { m8n8k4, m16n8k8 };

// acc += first * second for 16 x 8 elements, where `line` selects the lines of the second operand,
// and for 8 steps of k. A lane has lines 2 g (acc 0, 1) and 2 g + 1 (acc 2, 3) of the
// first operand by lines 4 t + line and 4 t + 2 + line of the second.
template <F64Mma kMma>
__device__ void multiply_f64([[maybe_unused]] double (&acc)[4],
                             [[maybe_unused]] const F64Fragment& a,
                             [[maybe_unused]] const F64Fragment& b, [[maybe_unused]] int line) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr bool kLarge = kMma != F64Mma::m8n8k4;
  if constexpr (kLarge)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
        "%9}, {%0, %1, %2, %3};"
        : "+d"(acc[0]), "+d"(acc[1]), "+d"(acc[2]), "+d"(acc[3])
        : "d"(a.parts[0][0]), "d"(a.parts[0][1]), "d"(a.parts[1][0]), "d"(a.parts[1][1]),
          "d"(b.parts[0][line]), "d"(b.parts[1][line]));
#else
  constexpr bool kLarge = false;
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  if constexpr (!kLarge)
#pragma unroll
    for (int k = 0; k < 2; ++k)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        asm volatile(
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(acc[2 * i]), "+d"(acc[2 * i + 1])
            : "d"(a.parts[k][i]), "d"(b.parts[k][line]));
#endif
}

}  // namespace gemm::tensor
