// Tiles of the wgmma rungs, and their operands in a stage of shared memory: 128 bytes of k deep, in
// the 128-byte swizzle, as TMA copies them and wgmma reads them.
//
// Elements of 16 bits are copied as they lie: along k in one box, a line of 128 bytes for each row
// of the tile; along m or n in boxes 128 bytes wide, a line for each k. Others must lie along k for
// wgmma; a TF32 operand that does not goes through registers (register_operand.cuh). What lies
// outside the matrix is zero.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/asynchronous.cuh"
#include "kernels/common/packed_operand.cuh"
#include "kernels/common/ring.cuh"
#include "kernels/common/tensor_map.hpp"
#include "kernels/tensor/wgmma/wgmma.cuh"

namespace gemm::tensor {

constexpr int kLineBytes128 = 128;               // of k, or of m or n
constexpr int kPartBytes = 64 * kLineBytes128;   // 64 rows: what one wgmma multiplies of A
constexpr int kStageSteps = kLineBytes128 / 32;  // products of a stage, one after another along k

// Of an operand that lies as its copies want it, in boxes of so many rows of A, or columns of B,
// and so much of k.
template <typename T>
CUtensorMap swizzled_map(const PackedOperand<T>& operand, std::int64_t x_size, std::int64_t k_size,
                         int box_x, int box_k) {
  constexpr CUtensorMapDataType kType = std::is_same_v<T, float>
                                            ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32  // rounds
                                            : kMapType<T>;
  constexpr auto kSwizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  if (operand.k_major)
    return tensor_map(operand.matrix, x_size, k_size, operand.pitch, box_x, box_k, kSwizzle, kType);
  return tensor_map(operand.matrix, k_size, x_size, operand.pitch, box_k, box_x, kSwizzle, kType);
}

// kX rows of A, or columns of B. It begins at a multiple of 1024 bytes.
template <typename T, int kX, bool kKMajor>
struct StagedOperand {
  static constexpr int kDepth = kLineBytes128 / static_cast<int>(sizeof(T));  // elements of k
  static constexpr int kBytes = kX * kLineBytes128, kBoxBytes = kDepth * kLineBytes128;

  // The blocks of a cluster that share the operand copy a part each.
  static CUtensorMap map(const PackedOperand<T>& operand, std::int64_t x_size, std::int64_t k_size,
                         int blocks = 1) {
    return kKMajor ? swizzled_map(operand, x_size, k_size, kX / blocks, kDepth)
                   : swizzled_map(operand, x_size, k_size, kDepth, kDepth / blocks);
  }

  // By one thread; `full` counts its bytes. Of kBlocks that share the operand, the one with this
  // rank copies its part into all.
  template <int kBlocks = 1>
  static __device__ void copy(std::uint32_t to, const CUtensorMap& map, int x, int k,
                              std::uint32_t full, int rank = 0) {
    const auto copy_part = [&](int at, int first, int second) {
      if constexpr (kBlocks > 1)
        tma_load_multicast((1 << kBlocks) - 1, to + at, map, first, second, full);
      else
        tma_load(to + at, map, first, second, full);
    };
    const int part = kBlocks > 1 ? rank : 0;
    if constexpr (kKMajor) {
      const int row = part * (kX / kBlocks);
      copy_part(row * kLineBytes128, k, x + row);
    } else {
      const int deep = part * (kDepth / kBlocks);
#pragma unroll
      for (int box = 0; box < kX / kDepth; ++box)
        copy_part(box * kBoxBytes + deep * kLineBytes128, x + kDepth * box, k + deep);
    }
  }

  // As wgmma takes it; kStep further for each step along k.
  static __device__ std::uint64_t descriptor(std::uint32_t at) {
    return kKMajor ? k_major_descriptor(at) : mn_major_descriptor(at, kBoxBytes);
  }
  static constexpr int kStep = (kKMajor ? 32 : kMmaK<T> * kLineBytes128) >> 4;
};

// The operands of a product: types, and directions in shared memory. kTransposesC: it computes C^T,
// whose m rows are C's columns, from A = B^T and B = A^T.
template <typename Element_, typename Output_, bool kAKMajor_, bool kBKMajor_,
          bool kTransposesC_ = false>
struct WgmmaOperands {
  using Element = Element_;
  using Output = Output_;
  using Accumulator = AccumulatorOf<Element>;
  static constexpr bool kAKMajor = kAKMajor_, kBKMajor = kBKMajor_, kTransposesC = kTransposesC_;
};

// A tile of C, and a stage of its operands: A's part, then B's.
template <typename Operands_, int kBM_, int kBN_>
struct WgmmaTile {
  using Operands = Operands_;
  using Element = typename Operands::Element;
  using Output = typename Operands::Output;
  using Accumulator = typename Operands::Accumulator;
  using A = StagedOperand<Element, kBM_, Operands::kAKMajor>;
  using B = StagedOperand<Element, kBN_, Operands::kBKMajor>;
  static constexpr int kBM = kBM_, kBN = kBN_, kBK = A::kDepth;
  static constexpr int kStageBytes = A::kBytes + B::kBytes;
  static constexpr int kAccumulators = kBN / 2;  // of a thread, in 64 rows
  static_assert(kBM % 64 == 0 && kBN % 8 == 0 && (Operands::kBKMajor || kBN % 64 == 0));

  // Enqueues accumulators[i] (+)= 64 rows of A in a stage, from row 64 (first + i) on, times B.
  template <int kParts>
  static __device__ void enqueue_mmas(Accumulator (&acc)[kParts][kAccumulators],
                                      std::uint32_t stage, int first, bool keep) {
    const std::uint64_t a = A::descriptor(stage + first * kPartBytes),
                        b = B::descriptor(stage + A::kBytes);
#pragma unroll
    for (int step = 0; step < kStageSteps; ++step)
#pragma unroll
      for (int part = 0; part < kParts; ++part)
        multiply<Element, !Operands::kAKMajor, !Operands::kBKMajor>(
            acc[part], a + part * (kPartBytes >> 4) + step * A::kStep, b + step * B::kStep,
            keep || step > 0);
  }
};

}  // namespace gemm::tensor
