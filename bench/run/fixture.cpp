#include "bench/run/fixture.hpp"

#include <cstddef>
#include <iterator>
#include <limits>

#include "bench/base/clock.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/terminal.hpp"
#include "bench/run/console.hpp"

namespace gemm::bench {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

// An error is kept in our row and not by SkipWithError: Google Benchmark aborts when one
// repetition has an error and another has not. So the loop runs to its end.
template <typename Step>
void GemmFixture::guarded(Step&& step) {
  try {
    step();
    return;
  } catch (const Interrupted& error) {
    row_.skipped = error.what();
  } catch (const std::exception& error) {
    settled_ = std::current_exception();
    say_why_untimed(row_, error);
    if (dynamic_cast<const DeviceLost*>(&error) != nullptr) suite_.lose_device(error.what(), case_);
  }
  if (!row_.failed.empty()) suite_.discard(case_);
}

void GemmFixture::SetUp(benchmark::State&) {
  progress_.begin(case_, now_seconds());
  if (shows_status_)
    show_status([progress = progress_, name = case_.name(), monitor = suite_.monitor()](
                    std::size_t width) { return status_line(progress, name, monitor, width); });
  row_ = Row{.which = case_};
  guarded([&] {
    if (settled_) std::rethrow_exception(settled_);
    suite_.measure(case_, iterations_, row_);
  });
  if (!iterations_) iterations_ = row_.timed() ? std::ssize(row_.timing.samples_seconds) : 1;
}

void GemmFixture::BenchmarkCase(benchmark::State& state) {
  const double all = row_.timed() ? row_.seconds() * static_cast<double>(*iterations_) : 1;
  while (state.KeepRunningBatch(*iterations_)) state.SetIterationTime(all);
}

void GemmFixture::TearDown(benchmark::State& state) {
  Results& results = suite_.results();
  results.add(case_.name(), row_);
  progress_.end(now_seconds());
  if (!row_.timed()) return;
  state.counters["GFLOP/s"] = row_.rated() ? row_.flop_per_second() * 1e-9 : kUnknown;
  state.counters["%roof"] = 100 * results.of_roof(row_).value_or(kUnknown);
  state.counters["%roof_at_clock"] = 100 * results.of_roof_at_clock(row_).value_or(kUnknown);
  state.counters["%library"] = 100 * results.of_library(row_).value_or(kUnknown);
  if (!counts_copies_) return;
  const Problem& p = case_.problem;
  const PartTimes parts = row_.parts.value_or(PartTimes{kUnknown, kUnknown, kUnknown});
  state.counters["to_device_GB/s"] = 1e-9 * to_device_bytes(p) / parts.to_device_seconds;
  state.counters["from_device_GB/s"] = 1e-9 * from_device_bytes(p) / parts.from_device_seconds;
  state.counters["%hidden"] = 100 * row_.hidden_share().value_or(kUnknown);
}

}  // namespace gemm::bench
