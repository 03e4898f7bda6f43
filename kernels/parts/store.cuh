// Epilogues of production kernels: wgmma accumulators to C, of any element type, size and
// alignment.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/store_row.cuh"
#include "kernels/parts/wgmma.cuh"

namespace gemm::tensor {

// Rows of C per TMA store of a tile of C^T.
constexpr int kTransposedRows = 32;
// Rows of C that store_transposed_odd stages at once; their distance in elements, free of bank
// conflicts; bytes per consumer.
constexpr int kOddRows = 32, kOddPitch = 68, kOddBytes = kOddRows * kOddPitch * 4;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The first row of a thread in 64 rows, and the distance to its second: adjacent for a TF32 operand
// that came through registers (register_operand.cuh), else eight.
template <bool kAdjacent>
struct FragmentRows {
  static constexpr int kApart = kAdjacent ? 1 : 8;
  static constexpr int kStep = kAdjacent ? 2 : 1;  // to the first row of the next four lanes
  static __device__ int first() {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    return thread / 32 * 16 + lane / 4 * kStep;
  }
};

// Stores 16 columns of eight rows of a warp as 32-bit elements, the columns below n of the rows
// that are `inside`. Lanes exchange a pair each, so that one stores 16 bytes, and four fill 64
// bytes of a row. The lane's own elements are acc[0] and acc[1], in `column` and the next one of
// its row, and acc[4] and acc[5], eight columns after them. Rows of C begin at multiples of 16
// bytes.
template <typename Accumulator>
__device__ void store_fours(const Accumulator* acc, Accumulator* row_begin, bool inside,
                            std::int64_t column, std::int64_t n) {
  int lane;  // opaque: it is not kept in a register beside the accumulators
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  const bool right = lane % 2 != 0;
  struct alignas(16) Four {
    Accumulator element[4];
  } four;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const Accumulator near = acc[i], far = acc[4 + i];
    const Accumulator received = __shfl_xor_sync(~0U, right ? near : far, 1);
    four.element[i] = right ? received : near;
    four.element[2 + i] = right ? far : received;
  }
  column += right ? 6 : 0;
  if (inside && column < n) *reinterpret_cast<Four*>(row_begin + column) = four;
}

// The same with rows of C that are aligned to two elements: after an exchange eight lanes store 64
// contiguous bytes of a row. `row` is the warp's first of the eight, kStep the distance between
// them.
template <int kStep, typename Accumulator>
__device__ void store_pairs(const Accumulator* acc, Accumulator* c, std::int64_t m, std::int64_t n,
                            std::int64_t row, std::int64_t first_column) {
  int lane;  // opaque, as above
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  const bool odd_row = lane & 4;
  struct alignas(8) Pair {
    Accumulator element[2];
  } even, odd;  // of both rows
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const Accumulator near = acc[i], far = acc[4 + i];
    const Accumulator received = __shfl_xor_sync(~0U, odd_row ? near : far, 4);
    even.element[i] = odd_row ? received : near;
    odd.element[i] = odd_row ? far : received;
  }
  const std::int64_t column = first_column + lane % 4 * 2 + 8 * odd_row;
  row += lane / 8 * 2 * kStep;
  Accumulator* to = c + row * n + column;
  if (row < m && column < n) *reinterpret_cast<Pair*>(to) = even;
  if (row + kStep < m && column < n) *reinterpret_cast<Pair*>(to + kStep * n) = odd;
}

// The same with rows of C that are aligned to single elements: after two exchanges 16 lanes store
// 64 contiguous bytes of a row.
template <int kStep, typename Accumulator>
__device__ void store_singly(const Accumulator* acc, Accumulator* c, std::int64_t m, std::int64_t n,
                             std::int64_t row, std::int64_t first_column) {
  int lane;  // opaque, as above
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  const bool odd_row = lane & 4, second_pair = lane & 8;
  // A lane exchanges a column with the lane of the next row. Then it has one column of both rows.
  Accumulator columns[2][2];  // of both rows, and of both halves of the 16 columns
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Accumulator x = acc[4 * half], y = acc[4 * half + 1];
    const Accumulator received = __shfl_xor_sync(~0U, odd_row ? x : y, 4);
    columns[0][half] = odd_row ? received : x;
    columns[1][half] = odd_row ? y : received;
  }
  const std::int64_t column = first_column + lane % 4 * 2 + odd_row + 8 * second_pair;
  row += lane / 16 * 4 * kStep;
  Accumulator* to = c + row * n + column;
