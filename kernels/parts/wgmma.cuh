// wgmma: asynchronous warpgroup MMAs of compute capability 9.0. The instruction with its fences and
// waits, the descriptors of its operands in shared memory, and the way of its accumulators to C.
// Here for BF16 and FP16 and three sizes, which is what the ladder needs; wgmma_sizes.cuh has all.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/parts/ring.cuh"

namespace gemm::tensor {

// Required before the first wgmma that uses registers written by other instructions.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// The accumulators of a thread for 64, 128 and 256 columns, as operands %0, %1, ... of an
// instruction.
#define GEMM_PLACES_32                                                                    \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, " \
  "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GEMM_PLACES_64                                                                      \
  GEMM_PLACES_32                                                                            \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, " \
  "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GEMM_PLACES_128                                                                      \
  GEMM_PLACES_64                                                                             \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, "  \
  "%81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, "    \
  "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, " \
  "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "     \
  "%127"
#define GEMM_LIST_4_AT(sum, i) \
  "+" sum(acc[i]), "+" sum(acc[i + 1]), "+" sum(acc[i + 2]), "+" sum(acc[i + 3])
#define GEMM_LIST_8_AT(sum, i) GEMM_LIST_4_AT(sum, i), GEMM_LIST_4_AT(sum, i + 4)
#define GEMM_LIST_32_AT(sum, i)                                                    \
  GEMM_LIST_8_AT(sum, i), GEMM_LIST_8_AT(sum, i + 8), GEMM_LIST_8_AT(sum, i + 16), \
      GEMM_LIST_8_AT(sum, i + 24)
#define GEMM_LIST_32(sum) GEMM_LIST_32_AT(sum, 0)
#define GEMM_LIST_64(sum) GEMM_LIST_32(sum), GEMM_LIST_32_AT(sum, 32)
#define GEMM_LIST_128(sum) GEMM_LIST_64(sum), GEMM_LIST_32_AT(sum, 64), GEMM_LIST_32_AT(sum, 96)

// acc = keep ? acc + a * b : a * b, for a of 64 x 16 and b of 16 x 2 kAccumulators elements, BF16
// or FP16, both K-major in shared memory (descriptor below).
#define GEMM_MULTIPLY_16_BIT(n, types, count, a_at, b_at, keep_at)                    \
  asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, " keep_at                      \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" n "k16.f32." types           \
               " {" GEMM_PLACES_##count "}, " a_at ", " b_at ", keep, 1, 1, 0, 0;\n}" \
               : GEMM_LIST_##count("f")                                               \
               : "l"(a), "l"(b), "r"(keep))
#define GEMM_MULTIPLY_COLUMNS(n, count, a_at, b_at, keep_at)            \
  if constexpr (kAccumulators == count) {                               \
    if constexpr (std::is_same_v<Element, __nv_bfloat16>)               \
      GEMM_MULTIPLY_16_BIT(n, "bf16.bf16", count, a_at, b_at, keep_at); \
    else                                                                \
      GEMM_MULTIPLY_16_BIT(n, "f16.f16", count, a_at, b_at, keep_at);   \
  }
template <typename Element, int kAccumulators>
__device__ void multiply_16_bit(float (&acc)[kAccumulators], std::uint64_t a, std::uint64_t b,
                                int keep) {
  static_assert(kAccumulators == 32 || kAccumulators == 64 || kAccumulators == 128);
  GEMM_MULTIPLY_COLUMNS("64", 32, "%32", "%33", "%34")
  GEMM_MULTIPLY_COLUMNS("128", 64, "%64", "%65", "%66")
  GEMM_MULTIPLY_COLUMNS("256", 128, "%128", "%129", "%130")
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

// Issues acc[i] = keep ? acc[i] + A * B : A * B for rows 64 i to 64 i + 63 of A and a K tile of
// both operands, whose lines of 128 bytes along k are at `a` and `b`.
template <typename Element, int kParts, int kAccumulators>
__device__ void multiply_k_tile(float (&acc)[kParts][kAccumulators], std::uint32_t a,
                                std::uint32_t b, bool keep) {
  constexpr int kLine = 128, kStep = 32;  // bytes: of an MMA along k
#pragma unroll
  for (int step = 0; step < kLine / kStep; ++step)
#pragma unroll
    for (int part = 0; part < kParts; ++part)
      multiply_16_bit<Element>(acc[part],
                               k_major_descriptor(a) + (part * 64 * kLine + step * kStep) / 16,
                               k_major_descriptor(b) + step * kStep / 16, keep || step > 0);
}

// Makes writes to shared memory by ordinary instructions visible to the async proxy (TMA and tensor
// cores).
__device__ inline void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// In a fragment of accumulators each warp of the warpgroup has 16 of 64 rows, a thread rows lane /
// 4 and lane / 4 + 8 of these and two consecutive columns of every eight: accumulators 4j and 4j +
// 1 are in the first row, 4j + 2 and 4j + 3 in the second.

template <typename Output, typename Accumulator>
__device__ auto pair_of(Accumulator x, Accumulator y) {
  if constexpr (std::is_same_v<Output, __half>)
    return __floats2half2_rn(x, y);
  else if constexpr (std::is_same_v<Output, __nv_bfloat16>)
    return __floats2bfloat162_rn(x, y);
  else
    return make_float2(x, y);
}

// Stores 64 rows from (first_row, first_column) on of C, m x n, two elements at a time.
template <typename Output, typename Accumulator, int kAccumulators>
__device__ void store_accumulators(const Accumulator (&acc)[kAccumulators], void* c, std::int64_t m,
                                   std::int64_t n, int first_row, int first_column) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const std::int64_t column = first_column + thread % 4 * 2;
#pragma unroll
  for (int below = 0; below < 2; ++below) {
    const std::int64_t row = first_row + thread / 32 * 16 + thread % 32 / 4 + 8 * below;
    if (row >= m) return;
    Output* to = static_cast<Output*>(c) + row * n + column;
#pragma unroll
    for (int j = 0; j < kAccumulators / 4; ++j) {
      auto pair = pair_of<Output>(acc[4 * j + 2 * below], acc[4 * j + 2 * below + 1]);
      if (n % 2 == 0) {
        if (column + 8 * j < n) *reinterpret_cast<decltype(pair)*>(to + 8 * j) = pair;
      } else {
        if (column + 8 * j < n) to[8 * j] = pair.x;
        if (column + 8 * j + 1 < n) to[8 * j + 1] = pair.y;
      }
    }
  }
}

