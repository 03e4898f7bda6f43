// A kernel and a problem as a Google Benchmark fixture. One Google Benchmark iteration is one
// sample, a batch of launches, and its time that of one launch. How many there are is for the
// timing plan to say, in one call of the benchmark.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <exception>
#include <optional>

#include "bench/run/progress.hpp"
#include "bench/run/suite.hpp"

namespace gemm::bench {

class GemmFixture : public benchmark::Fixture {
 public:
  // Where some cases have a transfer, all have its counters: Google Benchmark's CSV wants the same
  // ones in every row.
  GemmFixture(Suite& suite, Progress& progress, const Case& which, bool counts_copies,
              bool shows_status)
      : suite_(suite),
        progress_(progress),
        case_(which),
        counts_copies_(counts_copies),
        shows_status_(shows_status) {}

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
  Progress& progress_;
  Case case_;
  bool counts_copies_, shows_status_;
  Row row_;
  // Of the first call, and reported for every further one, which takes as many samples unless its
  // budget ends them: Google Benchmark aborts when repetitions differ in it.
  std::optional<std::int64_t> iterations_;
  std::exception_ptr settled_;  // what the first call threw holds for every further one
};

}  // namespace gemm::bench
