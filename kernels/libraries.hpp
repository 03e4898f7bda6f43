// Libraries that kernels call: how they are opened at run time, and which were. So one program
// measures every release of a library, and starts where it is not installed.
#pragma once

#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

namespace gemm {

// As the library itself says; `file` is the name of the opened file, without its folder.
struct LoadedLibrary {
  std::string name, version, file;
  std::string detail;  // what else decides its speed, or who loaded it; or empty
};

// Those that the kernels of this process have opened or used so far, in this order.
const std::vector<LoadedLibrary>& loaded_libraries();
// Unless it is there already. May come from a child, too.
void note_loaded(const LoadedLibrary& library);

// The first use of cuBLAS or cuBLASLt will open this file, and cuBLASLt from its folder.
void set_cublas_file(const std::filesystem::path& file);
const std::filesystem::path& cublas_file();
// Opens it now. Throws std::runtime_error with one line.
void open_cublas();
// Notes the cuBLAS that a user's kernel, or a Python module of its, has loaded into this process.
void note_cublas_of_others();

// A library that is never closed: it may leave threads and handlers behind.
class OpenedLibrary {
 public:
  // Becomes a pointer to a function of any type.
  class Function {
   public:
    explicit Function(void* address) : address_(address) {}
    template <typename F>
    requires std::is_function_v<F>
    operator F*() const { return reinterpret_cast<F*>(address_); }

   private:
    void* address_;
  };

  // The first of these that the loader opens: paths, or names that it looks for. `name` is for
  // messages. Throws std::runtime_error.
  OpenedLibrary(std::string name, const std::vector<std::string>& files);

  // Also of a library that this one is linked with. Throws std::runtime_error if there is none.
  Function function(const char* name) const;
  // Null if there is none.
  Function function_if_any(const char* name) const;

 private:
  std::string name_;
  void* handle_ = nullptr;
};

// "libcublas.so.13", of this and of the neighbouring major versions.
std::vector<std::string> library_names(const std::string& base, int major);
bool is_loaded(const std::string& library_name);

// The name of the file whose code has this address, without its folder and with links resolved.
std::string file_of(const void* code);
template <typename F>
requires std::is_function_v<F> std::string file_of(F* function) {
  return file_of(reinterpret_cast<const void*>(function));
}

}  // namespace gemm
