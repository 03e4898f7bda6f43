// Measured ceilings: what the device really reaches.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/peaks/peaks.hpp"
#include "bench/peaks/probe.hpp"
#include "bench/timing/timing.hpp"

namespace gemm::bench {

struct MeasuredCeiling {
  std::string name, arithmetic, fill, what;  // as in Probe
  std::string utc;                           // when: "20261121T020000Z"
  Probe::Unit unit = Probe::Unit::flop;
  double per_second = 0;
  // The figure over SM clock and number of SMs: FLOP or bytes per clock of one SM.
  std::optional<double> per_clock_per_sm;
  std::optional<double> of_nominal;            // over the queried figure at the clock seen
  double median = 0, q1 = 0, q3 = 0, min = 0;  // seconds of a launch
  std::int64_t samples = 0;
  bool settled = false;
  std::optional<double> sm_hz, memory_hz, power_w, temperature_c, throttled_share;

  std::string label() const { return fill.empty() ? name : name + "/" + fill; }
};

// What can be probed on the device of this backend, and what cannot, with why.
std::vector<Probe> probes_of(const Backend& backend);

// Short rows, as there are some thirty of them, and the same whatever the options: they are kept.
TimingPlan plan_for_ceilings();

// First makes sure that the probe does its work. Throws what the backend does, Interrupted, and
// std::runtime_error for a probe that is wrong or a figure above the nominal one.
MeasuredCeiling measure(Backend& backend, const CardWatch* watch, const TimingPlan& plan,
                        const Probe& probe);

// Everything that can be probed and is not among those `kept`: each is announced by its label, and
// handed on once it is measured, or with why it could not be.
struct CeilingsListener {
  std::function<void(const std::string& label)> begins;
  std::function<void(const MeasuredCeiling&)> measured;
  std::function<void(const std::string& label, const std::string& why)> failed;
};
void measure_others(Backend& backend, const CardWatch* watch,
                    const std::vector<MeasuredCeiling>& kept, const CeilingsListener& listener);

// Roofs that nobody knows are the measured ones: those of a CPU, or of a card that is not in the
// table.
void fill_in(std::vector<Ceiling>& roofs, const std::vector<MeasuredCeiling>& measured);

// The fastest way over the memory's pins; nothing if it was too far from the queried figure to be
// a limit for others: something else was running on the card.
std::optional<double> dram_bytes_per_second(const std::vector<MeasuredCeiling>& measured);

}  // namespace gemm::bench
