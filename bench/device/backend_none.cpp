// Stands in for backend_cuda.cu in a build without the CUDA toolkit.
#include <memory>
#include <string>

#include "bench/device/backend.hpp"

namespace gemm::bench {

std::unique_ptr<Backend> make_cuda_backend(int, std::string& reason, double) {
  reason = "this program was built without the CUDA toolkit";
  return nullptr;
}

}  // namespace gemm::bench
