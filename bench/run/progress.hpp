// How far a run is, and how long it will still take.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "bench/cases/cases.hpp"

namespace gemm::bench {

// Expects of each case that is left the mean time of those of its precision so far, or of all where
// its precision has none. Times are of a steady clock.
class Progress {
 public:
  Progress(const std::vector<Case>& cases, std::size_t repetitions);

  void begin(const Case& which, double now);
  void end(double now);
  std::size_t done() const { return done_.count; }
  std::size_t total() const { return total_; }
  // Nothing before the first case has ended.
  std::optional<double> seconds_left(double now) const;

 private:
  struct Past {
    std::size_t count = 0;
    double seconds = 0;
  };
  double expected(Precision precision) const;

  std::size_t total_;
  std::map<Precision, std::size_t> left_;  // with the one that runs
  std::map<Precision, Past> past_;
  Past done_;
  std::optional<Precision> running_;
  double began_ = 0;
};

}  // namespace gemm::bench
