// What a row says of how it was measured, and which test it was.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
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

std::optional<std::string> test_of(const Conditions& run, const std::vector<Row>& rows) {
  Results results(run);
  for (std::size_t i = 0; i < rows.size(); ++i) results.add(std::to_string(i), rows[i]);
  return results.test();
}

TEST(Conformance, CountsTheRowsThatDeviate) {
  Results results(run_on_a_gpu());
  EXPECT_EQ(results.conformance(), "");
  results.add("one", settled_row());
  EXPECT_EQ(results.conformance(), "");
  Row other = settled_row();
  other.timing.converged = false;
  other.timing.samples_seconds.resize(900);
  other.timing.samples_sm_hz.resize(900);
  results.add("two", other);
  results.add("skipped", {.which = other.which, .skipped = "too large"});
  EXPECT_EQ(results.conformance(), "off-guideline: 1 of 2 (few-launches 1); in doubt: 1 of 2");
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

// The clock of the second half of the samples.
void drift(Row& row, double hz) {
  for (std::size_t i = 620; i < 1240; ++i) row.timing.samples_sm_hz[i] = hz;
}

void throttle(Row& row, const char* reason, double share) {
  row.timing.gpu.reasons = {{reason, 1.0}};
  row.timing.gpu.throttled_share = share;
}

// A hundred samples, half of them 10 % longer.
void spread(Row& row, std::int64_t batch) {
  row.timing.samples_seconds.assign(100, 1e-3);
  row.timing.samples_sm_hz.assign(100, 1560e6);
  row.timing.converged = false;
  for (std::size_t i = 0; i < 100; i += 2) row.timing.samples_seconds[i] = 1.1e-3;
  row.batch = batch;
}

void on_a_cpu(Conditions& run) {
  run.device.kind = Device::Kind::cpu;
  run.gpu.reset();
}

TEST(Conformance, NamesWhatARowDoesNotMeetAndWhyItIsInDoubt) {
  using Run = Conditions;
  const struct {
    const char* told;
    std::function<void(Run&, Row&)> change;
  } kCases[] = {
      {"", [](Run&, Row&) {}},
      {"low-power-operands", [](Run& run, Row&) { run.options.fill = Fill::integers; }},
      {"other-distribution", [](Run& run, Row&) { run.options.fill = Fill::normal; }},
      {"burst", [](Run& run, Row&) { run.options.timing.state = State::burst; }},
      {"not-at-limit 0 (0.5)", [](Run& run, Row&) { run.options.timing.state = State::limit; }},
      {"",
       [](Run& run, Row& row) {
         run.options.timing.state = State::limit;
         throttle(row, "power cap", 1);
       }},
      {"one-operand-set", [](Run&, Row& row) { row.rotation_sets = 1; }},
      {"cached-operands 3.36e+07 (1.26e+08)",
       [](Run&, Row& row) {
         row.which.problem = {64, 64, 64, Precision::f32};
         row.rotation_sets = 1024;
       }},
      {"reused-operands 4 (1)", [](Run&, Row& row) { row.checks->uses = 4; }},
      {"not-checked", [](Run&, Row& row) { row.checks.reset(); }},
      {"not-settled 3.2", [](Run&, Row& row) { row.timing.warmup.settled = false; }},
      {"not-watched", [](Run&, Row& row) { row.timing.warmup.watched.clear(); }},
      {"power-not-watched", [](Run&, Row& row) { row.timing.gpu.readings = 0; }},
      {"",
       [](Run&, Row& row) {
         throttle(row, "power cap", 1);
         row.timing.warmup.seconds = kWarmupAtCap;
       }},
      {"short-warm-up 2.9 (3)",
       [](Run&, Row& row) {
         throttle(row, "power cap", 1);
         row.timing.warmup.seconds = 2.9;
       }},
      {"", [](Run&, Row& row) { row.timing.warmup.seconds = 0.5; }},  // not throttled
      {"", [](Run&, Row& row) { row.timing.samples_seconds.assign(1240, 20e-6); }},
      {"host-bound 2e-05 (4.5e-05)",
       [](Run&, Row& row) {
         row.timing.samples_seconds.assign(1240, 20e-6);
         row.launch = "stream";
       }},
      {"", [](Run&, Row& row) { row.timing.memory_kept_bytes = 4 << 20; }},  // an allocator's page
      {"memory-kept 1e+08 (4.19e+06)",
       [](Run&, Row& row) { row.timing.memory_kept_bytes = 100e6; }},
      // 1,000 launches or a narrow interval; how wide it is concerns the figure.
      {"",
       [](Run&, Row& row) {
         spread(row, 1);
         row.timing.converged = true;
       }},
      {"few-launches 900 (1e+03); median-uncertain? 0.0952 (0.015)",
       [](Run&, Row& row) { spread(row, 9); }},
      {"median-uncertain? 0.0952 (0.015)", [](Run&, Row& row) { spread(row, 10); }},
      {"too-few-samples?",
       [](Run&, Row& row) {
         spread(row, 1000);
         row.timing.samples_seconds.resize(2);
         row.timing.samples_sm_hz.resize(2);
       }},
      // By as much as the interval may be wide, which the options set.
      {"", [](Run&, Row& row) { drift(row, 1580e6); }},
      {"clock-drift? 0.0192 (0.015)", [](Run&, Row& row) { drift(row, 1590e6); }},
      {"clock-drift? nan (0.015)", [](Run&, Row& row) { drift(row, std::nan("")); }},
      {"clock-drift? 0.00641 (0.005)",
       [](Run& run, Row& row) {
         run.options.timing.target = 0.005;
         drift(row, 1570e6);
       }},
      {"", [](Run&, Row& row) { row.timing.warmup.sm_hz = 1560e6 / 0.99; }},
      {"other-clock? -0.02 (0.015)",
       [](Run&, Row& row) { row.timing.warmup.sm_hz = 1560e6 / 0.98; }},
      {"hardware-slowdown? 1 (0)",
       [](Run&, Row& row) { throttle(row, "thermal slowdown (software)", 0.5); }},
      // At a fixed frequency zeros are right, and throttling is not.
      {"clock-not-held 0.5 (0)",
       [](Run& run, Row& row) {
         run.gpu->application_clocks_set = true;
         run.options.fill = Fill::zeros;
         throttle(row, "power cap", 0.5);
       }},
      {"",
       [](Run& run, Row&) {
         run.environment.recorded = {{"OMP_NUM_THREADS", "4"}};
         run.environment.removed = {{"CUDA_LAUNCH_BLOCKING", "1"}};
         run.gpu_processes = 0;
       }},
      {"injected", [](Run& run, Row&) { run.environment.injected = {"libcuda-injection.so"}; }},
      {"shared-gpu 2 (0)", [](Run& run, Row&) { run.gpu_processes = 2; }},
      {"mps-share 50 (100)",
       [](Run& run, Row&) {
         run.environment.recorded = {{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50"}};
       }},
      // Kernels on a GPU do not wait for the host's CPUs.
      {"", [](Run&, Row& row) { row.host = OthersLoad{.cpus = 16, .busy_share = 0.5}; }},
      {"busy-host? 0.625 (0.0156)",
       [](Run& run, Row& row) {
         on_a_cpu(run);
         row.host = OthersLoad{.cpus = 16, .busy_share = 0.5, .steal_share = 0.125};
       }},
      {"",
       [](Run& run, Row& row) {
         on_a_cpu(run);
         row.host = OthersLoad{.cpus = 16, .busy_share = 0.005};
       }},
      // A CPU has no readings of its clock and power, so it never settles.
      {"",
       [](Run& run, Row& row) {
         on_a_cpu(run);
         row.timing.samples_sm_hz.clear();
         row.timing.warmup = {.seconds = 0.25};
         row.timing.gpu = {};
       }},
  };
  for (const auto& [expected, change] : kCases) {
    Conditions run = run_on_a_gpu();
    Row row = settled_row();
    change(run, row);
    EXPECT_EQ(told(run, row), expected);
    EXPECT_EQ(Results(run).in_doubt(row), std::string(expected).find('?') != std::string::npos);
  }
}

TEST(Test, IsFixedPowerWhereClocksFloatAndFixedFrequencyWhereTheyWereSet) {
  const Row still = settled_row(1500e6, 0);
  Row by_user = settled_row(), capped = still;
  throttle(by_user, "clocks set by user", 0);
  throttle(capped, "power cap", 1);
  const struct {
    const char* test;
    std::vector<Row> rows;
  } kCases[] = {
      {"fixed power", {}},
      {"fixed power", {settled_row(1560e6), settled_row(1980e6)}},
      {"fixed power", {settled_row(1980e6, 0)}},  // at its maximum it stands still, too
      {"fixed frequency", {by_user}},
      // It shows: one value below the maximum in all rows, and nothing that throttles.
      {"fixed frequency", {still, still}},
      {"fixed power", {capped}},
  };
  for (const auto& [expected, rows] : kCases) EXPECT_EQ(test_of(run_on_a_gpu(), rows), expected);
  Conditions run = run_on_a_gpu();
  run.gpu->application_clocks_set = true;
  EXPECT_EQ(test_of(run, {}), "fixed frequency");
  run.gpu.reset();
  EXPECT_EQ(test_of(run, {settled_row()}), std::nullopt) << "without readings of the GPU";
}

}  // namespace
}  // namespace gemm::bench
