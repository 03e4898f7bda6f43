#include "bench/run/session.hpp"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>

#include "bench/base/clock.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"
#include "bench/peaks/measured_peaks.hpp"
#include "bench/run/child.hpp"
#include "bench/run/user_kernels.hpp"
#include "kernels/user/user_kernel.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;

bool is_users(const Case& one) { return one.kernel->is_users(); }

bool contains(const std::vector<Case>& cases, const Case& one) {
  return std::ranges::find(cases, one) != cases.end();
}

// The speeds of a row and of what it was interleaved with.
void compare(Row& row, const Case& baseline, const Timing& theirs) {
  std::vector<double> mine = row.timing.samples_seconds, other = theirs.samples_seconds;
  const std::size_t pairs = std::min(mine.size(), other.size());
  mine.resize(pairs);
  other.resize(pairs);
  row.versus = theirs.blocks.empty() ? compare_pairs(mine, other)
                                     : compare_blocks(row.timing.blocks, theirs.blocks);
  row.versus->kernel = baseline.kernel->label();
  row.versus->library = baseline.kernel->is_library();
}

}  // namespace

Session::Session(std::unique_ptr<Backend> backend, const Options& options,
                 std::vector<std::string> command, Environment environment)
    : backend_(std::move(backend)), options_(options) {
  Conditions run{.options = options,
                 .device = device(),
                 .peaks = peaks_of(device(), options.peaks),
                 .timer = std::string(backend_->timer()),
                 .command = std::move(command),
                 .environment = std::move(environment)};
  run.environment.injected = injected_code();
  monitor_ = monitor_gpu(run.device, options.monitor_seconds, run.why_no_monitor);
  if (monitor_) {
    run.gpu = monitor_->facts();
    health_before_ = monitor_->health();
    run.gpu_processes = health_before_.other_processes;
  }
  take_peaks(run);
  results_.emplace(std::move(run));
  started_ = now_seconds();
}

void Session::take_peaks(Conditions& run) {
  try {
    run.overheads = backend_->overheads();
    if (options_.peaks_from != PeaksFrom::nominal)
      run.measured = options_.is_child || options_.peaks_from == PeaksFrom::stored
                         ? load_peaks(peaks_file(run.device), run.device)
                         : kept_and_measured(*backend_, monitor_.get(), run.device,
                                             options_.peaks_from == PeaksFrom::measure);
  } catch (const DeviceLost&) {
    (void)backend_.release();  // freeing its memory would wait for the GPU
    throw;
  }
  reconcile(run.peaks, run.measured, run.device);
  const MeasuredPeak* dram = memory_roof(run.measured, "DRAM");
  const MeasuredPeak* l2 = memory_roof(run.measured, "L2");
  if (dram != nullptr && l2 != nullptr) {  // kernels' time models use them
    backend_->set_rates(dram->per_second(), l2->per_second());
    // Not the whole: the driver is as NVML names it.
    static_cast<Device&>(run.device) = static_cast<const Device&>(device());
  }
  limits_ = {.peaks = run.peaks,
             .last_level_cache_bytes = run.device.last_level_cache_bytes,
             // Not on a CPU, where other programs use the memory too.
             .dram_bytes_per_second = dram != nullptr && run.device.kind == Device::Kind::gpu
                                          ? dram->bytes_per_second
                                          : std::nullopt,
             .overheads = run.overheads};
}

void say_why_untimed(Row& row, const std::exception& error) {
  const bool skipped = dynamic_cast<const Skipped*>(&error) != nullptr;
  (skipped ? row.skipped : row.failed) = error.what();
  if (const auto* wrong = dynamic_cast<const WrongResult*>(&error)) row.verdict = wrong->verdict;
  row.suspect = dynamic_cast<const Suspect*>(&error) != nullptr;
  const auto* failure = dynamic_cast<const Failure*>(&error);
  row.outcome = failure != nullptr                                   ? failure->outcome
                : dynamic_cast<const CannotLoad*>(&error) != nullptr ? Outcome::compile_error
                                                                     : Outcome::crashed;
}

double Session::elapsed_seconds() const { return now_seconds() - started_; }

double Session::seconds_left() const {
  if (!options_.run_budget_seconds) return std::numeric_limits<double>::infinity();
  return *options_.run_budget_seconds - elapsed_seconds();
}

