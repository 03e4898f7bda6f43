#include "bench/run/reporters.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <thread>

#include "bench/base/clock.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/json.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"
#include "bench/run/command_line.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;
using Run = benchmark::BenchmarkReporter::Run;

bool is_row(const Run& run) { return run.run_type == Run::RT_Iteration; }

// The name of our case, without what Google Benchmark appends ("/manual_time", "/repeats:3").
std::string case_name(const Run& run) { return run.run_name.function_name; }

// The name without the iterations, of which each case has one.
std::string without_iterations(std::string name) {
  constexpr std::string_view kPart = "/iterations:1";
  if (const auto at = name.find(kPart); at != std::string::npos) name.erase(at, kPart.size());
  return name;
}

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

std::string text_of(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

}  // namespace

bool TableReporter::ReportContext(const Context&) {
  std::optional<OthersLoad> others;
  if (session_.device().kind == Device::Kind::cpu) {
    constexpr auto kLook = std::chrono::milliseconds(250);
    const auto before = read_cpu_times();
    std::this_thread::sleep_for(kLook);
    others = others_between(before, read_cpu_times());
  }
  const AboveStatus above;
  GetOutputStream() << console_.head(terminal_width(), others) << std::flush;
  return true;
}

void TableReporter::print_aggregate(const Run& run) {
  const auto found = run.counters.find("GFLOP/s");
  if (found == run.counters.end()) return;
  const Row& row = session_.results().reported(case_name(run), 0, 1);
  const bool percentage = run.aggregate_unit == benchmark::kPercentage;
  const auto iterations = static_cast<double>(std::max<std::int64_t>(1, run.iterations));
  GetOutputStream() << console_.aggregate(
      row.which, run.aggregate_name,
      percentage ? formatted("%.2f %%", 100 * run.real_accumulated_time)
                 : time_text(run.real_accumulated_time / iterations),
      percentage ? formatted("%.2f %%", 100 * found->second.value)
                 : rate_text(1e9 * found->second.value, row.which.problem.precision),
      terminal_width());
}

void TableReporter::ReportRuns(const std::vector<Run>& runs) {
  const AboveStatus above;
  const auto width = terminal_width();
  std::string progress;
  if (!width) {
    progress = "[" + std::to_string(progress_.done()) + "/" + std::to_string(progress_.total());
    if (const auto left = progress_.seconds_left(now_seconds()))
      progress += ", " + clock_text(*left) + " left";
    progress += "]";
  }
  for_each_run(session_.results(), runs, [&](const Run& run, const Row* row) {
    if (row != nullptr)
      GetOutputStream() << console_.result(*row, progress, width);
    else
      print_aggregate(run);
  });
  GetOutputStream() << std::flush;
}

void TableReporter::Finalize() {
  end_status();
  GetOutputStream() << console_.summary(terminal_width()) << std::flush;
}

void VerdictReporter::ReportRuns(const std::vector<Run>& runs) {
  for_each_run(session_.results(), runs, [&](const Run&, const Row* row) {
    if (row != nullptr) GetOutputStream() << text_of(line_(*row)) << std::endl;
  });
}

bool RecordReporter::ReportContext(const Context& context) {
  json caches = json::array();
  for (const auto& cache : context.cpu_info.caches)
    caches.push_back({{"type", cache.type},
                      {"level", cache.level},
                      {"size", cache.size},
                      {"num_sharing", cache.num_sharing}});
  // Neither host_name nor the program's folder: a record is made to be published.
  context_.update({{"date", utc_now("%Y-%m-%dT%H:%M:%S+00:00")},
                   {"executable", session_.results().run().command[0]},
                   {"num_cpus", context.cpu_info.num_cpus},
                   {"mhz_per_cpu", std::llround(context.cpu_info.cycles_per_second / 1e6)},
                   {"caches", caches}});
  return true;
}

void RecordReporter::ReportRuns(const std::vector<Run>& runs) {
  for_each_run(session_.results(), runs, [&](const Run& run, const Row* row) {
    const bool timed = row == nullptr || row->timed();
    json entry = {{"name", without_iterations(run.benchmark_name())},
                  {"family_index", run.family_index},
                  {"per_family_instance_index", run.per_family_instance_index},
                  {"run_name", without_iterations(run.run_name.str())},
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
    const auto time = [&](double whole, double adjusted) {
      return timed ? json_of(percentage ? whole : adjusted) : json(0.0);
    };
    entry["iterations"] =
        row != nullptr && timed ? std::ssize(row->timing.samples_seconds) : run.iterations;
    entry["real_time"] = time(run.real_accumulated_time, run.GetAdjustedRealTime());
    entry["cpu_time"] = time(run.cpu_accumulated_time, run.GetAdjustedCPUTime());
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
  last_(text_of({{"context", context(!interrupted() && !session_.lost())},
                 {"benchmarks", std::move(rows)}},
                1) +
        "\n");
}

json RecordReporter::benchmark(const Entry& entry) const {
  json row = entry.benchmark;
  if (entry.row) {
    row["gemm"] = session_.results().to_json(*entry.row);
    if (const auto share = session_.results().of_library(*entry.row))
      row["%library"] = 100 * *share;
  }
  shorten_texts(row);
  return row;
}

json RecordReporter::context(bool complete) const {
  json run = session_.run_to_json();
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

}  // namespace gemm::bench
