// The table of rates against the data sheets: SMs x rate x clock must give what NVIDIA prints.
#include "bench/peaks/peaks.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
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

using enum Precision;

// A product of each capability, and each that has a row of its own in the table; figures of
// NVIDIA's data sheets and whitepapers (of an HGX or NVL72, a share).
struct Part {
  const char* name;  // as the CUDA runtime reports it
  int compute_capability, sm_count;
  double clock_mhz;  // as it reports it
  // Tera a second, dense, accumulated in FP32 or INT32 (half of what a sheet gives "with
  // sparsity"); 0 where none is published or another tells as much.
  double fp32, tensor_tf32, tensor_bf16, tensor_f16, fp8, int8, fp64;
};
const Part kParts[] = {
    {"Tesla T4", 75, 40, 1590, 8.1, 0, 0, 65, 0, 130, 0},
    {"NVIDIA GeForce RTX 2080 Ti", 75, 68, 1545, 13.4, 0, 0, 53.8, 0, 215.2, 0},
    {"NVIDIA A100-SXM4-80GB", 80, 108, 1410, 19.5, 156, 312, 312, 0, 624, 19.5},
    {"NVIDIA A10G", 86, 80, 1710, 0, 35, 70, 70, 0, 140, 0},
    {"NVIDIA A40", 86, 84, 1740, 37.4, 74.8, 149.7, 0, 0, 299.3, 0},
    {"NVIDIA GeForce RTX 3090", 86, 82, 1695, 35.6, 35.6, 0, 71.2, 0, 284, 0.556},
    {"Orin", 87, 16, 1300, 5.3, 0, 0, 42.6, 0, 85, 0},
    {"NVIDIA L4", 89, 58, 2040, 30.3, 60, 121, 0, 242.5, 242.5, 0},
    {"NVIDIA L20", 89, 92, 2520, 59.8, 59.8, 119.5, 0, 239, 239, 0},
    {"NVIDIA L40", 89, 142, 2490, 90.5, 90.5, 181, 181, 362, 362, 0},
    {"NVIDIA L40S", 89, 142, 2520, 91.6, 183, 362, 0, 733, 733, 0},
    {"NVIDIA GeForce RTX 4090", 89, 128, 2520, 82.6, 0, 165.2, 0, 330.3, 660.6, 0},
    {"NVIDIA H100 80GB HBM3", 90, 132, 1980, 67, 494.7, 989.4, 0, 1979, 1979, 67},
    {"NVIDIA H100 NVL", 90, 132, 1785, 60, 417.5, 835.5, 0, 1671, 1671, 60},
    {"NVIDIA H200", 90, 132, 1980, 66.9, 494.7, 989.4, 0, 1978.9, 1978.9, 66.9},
    {"NVIDIA H200 NVL", 90, 132, 1785, 60, 0, 835.5, 0, 1671, 1671, 60},
    {"NVIDIA H800", 90, 132, 1980, 67, 494.7, 989.4, 0, 1979, 1979, 0},
    {"NVIDIA H20", 90, 78, 1980, 0, 74, 148, 148, 296, 296, 0},
    {"NVIDIA H20-3e", 90, 78, 1980, 0, 0, 148, 0, 296, 0, 0},
    {"NVIDIA B200", 100, 148, 1965, 75, 1125, 2250, 0, 4500, 4500, 37},
    {"NVIDIA GB200", 100, 148, 2062, 0, 1250, 2500, 0, 5000, 5000, 0},
    {"NVIDIA GB200", 100, 152, 2062, 80, 1250, 2500, 0, 5000, 5000, 40},
    {"NVIDIA GB300", 103, 148, 2062, 0, 0, 2500, 0, 5000, 0, 1.2},
    {"NVIDIA GB300", 103, 152, 2062, 0, 0, 2500, 0, 5000, 0, 0},
    {"NVIDIA B300 SXM6 AC", 103, 148, 1920, 0, 0, 2250, 0, 4500, 0, 0},
    {"NVIDIA Thor", 110, 20, 1575, 8.064, 0, 0, 258, 517, 0, 0},
    {"NVIDIA GeForce RTX 5090", 120, 170, 2407, 104.8, 0, 209.5, 0, 419, 838, 0},
    {"NVIDIA GeForce RTX 5090 D", 120, 170, 2407, 104.8, 0, 0, 0, 0, 0, 0},
    {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 120, 188, 2617, 126, 0, 503.8, 0, 1007.6,
     0, 0},
    {"NVIDIA GB10", 121, 48, 2418, 0, 0, 125, 0, 250, 0, 0},
};

