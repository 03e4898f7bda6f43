// What in the environment of the process changes times: variables that the libraries read, and
// profilers or other code that was injected.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gemm::bench {

struct Environment {
  // By name. Of values that are paths, only the names of the files are kept.
  std::map<std::string, std::string> recorded, removed;
  // "libcuda-injection.so", "traced by strace"
  std::vector<std::string> injected;
};

// Takes the variables that only falsify times out of the environment of this process and of those
// that it starts, and records the others that change times. To be called before anything of CUDA.
Environment clean_environment();

// Profilers and other injected code in this process. Known after CUDA has been initialised, which
// loads what CUDA_INJECTION64_PATH names.
std::vector<std::string> injected_code();

// Of the names of loaded files, those of profilers, sanitizers and what LD_PRELOAD named.
std::vector<std::string> injected_among(const std::vector<std::string>& loaded,
                                        const std::string& preloaded);

}  // namespace gemm::bench
