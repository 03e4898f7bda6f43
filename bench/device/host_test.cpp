// Which CPU it is, what a cgroup leaves of the host, and when the load by others makes a time
// doubtful.
#include "bench/device/host.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

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
  void write_cache(int core, int index, int level, const char* type, const char* size) const {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(core) +
                               "/cache/index" + std::to_string(index) + "/";
    write(folder + "level", std::to_string(level) + "\n");
    write(folder + "type", std::string(type) + "\n");
    write(folder + "size", std::string(size) + "\n");
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

TEST_F(HostFiles, OfACgroupAndThoseAboveItBoundMemoryAndTime) {
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
  write("sys/fs/cgroup/slice/job/cpu.max", "400000 100000\n");
  write("sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(limits_.cpu_quota(), 1.5);
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

TEST_F(HostFiles, TellCpusOfOneNameApart) {
  write("proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
        "model name\t: AMD EPYC\nstepping\t: 1\n\nprocessor\t: 1\nstepping\t: 2\n");
  write_cache(1, 0, 1, "Data", "48K");
  write_cache(1, 1, 1, "Instruction", "32K");
  write_cache(1, 2, 2, "Unified", "1M");
  write_cache(1, 3, 3, "Unified", "32768K");
  const Cpu cpu = read_cpu(1, limits_.root);
  EXPECT_EQ(cpu.name, "AMD EPYC");
  EXPECT_EQ(cpu.id, "AuthenticAMD 25.17.1");
  EXPECT_EQ(cpu.l1_data_bytes, 48 << 10);
  EXPECT_EQ(cpu.l2_bytes, 1 << 20);
  EXPECT_EQ(cpu.l3_bytes, 32 << 20);
}

TEST_F(HostFiles, OfArmHaveNoNameOfACpuAndMayBeMissing) {
  const Cpu unknown = read_cpu(0, limits_.root);
  EXPECT_EQ(unknown.name, "CPU");
  EXPECT_FALSE(unknown.id || unknown.l1_data_bytes || unknown.l2_bytes || unknown.l3_bytes);
  write("proc/cpuinfo",
        "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
        "CPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n");
  const Cpu cpu = read_cpu(0, limits_.root);
  EXPECT_EQ(cpu.id, "ARM 0x41.0xd0c.0x3.1");
  EXPECT_EQ(cpu.name, "CPU ARM 0x41.0xd0c.0x3.1");
}

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
  const std::pair<OthersLoad, bool> cases[] = {
      {{.cpus = 2, .busy_share = 0.12}, false},
      {{.cpus = 2, .busy_share = 0.13}, true},
      {{.cpus = 2, .busy_share = 0.06, .steal_share = 0.07}, true},
      {{.cpus = 128, .busy_share = 1.0 / 128}, false},
      {{.cpus = 128, .busy_share = 2.0 / 128}, true}};
  for (const auto& [load, disturbs] : cases) EXPECT_EQ(load.disturbs(), disturbs) << load.cpus;
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
