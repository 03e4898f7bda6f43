// What code in this process can change of it that changes the arithmetic or the speed of other
// code: the threads of OpenMP and of OpenBLAS, and rounding and subnormals of this thread.
#pragma once

#include <cfenv>

namespace gemm::bench {

class HostSettings {
 public:
  HostSettings();        // keeps them
  void restore() const;  // as they were then

 private:
  std::fenv_t arithmetic_;
  int openmp_threads_ = 1, openblas_threads_ = 0;  // 0: OpenBLAS is not loaded
};

}  // namespace gemm::bench
