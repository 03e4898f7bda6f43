#include "bench/run/reporters.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/base/interrupt.hpp"
#include "bench/base/text.hpp"
#include "build_info.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;
using Run = benchmark::BenchmarkReporter::Run;

bool is_row(const Run& run) { return run.run_type == Run::RT_Iteration; }

// The name of our case, without what Google Benchmark appends ("/manual_time", "/repeats:3").
std::string case_name(const Run& run) { return run.run_name.function_name; }

// Calls f(run, row) for every row that was not cut short by Ctrl-C and, where every repetition has
// a time, f(run, nullptr) for the aggregates.
template <typename F>
void for_each_run(const Results& results, const std::vector<Run>& runs, F&& f) {
  const auto repetitions = std::ranges::count_if(runs, is_row);
  std::int64_t repetition = 0;
  for (const Run& run : runs) {
    if (!is_row(run)) {
      if (results.all_timed(case_name(run), run.repetitions)) f(run, nullptr);
      continue;
    }
    const Row& row = results.reported(case_name(run), repetition++, repetitions);
    if (row.skipped != Interrupted().what()) f(run, &row);
  }
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(seconds);
  return formatted("%ld:%02ld", whole / 60, whole % 60);
}

std::string time_text(double seconds) {
  const auto [scale, unit] = seconds < 1e-3 ? std::pair(1e6, "us")
                             : seconds < 1  ? std::pair(1e3, "ms")
                                            : std::pair(1.0, "s ");
  return formatted("%.4g %s", seconds * scale, unit);
}

std::string percent_text(const std::optional<double>& share) {
  return share ? formatted("%.1f", 100 * *share) : "-";
}

std::string whole_text(const std::optional<double>& value, double scale) {
  return value ? std::to_string(std::llround(*value * scale)) : "-";
}

// "alone: to the GPU 2.7 ms at 49.6 GB/s, kernel 7.1 ms, back 1.3 ms at 50.1 GB/s; 61.2 % of the
// copies hidden"
std::string parts_text(const Row& row) {
  const Problem& p = row.which.problem;
  const auto copy = [](double bytes, double seconds) {
    return time_text(seconds) + formatted(" at %.1f GB/s", 1e-9 * bytes / seconds);
  };
  const PartTimes& parts = *row.parts;
  return "alone: to the card " + copy(to_device_bytes(p), parts.to_device_seconds) + ", kernel " +
         time_text(parts.kernel_seconds) + ", back " +
         copy(from_device_bytes(p), parts.from_device_seconds) + "; " +
         percent_text(row.hidden_share()) + " % of the copies hidden";
}

std::string peak_text(const Peak& peak) {
  if (!peak.per_second) return peak.name + " unknown (" + peak.source + ")";
  return peak.name +
         (peak.precision ? formatted(" %.1f TFLOP/s", *peak.per_second * 1e-12)
                         : formatted(" %.0f GB/s", *peak.per_second * 1e-9)) +
         " (" + std::string(name_of(peak.origin)) + ")";
}

std::string text_of(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

}  // namespace

bool TableReporter::ReportContext(const Context& context) {
  std::ostream& out = GetOutputStream();
  const DeviceInfo& device = suite_.device();
  out << device.name;
  if (device.sm_count > 0) out << ", " << device.sm_count << " SMs";
  if (device.cores > 0) out << ", " << device.cores << (device.cores == 1 ? " core" : " cores");
  if (device.cores > 0 && !build_info::kOpenMp) out << " (built without OpenMP)";
  if (device.clock_hz) out << ", " << std::lround(*device.clock_hz * 1e-6) << " MHz";
  out << "\nRoofs: ";
  std::vector<std::string> said;  // precisions of one unit have one roof
  for (const Peak& peak : suite_.results().run().peaks) {
    const std::string text = peak_text(peak);
    if (std::ranges::find(said, text) != said.end()) continue;
    out << (said.empty() ? "" : ", ") << text;
    said.push_back(text);
  }
  if (const auto& overheads = suite_.results().run().overheads)
    out << formatted(
        "\nOverheads: a graph node %.2f us, a launch %.2f us, a pair of events %.2f us",
        1e6 * overheads->graph_node, 1e6 * overheads->launch, 1e6 * overheads->event_pair);
  name_width_ = static_cast<int>(std::max<std::size_t>(context.name_field_width, 20));
  const std::string header =
      formatted("%-*s %11s %10s %7s %8s %9s %8s %6s %8s\n", name_width_, "Benchmark", "Time",
                "GFLOP/s", "% roof", "at clock", "% library", "SM MHz", "W", "Samples");
  out << "\nTime is the median of the samples; every row was verified before and after it was "
         "timed. A star: the row departs from NVIDIA's guideline; why is said once.\n\n"
      << header;
  out << std::string(header.size() - 1, '-') << "\n" << std::flush;
  return true;
}

