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
  const char* source;
  std::vector<Figure> published;
};

// Every product that a peak was published for and looked up, whether or not it needs a row of its
// own in the table.
const Part kParts[] = {
    {"Tesla T4", 75, 40, 1590, "T4 data sheet", {{f32, 8.1}, {f16, 65}, {s8, 130}}},
    {"NVIDIA T4G", 75, 40, 1590, "T4 data sheet; AWS G5g", {{f16, 65}}},
    {"Quadro RTX 5000", 75, 48, 1815, "Quadro RTX 5000 data sheet", {{f32, 11.2}, {f16, 89.2}}},
    {"NVIDIA GeForce RTX 2080 Ti",
     75,
     68,
     1545,
     "Turing whitepaper, reference",
     {{f32, 13.4}, {f16, 53.8}, {s8, 215.2}}},
    {"NVIDIA TITAN RTX", 75, 72, 1770, "TITAN RTX product page", {{f16, 130}}},
    {"NVIDIA GeForce GTX 1650", 75, 14, 1665, "GTX 1650 product page", {{f32, 2.98}}},
    {"NVIDIA A100-SXM4-80GB",
     80,
     108,
     1410,
     "A100 data sheet",
     {{f32, 19.5}, {tf32, 156}, {bf16, 312}, {f16, 312}, {s8, 624}, {f64, 19.5}}},
    {"NVIDIA A100-SXM4-40GB MIG 1g.5gb",
     80,
     14,
     1410,
     "A100 data sheet, 14 of 108 SMs",
     {{bf16, 312 * 14 / 108.0}}},
    {"NVIDIA A800-SXM4-80GB",
     80,
     108,
     1410,
     "A800 data sheet",
     {{tf32, 156}, {bf16, 312}, {s8, 624}, {f64, 19.5}}},
    {"NVIDIA A30",
     80,
     56,
     1440,
     "A30 data sheet",
     {{f32, 10.3}, {tf32, 82}, {bf16, 165}, {s8, 330}, {f64, 10.3}}},
    {"NVIDIA A10",
     86,
     72,
     1695,
     "A10 data sheet",
     {{f32, 31.2}, {tf32, 62.5}, {bf16, 125}, {s8, 250}}},
    {"NVIDIA A10G",
     86,
     80,
     1710,
     "A10G data sheet",
     {{tf32, 35}, {bf16, 70}, {f16, 70}, {s8, 140}}},
    {"NVIDIA A10G-24Q", 86, 80, 1710, "A10G data sheet", {{bf16, 70}}},
    {"NVIDIA A2", 86, 10, 1770, "A2 data sheet", {{f32, 4.5}, {tf32, 9}, {bf16, 18}, {s8, 36}}},
    {"NVIDIA A40",
     86,
     84,
     1740,
     "A40 data sheet",
     {{f32, 37.4}, {tf32, 74.8}, {bf16, 149.7}, {s8, 299.3}}},
    {"NVIDIA RTX A6000",
     86,
     84,
     1800,
     "GA102 whitepaper",
     {{f32, 38.7}, {tf32, 77.4}, {f16, 154.8}, {s8, 309.7}}},
    {"NVIDIA RTX A2000", 86, 26, 1200, "RTX A2000 data sheet", {{f32, 8.0}, {f16, 63.9 / 2}}},
    {"NVIDIA GeForce RTX 3090",
     86,
     82,
     1695,
     "GA102 whitepaper",
     {{f32, 35.6}, {f64, 0.556}, {tf32, 35.6}, {f16, 71.2}, {s8, 284}}},
    {"NVIDIA GeForce RTX 3050", 86, 20, 1777, "RTX 3050 product page", {{f32, 9.1}}},
    {"Orin",
     87,
     16,
     1300,
     "Jetson AGX Orin data sheet, 64 GB",
     {{f32, 5.3}, {f16, 42.6}, {s8, 85}}},
    {"Orin", 87, 14, 930, "Jetson AGX Orin data sheet, 32 GB", {{s8, 108 / 2.0}}},
    {"Orin", 87, 8, 918, "Jetson Orin NX data sheet, 16 GB, without the DLA", {{s8, 60 / 2.0}}},
    {"Orin", 87, 8, 1020, "Jetson Orin Nano Super data sheet, 8 GB", {{s8, 67 / 2.0}}},
    {"NVIDIA L4",
     89,
     58,
     2040,
     "L4 data sheet",
     {{f32, 30.3}, {tf32, 60}, {bf16, 121}, {e5m2fast, 242.5}, {s8, 242.5}}},
    {"NVIDIA L20",
     89,
     92,
     2520,
     "L20 data sheet",
     {{f32, 59.8}, {tf32, 59.8}, {bf16, 119.5}, {e4m3, 239}, {s8, 239}}},
    {"NVIDIA L40",
     89,
     142,
     2490,
     "L40 data sheet",
     {{f32, 90.5}, {tf32, 90.5}, {bf16, 181}, {f16, 181}, {e4m3, 362}, {s8, 362}}},
    {"NVIDIA L40-48Q", 89, 142, 2490, "L40 data sheet", {{bf16, 181}}},
    {"NVIDIA L40S",
     89,
     142,
     2520,
     "L40S data sheet",
     {{f32, 91.6}, {tf32, 183}, {bf16, 362}, {e4m3, 733}, {s8, 733}}},
    {"NVIDIA RTX 6000 Ada Generation",
     89,
     142,
     2505,
     "RTX 6000 Ada data sheet",
     {{f32, 91.1}, {f16, 364.2}, {e4m3, 1457 / 2.0}}},
    {"NVIDIA RTX 4000 Ada Generation",
     89,
     48,
     2175,
     "RTX 4000 Ada data sheet",
     {{f32, 26.7}, {e4m3, 427.6 / 2}}},
    {"NVIDIA GeForce RTX 4090",
     89,
     128,
     2520,
     "Ada whitepaper",
     {{f32, 82.6}, {bf16, 165.2}, {e4m3, 330.3}, {s8, 660.6}}},
    {"NVIDIA H100 80GB HBM3",
     90,
     132,
     1980,
     "H100 data sheet, SXM",
     {{f32, 67}, {tf32, 494.7}, {bf16, 989.4}, {e4m3, 1979}, {s8, 1979}, {f64, 67}}},
    {"NVIDIA H100 80GB HBM3 MIG 1g.10gb",
     90,
     16,
     1980,
     "H100 data sheet, 16 of 132 SMs",
     {{bf16, 989.4 * 16 / 132}}},
    {"NVIDIA H100 PCIe",
     90,
     114,
     1755,
     "H100 data sheet, PCIe",
     {{f32, 51}, {tf32, 378}, {f16, 756}, {e4m3, 1513}, {s8, 1513}, {f64, 51}}},
    {"NVIDIA H100 NVL",
     90,
     132,
     1785,
     "H100 NVL data sheet",
     {{f32, 60}, {tf32, 417.5}, {bf16, 835.5}, {e4m3, 1671}, {s8, 1671}, {f64, 60}}},
    {"NVIDIA H200",
     90,
     132,
     1980,
     "H200 data sheet",
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
     "H200 data sheet, NVL",
     {{f32, 60}, {bf16, 835.5}, {e4m3, 1671}, {s8, 1671}, {f64, 60}}},
    {"NVIDIA GH200 480GB",
     90,
     132,
     1980,
     "GH200 data sheet",
     {{f32, 67}, {tf32, 494}, {bf16, 990}, {e4m3, 1979}, {f64, 67}}},
    {"NVIDIA H800",
     90,
     132,
     1980,
     "H800 data sheet, SXM",
     {{f32, 67}, {tf32, 494.7}, {bf16, 989.4}, {e4m3, 1979}, {s8, 1979}}},
    {"NVIDIA H800 PCIe",
     90,
     114,
     1755,
     "H800 data sheet, PCIe",
     {{f32, 51}, {bf16, 756}, {e4m3, 1513}}},
    {"NVIDIA H20",
     90,
     78,
     1980,
     "H20 data sheet",
     {{tf32, 74}, {bf16, 148}, {f16, 148}, {e4m3, 296}, {s8, 296}}},
    {"NVIDIA H20-3e", 90, 78, 1980, "H20 data sheet", {{bf16, 148}, {e4m3, 296}}},
    {"NVIDIA H20 MIG 1g.12gb",
     90,
     8,
     1980,
     "H20 data sheet, 8 of 78 SMs",
     {{bf16, 148 * 8 / 78.0}}},
    {"NVIDIA B200",
     100,
     148,
     1965,
     "HGX B200 data sheet, an eighth",
     {{f32, 75}, {tf32, 1125}, {bf16, 2250}, {e4m3, 4500}, {s8, 4500}, {f64, 37}}},
    {"NVIDIA GB200",
     100,
     148,
     2062,
     "GB200 NVL72 data sheet, a 72nd",
     {{tf32, 1250}, {bf16, 2500}, {e4m3, 5000}, {s8, 5000}}},
    // Its 80 and 40 TFLOP/s of FP32 and FP64 are those of 152 SMs.
    {"NVIDIA GB200",
     100,
     152,
     2062,
     "GB200 NVL72 data sheet, a 72nd",
     {{f32, 80}, {tf32, 1250}, {bf16, 2500}, {e4m3, 5000}, {s8, 5000}, {f64, 40}}},
    {"NVIDIA GB300",
     103,
     148,
     2062,
     "GB300 NVL72 data sheet, a 72nd",
     {{bf16, 2500}, {e4m3, 5000}, {f64, 1.2}}},
    {"NVIDIA GB300",
     103,
     152,
     2062,
     "GB300 NVL72 data sheet, a 72nd",
     {{bf16, 2500}, {e4m3, 5000}}},
    {"NVIDIA B300 SXM6 AC",
     103,
     148,
     1920,
     "HGX B300 data sheet, an eighth",
     {{bf16, 2250}, {e4m3, 4500}}},
    {"NVIDIA Thor",
     110,
     20,
     1575,
     "Jetson T5000 data sheet",
     {{f32, 8.064}, {f16, 258}, {e4m3, 517}}},
    {"NVIDIA Thor", 110, 12, 1530, "Jetson T4000 data sheet, half of FP4", {{e4m3, 600 / 2.0}}},
    {"NVIDIA GeForce RTX 5090",
     120,
     170,
     2407,
     "RTX Blackwell whitepaper",
     {{f32, 104.8}, {bf16, 209.5}, {e4m3, 419}, {s8, 838}}},
    {"NVIDIA GeForce RTX 5090 D", 120, 170, 2407, "RTX 5090 D product page", {{f32, 104.8}}},
    {"NVIDIA GeForce RTX 5080",
     120,
     84,
     2617,
     "RTX Blackwell whitepaper",
     {{f32, 56.3}, {bf16, 112.6}, {e4m3, 225.1}, {s8, 450.2}}},
    {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
     120,
     188,
     2617,
     "RTX PRO Blackwell whitepaper",
     {{f32, 126}, {bf16, 503.8}, {e4m3, 1007.6}}},
    {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
     120,
     188,
     2280,
     "RTX PRO Blackwell whitepaper",
     {{f32, 109.7}, {bf16, 438.9}}},
    {"NVIDIA GB10",
     121,
     48,
     2418,
     "DGX Spark data sheet: 1 PFLOP/s of sparse FP4",
     {{bf16, 125}, {e4m3, 250}}},
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
          << part.name << " " << peak.name << ": " << part.source << " has " << figure.tera;
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
MeasuredPeak probe_of(const DeviceInfo& device, const char* name, Precision precision, double share,
                      const char* fill = "random") {
  MeasuredPeak one{
      .name = name, .arithmetic = std::string(traits_of(precision).name), .fill = fill};
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
  const MeasuredPeak half = probe_of(device, "BF16_mma", bf16, 0.49),
                     zeros = probe_of(device, "BF16_mma", bf16, 0.5, "zeros");
  const Peak peak = reconciled(device, bf16, {half, zeros});
  EXPECT_EQ(peak.per_second, half.flop_per_second);
  EXPECT_EQ(peak.clock_hz, 1400e6);
  EXPECT_EQ(peak.origin, Peak::Origin::measured);
  EXPECT_NE(peak.contradiction.find("0.5 "), std::string::npos) << peak.contradiction;
  EXPECT_NEAR(*peak.limit_at(1710e6), 140.1e12, 0.1e12);
  EXPECT_TRUE(reconciled(device, f16, {half, zeros}).contradiction.empty());
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
