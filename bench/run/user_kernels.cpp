#include "bench/run/user_kernels.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "bench/base/device_errors.hpp"
#include "bench/base/text.hpp"
#include "bench/kernel_code/fingerprint.hpp"
#include "bench/run/child.hpp"
#include "kernels/user/user_kernel.hpp"

namespace gemm::bench {
namespace {

[[noreturn]] void refuse(const std::string& item, const std::string& why) {
  throw std::invalid_argument("--gemm_kernel=" + item + ": " + why);
}

// FILE or FILE:ENTRY.
UserKernel parse(const std::string& item) {
  for (const std::string ending : {".cu", ".so", ".py"}) {
    if (item.ends_with(ending)) return {.file = item};
    const auto colon = item.find(ending + ":");
    if (colon == std::string::npos) continue;
    const std::string entry = item.substr(colon + ending.size() + 1);
    if (entry.empty()) refuse(item, "the colon is last: write FILE:ENTRY");
    return {.file = item.substr(0, colon + ending.size()), .entry = entry};
  }
  refuse(item, "is not FILE.cu, FILE.so or FILE.py, nor one of them followed by :ENTRY");
}

std::string contents(const UserKernel& kernel, const std::string& item) {
  // To open a pipe would be to wait for its other end.
  std::error_code unknown;
  if (std::filesystem::exists(kernel.file, unknown) &&
      !std::filesystem::is_regular_file(kernel.file, unknown))
    refuse(item, "is a folder, a device, a pipe or a socket: give a file");
  std::ifstream file(kernel.file, std::ios::binary);
  if (!file) refuse(item, std::string("cannot be read (") + std::strerror(errno) + ")");
  return {std::istreambuf_iterator<char>(file), {}};
}

// With everything but its macros.
UserKernel described(const std::string& item, const Options& options) {
  UserKernel kernel = parse(item);
  kernel.file_hash = hash_of(contents(kernel, item));
  kernel.precisions = options.precisions;
  if (kernel.precisions.empty()) kernel.precisions.push_back(Precision::f32);
  kernel.layouts = options.layouts;
  if (kernel.layouts.empty()) kernel.layouts.push_back(Layout::nn);
  for (const std::string& folder : options.includes) {
    if (!std::filesystem::is_directory(folder))
      throw std::invalid_argument("--gemm_include=" + folder + ": is no folder");
    kernel.includes.emplace_back(folder);
  }
  kernel.machine_code = options.machine_code.value_or("");
  if (options.machine_code && !std::filesystem::is_directory(*options.machine_code))
    throw std::invalid_argument("--gemm_machine_code=" + *options.machine_code + ": is no folder");
  return kernel;
}

// One list of macros for each combination of values.
std::vector<std::vector<Parameter>> combinations(const std::vector<Define>& defines) {
  std::vector<std::vector<Parameter>> all{{}};
  for (const Define& define : defines) {
    std::vector<std::vector<Parameter>> longer;
    for (const std::vector<Parameter>& before : all)
      for (const std::string& value : define.values) {
        longer.push_back(before);
        longer.back().push_back({define.name, value});
      }
    all = std::move(longer);
  }
  return all;
}

constexpr char kLibrary[] = "libgemm_bench.so", kRunner[] = "run_in_python.py";

const std::filesystem::path& own_folder() {
  static const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return folder;
}

std::string interpreter() {
  const char* given = std::getenv("GEMM_BENCH_PYTHON");
  return given == nullptr || *given == '\0' ? "python3" : given;
}

void require_python(const std::string& item) {
  std::string why;
  try {
    if (why = run_child({interpreter(), "--version"}, 60).how; !why.empty())
      why = "'" + interpreter() + "': " + why;
  } catch (const EndsTheRun&) {
    throw;
  } catch (const std::runtime_error& error) {
    why = error.what();
  }
  if (!why.empty()) refuse(item, why + ": install python3, or set GEMM_BENCH_PYTHON to its path");
  for (const char* part : {kLibrary, kRunner})
    if (!std::filesystem::exists(own_folder() / part))
      refuse(item,
             std::string("needs ") + part + " in the folder of gemm_bench: build all targets");
}

}  // namespace

std::vector<std::string> child_program(bool python) {
  if (!python) return {"/proc/self/exe", "--gemm_child"};
  return {interpreter(), "-u", own_folder() / kRunner, own_folder() / kLibrary};
}

bool compile_user_kernels(const Options& options) {
  bool all = true;
  for (const std::string& item : options.kernels) {
    UserKernel kernel = described(item, options);
    if (!kernel.is_source()) refuse(item, "--gemm_compile_for needs FILE.cu");
    for (std::vector<Parameter>& defines : combinations(options.defines)) {
      kernel.defines = std::move(defines);
      for (const Precision precision : kernel.precisions) try {
          compile_source(kernel, precision, *options.compile_for);
        } catch (const CannotLoad& error) {
          std::cerr << one_line(error.what()) << "\n";
          all = false;
        }
    }
  }
  return all;
}

void register_user_kernels(const Options& options, Device::Kind kind,
                           const std::string& why_no_gpu) {
  bool sources = false;
  for (const std::string& item : options.kernels) {
    UserKernel kernel = described(item, options);
    if (kernel.is_source() && kind == Device::Kind::cpu) refuse(item, "needs a GPU: " + why_no_gpu);
    if (kernel.is_python() && !options.is_child) require_python(item);
    if (!kernel.is_source() && !options.is_child)
      std::cerr << kernel.file.filename().string()
                << " runs host code in the process that measures it, and could change its checks: "
                   "trust it, or give a .cu file (docs/verification.md).\n";
    sources = sources || kernel.is_source();
    for (std::vector<Parameter>& defines :
         combinations(kernel.is_source() ? options.defines : std::vector<Define>())) {
      kernel.defines = std::move(defines);
      try {
        register_user_kernel(kernel, kind);
      } catch (const std::logic_error& error) {
        refuse(item, std::string(error.what()) + ": rename the file");
      }
    }
  }
  const char* const asked = !options.defines.empty()    ? "define"
                            : !options.includes.empty() ? "include"
                            : options.machine_code      ? "machine_code"
                                                        : nullptr;
  if (asked != nullptr && !sources)
    throw std::invalid_argument("--gemm_" + std::string(asked) +
                                " needs --gemm_kernel=FILE.cu, a file to compile");
}

}  // namespace gemm::bench
