// peaks_bench: each ceiling of the device as a Google Benchmark row, kept for gemm_bench, which
// puts them into its records. Exit codes: 0 all measured, 1 one could not be, 2 bad input, 130
// interrupted.
#include <benchmark/benchmark.h>

#include <iostream>

#include "bench/command_line.hpp"
#include "bench/suite.hpp"

namespace gemm::bench {
namespace {

std::string figure_text(const MeasuredCeiling& one) {
  const auto [scale, unit] =
      one.unit == Probe::Unit::flop ? std::pair(1e-12, " TFLOP/s") : std::pair(1e-9, " GB/s");
  char text[256];
  std::snprintf(text, sizeof text, "%-18s %10.4g%s", one.label().c_str(), one.per_second * scale,
                unit);
  std::string line = text;
  const auto add = [&](const char* format, std::optional<double> value, double times) {
    if (!value) return;
    std::snprintf(text, sizeof text, format, times * *value);
    line += text;
  };
  add(one.unit == Probe::Unit::flop ? ", %.5g FLOP/clock/SM" : ", %.5g B/clock/SM",
      one.per_clock_per_sm, 1);
  add(", %.1f %% of nominal at its clock", one.of_nominal, 100);
  add(", %.0f MHz", one.sm_hz, 1e-6);
  add(", %.0f W", one.power_w, 1);
  add(", throttled in %.0f %% of readings", one.throttled_share, 100);
  if (!one.settled && one.sm_hz) line += ", not settled";
  return line;
}

struct Probing {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<CardWatch> watch;
  TimingPlan plan;
  std::vector<MeasuredCeiling> measured;
  bool failed = false;
};

void run_probe(benchmark::State& state, Probing& probing, const Probe& probe) {
  if (probe.unsupported) return state.SkipWithError(probe.unsupported->c_str());
  try {
    if (interrupted()) throw Interrupted();
    const MeasuredCeiling one = measure(*probing.backend, probing.watch.get(), probing.plan, probe);
    for ([[maybe_unused]] auto _ : state) state.SetIterationTime(one.median);
    state.counters[one.unit == Probe::Unit::flop ? "FLOP/s" : "B/s"] = one.per_second;
    const auto count = [&](const char* name, std::optional<double> value) {
      if (value) state.counters[name] = *value;
    };
    count("per_clock_per_SM", one.per_clock_per_sm);
    count("of_nominal", one.of_nominal);
    count("SM_Hz", one.sm_hz);
    count("memory_Hz", one.memory_hz);
    count("W", one.power_w);
    state.SetLabel(figure_text(one));
    probing.measured.push_back(one);
  } catch (const Interrupted& error) {
    state.SkipWithError(error.what());
  } catch (const std::exception& error) {
    probing.failed = true;
    state.SkipWithError(error.what());
  }
}

// One line a ceiling; Google Benchmark's own table has no room for it.
class Lines : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      if (run.report_label.empty())
        GetOutputStream() << run.run_name.function_name << " SKIPPED: " << message_of(run) << "\n";
      else
        GetOutputStream() << run.report_label << "\n";
    }
    GetOutputStream() << std::flush;
  }

 private:
  // Google Benchmark 1.8 renamed it.
  template <typename R>
  static std::string message_of(const R& run) {
    if constexpr (requires { run.skip_message; })
      return run.skip_message;
    else
      return run.error_message;
  }
};

void print_help() {
  std::cout << "Measures what the device really reaches: arithmetic units, memories, PCIe.\n\n"
               "  peaks_bench                                   everything\n"
               "  peaks_bench --benchmark_filter=DRAM           the memory\n"
               "  peaks_bench --benchmark_format=json           as Google Benchmark's JSON\n\n"
               "The figures are kept for each device and driver; gemm_bench puts them into its "
               "records.\nOf the --gemm_* options, these count here: device, warmup, flat, sample, "
               "target, watch,\npatience, allow_debug.\nExit codes: 0 all measured, 1 one could "
               "not be, 2 bad input, 130 interrupted.\n\nGoogle Benchmark's own options keep their "
               "meaning:\n"
            << std::flush;
}

int run(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  if (options.help) {
    print_help();
    benchmark::Initialize(&argc, argv);  // prints its own help and exits
    return 0;
  }
  options.timing = plan_for_ceilings(options.timing);
  std::vector<std::string> arguments(argv, argv + argc);
  const std::string format = google_flag(arguments, "format");
  const bool list_only = google_lists(arguments);
  settle_min_time(arguments, options.timing);
  initialize_google(arguments);
  if (!list_only) require_release(options);

  std::string why_no_gpu, why_not_watched;
  Probing probing{.backend = make_backend(options, why_no_gpu), .plan = options.timing};
  DeviceInfo device = probing.backend->device();
  if (device.kind == Device::Kind::cpu && options.device == "auto" && !list_only)
    std::cerr << "No GPU is used: " << why_no_gpu << ". Probing the CPU.\n";
  probing.watch = watch_card(device, options.watch_seconds, why_not_watched);
  if (probing.watch && probing.watch->facts().driver) device.driver = probing.watch->facts().driver;

  const std::vector<Probe> probes = probes_of(*probing.backend);
  for (const Probe& probe : probes)
    benchmark::RegisterBenchmark(probe.label().c_str(), [&probing,
                                                         &probe](benchmark::State& state) {
      run_probe(state, probing, probe);
    })->UseManualTime();
  watch_for_interrupt();
  Lines lines;
  if (format.empty() || format == "console") {
    std::cout << device.name << (why_not_watched.empty() ? "" : "; not watched: ")
              << why_not_watched << "\n";
    benchmark::RunSpecifiedBenchmarks(&lines);
  } else {
    benchmark::RunSpecifiedBenchmarks();
  }
  const std::filesystem::path file = ceilings_file(device);
  if (!probing.measured.empty() && !save_ceilings(file, device, probing.measured))
    std::cerr << "peaks_bench: cannot keep the figures in '" << file.string()
              << "': check that its folder is writable\n";
  if (interrupted()) return kInterrupted;
  return probing.failed ? kFailedRow : 0;
}

}  // namespace
}  // namespace gemm::bench

int main(int argc, char** argv) {
  try {
    return gemm::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "peaks_bench: " << error.what() << "\n";
    return gemm::bench::kBadInput;
  }
}
