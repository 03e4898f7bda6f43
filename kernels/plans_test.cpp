// The file that keeps plans: what is added is found again, and no file stops a run.
#include "kernels/plans.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
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
}

}  // namespace
}  // namespace gemm
