#include "bench/run/suite.hpp"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <ranges>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"
#include "bench/measurement/measurement.hpp"
#include "bench/peaks/measured_peaks.hpp"
#include "bench/run/answer.hpp"
#include "bench/run/child.hpp"
#include "bench/run/user_kernels.hpp"

namespace gemm::bench {

Suite::Suite(std::unique_ptr<Backend> backend, const Options& options,
             std::vector<std::string> command, Environment environment)
    : bench_{.backend = std::move(backend), .options = options} {
  Conditions run{.options = options,
                 .device = bench_.backend->device(),
                 .peaks = peaks_of(bench_.backend->device(), options.peaks),
                 .timer = std::string(bench_.backend->timer()),
                 .command = std::move(command),
                 .environment = std::move(environment)};
  run.environment.injected = injected_code();
  bench_.monitor = monitor_gpu(run.device, options.monitor_seconds, run.why_no_monitor);
  if (bench_.monitor) {
    run.gpu = bench_.monitor->facts();
    health_before_ = bench_.monitor->health();
    run.gpu_processes = health_before_.other_processes;
  }
  try {
    run.overheads = bench_.backend->overheads();
    if (options.peaks_from != PeaksFrom::nominal)
      run.measured = options.is_child() || options.peaks_from == PeaksFrom::stored
                         ? load_peaks(peaks_file(run.device), run.device)
                         : kept_and_measured(*bench_.backend, bench_.monitor.get(), run.device,
                                             options.peaks_from == PeaksFrom::measure);
  } catch (const DeviceLost&) {
    (void)bench_.backend.release();  // freeing its memory would wait for the GPU
    throw;
  }
  reconcile(run.peaks, run.measured, run.device);

  const MeasuredPeak* dram = memory_roof(run.measured, "DRAM");
  const MeasuredPeak* l2 = memory_roof(run.measured, "L2");
  if (dram != nullptr && l2 != nullptr) {  // kernels' time models use them
    bench_.backend->set_rates(dram->per_second(), l2->per_second());
    // Not the whole: the driver is as NVML names it.
    static_cast<Device&>(run.device) = static_cast<const Device&>(bench_.backend->device());
  }
  bench_.limits = {.peaks = run.peaks,
                   .last_level_cache_bytes = run.device.last_level_cache_bytes,
                   // Not on a CPU, where other programs use the memory too.
                   .dram_bytes_per_second = dram != nullptr && run.device.kind == Device::Kind::gpu
                                                ? dram->bytes_per_second
                                                : std::nullopt,
                   .overheads = run.overheads};
  results_ = std::make_unique<Results>(std::move(run));
  if (options.child_turns) bench_.turns = next_turn;
  library_rates_.emplace(bench_, *results_);
  bench_.started = now_seconds();
}

void say_why_untimed(Row& row, const std::exception& error) {
  const bool skipped = dynamic_cast<const Skipped*>(&error) != nullptr;
  (skipped ? row.skipped : row.failed) = error.what();
  if (const auto* wrong = dynamic_cast<const WrongResult*>(&error)) row.verdict = wrong->verdict;
  row.suspect = dynamic_cast<const Suspect*>(&error) != nullptr;
}

void Suite::measure(const Case& which, std::optional<std::int64_t> samples, Row& row) {
  if (interrupted()) throw Interrupted();
  if (lost()) throw Skipped(lost_);
  const std::vector<Case> baselines = interleaving_.named_baselines(which);
  const auto is_library = [&](const Case& baseline) { return is_library_for(which, baseline); };
  if (needs_child(which, baselines)) {
    if (bench_.options.library && std::ranges::none_of(baselines, is_library))
      library_rates_->measure(which);
    return measure_in_child(which, baselines, samples, row);
  }
  const std::optional<Case> baseline = interleaving_.baseline_of(which);
  if (bench_.options.library && !bench_.options.is_child() && !(baseline && is_library(*baseline)))
    library_rates_->measure(which);
  const std::optional<CpuTimes> before = read_cpu_times();
  interleaving_.run(which, baseline, samples, row);
  row.host = others_between(before, read_cpu_times());
  results_->raise_peaks(bench_.limits.peaks);
}

// A side that is code of a user has a process of its own, and this one is the other side. Both in
// one where several files have a part in it, or memory is too short.
void Suite::measure_in_child(const Case& which, const std::vector<Case>& baselines,
                             std::optional<std::int64_t> samples, Row& row) {
  const auto users = [](const Case& one) { return one.kernel->is_users(); };
  const bool mine = users(which);
  std::optional<Case> baseline;
  if (mine && std::ranges::none_of(baselines, users))
    baseline = interleaving_.baseline_of(which);
  else if (!mine && baselines.size() == 1)
    baseline = baselines[0];
  if (baseline) try {
      return measure_apart(which, *baseline, samples, row);
    } catch (const NoRoom&) {
    } catch (const BaselineFailed& error) {
      bench_.attempt(*baseline, [&] { throw error; });  // says so
      if (!mine) return interleaving_.run(which, {}, samples, row);
      bench_.clear();
      row = row_of_child(which, {which}, samples, {});
      return;
    }
  bench_.clear();
  std::vector<Case> cases = baselines;
  cases.push_back(which);
  row = row_of_child(which, cases, samples, {});
  if (row.versus) row.versus->shared_process = true;
}

void Suite::measure_apart(const Case& which, const Case& baseline,
                          std::optional<std::int64_t> samples, Row& row) {
  const bool mine = which.kernel->is_users();
  const Case &theirs = mine ? which : baseline, &ours = mine ? baseline : which;
  TimingPlan plan = bench_.options.timing;
  if (samples) plan.samples = samples;
  bench_.clear();
  Row local{.which = ours};
  try {
    bench_.prepare(bench_.active, ours);
    bench_.active->begin(plan, bench_.seconds_left());
  } catch (const Skipped&) {
    if (!mine) throw;
    throw NoRoom();
  }
  bool warm = false;
  // Of the one that the row is compared with.
  const auto as_baseline = [](bool is_baseline, auto&& step) {
    try {
      return step();
    } catch (const Interrupted&) {
      throw;
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::exception& error) {
      if (!is_baseline) throw;
      throw BaselineFailed(error.what());
    }
  };
  const auto turn = [&](bool enough) {
    return as_baseline(mine, [&] {
      if (!std::exchange(warm, true)) bench_.active->begin_samples(bench_.active->warm_up_alone());
      if (enough && bench_.active->enough()) return false;
      bench_.active->sample_in_turn();
      return true;
    });
  };
  Row remote;
  try {
    remote = row_of_child(theirs, {theirs}, samples, turn);
  } catch (const Skipped& skipped) {
    if (std::string_view(skipped.what()).find("of memory") != std::string_view::npos)
      throw NoRoom();
    if (mine) throw;
    throw BaselineFailed(skipped.what());
  } catch (const BaselineFailed&) {
    throw;
  } catch (const std::runtime_error& error) {
    if (mine) throw;
    throw BaselineFailed(error.what());
  }
  as_baseline(mine, [&] {
    local.timing = bench_.active->finish();
    interleaving_.complete(*bench_.active, local);
  });
  const Timing other = mine ? local.timing : remote.timing;
  row = std::move(mine ? remote : local);
  Interleaving::compare(row, baseline, other);
}

Row Suite::row_of_child(const Case& which, const std::vector<Case>& cases,
                        std::optional<std::int64_t> samples, const BetweenTurns& turns) {
  const double left = bench_.seconds_left(),
               limit = std::min(bench_.options.kernel_limit_seconds(), left);
  if (left <= 0) throw run_budget_is_spent(bench_.options);
  std::vector<std::string> command = child_program(cases);
  std::ranges::copy(bench_.options.arguments | std::views::drop(1), std::back_inserter(command));
  if (bench_.options.peaks_from == PeaksFrom::measure) command.emplace_back("--gemm_peaks=cached");
  command.push_back("--gemm_child=" + which.name());
  if (samples) command.push_back("--gemm_child_samples=" + std::to_string(*samples));
  if (turns) command.emplace_back("--gemm_child_turns");
  // What a kernel writes to the descriptor of the answer is none.
  std::random_device random;
  const std::string token = formatted("%08x%08x%08x%08x", random(), random(), random(), random());
  const ChildEnd end = run_child(command, limit, token + "\n", turns);

  if (!end.printed.empty()) {
    const AboveStatus above;
    std::cerr << which.name() << " printed:\n" << quote_lines(end.printed);
  }
  if (end.late && limit == left) throw run_budget_is_spent(bench_.options);
  if (end.late) throw std::runtime_error(end.how + ": raise --gemm_kernel_limit");
  if (!end.how.empty()) throw std::runtime_error(end.how);
  Answer answer = answer_from(end, token, which);
  Row& row = answer.row;
  bench_.kernel_seconds += answer.kernel_seconds;
  if (!row.skipped.empty()) throw Skipped(row.skipped);
  if (row.suspect) throw Suspect(row.failed);
  if (!row.failed.empty()) throw std::runtime_error(row.failed);
  interleaving_.require_possible(which, row.timing, row.rotation_sets);
  results_->raise_peaks(bench_.limits.peaks);
  return std::move(row);
}

bool Suite::needs_child(const Case& which, const std::vector<Case>& baselines) const {
  if (bench_.options.is_child()) return false;
  return which.kernel->is_users() ||
         std::ranges::any_of(baselines, [](const Case& one) { return one.kernel->is_users(); });
}

void Suite::discard(const Case& which) {
  if (!lost() && !needs_child(which, interleaving_.named_baselines(which))) bench_.discard(which);
}

// Memory of the GPU is leaked: freeing it would wait for the GPU.
void Suite::lose_device(const std::string& error, const Case& during) {
  if (!lost()) lost_ = "the device was lost in " + during.name() + ": " + error;
}

nlohmann::ordered_json Suite::run_to_json() const {
  nlohmann::ordered_json run = results_->run_to_json();
  run["time"] = {{"wall_seconds", bench_.elapsed_seconds()},
                 {"kernel_seconds", bench_.kernel_seconds}};
  run["host"] = host_json(others_between(cpu_before_, read_cpu_times()), load_before_);
  if (!bench_.monitor) return run;
  run["health"] = health_json(health_before_, bench_.monitor->health());
  if (const auto seconds = bench_.monitor->read_seconds())
    run["method"]["watch"]["read_seconds"] = *seconds;
  return run;
}

}  // namespace gemm::bench
