#include "bench/peaks/measured_peaks.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/base/clock.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"

namespace gemm::bench {
namespace {

constexpr double kMostOfNominal = 1.02, kLeastOfNominal = 0.8;

std::optional<double> middle(const std::optional<Range>& range) {
  return range ? std::optional(range->median) : std::nullopt;
}

// The queried figure of the same thing, at the clock seen; where there is one.
std::optional<double> nominal(const DeviceInfo& device, const Probe& probe, const Clocks& clocks) {
  const std::vector<Peak> roofs = peaks_of(device);
  if (probe.clock == Probe::Clock::memory)
    return memory_peak(roofs) != nullptr ? memory_peak(roofs)->at(clocks.memory_hz) : std::nullopt;
  const auto precision = precision_named(probe.arithmetic);
  if (!precision || !clocks.sm_hz) return std::nullopt;
  const Peak* roof = compute_peak(roofs, *precision);
  return roof != nullptr && roof->clock_hz ? roof->at(clocks.sm_hz) : std::nullopt;
}

}  // namespace

std::vector<Probe> probes_of(const Backend& backend) {
  const DeviceInfo& device = backend.device();
  return device.kind == Device::Kind::gpu ? cuda_probes(device) : host_probes(device);
}

TimingPlan plan_for_peaks() {
  TimingPlan plan;
  plan.warmup_seconds = 2.2;
  plan.sampling_seconds = 0.2;
  plan.longest_sampling_seconds = 1;
  plan.budget_seconds = 5;
  return plan;
}

MeasuredPeak measure(Backend& backend, const GpuMonitor* monitor, const TimingPlan& plan,
                     const Probe& probe) {
  if (probe.complaint)
    if (const auto wrong = probe.complaint(backend)) throw std::runtime_error(*wrong);
  auto launch = std::make_unique<std::vector<Launch>>();
  Timing timing;
  try {
    launch->push_back(probe.prepare(backend));
    backend.run(launch->front());  // loads the code
    timing = time_launches(backend, monitor, plan, *launch);
  } catch (const DeviceLost&) {
    (void)launch.release();  // freeing its memory would wait for the GPU
    throw;
  }
  MeasuredPeak one{.name = probe.name,
                   .arithmetic = probe.arithmetic,
                   .fill = probe.fill,
                   .what = probe.what,
                   .utc = utc_now(),
                   .seconds = timing.quartiles_seconds()};
  one.samples = static_cast<std::int64_t>(timing.samples_seconds.size());
  one.settled = timing.warmup.settled;
  // Whatever else runs on a CPU can only slow it down: the best is the peak, as in STREAM.
  const bool cpu = backend.device().kind == Device::Kind::cpu;
  (probe.unit == Probe::Unit::flop ? one.flop_per_second : one.bytes_per_second) =
      probe.work / (cpu ? one.seconds.min : one.seconds.median);
  one.sm_hz = timing.median_sm_hz();
  one.memory_hz = middle(timing.gpu.memory_hz);
  one.power_w = middle(timing.gpu.power_w);
  one.temperature_c = middle(timing.gpu.temperature_c);
  one.throttled_share = timing.gpu.throttled_share;
  const DeviceInfo& device = backend.device();
  if (probe.clock == Probe::Clock::sm && one.sm_hz && device.sm_count > 0)
    one.per_clock_per_sm = one.per_second() / *one.sm_hz / device.sm_count;
  if (const auto known = nominal(device, probe, {one.sm_hz, one.memory_hz}))
    one.of_nominal = one.per_second() / *known;
  if (one.of_nominal && !(*one.of_nominal <= kMostOfNominal))
    throw std::runtime_error("measured " + std::to_string(*one.of_nominal) +
                             " times what the device can do");
  return one;
}

void measure_others(Backend& backend, const GpuMonitor* monitor,
                    const std::vector<MeasuredPeak>& kept, const PeaksListener& listener) {
  for (const Probe& probe : probes_of(backend)) {
    const std::string label = probe.label();
    if (probe.unsupported || probe.on_request) continue;
    if (std::ranges::find(kept, label, &MeasuredPeak::label) != kept.end()) continue;
    listener.begins(label);
    try {
      listener.measured(measure(backend, monitor, plan_for_peaks(), probe));
    } catch (const Interrupted&) {
      throw;
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::exception& error) {  // no memory for it: the others may fit
      listener.failed(label, error.what());
    }
  }
}

void fill_in(std::vector<Peak>& roofs, const std::vector<MeasuredPeak>& measured) {
  for (Peak& roof : roofs) {
    if (roof.per_second) continue;
    const MeasuredPeak* best = roof.precision ? nullptr : memory_roof(measured, roof.name);
    for (const MeasuredPeak& one : measured)
      if (roof.precision && one.computes() && one.arithmetic == arithmetic_of(*roof.precision) &&
          one.fill != "zeros" && (best == nullptr || one.per_second() > best->per_second()))
        best = &one;
    if (best == nullptr) continue;
    roof.per_second =
        best->per_second() / (roof.precision ? traits_of(*roof.precision).unit_products : 1);
    roof.origin = Peak::Origin::measured;
    roof.source = best->label() + ": " + best->what;
    roof.clock_hz = roof.precision ? best->sm_hz : best->memory_hz;
  }
}

const MeasuredPeak* memory_roof(const std::vector<MeasuredPeak>& measured,
                                std::string_view memory) {
  const MeasuredPeak* best = nullptr;
  for (const MeasuredPeak& one : measured)
    if (!one.computes() && one.name.starts_with(std::string(memory) + "_") &&
        one.of_nominal.value_or(1) >= kLeastOfNominal &&
        (best == nullptr || one.per_second() > best->per_second()))
      best = &one;
  return best;
}

}  // namespace gemm::bench
