#include "bench/base/cuda.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace gemm::bench {
namespace {

TEST(CudaCheck, SaysFileAndLineWithoutTheFoldersOfTheBuild) {
  std::string message;
  try {
    check(cudaErrorIllegalAddress);
  } catch (const std::exception& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("(cudaErrorIllegalAddress, cuda_test.cpp:"), std::string::npos) << message;
}

TEST(CudaCheck, LetsSuccessPass) { EXPECT_NO_THROW(check(cudaSuccess)); }

}  // namespace
}  // namespace gemm::bench
