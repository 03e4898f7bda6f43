#include "bench/run/suite.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/base/text.hpp"
#include "bench/run/child.hpp"
#include "bench/run/user_kernels.hpp"

namespace gemm::bench {
std::unique_ptr<CardWatch> watch_card(DeviceInfo& device, double interval_seconds,
                                      std::string& why_not) {
  std::unique_ptr<Card> card;
  if (device.kind == Device::Kind::cpu)
    why_not = "a CPU is not watched";
  else if (!device.pci_bus_id)
    why_not = "the CUDA runtime does not tell the card's PCI bus id";
  else
    card = open_nvml(*device.pci_bus_id, why_not);
  if (!card) return nullptr;
  if (const auto driver = card->facts().driver) device.driver = driver;
  if (interval_seconds > 0) return std::make_unique<CardWatch>(std::move(card), interval_seconds);
  why_not = "--gemm_watch=0";
  return nullptr;
}

Suite::Suite(std::unique_ptr<Backend> backend, const Options& options,
             std::vector<std::string> command)
    : backend_(std::move(backend)),
      options_(options),
      cache_(*backend_, options.fill, options.seed, options.rotate) {
  Conditions run{.options = options,
                 .device = backend_->device(),
                 .ceilings = ceilings_of(backend_->device(), options.peaks),
                 .timer = std::string(backend_->timer()),
                 .command = std::move(command)};
  watch_ = watch_card(run.device, options.watch_seconds, run.why_not_watched);
  if (watch_) run.card = watch_->facts();
  try {
    run.overheads = backend_->overheads();
    run.measured = measured_ceilings(run.device);
  } catch (const DeviceLost&) {
    (void)backend_.release();  // to free what it has on the card would be to wait for the card
    throw;
  }
  fill_in(run.ceilings, run.measured);

  limits_ = {.ceilings = run.ceilings,
             .last_level_cache_bytes = run.device.last_level_cache_bytes,
             // On a CPU others take their share of it: no limit.
             .dram_bytes_per_second = run.device.kind == Device::Kind::gpu
                                          ? dram_bytes_per_second(run.measured)
                                          : std::nullopt,
             .overheads = run.overheads};
  results_ = std::make_unique<Results>(std::move(run));
  started_ = now_seconds();
}

// Measured once for each device and driver, since that takes as long as a dozen rows.
std::vector<MeasuredCeiling> Suite::measured_ceilings(const DeviceInfo& device) {
  if (options_.ceilings == CeilingsFrom::queried) return {};
  const std::filesystem::path file = ceilings_file(device);
  std::vector<MeasuredCeiling> all;
  if (options_.ceilings == CeilingsFrom::cached) all = load_ceilings(file, device);
  if (options_.is_child()) return all;

  // Each is kept at once, so that Ctrl-C loses one.
  const char* clear = isatty(STDERR_FILENO) != 0 ? "\r\033[K" : nullptr;
  bool first = true, kept = true;
  measure_others(*backend_, watch_.get(), std::vector(all),
                 {.begins =
                      [&](const std::string& label) {
                        if (first) std::cerr << "Measuring the ceilings of this device, once ...\n";
                        first = false;
                        if (clear != nullptr) std::cerr << clear << label << " ..." << std::flush;
                      },
                  .measured =
                      [&](const MeasuredCeiling& one) {
                        all.push_back(one);
                        kept = save_ceilings(file, device, {one}) && kept;
                      },
                  .failed =
                      [&](const std::string& label, const std::string& why) {
                        std::cerr << (clear != nullptr ? clear : "") << label
                                  << " could not be measured: " << one_line(why) << "\n";
                      }});
  if (clear != nullptr && !first) std::cerr << clear << std::flush;
  if (!kept)
    std::cerr << "The measured ceilings could not be kept in '" << file.string()
              << "': the next run measures them again\n";
  return all;
}

double Suite::elapsed_seconds() const { return now_seconds() - started_; }

double Suite::seconds_left() const {
  if (!options_.run_budget_seconds) return std::numeric_limits<double>::infinity();
  return *options_.run_budget_seconds - elapsed_seconds();
}

void Suite::require_usable() const {
  if (interrupted()) throw Interrupted();
  if (!lost_.empty()) throw Skipped(lost_);
}

// Prepared once it is where a hanging card cannot hold up its destructor.
void Suite::prepare(std::unique_ptr<Measurement>& place, const Case& which) {
  if (place && place->which() == which) return;
  place = std::make_unique<Measurement>(*backend_, watch_.get(), cache_, options_, which);
  place->prepare(seconds_left());
}

// A rival that cannot race is no fault of the row.
bool Suite::rival_can(const Case& rival, const std::function<void()>& step) {
  try {
    step();
    return true;
  } catch (const Interrupted&) {
    throw;
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    std::cerr << rival.name() << " is not raced against: " << one_line(error.what()) << "\n";
  }
  unfit_.push_back(rival);
  discard(rival);  // it may have written anywhere
  return false;
}

std::optional<std::string> Suite::impossible(const Case& which, const Timing& timing,
                                             std::int64_t operand_sets) const {
  // A burst is shorter than the time between two updates of NVML's clock.
  const std::optional<Range> by_timer = timing.sm_hz_by_timer();
  const std::optional<double> highest_sm_hz = options_.timing.state != State::burst
                                                  ? timing.highest_sm_hz()
                                              : by_timer ? std::optional(by_timer->max)
                                                         : std::nullopt;
  return beats_physics(limits_, {.problem = which.problem,
                                 .seconds = timing.quantile_seconds(0.5),
                                 .operand_sets = operand_sets,
                                 .highest_sm_hz = highest_sm_hz});
}

void Suite::measure(const Case& which, std::optional<std::int64_t> samples, Row& row) {
  require_usable();
  if (needs_child(which)) return measure_in_child(which, samples, row);
  std::optional<Case> other = rival_of(which);
  const auto is_baseline = [&] {
    return other->kernel->is_library() && other->problem == which.problem;
  };
  if (!options_.is_child() && (!other || !is_baseline())) measure_baseline(which);

  if (active_ && active_->which() != which) active_.reset();  // its memory may be needed
  if (rival_ && rival_->which() != other) rival_.reset();
  if (other && !rival_can(*other, [&] { prepare(rival_, *other); })) other.reset();
  prepare(active_, which);

  TimingPlan plan = options_.timing;
  if (samples) plan.samples = samples;
  Timing theirs;
  row.rotation_sets = active_->rotation_sets();
  row.timing = active_->time(plan, seconds_left(), rival_.get(), &theirs);
  row.batch = active_->plan().size;
  row.launch = active_->launch();
  kernel_seconds_ += row.timing.kernel_seconds;
  row.verdict = active_->verify();
  if (const auto wrong = impossible(which, row.timing, row.rotation_sets))
    throw std::runtime_error(*wrong);
  doubt_ceilings(row);
  row.launched = backend_->kernels_of(active_->kernel());
  if (which.transfer) row.parts = active_->time_parts();
  if (!other) return;
  const bool raced = rival_can(*other, [&] {
    rival_->verify();
    if (const auto wrong = impossible(*other, theirs, row.rotation_sets))
      throw std::runtime_error(*wrong);
  });
  if (!raced) return;
  row.versus = compare_pairs(row.timing.samples_seconds, theirs.samples_seconds);
  const Precision precision = other->problem.precision;
  if (precision != which.problem.precision)
    row.versus->kernel = std::string(traits_of(precision).name) + ":";
  row.versus->kernel += other->kernel->label();
  row.versus->library = is_baseline();
}

std::vector<Case> Suite::named_rivals(const Case& which) const {
  if (!options_.versus || which.transfer) return {};
  return rivals_of(which, parse_versus(*options_.versus), options_.variants);
}

bool Suite::needs_child(const Case& which) const {
  if (options_.is_child()) return false;
  const auto is_users = [](const Case& one) { return one.kernel->is_users(); };
  return is_users(which) || std::ranges::any_of(named_rivals(which), is_users);
}

// The same program with the same options, which answers with one row.
void Suite::measure_in_child(const Case& which, std::optional<std::int64_t> samples, Row& row) {
  if (std::ranges::none_of(named_rivals(which), [&](const Case& rival) {
        return rival.kernel->is_library() && rival.problem == which.problem;
      }))
    measure_baseline(which);
  const double left = seconds_left(), limit = std::min(options_.kernel_limit_seconds(), left);
  if (left <= 0) throw run_budget_is_spent(options_);
  active_.reset();  // what they and the cache have on the device is the child's now
  rival_.reset();
  cache_.clear();
  std::vector<Case> cases = named_rivals(which);
  cases.push_back(which);
  std::vector<std::string> command = child_program(cases);
  std::ranges::copy(options_.arguments | std::views::drop(1), std::back_inserter(command));
  if (options_.ceilings == CeilingsFrom::measure) command.emplace_back("--gemm_ceilings=cached");
  command.push_back("--gemm_child=" + which.name());
  if (samples) command.push_back("--gemm_child_samples=" + std::to_string(*samples));
  const ChildEnd end = run_child(command, limit);

  if (!end.printed.empty()) std::cerr << which.name() << " printed:\n" << quote_lines(end.printed);
  if (end.late && limit == left) throw run_budget_is_spent(options_);
  try {
    const auto answer = nlohmann::ordered_json::parse(end.answer);
    row = row_from(answer.at("row"), which);
    kernel_seconds_ += answer.at("kernel_seconds").get<double>();
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(end.how.empty() ? "it called exit(0)" : end.how);
  }
  if (!row.skipped.empty()) throw Skipped(row.skipped);
  if (!row.failed.empty()) throw std::runtime_error(row.failed);
}

void Suite::doubt_ceilings(const Row& row) {
  constexpr double kBeyondDoubt = 1.05;
  const Ceiling* roof =
      compute_ceiling(results_->run().ceilings, row.which.problem.precision);  // caches beat DRAM's
  if (doubted_ || roof == nullptr || roof->origin != Ceiling::Origin::measured ||
      !(row.flop_per_second() > kBeyondDoubt * *roof->per_second))
    return;
  doubted_ = true;
  std::error_code ignored;
  std::filesystem::remove(ceilings_file(results_->run().device), ignored);
  std::cerr << row.which.name() << " is faster than its measured roof: something else ran when "
            << "that was measured. The next run measures the ceilings again\n";
}

void Suite::discard(const Case& which) {
  if (lost() || needs_child(which)) return;
  active_.reset();
  rival_.reset();
  cache_.forget(which.problem);
}

// What lies on the card is given up with it: to free it would be to wait for the card.
void Suite::lose_device(const std::string& error, const Case& during) {
  if (lost_.empty()) lost_ = "the device was lost in " + during.name() + ": " + error;
}

std::optional<Baseline> Suite::fastest(const std::vector<Case>& cases) {
  std::optional<Baseline> best;
  for (const Case& one : cases) {
    try {
      active_.reset();  // its memory may be needed
      prepare(active_, one);
      // In the state of the rows: burst and settled differ by 15 % on one card.
      TimingPlan plan = options_.timing;
      plan.samples.reset();
      Row row{.which = one};
      row.timing = active_->time(plan, seconds_left());
      active_->verify();
      if (const auto wrong = impossible(one, row.timing, active_->rotation_sets()))
        throw std::runtime_error(*wrong);
      if (!best || row.flop_per_second() > best->flop_per_second)
        best = Baseline{one.kernel->label(), row.flop_per_second()};
    } catch (const Interrupted&) {
      throw;
    } catch (const DeviceLost&) {
      throw;
    } catch (const Skipped&) {  // the next one, or none
    } catch (const std::exception& error) {
      std::cerr << one.name() << " is no baseline: " << one_line(error.what()) << "\n";
      discard(one);
    }
  }
  return best;
}

void Suite::measure_baseline(const Case& which) {
  const Problem& p = which.problem;
  if (which.transfer || which.kernel->is_library() || results_->baseline(p)) return;
  if (std::ranges::find(without_library_, p) != without_library_.end()) return;
  std::vector<Case> libraries =
      make_cases({{p.m, p.n, p.k}}, {p.precision}, device().kind, false, {p.layout});
  std::erase_if(libraries, [](const Case& one) { return !one.kernel->is_library(); });
  if (const auto best = fastest(libraries))
    results_->set_baseline(p, *best);
  else
    without_library_.push_back(p);
}

// Whom --gemm_versus names: of several, variants or kernels, the fastest in a trial.
std::optional<Case> Suite::rival_of(const Case& which) {
  std::vector<Case> rivals = named_rivals(which);
  const auto is_among = [](const std::vector<Case>& cases, const Case& one) {
    return std::ranges::find(cases, one) != cases.end();
  };
  if (is_among(rivals, which)) return std::nullopt;  // it would race against itself
  std::erase_if(rivals, [&](const Case& one) { return is_among(unfit_, one); });
  if (rivals.size() <= 1) return rivals.empty() ? std::nullopt : std::optional(rivals[0]);
  for (const auto& [problem, rival] : rivals_)
    if (problem == which.problem && is_among(rivals, rival)) return rival;
  const auto best = fastest_rival(rivals);
  if (best) rivals_.emplace_back(which.problem, *best);
  return best;
}

// Two at a time, sample by sample, so that the state of the card favours none.
std::optional<Case> Suite::fastest_rival(const std::vector<Case>& rivals) {
  constexpr double kTrialSeconds = 0.5;
  TimingPlan trial = options_.timing;
  trial.samples.reset();
  for (double* seconds :
       {&trial.warmup_seconds, &trial.sampling_seconds, &trial.longest_sampling_seconds})
    *seconds = std::min(*seconds, kTrialSeconds);

  active_.reset();  // its memory may be needed
  rival_.reset();
  std::optional<Case> best;  // in rival_
  for (const Case& next : rivals) {
    bool faster = !best;
    const bool ran = rival_can(next, [&] {
      if (best) prepare(rival_, *best);  // again, if the one before failed
      prepare(active_, next);
      if (!best) return;
      Timing theirs;
      const Timing mine = active_->time(trial, seconds_left(), rival_.get(), &theirs);
      active_->verify();
      faster = mine.quantile_seconds(0.5) < theirs.quantile_seconds(0.5);
    });
    if (!ran || !faster) continue;
    best = next;
    std::swap(active_, rival_);
  }
  active_.reset();
  return best;
}

nlohmann::ordered_json Suite::run_to_json() const {
  nlohmann::ordered_json run = results_->run_to_json();
  run["time"] = {{"wall_seconds", elapsed_seconds()}, {"kernel_seconds", kernel_seconds_}};
  if (watch_)
    if (const auto seconds = watch_->read_seconds())
      run["method"]["watch"]["read_seconds"] = *seconds;
  return run;
}

}  // namespace gemm::bench
