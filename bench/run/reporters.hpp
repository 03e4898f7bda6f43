// What Google Benchmark calls with each result: the console and the record.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/base/terminal.hpp"
#include "bench/record/record_file.hpp"
#include "bench/run/console.hpp"
#include "bench/run/progress.hpp"
#include "bench/run/session.hpp"

namespace gemm::bench {

// The console: results above a status line on a terminal, else a line each.
class TableReporter : public benchmark::BenchmarkReporter {
 public:
  TableReporter(Session& session, const Progress& progress, const std::vector<Case>& cases)
      : session_(session), progress_(progress), console_(session.results(), cases, colours()) {}
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  void print_aggregate(const Run& run);

  Session& session_;
  const Progress& progress_;
  Console console_;
};

// --gemm_verdict: a line for each result, as soon as it is there.
class VerdictReporter : public benchmark::BenchmarkReporter {
 public:
  using Line = std::function<nlohmann::ordered_json(const Row&)>;

  VerdictReporter(Session& session, Line line) : session_(session), line_(std::move(line)) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;

 private:
  Session& session_;
  Line line_;
};

// The record, handed on whole at the end; until then it is in the file after every row.
class RecordReporter : public benchmark::BenchmarkReporter {
 public:
  using Sink = std::function<void(const std::string& document)>;

  // The keys of `extra` join the context. `file` may be null.
  RecordReporter(Session& session, nlohmann::ordered_json extra, RecordFile* file, Sink last)
      : session_(session), context_(std::move(extra)), file_(file), last_(std::move(last)) {}
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

  Session& session_;
  nlohmann::ordered_json context_;
  std::vector<Entry> entries_;
  std::string kept_;  // the entries, each as of its end
  RecordFile* file_;
  Sink last_;
};

}  // namespace gemm::bench
