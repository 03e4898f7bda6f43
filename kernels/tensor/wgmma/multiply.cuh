// The product of some slices of the ring: a consumer's loop, whose sums stay in registers.
#pragma once

#include <cstdint>

#include "kernels/common/ring.cuh"
#include "kernels/tensor/wgmma/wgmma.cuh"

namespace gemm::tensor {

// sums = the product of so many slices, of A the 64 kParts rows from part `first` on. A slice's
// products are waited for once those of the next are enqueued. end_turn() once all are.
template <typename Tile, int kCluster, typename Sum, int kParts, typename EndTurn>
__device__ void multiply_slices(Ring<Tile::kStageBytes>& ring, int slices, int first,
                                Sum (&sums)[kParts][Tile::kSums], EndTurn end_turn) {
  std::uint32_t before = 0;
#pragma unroll 1
  for (int slice = 0; slice < slices; ++slice, ring.next()) {
    ring.wait_for_stage();
    fence_products();
    Tile::enqueue_products(sums, ring.data(), first, slice > 0);
    commit_products();
    wait_for_groups<1>();
    if (slice > 0) release<kCluster>(before);
    before = ring.empty();
  }
  end_turn();
  wait_for_products(sums);
  release<kCluster>(before);
}
template <typename Tile, int kCluster = 1, typename Sum, int kParts>
__device__ void multiply_slices(Ring<Tile::kStageBytes>& ring, int slices, int first,
                                Sum (&sums)[kParts][Tile::kSums]) {
  multiply_slices<Tile, kCluster>(ring, slices, first, sums, [] {});
}

// The same for FP8 whose sums are promoted: the tensor cores add up FP8 with 14 bits, so their sums
// of each slice, 128 steps of k, are added to sums in FP32. While one consumer adds, others
// multiply.
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
