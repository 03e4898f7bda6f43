// cuBLAS: the library baseline. FP32 in both math modes, because the default mode may choose
// algorithms that PEDANTIC forbids, and either can be the faster one.
#include "kernels/library/cublas.hpp"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/layout.hpp"
#include "kernels/registry.hpp"
#include "kernels/tokens.hpp"

namespace gemm {
namespace cublas {
namespace {

// The loader links cuBLAS with a cuBLASLt of the right name that is loaded already, so that of the
// folder is loaded first: else one in LD_LIBRARY_PATH would be used.
std::optional<OpenedLibrary> cublaslt_beside(const std::filesystem::path& file) {
  constexpr std::string_view kName = "cublas";
  std::string name = file.filename();
  const auto at = name.find(kName);
  if (at == std::string::npos) return std::nullopt;
  const auto beside = file.parent_path() / name.insert(at + kName.size(), "Lt");
  if (!std::filesystem::exists(beside)) return std::nullopt;
  return OpenedLibrary("cuBLASLt", {beside});
}

template <typename GetProperty>
std::string version_by(GetProperty get) {
  std::string text;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    get(part, &number);
    text += (text.empty() ? "" : ".") + std::to_string(number);
  }
  return text;
}

void note(decltype(&::cublasGetProperty) get, decltype(&::cublasLtGetProperty) get_lt,
          const std::string& detail = "") {
  note_loaded({"cuBLAS", version_by(get), file_of(get), detail});
  note_loaded({"cuBLASLt", version_by(get_lt), file_of(get_lt), detail});
}

std::vector<std::string> names() { return library_names("libcublas", CUBLAS_VER_MAJOR); }

Api open_by_loader() {
  try {
    return Api(names());
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(error.what() + std::string(": install it or give --gemm_cublas=FILE"));
  }
}

}  // namespace

Api open(const std::filesystem::path& file) {
  try {
    // Links are resolved: the libcublasLt of the same release lies beside the file itself.
    const auto real = std::filesystem::canonical(file);
    if (!std::filesystem::is_regular_file(real)) throw std::runtime_error("is not a file");
    const auto beside = cublaslt_beside(real);
    Api api(std::vector<std::string>{real});
    if (beside && beside->function("cublasLtCreate") != api.cublasLtCreate)
      throw std::runtime_error("this process has loaded another cuBLASLt of that name before (" +
                               version_by(api.cublasLtGetProperty) + ")");
    return api;
  } catch (const std::filesystem::filesystem_error& error) {
    throw std::runtime_error(file.string() + ": " + error.code().message());
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(file.filename().string() + ": " + error.what());
  }
}

std::string Api::version() const { return version_by(cublasGetProperty); }

const Api& api() {
  static const Api opened = [] {
    const Api first = cublas_file().empty() ? open_by_loader() : open(cublas_file());
    note(first.cublasGetProperty, first.cublasLtGetProperty);
    return first;
  }();
  return opened;
}

}  // namespace cublas

void open_cublas() { cublas::api(); }

void note_cublas_of_others() {
  for (const std::string& name : cublas::names()) {
    if (!is_loaded(name)) continue;
    const OpenedLibrary library("cuBLAS", {name});
    cublas::note(library.function("cublasGetProperty"), library.function("cublasLtGetProperty"),
                 "loaded by a user's kernel");
  }
}

