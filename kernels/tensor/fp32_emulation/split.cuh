// An FP32 number as the sum of two TF32 numbers, and matrices brought into the form in which 3xTF32
// wants them: whatever their layout, k is contiguous afterwards.
//
// TF32 has 11 significant bits, FP32 24. Rounded to nearest, `large` leaves a rest of at most 2^-11
// of x, of which `small` has 11 bits again: the sum is off by at most 2^-23 of x, and exact for
// integers up to 2^23. That holds from 2^-102 on; below, `small` may be lost, which is 2^-126 at
// most. Where `large` would be rounded to infinity, from 2^128 - 2^116 on, it is what TF32 cuts
// off. An infinity or a NaN is all in `large`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/tensor/k_major_copy.cuh"

namespace gemm::tensor {

constexpr std::uint32_t kOfTf32 = 0xffffe000;  // the bits of FP32 that TF32 has
constexpr std::uint32_t kHalf = 0x1000;        // half of the last of them

struct Split {
  float large, small;
};

__host__ __device__ constexpr Split split(float x) {
  constexpr std::uint32_t kMagnitude = 0x7fffffff, kRoundsToInfinity = 0x7f7ff000,
                          kInfinity = 0x7f800000;
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t magnitude = bits & kMagnitude;
  if (magnitude >= kInfinity) return {x + x, 0};  // whose bits TF32 has, of a NaN too
  const std::uint32_t rounded = magnitude < kRoundsToInfinity ? bits + kHalf : bits;
  const float large = __builtin_bit_cast(float, rounded& kOfTf32);
  const auto rest = __builtin_bit_cast(std::uint32_t, x - large);
  return {large, __builtin_bit_cast(float, (rest + kHalf) & kOfTf32)};
}

// Split matrices lie in K tiles of 16 steps of k, a tile of rows after the other. In a K tile a row
// is a line of 128 bytes: 16 large parts, then the 16 small ones, in chunks of four. Chunk c has
// the steps c, c + 4, c + 8, c + 12: so a thread of wgmma that has four neighbouring elements of
// the other operand finds each of them where its fragment wants it (any order of k will do, if both
// operands have it). Chunks are swizzled as wgmma reads them, by the last three bits of the row.
constexpr int kSplitTileK = 16, kLineFloats = 2 * kSplitTileK, kLineBytes = 4 * kLineFloats;

// Rows are padded to tiles of kTileRows, k to whole K tiles, with zeros.
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
