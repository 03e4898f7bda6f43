// Tiles of the wgmma kernels and their operands in a stage of shared memory: K tiles of 128 bytes
// along k in the 128-byte swizzle, as TMA loads them and wgmma reads them.
//
// 16-bit operands are loaded as stored: K-major in one box, a line of 128 bytes per row of the
// tile; MN-major in boxes 128 bytes wide, a line per k; the last box may exceed the tile. Others
// must be K-major; an MN-major TF32 operand goes through registers (register_operand.cuh). Elements
// outside the matrix are zero, or undefined if they are beyond the last row of A or column of B and
// are not loaded.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/parts/packed_operand.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma_sizes.cuh"

namespace gemm::tensor {

constexpr int kLineBytes128 = 128;               // along k, or along m or n
constexpr int kPartBytes = 64 * kLineBytes128;   // the 64 rows of A of one wgmma
constexpr int kStageSteps = kLineBytes128 / 32;  // wgmmas of a stage along k

// A tensor map with boxes of box_x rows of A, or columns of B, by box_k along k. MN-major boxes are
// 128 bytes wide, or 32 in the 32-byte swizzle.
template <typename T>
CUtensorMap swizzled_map(const PackedOperand<T>& operand, std::int64_t x_size, std::int64_t k_size,
                         int box_x, int box_k) {
  constexpr CUtensorMapDataType kType = std::is_same_v<T, float>
                                            ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32  // rounds to TF32
                                            : kMapType<T>;
  if (operand.k_major)
    return tensor_map(operand.matrix, x_size, k_size, operand.pitch, box_x, box_k,
                      CU_TENSOR_MAP_SWIZZLE_128B, kType);
  const auto swizzle =
      box_x * sizeof(T) == 32 ? CU_TENSOR_MAP_SWIZZLE_32B : CU_TENSOR_MAP_SWIZZLE_128B;
  return tensor_map(operand.matrix, k_size, x_size, operand.pitch, box_k, box_x, swizzle, kType);
}

// The K tile of an operand: kX rows of A, or columns of B, aligned to 1024 bytes.
template <typename T, int kX, bool kKMajor>
struct StagedOperand {
  static constexpr int kDepth = kLineBytes128 / static_cast<int>(sizeof(T));  // elements along k
  static constexpr int kBoxes = (kX + kDepth - 1) / kDepth;                   // if MN-major
  static constexpr int kBytes = (kKMajor ? kX : kBoxes * kDepth) * kLineBytes128;
  static constexpr int kBoxBytes = kDepth * kLineBytes128;

  // Blocks of a cluster that share the operand load a part each: rows of a K-major box, or boxes.
  static CUtensorMap map(const PackedOperand<T>& operand, std::int64_t x_size, std::int64_t k_size,
                         int blocks = 1) {
    return swizzled_map(operand, x_size, k_size, kKMajor ? kX / blocks : kDepth, kDepth);
  }

  // Called by one thread; `full` counts the bytes. If kBlocks share the operand, the block with
  // this rank loads its part into all of them. Rows of a K-major operand, or boxes of an MN-major
  // one, that are beyond the last row of A or column of B are not loaded: TMA takes time for lines
  // that it fills with zeros, too (NOTES.md). `edge` is the map of a K-major operand's last rows,
  // which are fewer than a box of map() has; or of the parts along k of an MN-major operand's last
  // box, if its boxes cannot be divided among the blocks.
  static CUtensorMap edge_map(const PackedOperand<T>& operand, std::int64_t x_size,
                              std::int64_t k_size, int blocks = 1) {
    if (!kKMajor) return swizzled_map(operand, x_size, k_size, kDepth, kDepth / blocks);
    const int rest = static_cast<int>(x_size % (kX / blocks));
    return rest > 0 ? swizzled_map(operand, x_size, k_size, rest, kDepth)
                    : map(operand, x_size, k_size, blocks);
  }
  template <int kBlocks = 1>
  static __device__ void copy_inside(std::uint32_t to, const CUtensorMap& map,
                                     const CUtensorMap& edge, int x, int x_size, int k,
                                     std::uint32_t full, int rank = 0) {
    const auto copy_part = [&](const CUtensorMap& from, int at, int first, int second) {
      if constexpr (kBlocks > 1)
        tma_load_multicast((1 << kBlocks) - 1, to + at, from, first, second, full);
      else
        tma_load(to + at, from, first, second, full);
    };
    const int part = kBlocks > 1 ? rank : 0;
    if constexpr (kKMajor) {
      const int row = part * (kX / kBlocks), inside = x_size - x - row;
      if (inside >= kX / kBlocks)
        copy_part(map, row * kLineBytes128, k, x + row);
      else if (inside > 0)
        copy_part(edge, row * kLineBytes128, k, x + row);
    } else {
      constexpr int kWhole = kBoxes / kBlocks * kBlocks;
#pragma unroll
      for (int first = 0; first < kWhole; first += kBlocks) {
        const int box = first + part;
        if (x + kDepth * box < x_size) copy_part(map, box * kBoxBytes, x + kDepth * box, k);
      }
      const int deep = part * (kDepth / kBlocks);
#pragma unroll
      for (int box = kWhole; box < kBoxes; ++box)
        if (x + kDepth * box < x_size)
          copy_part(edge, box * kBoxBytes + deep * kLineBytes128, x + kDepth * box, k + deep);
    }
  }
  // The bytes that all blocks that share the operand load so.
  static __device__ int bytes_inside(int x, int x_size) {
    const int inside = min(max(x_size - x, 0), kX);
    return (kKMajor ? inside : (inside + kDepth - 1) / kDepth * kDepth) * kLineBytes128;
  }

  // The shared-memory descriptor for wgmma; add kStep for each step along k.
  static __device__ std::uint64_t descriptor(std::uint32_t at) {
    return kKMajor ? k_major_descriptor(at) : mn_major_descriptor(at, kBoxBytes);
  }
  static constexpr int kStep = (kKMajor ? 32 : kMmaK<T> * kLineBytes128) >> 4;
};

// Operand types and major-ness in shared memory. kTransposesC: computes C^T from A = B^T and B =
// A^T; m is then the columns of C.
template <typename Element_, typename Output_, bool kAKMajor_, bool kBKMajor_,
          bool kTransposesC_ = false>
struct WgmmaOperands {
  using Element = Element_;
  using Output = Output_;
  using Accumulator = AccumulatorOf<Element>;
  static constexpr bool kAKMajor = kAKMajor_, kBKMajor = kBKMajor_, kTransposesC = kTransposesC_;
  static constexpr bool kScaled = false;
};
// With a factor for each block (Precision::e4m3block).
struct ScaledOperands : WgmmaOperands<__nv_fp8_e4m3, __nv_bfloat16, true, true> {
  static constexpr bool kScaled = true;
};

// A tile of C, and a stage of its operands: A, then B.
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
  static constexpr int kAccumulators = kBN / 2;  // per thread, for 64 rows
  static_assert(kBM % 64 == 0 && kBN % 8 == 0 && (Operands::kBKMajor || kBN % 16 == 0));

  // Issues acc[i] (+)= A * B for 64 rows of A in a stage, from row 64 (first + i) on.
  template <int kParts>
  static __device__ void issue_mmas(Accumulator (&acc)[kParts][kAccumulators], std::uint32_t stage,
                                    int first, bool keep) {
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
