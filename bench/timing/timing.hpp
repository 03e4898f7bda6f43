// The timing plan of a row: warm up until the GPU is in steady state, then sample until the
// interval of the median is as narrow as the target, or until the budget is spent.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/device/batch.hpp"
#include "bench/device/gpu.hpp"
#include "bench/timing/blocks.hpp"
#include "bench/timing/energy.hpp"

namespace gemm::bench {

// limit: settled, in blocks of seconds each.
enum class State { settled, burst, limit };

// The shortest warm-up of a GPU at its power cap: NVIDIA's guideline says that its clocks settle
// after about 3 s.
inline constexpr double kWarmupAtCap = 3;

struct TimingPlan {
  State state = State::settled;
  double warmup_seconds = 4;       // longest warm-up
  double flat = 0.01;              // steady state: the halves of a window agree this well
  double sample_seconds = 0.002;   // shortest time of the launches of a sample
  double target = 0.015;           // width of the interval of the median, over the median
  double sampling_seconds = 0.25;  // shortest time of sampling
  double longest_sampling_seconds = 3;
  double budget_seconds = 10;   // longest time of a row
  double cooldown_seconds = 0;  // idle before a row, or before each burst
  std::int64_t burst_launches = 10;
  std::int64_t rounds = 2;     // at the power limit, of two blocks of each kernel
  double block_seconds = 2.5;  // shortest time of a block
  // Launches shorter than this are submitted as a CUDA graph: the host needs a few microseconds for
  // each.
  double graph_below_seconds = 50e-6;
  std::optional<std::int64_t> samples;  // so many, unless the budget ends them

  // Of so many kernels at the power limit: as long a warm-up as there may be, before each change of
  // kernel, and the blocks.
  double seconds_of_blocks(std::int64_t kernels) const {
    const std::int64_t leads = kernels == 1 ? 1 : 2 * rounds + 1;
    return static_cast<double>(leads) * warmup_seconds +
           static_cast<double>(2 * rounds * kernels) * block_seconds;
  }
};

// How launches are gathered into samples.
struct BatchPlan {
  std::int64_t size;
  bool graph;
};
BatchPlan plan_batch(const TimingPlan& plan, double seconds_per_launch, std::int64_t sets,
                     Device::Kind where);

// Of a few launches, one after another.
double seconds_of_launch(Backend& backend, std::span<const Launch> launches);

// The same after these have shown how long they take.
BatchPlan try_out(Backend& backend, const TimingPlan& plan, std::span<const Launch> launches);

struct Warmup {
  double seconds = 0;
  bool settled = false;
  std::string watched;          // "SM clock and power"; empty without readings
  bool throttled = false;       // when it ended
  Energy energy;                // of its last, settled part
  std::optional<double> sm_hz;  // mean of that part, by the timers on the GPU
  double kernel_seconds = 0;
};

struct Quartiles {
  double median, q1, q3, min;
};

// What was timed, and the state of the GPU in exactly that time.
struct Timing {
  Warmup warmup;
  std::vector<double> samples_seconds;  // of one launch, the mean of a batch
  std::vector<double> samples_sm_hz;    // by the timers on the GPU; empty or as long
  // By the reading nearest in time, where the clock fell in the sample; empty or as long.
  std::vector<bool> samples_throttled;
  GpuState gpu;
  double kernel_seconds = 0;     // how long the launches ran, all together
  bool converged = false;        // the target was reached
  std::vector<Block> blocks;     // at the power limit: the samples are theirs
  double memory_kept_bytes = 0;  // of the GPU, by which its use grew meanwhile

  double quantile_seconds(double share) const;  // linear between the two nearest samples
  Quartiles quartiles_seconds() const;
  std::optional<Range> sm_hz_by_timer() const { return range_of(samples_sm_hz); }
  // The highest of both sources.
  std::optional<double> highest_sm_hz() const;
  // By the timers on the GPU if they have it, else by NVML.
  std::optional<double> median_sm_hz() const;
  double median_interval() const;
};

// How many independent samples are worth as much as these: their number over the sum of their
// autocorrelations (Sokal 1997), up to the first that is not positive.
double effective_count(const std::vector<double>& samples);

// Of every interval here.
constexpr double kConfidence = 0.95;

// The median and its 95 % confidence interval, which is between the order statistics
// n/2 -+ 1.96/2 n/sqrt(effective count - 2), so that it assumes no distribution; less 2, because
// the effective count is itself an estimate. Below an effective count of 3 it is the whole range.
Range median_range(const std::vector<double>& samples);

// Width of that interval over the median. Infinite below 6 samples, the fewest whose whole range
// has that confidence, or below an effective count of 3.
double median_interval(const std::vector<double>& samples);

// Runs batches, interleaved if there are several, until steady state: the halves of a window agree
// in SM clock and in power. The window is 0.6 seconds, or two seconds at the power
// cap, where clock and power swing with a period of a second for some seconds, and where the
// warm-up lasts at least kWarmupAtCap if the plan permits it. Without anything to
// monitor (a CPU) it warms up for a quarter of a second. Half of the time until the row's deadline
// is left to the samples in any case.
Warmup warm_up(const TimingPlan& plan, const GpuMonitor* monitor,
               std::span<const std::function<Elapsed()>> batches, double deadline);

// When samples are enough: as many as were asked for, or once the interval of their median is
// narrow after the shortest time of sampling, or when the time is over, but for the fewest that say
// something. Moments are in seconds of a steady clock.
class StopRule {
 public:
  // `deadline` is when the row's budget is spent. A throttled GPU is sampled for whole periods of
  // its swings.
  StopRule(const TimingPlan& plan, double start, double deadline, bool throttled);

  // `interval()`, of the median over the median, takes time: it is not asked for at each sample.
  bool enough(std::int64_t taken, double now, const std::function<double()>& interval);
  bool late(double now) const { return now >= deadline_; }

 private:
  TimingPlan plan_;
  double start_, deadline_, longest_, shortest_;
  double looked_ = 0;  // at the interval, last
};

// Collects samples and the state of the GPU in them.
class Sampling {
 public:
  // As StopRule.
  Sampling(const TimingPlan& plan, const GpuMonitor* monitor, double deadline,
           bool throttled = false);

  bool enough();
  // Whether the row's time is spent.
  bool late() const;
  std::int64_t taken() const { return std::ssize(spans_); }
  // Keeps a sample: that of one launch is the mean of `size`. It was taken since `from`.
  void add(const Elapsed& time, std::int64_t size, double from);
  Timing finish() const;

 private:
  struct Span {
    double from, to;
  };
  double target_;
  const GpuMonitor* monitor_;
  StopRule stop_;
  Timing timing_;
  std::vector<Span> spans_;  // when each sample was taken
};

// Warms up and samples launches in rotation, in steady state and without a cool-down. Throws what
// the backend does, and Interrupted.
Timing time_launches(Backend& backend, const GpuMonitor* monitor, const TimingPlan& plan,
                     std::span<const Launch> launches);

}  // namespace gemm::bench