std::vector<Case> Session::baselines_of(const Case& which) const {
  if (!options_.versus) return {};
  std::vector<Case> named = bench::baselines_of(which, *options_.versus, options_.variants);
  // No kernel is its own baseline; at the power limit one alone is, which shows the noise.
  if (contains(named, which) && (options_.timing.state != State::limit || named.size() > 1))
    return {};
  std::erase_if(named, [&](const Case& one) { return contains(unfit_, one); });
  return named;
}

void Session::discard(const Problem& problem) {
  active_.reset();
  baseline_.reset();
  cache_.forget(problem);
}

void Session::leave_out(const Case& baseline, const std::string& why) {
  const AboveStatus above;
  std::cerr << baseline.name() << " is not compared with: " << one_line(why) << "\n";
  unfit_.push_back(baseline);
  discard(baseline.problem);
}

void Session::measure(const Case& which, Row& row) {
  if (interrupted()) throw Interrupted();
  if (lost()) throw Skipped(lost_);
  const std::vector<Case> baselines = baselines_of(which);
  const bool mine = is_users(which), theirs = std::ranges::any_of(baselines, is_users);
  // Code of several users, or of one among other baselines, is compared in one child; so are
  // blocks, in which no turn is a sample.
  const bool blocks = options_.timing.state == State::limit;
  const bool shared = !options_.is_child && !baselines.empty() && (mine || theirs) &&
                      (blocks || (theirs && (mine || baselines.size() > 1)));
  const std::optional<Case> baseline = shared ? std::nullopt : fastest_of(baselines);
  if (!(baseline && baseline->kernel->is_library())) measure_library(which);

  row = Row{.which = which};
  try {
    if (options_.is_child || !(mine || theirs)) {
      measure_here(which, baseline, options_.timing, row);
    } else if (shared) {
      std::vector<Case> all = baselines;
      all.push_back(which);
      row = row_of_child({.which = json_of(which), .versus = true}, which, all);
      if (row.versus) row.versus->shared_process = true;
    } else if (baseline) {
      measure_apart(which, *baseline, row);
    } else {
      clear();
      row = row_of_child({.which = json_of(which)}, which, {which});
    }
  } catch (const BaselineFailed& error) {
    leave_out(*baseline, error.what());
    return measure(which, row);
  } catch (const Skipped&) {
    throw;
  } catch (const EndsTheRun&) {
    throw;  // freeing the memory of a GPU that hangs would wait for it
  } catch (const std::exception&) {
    discard(which.problem);
    throw;
  }
  results_->raise_peaks(limits_.peaks);
}

std::optional<Case> Session::fastest_of(const std::vector<Case>& cases) {
  constexpr double kTrialSeconds = 0.5;
  if (cases.size() < 2) return cases.empty() ? std::nullopt : std::optional(cases[0]);
  for (const auto& [tried, winner] : trials_)
    if (tried == cases) return winner;
  TimingPlan trial = options_.timing;
  trial.samples.reset();
  if (trial.state == State::limit) trial.state = State::settled;
  for (double* seconds :
       {&trial.warmup_seconds, &trial.sampling_seconds, &trial.longest_sampling_seconds})
    *seconds = std::min(*seconds, kTrialSeconds);
  active_.reset();  // its memory may be needed
  baseline_.reset();
  std::optional<Case> best;  // in baseline_
  for (const Case& next : cases) try {
      if (best) prepare(baseline_, *best);  // again, if the one before failed
      Measurement& challenger = prepare(active_, next);
      if (best) {
        Timing theirs;
        const Timing timing = challenger.time(trial, seconds_left(), baseline_.get(), &theirs);
        challenger.verify();
        if (!(timing.quantile_seconds(0.5) < theirs.quantile_seconds(0.5))) continue;
      }
      best = next;
      std::swap(active_, baseline_);
    } catch (const EndsTheRun&) {
      throw;
    } catch (const std::exception& error) {
      leave_out(next, error.what());
    }
  active_.reset();
  trials_.emplace_back(cases, best);
  return best;
}

