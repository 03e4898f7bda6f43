// A user's .cu file: compiled by NVRTC for the GPU at hand. A kernel of one thread runs the file's
// own function that describes the launch.
#include <cuda.h>
#include <cuda_runtime.h>
#include <nvrtc.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/driver_function.hpp"
#include "kernels/libraries.hpp"
#include "kernels/user/configuration.hpp"
#include "kernels/user/gemm_kernel.h"
#include "kernels/user/user_kernel.hpp"

namespace gemm {
namespace {

template <typename F>
F* driver(const char* name) {
  F* const function = driver_function<F>(name);
  if (function == nullptr) throw std::runtime_error("the driver has no " + std::string(name));
  return function;
}

void check(CUresult result, const std::string& what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  driver<decltype(cuGetErrorString)>("cuGetErrorString")(result, &text);
  throw std::runtime_error(what + ": " + (text == nullptr ? std::to_string(result) : text));
}

void check(cudaError_t status, const std::string& what) {
  if (status != cudaSuccess) throw std::runtime_error(what + ": " + cudaGetErrorString(status));
}

// The functions of NVRTC, by their names.
struct Nvrtc {
  OpenedLibrary library{"NVRTC", library_names("libnvrtc", CUDA_VERSION / 1000)};

  decltype(&::nvrtcVersion) nvrtcVersion = library.function("nvrtcVersion");
  decltype(&::nvrtcGetErrorString) nvrtcGetErrorString = library.function("nvrtcGetErrorString");
  decltype(&::nvrtcCreateProgram) nvrtcCreateProgram = library.function("nvrtcCreateProgram");
  decltype(&::nvrtcDestroyProgram) nvrtcDestroyProgram = library.function("nvrtcDestroyProgram");
  decltype(&::nvrtcAddNameExpression) nvrtcAddNameExpression =
      library.function("nvrtcAddNameExpression");
  decltype(&::nvrtcCompileProgram) nvrtcCompileProgram = library.function("nvrtcCompileProgram");
  decltype(&::nvrtcGetProgramLogSize) nvrtcGetProgramLogSize =
      library.function("nvrtcGetProgramLogSize");
  decltype(&::nvrtcGetProgramLog) nvrtcGetProgramLog = library.function("nvrtcGetProgramLog");
  decltype(&::nvrtcGetLoweredName) nvrtcGetLoweredName = library.function("nvrtcGetLoweredName");
  decltype(&::nvrtcGetCUBINSize) nvrtcGetCUBINSize = library.function("nvrtcGetCUBINSize");
  decltype(&::nvrtcGetCUBIN) nvrtcGetCUBIN = library.function("nvrtcGetCUBIN");
};

// Opened at the first call. Throws std::runtime_error.
const Nvrtc& nvrtc() {
  static const Nvrtc opened = [] {
    const Nvrtc first;
    int major = 0, minor = 0;
    first.nvrtcVersion(&major, &minor);
    note_loaded({"NVRTC", std::to_string(major) + "." + std::to_string(minor),
                 file_of(first.nvrtcVersion)});
    return first;
  }();
  return opened;
}

void check(nvrtcResult result) {
  if (result != NVRTC_SUCCESS)
    throw std::runtime_error(std::string("NVRTC: ") + nvrtc().nvrtcGetErrorString(result));
}

struct Element {
  std::string type, header;
};

const Element& element(ElementType type) {
  static const Element kElements[] = {
      {"float", ""},
      {"__nv_bfloat16", "cuda_bf16.h"},
      {"__half", "cuda_fp16.h"},
      {"__nv_fp8_e4m3", "cuda_fp8.h"},
      {"__nv_fp8_e5m2", "cuda_fp8.h"},
      {"double", ""},
      {"int", ""},
      {"signed char", ""},
  };
  return kElements[static_cast<std::size_t>(type)];
}

// Of the folders in GEMM_BENCH_INCLUDE, separated by colons, and of those of the build.
std::vector<std::string> include_options() {
  std::vector<std::string> options;
  const char* given = std::getenv("GEMM_BENCH_INCLUDE");
  std::istringstream folders(given == nullptr ? "" : given);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty()) options.push_back("-I" + folder);
  options.insert(options.end(),
                 {"-I" GEMM_KERNEL_FOLDER, "-I" GEMM_CUDA_INCLUDE, "-I" GEMM_CUDA_INCLUDE "/cccl"});
  return options;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("'" + path.string() + "' cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

// The name under which compiler messages list the line that is appended to a file.
constexpr std::string_view kAppended = "gemm_bench, behind ";

// The first error in the log, without its folder, and the number of further errors.
std::string first_error(const std::string& log, const std::string& entry) {
  std::string first;
  int errors = 0;
  std::size_t end = 0;
  for (std::size_t start = 0; start < log.size(); start = end + 1) {
    end = std::min(log.find('\n', start), log.size());
    const std::string line = log.substr(start, end - start);
    const bool is_error = line.find("error: ") != std::string::npos;
    if (is_error && errors++ == 0) first = line;
  }
  if (const auto folder = first.rfind('/', first.find('(')); folder != std::string::npos)
    first.erase(0, folder + 1);
  // Errors in the appended line follow from each other.
  if (first.starts_with(kAppended))
    return first.substr(kAppended.size(), first.find("(") - kAppended.size()) + ": calling " +
           entry +
           "(gemm::Call): " + first.substr(first.find("error: ") + std::string("error: ").size());
  // cannot open source file "vector"
  if (const auto at = first.find("cannot open source file \""); at != std::string::npos) {
    const std::string missing = first.substr(first.find('"', at));
    const bool standard = missing.find_first_of("./") == std::string::npos;
    first += standard ? ": NVRTC compiles device code alone, and has no such header of the C++ "
                        "library: include it where __CUDACC_RTC__ is not defined"
                      : ": name its folder with --gemm_include=DIR";
  }
  if (first.empty()) return "it does not compile: " + log.substr(0, log.find('\n'));
  return errors == 1 ? first : first + " (and " + std::to_string(errors - 1) + " more)";
}

// Headers of the C++ library, of which NVRTC has none: those of <cuda/std/...> under their usual
// names.
struct StandardHeaders {
  std::vector<std::string> names, texts;

  StandardHeaders() {
    std::error_code missing;
    for (const auto& entry :
         std::filesystem::directory_iterator(GEMM_CUDA_INCLUDE "/cccl/cuda/std", missing)) {
      const std::string name = entry.path().filename();
      // <cuda/std/version> includes <version>, if there is one.
      if (!entry.is_regular_file() || entry.path().has_extension() || name == "version") continue;
      names.push_back(name);
      texts.push_back("#pragma once\n#include <cuda/std/" + name +
                      ">\nnamespace std { using namespace cuda::std; }\n");
    }
  }
};

struct Program {
  nvrtcProgram handle = nullptr;
  Program(const std::string& text, const std::string& name) {
    static const StandardHeaders headers;
    std::vector<const char*> names, texts;
    for (const std::string& one : headers.names) names.push_back(one.c_str());
    for (const std::string& one : headers.texts) texts.push_back(one.c_str());
    check(nvrtc().nvrtcCreateProgram(&handle, text.c_str(), name.c_str(),
                                     static_cast<int>(names.size()), texts.data(), names.data()));
  }
  Program(const Program&) = delete;
  ~Program() { nvrtc().nvrtcDestroyProgram(&handle); }

  std::string log() const {
    std::size_t size = 0;
    check(nvrtc().nvrtcGetProgramLogSize(handle, &size));
    std::string text(size, '\0');
    check(nvrtc().nvrtcGetProgramLog(handle, text.data()));
    return text.substr(0, text.find('\0'));
  }
};

// A compiled file, loaded on the GPU.
class Module {
 public:
  explicit Module(const CompiledSource& source) {
    check(cudaFree(nullptr), "no CUDA context");
    check(driver<decltype(cuModuleLoadData)>("cuModuleLoadData")(&module_, source.cubin.data()),
          "the compiled file cannot be loaded");
    kernel_ = function(source.kernel);
    describe_ = function(kDescribe);
  }
  Module(const Module&) = delete;
  ~Module() { driver<decltype(cuModuleUnload)>("cuModuleUnload")(module_); }

  unsigned takes() const { return result_of<unsigned>(function(kDeclared)); }

  // The result of the file's own function, checked.
  Configuration describe(Call call) const {
    const auto configuration = result_of<Configuration>(describe_, call);
    if (const auto fault = fault_of(configuration, parameters())) throw std::runtime_error(*fault);
    return configuration;
  }

  void allow_shared(unsigned bytes) const {
    constexpr unsigned kWithoutOptIn = 48 << 10;
    if (bytes > kWithoutOptIn)
      check(driver<decltype(cuFuncSetAttribute)>("cuFuncSetAttribute")(
                kernel_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes)),
            std::to_string(bytes) + " bytes of dynamic shared memory");
  }

  void launch(Configuration& c, Stream stream) const {
    void* arguments[kMostArguments] = {};
    for (unsigned i = 0; i < c.arguments; ++i) arguments[i] = c.bytes + c.offsets[i];
    launch(kernel_, c.grid, c.block, c.shared_bytes, stream, arguments);
  }

 private:
  // What a kernel of one thread writes to where its last argument points.
  template <typename Result, typename... Arguments>
  static Result result_of(CUfunction which, Arguments... arguments) {
    Result result{};
    void* there = nullptr;
    check(cudaMalloc(&there, sizeof result), "no memory for the description of a launch");
    const std::unique_ptr<void, cudaError_t (*)(void*)> owned(there, cudaFree);
    void* all[] = {&arguments..., &there};
    launch(which, {}, {}, 0, nullptr, all);
    check(cudaMemcpy(&result, there, sizeof result, cudaMemcpyDeviceToHost),
          "the function that describes the launch failed");
    return result;
  }

  // Sizes of the kernel's parameters; nothing where the driver is older than CUDA 12.4.
  std::optional<std::vector<std::size_t>> parameters() const {
    using ParameterInfo = CUresult(CUfunction, std::size_t, std::size_t*, std::size_t*);
    auto* const info = driver_function<ParameterInfo>("cuFuncGetParamInfo", 12040);
    if (info == nullptr) return std::nullopt;
    std::vector<std::size_t> sizes;
    std::size_t offset = 0, size = 0;
    while (info(kernel_, sizes.size(), &offset, &size) == CUDA_SUCCESS) sizes.push_back(size);
    return sizes;
  }
  CUfunction function(const std::string& name) const {
    CUfunction found = nullptr;
    check(
        driver<decltype(cuModuleGetFunction)>("cuModuleGetFunction")(&found, module_, name.c_str()),
        name + " is not in the compiled file");
    return found;
  }

  static void launch(CUfunction which, Dim grid, Dim block, unsigned shared, Stream stream,
                     void** arguments) {
    static const auto launch_kernel = driver<decltype(cuLaunchKernel)>("cuLaunchKernel");
    const CUresult result = launch_kernel(which, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                          shared, stream, arguments, nullptr);
    if (result == CUDA_SUCCESS) return;
    const auto text = [](Dim d) {
      return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
    };
    check(result, "a launch of " + text(grid) + " blocks of " + text(block) + " threads with " +
                      std::to_string(shared) + " bytes of dynamic shared memory");
  }

  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr, describe_ = nullptr;
};

// Where the code of this text and these options is kept; empty if it is not.
std::filesystem::path kept_code(const UserKernel& user, const std::string& text,
                                const std::vector<std::string>& options) {
  if (user.machine_code.empty()) return {};
  int major = 0, minor = 0;
  nvrtc().nvrtcVersion(&major, &minor);
  std::string all = std::to_string(major) + "." + std::to_string(minor) + "\n" + text;
  for (const std::string& option : options) all += "\n" + option;
  return user.machine_code / (std::to_string(std::hash<std::string>()(all)) + ".cubin");
}

// A line with the kernel's name, and the code.
std::optional<CompiledSource> read_code(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  CompiledSource kept;
  if (path.empty() || !file || !std::getline(file, kept.kernel)) return std::nullopt;
  kept.cubin.assign(std::istreambuf_iterator<char>(file), {});
  return kept.cubin.empty() ? std::nullopt : std::optional(std::move(kept));
}

// In one step, since others may read it meanwhile.
void keep_code(const std::filesystem::path& path, const CompiledSource& compiled) {
  if (path.empty()) return;
  const std::filesystem::path part = path.string() + "." + std::to_string(getpid()) + ".part";
  std::ofstream file(part, std::ios::binary);
  file << compiled.kernel << '\n' << compiled.cubin;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(part, path, error);
  if (!file || error) std::filesystem::remove(part, error);
}

}  // namespace

CompiledSource compile_source(const UserKernel& user, Precision precision, int compute_capability) {
  const PrecisionTraits& traits = traits_of(precision);
  const Element &input = element(traits.input), &output = element(traits.output);
  const std::string called = user.entry.empty() ? "launch" : user.entry, entry = "::" + called;
  const std::string file = user.file.filename().string();
  const std::string text = read(user.file) + "\n#line 1 \"" + std::string(kAppended) + file +
                           "\"\nextern \"C\" __global__ void " + kDescribe +
                           "(gemm::Call p, gemm::Configuration* out) { *out = " + entry +
                           "(p); }\nextern \"C\" __global__ void " + kDeclared +
                           "(unsigned* out) { *out = ::gemm_kernel_takes; }\n";
  std::vector<std::string> options = {
      "-std=c++20", "-default-device", "-lineinfo",
      // From 9.0 on with architecture-specific instructions, such as wgmma.
      "-arch=sm_" + std::to_string(compute_capability) + (compute_capability >= 90 ? "a" : ""),
      "-DGEMM_INPUT=" + input.type, "-DGEMM_OUTPUT=" + output.type,
      "-I" + std::filesystem::absolute(user.file).parent_path().string()};
  std::ranges::copy(include_options(), std::back_inserter(options));
  for (const std::string& header : {input.header, output.header})
    if (!header.empty()) options.push_back("-include=" + header);
  options.emplace_back(
      "-include=gemm_kernel.h");  // for the appended line, even if the file forgets it
  for (const Parameter& define : user.defines)
    options.push_back("-D" + define.name + "=" + define.value);
  for (const std::filesystem::path& folder : user.includes)
    options.push_back("-I" + std::filesystem::absolute(folder).string());
  const std::filesystem::path kept = kept_code(user, text, options);
  if (auto found = read_code(kept)) return std::move(*found);
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());

