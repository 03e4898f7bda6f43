// cuBLASLt's grouped product, whose rows are device arrays: the library's answer to a mixture of
// experts. Its functions and enumerators are newer than the headers that this project needs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/layout.hpp"
#include "kernels/library/cublas.hpp"
#include "kernels/registry.hpp"
#include "kernels/tokens.hpp"

namespace gemm {
namespace {

using cublas::api;
using cublas::check;
using cublas::make;

// As cublasLt.h of 13.8 has them.
using CreateGroupedLayout = cublasStatus_t(cublasLtMatrixLayout_t*, cudaDataType_t, int,
                                           const void*, const void*, const void*);
constexpr auto kAverageDepth = static_cast<cublasLtMatmulPreferenceAttributes_t>(13);
constexpr auto kAverageRowsOfD = static_cast<cublasLtMatmulPreferenceAttributes_t>(14);
constexpr auto kAverageColumnsOfD = static_cast<cublasLtMatmulPreferenceAttributes_t>(15);

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;

using Library = Owned<cublasLtHandle_t, [](auto it) { api().cublasLtDestroy(it); }>;
using Operation = Owned<cublasLtMatmulDesc_t, [](auto it) { api().cublasLtMatmulDescDestroy(it); }>;
using Matrix =
    Owned<cublasLtMatrixLayout_t, [](auto it) { api().cublasLtMatrixLayoutDestroy(it); }>;
using Preference =
    Owned<cublasLtMatmulPreference_t, [](auto it) { api().cublasLtMatmulPreferenceDestroy(it); }>;

template <typename T>
cublas::Workspace on_device(const std::vector<T>& values) {
  auto memory = cublas::workspace(values.size() * sizeof(T));
  gemm::check(
      cudaMemcpy(memory.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

// In bytes, of all addresses that are a multiple of `step` after the first.
std::uint32_t alignment(const void* first, std::int64_t step) {
  const auto bits =
      reinterpret_cast<std::uintptr_t>(first) | static_cast<std::uintptr_t>(step) | 256;
  return static_cast<std::uint32_t>(bits & -bits);
}

// A matrix of each group, row-major, which cuBLASLt reads as the column-major transpose.
class Matrices {
 public:
  Matrices(cudaDataType_t type, const std::vector<std::int32_t>& rows,
           const std::vector<std::int32_t>& columns)
      : rows_(on_device(rows)),
        columns_(on_device(columns)),
        layout_(make<Matrix>(create(), type, static_cast<int>(rows.size()), columns_.get(),
                             rows_.get(), columns_.get())) {}
  cublasLtMatrixLayout_t get() const { return layout_.get(); }

 private:
  static CreateGroupedLayout* create() {
    return api().library.function("cublasLtGroupedMatrixLayoutCreate");
  }

  cublas::Workspace rows_, columns_;  // on the device
  Matrix layout_;
};

// Shared by the operand sets of a case. Scalars are on the device: with scalars of the host some
// releases are wrong on Hopper.
class Plan {
 public:
  Plan(const Problem& p, const Operands& o) : all_(p), mode_(cublas::mode_of(p.precision)) {
    std::vector<std::int32_t> rows;
    for (std::int64_t which = 0; which < p.batch; ++which)
      if (all_.rows(which) > 0) rows.push_back(static_cast<std::int32_t>(all_.rows(which)));
    const std::vector depth(rows.size(), static_cast<std::int32_t>(p.k)),
        columns(rows.size(), static_cast<std::int32_t>(p.n));
    const bool transposed = transposes_b(p.layout);
    a_.emplace(mode_.input, rows, depth);
    b_.emplace(mode_.input, transposed ? columns : depth, transposed ? depth : columns);
    c_.emplace(mode_.output, rows, columns);
    set(CUBLASLT_MATMUL_DESC_TRANSA, cublas::operation(transposed));
    set(CUBLASLT_MATMUL_DESC_POINTER_MODE, std::int32_t{CUBLASLT_POINTER_MODE_DEVICE});
    find_algorithm(o);
  }

  const Problem& problem() const { return all_; }
  const Products& products() const { return all_; }
  void enqueue(const void* a, const void* b, void* c, Stream stream) const {
    const auto* const scalars = static_cast<const float*>(scalars_.get());
    check(api().cublasLtMatmul(library_.get(), operation_.get(), scalars, b, b_->get(), a,
                               a_->get(), scalars + 1, c, c_->get(), c, c_->get(), &algorithm_,
                               workspace_.get(), kWorkspaceBytes, stream));
  }

  static std::shared_ptr<const Plan> shared(const Problem& p, const Operands& o) {
    static std::weak_ptr<const Plan> living;
    auto plan = living.lock();
    if (!plan || !(plan->problem() == p)) living = plan = std::make_shared<const Plan>(p, o);
    return plan;
  }

 private:
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t which, T value) {
    check(api().cublasLtMatmulDescSetAttribute(operation_.get(), which, &value, sizeof value));
  }

  // What the heuristic knows of the groups is their average.
  void find_algorithm(const Operands& o) {
    const Problem& p = all_;
    const PrecisionTraits& traits = traits_of(p.precision);
    const auto preference = make<Preference>(api().cublasLtMatmulPreferenceCreate);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
      check(api().cublasLtMatmulPreferenceSetAttribute(preference.get(), which, &value,
                                                       sizeof value));
    };
    const std::uint32_t of_c = alignment(o.c, p.n * traits.output_bytes);
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspaceBytes});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(o.b, ldb(p) * traits.input_bytes));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(o.a, p.k * traits.input_bytes));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_c);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of_c);
    prefer(kAverageDepth, static_cast<std::uint32_t>(p.k));
    prefer(kAverageRowsOfD, static_cast<std::uint32_t>(p.n));
    prefer(kAverageColumnsOfD, static_cast<std::uint32_t>(p.m));
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status = api().cublasLtMatmulAlgoGetHeuristic(
        library_.get(), operation_.get(), b_->get(), a_->get(), c_->get(), c_->get(),
        preference.get(), 1, &result, &found);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status);
    if (found == 0) throw std::runtime_error("cuBLASLt has no algorithm for these groups");
    algorithm_ = result.algo;
  }

  Products all_;
  cublas::Mode mode_;
  Library library_ = make<Library>(api().cublasLtCreate);
  Operation operation_ =
      make<Operation>(api().cublasLtMatmulDescCreate, mode_.compute, mode_.scale);
  std::optional<Matrices> a_, b_, c_;
  cublas::Workspace workspace_ = cublas::workspace(kWorkspaceBytes),
                    scalars_ = on_device(std::vector<float>{1, 0});
  cublasLtMatmulAlgo_t algorithm_{};
};

