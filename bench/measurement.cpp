#include "bench/measurement.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <limits>

namespace gemm::bench {
namespace {

// Launches shorter than this go out as a CUDA graph: the host needs a few microseconds for each.
constexpr double kGraphBelowSeconds = 50e-6;
constexpr std::int64_t kMostLaunches = 1000;  // in a batch; the driver queues about as many

std::atomic<bool> interrupt_seen = false;

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

}  // namespace

void watch_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupt_seen = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return interrupt_seen; }

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Measurement::Measurement(Backend& backend, ProblemCache& cache, const Options& options,
                         const Case& which, double seconds_left, std::optional<BatchPlan> plan)
    : backend_(backend), options_(options), case_(which), plan_(plan) {
  const Kernel& kernel = *case_.kernel;
  if (kernel.unsupported != nullptr)
    if (const auto why = kernel.unsupported(case_.problem, backend.device())) throw Skipped(*why);
  if (seconds_left <= 0)
    throw Skipped("the run budget of " + seconds_text(*options.run_budget_seconds) + " is spent");
  try {
    cache.make_room(case_.problem);
    predict(cache, seconds_left);
    data_ = cache.get(case_.problem);
    prepare();
  } catch (const OutOfMemory& error) {
    throw Skipped(error.what());
  }
  warm_up();
}

// A launch cannot be stopped once it runs, and neither can the reference product, so a large
// problem is first tried on a corner of itself.
void Measurement::predict(const ProblemCache& cache, double seconds_left) const {
  const std::int64_t corner = backend_.device().kind == Device::Kind::gpu ? 1024 : 256;
  Problem probe = case_.problem;
  probe.m = std::min(probe.m, corner);
  probe.n = std::min(probe.n, corner);
  probe.k = std::min(probe.k, corner);
  const Kernel& kernel = *case_.kernel;
  if (probe == case_.problem) return;
  if (kernel.unsupported != nullptr && kernel.unsupported(probe, backend_.device())) return;

  const double start = now_seconds();
  const ProblemData data(backend_, probe, options_.fill, options_.seed, 1);
  const double reference = cache.holds(case_.problem) ? 0 : now_seconds() - start;
  const std::vector<Launch> launch{kernel.prepare(probe, backend_.device(), data.sets()[0])};
  backend_.run(launch[0]);  // loads the code
  double once = std::numeric_limits<double>::infinity();
  // The fastest of a few: one launch may be held up by whatever else the machine does.
  const double enough = now_seconds() + 0.05;
  for (int tries = 0; tries < 5 && (tries == 0 || now_seconds() < enough); ++tries)
    once = std::min(once, backend_.batch(launch, 1, false)->seconds());
  const double sets = static_cast<double>(ProblemData::set_count(case_.problem, backend_.device()));
  const double launches = sets + 3;  // verify, warm up, sample
  const double row = (reference + once * launches) * flop(case_.problem) / flop(probe);
  if (row > options_.row_budget_seconds)
    throw Skipped("predicted to take " + seconds_text(row) + ", the row budget is " +
                  seconds_text(options_.row_budget_seconds) + " (--gemm_row_budget)");
  if (row > seconds_left)
    throw Skipped("predicted to take " + seconds_text(row) + ", the run budget has " +
                  seconds_text(seconds_left) + " left");
}

void Measurement::prepare() {
  for (const Operands& set : data_->sets())
    launches_.push_back(case_.kernel->prepare(case_.problem, backend_.device(), set));
  data_->poison();
  for (const Launch& launch : launches_) {
    if (interrupted()) throw Interrupted();
    backend_.run(launch);
  }
  launched_ = rotation_sets();
  verify();
}

void Measurement::warm_up() {
  double per_launch = 0;
  const double start = now_seconds();
  std::int64_t count = 1;
  do {
    if (interrupted()) throw Interrupted();
    per_launch = backend_.batch(launches_, count, false)->seconds() / static_cast<double>(count);
    const double wanted = 0.02 / std::max(per_launch, 1e-7);
    count = std::clamp(static_cast<std::int64_t>(wanted), std::int64_t{1}, kMostLaunches);
  } while (now_seconds() - start < options_.warmup_seconds);

  if (!plan_) plan_ = plan_for(per_launch);
}

void Measurement::begin() {
  batch_ = backend_.batch(launches_, plan_->size, plan_->graph);  // from the first set on
  data_->poison();
  launched_ = 0;
}

BatchPlan Measurement::plan_for(double seconds_per_launch) const {
  const bool graph = seconds_per_launch < kGraphBelowSeconds;
  const double enough = std::ceil(options_.sample_seconds / std::max(seconds_per_launch, 1e-7));
  const auto size = std::clamp(static_cast<std::int64_t>(enough), std::int64_t{1}, kMostLaunches);
  // A graph starts over at the first operand set, so that it holds whole rounds of them.
  const std::int64_t sets = rotation_sets();
  return {graph ? (size + sets - 1) / sets * sets : size, graph};
}

double Measurement::sample() {
  if (interrupted()) throw Interrupted();
  const double seconds = batch_->seconds() / static_cast<double>(plan_->size);
  launched_ += plan_->size;
  if (!(seconds > 0)) throw std::runtime_error("a batch of launches took no time: nothing ran");
  return seconds;
}

Verdict Measurement::verify() const {
  const Verdict verdict = data_->judge(case_.problem, std::min(launched_, rotation_sets()));
  if (const auto wrong = complaint(case_.problem, verdict)) throw WrongResult(*wrong, verdict);
  return verdict;
}

}  // namespace gemm::bench
