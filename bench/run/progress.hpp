// How far a run is, and how long it will still take.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "bench/cases/cases.hpp"

namespace gemm::bench {

// Expects of each case that is left the mean time of those so far that are nearest in size, of its
// precision if there are any. Times are of a steady clock.
class Progress {
 public:
  Progress(const std::vector<Case>& cases, std::size_t repetitions);

  void begin(const Case& which, double now);
  void end(double now);
  std::size_t done() const { return done_; }
  std::size_t total() const { return total_; }
  // Nothing before the first case has ended.
  std::optional<double> seconds_left(double now) const;
  // Of the time of the whole run; 0 where that is not known.
  double share(double now) const;

 private:
  struct Kind {
    Precision precision;
    int size;  // logarithm of the FLOP
    auto operator<=>(const Kind&) const = default;
  };
  struct Past {
    std::size_t count = 0;
    double seconds = 0;
  };
  static Kind kind_of(const Case& which);
  double expected(Kind kind) const;

  std::size_t total_, done_ = 0;
  double spent_ = 0;
  std::map<Kind, std::size_t> left_;  // with the one that runs
  std::map<Kind, Past> past_;
  std::optional<Kind> running_;
  double began_ = 0;
};

}  // namespace gemm::bench