// In a grouped product's place of a matrix there is a device array of pointers.
Launch prepare(const Problem& p, const Device&, const Operands& o) {
  auto plan = Plan::shared(p, o);
  std::vector<const void*> a, b;
  std::vector<void*> c;
  for (std::int64_t which = 0; which < p.batch; ++which) {
    if (plan->products().rows(which) == 0) continue;
    const Operands one = plan->products().operands(o, which);
    a.push_back(one.a);
    b.push_back(one.b);
    c.push_back(one.c);
  }
  const auto share = [](auto memory) {
    return std::make_shared<const cublas::Workspace>(std::move(memory));
  };
  return [=, a = share(on_device(a)), b = share(on_device(b)), c = share(on_device(c))](
             Stream stream) { plan->enqueue(a->get(), b->get(), c->get(), stream); };
}

std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if (!is_grouped(p)) return "takes only groups";
  if (const auto why = cublas::unsupported(p, device)) return why;
  if (device.compute_capability < 90) return "requires compute capability 9.0";
  int major = 0, minor = 0;
  api().cublasLtGetProperty(MAJOR_VERSION, &major);
  api().cublasLtGetProperty(MINOR_VERSION, &minor);
  if (major < 13 || (major == 13 && minor < 8))
    return "cuBLASLt's grouped product has known errors on Hopper before 13.8; this is " +
           api().version() + " (see --gemm_cublas)";
  if (p.k % 8 != 0 || p.n % 8 != 0) return "cuBLASLt requires groups with n and k in eights";
  return std::nullopt;
}

const Registration grouped({
    .name = "cuBLASLt",
    .parameters = {{"call", "grouped"}},
    .idea = "NVIDIA's library, all groups in one call, whose rows are on the device.",
    .source = "cuBLAS, cublasLtMatmul with grouped layouts and a 64 MiB workspace",
    .precisions = {Precision::bf16, Precision::f16},
    .layouts = {Layout::nn, Layout::nt},
    .batches = Batches::only,
    .unsupported = unsupported,
    .prepare = prepare,
});

}  // namespace
}  // namespace gemm