namespace {

using cublas::api;
using cublas::check;
using cublas::Mode;

// A handle with its own workspace: with cuBLAS's default workspace a captured graph would allocate
// memory.
class Library {
 public:
  explicit Library(std::size_t workspace_bytes)
      : workspace_bytes_(workspace_bytes), workspace_(cublas::workspace(workspace_bytes)) {
    // By default split-K may reduce partial sums in BF16 or FP16: faster, but not FP32
    // accumulation, and beyond the error bound.
    check(api().cublasSetMathMode(
        get(), static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                         CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
  }

  cublasHandle_t on(Stream stream) const {
    check(api().cublasSetStream(get(), stream));
    check(api().cublasSetWorkspace(get(), workspace_.get(),
                                   workspace_bytes_));  // SetStream resets it
    return get();
  }

  cublasHandle_t get() const { return handle_.get(); }

  // One handle for all operand sets of a case; it lives as long as their launches.
  static std::shared_ptr<const Library> shared(std::size_t workspace_bytes = kWorkspaceBytes) {
    static std::weak_ptr<const Library> living;
    auto library = living.lock();
    if (library && library->workspace_bytes_ == workspace_bytes) return library;
    living = library = std::make_shared<const Library>(workspace_bytes);
    return library;
  }

 private:
  static constexpr std::size_t kWorkspaceBytes = 32 << 20;  // NVIDIA's advice for Hopper
  using Handle = Owned<cublasHandle_t, [](auto it) { api().cublasDestroy(it); }>;

  std::size_t workspace_bytes_;
  cublas::Workspace workspace_;
  Handle handle_ = cublas::make<Handle>(api().cublasCreate);
};

Launch prepare(const Problem& p, const Operands& o, Mode mode,
               const std::shared_ptr<const Library>& library = Library::shared());

// A call for each group.
Launch prepare_loop(const Problem& p, const Operands& o, Mode mode,
                    const std::shared_ptr<const Library>& library) {
  const Products all(p);
  std::vector<Launch> launches;
  for (std::int64_t which = 0; which < p.batch; ++which)
    if (const Problem one = all.product(which); one.m > 0)
      launches.push_back(prepare(one, all.operands(o, which), mode, library));
  return [launches = std::move(launches)](Stream stream) {
    for (const Launch& launch : launches) launch(stream);
  };
}

Launch prepare(const Problem& p, const Operands& o, Mode mode,
               const std::shared_ptr<const Library>& library) {
  if (is_grouped(p)) return prepare_loop(p, o, mode, library);
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  return [=](Stream stream) {
    const cublas::Scalar one(mode, 1), zero(mode, 0);
    // cuBLAS is column-major: row-major C = A * B is C^T = B^T * A^T there.
    if (p.batch > 1)
      return check(api().cublasGemmStridedBatchedEx(
          library->on(stream), cublas::operation(transposes_b(p.layout)),
          cublas::operation(transposes_a(p.layout)), n, m, k, &one, o.b, mode.input,
          static_cast<int>(ldb(p)), p.k * p.n, o.a, mode.input, static_cast<int>(lda(p)), p.m * p.k,
          &zero, o.c, mode.output, n, p.m * p.n, p.batch, mode.compute, CUBLAS_GEMM_DEFAULT));
    check(api().cublasGemmEx(library->on(stream), cublas::operation(transposes_b(p.layout)),
                             cublas::operation(transposes_a(p.layout)), n, m, k, &one, o.b,
                             mode.input, static_cast<int>(ldb(p)), o.a, mode.input,
                             static_cast<int>(lda(p)), &zero, o.c, mode.output, n, mode.compute,
                             CUBLAS_GEMM_DEFAULT));
  };
}

Kernel variant(std::string_view math, std::vector<Precision> precisions,
               decltype(Kernel::prepare) prepare, Batches batches = Batches::also) {
  return {
      .name = "cuBLAS",
      .parameters = {{"math", std::string(math)}},
      .idea = "NVIDIA's library: the reference for every GPU kernel.",
      .source =
          "cuBLAS, cublasGemmEx with a 32 MiB workspace, for each group in turn; "
          "cublasGemmStridedBatchedEx",
      .precisions = std::move(precisions),
      .layouts = {kLayouts.begin(), kLayouts.end()},
      .batches = batches,
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

// All groups in one call, of which cuBLAS knows the rows: each group of its interface has one
// product here. Its arrays must live as long as a captured launch.
class GroupedCall {
 public:
  GroupedCall(const Problem& p, const Operands& o) : mode_(cublas::mode_of(p.precision)) {
    const Products all(p);
    std::vector<const void*> pointers[3];
    for (std::int64_t which = 0; which < p.batch; ++which) {
      const Problem one = all.product(which);
      if (one.m == 0) continue;
      const Operands at = all.operands(o, which);
      rows_.push_back(static_cast<int>(one.m));
      lda_.push_back(static_cast<int>(lda(one)));
      pointers[0].push_back(at.b);
      pointers[1].push_back(at.a);
      pointers[2].push_back(at.c);
    }
    const std::size_t groups = rows_.size();
    trans_a_.assign(groups, cublas::operation(transposes_b(p.layout)));
    trans_b_.assign(groups, cublas::operation(transposes_a(p.layout)));
    columns_.assign(groups, static_cast<int>(p.n));
    depth_.assign(groups, static_cast<int>(p.k));
    ldb_.assign(groups, static_cast<int>(ldb(p)));
    ones_.assign(groups, 1);
    zeros_.assign(groups, 0);
    sizes_.assign(groups, 1);
    for (int i = 0; i < 3; ++i) {
      pointers_[i] = cublas::workspace(groups * sizeof(void*));
      gemm::check(cudaMemcpy(pointers_[i].get(), pointers[i].data(), groups * sizeof(void*),
                             cudaMemcpyHostToDevice));
    }
  }
  void enqueue(cublasHandle_t handle) const {
    const auto of = [&](int which) {
      return static_cast<const void* const*>(pointers_[which].get());
    };
    check(api().cublasGemmGroupedBatchedEx(
        handle, trans_a_.data(), trans_b_.data(), columns_.data(), rows_.data(), depth_.data(),
        ones_.data(), of(0), mode_.input, ldb_.data(), of(1), mode_.input, lda_.data(),
        zeros_.data(), static_cast<void* const*>(pointers_[2].get()), mode_.output, columns_.data(),
        static_cast<int>(rows_.size()), sizes_.data(), mode_.compute));
  }

 private:
  Mode mode_;
  std::vector<cublasOperation_t> trans_a_, trans_b_;
  std::vector<int> rows_, columns_, depth_, lda_, ldb_, sizes_;
  std::vector<float> ones_, zeros_;
  cublas::Workspace pointers_[3];  // on the device: of B, A and C
};

std::optional<std::string> grouped_unsupported(const Problem& p, const Device& device) {
  if (!is_grouped(p)) return "takes only groups";
  if (const auto why = cublas::unsupported(p, device)) return why;
  if (api().cublasGemmGroupedBatchedEx == nullptr)
    return "cublasGemmGroupedBatchedEx is new in cuBLAS 12.5; this is " + api().version();
  return std::nullopt;
}

Kernel grouped() {
  Kernel kernel = variant(
      "grouped", {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16},
      [](const Problem& p, const Device&, const Operands& o) -> Launch {
        return [library = Library::shared(), call = std::make_shared<const GroupedCall>(p, o)](
                   Stream stream) { call->enqueue(library->on(stream)); };
      },
      Batches::only);
  kernel.parameters = {{"call", "grouped"}};
  kernel.source = "cuBLAS, cublasGemmGroupedBatchedEx with a 32 MiB workspace";
  kernel.unsupported = grouped_unsupported;
  return kernel;
}
const Registration with_groups(grouped());

// FP64 emulated by INT8 tensor cores: an element is a fixed-point number of the scale of its row of
// A or column of B, in slices of 8 bits. 55 bits and the sign are 7 slices.
constexpr int kMantissaBits = 55, kSlices = (kMantissaBits + 1) / 8;

// An upper bound of the workspace, by NVIDIA's formula: without enough, cuBLAS allocates memory.
std::size_t emulation_bytes(const Problem& p) {
  const auto padded = [](std::int64_t size, std::int64_t to) { return ceil_div(size, to) * to; };
  const double lines = 1.0 * padded(p.m, 1024) + 1.0 * padded(p.n, 1024);
  const double slices = lines * padded(p.k, 128) * kSlices + lines * sizeof(std::int32_t);
  return static_cast<std::size_t>(1.25 * slices) + (std::size_t{128} << 20);
}

Launch prepare_emulated(const Problem& p, const Device&, const Operands& o) {
  auto library = Library::shared(emulation_bytes(p));
  const cublasHandle_t handle = library->get();
  check(api().cublasSetEmulationStrategy(handle, cublas::kEmulateEagerly));
  check(api().cublasSetFixedPointEmulationMantissaControl(handle, cublas::kFixedMantissa));
  check(api().cublasSetFixedPointEmulationMaxMantissaBitCount(handle, kMantissaBits));
  // In a CUDA graph cuBLAS 13.1 computes problems of 64 with 16 bits.
  return [launch = prepare(p, o, cublas::mode_of(p.precision), library)](Stream stream) {
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &capturing) == cudaSuccess &&
        capturing != cudaStreamCaptureStatusNone)
      throw std::runtime_error("cuBLAS's emulation of FP64 cannot be captured");
    launch(stream);
  };
}

// NVIDIA's formula for the workspace is of one product.
const Registration emulated(variant("emulated", {Precision::f64emulated}, prepare_emulated,
                                    Batches::none));

}  // namespace
}  // namespace gemm
