#include "bench/run/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace gemm::bench {

Progress::Progress(const std::vector<Case>& cases, std::size_t repetitions)
    : total_(cases.size() * repetitions) {
  for (const Case& one : cases) left_[kind_of(one)] += repetitions;
}

Progress::Kind Progress::kind_of(const Case& which) {
  return {which.problem.precision, static_cast<int>(std::log2(flop(which.problem)))};
}

void Progress::begin(const Case& which, double now) {
  running_ = kind_of(which);
  began_ = now;
}

void Progress::end(double now) {
  if (!running_) return;
  const Kind kind = *std::exchange(running_, std::nullopt);
  Past& past = past_[kind];
  ++past.count;
  past.seconds += now - began_;
  spent_ += now - began_;
  ++done_;
  if (left_[kind] > 0) --left_[kind];
  total_ = std::max(total_, done_);  // Google Benchmark may call a case to warm up
}

double Progress::expected(Kind kind) const {
  // Another precision is as far as twice the edge.
  constexpr int kOtherPrecision = 3;
  const auto distance = [&](const auto& other) {
    return std::abs(other.first.size - kind.size) +
           (other.first.precision == kind.precision ? 0 : kOtherPrecision);
  };
  const Past& past = std::ranges::min_element(past_, {}, distance)->second;
  return past.seconds / static_cast<double>(past.count);
}

std::optional<double> Progress::seconds_left(double now) const {
  if (done_ == 0) return std::nullopt;
  double seconds = 0;
  for (const auto& [kind, count] : left_)
    if (count > 0) seconds += static_cast<double>(count) * expected(kind);
  if (running_) seconds -= std::min(now - began_, expected(*running_));
  return std::max(0.0, seconds);
}

double Progress::share(double now) const {
  const double spent = spent_ + (running_ ? now - began_ : 0);
  const auto left = seconds_left(now);
  return left && spent > 0 ? spent / (spent + *left) : 0;
}

}  // namespace gemm::bench
