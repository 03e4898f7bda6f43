// cuBLAS: the baseline that every other row is compared with. FP32 in both of its modes, because
// the default may choose algorithms that PEDANTIC forbids, and either can be the faster one.
#include "kernels/library/cublas.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/layout.hpp"
#include "kernels/registry.hpp"

namespace gemm {
namespace {

using cublas::check;
using cublas::Mode;

// A handle and a workspace of its own: with cuBLAS's default one a captured graph would allocate.
class Library {
 public:
  Library() {
    check(cublasCreate(&handle_));
    // Left to itself, split-K adds its partial sums in BF16 or FP16: faster, but no FP32
    // accumulation, and off by more than a row here may be.
    check(cublasSetMathMode(
        handle_, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                           CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
    if (const cudaError_t status = cudaMalloc(&workspace_, kWorkspaceBytes);
        status != cudaSuccess) {
      cublasDestroy(handle_);
      check(status);
    }
  }
  ~Library() {
    cudaFree(workspace_);
    cublasDestroy(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  cublasHandle_t on(Stream stream) const {
    check(cublasSetStream(handle_, stream));
    check(cublasSetWorkspace(handle_, workspace_, kWorkspaceBytes));  // SetStream forgets it
    return handle_;
  }

  // One for all operand sets of a case; it lives as long as one of their launches.
  static std::shared_ptr<const Library> shared() {
    static std::weak_ptr<const Library> living;
    if (auto library = living.lock()) return library;
    auto library = std::make_shared<const Library>();
    living = library;
    return library;
  }

 private:
  static constexpr std::size_t kWorkspaceBytes = std::size_t{32}
                                                 << 20;  // NVIDIA's advice for Hopper
  cublasHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
};

Launch prepare(const Problem& p, const Operands& o, Mode mode) {
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  return [=, library = Library::shared()](Stream stream) {
    const cublas::Scalar one(mode, 1), zero(mode, 0);
    // Row-major C = A * B is, seen column by column, C^T = B^T * A^T.
    check(cublasGemmEx(library->on(stream), cublas::operation(transposes_b(p.layout)),
                       cublas::operation(transposes_a(p.layout)), n, m, k, one.get(), o.b,
                       mode.input, static_cast<int>(ldb(p)), o.a, mode.input,
                       static_cast<int>(lda(p)), zero.get(), o.c, mode.output, n, mode.compute,
                       CUBLAS_GEMM_DEFAULT));
  };
}

Kernel variant(std::string_view math, std::vector<Precision> precisions,
               decltype(Kernel::prepare) prepare) {
  return {
      .name = "cuBLAS",
      .parameters = {{"math", std::string(math)}},
      .idea = "NVIDIA's library: the reference for every GPU kernel.",
      .source = "cuBLAS, cublasGemmEx with a 32 MiB workspace",
      .precisions = std::move(precisions),
      .layouts = {kLayouts.begin(), kLayouts.end()},
      .unsupported = cublas::unsupported,
      .prepare = std::move(prepare),
  };
}

const Registration with_default(variant("default",
                                        {Precision::f32, Precision::tf32, Precision::bf16,
                                         Precision::f16, Precision::f64},
                                        [](const Problem& p, const Device&, const Operands& o) {
                                          return prepare(p, o, cublas::mode_of(p.precision));
                                        }));
const Registration with_pedantic(variant("pedantic", {Precision::f32},
                                         [](const Problem& p, const Device&, const Operands& o) {
                                           cublas::Mode mode = cublas::mode_of(p.precision);
                                           mode.compute = CUBLAS_COMPUTE_32F_PEDANTIC;
                                           return prepare(p, o, mode);
                                         }));

}  // namespace
}  // namespace gemm
