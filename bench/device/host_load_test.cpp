// What others had of the CPUs, from two readings of /proc/stat, and when that makes a time
// doubtful.
#include "bench/device/host_load.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace gemm::bench {
namespace {

CpuTimes at(const char* stat, double own, std::set<int> cpus = {0, 1}) {
  return {.cpus = parse_cpu_times(stat, 0.01), .own_cpus = std::move(cpus), .own = own};
}

// user nice system idle iowait irq softirq steal guest guest_nice
constexpr char kBefore[] =
    "cpu  1000 0 0 1000 0 0 0 0 0 0\n"
    "cpu0 500 0 0 500 0 0 0 0 0 0\ncpu1 500 0 0 500 0 0 0 0 0 0\nintr 1 2 3\n";
// One second later CPU 0 was busy all the time, a tenth of it in another machine; CPU 1 for half.
constexpr char kAfter[] =
    "cpu  1110 10 20 1050 0 0 0 10 0 0\n"
    "cpu0 560 10 20 500 0 0 0 10 50 0\ncpu1 550 0 0 530 20 0 0 0 0 0\nintr 4 5 6\n";

TEST(HostLoad, IsWhatOthersHadOfTheCpusThatWereOurs) {
  const auto both = others_between(at(kBefore, 3), at(kAfter, 3.4));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->cpus, 2);
  EXPECT_DOUBLE_EQ(both->busy_share, (0.9 + 0.5 - 0.4) / 2);
  EXPECT_DOUBLE_EQ(both->steal_share, 0.05);
  EXPECT_TRUE(both->disturbs());
  const auto second = others_between(at(kBefore, 3), at(kAfter, 3.5, {1}));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->cpus, 1);
  EXPECT_DOUBLE_EQ(second->busy_share, 0);
  EXPECT_FALSE(second->disturbs());
}

TEST(HostLoad, IsUnknownOfShortTimesAndWithoutReadings) {
  EXPECT_FALSE(others_between(at(kBefore, 3), at(kBefore, 3)));
  EXPECT_FALSE(others_between(std::nullopt, at(kBefore, 3)));
  EXPECT_FALSE(others_between(at("", 3), at(kAfter, 3)));
  EXPECT_FALSE(others_between(at(kBefore, 3), at(kAfter, 3, {7})));
  EXPECT_TRUE(parse_cpu_times("cpu 1 2 3\ncpu0 1 2\nbtime 3\n", 0.01).empty());
}

TEST(HostLoad, DisturbsFromAQuarterOfACpuOrAHundredthOfALargeHost) {
  EXPECT_FALSE((OthersLoad{.cpus = 2, .busy_share = 0.12}.disturbs()));
  EXPECT_TRUE((OthersLoad{.cpus = 2, .busy_share = 0.13}.disturbs()));
  EXPECT_TRUE((OthersLoad{.cpus = 2, .busy_share = 0.06, .steal_share = 0.07}.disturbs()));
  EXPECT_TRUE((OthersLoad{.cpus = 16, .busy_share = 1.0 / 16}.disturbs()));
  EXPECT_FALSE((OthersLoad{.cpus = 128, .busy_share = 1.0 / 128}.disturbs()));
  EXPECT_TRUE((OthersLoad{.cpus = 128, .busy_share = 2.0 / 128}.disturbs()));
}

TEST(HostLoad, SeesAnotherProcess) {
  const auto before = read_cpu_times();
  if (!before) GTEST_SKIP() << "no /proc/stat";
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  for (volatile int spin = 0; other == 0;) spin = spin + 1;
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  const auto others = others_between(before, read_cpu_times());
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  ASSERT_TRUE(others);
  EXPECT_GT(others->missing_cpus(), 0.1);
}

}  // namespace
}  // namespace gemm::bench
