#include "bench/device/host_limits.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace gemm::bench {
namespace {

constexpr double kGiB = 1 << 30;

class HostFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(limits_.root);
    write("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\n");  // 32 GiB
  }
  void TearDown() override { std::filesystem::remove_all(limits_.root); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((limits_.root / file).parent_path());
    std::ofstream(limits_.root / file) << text;
  }
  static std::string gib(double number) {
    return std::to_string(static_cast<std::int64_t>(number * kGiB)) + "\n";
  }

  const HostLimits limits_{
      std::filesystem::path(testing::TempDir()) /
      (std::string("host_") + testing::UnitTest::GetInstance()->current_test_info()->name())};
};

TEST_F(HostFiles, WithoutACgroupHaveTheMachinesMemory) {
  EXPECT_EQ(limits_.free_bytes(), 32 * kGiB);
  EXPECT_FALSE(limits_.cpu_quota());
  write("proc/self/cgroup", "0::/a\n");
  write("sys/fs/cgroup/a/memory.max", "max\n");
  write("sys/fs/cgroup/a/memory.high", "max\n");
  write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(limits_.free_bytes(), 32 * kGiB);
  EXPECT_FALSE(limits_.cpu_quota());
}

TEST_F(HostFiles, OfACgroupAndThoseAboveItBoundTheMemory) {
  write("proc/self/cgroup", "0::/slice/job\n");
  write("sys/fs/cgroup/slice/job/memory.max", gib(8));
  write("sys/fs/cgroup/slice/job/memory.current", gib(5));
  write("sys/fs/cgroup/slice/job/memory.stat",
        "anon 1\nactive_file " + gib(1) + "inactive_file " + gib(1));
  EXPECT_EQ(limits_.free_bytes(), 5 * kGiB);
  EXPECT_LE(limits_.memory_bytes(), 8 * kGiB);
  write("sys/fs/cgroup/slice/memory.high", gib(4));
  write("sys/fs/cgroup/slice/memory.current", gib(3));
  EXPECT_EQ(limits_.free_bytes(), 1 * kGiB);
  EXPECT_LE(limits_.memory_bytes(), 4 * kGiB);
  write("sys/fs/cgroup/slice/memory.current", gib(6));
  EXPECT_EQ(limits_.free_bytes(), 0);
}

TEST_F(HostFiles, OfAContainerAreThoseOfTheRoot) {
  write("proc/self/cgroup", "0::/../../elsewhere\n");
  write("sys/fs/cgroup/memory.max", gib(2));
  write("sys/fs/cgroup/memory.current", gib(0.5));
  EXPECT_EQ(limits_.free_bytes(), 1.5 * kGiB);
}

TEST_F(HostFiles, OfTheFirstVersionBoundTheMemoryToo) {
  write("proc/self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/job\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", gib(3));
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", gib(2));
  write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 0\ntotal_inactive_file " + gib(1));
  EXPECT_EQ(limits_.free_bytes(), 2 * kGiB);
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(limits_.cpu_quota());
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "250000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limits_.cpu_quota(), 2.5);
}

TEST_F(HostFiles, OfTheCgroupWithTheLeastTimeCount) {
  write("proc/self/cgroup", "0::/slice/job\n");
  write("sys/fs/cgroup/slice/job/cpu.max", "400000 100000\n");
  write("sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(limits_.cpu_quota(), 1.5);
}

TEST_F(HostFiles, OfNodesThatACpusetLeavesBoundTheMemory) {
  const std::string nodes = "sys/devices/system/node/";
  write(nodes + "has_memory", "0-1\n");
  write(nodes + "node1/meminfo",
        "Node 1 MemTotal: 16777216 kB\nNode 1 MemFree: 4194304 kB\n"
        "Node 1 Active(file): 1048576 kB\nNode 1 Inactive(file): 1048576 kB\n");
  write("proc/self/status", "Name:\tx\nMems_allowed_list:\t0-1\n");
  EXPECT_EQ(limits_.free_bytes(), 32 * kGiB);
  write("proc/self/status", "Name:\tx\nMems_allowed_list:\t1\n");
  EXPECT_EQ(limits_.free_bytes(), 6 * kGiB);
  EXPECT_LE(limits_.memory_bytes(), 16 * kGiB);
}

TEST_F(HostFiles, OfTheProcessBoundTheMemoryByWhatItHas) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit limit{.rlim_cur = std::uint64_t{1} << 42, .rlim_max = before.rlim_max};
  if (before.rlim_max < limit.rlim_cur) GTEST_SKIP() << "this process has a limit already";
  write("proc/meminfo", "MemAvailable: 8589934592 kB\n");  // 8 TiB
  const double page = static_cast<double>(sysconf(_SC_PAGE_SIZE));
  write("proc/self/statm",
        std::to_string(static_cast<std::int64_t>(kGiB / page)) + " 1 1 1 0 1 0\n");
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  const double free = limits_.free_bytes();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(free, 0x1p42 - kGiB);
}

}  // namespace
}  // namespace gemm::bench
