// (label gpu) SplitK and Gemv at sizes that tests of all kernels do not cover: every layout at
// sizes around steps, tiles and pieces, more blocks than steps, and workspaces that are reused.
// Operands are small integers, so that sums are exact in any order.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/registry.hpp"

namespace gemm::simt {
namespace {

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

std::shared_ptr<float> on_the_gpu(const std::vector<float>& values) {
  float* memory = nullptr;
  check(cudaMalloc(&memory, values.size() * sizeof(float)));
  std::shared_ptr<float> owner(memory, [](float* p) { cudaFree(p); });
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(float), cudaMemcpyDefault));
  return owner;
}

// Integers from -3 to 3, without a period that divides a tile.
int value(std::int64_t i, std::int64_t j, int seed) {
  return static_cast<int>((i * 131 + j * 71 + i * j % 13 + seed) % 7) - 3;
}

struct OperandSet {
  std::vector<float> expected;
  std::shared_ptr<float> a, b, c;
  Launch launch;

  OperandSet(const Kernel& kernel, const Problem& p, const Device& device, int seed)
      : expected(p.m * p.n) {
    std::vector<float> a_values(p.m * p.k), b_values(p.k * p.n);
    for (std::int64_t l = 0; l < p.k; ++l) {
      for (std::int64_t i = 0; i < p.m; ++i)
        a_values[transposes_a(p.layout) ? l * p.m + i : i * p.k + l] =
            static_cast<float>(value(i, l, seed));
      for (std::int64_t j = 0; j < p.n; ++j)
        b_values[transposes_b(p.layout) ? j * p.k + l : l * p.n + j] =
            static_cast<float>(value(l, j, seed + 1));
    }
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t l = 0; l < p.k; ++l)
        for (std::int64_t j = 0; j < p.n; ++j)
          expected[i * p.n + j] += static_cast<float>(value(i, l, seed) * value(l, j, seed + 1));
    a = on_the_gpu(a_values);
    b = on_the_gpu(b_values);
    c = on_the_gpu(expected);
    launch = kernel.prepare(p, device, {a.get(), b.get(), c.get()});
  }

  // Launches into a C of NaN and returns the number of wrong elements.
  std::int64_t wrong() const {
    const std::size_t bytes = expected.size() * sizeof(float);
    std::vector<float> found(expected.size());
    check(cudaMemset(c.get(), 0xff, bytes));
    launch(nullptr);
    check(cudaGetLastError());
    check(cudaMemcpy(found.data(), c.get(), bytes, cudaMemcpyDefault));
    std::int64_t count = 0;
    for (std::size_t i = 0; i < found.size(); ++i) count += !(found[i] == expected[i]);
    return count;
  }
};

void expect_exact(std::string_view name) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) GTEST_SKIP() << "no GPU";
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0));
  const Device device{.kind = Device::Kind::gpu,
                      .compute_capability = 10 * properties.major + properties.minor,
                      .sm_count = properties.multiProcessorCount};
  const Kernel* kernel = nullptr;
  for (const RegisteredKernel& one : registry())
    if (one.name == name) kernel = &one;
  ASSERT_NE(kernel, nullptr);
  constexpr std::int64_t kShapes[][3] = {
      {1, 1, 1},    {1, 40, 5000},  {3, 130, 31},   {8, 260, 129},  {16, 36, 2047},
      {17, 68, 96}, {35, 257, 97},  {40, 132, 255}, {64, 128, 191}, {64, 256, 48},
      {65, 90, 49}, {128, 128, 16}, {16, 16, 9999}};
  int cases = 0;
  for (const auto& [small, large, k] : kShapes)
    for (const bool swap : {false, true})
      for (const Layout layout : kernel->layouts) {
        const Problem p{swap ? large : small, swap ? small : large, k, Precision::f32, layout};
        if (kernel->unsupported(p, device)) continue;
        const OperandSet one(*kernel, p, device, 0), other(*kernel, p, device, 3);
        for (int launch = 0; launch < 3; ++launch) {
          const std::string where = std::to_string(p.m) + "x" + std::to_string(p.n) + "x" +
                                    std::to_string(k) + " layout " +
                                    std::to_string(static_cast<int>(layout));
          EXPECT_EQ(one.wrong(), 0) << where;
          EXPECT_EQ(other.wrong(), 0) << where;
        }
        ++cases;
      }
  EXPECT_GT(cases, 20);
}

TEST(SplitReduction, OfSplitKAreExactOnTheGpu) { expect_exact("SplitK"); }
TEST(SplitReduction, OfGemvAreExactOnTheGpu) { expect_exact("Gemv"); }

}  // namespace
}  // namespace gemm::simt
