// Trials find the faster work and skip what cannot run. Tests that launch are (label gpu).
#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

#include "kernels/parts/trial.hpp"

namespace gemm {
namespace {

__global__ void spin(long long cycles) {
  for (const long long begin = clock64(); clock64() - begin < cycles;) {
  }
}

Trial::Work spinning(long long cycles) {
  return [cycles](Stream stream) {
    spin<<<1, 1, 0, stream>>>(cycles);
    return cudaGetLastError() == cudaSuccess;
  };
}

TEST(Trial, FindsTheFastestOfThoseThatRunOnTheGpu) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) GTEST_SKIP() << "no GPU";
  const Trial::Work failing = [](Stream) { return false; };
  EXPECT_EQ(Trial().fastest({failing, spinning(20000), spinning(4000), spinning(9000)}), 2U);
  EXPECT_EQ(Trial().fastest({failing, spinning(4000)}), 1U);
  EXPECT_THROW(Trial().fastest({failing}), std::runtime_error);
}

TEST(OperandSets, AreCopiesThatExceedTheL2OnTheGpu) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) GTEST_SKIP() << "no GPU";
  constexpr std::size_t kBytes = 512 * 512 * sizeof(float);
  const Problem p{512, 512, 512, Precision::f32};
  const simt::DeviceMemory memory(3 * kBytes);
  auto* const first = static_cast<std::byte*>(memory.get());
  check(cudaMemset(first, 7, 3 * kBytes));
  const Operands o{first, first + kBytes, first + 2 * kBytes};
  Device device;
  device.last_level_cache_bytes = 4 * kBytes;  // six matrices are two sets
  const OperandSets two(p, device, o);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two.of_launch(2).a, o.a);
  EXPECT_NE(two.of_launch(1).a, o.a);
  std::vector<std::byte> copied(kBytes);
  check(cudaMemcpy(copied.data(), two.of_launch(1).b, kBytes, cudaMemcpyDeviceToHost));
  EXPECT_EQ(copied, std::vector<std::byte>(kBytes, std::byte{7}));
  device.last_level_cache_bytes = 1 << 30;
  EXPECT_EQ(OperandSets(p, device, o).size(), 8U);
}

}  // namespace
}  // namespace gemm
