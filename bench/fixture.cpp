#include "bench/fixture.hpp"

#include <unistd.h>

#include <iostream>
#include <limits>

namespace gemm::bench {
namespace {

// What went wrong is told in our row and not by SkipWithError: Google Benchmark aborts when one
// repetition has an error and another has not, since their numbers of iterations differ. So the
// loop runs to its end, and a time this long ends the search for an iteration count.
constexpr double kEndsTheSearchSeconds = 1e9;

}  // namespace

template <typename Step>
void GemmFixture::guarded(Step&& step) {
  try {
    step();
    return;
  } catch (const Interrupted& error) {
    row_.skipped = error.what();
  } catch (const Skipped& error) {
    row_.skipped = settled_skip_ = error.what();
  } catch (const DeviceLost& error) {
    suite_.lose_device(error.what(), case_);
    row_.failed = settled_failure_ = error.what();
  } catch (const WrongResult& error) {
    row_.verdict = error.verdict;
    row_.failed = settled_failure_ = error.what();
  } catch (const std::exception& error) {
    row_.failed = settled_failure_ = error.what();
  }
  measurement_ = nullptr;
  if (!row_.failed.empty()) suite_.discard(case_);
}

void GemmFixture::SetUp(benchmark::State&) {
  // So that something is to be seen while operands and reference are made.
  if (isatty(STDERR_FILENO) != 0) std::cerr << "\r\033[K" << case_.name() << " ..." << std::flush;
  row_ = Row{.which = case_};
  measurement_ = nullptr;
  guarded([&] {
    if (!settled_skip_.empty()) throw Skipped(settled_skip_);
    if (!settled_failure_.empty()) throw std::runtime_error(settled_failure_);
    suite_.measure_baseline(case_);
    measurement_ = &suite_.measurement(case_, plan_);
    plan_ = measurement_->plan();
    measurement_->begin();
    row_.batch = plan_->size;
    row_.rotation_sets = measurement_->rotation_sets();
    row_.launch = measurement_->launch();
  });
}

void GemmFixture::BenchmarkCase(benchmark::State& state) {
  const std::int64_t batch = plan_ ? plan_->size : 1;
  while (state.KeepRunningBatch(batch)) {
    double seconds = kEndsTheSearchSeconds;
    if (measurement_ != nullptr)
      guarded([&] {
        row_.samples_seconds.push_back(measurement_->sample());
        seconds = row_.samples_seconds.back() * static_cast<double>(batch);
      });
    state.SetIterationTime(seconds);
  }
}

void GemmFixture::TearDown(benchmark::State& state) {
  if (measurement_ != nullptr) guarded([&] { row_.verdict = measurement_->verify(); });
  Results& results = suite_.results();
  results.add(case_.name(), row_);
  if (!row_.timed()) return;
  state.counters["GFLOP/s"] = row_.flop_per_second() * 1e-9;
  // Google Benchmark's CSV wants the same counters in every row.
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  state.counters["%roof"] = 100 * results.of_roof(row_).value_or(unknown);
  state.counters["%library"] = 100 * results.of_library(row_).value_or(unknown);
}

}  // namespace gemm::bench
