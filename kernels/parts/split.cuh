// An FP32 number as the sum of two TF32 numbers, and the kernel that splits a matrix for 3xTF32,
// K-major whatever its layout.
//
// TF32 has 11 significant bits, FP32 24. `large` is x rounded to nearest; the remainder is at most
// 2^-11 of x, and `small` holds 11 bits of it: the sum has an error of at most 2^-23 of x, and is
// exact for integers up to 2^23. That holds from 2^-102 on; below, `small` may be lost, which is at
// most 2^-126. Where rounding would make `large` infinite, from 2^128 - 2^116 on, it is truncated.
// Infinity and NaN are entirely in `large`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/parts/k_major_copy.cuh"

namespace gemm::tensor {

constexpr std::uint32_t kOfTf32 = 0xffffe000;  // mask of the bits of FP32 that TF32 keeps
constexpr std::uint32_t kHalf = 0x1000;        // half a unit in the last place of TF32

struct Split {
  float large, small;
};

__host__ __device__ constexpr Split split(float x) {
  constexpr std::uint32_t kMagnitude = 0x7fffffff, kRoundsToInfinity = 0x7f7ff000,
                          kInfinity = 0x7f800000;
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t magnitude = bits & kMagnitude;
  if (magnitude >= kInfinity) return {x + x, 0};  // x + x quiets a NaN, so that TF32 keeps it
  const std::uint32_t rounded = magnitude < kRoundsToInfinity ? bits + kHalf : bits;
  const float large = __builtin_bit_cast(float, rounded& kOfTf32);
  const auto rest = __builtin_bit_cast(std::uint32_t, x - large);
  return {large, __builtin_bit_cast(float, (rest + kHalf) & kOfTf32)};
}

// Layout of a split matrix: tiles of 16 steps of k, one tile of rows after another. In a tile a row
// is a line of 128 bytes: 16 large parts, then 16 small parts, in chunks of four. Chunk c has the
// steps c, c + 4, c + 8, c + 12, so that a thread that has four consecutive elements of the other
// operand has what its wgmma fragments need (any order along k is correct if both operands share
// it). Chunks are in wgmma's 128-byte swizzle.
constexpr int kSplitTileK = 16, kLineFloats = 2 * kSplitTileK, kLineBytes = 4 * kLineFloats;

// Pads rows to tiles of kTileRows and k to whole split tiles, with zeros.
template <bool kKMajor, int kTileRows>
__global__ void __launch_bounds__(kCopyThreads)
    split_into_tiles(CopyGrid grid, const float* __restrict__ from, std::int64_t rows,
                     std::int64_t depth, float4* __restrict__ to, std::int64_t k_tiles) {
  static_assert(kTileRows % kCopyTileRows == 0);
  constexpr int kChunks = kSplitTileK / 4;
  __shared__ CopyTile<float, kKMajor, kKMajor ? 4 : 8> tile;
  const std::int64_t first_row = grid.first_row<kKMajor>(), first_k = grid.first_k<kKMajor>();
  tile.load(from, rows, depth, first_row, first_k);
  __syncthreads();
#pragma unroll
  for (int round = 0; round < kCopyTileRows * kCopyTileK / 4 / kCopyThreads; ++round) {
    const int i = round * kCopyThreads + static_cast<int>(threadIdx.x);
    const int chunk = i % kChunks, row_of_8 = i / kChunks % 8;
    const int row = i / (8 * kChunks) % (kCopyTileRows / 8) * 8 + row_of_8;
    const int k_tile_of_copy = i / (kCopyTileRows * kChunks);
    const std::int64_t k_tile = first_k / kSplitTileK + k_tile_of_copy;
    if (k_tile >= k_tiles) continue;
    Split parts[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      parts[j] = split(tile.at(row, k_tile_of_copy * kSplitTileK + chunk + 4 * j));
    const std::int64_t tile = first_row / kTileRows, line = first_row % kTileRows + row;
    float4* chunks = to + ((tile * k_tiles + k_tile) * kTileRows + line) * (kLineFloats / 4);
    chunks[chunk ^ row_of_8] =
        make_float4(parts[0].large, parts[1].large, parts[2].large, parts[3].large);
    chunks[(chunk + kChunks) ^ row_of_8] =
        make_float4(parts[0].small, parts[1].small, parts[2].small, parts[3].small);
  }
}

}  // namespace gemm::tensor
