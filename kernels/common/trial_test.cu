// Trials find the faster work and skip what cannot run. Tests that launch are (label gpu).
#include <gtest/gtest.h>

#include <stdexcept>

#include "kernels/common/trial.hpp"

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

}  // namespace
}  // namespace gemm
