// What was measured of a device is found again, and nothing else is taken for it.
#include "bench/peaks/measured_peaks.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bench/device/backend.hpp"

namespace gemm::bench {
namespace {

class KeptPeaks : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }

  static MeasuredPeak measured(const std::string& name, double per_second) {
    MeasuredPeak one{.name = name,
                     .arithmetic = "f32",
                     .what = "a test",
                     .utc = "20261121T020000Z",
                     .flop_per_second = per_second,
                     .seconds = {1e-3, 1e-3, 1e-3, 1e-3}};
    one.samples = 7;
    return one;
  }

  std::vector<std::string> found(const DeviceInfo& device) const {
    std::vector<std::string> labels;
    for (const MeasuredPeak& one : load_peaks(file_, device)) labels.push_back(one.label());
    return labels;
  }

  std::string text() const {
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(file_) << text; }

  std::filesystem::path file_ =
      std::filesystem::path(::testing::TempDir()) /
      (std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + ".json");
  DeviceInfo device_ = [] {
    DeviceInfo device;
    device.name = "a GPU";
    device.cores = 2;
    device.driver = "580.1";
    return device;
  }();
};

using Labels = std::vector<std::string>;

TEST_F(KeptPeaks, AreReplacedOneByOne) {
  EXPECT_EQ(found(device_), Labels{});
  ASSERT_TRUE(save_peaks(file_, device_, {measured("FP32_FMA", 1e12), measured("other", 1)}));
  ASSERT_TRUE(save_peaks(file_, device_, {measured("FP32_FMA", 2e12), measured("third", 3)}));
  EXPECT_EQ(found(device_), (Labels{"FP32_FMA", "other", "third"}));
  EXPECT_EQ(load_peaks(file_, device_)[0].flop_per_second, 2e12);
  EXPECT_EQ(load_peaks(file_, device_)[0].samples, 7);
}

TEST_F(KeptPeaks, OfOtherDevicesDriversOrProbesOrWithoutSenseAreNone) {
  ASSERT_TRUE(save_peaks(file_, device_, {measured("FP32_FMA", 1e12)}));
  DeviceInfo others[] = {device_, device_, device_};
  others[0].driver = "590.1";
  others[1].cores = 4;
  others[2].l1_data_bytes = 48 << 10;
  for (const DeviceInfo& other : others) EXPECT_EQ(found(other), Labels{});

  const std::string good = text();
  const std::tuple<std::string, std::string, Labels> damages[] = {
      {"a test", "a text", {"FP32_FMA"}},
      {"\"probes\": ", "\"probes\": 1", {}},
      {"1000000000000.0", "-1", {}},
      {"1000000000000.0", "null", {}},
      {good, "{", {}},
      {good, "", {}}};
  for (const auto& [from, to, labels] : damages) {
    ASSERT_NE(good.find(from), std::string::npos) << from;
    write(std::string(good).replace(good.find(from), from.size(), to));
    EXPECT_EQ(found(device_), labels) << from << " as " << to;
  }
}

TEST_F(KeptPeaks, ThatCannotBeWrittenAreToldOf) {
  EXPECT_FALSE(save_peaks({}, device_, {measured("FP32_FMA", 1e12)}));
  write("a file, and no folder");
  EXPECT_FALSE(save_peaks(file_ / "peaks.json", device_, {measured("FP32_FMA", 1e12)}));
}

// DRAM reached 6 % of its rate, and the L2, which has no queried one, less than an idle GPU's DRAM.
TEST(MemoryRoof, IsNoneIfAnotherProgramUsedTheGpu) {
  const auto memory = [](const std::string& name, double per_second, std::optional<double> share) {
    MeasuredPeak one{.name = name};
    one.bytes_per_second = per_second;
    one.of_nominal = share;
    return one;
  };
  const MeasuredPeak l2 = memory("L2_read", 0.26e12, {}), slow = memory("DRAM_read", 0.19e12, 0.06),
                     usual = memory("DRAM_read", 3e12, 0.9), host = memory("DRAM_read", 30e9, {});
  EXPECT_TRUE(measured_beside_others({l2, slow}));
  EXPECT_EQ(memory_roof({l2, slow}, "L2"), nullptr);
  EXPECT_EQ(memory_roof({l2, slow}, "DRAM"), nullptr);
  EXPECT_FALSE(measured_beside_others({slow, usual}));
  const std::vector<MeasuredPeak> of_host{l2, host};  // nothing is known of a CPU's memory
  EXPECT_EQ(memory_roof(of_host, "L2"), &of_host[0]);
  EXPECT_EQ(memory_roof(of_host, "DRAM"), &of_host[1]);
}

TEST_F(KeptPeaks, ThatAnotherProgramSlowedDownAreMeasuredAgain) {
  ASSERT_EQ(setenv("XDG_CACHE_HOME", ::testing::TempDir().c_str(), 1), 0);
  const std::unique_ptr<Backend> backend = make_host_backend();
  const DeviceInfo& device = backend->device();
  MeasuredPeak slow = measured("DRAM_read", 1);
  slow.flop_per_second.reset();
  slow.bytes_per_second = 1;
  slow.of_nominal = 0.06;
  ASSERT_TRUE(save_peaks(peaks_file(device), device, {slow}));
  EXPECT_TRUE(load_peaks(peaks_file(device), device).empty());
  const std::vector<MeasuredPeak> all = kept_and_measured(*backend, nullptr, device, false);
  EXPECT_NE(memory_roof(all, "DRAM"), nullptr);
  std::filesystem::remove(peaks_file(device));
}

TEST_F(KeptPeaks, OfABusyCpuAreNotKept) {
  ASSERT_EQ(setenv("XDG_CACHE_HOME", ::testing::TempDir().c_str(), 1), 0);
  const std::unique_ptr<Backend> backend = make_host_backend();
  const DeviceInfo& device = backend->device();
  const std::vector<Probe> probes = {host_probes(device).front()};
  const auto kept_if_others_had = [&](double share) {
    std::filesystem::remove(peaks_file(device));
    double now = 0;
    const auto times = [&] {
      now += 1;
      return CpuTimes{.cpus = {{0, {.all = now, .busy = share * now}}}, .own_cpus = {0}};
    };
    std::vector<MeasuredPeak> all;
    EXPECT_TRUE(measure_missing(*backend, nullptr, device, probes, all, times));
    EXPECT_EQ(all.size(), 1U) << "this run uses it in any case";
    return load_peaks(peaks_file(device), device).size();
  };
  EXPECT_EQ(kept_if_others_had(0), 1U);
  EXPECT_EQ(kept_if_others_had(0.5), 0U);
  std::filesystem::remove(peaks_file(device));
}

}  // namespace
}  // namespace gemm::bench
