// Files that outlive a kill and a power cut.
#pragma once

#include <filesystem>
#include <string>

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

 private:
  int descriptor_;
};

// Resolves symbolic links; the target need not exist.
std::filesystem::path without_links(std::filesystem::path path);

// Also makes missing parents. A failure shows when a file in it is written.
void make_folder(const std::filesystem::path& folder);

// A pipe, a terminal, /dev/stdout: what cannot be replaced by renaming a file.
bool is_stream(const std::filesystem::path& path);

// Replaces the file in one step, or the file that a link leads to, and makes missing folders; a
// stream is written to. Throws std::runtime_error naming the path.
void write_atomically(const std::filesystem::path& path, const std::string& text);

// Removes the partial files of processes that were killed in write_atomically(path).
void remove_parts(const std::filesystem::path& path);

}  // namespace gemm::bench
