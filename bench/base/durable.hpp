// Files that outlive a kill and a power cut.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace gemm::bench {

// Closes what it holds.
class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  // All of `text` at `offset`, and on the disk; false, with errno, if that cannot be.
  bool write_at(std::int64_t offset, std::string_view text) const;

 private:
  int descriptor_;
};

// What a chain of links leads to, whether or not it is there.
std::filesystem::path without_links(std::filesystem::path path);

// A name is on the disk once its folder is.
void sync_folder(const std::filesystem::path& folder);

// With those above it that are missing. Whether it is there then shows when it is written to.
void make_folder(const std::filesystem::path& folder);

// A pipe, a terminal, /dev/stdout: what takes no file beside it and cannot be replaced.
bool is_stream(const std::filesystem::path& path);

// Replaces the file in one step, or the file that a link leads to, and makes missing folders; a
// stream is written to. Throws std::runtime_error naming the path.
void write_atomically(const std::filesystem::path& path, const std::string& text);

// What processes that were killed in write_atomically(path) have left beside it.
void remove_parts(const std::filesystem::path& path);

}  // namespace gemm::bench
