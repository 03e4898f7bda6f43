// The file that keeps plans: what is added is found again, and no file stops a run.
#include "kernels/plans.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace gemm {
namespace {

class Plans : public testing::Test {
 protected:
  Plans() {
    std::filesystem::remove_all(folder_);
    keep_plans_in(file_);
  }
  ~Plans() override { std::filesystem::remove_all(folder_); }

  // Of its own: tests run beside each other, in processes.
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string("gemm_bench_plans_") +
       testing::UnitTest::GetInstance()->current_test_info()->name() + std::to_string(getpid()));
  const std::filesystem::path file_ = folder_ / "deep" / "plans.json";
};

TEST_F(Plans, AreFoundAgain) {
  EXPECT_EQ(kept_plan("a"), std::nullopt);
  keep_plan("a", "WgmmaStreamK/tile:128x256");
  keep_plan("b", "Gemv");
  keep_plan("a", "Rasterized");
  EXPECT_EQ(kept_plan("a"), "Rasterized");
  EXPECT_EQ(kept_plan("b"), "Gemv");
}

TEST_F(Plans, OfTheNearestMAreByRatioAndOtherwiseEqual) {
  const Device gpu{.name = "GPU"};
  const auto problem = [](std::int64_t m, std::int64_t k = 512) {
    return Problem{m, 256, k, Precision::bf16, Layout::nt};
  };
  const auto nearest = [&](std::int64_t m) { return plan_of_nearest_m(problem(m), gpu, 13000); };
  EXPECT_EQ(nearest(8), std::nullopt);
  keep_plan(plan_key(problem(1), gpu, 13000), "one");
  keep_plan(plan_key(problem(16), gpu, 13000), "16");
  keep_plan(plan_key(problem(64), gpu, 13000), "64");
  keep_plan(plan_key(problem(30, 513), gpu, 13000), "other k");
  keep_plan(plan_key(problem(30), gpu, 12080), "other driver");
  keep_plan(plan_key(problem(30), {.name = "GPU 2"}, 13000), "other GPU");
  EXPECT_EQ(nearest(1), "one");
  EXPECT_EQ(nearest(3), "one");
  EXPECT_EQ(nearest(5), "16");
  EXPECT_EQ(nearest(31), "16");
  EXPECT_EQ(nearest(32), "16") << "equally near";
  EXPECT_EQ(nearest(33), "64");
  EXPECT_EQ(nearest(1 << 30), "64");
}

TEST_F(Plans, OfABrokenFileAreNone) {
  for (const char* text : {"", "{", "[1]", "{\"a\": 3}"}) {
    std::ofstream(file_) << text;
    EXPECT_EQ(kept_plan("a"), std::nullopt) << text;
    keep_plan("a", "Gemv");
    EXPECT_EQ(kept_plan("a"), "Gemv") << text;
  }
}

TEST_F(Plans, OfSeveralWritersAreAllKept) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i)
    writers.emplace_back([i] { keep_plan("key " + std::to_string(i), std::to_string(i)); });
  for (std::thread& one : writers) one.join();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(kept_plan("key " + std::to_string(i)), std::to_string(i));
}

TEST_F(Plans, RefusesAFileThatCannotBeWritten) {
  EXPECT_THROW(keep_plans_in("/proc/none/plans.json"), std::runtime_error);
}

TEST(PlanKey, NamesWhatTheChoiceDependsOn) {
  const Problem p{1, 2, 3, Precision::bf16, Layout::nt};
  const Device device{.name = "GPU"};
  const std::string key = plan_key(p, device, 13000);
  EXPECT_TRUE(key.starts_with("GPU 13000 ")) << key;
  EXPECT_TRUE(key.ends_with(" bf16 nt 1x2x3")) << key;
  EXPECT_GT(key.size(), 40U) << key << " has no hash of the machine code";
  Problem other = p;
  std::set<std::string> keys{key};
  for (const auto& change : std::initializer_list<std::function<void()>>{
           [&] { other.batch = 4; }, [&] { other.tokens = Tokens::zipf; },
           [&] { other.tokens_seed = 3; }, [&] { other.tokens = Tokens::band; },
           [&] { other.activation = Activation::residual; },
           [&] { other.activation = Activation::bias; }}) {
    change();
    EXPECT_TRUE(keys.insert(plan_key(other, device, 13000)).second) << plan_key(other, device, 1);
  }
}

}  // namespace
}  // namespace gemm