// What of a published figure is not derivable, or of which none was published: of no known rate.
struct Unknown {
  const char* name;
  int compute_capability, sm_count;
  double clock_mhz;
  std::vector<Precision> precisions;
};
const Unknown kUnknown[] = {
    {"Tesla V100-SXM2-16GB", 70, 80, 1530, {f32, f16, f64}},
    {"NVIDIA CMP 170HX", 80, 70, 1410, {f32, f16, f64}},
    {"NVIDIA H20", 90, 78, 1980, {f32, f64}},
    {"NVIDIA H20-3e", 90, 78, 1980, {f32, f64}},
    {"NVIDIA H800", 90, 132, 1980, {f64}},
    {"NVIDIA H800 PCIe", 90, 114, 1755, {f64}},
    {"NVIDIA B100", 100, 148, 1965, {tf32, bf16, f16, e4m3, s8}},
    {"NVIDIA Rubin", 107, 224, 2000, {f32, bf16, e4m3}},
    {"NVIDIA Thor", 110, 20, 1575, {f64, s8}},
    {"NVIDIA GeForce RTX 5090 D", 120, 170, 2407, {s8}},
    {"NVIDIA GeForce RTX 5090 D v2", 120, 170, 2407, {s8}},
};

TEST(Peaks, AreWithinTwoPercentOfTheDataSheets) {
  for (const Part& part : kParts) {
    const auto peaks =
        peaks_of(gpu(part.name, part.compute_capability, part.sm_count, part.clock_mhz));
    const std::pair<Precision, double> published[] = {
        {f32, part.fp32},         {s32, part.fp32 / 2},   {tf32, part.tensor_tf32},
        {bf16, part.tensor_bf16}, {f16, part.tensor_f16}, {tf32x3, part.tensor_tf32 / 3},
        {e4m3, part.fp8},         {e4m3fast, part.fp8},   {e5m2, part.fp8},
        {e5m2fast, part.fp8},     {s8, part.int8},        {f64, part.fp64}};
    for (const auto& [precision, tera] : published) {
      // INT32 has half of FP32's rate where FP32 has two units.
      if (tera == 0 || (precision == s32 && part.compute_capability <= 80)) continue;
      const Peak& peak = *compute_peak(peaks, precision);
      ASSERT_TRUE(peak.per_second.has_value()) << part.name << ": " << peak.source;
      EXPECT_NEAR(*peak.per_second * 1e-12 / tera, 1, 0.02)
          << part.name << " " << peak.name << ", published: " << tera;
      EXPECT_EQ(peak.origin, Peak::Origin::table);
    }
  }
}

TEST(Peaks, AreUnknownWithAReasonWhereNoneCanBeDerived) {
  for (const Unknown& one : kUnknown) {
    const auto peaks = peaks_of(gpu(one.name, one.compute_capability, one.sm_count, one.clock_mhz));
    for (const Precision precision : one.precisions) {
      const Peak& peak = *compute_peak(peaks, precision);
      EXPECT_EQ(peak.per_second, std::nullopt) << one.name << " " << peak.name;
      EXPECT_EQ(peak.origin, Peak::Origin::unknown);
      EXPECT_FALSE(peak.source.empty());
    }
  }
}

