// Names as the driver gives them are made readable, and (label GPU) found for kernels of our own
// and of the library.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/backend.hpp"
#include "bench/kernel_code/kernel_code.hpp"
#include "kernels/registry.hpp"

namespace gemm::bench {
namespace {

// The mangled name of `outer::inner<1, 1, ...>(int)`, with so many template arguments.
std::string mangled(int arguments) {
  std::string name = "_ZN5outer5innerI";
  for (int i = 0; i < arguments; ++i) name += "Li1E";
  return name + "EEvi";
}

TEST(KernelName, IsDemangled) {
  EXPECT_EQ(readable_kernel_name("_ZN4gemm4simt5naiveEPKfPf"),
            "gemm::simt::naive(float const*, float*)");
  EXPECT_EQ(readable_kernel_name(mangled(2).c_str()), "void outer::inner<1, 1>(int)");
  EXPECT_EQ(readable_kernel_name("nvjet_hsh_128x256_64x4"), "nvjet_hsh_128x256_64x4");
}

TEST(KernelName, LosesItsArgumentsWhenItIsLong) {
  std::string many_arguments = "_ZN12_GLOBAL__N_14longIfEEv";
  for (int i = 0; i < 60; ++i) many_arguments += "PKf";
  EXPECT_EQ(readable_kernel_name(many_arguments.c_str()), "(anonymous namespace)::long<float>");

  EXPECT_EQ(readable_kernel_name(mangled(100).c_str()), "outer::inner<...>");
  const std::string plain(300, 'x');
  EXPECT_EQ(readable_kernel_name(plain.c_str()), plain.substr(0, 197) + "...");
}

class KernelNamesOnTheGpu : public testing::Test {
 protected:
  static constexpr Problem kProblem{256, 256, 256, Precision::f32};

  void SetUp() override {
    std::string reason;
    backend_ = make_cuda_backend(0, reason);
    if (backend_ == nullptr) GTEST_SKIP() << reason;
    for (Buffer& matrix : matrices_) {
      matrix = backend_->allocate(256 * 256 * sizeof(float));
      backend_->poison(matrix.get(), 256 * 256 * sizeof(float));
    }
  }

  Launch launch_of(std::string_view name) const {
    const auto found = std::ranges::find_if(registry(), [&](const RegisteredKernel& one) {
      return one.name == name && std::ranges::count(one.precisions, kProblem.precision) > 0 &&
             !(one.unsupported && one.unsupported(kProblem, backend_->device()));
    });
    if (found == registry().end()) throw std::runtime_error("no such kernel");
    return found->prepare(kProblem, backend_->device(),
                          {matrices_[0].get(), matrices_[1].get(), matrices_[2].get()});
  }

  LaunchedKernels kernels_of(const Launch& launch) const {
    LaunchedKernels launched;
    backend_->run([&](Stream stream) { launched = bench::kernels_of(launch, stream); });
    return launched;
  }

  std::vector<std::string> names_of(const Launch& launch) const { return kernels_of(launch).names; }

  std::unique_ptr<Backend> backend_;
  Buffer matrices_[3];
};

TEST_F(KernelNamesOnTheGpu, FindsKernelsOfOurOwnOnTheGpu) {
  const auto names = names_of(launch_of("Naive"));
  ASSERT_EQ(names.size(), 1U);
  EXPECT_NE(names[0].find("naive"), std::string::npos) << names[0];
}

TEST_F(KernelNamesOnTheGpu, FindsThoseOfTheLibraryOnTheGpu) {
  for (const char* name : {"cuBLAS", "cuBLASLt"}) {
    const auto names = names_of(launch_of(name));
    ASSERT_FALSE(names.empty()) << name;
    for (const std::string& one : names) EXPECT_FALSE(one.empty()) << name;
  }
}

TEST_F(KernelNamesOnTheGpu, TellsTheCodeOfOurOwnOnTheGpu) {
  std::vector<std::optional<std::string>> seen;
  for (const char* name : {"Naive", "Tiled", "BlockTile1D", "BlockTile2D"}) {
    const LaunchedKernels launched = kernels_of(launch_of(name));
    ASSERT_EQ(launched.code.size(), 1U) << name;
    const KernelCode& code = launched.code[0];
    EXPECT_EQ(code.name, launched.names[0]);
    ASSERT_TRUE(code.fingerprint) << name << ": " << code.name;
    EXPECT_EQ(code.fingerprint->size(), 16U);
    EXPECT_EQ(std::ranges::count(seen, code.fingerprint), 0) << name;
    seen.push_back(code.fingerprint);
    EXPECT_GT(code.registers.value_or(0), 8) << name;
    EXPECT_LE(code.registers.value_or(999), 255) << name;
    EXPECT_EQ(code.local_bytes, 0) << name;
    EXPECT_EQ(code.shared_bytes.value_or(-1) > 0, std::string_view(name) != "Naive") << name;
    EXPECT_GE(code.threads, 32) << name;
    EXPECT_LE(code.threads, 1024) << name;
    EXPECT_GE(code.blocks, 1) << name;
    EXPECT_GT(code.occupancy.value_or(0), 0) << name;
    EXPECT_GT(code.blocks_per_sm.value_or(0), 0) << name;
    EXPECT_LE(code.occupancy.value_or(2), 1) << name;
    EXPECT_EQ(kernels_of(launch_of(name)).code[0].fingerprint, code.fingerprint);
  }
}

TEST_F(KernelNamesOnTheGpu, KnowsTheResourcesButNotTheCodeOfTheLibraryOnTheGpu) {
  for (const char* name : {"cuBLAS", "cuBLASLt"}) {
    const LaunchedKernels launched = kernels_of(launch_of(name));
    ASSERT_FALSE(launched.code.empty()) << name;
    for (const KernelCode& code : launched.code) {
      EXPECT_EQ(code.fingerprint, std::nullopt) << code.name;
      EXPECT_GT(code.registers.value_or(0), 8) << code.name;
      EXPECT_GT(code.occupancy.value_or(0), 0) << code.name;
      EXPECT_LE(code.occupancy.value_or(2), 1) << code.name;
    }
  }
}

TEST_F(KernelNamesOnTheGpu, LeavesTheStreamUsableWhateverTheLaunchDoesOnTheGpu) {
  EXPECT_TRUE(names_of([](Stream) { throw std::runtime_error("no"); }).empty());
  EXPECT_TRUE(names_of([](Stream) {}).empty());
  // Waiting for a stream that is being captured is refused.
  const Launch naive = launch_of("Naive");
  EXPECT_TRUE(names_of([&](Stream) { backend_->run(naive); }).empty());
  backend_->run(naive);
  EXPECT_EQ(names_of(naive).size(), 1U);
}

}  // namespace
}  // namespace gemm::bench
