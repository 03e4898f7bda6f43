// Does a kernel compute each time it is timed? Samples verify nothing by themselves: a kernel that
// replays an old C, skips what is there already, or computes ahead is right and fast as long as the
// same values are at the same addresses.
//
// Audits are batches at random places among the samples, launched in the same way, on new values,
// with C poisoned. Their results are verified (Freivalds' check), and C must not change between the
// end of the last launch and that of all work on the device. Each operand set is used once in a
// batch, so that nothing in it is seen twice.
//
// Other batches are timed on the old values, written again before them so that cache and clock are
// alike: a kernel that computes each time is as fast on either. And others like those, right behind
// a sample, with nothing written before: a kernel that computes only after a pause is faster there.
// A kernel that computes only so many launches after each pause is faster in the longer samples.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "bench/device/problem_data.hpp"
#include "bench/timing/timing.hpp"
#include "bench/timing/versus.hpp"

namespace gemm::bench {

// A time without the whole work; what() says why.
struct Suspect : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// By what factor launches are faster in a sample than in a batch right behind it, which uses each
// operand set once, if the first launch of the batch does not explain it: the median of pairs.
// `samples` has the seconds that as many launches take in a sample.
std::optional<double> gain_in_samples(const std::vector<double>& batches,
                                      const std::vector<double>& samples);

class Audit {
 public:
  // Of samples of so many launches, which rotate through the data's sets.
  Audit(Backend& backend, ProblemData& data, const Problem& p, std::span<const Launch> launches,
        const BatchPlan& plan, Batch& sample);

  // Now and then, between two samples, of which the last one had so many seconds a launch. Throws
  // WrongResult, and std::runtime_error for work that is done for another launch or too late.
  void perhaps(double sample_seconds);
  // The remaining audits, and more if the times differ, until the deadline (now_seconds()).
  // Throws as perhaps() does, and Suspect.
  AuditResult finish(double deadline);

 private:
  void on_new_values();
  void on_old_values();
  void once(bool renew);
  void write_results();
  // Each launch alone, submitted as in a batch, writes its own C and no other.
  void one_by_one();
  double timed();
  void undisturbed(double sample_seconds);
  void fingerprints(std::int64_t count);
  std::vector<std::uint64_t> fetched(std::int64_t count);
  void check(std::uint64_t seed);

  Backend& backend_;
  ProblemData& data_;
  Problem problem_;
  std::span<const Launch> launches_;
  Batch& sample_;
  std::int64_t sample_size_;  // launches
  bool graph_;
  std::mt19937_64 random_{std::random_device{}()};
  std::int64_t sets_, alone_;     // operand sets of a batch, and whose launches are looked at alone
  std::int64_t first_;            // of them, taken at random
  std::unique_ptr<Batch> batch_;  // a launch on each of them
  double started_;
  double cost_ = 0;  // seconds of all audits so far
  int since_ = 0;    // samples since the last one
  Buffer prints_;    // of every set's C
  // Seconds of a batch, and of as many launches in the sample before each undisturbed one.
  std::vector<double> new_, old_, undisturbed_, in_samples_;
};

}  // namespace gemm::bench
