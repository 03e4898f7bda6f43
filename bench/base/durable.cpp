#include "bench/base/durable.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <ios>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace gemm::bench {
namespace {

std::runtime_error cannot_write(const std::filesystem::path& path, int error) {
  return std::runtime_error("cannot write '" + path.string() + "' (" + std::strerror(error) +
                            "): check that its folder exists, is writable and has room");
}

// False, with errno, on failure.
bool write_whole(const std::filesystem::path& file, const std::string& text,
                 std::ios::openmode how) {
  std::ofstream out(file, std::ios::binary | how);
  out << text;
  out.close();
  return static_cast<bool>(out);
}

}  // namespace

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool is_stream(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return false;
  if (std::filesystem::is_directory(path, error)) return false;
  if (!std::filesystem::is_regular_file(path, error)) return true;
  // The standard output of this program, even where the shell made a file of it.
  const std::string text = path.string();
  return text.starts_with("/dev/std") || text.starts_with("/dev/fd/") || text.starts_with("/proc/");
}

void write_atomically(const std::filesystem::path& path, const std::string& text) {
  if (is_stream(path)) {
    if (!write_whole(path, text, std::ios::app)) throw cannot_write(path, errno);
    return;
  }
  std::error_code error;
  std::filesystem::path target = path;
  if (std::filesystem::is_symlink(path, error))
    target = path.parent_path() / std::filesystem::read_symlink(path, error);
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), error);
  const std::string part = target.string() + ".part" + std::to_string(getpid());
  if (write_whole(part, text, std::ios::trunc) && std::rename(part.c_str(), target.c_str()) == 0)
    return;
  const int why = errno;
  unlink(part.c_str());
  throw cannot_write(path, why);
}

}  // namespace gemm::bench
