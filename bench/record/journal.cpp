#include "bench/record/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view kSuffix = ".journal";

constexpr std::size_t kCheckLength = 9;  // eight digits and a space

// "89abcdef " of CRC-32 (IEEE 802.3), as zlib computes it.
std::string check_of(std::string_view text) {
  std::uint32_t crc = ~0U;
  for (const char byte : text) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0);
  }
  return formatted("%08" PRIx32 " ", ~crc);
}

std::string line_of(const json& context, const json& benchmarks) {
  const std::string text = json{{"context", context}, {"benchmarks", benchmarks}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
  return check_of(text) + text + "\n";
}

// What a line says; discarded if it is damaged.
json read_line(std::string_view line) {
  if (!line.starts_with('{')) {
    const std::string_view check = line.substr(0, kCheckLength);
    line.remove_prefix(check.size());
    if (check != check_of(line)) return json::value_t::discarded;
  }
  json piece = json::parse(line, nullptr, false);
  const auto has = [&](const char* key, auto is) {
    return piece.contains(key) && (piece[key].*is)();
  };
  const bool whole =
      piece.is_object() && has("context", &json::is_object) && has("benchmarks", &json::is_array);
  return whole ? piece : json(json::value_t::discarded);
}

json changes(const json& before, const json& now) {
  json changed = json::object();
  for (const auto& [key, value] : now.items()) {
    const auto old = before.find(key);
    if (old == before.end())
      changed[key] = value;
    else if (value.is_object() && old->is_object()) {
      if (json inner = changes(*old, value); !inner.empty()) changed[key] = std::move(inner);
    } else if (*old != value)
      changed[key] = value;
  }
  return changed;
}

void merge(json& into, const json& changed) {
  for (const auto& [key, value] : changed.items()) {
    if (value.is_object() && into.contains(key) && into[key].is_object())
      merge(into[key], value);
    else
      into[key] = value;
  }
}

std::string first_line() { return line_of({{"gemm", json::object()}}, json::array()); }

// Does the path still lead to the file that was opened?
bool is_named(const File& file, const std::filesystem::path& path) {
  struct stat opened = {}, named = {};
  return fstat(file.descriptor(), &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

enum class Lock { mine, somebodys, unknown };

// The lock of a journal that is there, or of a new one.
std::pair<File, Lock> lock(const std::filesystem::path& path, int how) {
  for (;;) {
    // Not through a link: it may lead to anybody's file, or make one anywhere.
    File file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | how, 0666));
    if (!file) return {std::move(file), Lock::unknown};
    if (flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0)
      return {std::move(file), errno == EWOULDBLOCK ? Lock::somebodys : Lock::unknown};
    if (is_named(file, path)) return {std::move(file), Lock::mine};
    if ((how & O_CREAT) == 0) return {File(), Lock::unknown};
    // Its owner removed it just now: another try makes a new one.
  }
}

std::filesystem::path record_of(const std::filesystem::path& journal) {
  std::filesystem::path record = journal;
  return record.replace_filename(journal.stem());
}

// Did the run that left these rows write its record, too? A power cut can bring a journal back.
bool is_in(const json& document, const std::filesystem::path& record) {
  std::ifstream file(record, std::ios::binary);
  const json written = json::parse(file, nullptr, false);
  const auto gist = [](const json& whole, std::size_t rows) {
    json pieces = json::array({whole.at("context").at("date")});  // to Clang, {x} is a copy of x
    for (std::size_t i = 0; i < rows; ++i)
      for (const char* key : {"name", "real_time"})
        pieces.push_back(whole.at("benchmarks").at(i).at(key));
    return pieces;
  };
  try {
    const std::size_t rows = document.at("benchmarks").size();
    return gist(written, rows) == gist(document, rows);
  } catch (const json::exception&) {
    return false;
  }
}

// Of a journal whose lock is held. Returns what became of it, as a sentence.
std::string recover(const std::filesystem::path& journal, bool name_taken) {
  std::ifstream lines(journal, std::ios::binary);
  const auto [document, damaged] = record_from(lines);
  const std::filesystem::path record = record_of(journal);
  std::string told = "Removed " + journal.string();
  if (!document)
    told += ": the run was killed before its first row";
  else if (is_in(*document, record))
    told += ": the run had written its record";
  else
    told = "Recovered " +
           write_beside(record, name_taken,
                        document->dump(1, ' ', false, json::error_handler_t::replace) + "\n")
               .string() +
           " from the journal of a run that was killed" +
           (damaged == 0 ? ""
                         : "; left out " + std::to_string(damaged) + " damaged line" +
                               (damaged == 1 ? "" : "s"));
  // The record that it had begun to write.
  const std::string part = record.filename().string() + ".part";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(
           record.has_parent_path() ? record.parent_path() : ".", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(part) && name.size() > part.size() &&
        name.find_first_not_of("0123456789", part.size()) == std::string::npos)
      std::filesystem::remove(entry.path(), ignored);
  }
  return told;
}

}  // namespace

Journal::Journal(const std::filesystem::path& record) {
  if (!take(without_links(record)))
    throw std::runtime_error("'" + record.string() +
                             "' is being written by another gemm_bench: wait for it, or give "
                             "another --benchmark_out");
}

