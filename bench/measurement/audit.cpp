#include "bench/measurement/audit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <string>

#include "bench/base/clock.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/text.hpp"
#include "bench/measurement/measurement.hpp"

namespace gemm::bench {
namespace {

constexpr std::size_t kFewest = 2, kUsual = 6, kMost = 24;  // batches of each kind
constexpr double kShare = 0.08;        // of a row's time that audits may take, beyond the fewest
constexpr std::uint64_t kOneIn = 12;   // places
constexpr std::int64_t kOneByOne = 4;  // sets whose launches are looked at alone
constexpr std::int64_t kChecked = 2;   // sets of a batch whose C is verified
constexpr std::int64_t kMostSets = 64;
constexpr int kApart = 5;  // samples between an audit and an undisturbed batch

// If new values are slower by kSuspicious, and by more than kNoChance beyond doubt, neither chance
// nor caches explain it. Batches after a pause may be slower by kGross, and by kColdStartSeconds
// for a first launch that finds its code in no cache. With fewer batches than kMost, where the
// row's budget ends them, each must be slower than all of the others by kGross.
constexpr double kSuspicious = 1.05, kNoChance = 1.03, kGross = 1.5;
constexpr double kColdStartSeconds = 20e-6;

// Whether one is larger than so much of the other but for a chance of 1 in 30,000 (Mann and Whitney
// 1947, 4 deviations). Of few, all must be, and one order in 50 looks like that by chance.
bool larger(const std::vector<double>& slow, const std::vector<double>& fast, double factor,
            double seconds = 0) {
  const auto n = static_cast<double>(slow.size()), m = static_cast<double>(fast.size());
  const bool few = std::min(slow.size(), fast.size()) < kMost;
  if (few) factor = kGross;
  double wins = 0, orders = 1;
  for (const double one : slow)
    for (const double other : fast) wins += one > factor * other + seconds ? 1 : 0;
  for (double i = 1; i <= m; ++i) orders *= (n + i) / i;
  return few ? wins == n * m && orders >= 50
             : wins > n * m / 2 + 4 * std::sqrt(n * m * (n + m + 1) / 12);
}

}  // namespace

std::optional<double> gain_in_samples(const std::vector<double>& batches,
                                      const std::vector<double>& samples) {
  std::vector<double> gains;
  for (std::size_t i = 0; i < std::min(batches.size(), samples.size()); ++i)
    gains.push_back((batches[i] - kColdStartSeconds) / samples[i]);
  if (gains.empty()) return std::nullopt;
  const auto middle = gains.begin() + (std::ssize(gains) - 1) / 2;
  std::ranges::nth_element(gains, middle);
  if (*middle <= kGross) return std::nullopt;
  return *middle;
}

Audit::Audit(Backend& backend, ProblemData& data, const Problem& p,
             std::span<const Launch> launches, const BatchPlan& plan, Batch& sample)
    : backend_(backend),
      data_(data),
      problem_(p),
      launches_(launches),
      sample_(sample),
      sample_size_(plan.size),
      graph_(plan.graph),
      sets_(std::min({plan.size, kMostSets, std::ssize(launches)})),
      alone_(std::min(kOneByOne, std::ssize(launches))),
      first_(static_cast<std::int64_t>(
          random_() %
          static_cast<std::uint64_t>(std::ssize(launches) - std::max(sets_, alone_) + 1))),
      batch_(backend.batch(launches.subspan(first_, sets_), sets_, graph_)),
      started_(now_seconds()),
      prints_(backend.allocate(sizeof(std::uint64_t) * std::max(sets_, alone_))) {}

void Audit::undisturbed(double sample_seconds) {
  undisturbed_.push_back(timed());
  in_samples_.push_back(sample_seconds * static_cast<double>(sets_));
}

void Audit::perhaps(double sample_seconds) {
  if (++since_ >= kApart && undisturbed_.size() < old_.size()) {
    undisturbed(sample_seconds);
    return;
  }
  const double passed = now_seconds() - started_;
  if (new_.size() + old_.size() >= 2 * kUsual || random_() % kOneIn != 0 || cost_ > kShare * passed)
    return;
  once(new_.size() < old_.size() || (new_.size() == old_.size() && random_() % 2 == 0));
}

double Audit::timed() {
  batch_->rewind();
  return batch_->time([&] { fingerprints(sets_); }).seconds;
}

// So that a kernel that skips results that are there already finds them in the next batch on old
// values.
void Audit::write_results() {
  data_.restore(first_, sets_);
  timed();
}

void Audit::on_new_values() {
  const std::uint64_t seed = random_();
  data_.renew(first_, sets_, seed);
  new_.push_back(timed());
  check(seed);
  write_results();
}

void Audit::on_old_values() {
  if (old_.empty()) write_results();
  data_.restore(first_, sets_);
  old_.push_back(timed());
}

void Audit::once(bool renew) {
  if (interrupted()) throw Interrupted();
  const double start = now_seconds();
  renew ? on_new_values() : on_old_values();
  cost_ += now_seconds() - start;
  since_ = 0;
}

// In the stream, right behind the last launch.
void Audit::fingerprints(std::int64_t count) {
  const OperandLayout layout(problem_);
  auto* to = reinterpret_cast<std::uint64_t*>(prints_.get());
  for (std::int64_t i = 0; i < count; ++i)
    backend_.fingerprint(data_.sets()[first_ + i].c, layout.c_bytes, to + i);
}

std::vector<std::uint64_t> Audit::fetched(std::int64_t count) {
  std::vector<std::uint64_t> prints(count);
  backend_.copy(prints.data(), prints_.get(), prints.size() * sizeof(std::uint64_t));
  return prints;
}

void Audit::one_by_one() {
  data_.renew(first_, alone_, random_());
  std::vector<std::int64_t> order(alone_);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random_);
  for (const std::int64_t called : order) {
    fingerprints(alone_);
    std::vector<std::uint64_t> before = fetched(alone_);
    backend_.batch(launches_.subspan(first_ + called, 1), 1, graph_)->time();
    backend_.finish_all();
    fingerprints(alone_);
    std::vector<std::uint64_t> after = fetched(alone_);
    if (after[called] == before[called])
      throw std::runtime_error("a launch did not write its C: does every launch compute?");
    after[called] = before[called];
    if (after != before)
      throw std::runtime_error(
          "a launch wrote the C of another launch: does it use the pointers that it was prepared "
          "with?");
  }
  data_.restore(first_, alone_);
  write_results();
}

