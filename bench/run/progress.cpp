#include "bench/run/progress.hpp"

#include <algorithm>
#include <utility>

namespace gemm::bench {

Progress::Progress(const std::vector<Case>& cases, std::size_t repetitions)
    : total_(cases.size() * repetitions) {
  for (const Case& one : cases) left_[one.problem.precision] += repetitions;
}

void Progress::begin(const Case& which, double now) {
  running_ = which.problem.precision;
  began_ = now;
}

void Progress::end(double now) {
  if (!running_) return;
  const Precision precision = *std::exchange(running_, std::nullopt);
  for (Past* past : {&past_[precision], &done_}) {
    ++past->count;
    past->seconds += now - began_;
  }
  if (left_[precision] > 0) --left_[precision];
  total_ = std::max(total_, done_.count);  // Google Benchmark may call a case to warm up
}

double Progress::expected(Precision precision) const {
  const auto found = past_.find(precision);
  const Past& past = found == past_.end() ? done_ : found->second;
  return past.seconds / static_cast<double>(past.count);
}

std::optional<double> Progress::seconds_left(double now) const {
  if (done_.count == 0) return std::nullopt;
  double seconds = 0;
  for (const auto& [precision, count] : left_)
    if (count > 0) seconds += static_cast<double>(count) * expected(precision);
  if (running_) seconds -= std::min(now - began_, expected(*running_));
  return std::max(0.0, seconds);
}

}  // namespace gemm::bench
