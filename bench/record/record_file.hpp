// The file of a record during its run: rewritten after each row, in one step, so that neither a
// kill nor a power cut loses a finished row or leaves half a record. It is compressed by gzip if
// its name ends with .gz.
//
// The running process holds the lock of <record>.gemm_bench_lock, so that no two write one record.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "bench/base/durable.hpp"

namespace gemm::bench {

class RecordFile {
 public:
  // Throws std::runtime_error if another process writes this record, or if it cannot be written.
  explicit RecordFile(const std::filesystem::path& record);
  // The first name that no record has and no process writes; `name` gives another one each second.
  RecordFile(const std::filesystem::path& folder, const std::function<std::string()>& name);
  RecordFile(const RecordFile&) = delete;
  ~RecordFile();

  const std::filesystem::path& path() const { return record_; }

  // The record so far: on the disk when it returns. Never throws: a failure is reported once, and
  // the record before it stays.
  void keep(const std::string& document);

  // The whole record. Throws std::runtime_error with the place of the rows if that fails.
  void finish(const std::string& document);

 private:
  bool take(const std::filesystem::path& record);
  void release();

  std::filesystem::path record_;
  File lock_;
  bool kept_ = false, complained_ = false;
};

}  // namespace gemm::bench
