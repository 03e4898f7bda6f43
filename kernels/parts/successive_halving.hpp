// Chooses the fastest of several ways of doing the same work by successive halving: each round
// times a batch of all that are left, and the faster half goes on with batches of twice the time.
// It knows neither GPU nor launch, so that tests show it a device whose clock depends on power.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gemm {

class SuccessiveHalving {
 public:
  struct Timing {
    float launch, whole;  // milliseconds: of one launch, and of all that were timed
  };
  // Runs an entrant for about so many milliseconds.
  using Time = std::function<Timing(std::size_t entrant, float milliseconds)>;

  // Approximate time budget in milliseconds. At the power limit that may be exceeded.
  static constexpr float kMilliseconds = 400;
  static constexpr float kBatchMilliseconds = 1;  // the first timing of a launch overestimates it

  // `rest` lets the device idle until it has its highest clock again. `spent`: milliseconds of the
  // budget. `kinds`: of each entrant; empty: each is one of its own.
  SuccessiveHalving(Time time, std::function<void()> rest, float spent,
                    const std::vector<std::string>& kinds)
      : time_(std::move(time)), rest_(std::move(rest)), spent_(spent), kinds_(kinds) {}

  // The fastest of at least one entrant. At the power limit the clock of an entrant depends on who
  // ran before it: those that are not far behind start again without the others. Interleaved, they
  // share one clock. So the fastest of each kind, if it is close, compare each at its own clock,
  // then the plans of the kind that wins.
  std::size_t fastest(const std::vector<std::size_t>& entrants) {
    std::vector<Entrant> all;
    for (const std::size_t index : entrants) all.push_back({index});
    halve(all);
    if (all.size() == 1 || !at_power_limit(all.front())) return all.front().index;
    std::erase_if(all, [](const Entrant& one) { return one.behind > kFar; });
    spent_ = 0;
    time_(all.front().index, kSettleMilliseconds);
    halve(all);
    std::erase_if(all, [](const Entrant& one) { return one.behind > kClose; });
    std::ranges::stable_sort(all, {}, &Entrant::behind);
    std::vector<Entrant> firsts;
    std::set<std::string> seen;
    for (const Entrant& one : all)
      if (firsts.size() < kKinds && seen.insert(kind_of(one)).second) firsts.push_back(one);
    at_own_clocks(firsts);
    const std::string kind = kind_of(firsts.front());
    std::erase_if(all, [&](const Entrant& one) { return kind_of(one) != kind; });
    at_own_clocks(all);
    return all.front().index;
  }

 private:
  static constexpr std::size_t kFinalists = 3;
  // At the power limit: so much longer than after a rest a launch takes; so much longer than the
  // fastest may start again, and may be compared at its own clock; so many kinds may.
  static constexpr float kThrottled = 1.05F, kFar = 1.5F, kClose = 1.1F;
  static constexpr float kLongMilliseconds = 2;  // of a launch that is taken to be at the limit
  static constexpr std::size_t kKinds = 6;
  // Milliseconds, of an H200: for so long after a rest the clock swings; so long an entrant runs
  // before it counts, while the clock follows its power; so long it counts.
  static constexpr float kSettleMilliseconds = 2000, kLeadMilliseconds = 40,
                         kStretchMilliseconds = 80;

  struct Entrant {
    std::size_t index;
    std::vector<float> launches = {};  // milliseconds
    float behind = 1;                  // its median over that of the fastest, in its last round

    float median() const {
      std::vector<float> sorted = launches;
      std::ranges::sort(sorted);
      return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
    }
  };

  void time(Entrant& one, float milliseconds) {
    const auto [launch, whole] = time_(one.index, milliseconds);
    one.launches.push_back(launch);
    spent_ += whole;
  }

  // Puts the fastest first, then those that were left with it, then the others. Every other round
  // goes backwards, so that each runs after two different ones.
  void halve(std::vector<Entrant>& all) {
    auto end = all.end();
    for (float wanted = kBatchMilliseconds; end - all.begin() > 1; wanted *= 2) {
      const std::ranges::subrange left(all.begin(), end);
      const bool last = left.size() <= kFinalists;
      for (Entrant& one : left) one.launches.clear();
      for (int round = 0; round < (last ? 8 : 2) && (round < 1 || spent_ < kMilliseconds);
           ++round) {
        for (Entrant& one : left) time(one, wanted);
        std::ranges::reverse(left);
      }
      std::ranges::sort(left, {}, &Entrant::median);
      for (Entrant& one : left) one.behind = one.median() / left.front().median();
      if (last || spent_ > kMilliseconds) break;
      end = all.begin() + static_cast<std::ptrdiff_t>(std::max(kFinalists, (left.size() + 1) / 2));
    }
  }

  // Within a launch of some milliseconds the clock falls: one after a rest would tell nothing.
  bool at_power_limit(const Entrant& one) {
    if (one.median() > kLongMilliseconds) return true;
    rest_();
    return one.median() > kThrottled * time_(one.index, kBatchMilliseconds).launch;
  }

  std::string kind_of(const Entrant& one) const {
    return kinds_.empty() ? std::to_string(one.index) : kinds_[one.index];
  }

  // Puts the fastest first, each at its own clock: all once in this order and once in the other,
  // and the first of them once more.
  void at_own_clocks(std::vector<Entrant>& some) {
    for (Entrant& one : some) one.launches.clear();
    for (int pass = 0; pass < 2 && some.size() > 1; ++pass) {
      for (int way = 0; way < 2; ++way, std::ranges::reverse(some))
        for (Entrant& one : some) {
          time_(one.index, kLeadMilliseconds);
          time(one, kStretchMilliseconds);
        }
      std::ranges::sort(some, {}, &Entrant::median);
      some.resize(std::min(kFinalists, some.size()), {0});
    }
  }

  Time time_;
  std::function<void()> rest_;
  float spent_;  // milliseconds
  const std::vector<std::string>& kinds_;
};

}  // namespace gemm
