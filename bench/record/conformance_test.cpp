// What a row says of how it was measured, and which test it was.
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

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

TEST(Conformance, TellsARowInALine) {
  Results results(run_on_a_gpu());
  const Row row = with_reason(settled_row(), "power cap", 1);
  results.add("row", row);
  EXPECT_EQ(
      results.conformance(row),
      "fixed power, uniform[-1,1], 3 operand sets (604 MB), steady state after 3.2 s at 1560 MHz "
      "693 W (power cap), 1,240 samples");
  EXPECT_TRUE(results.deviations(row).empty());
}

TEST(Conformance, TellsARunInALine) {
  Results results(run_on_a_gpu());
  EXPECT_EQ(results.conformance(), "");
  results.add("one", with_reason(settled_row(), "power cap", 1));
  Row other = settled_row(1980e6);
  other.timing.warmup.seconds = 0.5;
  other.timing.converged = false;
  results.add("two", other);
  results.add("skipped", {.which = other.which, .skipped = "too large"});
  EXPECT_EQ(
      results.conformance(),
      "fixed power, uniform[-1,1], 3 operand sets, steady state after 0.5 to 3.2 s at 1560 to "
      "1980 MHz 693 W (1 result throttled), 1,240 samples per result, no idle time between "
      "them; off-guideline: 1 of 2");
  Conditions rested = run_on_a_gpu();
  rested.options.timing.cooldown_seconds = 1;
  Results after(rested);
  after.add("one", settled_row());
  EXPECT_TRUE(after.conformance().ends_with(", 1 s idle before each")) << after.conformance();
}

