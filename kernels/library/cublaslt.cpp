// cuBLASLt: the library with explicit choice of the algorithm. Its heuristic returns several, best
// guess first. algo:first runs that guess; algo:best runs the fastest of all when tried.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/epilogue.hpp"
#include "kernels/layout.hpp"
#include "kernels/library/cublas.hpp"
#include "kernels/parts/trial.hpp"
#include "kernels/registry.hpp"
#include "kernels/scales.hpp"
#include "kernels/tokens.hpp"

namespace gemm {
namespace {

using cublas::api;
using cublas::check;
using cublas::make;

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;
// The heuristic returns at most eight algorithms whatever the requested count, sometimes only one;
// with a smaller workspace it returns others. In FP8 at 8192 the fastest, by 2 %, needs no
// workspace.
constexpr std::uint64_t kWorkspaces[] = {kWorkspaceBytes, kWorkspaceBytes / 2, 0};
constexpr int kMostAlgorithms = 32;

// Scales of blocks, as cublasLt.h of 12.9 and later has them.
constexpr auto kAScaleMode = static_cast<cublasLtMatmulDescAttributes_t>(31),
               kBScaleMode = static_cast<cublasLtMatmulDescAttributes_t>(32);
constexpr std::int32_t kScaleOf128 = 4, kScaleOf128x128 = 5;
#if CUBLAS_VERSION >= 120900
static_assert(kAScaleMode == CUBLASLT_MATMUL_DESC_A_SCALE_MODE &&
              kBScaleMode == CUBLASLT_MATMUL_DESC_B_SCALE_MODE &&
              kScaleOf128 == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F &&
              kScaleOf128x128 == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
#endif

using Library = Owned<cublasLtHandle_t, [](auto it) { api().cublasLtDestroy(it); }>;
using Operation = Owned<cublasLtMatmulDesc_t, [](auto it) { api().cublasLtMatmulDescDestroy(it); }>;
using Matrix =
    Owned<cublasLtMatrixLayout_t, [](auto it) { api().cublasLtMatrixLayoutDestroy(it); }>;
using Preference =
    Owned<cublasLtMatmulPreference_t, [](auto it) { api().cublasLtMatmulPreferenceDestroy(it); }>;

// Alignment in bytes; algorithms with vector loads require it.
struct Alignment {
  std::uint32_t a = 256, b = 256, c = 256;
  bool operator==(const Alignment&) const = default;

  // Of every product of a batch.
  static Alignment of(const Problem& p, const Operands& o) {
    const PrecisionTraits& traits = traits_of(p.precision);
    const auto bytes = [&](const void* first, std::int64_t elements, int element_bytes) {
      const std::int64_t stride = p.batch > 1 ? elements * element_bytes : 0;
      const auto address =
          reinterpret_cast<std::uintptr_t>(first) | static_cast<std::uintptr_t>(stride) | 256;
      return static_cast<std::uint32_t>(address & -address);
    };
    return {bytes(o.a, p.m * p.k, traits.input_bytes), bytes(o.b, p.k * p.n, traits.input_bytes),
            bytes(o.c, p.m * p.n, traits.output_bytes)};
  }
};

// One problem as cuBLASLt sees it: column-major, so row-major C = A * B is C^T = B^T * A^T.
class Matmul {
 public:
  explicit Matmul(const Problem& p) : problem_(p), mode_(cublas::mode_of(p.precision)) {
    const auto set = [&](cublasLtMatmulDescAttributes_t which, bool transposed) {
      const cublasOperation_t value = cublas::operation(transposed);
      check(api().cublasLtMatmulDescSetAttribute(operation_.get(), which, &value, sizeof value));
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, transposes_b(p.layout));
    set(CUBLASLT_MATMUL_DESC_TRANSB, transposes_a(p.layout));
    // Only the "fast" FP8 precisions accumulate without limit. Otherwise cuBLASLt promotes to FP32
    // at intervals.
    const std::int8_t fast = traits_of(p.precision).coarse_length == PrecisionTraits::kNoLimit;
    check(api().cublasLtMatmulDescSetAttribute(operation_.get(), CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                                               &fast, sizeof fast));
    if (has_scales(p.precision)) ask_for_scales();
    if (elements_of_bias(p) > 0) ask_for_bias();
  }

  const Problem& problem() const { return problem_; }

  // The heuristic's algorithms for every workspace size, without duplicates; best guess for the
  // largest workspace first.
  std::vector<cublasLtMatmulAlgo_t> all_algorithms(const Alignment& alignment) const {
    std::vector<cublasLtMatmulAlgo_t> all;
    for (const std::uint64_t workspace : kWorkspaces)
      for (const cublasLtMatmulAlgo_t& one : algorithms(alignment, workspace))
        if (std::ranges::none_of(all, [&](const cublasLtMatmulAlgo_t& other) {
              return std::ranges::equal(one.data, other.data);
            }))
          all.push_back(one);
    return all;
  }

  // The heuristic's algorithms, best guess first; empty if it has none.
  std::vector<cublasLtMatmulAlgo_t> algorithms(const Alignment& alignment,
                                               std::uint64_t workspace = kWorkspaceBytes) const {
    if (!knows_scales_) return {};
    const auto preference = make<Preference>(api().cublasLtMatmulPreferenceCreate);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
      check(api().cublasLtMatmulPreferenceSetAttribute(preference.get(), which, &value,
                                                       sizeof value));
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment.b);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment.a);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment.c);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment.c);
    // Partial sums of split-K stay in FP32. The two other reduction schemes keep them in the type
    // of C, which is equivalent where C has the compute type.
    if (mode_.output != mode_.scale)
      set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
          std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});

    std::vector<cublasLtMatmulHeuristicResult_t> results(kMostAlgorithms);
    int found = 0;
    const cublasStatus_t status = api().cublasLtMatmulAlgoGetHeuristic(
        library_.get(), operation_.get(), b_.get(), a_.get(), c_.get(), c_.get(), preference.get(),
        kMostAlgorithms, results.data(), &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
    check(status);
    results.resize(found);
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (const cublasLtMatmulHeuristicResult_t& result : results)
      if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
    return algorithms;
  }

  cublasStatus_t enqueue(const Operands& o, const cublasLtMatmulAlgo_t& algorithm, void* workspace,
                         Stream stream) const {
    if (o.bias != nullptr) set_bias(o.bias);
    const cublas::Scalar one(mode_, 1), zero(mode_, 0);
    if (has_scales(problem_.precision)) set_scales(o.b_scales, o.a_scales);
    return api().cublasLtMatmul(library_.get(), operation_.get(), &one, o.b, b_.get(), o.a,
                                a_.get(), o.residual == nullptr ? &zero : &one,
                                o.residual == nullptr ? o.c : o.residual, c_.get(), o.c, c_.get(),
                                &algorithm, workspace, kWorkspaceBytes, stream);
  }

 private:
  void ask_for_scales() {
    const auto set_mode = [&](cublasLtMatmulDescAttributes_t which, std::int32_t mode) {
      knows_scales_ &= api().cublasLtMatmulDescSetAttribute(operation_.get(), which, &mode,
                                                            sizeof mode) == CUBLAS_STATUS_SUCCESS;
    };
    set_mode(kAScaleMode, kScaleOf128x128);
    set_mode(kBScaleMode, kScaleOf128);
    // The heuristic wants aligned addresses, and does not read what is there.
    const auto* const aligned = reinterpret_cast<const float*>(std::uintptr_t{256});
    set_scales(aligned, aligned);
  }

  // Of cuBLASLt's A and B, which are our B and A.
  void set_scales(const float* a, const float* b) const {
    const auto set = [&](cublasLtMatmulDescAttributes_t which, const float* scales) {
      check(api().cublasLtMatmulDescSetAttribute(operation_.get(), which, &scales, sizeof scales));
    };
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, a);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, b);
  }

  // The bias is of the rows of C^T. GELU is the tanh form.
  void ask_for_bias() {
    const cublasLtEpilogue_t epilogue = problem_.activation == Activation::bias
                                            ? CUBLASLT_EPILOGUE_BIAS
                                            : CUBLASLT_EPILOGUE_GELU_BIAS;
    check(api().cublasLtMatmulDescSetAttribute(operation_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE,
                                               &epilogue, sizeof epilogue));
    set_bias(reinterpret_cast<const void*>(std::uintptr_t{256}));  // for the heuristic, as above
  }

  void set_bias(const void* bias) const {
    check(api().cublasLtMatmulDescSetAttribute(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                               &bias, sizeof bias));
  }

  // Row-major, which cuBLASLt reads as the column-major transpose; one after another of a batch.
  Matrix matrix(cudaDataType_t type, std::int64_t rows, std::int64_t columns) const {
    auto one = make<Matrix>(api().cublasLtMatrixLayoutCreate, type, columns, rows, columns);
    if (problem_.batch == 1) return one;
    const std::int64_t stride = rows * columns;  // in elements
    check(api().cublasLtMatrixLayoutSetAttribute(one.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                 &problem_.batch, sizeof problem_.batch));
    check(api().cublasLtMatrixLayoutSetAttribute(
        one.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
    return one;
  }

  Problem problem_;
  cublas::Mode mode_;
  bool knows_scales_ = true;  // of blocks
  Library library_ = make<Library>(api().cublasLtCreate);
  Operation operation_ =
      make<Operation>(api().cublasLtMatmulDescCreate, mode_.compute, mode_.scale);
  Matrix a_ = matrix(mode_.input, transposes_a(problem_.layout) ? problem_.k : problem_.m,
                     lda(problem_)),
         b_ = matrix(mode_.input, transposes_b(problem_.layout) ? problem_.n : problem_.k,
                     ldb(problem_)),
         c_ = matrix(mode_.output, problem_.m, problem_.n);
};

enum class Choice { first, best };

// Shared by the operand sets of a case; lives as long as their launches.
class Plan {
 public:
  Plan(const Problem& p, const Device& device, const Operands& o, Choice choice)
      : matmul_(p), alignment_(Alignment::of(p, o)) {
    const auto algorithms = choice == Choice::first ? matmul_.algorithms(alignment_)
                                                    : matmul_.all_algorithms(alignment_);
    if (algorithms.empty()) throw std::runtime_error("cuBLASLt has no algorithm for this problem");
    algorithm_ = algorithms.front();
    if (choice == Choice::first) return;
    const OperandSets sets(p, device, o);
    std::vector<Trial::Work> tried;
    for (const cublasLtMatmulAlgo_t& algorithm : algorithms)
      tried.emplace_back([&, launch = std::size_t{0}](Stream stream) mutable {
        return matmul_.enqueue(sets.of_launch(launch++), algorithm, workspace_.get(), stream) ==
               CUBLAS_STATUS_SUCCESS;
      });
    algorithm_ = algorithms[Trial().fastest(tried)];
  }

  void enqueue(const Operands& o, Stream stream) const {
    check(matmul_.enqueue(o, algorithm_, workspace_.get(), stream));
  }

  template <Choice kChoice>
  static std::shared_ptr<const Plan> shared(const Problem& p, const Device& device,
                                            const Operands& o) {
    static std::weak_ptr<const Plan> living;
    auto plan = living.lock();
    if (plan && plan->matmul_.problem() == p && plan->alignment_ == Alignment::of(p, o))
      return plan;
    living = plan = std::make_shared<const Plan>(p, device, o, kChoice);
    return plan;
  }

 private:
  Matmul matmul_;
  Alignment alignment_;
  cublas::Workspace workspace_ = cublas::workspace(kWorkspaceBytes);
  cublasLtMatmulAlgo_t algorithm_;
};

// The reason, too, is found by asking the heuristic: what it supports in FP8 and INT8 depends on
// layout, sizes, device and library version.
std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if (p.tokens != Tokens::equal) return "takes no groups";
  if (const auto why = cublas::unsupported(p, device)) return why;
  if (has_scales(p.precision) && p.batch > 1) return "cuBLASLt takes no batch with block scales";
  const auto has_algorithm = [](const Problem& other) {
    return !Matmul(other).algorithms(Alignment::of(other, {})).empty();
  };
  if (has_algorithm(p)) return std::nullopt;
  const std::string name(traits_of(p.precision).name);
  if (p.activation != Activation::none) {
    Problem plain = p;
    plain.activation = Activation::none;
    if (has_algorithm(plain))
      return "cuBLASLt supports this size of " + name + " only without an epilogue";
  }
  if (p.batch > 1 && has_algorithm(one_of(p)))
    return "cuBLASLt supports this size of " + name + " only without a batch";
  const auto even = [](std::int64_t size) { return (size + 15) / 16 * 16; };
  Problem easier = {even(p.m), even(p.n), even(p.k), p.precision, p.layout, p.batch};
  if (has_algorithm(easier))
    return "cuBLASLt supports " + name + " only for some m, n, k (rerun with multiples of 16)";
  easier.layout = Layout::nt;
  if (has_algorithm(easier))
    return "cuBLASLt supports " + name + " only in layout nt (rerun with --gemm_layouts=nt)";
  return "cuBLASLt does not support " + name + " on this device";
}