void Audit::check(std::uint64_t seed) {
  const std::vector<std::uint64_t> in_time = fetched(sets_);
  backend_.finish_all();
  fingerprints(sets_);
  if (in_time != fetched(sets_))
    throw std::runtime_error(
        "C was written after the launches had ended: do all of them work on the given stream?");
  for (std::int64_t i = 0; i < std::min(sets_, kChecked); ++i) {
    const std::int64_t set =
        first_ + (sets_ <= kChecked
                      ? i
                      : static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(sets_)));
    const Verdict verdict = data_.judge_renewed(problem_, set, seed);
    if (const auto wrong = complaint(problem_, verdict))
      throw WrongResult("on new values at the same addresses: " + *wrong, verdict);
  }
}

AuditResult Audit::finish(double deadline) {
  const auto late = [&] { return now_seconds() > deadline; };
  const auto more = [&](std::size_t count) {
    while (new_.size() < count || old_.size() < count) {
      if (new_.size() >= kFewest && old_.size() >= kFewest && late()) break;
      once(new_.size() < count && (old_.size() >= count || random_() % 2 == 0));
    }
    while (undisturbed_.size() < old_.size() && !(undisturbed_.size() >= kFewest && late())) {
      double last = 0;
      for (int i = 0; i < kApart; ++i) last = sample_.time().seconds;
      undisturbed(last / static_cast<double>(sample_size_));
    }
  };
  const auto slowdown = [](const std::vector<double>& slow, const std::vector<double>& fast) {
    const auto pairs = static_cast<std::ptrdiff_t>(std::min(slow.size(), fast.size()));
    return compare_pairs({fast.begin(), fast.begin() + pairs},
                         {slow.begin(), slow.begin() + pairs});
  };
  const auto compared = [&] {
    const Versus found = slowdown(new_, old_);
    return AuditResult{found.samples, found.ratio, found.low, found.high,
                       slowdown(old_, undisturbed_).ratio};
  };
  // On a CPU, threads sleep after a pause, and other programs run: a batch may take ten times as
  // long as the sample before it.
  const bool gpu = backend_.device().kind == Device::Kind::gpu;
  const auto suspicious = [&](const AuditResult& found) {
    return !(found.ratio <= kSuspicious || found.low <= kNoChance) ||  // so that NaN is
           (gpu && !(found.after_pause <= kGross));
  };
  one_by_one();
  more(cost_ > kShare * (now_seconds() - started_) ? kFewest : kUsual);
  AuditResult found = compared();
  for (std::size_t count = 2 * kUsual; suspicious(found) && count <= kMost; count *= 2) {
    more(count);
    found = compared();
  }
  if (!(found.ratio <= kSuspicious) && larger(new_, old_, kNoChance))
    throw Suspect(
        formatted("right, but %.3g times as fast on values that it has seen before "
                  "(%.3g to %.3g): does it compute the product in every launch?",
                  found.ratio, found.low, found.high));
  if (gpu && larger(old_, undisturbed_, kGross, kColdStartSeconds))
    throw Suspect(
        formatted("right, but %.3g times as fast right after a sample as after a pause: "
                  "does it compute the product in every launch?",
                  found.after_pause));
  const auto gain = gpu ? gain_in_samples(undisturbed_, in_samples_) : std::nullopt;
  if (gain)
    throw Suspect(formatted(
        "right, but %.3g times as fast in samples as in batches that use each operand set "
        "once: does it compute the product in every launch?",
        *gain));
  return found;
}

}  // namespace gemm::bench
