// OpenBLAS: the library baseline on the CPU.
#include <cblas.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <sstream>
#include <string>

#include "kernels/layout.hpp"
#include "kernels/libraries.hpp"
#include "kernels/registry.hpp"
#include "kernels/tokens.hpp"

namespace gemm {
namespace {

// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...": the second word.
std::string version() {
  std::istringstream words(openblas_get_config());
  std::string version;
  words >> version >> version;
  return version;
}

void note() {
  const int threads = openblas_get_num_threads();
  note_loaded({"OpenBLAS", version(), file_of(cblas_sgemm),
               std::string(openblas_get_corename()) + ", " + std::to_string(threads) +
                   (threads == 1 ? " thread" : " threads")});
}

const Registration openblas{
    {
        .name = "OpenBLAS",
        .idea = "Open-source BLAS on all cores: the baseline of the CPU kernels.",
        .source = "OpenBLAS, cblas_sgemm; of a batch a call for each product",
        .precisions = {Precision::f32},
        .layouts = {kLayouts.begin(), kLayouts.end()},
        .batches = Batches::also,
        .unsupported = [](const Problem& p, const Device&) -> std::optional<std::string> {
          if (std::max({p.m, p.n, p.k}) > INT_MAX) return "OpenBLAS requires m, n and k below 2^31";
          return std::nullopt;
        },
        .prepare = [](const Problem& p, const Device& device, const Operands& o) -> Launch {
          if (device.cores < openblas_get_num_threads()) openblas_set_num_threads(device.cores);
          note();
          return [=, all = Products(p)](Stream) {
            const int n = static_cast<int>(p.n), k = static_cast<int>(p.k);
            for (std::int64_t which = 0; which < p.batch; ++which) {
              const Problem product = all.product(which);
              if (product.m == 0) continue;
              const Operands one = all.operands(o, which);
              cblas_sgemm(CblasRowMajor, transposes_a(p.layout) ? CblasTrans : CblasNoTrans,
                          transposes_b(p.layout) ? CblasTrans : CblasNoTrans,
                          static_cast<int>(product.m), n, k, 1.0F, static_cast<const float*>(one.a),
                          static_cast<int>(lda(product)), static_cast<const float*>(one.b),
                          static_cast<int>(ldb(p)), 0.0F, static_cast<float*>(one.c), n);
            }
          };
        },
    },
    Device::Kind::cpu};

}  // namespace
}  // namespace gemm
