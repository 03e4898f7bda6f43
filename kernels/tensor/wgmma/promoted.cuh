// Products of FP8 whose sums are promoted: the tensor cores add up FP8 with 14 bits, so their sums
// of each slice, 128 steps of k, are added to sums in FP32. While one consumer adds, others
// multiply.
#pragma once

#include <cstdint>

#include "kernels/common/ring.cuh"
#include "kernels/tensor/wgmma/wgmma.cuh"

namespace gemm::tensor {

// sums = the product of so many slices of the ring, of A the 64 kParts rows from part `first` on.
template <typename Tile, int kCluster, int kParts>
__device__ void multiply_promoted(Ring<Tile::kStageBytes>& ring, int slices, int first,
                                  float (&sums)[kParts][Tile::kSums]) {
  float partial[1][Tile::kSums];
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int i = 0; i < Tile::kSums; ++i) sums[part][i] = 0;
#pragma unroll 1
  for (int slice = 0; slice < slices; ++slice, ring.next()) {
    ring.wait_for_stage();
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      fence_products();
      Tile::enqueue_products(partial, ring.data(), first + part, false);
      commit_products();
      wait_for_groups<0>();
      if (part + 1 == kParts) release<kCluster>(ring.empty());
      take_sums(partial[0]);
#pragma unroll
      for (int i = 0; i < Tile::kSums; ++i) sums[part][i] += partial[0][i];
    }
  }
}

}  // namespace gemm::tensor
