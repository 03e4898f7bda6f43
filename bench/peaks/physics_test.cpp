// A time that beats the GPU is refused, with the likeliest cause; a fast one is not.
#include "bench/peaks/physics.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gemm::bench {
namespace {

// An H200 as it reports itself.
Limits h200() {
  DeviceInfo device;
  device.kind = Device::Kind::gpu;
  device.name = "NVIDIA H200";
  device.compute_capability = 90;
  device.sm_count = 132;
  device.clock_hz = 1980e6;
  device.memory_clock_hz = 3201e6;
  device.bus_width_bits = 6016;
  return {.peaks = peaks_of(device),
          .last_level_cache_bytes = 60 << 20,
          .dram_bytes_per_second = 4.6e12,
          .overheads = Overheads{1e-6, 1.5e-6, 3e-6}};
}

Evidence at(const Problem& p, double flop_per_second, std::int64_t sets = 2,
            std::optional<double> clock = 1980e6) {
  return {.problem = p,
          .seconds = flop(p) / flop_per_second,
          .operand_sets = sets,
          .highest_sm_hz = clock};
}

const Problem kLarge{8192, 8192, 8192, Precision::f32};

std::string complaint_about(const Evidence& seen, const Limits& limits = h200()) {
  return beats_physics(limits, seen).value_or("");
}

Evidence in_seconds(const Problem& p, double seconds, std::int64_t sets) {
  return {.problem = p, .seconds = seconds, .operand_sets = sets, .highest_sm_hz = 1980e6};
}

// 1 x 8192 times 8192 x 8192: 268 MB of B for 0.13 GFLOP.
const Problem kThin{1, 8192, 8192, Precision::f32};
const double kThinBytes = bytes_minimum(kThin);
const Problem kSmall{1024, 1024, 64, Precision::f32};  // 4.7 MB
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Of a row that is possible nothing, else the limit and the likeliest cause.
TEST(Physics, RefusesWhatTheGpuCannotDoAndHintsAtTheCause) {
  const std::pair<Evidence, std::vector<const char*>> cases[] = {
      {at(kLarge, 66.9e12), {}},
      {at(kLarge, 51e12, 2, 1500e6), {}},
      {at(kLarge, 60e12), {}},
      {at(kLarge, 60e12, 2, 1500e6), {"at 1500 MHz"}},  // the roof at its own clock
      // The tensor roof is stated at 1830 MHz; at 1980 MHz the GPU can do more.
      {at({8192, 8192, 8192, Precision::bf16}, 1060e12), {}},
      {at(kLarge, 350e12), {"TF32 tensor core", "another precision", "350 TFLOP/s", "at 1980 MHz"}},
      {at(kLarge, 5000e12), {"no unit of the device", "another stream"}},
      {in_seconds(kLarge, 2e-6, 2), {"empty kernel"}},
      {in_seconds(kLarge, kNaN, 2), {"impossible"}},
      {in_seconds(kThin, kThinBytes / 4.5e12, 2), {}},
      {in_seconds(kThin, kThinBytes / 9e12, 2), {"from the cache", "all 2 operand sets"}},
      {in_seconds(kThin, kThinBytes / 9e12, 1), {}},  // may be in the cache
      {in_seconds(kSmall, 3e-6, 8), {}},              // 38 MB in all fit
      // GPUs run above the clock that they report.
      {at(kLarge, 80e12, 2, std::nullopt), {}},
      {at(kLarge, 100e12, 2, std::nullopt), {"impossible"}},
  };
  for (const auto& [seen, said] : cases) {
    const std::string text = complaint_about(seen);
    EXPECT_EQ(text.empty(), said.empty()) << text << " " << flop(seen.problem) / seen.seconds;
    for (const char* part : said) EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Physics, GrantsTheCacheNoMoreThanFitsIt) {
  Limits memory_alone = h200();
  memory_alone.peaks.clear();
  EXPECT_NE(complaint_about(in_seconds(kSmall, 0.5e-6, 1000), memory_alone), "");
}

TEST(Physics, AsksWhetherAGivenRoofIsRight) {
  Limits limits = h200();
  for (Peak& peak : limits.peaks) {
    peak.origin = Peak::Origin::given;
    peak.per_second = 1e12;
    peak.clock_hz.reset();
  }
  EXPECT_NE(complaint_about(at(kLarge, 2e12), limits).find("--gemm_peak_flops right?"),
            std::string::npos);
}

// cuBLASLt with one scale per matrix gave 184.6 TFLOP/s on a GeForce RTX 5060 Ti.
TEST(Physics, AllowsBlockScaledProducts) {
  DeviceInfo device;
  device.kind = Device::Kind::gpu;
  device.name = "NVIDIA GeForce RTX 5060 Ti";
  device.compute_capability = 120;
  device.sm_count = 36;
  device.clock_hz = 2572e6;
  const Limits limits{.peaks = peaks_of(device)};
  const Problem fp8{8192, 8192, 8192, Precision::e4m3};
  EXPECT_EQ(complaint_about(at(fp8, 184.6e12, 2, 2570e6), limits), "");
  EXPECT_NE(complaint_about(at(fp8, 200e12, 2, 2570e6), limits), "");
}

// What was measured is no law, but where the table contradicts it: then it is the larger of both.
TEST(Physics, KnowsNoLimitWhereNoneIsStated) {
  EXPECT_EQ(complaint_about(at(kLarge, 1e18), {}), "");
  Limits measured = h200();
  for (Peak& peak : measured.peaks) peak.origin = Peak::Origin::measured;
  EXPECT_EQ(complaint_about(at(kLarge, 80e12), measured), "");
  for (Peak& peak : measured.peaks) {
    peak.limit_per_second = peak.per_second;
    *peak.per_second /= 4;
  }
  EXPECT_EQ(complaint_about(at(kLarge, 66e12), measured), "");
  EXPECT_NE(complaint_about(at(kLarge, 80e12), measured), "");
}

// On a busy host the probe reached a third of what one core does in its own time.
TEST(PhysicsOfACpu, ABusyHostsProbeAccusesNobody) {
  const OthersLoad busy{.cpus = 2, .busy_share = 0.6}, quiet{.cpus = 2};
  EXPECT_GE(cpu_limit(30e9, 50e9, 2, busy), 100e9);
  EXPECT_GE(cpu_limit(30e9, 50e9, 2, std::nullopt), 100e9) << "it is not known whether it is busy";
  EXPECT_LT(cpu_limit(30e9, 50e9, 2, busy), 110e9) << "no core does more";
  EXPECT_LT(cpu_limit(90e9, 50e9, 2, quiet), 100e9) << "all cores together run at a lower clock";
}

TEST(PhysicsOfACpu, RepeatsTheProbeBesideARowAboveIt) {
  const auto backend = make_host_backend();
  std::vector<Peak> peaks = peaks_of(backend->device());
  Peak& peak = peaks.front();
  peak.per_second = 1e6;
  peak.origin = Peak::Origin::measured;
  EXPECT_EQ(beats_cpu(*backend, peak, 1e8), std::nullopt);
  EXPECT_GT(*peak.per_second, 1e8);
  const std::string why = beats_cpu(*backend, peak, 1e15).value_or("");
  EXPECT_NE(why.find("measured again"), std::string::npos) << why;
  peak.origin = Peak::Origin::given;
  EXPECT_NE(beats_cpu(*backend, peak, 1e15), std::nullopt);
  EXPECT_LT(*peak.per_second, 1e15) << "what was given stays";
}

}  // namespace
}  // namespace gemm::bench
