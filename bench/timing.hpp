// The timing plan of a row: warm up until the card is settled, then sample until the median is
// known as well as was asked, or until the budget is spent.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/backend.hpp"
#include "bench/card.hpp"

namespace gemm::bench {

struct TimingPlan {
  enum class State { settled, burst };
  State state = State::settled;
  double warmup_seconds = 4;      // longest warm-up
  double flat = 0.01;             // the card is settled when a window's halves agree this well
  double sample_seconds = 0.005;  // shortest batch that makes a sample
  double target = 0.005;          // quartile interval of the median, over the median
  double sampling_seconds = 0.3;  // shortest time of samples
  double budget_seconds = 10;     // longest time of a row
  double cooldown_seconds = 0;    // the card idles before a row, or before each burst
  std::int64_t burst_launches = 10;
  std::optional<std::int64_t> samples;  // exactly so many
};

// How launches are gathered into samples.
struct BatchPlan {
  std::int64_t size;
  bool graph;
};

struct Warmup {
  double seconds = 0;
  bool settled = false;
  std::string watched;  // "SM clock and power"; empty if nothing could be watched
};

// What was timed, and the state of the card in exactly that time.
struct Timing {
  Warmup warmup;
  std::vector<double> samples_seconds;  // of one launch, the mean of a batch
  std::vector<double> samples_sm_hz;    // by the timers on the card; empty or as long
  std::vector<bool> samples_throttled;  // by the reading nearest in time; empty or as long
  CardState card;
  double median_interval = 0;  // quartile interval of the median, over the median
  bool converged = false;
};

// Half of the medians of repeated runs would fall into this interval, over the median: the width
// between order statistics n/2 -+ 0.34 sqrt(n), which asks nothing of the distribution. Infinite
// below 5 samples.
double median_interval(std::vector<double> samples);

// Warms up and samples launches that take turns, as peaks_bench does. Throws what the backend does.
Timing time_launches(Backend& backend, const CardWatch* watch, const TimingPlan& plan,
                     std::span<const Launch> launches);

}  // namespace gemm::bench