void Session::measure_library(const Case& which) {
  const Problem& p = which.problem;
  if (!options_.library || options_.is_child || which.kernel->is_library() ||
      results_->library_rate(p) || std::ranges::count(without_library_, p) > 0)
    return;
  std::vector<Case> libraries =
      make_cases({shape_of(p)}, {p.precision}, device().kind, false, {p.layout}, {p.activation});
  std::erase_if(libraries, [](const Case& one) { return !one.kernel->is_library(); });
  if (const auto row = measure_fastest(std::move(libraries)))
    results_->set_library_rate(p, {row->which.kernel->label(), row->flop_per_second()});
  else
    without_library_.push_back(p);
}

std::optional<Row> Session::measure_fastest(std::vector<Case> cases,
                                            std::optional<std::int64_t> samples) {
  std::erase_if(cases, [&](const Case& one) {
    const auto& unsupported = one.kernel->unsupported;
    return contains(unfit_, one) || (unsupported && unsupported(one.problem, device()));
  });
  const auto best = fastest_of(cases);
  if (!best) return std::nullopt;
  // In the state of the rows: burst and settled differ by 15 % on one GPU.
  TimingPlan plan = options_.timing;
  plan.samples = samples;
  Row row{.which = *best};
  try {
    measure_here(*best, std::nullopt, plan, row);
    return row;
  } catch (const EndsTheRun&) {
    throw;
  } catch (const Skipped&) {
    return std::nullopt;
  } catch (const std::exception& error) {
    leave_out(*best, error.what());
  }
  return measure_fastest(std::move(cases), samples);  // of those that are left
}

// Prepared in place: on a GPU that hangs its destructor would wait for ever.
Measurement& Session::prepare(std::unique_ptr<Measurement>& place, const Case& which) {
  if (place && place->which() == which) return *place;
  place = std::make_unique<Measurement>(*backend_, monitor_.get(), cache_, options_, which);
  try {
    place->prepare(seconds_left());
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception&) {
    place.reset();  // else the next row would take it for prepared
    throw;
  }
  return *place;
}

void Session::clear() {
  active_.reset();
  baseline_.reset();
  cache_.clear();
}

void Session::measure_here(const Case& which, const std::optional<Case>& baseline,
                           const TimingPlan& plan, Row& row) {
  const std::optional<CpuTimes> before = read_cpu_times();
  if (active_ && active_->which() != which) active_.reset();  // its memory may be needed
  if (baseline_ && baseline_->which() != baseline) baseline_.reset();
  if (baseline) of_baseline([&] { prepare(baseline_, *baseline); });
  Measurement& mine = prepare(active_, which);
  Timing theirs;
  row.timing = options_.child_turns ? mine.time_in_turns(plan, seconds_left(), next_turn)
                                    : mine.time(plan, seconds_left(), baseline_.get(), &theirs);
  complete(mine, row);
  row.host = others_between(before, read_cpu_times());
  if (!baseline) return;
  of_baseline([&] {
    baseline_->verify();
    require_possible(*baseline, theirs, baseline_->sets());
  });
  compare(row, *baseline, theirs);
}

// The side that is code of a user has a process of its own, and this one is the other side.
void Session::measure_apart(const Case& which, const Case& baseline, Row& row) {
  const bool mine = is_users(which);
  const Case &there = mine ? which : baseline, &here = mine ? baseline : which;
  const auto ours = [&](auto&& step) { return mine ? of_baseline(step) : step(); };
  clear();
  Row local{.which = here}, remote;
  ours([&] { prepare(active_, here).begin(options_.timing, seconds_left()); });
  bool warm = false;
  const auto turn = [&](bool enough) {
    return ours([&] {
      if (!std::exchange(warm, true)) active_->begin_samples(active_->warm_up_alone());
      if (enough && active_->enough()) return false;
      active_->sample_in_turn();
      return true;
    });
  };
  const auto from_child = [&] {
    remote = row_of_child({.which = json_of(there), .turns = true}, there, {there}, turn);
  };
  try {
    mine ? from_child() : of_baseline(from_child);
  } catch (const Skipped& skipped) {
    if (!mine || std::string_view(skipped.what()).find("of memory") == std::string_view::npos)
      throw;
    throw BaselineFailed("there is not enough memory for the operands of both");
  }
  ours([&] {
    local.timing = active_->finish();
    complete(*active_, local);
  });
  const Timing other = mine ? local.timing : remote.timing;
  row = std::move(mine ? remote : local);
  compare(row, baseline, other);
}

