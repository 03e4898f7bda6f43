// A kernel and a problem as a Google Benchmark fixture. One Google Benchmark iteration is one
// launch; launches are timed in batches, so that an event pair spans milliseconds.
#pragma once

#include <benchmark/benchmark.h>

#include "bench/suite.hpp"

namespace gemm::bench {

class GemmFixture : public benchmark::Fixture {
 public:
  GemmFixture(Suite& suite, const Case& which) : suite_(suite), case_(which) {}

  using benchmark::Fixture::SetUp;
  using benchmark::Fixture::TearDown;
  void SetUp(benchmark::State& state) override;
  void TearDown(benchmark::State& state) override;

 protected:
  void BenchmarkCase(benchmark::State& state) override;

 private:
  // Runs a step and turns what it throws into a skipped or failed row.
  template <typename Step>
  void guarded(Step&& step);

  Suite& suite_;
  Case case_;
  Measurement* measurement_ = nullptr;  // of this call; null once something went wrong
  Row row_;
  std::optional<BatchPlan> plan_;               // of the first call, kept for all repetitions
  std::string settled_skip_, settled_failure_;  // said once, true for every further call
};

}  // namespace gemm::bench
