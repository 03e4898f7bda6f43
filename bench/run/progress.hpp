// How far a run is, and how long it will still take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

namespace gemm::bench {

// Expects of each case that is left the mean time of those so far, which budgets make alike. Times
// are of a steady clock.
class Progress {
 public:
  Progress(std::size_t total, double now) : total_(total), began_(now), ended_(now) {}

  void end_case(double now) {
    ended_ = now;
    total_ = std::max(total_, ++done_);  // Google Benchmark may call a case to warm up
  }
  std::size_t done() const { return done_; }
  std::size_t total() const { return total_; }
  // Nothing before the first case has ended.
  std::optional<double> seconds_left(double now) const {
    if (done_ == 0) return std::nullopt;
    const double each = (ended_ - began_) / static_cast<double>(done_);
    const double all = each * static_cast<double>(total_ - done_);
    return std::max(0.0, all - std::min(now - ended_, each));
  }
  // Of the time of the whole run; 0 where that is not known.
  double share(double now) const {
    const auto left = seconds_left(now);
    return left && now > began_ ? (now - began_) / (now - began_ + *left) : 0;
  }

 private:
  std::size_t total_, done_ = 0;
  double began_, ended_;
};

}  // namespace gemm::bench