template <Choice kChoice>
Kernel variant(std::string_view name) {
  return {
      .name = "cuBLASLt",
      .parameters = {{"algo", std::string(name)}},
      .idea =
          "NVIDIA's library with choice of the algorithm: the heuristic's first, or the fastest "
          "tried.",
      .source = "cuBLAS, cublasLtMatmul with a 64 MiB workspace",
      .precisions = {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16,
                     Precision::e4m3, Precision::e4m3fast, Precision::e5m2, Precision::e5m2fast,
                     Precision::s8, Precision::e4m3block},
      .layouts = {kLayouts.begin(), kLayouts.end()},
      .batches = Batches::also,
      .activations = {kActivations.begin(), kActivations.end()},
      .unsupported = unsupported,
      .prepare = [](const Problem& p, const Device& device, const Operands& o) -> Launch {
        return [o, plan = Plan::shared<kChoice>(p, device, o)](Stream stream) {
          plan->enqueue(o, stream);
        };
      },
  };
}

// A call for each product in turn, by the heuristic's first algorithm, where they have scales of
// blocks, of which cuBLASLt takes no batch.
class Loop {
 public:
  Loop(const Problem& p, const Operands& o) : all_(p) {
    Problem row = p;  // that may be the first one of a product
    row.m = 1;
    for (std::int64_t which = 0; which < p.batch; ++which) {
      const Problem one = all_.product(which);
      if (one.m == 0 || calls_.contains(one.m)) continue;
      Matmul matmul(one);
      const auto algorithms = matmul.algorithms(Alignment::of(row, o));
      if (algorithms.empty())
        throw std::runtime_error("cuBLASLt has no algorithm for a product of these");
      calls_.emplace(one.m, Call{std::move(matmul), algorithms.front()});
    }
  }