#pragma unroll
  for (int i = 0; i < 2; ++i) {  // exchanges half of the columns with the lane two rows on
    const Accumulator left = columns[i][0], right = columns[i][1];
    const Accumulator received = __shfl_xor_sync(~0U, second_pair ? left : right, 8);
    const Accumulator of[2] = {second_pair ? received : left, second_pair ? right : received};
#pragma unroll
    for (int j = 0; j < 2; ++j)
      if (row + (i + 2 * j) * kStep < m && column < n) to[(i + 2 * j) * kStep * n] = of[j];
  }
}

// Stores 32-bit elements from registers: 64 * kParts rows from (first_row, first_column) on of C, m
// x n. They are exchanged between lanes first, so that stores are longer.
template <typename Output, bool kAdjacent = false, typename Accumulator, int kParts,
          int kAccumulators>
__device__ void store_by_threads(const Accumulator (&acc)[kParts][kAccumulators], void* c,
                                 std::int64_t m, std::int64_t n, int first_row, int first_column) {
  static_assert(sizeof(Output) == 4 && kAccumulators % 8 == 0);
  using Rows = FragmentRows<kAdjacent>;
  const std::int64_t column = first_column + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const std::int64_t row = first_row + 64 * part + Rows::first() + Rows::kApart * below;
      auto* to = static_cast<Accumulator*>(c) + row * n;
      if (n % 4 == 0 && reinterpret_cast<std::uintptr_t>(c) % 16 == 0) {
#pragma unroll
        for (int j = 0; j < kAccumulators; j += 8)
          store_fours(acc[part] + j + 2 * below, to, row < m, column + 2 * j, n);
        continue;
      }
      const std::int64_t first = row - static_cast<int>(threadIdx.x) % 32 / 4 * Rows::kStep;
      if (n % 2 == 0 && reinterpret_cast<std::uintptr_t>(c) % 8 == 0) {
#pragma unroll
        for (int j = 0; j < kAccumulators; j += 8)
          store_pairs<Rows::kStep>(acc[part] + j + 2 * below, static_cast<Accumulator*>(c), m, n,
                                   first, first_column + 2 * j);
      } else {
#pragma unroll
        for (int j = 0; j < kAccumulators; j += 8)
          store_singly<Rows::kStep>(acc[part] + j + 2 * below, static_cast<Accumulator*>(c), m, n,
                                    first, first_column + 2 * j);
      }
    }
  }
}

// Stores a tile of C^T, transposed, whose rows of C have an even number of elements: eight threads
// write 64 bytes of a row of C. m and n are those of C^T.
template <int kParts, int kAccumulators>
__device__ void store_transposed(const float (&acc)[kParts][kAccumulators], void* c, std::int64_t m,
                                 std::int64_t n, int first_row, int first_column) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const std::int64_t row = first_row + 64 * part + FragmentRows<true>::first();
#pragma unroll
    for (int j = 0; j < kAccumulators / 4; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::int64_t column =
            first_column + 8 * j + static_cast<int>(threadIdx.x) % 4 * 2 + i;
        if (row < m && column < n)
          *reinterpret_cast<float2*>(static_cast<float*>(c) + column * m + row) =
              make_float2(acc[part][4 * j + i], acc[part][4 * j + 2 + i]);
      }
  }
}

