#include "bench/device/environment.hpp"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string_view>

#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

// A star at the end stands for any rest. Each of these makes a library compute something else than
// it does without it, or launches wait: nobody wants that in a time.
constexpr std::string_view kRemoved[] = {
    // cuBLAS computes FP32 in TF32, FP32 or FP64 by emulation, in another workspace, or writes
    // logs.
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_*",
    "CUBLASLT_*",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    // Every launch waits until it has ended.
    "CUDA_LAUNCH_BLOCKING",
};

// What a user may have chosen for this machine, or what its administrator has. OpenMP and OpenBLAS
// read theirs before main(): to take them out would need the program to start again.
constexpr std::string_view kRecorded[] = {
    "OMP_*",
    "GOMP_*",
    "KMP_*",
    "OPENBLAS_*",
    "GOTO_NUM_THREADS",
    "MKL_*",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "LD_AUDIT",
    // When machine code is loaded, made from PTX, and where it is kept.
    "CUDA_MODULE_*",
    "CUDA_FORCE_*",
    "CUDA_DISABLE_*",
    "CUDA_CACHE_*",
    "CUDA_BINARY_LOADER_*",
    // Queues, priorities, and the share of a GPU.
    "CUDA_DEVICE_MAX_*",
    "CUDA_SCALE_*",
    "CUDA_GRAPHS_*",
    "CUDA_MPS_*",
    "CUDA_AUTO_BOOST",
    // Profilers and debuggers.
    "CUDA_INJECTION64_PATH",
    "NVTX_INJECTION64_PATH",
    "CUDA_ENABLE_*",
    "CUDA_COREDUMP_*",
};

// Of files that Nsight Compute, Nsight Systems, CUPTI, compute-sanitizer and valgrind load.
constexpr std::string_view kInjected[] = {
    "injection", "nvperf", "cupti", "cuinj", "sanitizer-collection", "vgpreload"};

constexpr std::size_t kLongestName = 100, kLongestValue = 200;

bool is_among(std::string_view name, std::span<const std::string_view> patterns) {
  return std::ranges::any_of(patterns, [&](std::string_view pattern) {
    return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1))
                                  : name == pattern;
  });
}

// "a/b.so:c/d.so" as "b.so:d.so": a record is made to be published.
std::string without_folders(std::string_view value) {
  std::string kept;
  for (const char ch : value) {
    const auto part = kept.find_last_of(" :,;=") + 1;  // npos + 1 is 0
    if (ch == '/')
      kept.erase(part);
    else
      kept += ch;
  }
  return one_line(kept, kLongestValue);
}

// Who traces this process, by /proc/self/status; empty: nobody.
std::string tracer() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view kKey = "TracerPid:";
    if (!line.starts_with(kKey)) continue;
    const std::string pid = line.substr(line.find_first_not_of(" \t", kKey.size()));
    if (pid == "0") return "";
    std::string name;
    std::getline(std::ifstream("/proc/" + pid + "/comm"), name);
    return name.empty() ? "a debugger" : one_line(name);
  }
  return "";
}

int add_name(dl_phdr_info* info, std::size_t, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
  return 0;
}

}  // namespace

Environment clean_environment() {
  Environment found;
  std::vector<std::string> removed;  // which moves `environ`
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view whole = *entry;
    const auto equals = whole.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = whole.substr(0, equals);
    const auto keep_in = [&](std::map<std::string, std::string>& kept) {
      kept[one_line(name, kLongestName)] = without_folders(whole.substr(equals + 1));
    };
    if (is_among(name, kRemoved)) {
      keep_in(found.removed);
      removed.emplace_back(name);
    } else if (is_among(name, kRecorded)) {
      keep_in(found.recorded);
    }
  }
  for (const std::string& name : removed) unsetenv(name.c_str());
  return found;
}

std::vector<std::string> injected_among(const std::vector<std::string>& loaded,
                                        const std::string& preloaded) {
  std::vector<std::string> found;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && !std::ranges::count(found, name)) found.push_back(name);
  };
  for (const std::string& path : loaded) {
    const std::string name = path.substr(path.rfind('/') + 1);
    std::string lower = name;
    for (char& ch : lower) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
    if (std::ranges::any_of(kInjected, [&](std::string_view part) {
          return lower.find(part) != std::string::npos;
        }))
      add(one_line(name, kLongestValue));
  }
  for (const std::string& part : parts_of(preloaded, ':'))  // or spaces
    for (const std::string& path : parts_of(part, ' ')) add(without_folders(path));
  return found;
}

std::vector<std::string> injected_code() {
  std::vector<std::string> loaded;
  dl_iterate_phdr(add_name, &loaded);
  const char* preloaded = std::getenv("LD_PRELOAD");
  std::vector<std::string> found = injected_among(loaded, preloaded == nullptr ? "" : preloaded);
  if (const std::string name = tracer(); !name.empty()) found.push_back("traced by " + name);
  return found;
}

}  // namespace gemm::bench
