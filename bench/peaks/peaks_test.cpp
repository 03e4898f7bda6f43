// The table of rates against the data sheets: SMs x rate x clock must give what NVIDIA prints.
#include "bench/peaks/peaks.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/peaks/measured_peaks.hpp"

namespace gemm::bench {
namespace {

DeviceInfo gpu(const char* name, int compute_capability, int sm_count, double clock_mhz) {
  DeviceInfo device;
  device.kind = Device::Kind::gpu;
  device.name = name;
  device.compute_capability = compute_capability;
  device.sm_count = sm_count;
  device.clock_hz = clock_mhz * 1e6;
  return device;
}

struct Part {
  const char* name;
  int compute_capability, sm_count;
  double clock_mhz;
  Precision precision;
  double tera;  // data sheet, dense
};

TEST(Peaks, MatchTheDataSheets) {
  const Part parts[] = {
      {"Tesla T4", 75, 40, 1590, Precision::f32, 8.1},
      {"Tesla T4", 75, 40, 1590, Precision::f16, 65},
      {"Tesla T4", 75, 40, 1590, Precision::s8, 130},
      {"Quadro RTX 5000", 75, 48, 1815, Precision::f32, 11.2},
      {"Quadro RTX 5000", 75, 48, 1815, Precision::f16, 89.2},
      {"NVIDIA A100-SXM4-80GB", 80, 108, 1410, Precision::f32, 19.5},
      {"NVIDIA A100-SXM4-80GB", 80, 108, 1410, Precision::tf32, 156},
      {"NVIDIA A100-SXM4-80GB", 80, 108, 1410, Precision::bf16, 312},
      {"NVIDIA A100-SXM4-80GB", 80, 108, 1410, Precision::s8, 624},
      {"NVIDIA A100-SXM4-80GB", 80, 108, 1410, Precision::f64, 19.5},
      {"NVIDIA GeForce RTX 3090", 86, 82, 1695, Precision::f32, 35.6},
      {"NVIDIA GeForce RTX 3090", 86, 82, 1695, Precision::f64, 0.556},
      {"NVIDIA GeForce RTX 3090", 86, 82, 1695, Precision::tf32, 35.6},
      {"NVIDIA GeForce RTX 3090", 86, 82, 1695, Precision::f16, 71.2},
      {"NVIDIA GeForce RTX 3090", 86, 82, 1695, Precision::s8, 284},
      {"NVIDIA RTX A6000", 86, 84, 1800, Precision::f16, 154.8},
      {"NVIDIA GeForce RTX 4090", 89, 128, 2520, Precision::bf16, 165.2},
      {"NVIDIA GeForce RTX 4090", 89, 128, 2520, Precision::e4m3, 330.3},
      {"NVIDIA GeForce RTX 4090", 89, 128, 2520, Precision::s8, 660.6},
      {"NVIDIA L4", 89, 58, 2040, Precision::f32, 30.3},
      {"NVIDIA L4", 89, 58, 2040, Precision::bf16, 121},
      {"NVIDIA L4", 89, 58, 2040, Precision::e5m2fast, 242.5},
      {"NVIDIA H200", 90, 132, 1980, Precision::f32, 66.9},
      {"NVIDIA H200", 90, 132, 1980, Precision::tf32, 494.7},
      {"NVIDIA H200", 90, 132, 1980, Precision::tf32x3, 494.7 / 3},
      {"NVIDIA H200", 90, 132, 1980, Precision::bf16, 989.4},
      {"NVIDIA H200", 90, 132, 1980, Precision::e4m3, 1978.9},
      {"NVIDIA H200", 90, 132, 1980, Precision::e4m3fast, 1978.9},
      {"NVIDIA H200", 90, 132, 1980, Precision::e5m2, 1978.9},
      {"NVIDIA H200", 90, 132, 1980, Precision::e5m2fast, 1978.9},
      {"NVIDIA H200", 90, 132, 1980, Precision::s8, 1978.9},
      {"NVIDIA H200", 90, 132, 1980, Precision::f64, 66.9},
      {"NVIDIA H200", 90, 132, 1980, Precision::s32, 33.45},
      {"NVIDIA H100 PCIe", 90, 114, 1755, Precision::f16, 756},
      {"NVIDIA B200", 100, 148, 1965, Precision::f32, 75},
      {"NVIDIA B200", 100, 148, 1965, Precision::bf16, 2250},
      {"NVIDIA B200", 100, 148, 1965, Precision::e4m3, 4500},
      {"NVIDIA B200", 100, 148, 1965, Precision::s8, 4500},
      {"NVIDIA GB300", 103, 148, 2062, Precision::bf16, 2500},
      {"NVIDIA GB300", 103, 148, 2062, Precision::e4m3, 5000},
      {"NVIDIA GeForce RTX 5090", 120, 170, 2407, Precision::f32, 104.8},
      {"NVIDIA GeForce RTX 5090", 120, 170, 2407, Precision::bf16, 209.5},
      {"NVIDIA GeForce RTX 5090", 120, 170, 2407, Precision::e4m3, 419},
      {"NVIDIA GeForce RTX 5090", 120, 170, 2407, Precision::s8, 838},
  };
  for (const Part& part : parts) {
    const auto peaks =
        peaks_of(gpu(part.name, part.compute_capability, part.sm_count, part.clock_mhz));
    const Peak& peak = peaks[static_cast<std::size_t>(part.precision)];
    ASSERT_EQ(peak.precision, part.precision);
    ASSERT_TRUE(peak.per_second.has_value()) << part.name << ": " << peak.source;
    EXPECT_NEAR(*peak.per_second * 1e-12 / part.tera, 1, 0.01) << part.name << " " << peak.name;
    EXPECT_EQ(peak.origin, Peak::Origin::table);
  }
}

TEST(Peaks, MemoryBandwidthIsTwiceTheClockTimesTheBus) {
  DeviceInfo h200 = gpu("NVIDIA H200", 90, 132, 1980);
  h200.memory_clock_hz = 3201e6;
  h200.bus_width_bits = 6016;
  const Peak dram = peaks_of(h200).back();
  EXPECT_EQ(dram.name, "DRAM");
  EXPECT_NEAR(*dram.per_second, 4814e9, 1e9);
  EXPECT_EQ(dram.origin, Peak::Origin::queried);
}

TEST(Peaks, AnUnknownCapabilityHasNoRoofAndSaysSo) {
  for (const Peak& peak : peaks_of(gpu("NVIDIA Future", 137, 200, 3000))) {
    EXPECT_EQ(peak.per_second, std::nullopt);
    EXPECT_EQ(peak.origin, Peak::Origin::unknown);
    EXPECT_FALSE(peak.source.empty());
  }
  EXPECT_NE(peaks_of(gpu("NVIDIA Future", 137, 200, 3000))[0].source.find("13.7"),
            std::string::npos);
}

TEST(Peaks, TuringWithoutTensorCoresHasNoTensorRoof) {
  for (const char* name : {"NVIDIA GeForce GTX 1660 Ti", "NVIDIA T400", "Quadro T1000"}) {
    EXPECT_TRUE(flop_per_clock(75, Unit::fp32_fma, name).has_value());
    EXPECT_FALSE(flop_per_clock(75, Unit::fp16_tensor, name).has_value()) << name;
    EXPECT_FALSE(flop_per_clock(75, Unit::int8_tensor, name).has_value()) << name;
  }
}

TEST(Peaks, NoFp8BeforeAda) {
  for (const int capability : {75, 80, 86})
    EXPECT_FALSE(flop_per_clock(capability, Unit::fp8_tensor, "NVIDIA RTX").has_value());
}

TEST(Peaks, NothingIsGuessedFromWhatTheDeviceDoesNotReport) {
  DeviceInfo device = gpu("NVIDIA H200", 90, 132, 1980);
  device.clock_hz = std::nullopt;
  for (const Peak& peak : peaks_of(device)) EXPECT_EQ(peak.per_second, std::nullopt);
  device = gpu("Orin", 86, 16, 1300);
  device.memory_clock_hz = 2133e6;
  device.bus_width_bits = 256;
  device.integrated = true;
  EXPECT_EQ(peaks_of(device).back().per_second, std::nullopt);
  EXPECT_EQ(peaks_of(DeviceInfo{}).front().per_second, std::nullopt);  // a CPU
}

TEST(Peaks, TheUserKnowsBetter) {
  const auto peaks = peaks_of(DeviceInfo{}, {.flop_per_second = 1e12, .bytes_per_second = 1e11});
  for (const Peak& peak : peaks) {
    EXPECT_EQ(peak.origin, Peak::Origin::given);
    EXPECT_EQ(peak.per_second, peak.precision ? 1e12 : 1e11);
  }
}

// Where the table has none, what was measured of the unit counts: for 3xTF32 a third of it.
TEST(Peaks, WhatWasMeasuredOfAUnitServesEveryPrecisionThatItComputes) {
  std::vector<Peak> peaks = peaks_of(gpu("NVIDIA Future", 137, 200, 3000));
  MeasuredPeak wgmma;
  wgmma.name = "TF32_wgmma";
  wgmma.arithmetic = "tf32";
  wgmma.flop_per_second = 450e12;
  MeasuredPeak bytes = wgmma;
  bytes.arithmetic = "e4m3";
  bytes.flop_per_second = 1400e12;
  reconcile(peaks, {wgmma, bytes}, Device{});
  for (const PrecisionTraits& traits : kPrecisions)
    EXPECT_EQ(compute_peak(peaks, traits.precision)->per_second == 1400e12,
              traits.unit == Unit::fp8_tensor)
        << traits.name;
  EXPECT_EQ(compute_peak(peaks, Precision::tf32)->per_second, 450e12);
  EXPECT_EQ(compute_peak(peaks, Precision::tf32x3)->per_second, 150e12);
  EXPECT_EQ(compute_peak(peaks, Precision::f32)->per_second, std::nullopt);
}

TEST(Roof, IsTheLowerOfTheTwo) {
  const auto peaks = peaks_of(DeviceInfo{}, {.flop_per_second = 1e12, .bytes_per_second = 1e11});
  EXPECT_EQ(roof_at(peaks, Precision::f32, 2)->flop_per_second, 2e11);
  EXPECT_EQ(roof_at(peaks, Precision::f32, 2)->name, "DRAM");
  EXPECT_EQ(roof_at(peaks, Precision::f32, 20)->flop_per_second, 1e12);
  EXPECT_EQ(roof_at(peaks, Precision::f32, 20)->name, "FP32 FMA");
  EXPECT_FALSE(
      roof_at(peaks_of(DeviceInfo{}, {.flop_per_second = 1e12}), Precision::f32, 20).has_value());
}

}  // namespace
}  // namespace gemm::bench
