#include "bench/record/record_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "bench/base/terminal.hpp"

namespace gemm::bench {
namespace {

constexpr std::string_view kSuffix = ".gemm_bench_lock";

std::filesystem::path lock_of(const std::filesystem::path& record) {
  return record.string() + std::string(kSuffix);
}

// Does the path still lead to the file that was opened?
bool is_named(const File& file, const std::filesystem::path& path) {
  struct stat opened = {}, named = {};
  return fstat(file.descriptor(), &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

// The file, locked unless the file system has no locks. None, with errno: EWOULDBLOCK if another
// process has the lock.
File locked(const std::filesystem::path& path, int how) {
  for (;;) {
    // Not through a link: it may lead to any file, or make one anywhere.
    File file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | how, 0666));
    if (!file) return file;
    if (flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0)
      return errno == EWOULDBLOCK ? File() : std::move(file);
    if (is_named(file, path)) return file;
    // Its owner removed it just now: another try makes a new one.
  }
}

// Removes what a killed run left next to its record: its lock, and a partial record.
void tidy(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(kSuffix) || !entry.is_regular_file(ignored)) continue;
    const File lock = locked(entry.path(), 0);
    // Again, since a file system without locks cannot tell.
    if (!lock || flock(lock.descriptor(), LOCK_EX | LOCK_NB) != 0) continue;
    remove_parts(entry.path().parent_path() / entry.path().stem());
    std::filesystem::remove(entry.path(), ignored);
  }
}

// What the file has: compressed by gzip where its name ends with .gz.
std::string content_of(const std::filesystem::path& record, const std::string& document) {
  if (record.extension() != ".gz") return document;
  z_stream stream{};
  constexpr int kGzip = 16, kLevel = 6, kMemory = 8;
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzip + MAX_WBITS, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw std::runtime_error("zlib cannot compress the record: give a name that ends in .json");
  std::string packed(deflateBound(&stream, document.size()), '\0');
  // zlib's input is not const for old compilers alone.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(document.data()));
  stream.avail_in = static_cast<uInt>(document.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int done = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (done != Z_STREAM_END) throw std::runtime_error("zlib could not compress the record");
  return packed;
}

}  // namespace

RecordFile::RecordFile(const std::filesystem::path& record) {
  if (!take(without_links(record)))
    throw std::runtime_error("'" + record.string() +
                             "' is being written by another gemm_bench: wait for it, or use "
                             "another --benchmark_out");
}

RecordFile::RecordFile(const std::filesystem::path& folder,
                       const std::function<std::string()>& name) {
  // Locked before the record is looked for: a process that just finished has written it by then.
  while (!take(folder / name()) || std::filesystem::exists(record_)) {
    release();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

RecordFile::~RecordFile() { release(); }

// False if another process has it.
bool RecordFile::take(const std::filesystem::path& record) {
  record_ = record;
  make_folder(record.parent_path());
  tidy(record.parent_path());
  lock_ = locked(lock_of(record), O_CREAT);
  if (!lock_ && errno != EWOULDBLOCK)
    throw std::runtime_error("cannot write '" + lock_of(record).string() + "' (" +
                             std::strerror(errno) +
                             "): check that its folder exists and is writable");
  return static_cast<bool>(lock_);
}

void RecordFile::release() {
  std::error_code ignored;
  if (lock_) std::filesystem::remove(lock_of(record_), ignored);
  lock_ = File();
}

void RecordFile::keep(const std::string& document) {
  try {
    write_atomically(record_, content_of(record_, document));
    kept_ = true;
  } catch (const std::runtime_error& error) {
    if (std::exchange(complained_, true)) return;
    const AboveStatus above;
    std::cerr
        << "gemm_bench: " << error.what()
        << ". The run goes on, but its results are lost if it is killed before there is room\n";
  }
}

void RecordFile::finish(const std::string& document) {
  const std::string content = content_of(record_, document);
  try {
    write_atomically(record_, content);
  } catch (const std::runtime_error& error) {
    std::string where =
        kept_ ? "; the rows for which there was room are in '" + record_.string() + "'" : "";
    try {
      const auto elsewhere = std::filesystem::temp_directory_path() /
                             (std::to_string(getpid()) + "-" + record_.filename().string());
      write_atomically(elsewhere, content);
      where = "; the record is in '" + elsewhere.string() + "'";
    } catch (const std::exception&) {  // nor there
    }
    throw std::runtime_error(error.what() + where);
  }
  release();
}

}  // namespace gemm::bench
