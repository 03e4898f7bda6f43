// Replaces what a build without the CUDA toolkit lacks.
#include <stdexcept>

#include "kernels/libraries.hpp"
#include "kernels/user/user_kernel.hpp"

namespace gemm {

std::shared_ptr<const int> copy_on_gpu(const std::vector<int>&) {
  throw std::runtime_error("a GPU requires a build with the CUDA toolkit");
}

Loaded load_source(const UserKernel&) {
  throw std::runtime_error("a .cu file requires a build with the CUDA toolkit");
}

CompiledSource compile_source(const UserKernel&, Precision, int) {
  throw CannotLoad("a .cu file requires a build with the CUDA toolkit");
}

void open_cublas() { throw std::runtime_error("cuBLAS requires a build with the CUDA toolkit"); }
void note_cublas_of_others() {}

}  // namespace gemm
