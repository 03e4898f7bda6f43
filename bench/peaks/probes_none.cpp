// Stands in for probes_cuda.cu in a build without the CUDA toolkit.
#include <vector>

#include "bench/peaks/probe.hpp"

namespace gemm::bench {

std::vector<Probe> cuda_probes(const DeviceInfo&) { return {}; }

}  // namespace gemm::bench