// A barrier of one consumer warpgroup.
__device__ inline void sync_consumer(int consumer) {
  asm volatile("bar.sync %0, 128;" ::"r"(consumer + 1) : "memory");
}

// Stores 16 rows and 16 columns of a fragment, eight accumulators, as four matrices of 8 x 8
// elements of 16 bits: rows 0 and 8 of columns 0 to 7, then of columns 8 to 15. `to` of lane i is
// the address of line i % 8 of matrix i / 8: of a row, or of a column if kTransposed.
template <typename Output, bool kTransposed, typename Accumulator>
__device__ void store_matrices(std::uint32_t to, const Accumulator* acc) {
  std::uint32_t pairs[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const auto pair = pair_of<Output>(acc[2 * j], acc[2 * j + 1]);
    pairs[j] = *reinterpret_cast<const std::uint32_t*>(&pair);
  }
  if constexpr (kTransposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                 : "memory");
}

// Shared memory of so many columns of 64 rows, staged.
constexpr int staging_bytes(int columns) { return 64 * columns * 2; }
// Columns of a box of 64 rows, which is stored by TMA at once, if so many columns are staged. A row
// of a box has 128 or 64 bytes, in the swizzle of that width.
constexpr int box_columns(int staged) { return staged % 64 == 0 ? 64 : 32; }

// Offset in the staging memory of a chunk of eight 16-bit elements of a row of a box.
template <int kBox>
__device__ int staged_at(int box, int row, int chunk) {
  constexpr int kChunks = kBox / 8;
  return box * staging_bytes(kBox) + row * 2 * kBox + (chunk ^ row * kChunks / 8 % kChunks) * 16;
}

// Stages kStaged columns of 64 rows in shared memory as 16-bit elements, in boxes. Each warp writes
// 16 rows.
template <typename Output, int kStaged, typename Accumulator>
__device__ void stage_columns(const Accumulator* acc, std::uint32_t staging) {
  constexpr int kBox = box_columns(kStaged);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane % 16;
#pragma unroll
  for (int i = 0; i < kStaged; i += 16)
    store_matrices<Output, false>(
        staging + staged_at<kBox>(i / kBox, row, i % kBox / 8 + lane / 16), acc + i / 2);
}

// Stores 64 rows of C, m x n, by TMA, kStaged columns at a time, by way of a consumer's own staging
// memory. map: boxes of 64 rows. TMA has read the last of them after tma_store_wait_read().
template <typename Output, int kStaged, int kAccumulators>
__device__ void store_by_tma(const float (&acc)[kAccumulators], const CUtensorMap& map, int row,
                             int column, std::uint32_t staging, int consumer) {
  constexpr int kBox = box_columns(kStaged);
  const bool first = threadIdx.x % 128 == 0;
#pragma unroll
  for (int at = 0; at < 2 * kAccumulators; at += kStaged) {
    if (first) tma_store_wait_read();  // the staging memory may be overwritten
    sync_consumer(consumer);
    stage_columns<Output, kStaged>(acc + at / 2, staging);
    fence_async_proxy();
    sync_consumer(consumer);
    if (!first) continue;
#pragma unroll
    for (int box = 0; box < kStaged; box += kBox)
      tma_store(map, column + at + box, row, staging + staging_bytes(box));
    tma_store_commit();
  }
}

}  // namespace gemm::tensor
