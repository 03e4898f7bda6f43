#include "bench/run/gemm_case.hpp"

#include <cstddef>
#include <iostream>
#include <limits>
#include <optional>

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
// repetition has an error and another has not.
void GemmCase::measure(Row& row) {
  try {
    if (failure_) std::rethrow_exception(failure_);
    session_.measure(case_, row);
  } catch (const Interrupted& error) {
    row.skipped = error.what();
  } catch (const std::exception& error) {
    failure_ = std::current_exception();
    say_why_untimed(row = Row{.which = case_}, error);
    if (dynamic_cast<const DeviceLost*>(&error) != nullptr)
      session_.lose_device(error.what(), case_);
    if (output_.failures) std::cerr << case_.name() << ": " << row.why_untimed() << "\n";
  }
}

void GemmCase::operator()(benchmark::State& state) {
  progress_.begin(case_, now_seconds());
  if (output_.status)
    show_status([this](std::size_t width) {
      return status_line(progress_, case_, session_.monitor(), width);
    });
  Row row{.which = case_};
  measure(row);
  for (auto _ : state) state.SetIterationTime(row.timed() ? row.seconds() : kUnknown);
  count(state, row);
  session_.results().add(case_.name(), std::move(row));
  progress_.end(now_seconds());
}

void GemmCase::count(benchmark::State& state, const Row& row) const {
  const Results& results = session_.results();
  const auto percent = [](const std::optional<double>& share) {
    return 100 * share.value_or(kUnknown);
  };
  state.counters["GFLOP/s"] = row.rated() ? row.flop_per_second() * 1e-9 : kUnknown;
  state.counters["%roof"] = percent(results.of_roof(row));
  state.counters["%roof_at_clock"] = percent(results.of_roof_at_clock(row));
  state.counters["%library"] = percent(results.of_library(row));
}

}  // namespace gemm::bench
