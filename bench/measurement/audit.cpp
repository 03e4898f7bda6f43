#include "bench/measurement/audit.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/base/clock.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/text.hpp"
#include "bench/measurement/measurement.hpp"
#include "bench/timing/versus.hpp"

namespace gemm::bench {
namespace {

constexpr std::size_t kFewest = 2, kUsual = 6, kMost = 24;  // batches of each kind
constexpr double kShare = 0.08;        // of a row's time that audits may take, beyond the fewest
constexpr std::uint64_t kOneIn = 12;   // places
constexpr std::int64_t kOneByOne = 4;  // sets whose launches are looked at alone
constexpr std::int64_t kChecked = 2;   // sets of a batch whose C is verified

// If new values are slower by this factor, and the interval excludes the second one, neither chance
// nor caches explain it. With fewer batches than kMost, where the row's budget ends them, the
// interval says little: then each batch on new values must be slower than each on old ones by the
// third, with enough batches that one order in so many looks like that by chance.
constexpr double kSuspicious = 1.05, kNoChance = 1.03, kGross = 1.5, kOrders = 50;

// Whether all of one are larger than all of the other by kGross, and that is no chance.
bool apart(const std::vector<double>& slow, const std::vector<double>& fast) {
  double orders = 1;  // in which as many may come
  for (std::size_t i = 1; i <= fast.size(); ++i)
    orders *= static_cast<double>(slow.size() + i) / static_cast<double>(i);
  return orders >= kOrders && std::ranges::min(slow) > kGross * std::ranges::max(fast);
}

}  // namespace

Audit::Audit(Backend& backend, ProblemData& data, const Problem& p,
             std::span<const Launch> launches, const BatchPlan& plan, Batch& batch)
    : backend_(backend),
      data_(data),
      problem_(p),
      launches_(launches),
      batch_(batch),
      graph_(plan.graph),
      sets_(std::min(plan.size, static_cast<std::int64_t>(launches.size()))),
      started_(now_seconds()),
      prints_(backend.allocate(sizeof(std::uint64_t) * launches.size())) {}

void Audit::perhaps() {
  const double passed = now_seconds() - started_;
  if (new_.size() + old_.size() >= 2 * kUsual || random_() % kOneIn != 0 || cost_ > kShare * passed)
    return;
  once(new_.size() < old_.size() || (new_.size() == old_.size() && random_() % 2 == 0));
}

double Audit::timed(const std::function<void()>& afterwards) {
  batch_.rewind();
  return batch_.time(afterwards).seconds;
}

// So that a kernel that skips results that are there already finds them in the next batch on old
// values.
void Audit::write_results(std::int64_t renewed) {
  data_.restore(std::max(renewed, sets_));
  timed({});
}

// Both kinds write their values before the batch, so that the caches are alike.
void Audit::once(bool renew) {
  if (interrupted()) throw Interrupted();
  const double start = now_seconds();
  if (renew) {
    const std::uint64_t seed = random_();
    data_.renew(sets_, seed);
    new_.push_back(timed([&] { fingerprints(sets_); }));
    check(seed);
    write_results(sets_);
  } else {
    if (old_.empty()) write_results(sets_);
    data_.restore(sets_);
    old_.push_back(timed([&] { fingerprints(sets_); }));
  }
  cost_ += now_seconds() - start;
}

// In the stream, right behind the last launch.
void Audit::fingerprints(std::int64_t sets) {
  const OperandLayout layout(problem_);
  auto* to = reinterpret_cast<std::uint64_t*>(prints_.get());
  for (std::int64_t set = 0; set < sets; ++set)
    backend_.fingerprint(data_.sets()[static_cast<std::size_t>(set)].c,
                         static_cast<std::size_t>(layout.c_bytes), to + set);
}

std::vector<std::uint64_t> Audit::fetched(std::int64_t sets) {
  std::vector<std::uint64_t> prints(static_cast<std::size_t>(sets));
  backend_.copy(prints.data(), prints_.get(), prints.size() * sizeof(std::uint64_t));
  return prints;
}

void Audit::one_by_one() {
  const std::int64_t count = std::min<std::int64_t>(kOneByOne, std::ssize(launches_));
  data_.renew(count, random_());
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random_);
  for (const std::int64_t called : order) {
    fingerprints(count);
    std::vector<std::uint64_t> before = fetched(count);
    backend_.batch(launches_.subspan(static_cast<std::size_t>(called), 1), 1, graph_)->time();
    backend_.finish_all();
    fingerprints(count);
    std::vector<std::uint64_t> after = fetched(count);
    const auto own = static_cast<std::size_t>(called);
    if (after[own] == before[own])
      throw std::runtime_error("a launch did not write its C: does every launch compute?");
    after[own] = before[own];
    if (after != before)
      throw std::runtime_error(
          "a launch wrote the C of another launch: does it use the pointers that it was prepared "
          "with?");
  }
  write_results(count);
}

void Audit::check(std::uint64_t seed) {
  const std::vector<std::uint64_t> in_time = fetched(sets_);
  backend_.finish_all();
  fingerprints(sets_);
  if (in_time != fetched(sets_))
    throw std::runtime_error(
        "C was written after the launches had ended: do all of them work on the given stream?");
  for (std::int64_t i = 0; i < std::min(sets_, kChecked); ++i) {
    const auto set = sets_ <= kChecked
                         ? i
                         : static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(sets_));
    const Verdict verdict = data_.judge_renewed(problem_, set, seed);
    if (const auto wrong = complaint(problem_, verdict))
      throw WrongResult("on new values at the same addresses: " + *wrong, verdict);
  }
}

AuditResult Audit::finish(double deadline) {
  const auto more = [&](std::size_t count) {
    while (new_.size() < count || old_.size() < count) {
      if (new_.size() >= kFewest && old_.size() >= kFewest && now_seconds() > deadline) return;
      once(new_.size() < count && (old_.size() >= count || random_() % 2 == 0));
    }
  };
  const auto compared = [&] {
    const std::size_t pairs = std::min(new_.size(), old_.size());
    const std::vector<double> ours(new_.begin(), new_.begin() + static_cast<std::ptrdiff_t>(pairs)),
        theirs(old_.begin(), old_.begin() + static_cast<std::ptrdiff_t>(pairs));
    const Versus found = compare_pairs(theirs, ours);  // speed on old values over that on new ones
    return AuditResult{static_cast<std::int64_t>(pairs), found.ratio, found.low, found.high};
  };
  const auto suspicious = [](const AuditResult& found) {
    return !(found.ratio <= kSuspicious || found.low <= kNoChance);  // so that NaN is
  };
  one_by_one();
  more(cost_ > kShare * (now_seconds() - started_) ? kFewest : kUsual);
  AuditResult found = compared();
  for (std::size_t count = 2 * kUsual; suspicious(found) && count <= kMost; count *= 2) {
    more(count);
    found = compared();
  }
  const bool enough = found.batches >= static_cast<std::int64_t>(kMost);
  if (suspicious(found) && (enough || apart(new_, old_)))
    throw Suspect(
        formatted("suspect: right, but %.3g times as fast on values that it has seen before "
                  "(%.3g to %.3g): does it compute the product in every launch?",
                  found.ratio, found.low, found.high));
  return found;
}

}  // namespace gemm::bench