// The same with an odd number: a consumer stages 32 rows of C, 64 elements of each, and a warp
// stores a row at a time, in lines of 32 elements that begin at sectors of 32 bytes. `staging` has
// kOddBytes for each consumer.
template <int kParts, int kAccumulators>
__device__ void store_transposed_odd(const float (&acc)[kParts][kAccumulators], void* c,
                                     std::int64_t m, std::int64_t n, int first_row,
                                     int first_column, std::uint32_t staging, int consumer) {
  int thread;  // opaque, as above
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread), "+l"(m), "+l"(c));
  const int lane = thread % 32, warp = thread % 128 / 32;
  staging += consumer * kOddBytes;
  const std::uint32_t own = staging + 4 * (lane % 4 * 2 * kOddPitch + warp * 16 + lane / 4 * 2);
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int begin = 0; begin < 2 * kAccumulators; begin += kOddRows) {
      sync_consumer(consumer);
#pragma unroll
      for (int j = 0; j < kOddRows / 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(own + 4 * (8 * j + i) * kOddPitch),
                       "f"(acc[part][begin / 2 + 4 * j + i]),
                       "f"(acc[part][begin / 2 + 4 * j + 2 + i])
                       : "memory");
      sync_consumer(consumer);
      constexpr int kOfWarp = kOddRows / 4;  // rows
      const int inside = static_cast<int>(min(m - first_row - 64 * part, std::int64_t{64}));
      const int first = warp * kOfWarp;
      const int rows = min(static_cast<int>(n) - first_column - begin - first, kOfWarp);
      float* to =
          static_cast<float*>(c) + (first_column + begin + first) * m + first_row + 64 * part;
#pragma unroll 2
      for (int i = 0; i < rows; ++i, to += m) {
        const int at = lane - static_cast<int>(reinterpret_cast<std::uintptr_t>(to) / 4 % 8);
        float line[3];
#pragma unroll
        for (int j = 0; j < 3; ++j)
          asm volatile("ld.shared.f32 %0, [%1];"
                       : "=f"(line[j])
                       : "r"(staging + 4 * ((first + i) * kOddPitch +
                                            (j == 0 ? max(at, 0) : min(at + 32 * j, 63))))
                       : "memory");
#pragma unroll
        for (int j = 0; j < 3; ++j)
          if (at + 32 * j >= 0 && at + 32 * j < inside) to[at + 32 * j] = line[j];
      }
    }
}

// A warp stores its kRows of 4 kRows staged rows to C, m x n: kStaged columns of a row at a time,
// and kAtOnce rows at once, to hide the latency of shared memory.
template <int kStaged, int kAtOnce, int kRows = 16>
__device__ void store_rows(void* c, std::int64_t m, std::int64_t n, int first_row, int first_column,
                           std::uint32_t staging) {
  constexpr int kBox = box_columns(kStaged), kLanes = kBox / 2;  // that load a row of a box
  constexpr int kPairs = (kStaged + 63) / 64;                    // of a lane, in a row
  static_assert(kRows % kAtOnce == 0 && kRows % 8 == 0);
  // Opaque: whatever depends on them is not computed before, beside the accumulators.
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread), "+l"(n), "+l"(c));
  const int lane = thread % 32, first = thread % 128 / 32 * kRows;
  const int row = first_row + first, rows = uniform(min(static_cast<int>(m) - row, kRows));
  const int count = min(static_cast<int>(n) - first_column, kStaged);
  if (count <= 0) return;
  auto* to = static_cast<std::uint16_t*>(c) + row * n + first_column;
  staging += first * 2 * kBox;
#pragma unroll 1
  for (int i = 0; i < rows; i += kAtOnce) {
    std::uint32_t pairs[kAtOnce][kPairs];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        const int box = min(64 / kBox * pair + lane / kLanes, kStaged / kBox - 1);
        asm volatile(
            "ld.shared.u32 %0, [%1];"
            : "=r"(pairs[j][pair])
            : "r"(staging + staged_at<kBox>(box, i + j, lane % kLanes / 4) + lane % 4 * 4));
      }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j, to += n)
      if (i + j < rows) store_row(to, pairs[j], count);
  }
}

