// A case as a Google Benchmark. It has one iteration, whose time is the median of the samples: how
// many there are is for the timing plan to say.
#pragma once

#include <benchmark/benchmark.h>

#include <exception>
#include <utility>

#include "bench/run/progress.hpp"
#include "bench/run/session.hpp"

namespace gemm::bench {

// What all cases of a run have in common.
struct CaseOutput {
  bool status = false;    // a status line says which case runs
  bool failures = false;  // go to stderr, where the display leaves them out
};

class GemmCase {
 public:
  GemmCase(Session& session, Progress& progress, Case which, CaseOutput output)
      : session_(session), progress_(progress), case_(std::move(which)), output_(output) {}

  void operator()(benchmark::State& state);

 private:
  void measure(Row& row);
  void count(benchmark::State& state, const Row& row) const;

  Session& session_;
  Progress& progress_;
  Case case_;
  CaseOutput output_;
  std::exception_ptr failure_;  // what the first repetition threw holds for the others
};

}  // namespace gemm::bench
