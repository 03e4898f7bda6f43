#include "bench/run/user_kernels.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

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

#include "bench/base/interrupt.hpp"
#include "bench/base/text.hpp"
#include "bench/kernel_code/fingerprint.hpp"
#include "bench/timing/timing.hpp"
#include "kernels/user/user_kernel.hpp"

namespace gemm::bench {
namespace {

constexpr char kProgram[] = "gemm_bench", kLibrary[] = "libgemm_bench.so",
               kRunner[] = "run_in_python.py";

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
  std::error_code unknown;
  const std::filesystem::file_status status = std::filesystem::status(kernel.file, unknown);
  if (std::filesystem::is_directory(status)) refuse(item, "is a folder: give a file");
  // To open a pipe would be to wait for its other end.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    refuse(item, "is a device, a pipe or a socket: give a file");
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

const std::filesystem::path& own_folder() {
  static const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return folder;
}

std::string interpreter() {
  const char* given = std::getenv("GEMM_BENCH_PYTHON");
  return given == nullptr || *given == '\0' ? "python3" : given;
}

// As posix_spawnp looks for it.
bool is_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  for (const std::string& folder : parts_of(path == nullptr ? "" : path, ':'))
    if (access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
  return false;
}

void require_python(const std::string& item) {
  if (!is_program(interpreter()))
    refuse(item, "needs Python, but there is no program '" + interpreter() +
                     "': install python3, or set GEMM_BENCH_PYTHON to its path");
  for (const char* part : {kLibrary, kRunner})
    if (!std::filesystem::exists(own_folder() / part))
      refuse(item, std::string("needs ") + part + " in the folder of " + kProgram +
                       ": build all targets");
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

void rerun_on_save(const Options& options) {
  if (options.kernels.empty())
    throw std::invalid_argument(
        "--gemm_watch needs --gemm_kernel=FILE, the file to watch; for the interval between "
        "readings "
        "of the GPU use --gemm_monitor=SECONDS");
  std::vector<std::filesystem::path> files;
  for (const std::string& item : options.kernels) files.push_back(parse(item).file);
  std::vector<std::string> command = options.arguments;
  std::erase(command, "--gemm_watch");
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);

  // Of a file that is being replaced there is none for a moment: that is no change yet.
  const auto times = [&] {
    std::vector<std::filesystem::file_time_type> all;
    std::error_code missing;
    for (const std::filesystem::path& file : files) {
      all.push_back(std::filesystem::last_write_time(file, missing));
      if (missing) return std::vector<std::filesystem::file_time_type>();
    }
    return all;
  };
  for (;;) {
    const auto before = times();
    pid_t child = 0;
    if (const int error =
            posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv.data(), environ);
        error != 0)
      throw std::runtime_error(std::string("cannot start the program again: ") +
                               std::strerror(error));
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (interrupted()) throw Interrupted();
    std::cerr << "Waiting until a file is saved; Ctrl-C ends the program.\n";
    for (auto now = times(); now.empty() || now == before; now = times()) {
      idle(0.05);
      if (interrupted()) throw Interrupted();
    }
  }
}

}  // namespace gemm::bench
