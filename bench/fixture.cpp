#include "bench/fixture.hpp"

namespace gemm::bench {
namespace {

template <typename State>
void skip(State& state, const std::string& why) {
  if constexpr (kSinceOneEight<State>)
    state.SkipWithMessage(why);
  else
    state.SkipWithError(why.c_str());
}

}  // namespace

template <typename Step>
void GemmFixture::guarded(benchmark::State& state, Step&& step) {
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
  if (row_.failed.empty()) {
    skip(state, row_.skipped);
  } else {
    suite_.discard(case_);
    state.SkipWithError(row_.failed.c_str());
  }
}

void GemmFixture::SetUp(benchmark::State& state) {
  row_ = Row{.which = case_};
  measurement_ = nullptr;
  guarded(state, [&] {
    if (!settled_skip_.empty()) throw Skipped(settled_skip_);
    if (!settled_failure_.empty()) throw std::runtime_error(settled_failure_);
    suite_.measure_baseline(case_);
    measurement_ = &suite_.measurement(case_, plan_);
    plan_ = measurement_->plan();
    row_.batch = plan_->size;
    row_.rotation_sets = measurement_->rotation_sets();
    row_.launch = measurement_->launch();
  });
}

void GemmFixture::BenchmarkCase(benchmark::State& state) {
  while (measurement_ != nullptr && state.KeepRunningBatch(row_.batch))
    guarded(state, [&] {
      const double seconds = measurement_->sample();
      row_.samples_seconds.push_back(seconds);
      state.SetIterationTime(seconds * static_cast<double>(row_.batch));
    });
}

void GemmFixture::TearDown(benchmark::State& state) {
  if (measurement_ != nullptr) guarded(state, [&] { row_.verdict = measurement_->verify(); });
  Results& results = suite_.results();
  results.add(case_.name(), row_);
  if (!row_.timed()) return;
  state.counters["GFLOP/s"] = row_.flop_per_second() * 1e-9;
  if (const auto share = results.of_roof(row_)) state.counters["%roof"] = 100 * *share;
  if (const auto share = results.of_library(row_)) state.counters["%library"] = 100 * *share;
}

}  // namespace gemm::bench
