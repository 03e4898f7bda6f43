// What a run has finished so far, on the disk beside its record, so that neither a kill nor a power
// cut takes it.
//
// <record>.journal has a line for each row: the CRC-32 of what follows in eight hexadecimal digits,
// a space, and the JSON {"context": what changed in the record's since the line before,
// "benchmarks": [the row]}; the first lines bring the context alone. Whoever runs holds its lock,
// which dies with the process: what is not locked was left behind, and the next start in the
// folder, or tools/report recover, makes a record of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/base/durable.hpp"

namespace gemm::bench {

class Journal {
 public:
  // Throws std::runtime_error if another process writes this record, or if nobody can. What a run
  // that was killed left under this name becomes a record of its own.
  explicit Journal(const std::filesystem::path& record);
  // The first name that no record has and no process writes; `name` gives another one each second.
  Journal(const std::filesystem::path& folder, const std::function<std::string()>& name);
  Journal(const Journal&) = delete;
  ~Journal();  // without a row it leaves nothing behind

  const std::filesystem::path& record() const { return record_; }

  // On the disk when it returns. Never throws: where the disk is full that is said, once, and
  // tried again with the next row.
  void add(const nlohmann::ordered_json& context,
           const std::vector<nlohmann::ordered_json>& benchmarks);

  // Writes the record, whose rows the journal then need not keep. Throws std::runtime_error that
  // says where they are if that fails.
  void finish(const std::string& document);

 private:
  bool take(const std::filesystem::path& record);
  bool flush();
  std::filesystem::path path() const;

  std::filesystem::path record_;
  File file_;
  nlohmann::ordered_json context_ = nlohmann::ordered_json::object();  // as of the last line
  std::string pending_;                                                // what is not on the disk
  std::int64_t size_ = 0;                                              // of what is
  bool has_rows_ = false, complained_ = false;
};

// The record that the lines of a journal make; nothing if no row was finished.
struct Recovered {
  std::optional<nlohmann::ordered_json> document;
  int damaged_lines = 0;  // left out
};

// The last line may be torn: it was never finished. Lines of earlier versions have no CRC. Throws
// std::runtime_error for what is no journal.
Recovered record_from(std::istream& journal);

// Makes records of the journals in `folder` that no process holds, and says so on `log`, a line
// each. What is no journal of ours stays as it is.
void recover_journals(const std::filesystem::path& folder, std::ostream& log);

}  // namespace gemm::bench
