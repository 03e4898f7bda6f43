#include "bench/device/cpu.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace gemm::bench {
namespace {

class CpuFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void write_cache(int core, int index, int level, const char* type, const char* size) const {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(core) +
                               "/cache/index" + std::to_string(index) + "/";
    write(folder + "level", std::to_string(level) + "\n");
    write(folder + "type", std::string(type) + "\n");
    write(folder + "size", std::string(size) + "\n");
  }

  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string("cpu_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(CpuFiles, TellModelsOfOneNameApart) {
  write("proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
        "model name\t: AMD EPYC\nstepping\t: 1\n\nprocessor\t: 1\nstepping\t: 2\n");
  write_cache(1, 0, 1, "Data", "48K");
  write_cache(1, 1, 1, "Instruction", "32K");
  write_cache(1, 2, 2, "Unified", "1M");
  write_cache(1, 3, 3, "Unified", "32768K");
  const Cpu cpu = read_cpu(1, root_);
  EXPECT_EQ(cpu.name, "AMD EPYC");
  EXPECT_EQ(cpu.id, "AuthenticAMD 25.17.1");
  EXPECT_EQ(cpu.l1_data_bytes, 48 << 10);
  EXPECT_EQ(cpu.l2_bytes, 1 << 20);
  EXPECT_EQ(cpu.l3_bytes, 32 << 20);
}

TEST_F(CpuFiles, OfArmHaveNoNameOfAModel) {
  write("proc/cpuinfo",
        "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
        "CPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n");
  const Cpu cpu = read_cpu(0, root_);
  EXPECT_EQ(cpu.id, "ARM 0x41.0xd0c.0x3.1");
  EXPECT_EQ(cpu.name, "CPU ARM 0x41.0xd0c.0x3.1");
}

TEST_F(CpuFiles, MayBeMissing) {
  const Cpu cpu = read_cpu(0, root_);
  EXPECT_EQ(cpu.name, "CPU");
  EXPECT_FALSE(cpu.id || cpu.l1_data_bytes || cpu.l2_bytes || cpu.l3_bytes);
}

}  // namespace
}  // namespace gemm::bench