  void enqueue(const std::vector<Operands>& each, Stream stream) const {
    for (std::int64_t which = 0; which < all_.batch; ++which)
      if (const auto call = calls_.find(all_.rows(which)); call != calls_.end())
        check(call->second.matmul.enqueue(each[which], call->second.algorithm, workspace_.get(),
                                          stream));
  }

  // A product's rows of A's scales must be as long as its A: they are copied.
  static Launch prepare(const Problem& p, const Device&, const Operands& o) {
    const auto loop = std::make_shared<const Loop>(p, o);
    const auto scales = std::make_shared<const cublas::Workspace>(
        cublas::workspace(scales_of_a(p) * sizeof(float)));
    std::vector<Operands> each;
    for (std::int64_t which = 0; which < p.batch; ++which) {
      each.push_back(loop->all_.operands(o, which));
      const std::size_t bytes = loop->all_.rows(which) * sizeof(float);
      const std::int64_t blocks = ceil_div(p.k, kScaleBlock);
      auto* to = static_cast<float*>(scales->get()) + blocks * loop->all_.first_row(which);
      if (bytes > 0)
        gemm::check(cudaMemcpy2D(to, bytes, each.back().a_scales, p.batch * p.m * sizeof(float),
                                 bytes, blocks, cudaMemcpyDeviceToDevice));
      each.back().a_scales = to;
    }
    gemm::check(cudaStreamSynchronize(nullptr));  // other streams do not wait for the copies
    return [loop, scales, each](Stream stream) { loop->enqueue(each, stream); };
  }