std::string TableReporter::progress() const {
  const double elapsed = suite_.elapsed_seconds();
  const double whole = elapsed * static_cast<double>(cases_) /
                       static_cast<double>(std::max<std::size_t>(1, done_.size()));
  return "[" + std::to_string(done_.size()) + "/" + std::to_string(cases_) + "  " +
         clock_text(elapsed) + " of about " + clock_text(whole) + "]";
}

void TableReporter::print(const Run& run, const Row& row) {
  std::ostream& out = GetOutputStream();
  if (row.timed()) {
    const Results& results = suite_.results();
    const Timing& timing = row.timing;
    const auto power = timing.gpu.power_w;
    out << formatted("%-*s %11s %10.1f %7s %8s %9s %8s %6s %8zu%c ", name_width_,
                     run.benchmark_name().c_str(), time_text(row.seconds()).c_str(),
                     row.flop_per_second() * 1e-9, percent_text(results.of_roof(row)).c_str(),
                     percent_text(results.of_roof_at_clock(row)).c_str(),
                     percent_text(results.of_library(row)).c_str(),
                     whole_text(timing.median_sm_hz(), 1e-6).c_str(),
                     whole_text(power ? std::optional(power->median) : std::nullopt, 1).c_str(),
                     timing.samples_seconds.size(), results.deviations(row).empty() ? ' ' : '*')
        << progress() << "\n";
    const std::string indent(static_cast<std::size_t>(name_width_) + 1, ' ');
    if (row.versus)
      out << indent
          << formatted("%.4f times as fast as %s, interleaved (95 %%: %.4f to %.4f)\n",
                       row.versus->ratio, row.versus->kernel.c_str(), row.versus->low,
                       row.versus->high);
    if (row.parts) out << indent << parts_text(row) << "\n";
    for (const Deviation& deviation : results.deviations(row))
      if (deviations_.insert(deviation.text).second)
        out << indent << "* " << deviation.text << "\n";
    return;
  }
  out << formatted("%-*s ", name_width_, run.benchmark_name().c_str())
      << (row.failed.empty() ? "SKIPPED: " + row.skipped : "FAILED: " + row.failed) << "  "
      << progress() << "\n";
}

void TableReporter::print_aggregate(const Run& run) {
  const auto found = run.counters.find("GFLOP/s");
  if (found == run.counters.end()) return;
  const bool percentage = run.aggregate_unit == benchmark::kPercentage;
  const std::string name = run.benchmark_name();
  const auto iterations = static_cast<double>(std::max<std::int64_t>(1, run.iterations));
  GetOutputStream() << (percentage
                            ? formatted("%-*s %9.2f %% %9.2f %%\n", name_width_, name.c_str(),
                                        100 * run.real_accumulated_time, 100 * found->second.value)
                            : formatted("%-*s %11s %11.1f\n", name_width_, name.c_str(),
                                        time_text(run.real_accumulated_time / iterations).c_str(),
                                        found->second.value));
}

void TableReporter::ReportRuns(const std::vector<Run>& runs) {
  if (isatty(STDERR_FILENO) != 0) std::cerr << "\r\033[K" << std::flush;
  if (!runs.empty()) done_.insert(case_name(runs[0]));
  for_each_run(suite_.results(), runs, [&](const Run& run, const Row* row) {
    if (row != nullptr)
      print(run, *row);
    else
      print_aggregate(run);
  });
  GetOutputStream() << std::flush;
}

void TableReporter::Finalize() {
  const std::string line = suite_.results().conformance();
  if (!line.empty()) GetOutputStream() << "\nMeasured: " << line << "\n" << std::flush;
}

bool TimedRowsReporter::ReportContext(const Context& context) {
  inner_->SetOutputStream(&GetOutputStream());
  inner_->SetErrorStream(&GetErrorStream());
  return inner_->ReportContext(context);
}

void TimedRowsReporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> timed;
  for_each_run(suite_.results(), runs, [&](const Run& run, const Row* row) {
    if (row == nullptr || row->timed())
      timed.push_back(run);
    else
      GetErrorStream() << run.benchmark_name() << ": "
                       << (row->failed.empty() ? "skipped: " + row->skipped
                                               : "failed: " + row->failed)
                       << "\n";
  });
  if (!timed.empty()) inner_->ReportRuns(timed);
}

bool RecordReporter::ReportContext(const Context& context) {
  const std::time_t now = std::time(nullptr);
  char date[64];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S+00:00", std::gmtime(&now));
  json caches = json::array();
  for (const auto& cache : context.cpu_info.caches)
    caches.push_back({{"type", cache.type},
                      {"level", cache.level},
                      {"size", cache.size},
                      {"num_sharing", cache.num_sharing}});
  // Neither host_name nor the program's folder: a record is made to be published.
  context_.update({{"date", date},
                   {"executable", suite_.results().run().command[0]},
                   {"num_cpus", context.cpu_info.num_cpus},
                   {"mhz_per_cpu", std::llround(context.cpu_info.cycles_per_second / 1e6)},
                   {"caches", caches}});
  return true;
}

