// What Google Benchmark calls with each result: the console and the record.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/record/record_file.hpp"
#include "bench/run/console.hpp"
#include "bench/run/progress.hpp"
#include "bench/run/suite.hpp"

namespace gemm::bench {

// The console: results above a status line on a terminal, else a line each.
class TableReporter : public benchmark::BenchmarkReporter {
 public:
  TableReporter(Suite& suite, const Progress& progress, std::size_t longest_name)
      : suite_(suite), progress_(progress), console_(suite.results(), longest_name) {}
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  void print_aggregate(const Run& run);

  Suite& suite_;
  const Progress& progress_;
  Console console_;
};

// Hands timed results to the reporter that --benchmark_format names, and prints others on stderr.
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
  // Both as of now: every result is compared with the fastest library result so far.
  nlohmann::ordered_json context(bool complete) const;
  nlohmann::ordered_json benchmark(const Entry& entry) const;

  Suite& suite_;
  nlohmann::ordered_json context_;
  std::vector<Entry> entries_;
  std::string kept_;  // the entries, each as of its end
  RecordFile* file_;
  Sink last_;
};

// The record before the console, so that what is shown as finished is on the disk. Google Benchmark
// calls the console first, so for it both are one console.
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
