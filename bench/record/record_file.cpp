#include "bench/record/record_file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "bench/base/terminal.hpp"

namespace gemm::bench {

namespace {

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

RecordFile::RecordFile(const std::filesystem::path& record) { take(record, O_TRUNC); }

RecordFile::RecordFile(const std::filesystem::path& folder,
                       const std::function<std::string()>& name) {
  while (!take(folder / name(), O_EXCL))
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

bool RecordFile::take(const std::filesystem::path& record, int how) {
  record_ = record;
  std::error_code ignored;  // it shows when the file is opened
  if (record.has_parent_path()) std::filesystem::create_directories(record.parent_path(), ignored);
  if (how == O_EXCL && std::filesystem::exists(record)) return false;
  const File file(open(claim().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666));
  if (file) return true;
  if (errno == EEXIST) return false;
  throw std::runtime_error("cannot write '" + record.string() + "' (" + std::strerror(errno) +
                           "): check that its folder exists and is writable");
}

void RecordFile::release() {
  std::error_code ignored;
  std::filesystem::remove(claim(), ignored);
}

void RecordFile::keep(const std::string& document) {
  try {
    write_atomically(record_, content_of(record_, document));
    if (!std::exchange(kept_, true)) release();
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
}

}  // namespace gemm::bench