// Plain FP8 products accumulate in FP32 at half of the rate on GeForce, block-scaled ones do not.
TEST(Peaks, OfFp8OnGeForceRtx50AreTwo) {
  const auto fp8 = [](const char* name) {
    return *compute_peak(peaks_of(gpu(name, 120, 170, 2407)), e4m3);
  };
  const Peak geforce = fp8("NVIDIA GeForce RTX 5090"), pro = fp8("NVIDIA RTX PRO 6000");
  EXPECT_NEAR(*geforce.per_second, 419e12, 1e12);
  EXPECT_NEAR(geforce.limit_per_second.value_or(0), 838e12, 2e12);
  EXPECT_NE(geforce.source.find("block-scaled"), std::string::npos) << geforce.source;
  EXPECT_EQ(pro.limit_per_second, std::nullopt);
  EXPECT_EQ(pro.limit_at({}), pro.per_second);
  const auto others = peaks_of(gpu("NVIDIA GeForce RTX 5090", 120, 170, 2407));
  EXPECT_EQ(compute_peak(others, bf16)->limit_per_second, std::nullopt);
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

TEST(Peaks, OfAUnitThatIsNotThereAreNone) {
  for (const char* name : {"NVIDIA GeForce GTX 1660 Ti", "NVIDIA T400", "Quadro T1000"}) {
    EXPECT_TRUE(flop_per_clock(75, Unit::fp32_fma, name).has_value());
    for (const Unit unit : {Unit::fp16_tensor, Unit::int8_tensor})
      EXPECT_FALSE(flop_per_clock(75, unit, name).has_value()) << name;
  }
  for (const int before_ada : {75, 80, 86})
    EXPECT_FALSE(flop_per_clock(before_ada, Unit::fp8_tensor, "NVIDIA RTX").has_value());
}

TEST(Peaks, NothingIsGuessedFromWhatTheDeviceDoesNotReport) {
  DeviceInfo device = gpu("NVIDIA H200", 90, 132, 1980);
  device.clock_hz = std::nullopt;
  for (const Peak& peak : peaks_of(device)) EXPECT_EQ(peak.per_second, std::nullopt);
  device = gpu("Orin", 87, 16, 1300);
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

// Of a probe that reaches this share of the table's rate while the SMs run at 1400 MHz.
MeasuredPeak probe_of(const DeviceInfo& device, const char* name, Precision precision,
                      double share) {
  MeasuredPeak one{.name = name, .arithmetic = std::string(traits_of(precision).name)};
  one.what = "a test";
  one.sm_hz = 1400e6;
  one.flop_per_second = share * *compute_peak(peaks_of(device), precision)->at(1400e6);
  return one;
}

Peak reconciled(const DeviceInfo& device, Precision precision,
                const std::vector<MeasuredPeak>& measured) {
  std::vector<Peak> peaks = peaks_of(device);
  reconcile(peaks, measured, device);
  return *compute_peak(peaks, precision);
}

TEST(Contradiction, BelowTheTableThePeakIsTheProbesAndTheLimitTheTables) {
  const DeviceInfo device = gpu("NVIDIA A99", 86, 80, 1710);
  const MeasuredPeak half = probe_of(device, "BF16_mma", bf16, 0.5);
  const Peak peak = reconciled(device, bf16, {half});
  EXPECT_EQ(peak.per_second, half.flop_per_second);
  EXPECT_EQ(peak.clock_hz, 1400e6);
  EXPECT_EQ(peak.origin, Peak::Origin::measured);
  EXPECT_NE(peak.contradiction.find("0.5 "), std::string::npos) << peak.contradiction;
  EXPECT_NEAR(*peak.limit_at(1710e6), 140.1e12, 0.1e12);
  EXPECT_TRUE(reconciled(device, f16, {half}).contradiction.empty());
}

TEST(Contradiction, AboveTheTableBothAreTheProbes) {
  const DeviceInfo device = gpu("NVIDIA A99", 86, 80, 1710);
  const MeasuredPeak fast = probe_of(device, "TF32_mma", tf32, 1.5);
  const Peak peak = reconciled(device, tf32, {fast}), third = reconciled(device, tf32x3, {fast});
  EXPECT_EQ(peak.per_second, fast.flop_per_second);
  EXPECT_EQ(peak.limit_at(1400e6), fast.flop_per_second);
  EXPECT_DOUBLE_EQ(*third.per_second, *peak.per_second / 3);
  EXPECT_EQ(third.contradiction, peak.contradiction);
}

TEST(Contradiction, IsNoneAtTheProbesClockOrWithAnInstructionThatIsNotTheFastest) {
  const DeviceInfo a99 = gpu("NVIDIA A99", 86, 80, 1710), h200 = gpu("NVIDIA H200", 90, 132, 1980);
  const auto of_table = [](const DeviceInfo& device, Precision precision,
                           const std::vector<MeasuredPeak>& measured) {
    const Peak peak = reconciled(device, precision, measured);
    return peak.origin == Peak::Origin::table && peak.contradiction.empty();
  };
  // Throttled to 1400 MHz: 0.57 of the table's figure, 0.7 of its rate.
  EXPECT_TRUE(of_table(a99, bf16, {probe_of(a99, "BF16_mma", bf16, 0.7)}));
  EXPECT_TRUE(of_table(a99, bf16, {probe_of(a99, "BF16_mma", bf16, 1.02)}));
  const MeasuredPeak mma = probe_of(h200, "FP8_mma", e4m3, 0.37),
                     wgmma = probe_of(h200, "FP8_wgmma", e4m3, 0.37);
  EXPECT_TRUE(of_table(h200, e4m3, {mma}));
  EXPECT_TRUE(of_table(h200, e4m3, {mma, probe_of(h200, "FP8_wgmma", e4m3, 0.99)}));
  EXPECT_FALSE(of_table(h200, e4m3, {mma, wgmma}));
  EXPECT_TRUE(of_table(h200, f64, {probe_of(h200, "FP64_FMA", f64, 0.5)}));
  EXPECT_FALSE(of_table(h200, f64, {probe_of(h200, "FP64_mma", f64, 0.5)}));
  const DeviceInfo b200 = gpu("NVIDIA B200", 100, 148, 1965);
  EXPECT_TRUE(of_table(b200, bf16, {probe_of(b200, "BF16_mma", bf16, 0.25)}));
  // Without its clock, a probe says nothing; nor does one beside another program.
  MeasuredPeak unclocked = wgmma, dram{.name = "DRAM_read"};
  unclocked.sm_hz.reset();
  dram.bytes_per_second = 1e12;
  dram.of_nominal = 0.2;
  EXPECT_TRUE(of_table(h200, e4m3, {unclocked}));
  EXPECT_TRUE(of_table(h200, e4m3, {wgmma, dram}));
  // What the user gives is not doubted.
  std::vector<Peak> given = peaks_of(h200, {.flop_per_second = 1e12});
  reconcile(given, {wgmma}, h200);
  EXPECT_EQ(compute_peak(given, e4m3)->origin, Peak::Origin::given);
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
