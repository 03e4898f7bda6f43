// Files that are replaced whole, and descriptors that close themselves.
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

// A pipe, a terminal, /dev/stdout: what cannot be replaced by renaming a file.
bool is_stream(const std::filesystem::path& path);

// Replaces the file in one step, or the file that a link leads to, and makes missing folders; a
// stream is written to. Throws std::runtime_error naming the path.
void write_atomically(const std::filesystem::path& path, const std::string& text);

}  // namespace gemm::bench
