// peaks_bench: measures each peak of the device as a Google Benchmark row and stores it for
// gemm_bench, which puts them into its records. Exit codes: 0 all measured, 1 one could not be, 2
// bad input, 130 interrupted.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/text.hpp"
#include "bench/peaks/measured_peaks.hpp"
#include "bench/run/command_line.hpp"
#include "bench/run/suite.hpp"

namespace gemm::bench {
namespace {

std::string figure_text(const MeasuredPeak& one) {
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

constexpr std::string_view kOptions[] = {"device", "monitor", "patience", "allow_debug"};

struct Probing {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<GpuMonitor> monitor;
  TimingPlan plan;
  std::filesystem::path file;  // empty: not kept
  DeviceInfo device;
  std::string lost;
  bool failed = false, not_kept = false;
};

// An error is kept in the label and not by SkipWithError: Google Benchmark aborts when one
// repetition has an error and another has not.
void run_probe(benchmark::State& state, Probing& probing, const Probe& probe) {
  double seconds = 1;
  try {
    if (interrupted()) throw Interrupted();
    if (!probing.lost.empty()) throw std::runtime_error(probing.lost);
    const MeasuredPeak one = measure(*probing.backend, probing.monitor.get(), probing.plan, probe);
    seconds = one.seconds.median;
    state.counters[one.computes() ? "FLOP/s" : "B/s"] = one.per_second();
    const auto count = [&](const char* name, std::optional<double> value) {
      if (value) state.counters[name] = *value;
    };
    count("per_clock_per_SM", one.per_clock_per_sm);
    count("of_nominal", one.of_nominal);
    count("SM_Hz", one.sm_hz);
    count("memory_Hz", one.memory_hz);
    count("W", one.power_w);
    state.SetLabel(figure_text(one));
    if (!probing.file.empty() && !save_peaks(probing.file, probing.device, {one}))
      probing.not_kept = true;
  } catch (const Interrupted& error) {
    state.SetLabel(probe.label() + " SKIPPED: " + error.what());
  } catch (const std::exception& error) {
    probing.failed = true;
    if (dynamic_cast<const DeviceLost*>(&error) != nullptr) probing.lost = error.what();
    state.SetLabel(probe.label() + " FAILED: " + error.what());
  }
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(seconds);
}

// One line a peak; Google Benchmark's own table has no room for it.
class Lines : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration) GetOutputStream() << run.report_label << "\n";
    GetOutputStream() << std::flush;
  }
};

void print_help() {
  std::cout
      << "Measures peaks with microbenchmarks: arithmetic units, memories, PCIe.\n\n"
         "  peaks_bench                                   all of them\n"
         "  peaks_bench --benchmark_filter=DRAM           the memory\n"
         "  peaks_bench --benchmark_filter=Peer_          copies to the other GPUs of the host\n"
         "  peaks_bench --benchmark_format=json           as Google Benchmark's JSON\n\n"
         "Results are stored for each device and driver; gemm_bench puts them into its "
         "records.\nExit codes: 0 all measured, 1 one could not be, 2 bad input, 130 "
         "interrupted.\n\n"
      << options_help(kOptions) << "\nGoogle Benchmark's own options keep their meaning:\n"
      << std::flush;
}

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv, kOptions);
  if (options.help) {
    print_help();
    require_output();
    benchmark::Initialize(&argc, argv);  // prints its own help and exits
    return 0;
  }
  std::vector<std::string> arguments(argv, argv + argc);
  check_google_flags(arguments);
  const std::string format = google_flag(arguments, "format");
  const bool list_only = google_switch(arguments, "list_tests");
  const bool other_plan = !google_flag(arguments, "min_time").empty();
  Probing probing{.plan = plan_for_peaks()};
  settle_min_time(arguments, probing.plan);
  // Google Benchmark opens it, and would end with 1.
  if (const std::string out = google_flag(arguments, "out"); !out.empty())
    if (!std::ofstream(out, std::ios::app))
      throw BadInput("--benchmark_out=" + out +
                     " cannot be written: give a file, in a folder that exists and is writable");
  initialize_google(arguments);
  if (!list_only) require_release(options);

  std::string why_no_gpu, why_no_monitor;
  probing.backend = make_backend(options, why_no_gpu);
  DeviceInfo& device = probing.device = probing.backend->device();
  if (device.kind == Device::Kind::cpu && options.device == "auto" && !list_only)
    std::cerr << "No GPU is used: " << why_no_gpu << ". The CPU is measured.\n";
  probing.monitor = monitor_gpu(device, list_only ? 0 : options.monitor_seconds, why_no_monitor);
  if (!other_plan) probing.file = peaks_file(device);

  std::vector<Probe> probes = probes_of(*probing.backend);
  if (format.empty() || format == "console")
    for (const Probe& probe : probes)
      if (probe.unsupported && !list_only)
        std::cout << probe.label() << " is omitted: " << *probe.unsupported << "\n";
  const std::string filter = benchmark::GetBenchmarkFilter();
  const bool copies = filter.find("Peer_") != std::string::npos;
  std::erase_if(probes, [copies](const Probe& probe) {
    return probe.unsupported.has_value() || (probe.on_request && !copies);
  });
  if (std::ranges::none_of(probes, name_filter(filter), &Probe::label))
    throw BadInput("--benchmark_filter=" + filter +
                   " matches nothing: --benchmark_list_tests lists all names");
  for (const Probe& probe : probes)
    benchmark::RegisterBenchmark(probe.label().c_str(), [&probing,
                                                         &probe](benchmark::State& state) {
      run_probe(state, probing, probe);
    })->UseManualTime();
  watch_for_interrupt();
  Lines lines;
  if (format.empty() || format == "console") {
    if (!list_only)
      std::cout << device.name
                << (why_no_monitor.empty() ? "" : "; no readings of clock and power: ")
                << why_no_monitor << "\n";
    benchmark::RunSpecifiedBenchmarks(&lines);
  } else {
    benchmark::RunSpecifiedBenchmarks();
  }
  if (probing.not_kept)
    std::cerr << "peaks_bench: cannot store the results in '" << probing.file.string()
              << "': check that its folder is writable\n";
  if (other_plan && !list_only)
    std::cerr
        << "peaks_bench: the results are not stored, because --benchmark_min_time was given\n";
  const int code = interrupted() ? kInterrupted : probing.failed ? kFailedRow : 0;
  if (!probing.lost.empty()) {
    std::cout << std::flush;
    std::_Exit(code);  // what is left on the GPU could not be freed
  }
  return code;
}

}  // namespace
}  // namespace gemm::bench

int main(int argc, char** argv) {
  gemm::bench::guarded_main("peaks_bench", [&] { return gemm::bench::run(argc, argv); });
}
