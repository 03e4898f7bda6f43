#include "bench/run/peaks_only.hpp"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "bench/base/device_errors.hpp"
#include "bench/base/json.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"
#include "bench/device/gpu.hpp"
#include "bench/peaks/measured_peaks.hpp"
#include "bench/record/record.hpp"
#include "bench/run/command_line.hpp"
#include "bench/run/console.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;

std::string measured_text(const MeasuredPeak& one) {
  const auto [scale, unit] =
      one.computes() ? std::pair(1e-12, " TFLOP/s") : std::pair(1e-9, " GB/s");
  std::string line =
      formatted("%-18s %10.4g%s", one.label().c_str(), one.per_second() * scale, unit);
  const auto add = [&](const char* format, std::optional<double> value, double times) {
    if (value) line += formatted(format, times * *value);
  };
  add(one.computes() ? ", %.5g FLOP/clock/SM" : ", %.5g B/clock/SM", one.per_clock_per_sm, 1);
  add(", %.1f %% of nominal at its clock", one.of_nominal, 100);
  add(", %.0f MHz", one.sm_hz, 1e-6);
  add(", %.0f W", one.power_w, 1);
  add(", throttled in %.0f %% of readings", one.throttled_share, 100);
  if (!one.settled && one.sm_hz) line += ", not in steady state";
  return line;
}

// The device and its peaks as in a record, each with its nominal figure and the best measured one.
json document_of(Conditions run, const std::vector<MeasuredPeak>& chosen) {
  const std::vector<Peak> nominal = peaks_of(run.device, run.options.peaks);
  const std::vector<Peak> peaks = run.peaks;
  const std::vector<MeasuredPeak> all = std::exchange(run.measured, chosen);
  const json whole = Results(std::move(run)).run_to_json();
  json ceilings = whole["ceilings"];
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    const char* const figure = peaks[i].precision ? "flop_per_second" : "bytes_per_second";
    ceilings[i]["nominal"] = {{figure, json_of(nominal[i].per_second)},
                              {"clock_hz", json_of(nominal[i].clock_hz)},
                              {"origin", name_of(nominal[i].origin)},
                              {"source", nominal[i].source}};
    json& measured = ceilings[i]["measured"];
    const MeasuredPeak* best = measured_roof(all, peaks[i]);
    if (best == nullptr) continue;
    const int products = peaks[i].precision ? traits_of(*peaks[i].precision).unit_products : 1;
    measured = {{figure, best->per_second() / products},
                {"clock_hz", json_of(best->computes() ? best->sm_hz : best->memory_hz)},
                {"probe", best->label()}};
  }
  return {{"commit", whole["commit"]},
          {"device", whole["device"]},
          {"ceilings", ceilings},
          {"measured_ceilings", whole["measured_ceilings"]}};
}

// Those of --benchmark_filter; copies to other GPUs only if it names them.
std::vector<Probe> chosen_probes(const Backend& backend, const std::string& filter) {
  std::vector<Probe> probes = probes_of(backend);
  const bool copies = filter.find("Peer_") != std::string::npos;
  const auto matches = name_filter(filter);
  std::erase_if(probes, [&](const Probe& probe) {
    return (probe.on_request && !copies) || !matches(probe.label());
  });
  if (probes.empty() && !filter.empty())
    throw BadInput("--benchmark_filter=" + filter +
                   " matches no probe: --gemm_peaks_only --benchmark_list_tests lists all names");
  return probes;
}

// Others would be without effect.
void check_arguments(const std::vector<std::string>& arguments) {
  check_google_flags(arguments);
  for (const std::string name : {"out", "repetitions", "min_time", "context", "format"})
    if (const std::string value = google_flag(arguments, name);
        !value.empty() && (name != "format" || value == "csv"))
      throw BadInput("--benchmark_" + name + "=" + value +
                     " does not go with --gemm_peaks_only: it prints to the console, or with "
                     "--benchmark_format=json as JSON");
}

}  // namespace

int print_peaks(const Options& options, const std::vector<std::string>& arguments,
                std::vector<std::string> command) {
  check_arguments(arguments);
  std::vector<std::string> for_google = arguments;
  initialize_google(for_google);  // refuses what it does not know
  const bool list_only = google_switch(arguments, "list_tests");
  const bool as_json = google_flag(arguments, "format") == "json";
  std::string why_no_gpu;
  std::unique_ptr<Backend> backend = make_backend(options, why_no_gpu);
  const std::vector<Probe> probes = chosen_probes(*backend, google_flag(arguments, "filter"));
  if (list_only) {
    for (const Probe& probe : probes)
      if (!probe.unsupported) std::cout << probe.label() << "\n";
    return 0;
  }
  const bool measures =
      options.peaks_from == PeaksFrom::measure || options.peaks_from == PeaksFrom::cached;
  if (measures) require_release(options);

  Conditions run{.options = options,
                 .device = backend->device(),
                 .peaks = peaks_of(backend->device(), options.peaks),
                 .timer = std::string(backend->timer()),
                 .command = std::move(command)};
  if (run.device.kind == Device::Kind::cpu && options.device == "auto")
    std::cerr << "No GPU is used: " << why_no_gpu << ". The peaks are the CPU's.\n";
  const auto monitor = monitor_gpu(run.device, options.monitor_seconds, run.why_no_monitor);
  if (monitor) run.gpu = monitor->facts();
  const auto is_chosen = [&](const MeasuredPeak& one) {
    return std::ranges::find(probes, one.label(), &Probe::label) != probes.end();
  };
  if (options.peaks_from != PeaksFrom::nominal)
    run.measured = load_peaks(peaks_file(run.device), run.device);
  if (options.peaks_from == PeaksFrom::measure) std::erase_if(run.measured, is_chosen);
  bool complete = true;
  try {
    if (measures)
      complete = measure_missing(*backend, monitor.get(), run.device, probes, run.measured);
  } catch (const DeviceLost&) {
    (void)backend.release();  // freeing its memory would wait for the GPU
    throw;
  }
  reconcile(run.peaks, run.measured, run.device);
  std::vector<MeasuredPeak> chosen = run.measured;
  std::erase_if(chosen, [&](const MeasuredPeak& one) { return !is_chosen(one); });

  if (as_json) {
    std::cout << document_of(std::move(run), chosen).dump(1) << "\n";
  } else {
    std::cout << device_text(run.device)
              << (run.why_no_monitor.empty() ? "" : "; no readings of clock and power: ")
              << run.why_no_monitor << "\n"
              << peaks_text(run.peaks, terminal_width());
    for (const Probe& probe : probes)
      if (probe.unsupported)
        std::cout << probe.label() << " is omitted: " << *probe.unsupported << "\n";
    for (const MeasuredPeak& one : chosen) std::cout << measured_text(one) << "\n";
  }
  return complete ? 0 : kFailedRow;
}

}  // namespace gemm::bench
