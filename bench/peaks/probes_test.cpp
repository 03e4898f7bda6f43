// Probes do the work that they say they do, and no rate exceeds what the device can do.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/base/interrupt.hpp"
#include "bench/device/batch.hpp"
#include "bench/device/test_backend.hpp"
#include "bench/peaks/peaks.hpp"
#include "bench/peaks/probe.hpp"

namespace gemm::bench {
namespace {

double rate_of(const Probe& probe, Backend& backend) {
  const Launch launch = probe.prepare(backend);
  backend.run(launch);
  return probe.work / Batch(backend, {&launch, 1}, 1, false).time().seconds;
}

// A device that does nothing that it is told to run.
class IdleBackend : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void run(const Launch&) override {}
};

// Each probe is found to do its work, and a device that does none is found out.
void expect_work(const std::vector<Probe>& probes, Backend& backend) {
  IdleBackend idle(backend);
  for (const Probe& probe : probes) {
    if (probe.unsupported) continue;
    EXPECT_EQ(probe.complaint(backend), std::nullopt) << probe.label();
    EXPECT_NE(probe.complaint(idle), std::nullopt) << probe.label();
  }
}

void expect_named(const std::vector<Probe>& probes) {
  std::set<std::string> labels;
  for (const Probe& probe : probes) {
    EXPECT_TRUE(labels.insert(probe.label()).second) << probe.label() << " is there twice";
    EXPECT_FALSE(probe.what.empty()) << probe.label();
    EXPECT_EQ(probe.unit == Probe::Unit::flop, !probe.arithmetic.empty()) << probe.label();
  }
}

TEST(HostProbes, DoTheirWork) {
  const auto backend = make_host_backend();
  const auto probes = host_probes(backend->device());
  expect_named(probes);
  EXPECT_EQ(probes.size(), 2U);
  for (const Probe& probe : probes) EXPECT_EQ(probe.unsupported, std::nullopt) << probe.label();
  expect_work(probes, *backend);
}

TEST(HostProbes, HaveFinitePositiveRates) {
  const auto backend = make_host_backend();
  for (const Probe& probe : host_probes(backend->device())) {
    const double rate = rate_of(probe, *backend);
    // No thread of today does 1 TFLOP/s, and none moves 1 TB/s.
    EXPECT_GT(rate, 1e8) << probe.label();
    EXPECT_LT(rate, 1e12 * backend->device().cores) << probe.label();
  }
}

// --- On the GPU ----------------------------------------------------------------------------------

// By the table of peaks.cpp, which its test compares with data sheets.
std::optional<double> bound_of(const Probe& probe, const DeviceInfo& device) {
  if (probe.name == "DRAM_read") return memory_peak(peaks_of(device))->per_second;
  const auto precision = precision_named(probe.arithmetic);
  const auto rate =
      precision ? flop_per_clock(device.compute_capability, traits_of(*precision).unit, device.name)
                : std::nullopt;
  // GeForce GPUs run above the clock that they report.
  const double clock =
      device.clock_hz.value_or(0) * (device.name.starts_with("NVIDIA GeForce") ? 1.3 : 1);
  return rate && clock > 0 ? std::optional(*rate * clock * device.sm_count) : std::nullopt;
}

TEST(CudaProbes, AreNamedOnceAndSayWhyNotOnTheGpu) {
  SKIP_WITHOUT_GPU();
  const auto probes = cuda_probes(cuda()->device());
  expect_named(probes);
  std::set<std::string> names;
  for (const Probe& probe : probes) {
    names.insert(probe.name);
    EXPECT_NE(probe.unsupported, "") << probe.label();
  }
  for (const char* name :
       {"FP32_FMA", "FP64_FMA", "INT32_FMA", "TF32_mma", "BF16_mma", "FP16_mma", "FP8_mma",
        "INT8_mma", "FP64_mma", "TF32_wgmma", "BF16_wgmma", "FP16_wgmma", "FP8_wgmma", "INT8_wgmma",
        "DRAM_read", "L2_read", "Shared_read", "PCIe_to_device", "PCIe_to_host"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(CudaProbes, DoTheirWorkOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_work(cuda_probes(cuda()->device()), *cuda());
}

TEST(CudaProbes, StayBelowThePeakOnTheGpu) {
  SKIP_WITHOUT_GPU();
  for (const Probe& probe : cuda_probes(cuda()->device())) {
    if (probe.unsupported) continue;
    const double rate = rate_of(probe, *cuda());
    EXPECT_GT(rate, 1e8) << probe.label();
    EXPECT_TRUE(std::isfinite(rate)) << probe.label();
    EXPECT_LT(probe.work / rate, 0.1) << probe.label() << ": seconds a launch";
    const auto bound = bound_of(probe, cuda()->device());
    EXPECT_LT(rate, 1.03 * bound.value_or(HUGE_VAL)) << probe.label();
  }
}

}  // namespace
}  // namespace gemm::bench
