#include "bench/peaks/ceilings.hpp"

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
  const std::vector<Ceiling> roofs = ceilings_of(device);
  if (probe.clock == Probe::Clock::memory)
    return memory_ceiling(roofs) != nullptr ? memory_ceiling(roofs)->at(clocks.memory_hz)
                                            : std::nullopt;
  const auto precision = precision_named(probe.arithmetic);
  if (!precision || !clocks.sm_hz) return std::nullopt;
  const Ceiling* roof = compute_ceiling(roofs, *precision);
  return roof != nullptr && roof->clock_hz ? roof->at(clocks.sm_hz) : std::nullopt;
}

}  // namespace

std::vector<Probe> probes_of(const Backend& backend) {
  const DeviceInfo& device = backend.device();
  return device.kind == Device::Kind::gpu ? cuda_probes(device) : host_probes(device);
}

TimingPlan plan_for_ceilings() {
  TimingPlan plan;
  plan.warmup_seconds = 2.2;
  plan.sampling_seconds = 0.2;
  plan.longest_sampling_seconds = 1;
  plan.budget_seconds = 5;
  return plan;
}

MeasuredCeiling measure(Backend& backend, const CardWatch* watch, const TimingPlan& plan,
                        const Probe& probe) {
  if (probe.complaint)
    if (const auto wrong = probe.complaint(backend)) throw std::runtime_error(*wrong);
  auto launch = std::make_unique<std::vector<Launch>>();
  Timing timing;
  try {
    launch->push_back(probe.prepare(backend));
    backend.run(launch->front());  // loads the code
    timing = time_launches(backend, watch, plan, *launch);
  } catch (const DeviceLost&) {
    (void)launch.release();  // freeing its memory would wait for the GPU
    throw;
  }
  MeasuredCeiling one{.name = probe.name,
                      .arithmetic = probe.arithmetic,
                      .fill = probe.fill,
                      .what = probe.what,
                      .utc = utc_now(),
                      .seconds = timing.quartiles_seconds()};
  one.samples = static_cast<std::int64_t>(timing.samples_seconds.size());
  one.settled = timing.warmup.settled;
  // Whatever else runs on a CPU can only slow it down: the best is the ceiling, as in STREAM.
  const bool cpu = backend.device().kind == Device::Kind::cpu;
  (probe.unit == Probe::Unit::flop ? one.flop_per_second : one.bytes_per_second) =
      probe.work / (cpu ? one.seconds.min : one.seconds.median);
  one.sm_hz = timing.median_sm_hz();
  one.memory_hz = middle(timing.card.memory_hz);
  one.power_w = middle(timing.card.power_w);
  one.temperature_c = middle(timing.card.temperature_c);
  one.throttled_share = timing.card.throttled_share;
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

void measure_others(Backend& backend, const CardWatch* watch,
                    const std::vector<MeasuredCeiling>& kept, const CeilingsListener& listener) {
  for (const Probe& probe : probes_of(backend)) {
    const std::string label = probe.label();
    if (probe.unsupported) continue;
    if (std::ranges::find(kept, label, &MeasuredCeiling::label) != kept.end()) continue;
    listener.begins(label);
    try {
      listener.measured(measure(backend, watch, plan_for_ceilings(), probe));
    } catch (const Interrupted&) {
      throw;
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::exception& error) {  // no memory for it: the others may fit
      listener.failed(label, error.what());
    }
  }
}

void fill_in(std::vector<Ceiling>& roofs, const std::vector<MeasuredCeiling>& measured) {
  for (Ceiling& roof : roofs) {
    if (roof.per_second) continue;
    const MeasuredCeiling* best = roof.precision ? nullptr : memory_roof(measured, roof.name);
    for (const MeasuredCeiling& one : measured)
      if (roof.precision && one.computes() && one.arithmetic == arithmetic_of(*roof.precision) &&
          one.fill != "zeros" && (best == nullptr || one.per_second() > best->per_second()))
        best = &one;
    if (best == nullptr) continue;
    roof.per_second =
        best->per_second() / (roof.precision ? traits_of(*roof.precision).unit_products : 1);
    roof.origin = Ceiling::Origin::measured;
    roof.source = best->label() + ": " + best->what;
    roof.clock_hz = roof.precision ? best->sm_hz : best->memory_hz;
  }
}

const MeasuredCeiling* memory_roof(const std::vector<MeasuredCeiling>& measured,
                                   std::string_view memory) {
  const MeasuredCeiling* best = nullptr;
  for (const MeasuredCeiling& one : measured)
    if (!one.computes() && one.name.starts_with(std::string(memory) + "_") &&
        one.of_nominal.value_or(1) >= kLeastOfNominal &&
        (best == nullptr || one.per_second() > best->per_second()))
      best = &one;
  return best;
}

}  // namespace gemm::bench
