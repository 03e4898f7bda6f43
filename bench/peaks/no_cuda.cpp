// Stands in for backend_cuda.cu and probes_cuda.cu in a build without the CUDA toolkit.
#include <memory>
#include <string>
#include <vector>

#include "bench/peaks/probe.hpp"

namespace gemm::bench {

std::unique_ptr<Backend> make_cuda_backend(int, std::string& reason, double) {
  reason = "this program was built without the CUDA toolkit";
  return nullptr;
}

std::vector<Probe> cuda_probes(const DeviceInfo&) { return {}; }

}  // namespace gemm::bench