  const Program program(text, file);
  const std::string name = "decltype(" + entry + "(gemm::Call{}))::kernel";
  check(nvrtc().nvrtcAddNameExpression(program.handle, name.c_str()));
  const nvrtcResult result = nvrtc().nvrtcCompileProgram(
      program.handle, static_cast<int>(pointers.size()), pointers.data());
  const std::string log = program.log();
  if (log.size() > 1) std::cerr << log << std::flush;
  if (result == NVRTC_ERROR_COMPILATION) throw CannotLoad(first_error(log, called));
  check(result);

  const char* kernel = nullptr;
  check(nvrtc().nvrtcGetLoweredName(program.handle, name.c_str(), &kernel));
  CompiledSource compiled{.cubin = {}, .kernel = kernel};
  std::size_t size = 0;
  check(nvrtc().nvrtcGetCUBINSize(program.handle, &size));
  compiled.cubin.resize(size);
  check(nvrtc().nvrtcGetCUBIN(program.handle, compiled.cubin.data()));
  keep_code(kept, compiled);
  return compiled;
}

std::shared_ptr<const int> copy_on_gpu(const std::vector<int>& values) {
  void* there = nullptr;
  const std::size_t bytes = values.size() * sizeof(int);
  check(cudaMalloc(&there, bytes), "no memory for the rows of groups");
  std::shared_ptr<const int> owned(static_cast<const int*>(there),
                                   [there](auto) { cudaFree(there); });
  check(cudaMemcpy(there, values.data(), bytes, cudaMemcpyHostToDevice),
        "the rows of groups cannot be copied");
  return owned;
}

Loaded load_source(const UserKernel& user) {
  // By precision: that of the benchmark and perhaps of a baseline.
  using Modules = std::map<Precision, std::shared_ptr<const Module>>;
  const auto module_of = [user, modules = std::make_shared<Modules>()](const Problem& p,
                                                                       const Device& device) {
    auto& module = (*modules)[p.precision];
    if (!module)
      module = std::make_shared<const Module>(
          compile_source(user, p.precision, device.compute_capability));
    return module;
  };
  return {.takes = [=](const Problem& p,
                       const Device& device) { return module_of(p, device)->takes(); },
          .prepare = [=](const Problem& p, const Device& device, const Operands& o) -> Launch {
            const auto module = module_of(p, device);
            const auto held = call_of(p, device, o);
            Call call = *held;
            call.host_row_starts = nullptr;
            Configuration configuration = module->describe(call);
            module->allow_shared(configuration.shared_bytes);
            return [module, held, configuration](Stream stream) mutable {
              module->launch(configuration, stream);
            };
          }};
}

}  // namespace gemm
