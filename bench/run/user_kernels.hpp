// --gemm_kernel: kernels from files of the user, which join the registry before anything is run.
#pragma once

#include <string>
#include <vector>

#include "bench/cases/cases.hpp"
#include "bench/cases/options.hpp"
#include "kernels/gemm.hpp"

namespace gemm::bench {

// Each file with each combination of --gemm_define. Throws std::invalid_argument, in one line, for
// a file that is unusable or cannot run on this kind of device (`why_no_gpu`).
void register_user_kernels(const Options& options, Device::Kind kind,
                           const std::string& why_no_gpu);

// --gemm_compile_for: compiles each .cu file with each combination and precision. False if one does
// not compile, with why on stderr. Throws std::invalid_argument as above.
bool compile_user_kernels(const Options& options);

// What a child is started as, which finds a Request at its standard input: this program or, for
// kernels in Python, that with this program's library in it.
std::vector<std::string> child_program(bool python);

}  // namespace gemm::bench
