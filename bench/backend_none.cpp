// Stands in for backend_cuda.cu and kernel_names.cpp in a build without the CUDA toolkit.
#include "bench/backend.hpp"
#include "bench/kernel_names.hpp"

namespace gemm::bench {

std::unique_ptr<Backend> make_cuda_backend(int, std::string& reason) {
  reason = "this program was built without the CUDA toolkit";
  return nullptr;
}

std::vector<std::string> kernel_names(const Launch&, Stream) { return {}; }

}  // namespace gemm::bench