TEST(Conformance, SaysInWhichPointsARowDeviates) {
  const auto deviations = [](const Conditions& run, const Row& row) {
    std::string all;
    for (const Deviation& one : Results(run).deviations(row))
      all += one.code + ": " + one.text + "; ";
    return all;
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  Conditions run = run_on_a_gpu();
  run.options.fill = Fill::integers;
  has(deviations(run, settled_row()),
      "low-power-operands: input data of integers draws less power");
  run = run_on_a_gpu();
  EXPECT_EQ(deviations(run, settled_row()), "");
  run.options.fill = Fill::normal;
  has(deviations(run, settled_row()), "other-distribution");
  run.options.timing.state = State::burst;
  has(deviations(run, settled_row()), "burst");

  run = run_on_a_gpu();
  Row row = settled_row();
  row.rotation_sets = 1;
  has(deviations(run, row), "one operand set");
  row.which.problem = {64, 64, 64, Precision::f32};
  row.rotation_sets = 1024;
  has(deviations(run, row), "do not exceed twice the last-level cache");

  row = settled_row();
  row.checks->uses = 4;
  has(deviations(run, row), "each operand set was used 4 times");
  row.checks.reset();
  has(deviations(run, row), "not-checked");
  row = settled_row();
  row.timing.warmup.sm_hz = 0.99 * row.timing.median_sm_hz().value_or(0);
  has(deviations(run, row), "other-clock: the SM clock of the samples is +1 %");

  row = settled_row();
  row.timing.warmup.settled = false;
  has(deviations(run, row), "not-settled: clock or power still changed after 3.2 s");
  EXPECT_EQ(Results(run).deviations(row)[0].value, 3.2);
  row.timing.warmup.watched.clear();
  has(deviations(run, row), "no readings of clock and power");
  row = settled_row();
  row.timing.gpu.readings = 0;
  has(deviations(run, row), "no readings of power");
  row = settled_row();
  row.timing.converged = false;
  row.batch = 1000;
  row.timing.samples_seconds = {1, 2};
  has(deviations(run, row), "too-few-samples: too few samples");
  row.timing.samples_seconds = {1, 1, 1, 2, 2, 2, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2};
  EXPECT_EQ(Results(run).deviations(row)[0].code, "median-uncertain");
  EXPECT_EQ(Results(run).deviations(row)[0].value, row.timing.median_interval());
  has(deviations(run, with_reason(settled_row(), "thermal slowdown (software)", 0.5)),
      "thermal slowdown");
}

// Each on a row that has no other deviation, next to one that just conforms.
TEST(Conformance, ChecksWarmUpLaunchesClockAndHost) {
  const auto codes = [](const Conditions& run, const Row& row) {
    std::string all;
    for (const Deviation& one : Results(run).deviations(row)) all += one.code + " ";
    return all;
  };
  const Conditions run = run_on_a_gpu();
  Row row = with_reason(settled_row(), "power cap", 1);
  row.timing.warmup.seconds = 3;
  EXPECT_EQ(codes(run, row), "");
  row.timing.warmup.seconds = 2.9;
  EXPECT_EQ(codes(run, row), "short-warm-up ");
  row = settled_row();
  row.timing.warmup.seconds = 0.5;
  EXPECT_EQ(codes(run, row), "") << "not throttled";

  row = settled_row();
  row.timing.samples_seconds.assign(100, 1e-3);
  row.timing.samples_sm_hz.assign(100, 1560e6);
  row.batch = 10;
  EXPECT_EQ(codes(run, row), "");
  row.batch = 9;
  EXPECT_EQ(codes(run, row), "few-launches ");

  row = settled_row();
  for (std::size_t i = 620; i < 1240; ++i) row.timing.samples_sm_hz[i] = 1570e6;
  EXPECT_EQ(codes(run, row), "");
  for (std::size_t i = 620; i < 1240; ++i) row.timing.samples_sm_hz[i] = 1580e6;
  EXPECT_EQ(codes(run, row), "clock-drift ");

  row = settled_row();
  row.timing.samples_seconds.assign(1240, 20e-6);
  row.launch = "graph";
  EXPECT_EQ(codes(run, row), "");
  row.launch = "stream";
  EXPECT_EQ(codes(run, row), "host-bound ");

  row = settled_row();
  row.timing.memory_kept_bytes = 4 << 20;  // a page of an allocator
  EXPECT_EQ(codes(run, row), "");
  row.timing.memory_kept_bytes = 100e6;
  EXPECT_EQ(codes(run, row), "memory-kept ");
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

std::vector<std::string> codes(const Conditions& run, const Row& row) {
  std::vector<std::string> all;
  for (const Deviation& one : Results(run).deviations(row)) all.push_back(one.code);
  return all;
}

TEST(Conformance, SaysWhatElseRanOrWasInjected) {
  using Codes = std::vector<std::string>;
  Conditions run = run_on_a_gpu();
  run.gpu_processes = 0;
  EXPECT_EQ(codes(run, settled_row()), Codes{});
  run.environment.recorded = {{"OMP_NUM_THREADS", "4"}};
  run.environment.removed = {{"CUDA_LAUNCH_BLOCKING", "1"}};
  EXPECT_EQ(codes(run, settled_row()), Codes{});
  run.environment.injected = {"libcuda-injection.so"};
  EXPECT_EQ(codes(run, settled_row()), Codes{"injected"});
  run = run_on_a_gpu();
  run.gpu_processes = 2;
  EXPECT_EQ(codes(run, settled_row()), Codes{"shared-gpu"});
  run = run_on_a_gpu();
  run.environment.recorded = {{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50"}};
  EXPECT_EQ(codes(run, settled_row()), Codes{"mps-share"});
}

// Kernels on a GPU do not wait for the host's CPUs.
TEST(Conformance, ABusyHostDisturbsResultsOfTheCpu) {
  Row row = settled_row();
  row.host = OthersLoad{.cpus = 16, .busy_share = 0.5, .steal_share = 0.125};
  Conditions run = run_on_a_gpu();
  EXPECT_TRUE(codes(run, row).empty());
  run.device.kind = Device::Kind::cpu;
  const auto found = Results(run).deviations(row);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].code, "busy-host");
  EXPECT_DOUBLE_EQ(*found[0].value, 0.625);
  EXPECT_NE(found[0].text.find("10 of 16 CPUs"), std::string::npos) << found[0].text;
  row.host = OthersLoad{.cpus = 16, .busy_share = 0.005};
  EXPECT_TRUE(codes(run, row).empty());
}

}  // namespace
}  // namespace gemm::bench