Journal::Journal(const std::filesystem::path& folder, const std::function<std::string()>& name) {
  for (;;) {
    const std::filesystem::path record = folder / name();
    std::error_code ignored;
    // Held before it is looked for: who finished a moment ago has left a record by then.
    if (take(record)) {
      if (!std::filesystem::exists(record, ignored)) return;
      std::filesystem::remove(path(), ignored);
      file_ = File();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

Journal::~Journal() {
  std::error_code ignored;
  if (file_ && !has_rows_) std::filesystem::remove(path(), ignored);
}

std::filesystem::path Journal::path() const { return record_.string() + std::string(kSuffix); }

// False if another process has it.
bool Journal::take(const std::filesystem::path& record) {
  record_ = record;
  make_folder(record.parent_path());
  auto [file, state] = lock(path(), O_CREAT);
  if (!file)
    throw std::runtime_error("cannot write '" + path().string() + "' (" + std::strerror(errno) +
                             "): check that its folder exists and is writable");
  if (state == Lock::somebodys) return false;
  // A file system without locks: nobody else can tell either, and leaves the journal alone.
  struct stat facts = {};
  fstat(file.descriptor(), &facts);
  if (facts.st_size > 0 || !S_ISREG(facts.st_mode)) {
    try {
      if (!S_ISREG(facts.st_mode)) throw std::runtime_error("it is no file");
      std::cerr << recover(path(), true) << "\n";
    } catch (const std::runtime_error& error) {
      throw std::runtime_error("'" + path().string() + "' is in the way: " + error.what() +
                               "; move it, or give another --benchmark_out");
    }
    if (ftruncate(file.descriptor(), 0) != 0)
      throw std::runtime_error("cannot empty '" + path().string() + "': " + std::strerror(errno));
  }
  sync_folder(record.parent_path());
  file_ = std::move(file);
  pending_ = first_line();
  flush();
  return true;
}

bool Journal::flush() {
  if (file_.write_at(size_, pending_)) {
    size_ += static_cast<std::int64_t>(pending_.size());
    pending_.clear();
    return true;
  }
  const int error = errno;
  (void)!ftruncate(file_.descriptor(), size_);  // half a line would spoil the next
  if (!std::exchange(complained_, true))
    std::cerr << (isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "") << "gemm_bench: cannot write '"
              << path().string() << "' (" << std::strerror(error)
              << "): the run goes on, but until there is room a kill would lose its rows\n";
  return false;
}

void Journal::add(const json& context, const std::vector<json>& benchmarks) {
  json changed = changes(context_, context);
  if (benchmarks.empty()) pending_ += line_of(changed, json::array());
  for (const json& benchmark : benchmarks)
    pending_ += line_of(std::exchange(changed, json::object()), json::array({benchmark}));
  context_ = context;
  has_rows_ = has_rows_ || !benchmarks.empty();
  flush();
}

void Journal::finish(const std::string& document) {
  std::error_code ignored;
  try {
    write_atomically(record_, document);
  } catch (const std::runtime_error& error) {
    if (flush())
      throw std::runtime_error(std::string(error.what()) + "; its rows are in '" + path().string() +
                               "', from which tools/report recover makes it");
    std::filesystem::path elsewhere;
    try {
      elsewhere = write_beside(std::filesystem::temp_directory_path() / record_.filename(), false,
                               document);
    } catch (const std::exception&) {
      throw std::runtime_error(std::string(error.what()) + "; the rows for which there was room " +
                               "are in '" + path().string() + "'");
    }
    std::filesystem::remove(path(), ignored);
    throw std::runtime_error(std::string(error.what()) + "; the record is in '" +
                             elsewhere.string() + "'");
  }
  std::filesystem::remove(path(), ignored);
  file_ = File();
}

Recovered record_from(std::istream& journal) {
  json context, benchmarks = json::array();
  int damaged = 0;
  std::string torn;  // its end was never written
  for (std::string line; std::getline(journal, line);) {
    if (journal.eof()) {
      torn = line;
      break;
    }
    const json piece = read_line(line);
    if (context.is_null()) {
      if (piece.is_discarded() || !piece["context"].contains("gemm"))
        throw std::runtime_error("it is no journal of gemm_bench");
      context = json::object();
    }
    if (piece.is_discarded()) {
      ++damaged;
      continue;
    }
    merge(context, piece["context"]);
    for (const json& benchmark : piece["benchmarks"])
      if (benchmark.is_object()) benchmarks.push_back(benchmark);
  }
  if (context.is_null() && !first_line().starts_with(torn))
    throw std::runtime_error("it is no journal of gemm_bench");
  if (benchmarks.empty()) return {std::nullopt, damaged};
  return {json{{"context", std::move(context)}, {"benchmarks", std::move(benchmarks)}}, damaged};
}

void recover_journals(const std::filesystem::path& folder, std::ostream& log) {
  std::error_code ignored;
  std::vector<std::filesystem::path> journals;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.empty() ? "." : folder, ignored))
    if (entry.path().extension() == kSuffix && entry.is_regular_file(ignored))
      journals.push_back(entry.path());
  std::ranges::sort(journals);
  for (const std::filesystem::path& journal : journals) {
    const auto [file, state] = lock(journal, 0);
    if (state != Lock::mine) continue;
    try {
      // Before a word is said: it may be anybody's. Of what was just begun only the name can tell.
      if (std::filesystem::file_size(journal) < first_line().size() &&
          journal.stem().extension() != ".json")
        continue;
      std::ifstream lines(journal, std::ios::binary);
      (void)record_from(lines);
    } catch (const std::exception&) {
      continue;
    }
    try {
      const std::string told = recover(journal, false);
      std::filesystem::remove(journal, ignored);
      log << told << "\n";
    } catch (const std::exception& error) {
      log << "gemm_bench: " << journal.string() << " stays: " << error.what() << "\n";
    }
  }
}

}  // namespace gemm::bench
