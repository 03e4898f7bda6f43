// The file of a record during its run: rewritten after each row, in one step, so that a kill loses
// no finished row and leaves no half a record. It is compressed by gzip if its name ends with .gz.
// A process that starts at the same moment gets another name in a folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "bench/base/durable.hpp"

namespace gemm::bench {

class RecordFile {
 public:
  // Throws std::runtime_error if it cannot be written.
  explicit RecordFile(const std::filesystem::path& record);
  // The first name that no record has; `name` gives another one each second.
  RecordFile(const std::filesystem::path& folder, const std::function<std::string()>& name);
  RecordFile(const RecordFile&) = delete;
  ~RecordFile() { release(); }

  const std::filesystem::path& path() const { return record_; }

  // The record so far. Never throws: a failure is reported once, and the record before it stays.
  void keep(const std::string& document);

  // The whole record. Throws std::runtime_error with the place of the rows if that fails.
  void finish(const std::string& document);

 private:
  std::filesystem::path claim() const { return record_.string() + ".part"; }
  // Holds the name until the record is there; false if another process holds it.
  bool take(const std::filesystem::path& record, int how);
  void release();

  std::filesystem::path record_;
  bool kept_ = false, complained_ = false;
};

}  // namespace gemm::bench
