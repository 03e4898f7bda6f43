// TF32 with MN-major A: from shared memory wgmma reads MN-major operands only with 16-bit elements,
// but operands in registers have no layout. So each thread loads its fragment of A transposed.
#pragma once

#include <cstdint>

#include "kernels/parts/ring.cuh"
#include "kernels/parts/staged_operand.cuh"
#include "kernels/parts/wgmma.cuh"

namespace gemm::tensor {

// Loads the A fragments of multiply_from_registers (wgmma.cuh) for 64 rows and eight steps of k,
// but with rows 2 (lane / 4) and the next one in place of lane / 4 and lane / 4 + 8, so that both
// are adjacent (FragmentRows of store.cuh). Odd threads load their later step first, which puts the
// eight steps that half a warp loads into different banks.
template <typename Tile, int kParts>
__device__ void load_transposed(std::uint32_t (&a)[kParts][4], std::uint32_t stage, int first,
                                int step) {
  const int lane = static_cast<int>(threadIdx.x) % 32, odd = lane % 2;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const std::uint32_t chunk = stage + ((first + part) * 2 + warp / 2) * Tile::A::kBoxBytes;
    std::uint32_t read[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int deep = lane % 4 + 4 * (odd ^ i);  // of eight steps
      const int piece = (4 * (warp % 2) + lane / 8) ^ deep;
      asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                   : "=r"(read[i][0]), "=r"(read[i][1])
                   : "r"(chunk + (8 * step + deep) * kLineBytes128 + piece * 16 + lane / 4 % 2 * 8)
                   : "memory");
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      a[part][i] = odd ? read[1][i] : read[0][i];
      a[part][2 + i] = odd ? read[0][i] : read[1][i];
    }
  }
}

// Never executed: ptxas (13.0) considers registers free once a wgmma that reads them was issued. A
// use after the wait keeps them allocated.
template <int kParts>
__device__ void keep_registers(const std::uint32_t (&a)[kParts][4], std::uint32_t to) {
#pragma unroll
  for (int part = 0; part < kParts; ++part)
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to + 16 * part), "r"(a[part][0]),
                 "r"(a[part][1]), "r"(a[part][2]), "r"(a[part][3])
                 : "memory");
}

// acc = the product over so many K tiles, for 64 * kParts rows of A from part `first` on. A's next
// fragments are loaded during the MMAs of two steps. Calls on_issued() once all MMAs are issued.
template <typename Tile, int kCluster, int kParts, typename OnIssued>
__device__ void multiply_through_registers(Ring<Tile::kStageBytes>& ring, int k_tiles, int first,
                                           float (&acc)[kParts][Tile::kAccumulators],
                                           OnIssued on_issued) {
  std::uint32_t a[kStageSteps][kParts][4];
  std::uint32_t used = 0;
  const bool never = ring.first == 0;
  ring.wait_for_stage();
  load_transposed<Tile>(a[0], ring.data(), first, 0);
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    const std::uint64_t b = Tile::B::descriptor(ring.data() + Tile::A::kBytes);
#pragma unroll
    for (int step = 0; step < kStageSteps; ++step) {
      const int before = (step + kStageSteps - 1) % kStageSteps, after = (step + 1) % kStageSteps;
      wgmma_fence();
#pragma unroll
      for (int part = 0; part < kParts; ++part)
        multiply_from_registers(acc[part], a[step][part], b + step * Tile::B::kStep,
                                k_tile > 0 || step > 0);
      wgmma_commit();
      const std::uint32_t last = used;
      if (after == 0) {
        used = ring.empty();
        ring.next();
        if (k_tile + 1 < k_tiles) ring.wait_for_stage();
      }
      if (after > 0 || k_tile + 1 < k_tiles)
        load_transposed<Tile>(a[after], ring.data(), first, after);
      wgmma_wait<1>();  // for the previous step
      if (never) keep_registers(a[before], ring.first);
      if (step == 0 && k_tile > 0) release<kCluster>(last);
    }
  }
  on_issued();
  wgmma_wait_all(acc);
  if (never) keep_registers(a[kStageSteps - 1], ring.first);
  release<kCluster>(used);
}

}  // namespace gemm::tensor