// Of a child that answers with one row, after which it has exited.
Row Session::row_of_child(Request request, const Case& which, const std::vector<Case>& cases,
                          const BetweenTurns& turns) {
  const double left = seconds_left(), limit = std::min(options_.kernel_limit_seconds(), left);
  if (left <= 0) throw run_budget_is_spent(options_);
  std::random_device random;
  request.token = formatted("%08x%08x%08x%08x", random(), random(), random(), random());
  request.arguments = options_.arguments;
  for (const Case& one : cases)
    if (!one.kernel->python.empty()) request.python.push_back(one.kernel->python);
  const ChildEnd end =
      run_child(child_program(!request.python.empty()), limit, json(request).dump(), turns);

  if (!end.printed.empty()) {
    const AboveStatus above;
    std::cerr << which.name() << " printed:\n" << quote_lines(end.printed);
  }
  if (end.late && limit == left) throw run_budget_is_spent(options_);
  if (end.late) throw Failure(end.how + ": raise --gemm_kernel_limit", Outcome::timeout);
  if (!end.how.empty()) throw Failure(end.how, Outcome::crashed);
  Answer answer = answer_from(end, request.token, which);
  Row& row = answer.row;
  kernel_seconds_ += answer.kernel_seconds;
  if (!row.skipped.empty()) throw Skipped(row.skipped, row.outcome);
  if (row.suspect) throw Suspect(row.failed);
  if (!row.failed.empty()) throw Failure(row.failed, row.outcome);
  require_possible(which, row.timing, row.rotation_sets);
  return std::move(row);
}

void Session::complete(Measurement& mine, Row& row) {
  const Case& which = row.which;
  row.rotation_sets = mine.sets();
  row.batch = mine.batch();
  row.launch = mine.launch();
  row.checks = mine.checks();
  kernel_seconds_ += row.timing.kernel_seconds;
  row.verdict = mine.verify();
  require_possible(which, row.timing, row.rotation_sets);
  row.launched = backend_->kernels_of(mine.kernel());
  if (which.kernel->chosen)
    if (const auto plan = which.kernel->chosen(which.problem, device()))
      row.plan = {plan->name, plan->source};
}

// A child does not judge itself: its parent does.
void Session::require_possible(const Case& which, const Timing& timing, std::int64_t operand_sets) {
  const double seconds = timing.quantile_seconds(0.5);
  std::optional<std::string> why;
  if (device().kind == Device::Kind::cpu) {
    const auto peak = std::ranges::find_if(limits_.peaks, [&](const Peak& one) {
      return one.precision && *one.precision == which.problem.precision;
    });
    if (!options_.is_child && peak != limits_.peaks.end())
      why = beats_cpu(*backend_, *peak, flop(which.problem) / seconds);
  } else {
    // A burst is shorter than the time between two updates of NVML's clock.
    const std::optional<Range> by_timer = timing.sm_hz_by_timer();
    const std::optional<double> highest_sm_hz = options_.timing.state != State::burst
                                                    ? timing.highest_sm_hz()
                                                : by_timer ? std::optional(by_timer->max)
                                                           : std::nullopt;
    why = beats_physics(limits_, {.problem = which.problem,
                                  .seconds = seconds,
                                  .operand_sets = operand_sets,
                                  .highest_sm_hz = highest_sm_hz});
  }
  if (why) throw Failure(*why, Outcome::impossible);
}

// Memory of the GPU is leaked: freeing it would wait for the GPU.
void Session::lose_device(const std::string& error, const Case& during) {
  if (!lost()) lost_ = "the device was lost in " + during.name() + ": " + error;
}

json Session::run_to_json() const {
  json run = results_->run_to_json();
  run["time"] = {{"wall_seconds", elapsed_seconds()}, {"kernel_seconds", kernel_seconds_}};
  run["host"] = host_json(others_between(cpu_before_, read_cpu_times()), load_before_);
  if (!monitor_) return run;
  run["health"] = health_json(health_before_, monitor_->health());
  if (const auto seconds = monitor_->read_seconds())
    run["method"]["watch"]["read_seconds"] = *seconds;
  return run;
}

}  // namespace gemm::bench
