// What a run prints and writes: a console table with progress, and the record.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/record/record_file.hpp"
#include "bench/run/suite.hpp"

namespace gemm::bench {

// One line a row, with how far the run is: "[ 3/80  0:12 of about 2:40]".
class TableReporter : public benchmark::BenchmarkReporter {
 public:
  TableReporter(Suite& suite, std::size_t cases) : suite_(suite), cases_(cases) {}
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;  // says how all of it was measured

 private:
  std::string progress() const;
  void print(const Run& run, const Row& row);
  void print_aggregate(const Run& run);

  Suite& suite_;
  std::size_t cases_;
  std::set<std::string> done_;
  std::set<std::string> deviations_;  // already said
  int name_width_ = 40;
};

// Hands what has a time to the reporter that --benchmark_format names, and says the rest on stderr.
class TimedRowsReporter : public benchmark::BenchmarkReporter {
 public:
  explicit TimedRowsReporter(Suite& suite) : suite_(suite) {}
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override { inner_->Finalize(); }

 private:
  Suite& suite_;
  benchmark::BenchmarkReporter* inner_ = benchmark::CreateDefaultDisplayReporter();  // not ours
};

// The record, handed on whole at the end; until then it is in the file after every row.
class RecordReporter : public benchmark::BenchmarkReporter {
 public:
  using Sink = std::function<void(const std::string& document)>;

  // The keys of `extra` join the context. `file` may be null.
  RecordReporter(Suite& suite, nlohmann::ordered_json extra, RecordFile* file, Sink last)
      : suite_(suite), context_(std::move(extra)), file_(file), last_(std::move(last)) {}
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  struct Entry {
    nlohmann::ordered_json benchmark;
    std::optional<Row> row;  // of an iteration row
  };
  // Both as of now: every row is held against the fastest library row so far.
  nlohmann::ordered_json context(bool complete) const;
  nlohmann::ordered_json benchmark(const Entry& entry) const;

  Suite& suite_;
  nlohmann::ordered_json context_;
  std::vector<Entry> entries_;
  std::string kept_;  // the entries, each as of its end
  RecordFile* file_;
  Sink last_;
};

// The record before the console, so that what is shown as finished is on the disk. Google
// Benchmark would have it the other way round; to it the two are one console.
class RecordFirst : public benchmark::BenchmarkReporter {
 public:
  RecordFirst(RecordReporter& record, benchmark::BenchmarkReporter& console, const Results& results,
              bool aggregates_only)
      : record_(record), console_(console), results_(results), aggregates_only_(aggregates_only) {}
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  RecordReporter& record_;
  benchmark::BenchmarkReporter& console_;
  const Results& results_;
  bool aggregates_only_;  // on the console, where there are any
};

}  // namespace gemm::bench
