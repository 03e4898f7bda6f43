#include "bench/device/batch.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "bench/base/clock.hpp"

namespace gemm::bench {
namespace {

// Seconds in which the host enqueues the start and the first launch, or the graph: twice what the
// time before took. An old driver takes 0.2 us for each of a graph's 1,000 nodes.
constexpr double kShortestHeadStart = 20e-6, kLongestHeadStart = 1e-3;

}  // namespace

Batch::Batch(Backend& backend, std::span<const Launch> launches, std::int64_t count, bool graph)
    : backend_(backend),
      count_(count),
      start_(backend.mark()),
      stop_(backend.mark()),
      head_start_(kShortestHeadStart) {
  const auto sets = std::ssize(launches);
  std::size_t next = 0;
  for (std::int64_t round = 0; round < sets / std::gcd(sets, count); ++round) {
    std::vector<const Launch*> rotated;
    for (std::int64_t i = 0; i < count; ++i) rotated.push_back(&launches[next++ % launches.size()]);
    rounds_.push_back(backend.sequence(std::move(rotated), graph));
  }
}

Elapsed Batch::time() {
  const double before = now_seconds();
  start_->set(Mark::Clock::before, head_start_);
  const double first = rounds_[turn_++ % rounds_.size()]->enqueue();
  stop_->set(Mark::Clock::after);
  head_start_ = std::clamp(2 * (first - before), kShortestHeadStart, kLongestHeadStart);
  return backend_.between(*start_, *stop_);
}

}  // namespace gemm::bench