// Stores through shared memory, kStaged columns at a time, a multiple of 32; `staging` has
// staging_bytes for each consumer. By TMA, asynchronously, if C's rows are aligned to 16 bytes, as
// it requires; else each warp stores what it staged. Call finish_stores() before the block exits.
template <typename Output, int kStaged, typename Work, typename Accumulator, int kParts,
          int kAccumulators>
__device__ void store_tile(const Accumulator (&acc)[kParts][kAccumulators], const Work& work,
                           int first_row, int first_column, std::uint32_t staging, int consumer) {
  static_assert(sizeof(Output) == 2 && kStaged % 32 == 0 && 2 * kAccumulators % kStaged == 0);
  const bool first = threadIdx.x % 128 == 0;
  staging += consumer * staging_bytes(kStaged);
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int column = 0; column < 2 * kAccumulators; column += kStaged) {
      if (first) tma_store_wait_read();
      sync_consumer(consumer);
      stage_columns<Output, kStaged>(acc[part] + column / 2, staging);
      fence_async_proxy();
      sync_consumer(consumer);
      if (!work.by_tma) {
        constexpr int kAtOnce = kParts * kAccumulators > 128 ? 1 : 2;  // by the registers left
        store_rows<kStaged, kAtOnce>(work.c, work.m, work.n, first_row + part * 64,
                                     first_column + column, staging);
        continue;
      }
      if (!first) continue;
#pragma unroll
      for (int i = 0; i < kStaged; i += box_columns(kStaged))
        tma_store(work.c_map, first_column + column + i, first_row + part * 64,
                  staging + i * staging_bytes(1));
      tma_store_commit();
    }
}

// Stages 64 rows of C^T as 2 kAccumulators rows of 64 elements of C, with the 128-byte swizzle.
// Each warp writes 16 of the 64.
template <typename Output, typename Accumulator, int kAccumulators>
__device__ void stage_transposed(const Accumulator (&acc)[kAccumulators], std::uint32_t staging) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int chunk = static_cast<int>(threadIdx.x) % 128 / 32 * 2 + lane / 8 % 2;
  staging += (lane / 16 * 8 + lane % 8) * 128 + (chunk ^ lane % 8) * 16;
#pragma unroll
  for (int i = 0; i < 2 * kAccumulators; i += 16)
    store_matrices<Output, true>(staging + i * 128, acc + i / 2);
}

// The same as store_tile for C^T, all columns of 64 rows at a time. work.m and work.n are those of
// C^T.
template <typename Output, typename Work, typename Accumulator, int kParts, int kAccumulators>
__device__ void store_transposed_tile(const Accumulator (&acc)[kParts][kAccumulators],
                                      const Work& work, int first_row, int first_column,
                                      std::uint32_t staging, int consumer) {
  constexpr int kColumns = 2 * kAccumulators;
  static_assert(sizeof(Output) == 2 && kColumns % kTransposedRows == 0);
  const bool first = threadIdx.x % 128 == 0;
  staging += consumer * staging_bytes(kColumns);
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int row = first_row + part * 64;
    if (first) tma_store_wait_read();
    sync_consumer(consumer);
    stage_transposed<Output>(acc[part], staging);
    fence_async_proxy();
    sync_consumer(consumer);
    if (!work.by_tma) {
      constexpr int kAtOnce = kParts * kAccumulators > 128 ? 2 : 4;  // by the registers left
      store_rows<64, kAtOnce, kColumns / 4>(work.c, work.n, work.m, first_column, row, staging);
      continue;
    }
    if (!first) continue;
    for (int i = 0; i < kColumns && first_column + i < work.n; i += kTransposedRows)
      tma_store(work.c_map, row, first_column + i, staging + i * 128);
    tma_store_commit();
  }
}

__device__ inline void finish_stores() {
  if (threadIdx.x % 128 == 0) tma_store_wait_read();
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace gemm::tensor
