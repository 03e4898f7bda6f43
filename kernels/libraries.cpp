#include "kernels/libraries.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace gemm {
namespace {

std::vector<LoadedLibrary>& loaded() {
  static std::vector<LoadedLibrary> libraries;
  return libraries;
}

std::filesystem::path& given_cublas() {
  static std::filesystem::path file;
  return file;
}

}  // namespace

const std::vector<LoadedLibrary>& loaded_libraries() { return loaded(); }

void note_loaded(const LoadedLibrary& library) {
  const auto is_same = [&](const LoadedLibrary& other) {
    return other.name == library.name && other.version == library.version &&
           other.file == library.file;
  };
  if (std::ranges::none_of(loaded(), is_same)) loaded().push_back(library);
}

void set_cublas_file(const std::filesystem::path& file) { given_cublas() = file; }
const std::filesystem::path& cublas_file() { return given_cublas(); }

// Without RTLD_GLOBAL, so that a library never answers for another one of the process.
OpenedLibrary::OpenedLibrary(std::string name, const std::vector<std::string>& files)
    : name_(std::move(name)) {
  std::string why;  // the first is that of the release for which this program was built
  for (const std::string& file : files) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    std::string said = dlerror();  // contains the whole path
    if (said.starts_with(file))
      said.replace(0, file.size(), std::filesystem::path(file).filename().string());
    if (why.empty()) why = said;
  }
  throw std::runtime_error(name_ + " could not be opened: " + why);
}

OpenedLibrary::Function OpenedLibrary::function_if_any(const char* name) const {
  return Function(dlsym(handle_, name));
}

OpenedLibrary::Function OpenedLibrary::function(const char* name) const {
  void* const address = dlsym(handle_, name);
  if (address == nullptr)
    throw std::runtime_error("this is not " + name_ + ", or an unsuitable release: it has no " +
                             name);
  return Function(address);
}

std::vector<std::string> library_names(const std::string& base, int major) {
  std::vector<std::string> names;
  for (const int each : {major, major + 1, major - 1})
    names.push_back(base + ".so." + std::to_string(each));
  return names;
}

bool is_loaded(const std::string& library_name) {
  return dlopen(library_name.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}

std::string file_of(const void* code) {
  Dl_info info{};
  if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code unknown;
  const auto file = std::filesystem::canonical(info.dli_fname, unknown);
  return (unknown ? std::filesystem::path(info.dli_fname) : file).filename();
}

}  // namespace gemm
