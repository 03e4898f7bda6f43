// Best/pick:nearest, which needs no GPU to choose.
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "kernels/plans.hpp"
#include "kernels/registered_kernels_test.hpp"

namespace gemm {
namespace {

// With a file of plans as a trial would have kept them.
TEST(Best, RunsThePlanOfTheNearestMThatWasTried) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) /
                                       ("gemm_bench_nearest_" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  keep_plans_in(folder / "plans.json");
  int driver = 0;
  cudaDriverGetVersion(&driver);
  const RegisteredKernel &predicted = *find("Best/pick:model"), &near = *find("Best/pick:nearest");
  const auto problem = [](std::int64_t m) {
    return Problem{m, 4096, 4096, Precision::bf16, Layout::nt};
  };
  const auto kept = [&](std::int64_t m, const std::string& plan) {
    keep_plan(plan_key(problem(m), kHopper, driver), plan);
  };
  const auto chosen = [&](std::int64_t m) { return *near.chosen(problem(m), kHopper); };
  EXPECT_EQ(chosen(100), *predicted.chosen(problem(100), kHopper)) << "nothing was tried";
  kept(96, "WgmmaStreamK/tile:64x128/ping_pong/cluster:1/whole:0/streaming:999");
  kept(1024, "WgmmaStreamK/tile:128x192/ping_pong/cluster:2/whole:0/streaming:999");
  for (const auto& [m, tile] :
       {std::pair{64, "64x128"}, {100, "64x128"}, {313, "64x128"}, {314, "128x192"}}) {
    const PlanChoice found = chosen(m);
    EXPECT_EQ(found.source, "nearest");
    EXPECT_TRUE(found.name.starts_with("WgmmaStreamK/tile:" + std::string(tile) + "/ping_pong/"))
        << m << " " << found.name;
    EXPECT_GT(near.traffic(problem(m), kHopper).l2, 0);
  }
  kept(100, predicted.chosen(problem(100), kHopper)->name);
  EXPECT_EQ(chosen(100), (PlanChoice{predicted.chosen(problem(100), kHopper)->name, "cached"}));
  kept(100, "Gone/tile:1x1");
  EXPECT_EQ(chosen(100), *predicted.chosen(problem(100), kHopper)) << "no such kernel";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gemm
