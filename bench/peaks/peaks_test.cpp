// The table of rates against the data sheets: SMs x rate x clock must give what NVIDIA prints.
#include "bench/peaks/peaks.hpp"

#include <gtest/gtest.h>

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

using enum Precision;

struct Figure {
  Precision precision;
  double tera;  // dense, accumulated in FP32 or INT32; half of what a sheet gives "with sparsity"
};
struct Part {
  const char* name;  // as the CUDA runtime reports it
  int compute_capability, sm_count;
  double clock_mhz;  // as it reports it
  std::vector<Figure> published;
};

// A product of each capability, and each that has a row of its own in the table; figures of
// NVIDIA's data sheets and whitepapers (of an HGX or NVL72, a share).
const Part kParts[] = {
    {"Tesla T4", 75, 40, 1590, {{f32, 8.1}, {f16, 65}, {s8, 130}}},
    {"NVIDIA GeForce RTX 2080 Ti", 75, 68, 1545, {{f32, 13.4}, {f16, 53.8}, {s8, 215.2}}},
    {"NVIDIA A100-SXM4-80GB",
     80,
     108,
     1410,
     {{f32, 19.5}, {tf32, 156}, {bf16, 312}, {f16, 312}, {s8, 624}, {f64, 19.5}}},
    {"NVIDIA A10G", 86, 80, 1710, {{tf32, 35}, {bf16, 70}, {f16, 70}, {s8, 140}}},
    {"NVIDIA A40", 86, 84, 1740, {{f32, 37.4}, {tf32, 74.8}, {bf16, 149.7}, {s8, 299.3}}},
    {"NVIDIA GeForce RTX 3090",
     86,
     82,
     1695,
     {{f32, 35.6}, {f64, 0.556}, {tf32, 35.6}, {f16, 71.2}, {s8, 284}}},
    {"Orin", 87, 16, 1300, {{f32, 5.3}, {f16, 42.6}, {s8, 85}}},
    {"NVIDIA L4",
     89,
     58,
     2040,
     {{f32, 30.3}, {tf32, 60}, {bf16, 121}, {e5m2fast, 242.5}, {s8, 242.5}}},
    {"NVIDIA L20",
     89,
     92,
     2520,
     {{f32, 59.8}, {tf32, 59.8}, {bf16, 119.5}, {e4m3, 239}, {s8, 239}}},
    {"NVIDIA L40",
     89,
     142,
     2490,
     {{f32, 90.5}, {tf32, 90.5}, {bf16, 181}, {f16, 181}, {e4m3, 362}, {s8, 362}}},
    {"NVIDIA L40S", 89, 142, 2520, {{f32, 91.6}, {tf32, 183}, {bf16, 362}, {e4m3, 733}, {s8, 733}}},
    {"NVIDIA GeForce RTX 4090",
     89,
     128,
     2520,
     {{f32, 82.6}, {bf16, 165.2}, {e4m3, 330.3}, {s8, 660.6}}},
    {"NVIDIA H100 80GB HBM3",
     90,
     132,
     1980,
     {{f32, 67}, {tf32, 494.7}, {bf16, 989.4}, {e4m3, 1979}, {s8, 1979}, {f64, 67}}},
    {"NVIDIA H100 NVL",
     90,
     132,
     1785,
     {{f32, 60}, {tf32, 417.5}, {bf16, 835.5}, {e4m3, 1671}, {s8, 1671}, {f64, 60}}},
    {"NVIDIA H200",
     90,
     132,
     1980,
     {{f32, 66.9},
      {tf32, 494.7},
      {tf32x3, 494.7 / 3},
      {bf16, 989.4},
      {e4m3, 1978.9},
      {e4m3fast, 1978.9},
      {e5m2, 1978.9},
      {e5m2fast, 1978.9},
      {s8, 1978.9},
      {f64, 66.9},
      {s32, 33.45}}},
    {"NVIDIA H200 NVL",
     90,
     132,
     1785,
     {{f32, 60}, {bf16, 835.5}, {e4m3, 1671}, {s8, 1671}, {f64, 60}}},
    {"NVIDIA H800",
     90,
     132,
     1980,
     {{f32, 67}, {tf32, 494.7}, {bf16, 989.4}, {e4m3, 1979}, {s8, 1979}}},
    {"NVIDIA H20", 90, 78, 1980, {{tf32, 74}, {bf16, 148}, {f16, 148}, {e4m3, 296}, {s8, 296}}},
    {"NVIDIA H20-3e", 90, 78, 1980, {{bf16, 148}, {e4m3, 296}}},
    {"NVIDIA B200",
     100,
     148,
     1965,
     {{f32, 75}, {tf32, 1125}, {bf16, 2250}, {e4m3, 4500}, {s8, 4500}, {f64, 37}}},
    {"NVIDIA GB200", 100, 148, 2062, {{tf32, 1250}, {bf16, 2500}, {e4m3, 5000}, {s8, 5000}}},
    {"NVIDIA GB200",
     100,
     152,
     2062,
     {{f32, 80}, {tf32, 1250}, {bf16, 2500}, {e4m3, 5000}, {s8, 5000}, {f64, 40}}},
    {"NVIDIA GB300", 103, 148, 2062, {{bf16, 2500}, {e4m3, 5000}, {f64, 1.2}}},
    {"NVIDIA GB300", 103, 152, 2062, {{bf16, 2500}, {e4m3, 5000}}},
    {"NVIDIA B300 SXM6 AC", 103, 148, 1920, {{bf16, 2250}, {e4m3, 4500}}},
    {"NVIDIA Thor", 110, 20, 1575, {{f32, 8.064}, {f16, 258}, {e4m3, 517}}},
    {"NVIDIA GeForce RTX 5090",
     120,
     170,
     2407,
     {{f32, 104.8}, {bf16, 209.5}, {e4m3, 419}, {s8, 838}}},
    {"NVIDIA GeForce RTX 5090 D", 120, 170, 2407, {{f32, 104.8}}},
    {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
     120,
     188,
     2617,
     {{f32, 126}, {bf16, 503.8}, {e4m3, 1007.6}}},
    {"NVIDIA GB10", 121, 48, 2418, {{bf16, 125}, {e4m3, 250}}},
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
    for (const Figure& figure : part.published) {
      const Peak& peak = *compute_peak(peaks, figure.precision);
      ASSERT_TRUE(peak.per_second.has_value()) << part.name << ": " << peak.source;
      EXPECT_NEAR(*peak.per_second * 1e-12 / figure.tera, 1, 0.02)
          << part.name << " " << peak.name << ", published: " << figure.tera;
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
