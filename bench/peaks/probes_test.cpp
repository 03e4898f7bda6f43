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
  EXPECT_EQ(probes.size(), 4U);
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

// FLOP (bytes) per clock per SM, dense, as peaks.cpp has them and for the units that it leaves out;
// from NVIDIA's whitepapers and the throughput table of the CUDA C++ Best Practices Guide. 0: not
// known. The name of a probe up to its last underscore, or all of it.
struct Rate {
  int capability;
  const char* name;
  double per_clock_per_sm;
};
constexpr Rate kRates[] = {
    {75, "FP32_FMA", 128},    {75, "FP64_FMA", 4},       {75, "INT32_FMA", 128},
    {75, "FP16", 1024},       {75, "INT8", 2048},        {75, "Shared_read", 64},
    {80, "FP32_FMA", 128},    {80, "FP64_FMA", 64},      {80, "FP16x2_FMA", 512},
    {80, "INT32_FMA", 128},   {80, "TF32", 1024},        {80, "BF16", 2048},
    {80, "FP16", 2048},       {80, "INT8", 4096},        {80, "FP64", 128},
    {80, "Shared_read", 128}, {86, "FP32_FMA", 256},     {86, "FP64_FMA", 4},
    {86, "INT32_FMA", 128},   {86, "TF32", 512},         {86, "BF16", 1024},
    {86, "FP16", 1024},       {86, "INT8", 2048},        {86, "Shared_read", 128},
    {89, "FP32_FMA", 256},    {89, "FP64_FMA", 4},       {89, "INT32_FMA", 128},
    {89, "TF32", 512},        {89, "BF16", 1024},        {89, "FP16", 1024},
    {89, "FP8", 2048},        {89, "INT8", 2048},        {89, "Shared_read", 128},
    {90, "FP32_FMA", 256},    {90, "FP64_FMA", 128},     {90, "FP16x2_FMA", 512},
    {90, "INT32_FMA", 128},   {90, "TF32", 2048},        {90, "BF16", 4096},
    {90, "FP16", 4096},       {90, "FP8", 8192},         {90, "INT8", 8192},
    {90, "FP64", 256},        {90, "Shared_read", 128},  {100, "FP32_FMA", 256},
    {100, "FP64_FMA", 128},   {100, "INT32_FMA", 128},   {100, "TF32", 4096},
    {100, "BF16", 8192},      {100, "FP16", 8192},       {100, "FP8", 16384},
    {100, "INT8", 16384},     {100, "FP64", 128},        {100, "Shared_read", 128},
    {120, "FP32_FMA", 256},   {120, "FP64_FMA", 4},      {120, "TF32", 512},
    {120, "BF16", 1024},      {120, "FP16", 1024},       {120, "FP8", 2048},
    {120, "INT8", 2048},      {120, "Shared_read", 128},
};

std::optional<double> bound_of(const Probe& probe, const DeviceInfo& device) {
  if (probe.name == "DRAM_read" || probe.name == "DRAM_write" || probe.name == "DRAM_copy" ||
      probe.name == "DRAM_triad") {
    if (!device.memory_clock_hz || !device.bus_width_bits || device.integrated) return std::nullopt;
    return *device.memory_clock_hz * static_cast<double>(*device.bus_width_bits) / 4;
  }
  // GeForce GPUs run above the clock that they report.
  const double clock =
      device.clock_hz.value_or(0) * (device.name.starts_with("NVIDIA GeForce") ? 1.3 : 1);
  const std::string unit = probe.name.substr(0, probe.name.rfind('_'));
  for (const Rate& rate : kRates)
    if (rate.capability == device.compute_capability && clock > 0 &&
        (probe.name == rate.name || (unit == rate.name && !probe.name.ends_with("_FMA"))))
      return rate.per_clock_per_sm * clock * device.sm_count;
  return std::nullopt;
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
       {"FP32_FMA",   "FP64_FMA",  "FP16x2_FMA",  "INT32_FMA",      "TF32_mma",    "BF16_mma",
        "FP16_mma",   "FP8_mma",   "INT8_mma",    "FP64_mma",       "TF32_wgmma",  "BF16_wgmma",
        "FP16_wgmma", "FP8_wgmma", "INT8_wgmma",  "DRAM_read",      "DRAM_write",  "DRAM_copy",
        "DRAM_triad", "L2_read",   "Shared_read", "PCIe_to_device", "PCIe_to_host"})
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