void RecordReporter::ReportRuns(const std::vector<Run>& runs) {
  for_each_run(suite_.results(), runs, [&](const Run& run, const Row* row) {
    const bool timed = row == nullptr || row->timed();
    const auto number = [](double value) {
      return std::isfinite(value) ? json(value) : json(nullptr);
    };
    json entry = {{"name", run.benchmark_name()},
                  {"family_index", run.family_index},
                  {"per_family_instance_index", run.per_family_instance_index},
                  {"run_name", run.run_name.str()},
                  {"run_type", row != nullptr ? "iteration" : "aggregate"},
                  {"repetitions", run.repetitions}};
    if (row != nullptr) entry["repetition_index"] = run.repetition_index;
    entry["threads"] = run.threads;
    if (row == nullptr) {
      entry["aggregate_name"] = run.aggregate_name;
      entry["aggregate_unit"] = run.aggregate_unit == benchmark::kTime ? "time" : "percentage";
    }
    if (!timed) {
      entry["error_occurred"] = true;
      entry["error_message"] = row->failed.empty() ? row->skipped : row->failed;
    }
    const bool percentage = row == nullptr && run.aggregate_unit == benchmark::kPercentage;
    entry["iterations"] = row != nullptr && timed
                              ? static_cast<std::int64_t>(row->timing.samples_seconds.size())
                              : run.iterations;
    entry["real_time"] =
        timed ? number(percentage ? run.real_accumulated_time : run.GetAdjustedRealTime())
              : json(0.0);
    entry["cpu_time"] =
        timed ? number(percentage ? run.cpu_accumulated_time : run.GetAdjustedCPUTime())
              : json(0.0);
    entry["time_unit"] = benchmark::GetTimeUnitString(run.time_unit);
    for (const auto& [name, counter] : run.counters)
      if (std::isfinite(counter.value)) entry[name] = counter.value;
    entries_.push_back({std::move(entry), row != nullptr ? std::optional(*row) : std::nullopt});
    if (file_ != nullptr)
      kept_ += (kept_.empty() ? "" : ",\n") + text_of(benchmark(entries_.back()));
  });
  if (file_ != nullptr && !entries_.empty())
    file_->keep("{\"context\": " + text_of(context(false)) + ",\n\"benchmarks\": [\n" + kept_ +
                "\n]}\n");
}

void RecordReporter::Finalize() {
  json rows = json::array();
  for (const Entry& entry : entries_) rows.push_back(benchmark(entry));
  last_(text_of({{"context", context(!interrupted() && !suite_.lost())},
                 {"benchmarks", std::move(rows)}},
                1) +
        "\n");
}

json RecordReporter::benchmark(const Entry& entry) const {
  json row = entry.benchmark;
  if (entry.row) {
    row["gemm"] = suite_.results().to_json(*entry.row);
    if (const auto share = suite_.results().of_library(*entry.row)) row["%library"] = 100 * *share;
  }
  shorten_texts(row);
  return row;
}

json RecordReporter::context(bool complete) const {
  json run = suite_.run_to_json();
  run["complete"] = complete;
  std::vector<const RegisteredKernel*> kernels;
  for (const Entry& entry : entries_) {
    if (!entry.row) continue;
    const RegisteredKernel* kernel = entry.row->which.kernel;
    if (std::ranges::none_of(kernels,
                             [&](const auto* other) { return other->name == kernel->name; }))
      kernels.push_back(kernel);
  }
  std::ranges::stable_sort(kernels, {}, [](const auto* kernel) { return kernel->rung; });
  for (const RegisteredKernel* kernel : kernels)
    run["kernels"].push_back({{"name", kernel->name},
                              {"tunable", is_tunable(kernel->name)},
                              {"family", kernel->family},
                              {"rung", kernel->rung},
                              {"idea", kernel->idea},
                              {"source", kernel->source}});
  json context = context_;
  context["gemm"] = std::move(run);
  shorten_texts(context);
  return context;
}

bool RecordFirst::ReportContext(const Context& context) {
  return record_.ReportContext(context) && console_.ReportContext(context);
}

void RecordFirst::ReportRuns(const std::vector<Run>& runs) {
  record_.ReportRuns(runs);
  const bool hidden = aggregates_only_ && !runs.empty() && is_row(runs[0]) &&
                      runs[0].repetitions > 1 &&
                      results_.all_timed(case_name(runs[0]), runs[0].repetitions);
  if (!hidden) console_.ReportRuns(runs);
}

void RecordFirst::Finalize() {
  console_.Finalize();  // has its say even if the record cannot be written
  record_.Finalize();
}

}  // namespace gemm::bench
