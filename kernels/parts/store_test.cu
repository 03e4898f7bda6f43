// Rows of 16-bit elements at every alignment and of every length. The test launches (label gpu).
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/parts/device_array.cuh"
#include "kernels/parts/store.cuh"

namespace gemm::tensor {
namespace {

constexpr int kPairs = 2, kMost = 64 * kPairs;

// Row r has 1 + r % kMost elements from r / kMost on.
__global__ void store_rows_of_all_lengths([[maybe_unused]] std::uint16_t* to) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const int row = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x);
  const std::uint32_t first = (2 * lane + 1U) | (2 * lane + 2U) << 16;
  const std::uint32_t pairs[kPairs] = {first, first + (64U | 64U << 16)};
  store_row(to + row * 2 * kMost + row / kMost, pairs, 1 + row % kMost);
#endif
}

TEST(Store, WritesTheElementsOfARowAndNoOthersOnTheGpu) {
  int major = 0;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess ||
      major != 9)
    GTEST_SKIP() << "no GPU of compute capability 9.0";
  constexpr int kRows = 4 * kMost;
  std::vector<std::uint16_t> rows(kRows * 2 * kMost);
  const auto memory = simt::device_array<std::uint16_t>(rows.size());
  ASSERT_EQ(cudaMemset(memory.get(), 0, 2 * rows.size()), cudaSuccess);
  store_rows_of_all_lengths<<<kRows, 32>>>(memory.get());
  ASSERT_EQ(cudaMemcpy(rows.data(), memory.get(), 2 * rows.size(), cudaMemcpyDefault), cudaSuccess);
  for (int row = 0; row < kRows; ++row)
    for (int i = 0; i < 2 * kMost; ++i) {
      const int element = i - row / kMost;
      const int expected = element >= 0 && element <= row % kMost ? element + 1 : 0;
      ASSERT_EQ(rows[row * 2 * kMost + i], expected) << row << ", " << i;
    }
}

}  // namespace
}  // namespace gemm::tensor
