#include "bench/base/durable.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace gemm::bench {
namespace {

std::runtime_error cannot_write(const std::filesystem::path& path, int error) {
  return std::runtime_error("cannot write '" + path.string() + "' (" + std::strerror(error) +
                            "): check that its folder exists, is writable and has room");
}

// False, with errno, on failure.
bool write_all(const File& to, std::string_view text) {
  while (to && !text.empty()) {
    const ssize_t written = write(to.descriptor(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return static_cast<bool>(to);
}

// The text in a file that is to become `path`.
std::filesystem::path write_part(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::path part = path;
  part += ".part" + std::to_string(getpid());
  // A file of that name is left from a process with the same id, or is a trap: it is neither read
  // nor followed.
  unlink(part.c_str());
  const File file(open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_EXCL | O_NOFOLLOW, 0666));
  if (write_all(file, text) && fdatasync(file.descriptor()) == 0) return part;
  const int error = errno;
  unlink(part.c_str());
  throw cannot_write(path, error);
}

// Makes renames and new files in the folder durable.
void sync_folder(const std::filesystem::path& folder) {
  const File opened(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened) (void)fsync(opened.descriptor());
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

void make_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (folder.empty() || std::filesystem::exists(folder, ignored)) return;
  make_folder(folder.parent_path());
  std::filesystem::create_directory(folder, ignored);
  sync_folder(folder.parent_path());
}

std::filesystem::path without_links(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(path, error) && links < 40; ++links)
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  return path;
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
    const File stream(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!write_all(stream, text)) throw cannot_write(path, errno);
    return;
  }
  const std::filesystem::path target = without_links(path);
  make_folder(target.parent_path());
  const std::filesystem::path part = write_part(target, text);
  if (std::rename(part.c_str(), target.c_str()) != 0) {
    const int error = errno;
    unlink(part.c_str());
    throw cannot_write(path, error);
  }
  sync_folder(target.parent_path());
}

void remove_parts(const std::filesystem::path& path) {
  const std::string part = path.filename().string() + ".part";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(
           path.has_parent_path() ? path.parent_path() : ".", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(part) && name.size() > part.size() &&
        name.find_first_not_of("0123456789", part.size()) == std::string::npos)
      std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace gemm::bench
