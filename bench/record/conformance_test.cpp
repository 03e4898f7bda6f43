// What a row says of how it was measured, and which test it was.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/base/text.hpp"
#include "bench/record/record.hpp"

namespace gemm::bench {
namespace {

const RegisteredKernel& tiled() {
  static const RegisteredKernel kernel = [] {
    RegisteredKernel one;
    one.name = "Tiled";
    return one;
  }();
  return kernel;
}

// On a GPU whose L2 holds 60 MiB and whose clock may reach 1980 MHz.
Conditions run_on_a_gpu() {
  Conditions run;
  run.device.kind = Device::Kind::gpu;
  run.device.last_level_cache_bytes = 60 << 20;
  run.gpu = GpuFacts{};
  run.gpu->sm_hz_max = 1980e6;
  return run;
}

// 3 x 201 MB, 1240 samples, in steady state at 1560 MHz and 693 W.
Row settled_row(double sm_hz = 1560e6, double swing_hz = 30e6) {
  Row row{.which = {&tiled(), {4096, 4096, 4096, Precision::f32}}};
  row.checks = Checks{.passes = 1, .launches = 1, .checked = 1};
  row.rotation_sets = 3;
  row.batch = 1;
  row.timing.samples_seconds.assign(1240, 1e-3);
  row.timing.samples_sm_hz.assign(1240, sm_hz);
  row.timing.warmup = {
      .seconds = 3.2, .settled = true, .watched = "SM clock and power", .energy = {.watts = 693}};
  row.timing.converged = true;
  row.timing.gpu.readings = 60;
  row.timing.gpu.sm_hz = Range{sm_hz - swing_hz, sm_hz, sm_hz + swing_hz};
  row.timing.gpu.throttled_share = 0;
  return row;
}

Row with_reason(Row row, const std::string& reason, double throttled) {
  row.timing.gpu.reasons = {{reason, 1.0}};
  row.timing.gpu.throttled_share = throttled;
  return row;
}

std::optional<std::string> test_of(const Conditions& run, const std::vector<Row>& rows) {
  Results results(run);
  for (std::size_t i = 0; i < rows.size(); ++i) results.add(std::to_string(i), rows[i]);
  return results.test();
}

TEST(Conformance, TellsARunInALine) {
  Results results(run_on_a_gpu());
  EXPECT_EQ(results.conformance(), "");
  results.add("one", with_reason(settled_row(), "power cap", 1));
  Row other = settled_row(1980e6);
  other.timing.warmup.seconds = 0.5;
  other.timing.converged = false;
  other.timing.samples_seconds.resize(900);
  other.timing.samples_sm_hz.resize(900);
  results.add("two", other);
  results.add("skipped", {.which = other.which, .skipped = "too large"});
  EXPECT_EQ(
      results.conformance(),
      "fixed power, uniform[-1,1], 3 operand sets, steady state after 0.5 to 3.2 s at 1560 to "
      "1980 MHz 693 W (1 result throttled), 900 to 1,240 samples per result, no idle time between "
      "them; off-guideline: 1 of 2 (few-launches 1); in doubt: 1 of 2");
  Conditions rested = run_on_a_gpu();
  rested.options.timing.cooldown_seconds = 1;
  Results after(rested);
  after.add("one", settled_row());
  EXPECT_TRUE(after.conformance().ends_with(", 1 s idle before each")) << after.conformance();
}

// "few-launches 90 (1000); median-uncertain? 0.02 (0.015)"; with the question mark in doubt.
std::string told(const Conditions& run, const Row& row) {
  std::string all;
  for (const Deviation& one : Results(run).deviations(row)) {
    all += (all.empty() ? "" : "; ") + one.code + (one.doubt ? "?" : "");
    if (one.value) all += formatted(" %.3g", *one.value);
    if (one.limit) all += formatted(" (%.3g)", *one.limit);
  }
  return all;
}

TEST(Conformance, NamesThePointsOfTheGuidelineThatARowDoesNotMeet) {
  Conditions run = run_on_a_gpu();
  EXPECT_EQ(told(run, settled_row()), "");
  run.options.fill = Fill::integers;
  EXPECT_EQ(told(run, settled_row()), "low-power-operands");
  run.options.fill = Fill::normal;
  EXPECT_EQ(told(run, settled_row()), "other-distribution");
  run.options.timing.state = State::burst;
  EXPECT_EQ(told(run, settled_row()), "other-distribution; burst");

  run = run_on_a_gpu();
  Row row = settled_row();
  row.rotation_sets = 1;
  EXPECT_EQ(told(run, row), "one-operand-set");
  row.which.problem = {64, 64, 64, Precision::f32};
  row.rotation_sets = 1024;
  EXPECT_EQ(told(run, row), "cached-operands 3.36e+07 (1.26e+08)");

  row = settled_row();
  row.checks->uses = 4;
  EXPECT_EQ(told(run, row), "reused-operands 4 (1)");
  row.checks.reset();
  EXPECT_EQ(told(run, row), "not-checked");

  row = settled_row();
  row.timing.warmup.settled = false;
  EXPECT_EQ(told(run, row), "not-settled 3.2");
  row.timing.warmup.watched.clear();
  EXPECT_EQ(told(run, row), "not-watched");
  row = settled_row();
  row.timing.gpu.readings = 0;
  EXPECT_EQ(told(run, row), "power-not-watched");

  row = with_reason(settled_row(), "power cap", 1);
  row.timing.warmup.seconds = kWarmupAtCap;
  EXPECT_EQ(told(run, row), "");
  row.timing.warmup.seconds = 2.9;
  EXPECT_EQ(told(run, row), "short-warm-up 2.9 (3)");
  row = settled_row();
  row.timing.warmup.seconds = 0.5;
  EXPECT_EQ(told(run, row), "") << "not throttled";

  row = settled_row();
  row.timing.samples_seconds.assign(1240, 20e-6);
  row.launch = "graph";
  EXPECT_EQ(told(run, row), "");
  row.launch = "stream";
  EXPECT_EQ(told(run, row), "host-bound 2e-05 (4.5e-05)");

  row = settled_row();
  row.timing.memory_kept_bytes = 4 << 20;  // a page of an allocator
  EXPECT_EQ(told(run, row), "");
  row.timing.memory_kept_bytes = 100e6;
  EXPECT_EQ(told(run, row), "memory-kept 1e+08 (4.19e+06)");
}

// 1,000 launches or a narrow interval; how wide it is concerns the figure.
TEST(Conformance, AThousandLaunchesMeetTheGuidelineAndAWideIntervalIsInDoubt) {
  const Conditions run = run_on_a_gpu();
  Row row = settled_row();
  row.timing.samples_seconds.assign(100, 1e-3);
  row.timing.samples_sm_hz.assign(100, 1560e6);
  EXPECT_EQ(told(run, row), "") << "few launches whose interval is narrow";
  row.timing.converged = false;
  for (std::size_t i = 0; i < 100; i += 2) row.timing.samples_seconds[i] = 1.1e-3;
  row.batch = 9;
  EXPECT_EQ(told(run, row), "few-launches 900 (1e+03); median-uncertain? 0.0952 (0.015)");
  row.batch = 10;
  EXPECT_EQ(told(run, row), "median-uncertain? 0.0952 (0.015)");
  EXPECT_TRUE(Results(run).in_doubt(row));
  row.timing.samples_seconds.resize(2);
  row.timing.samples_sm_hz.resize(2);
  row.batch = 1000;
  EXPECT_EQ(told(run, row), "too-few-samples?");
}

// By as much as the interval may be wide, which the options set.
TEST(Conformance, AClockThatDriftsOrIsAnotherIsInDoubt) {
  Conditions run = run_on_a_gpu();
  Row row = settled_row();
  const auto drift = [&](double hz) {
    for (std::size_t i = 620; i < 1240; ++i) row.timing.samples_sm_hz[i] = hz;
  };
  drift(1580e6);
  EXPECT_EQ(told(run, row), "");
  drift(1590e6);
  EXPECT_EQ(told(run, row), "clock-drift? 0.0192 (0.015)");
  drift(std::nan(""));
  EXPECT_TRUE(told(run, row).starts_with("clock-drift?"));
  run.options.timing.target = 0.005;
  drift(1570e6);
  EXPECT_EQ(told(run, row), "clock-drift? 0.00641 (0.005)");

  run = run_on_a_gpu();
  row = settled_row();
  row.timing.warmup.sm_hz = 1560e6 / 0.99;
  EXPECT_EQ(told(run, row), "");
  row.timing.warmup.sm_hz = 1560e6 / 0.98;
  EXPECT_EQ(told(run, row), "other-clock? -0.02 (0.015)");
  EXPECT_EQ(told(run, with_reason(settled_row(), "thermal slowdown (software)", 0.5)),
            "hardware-slowdown? 1 (0)");
}

TEST(Conformance, AtAFixedFrequencyZerosAreRightAndThrottlingIsNot) {
  Conditions run = run_on_a_gpu();
  run.gpu->application_clocks_set = true;
  run.options.fill = Fill::zeros;
  EXPECT_TRUE(Results(run).deviations(settled_row()).empty());
  EXPECT_EQ(Results(run).deviations(with_reason(settled_row(), "power cap", 0.5))[0].code,
            "clock-not-held");
}

TEST(Test, IsFixedPowerWhereClocksFloat) {
  EXPECT_EQ(test_of(run_on_a_gpu(), {settled_row(1560e6), settled_row(1980e6)}), "fixed power");
  // At its maximum it stands still, too.
  EXPECT_EQ(test_of(run_on_a_gpu(), {settled_row(1980e6, 0)}), "fixed power");
  EXPECT_EQ(test_of(run_on_a_gpu(), {}), "fixed power");
}

TEST(Test, IsFixedFrequencyWhereTheClocksWereSet) {
  Conditions set = run_on_a_gpu();
  set.gpu->application_clocks_set = true;
  EXPECT_EQ(test_of(set, {}), "fixed frequency");
  EXPECT_EQ(test_of(run_on_a_gpu(), {with_reason(settled_row(), "clocks set by user", 0)}),
            "fixed frequency");
  // It shows: one value below the maximum in all rows, and nothing that throttles.
  EXPECT_EQ(test_of(run_on_a_gpu(), {settled_row(1500e6, 0), settled_row(1500e6, 0)}),
            "fixed frequency");
  EXPECT_EQ(test_of(run_on_a_gpu(), {with_reason(settled_row(1500e6, 0), "power cap", 1)}),
            "fixed power");
}

TEST(Test, IsUnknownWithoutReadingsOfTheGpu) {
  Conditions run = run_on_a_gpu();
  run.gpu.reset();
  EXPECT_EQ(test_of(run, {settled_row()}), std::nullopt);
}

TEST(Conformance, SaysWhatElseRanOrWasInjected) {
  Conditions run = run_on_a_gpu();
  run.gpu_processes = 0;
  EXPECT_EQ(told(run, settled_row()), "");
  run.environment.recorded = {{"OMP_NUM_THREADS", "4"}};
  run.environment.removed = {{"CUDA_LAUNCH_BLOCKING", "1"}};
  EXPECT_EQ(told(run, settled_row()), "");
  run.environment.injected = {"libcuda-injection.so"};
  EXPECT_EQ(told(run, settled_row()), "injected");
  run = run_on_a_gpu();
  run.gpu_processes = 2;
  EXPECT_EQ(told(run, settled_row()), "shared-gpu 2 (0)");
  run = run_on_a_gpu();
  run.environment.recorded = {{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50"}};
  EXPECT_EQ(told(run, settled_row()), "mps-share 50 (100)");
}

// Kernels on a GPU do not wait for the host's CPUs.
TEST(Conformance, ABusyHostDisturbsResultsOfTheCpu) {
  Row row = settled_row();
  row.host = OthersLoad{.cpus = 16, .busy_share = 0.5, .steal_share = 0.125};
  Conditions run = run_on_a_gpu();
  EXPECT_EQ(told(run, row), "");
  run.device.kind = Device::Kind::cpu;
  EXPECT_EQ(told(run, row), "busy-host? 0.625 (0.0156)");
  row.host = OthersLoad{.cpus = 16, .busy_share = 0.005};
  EXPECT_EQ(told(run, row), "");
}

// A CPU has no readings of its clock and power, so it never settles.
TEST(Conformance, WhatACpuCannotMeasureIsNoDeviation) {
  Conditions run = run_on_a_gpu();
  run.device.kind = Device::Kind::cpu;
  run.gpu.reset();
  Row row = settled_row();
  row.timing.samples_sm_hz.clear();
  row.timing.warmup = {.seconds = 0.25};
  row.timing.gpu = {};
  EXPECT_EQ(told(run, row), "");
}

}  // namespace
}  // namespace gemm::bench
