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
  // ran before it: those that are not far behind start again without the others. Then the fastest
  // of each kind compare once more, each at its own clock: kinds may draw less power than one
  // another.
  std::size_t fastest(const std::vector<std::size_t>& entrants) {
    std::vector<Entrant> all;
    for (const std::size_t index : entrants) all.push_back({index});
    halve(all);
    if (all.size() == 1 || !at_power_limit(all.front())) return all.front().index;
    std::erase_if(all, [](const Entrant& one) { return one.behind > kFar; });
    spent_ = 0;
    time_(all.front().index, kStretchMilliseconds / 2);  // back to the limit
    halve(all);
    at_own_clocks(all);
    return all.front().index;
  }

 private:
  static constexpr std::size_t kFinalists = 3;
  // At the power limit: so much longer than after a rest a launch takes; so much longer than the
  // fastest may start again, and may be compared at its own clock; so many may, and the
  // milliseconds that each runs at a time.
  static constexpr float kThrottled = 1.05F, kFar = 1.5F, kClose = 1.1F, kStretchMilliseconds = 300;
  static constexpr std::size_t kAtOwnClocks = 4;

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

  bool at_power_limit(const Entrant& one) {
    rest_();
    return one.median() > kThrottled * time_(one.index, kBatchMilliseconds).launch;
  }

  // At the power limit the clock is what a kernel's power leaves, and interleaved kernels share
  // one clock. So the fastest of each kind, if it is close, runs for a stretch, once in this order
  // and once in the other, and the second half of the stretch counts.
  void at_own_clocks(std::vector<Entrant>& all) {
    std::ranges::stable_sort(all, {}, &Entrant::behind);
    std::set<std::string> seen;
    std::erase_if(all, [&](const Entrant& one) {
      return one.behind > kClose || seen.size() == kAtOwnClocks ||
             !seen.insert(kinds_.empty() ? std::to_string(one.index) : kinds_[one.index]).second;
    });
    if (all.size() == 1) return;
    for (Entrant& one : all) one.launches.clear();
    for (int way = 0; way < 2; ++way, std::ranges::reverse(all))
      for (Entrant& one : all) {
        const std::size_t before = one.launches.size();
        const float begin = spent_;
        while (spent_ - begin < kStretchMilliseconds / 2) time(one, kStretchMilliseconds / 20);
        one.launches.resize(before);
        while (spent_ - begin < kStretchMilliseconds) time(one, kStretchMilliseconds / 20);
      }
    std::ranges::sort(all, {}, &Entrant::median);
  }

  Time time_;
  std::function<void()> rest_;
  float spent_;  // milliseconds
  const std::vector<std::string>& kinds_;
};

}  // namespace gemm