  static std::optional<std::string> unsupported(const Problem& p, const Device& device) {
    const Products all(p);
    std::int64_t largest = 0;
    for (std::int64_t which = 0; which < p.batch; ++which) {
      if (all.rows(which) % 4 != 0)
        return "cuBLASLt supports scales of blocks only where each m is a multiple of 4";
      if (all.rows(which) > all.rows(largest)) largest = which;
    }
    return gemm::unsupported(all.product(largest), device);
  }

 private:
  struct Call {
    Matmul matmul;
    cublasLtMatmulAlgo_t algorithm;
  };

  Products all_;
  std::map<std::int64_t, Call> calls_;  // by m
  cublas::Workspace workspace_ = cublas::workspace(kWorkspaceBytes);
};

const Registration loop({
    .name = "cuBLASLt",
    .parameters = {{"call", "loop"}},
    .idea = "NVIDIA's library, a call for each product of a batch or groups with scales of blocks.",
    .source = "cuBLAS, cublasLtMatmul with a 64 MiB workspace",
    .rearranges = true,
    .precisions = {Precision::e4m3block},
    .layouts = {Layout::nt},
    .batches = Batches::only,
    .unsupported = Loop::unsupported,
    .prepare = Loop::prepare,
});
const Registration first(variant<Choice::first>("first"));
const Registration best(variant<Choice::best>("best"));

}  // namespace
}  // namespace gemm
