// Kernels from a user's Python file, called through the functions that run_in_python.py passes in.
#include "kernels/user/python.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "kernels/epilogue.hpp"
#include "kernels/layout.hpp"

namespace gemm {
namespace {

const PythonFunctions* python = nullptr;

const char* name_of(ElementType element) {
  constexpr const char* kNames[] = {"f32", "bf16", "f16", "e4m3", "e5m2", "f64", "s32", "s8"};
  return kNames[static_cast<std::size_t>(element)];
}

template <typename... Arguments>
void call(void (*function)(Arguments...), std::type_identity_t<Arguments>... arguments) {
  *python->raised = "it raised an exception whose text cannot be made";
  function(arguments...);
  if (*python->raised == nullptr) return;
  if (*python->not_loaded) throw CannotLoad(first_line(*python->raised));
  throw std::runtime_error(first_line(*python->raised));
}

// The strings behind a PythonCall's pointers.
struct File {
  explicit File(const UserKernel& user)
      : path(std::filesystem::absolute(user.file)),
        entry(user.entry.empty() ? "prepare" : user.entry) {}

  PythonCall call(const Problem& p, const Device& device, const Call& arguments) const {
    if (python == nullptr) throw std::logic_error("Python kernels need run_in_python.py");
    const PrecisionTraits& traits = traits_of(p.precision);
    return {.file = path.c_str(),
            .entry = entry.c_str(),
            .precision = traits.name.data(),
            .layout = gemm::name_of(p.layout).data(),
            .device = device.kind == Device::Kind::gpu ? "gpu" : "cpu",
            .input_element = name_of(traits.input),
            .output_element = name_of(traits.output),
            .epilogue = gemm::name_of(p.activation).data(),
            .call = arguments};
  }

  std::string path, entry;
};

}  // namespace

void set_python(const PythonFunctions* functions) { python = functions; }

Loaded load_python(const UserKernel& user) {
  const File file(user);
  return {
      .takes =
          [file](const Problem& p, const Device& device) {
            const auto arguments = call_of(p, {}, {});  // without data
            const PythonCall call = file.call(p, device, *arguments);
            unsigned takes = 0;
            gemm::call(python->takes, &call, &takes);
            return takes;
          },
      .unsupported = [file](const Problem& p, const Device& device) -> std::optional<std::string> {
        const auto arguments = call_of(p, {}, {});
        const PythonCall call = file.call(p, device, *arguments);
        const char* reason = nullptr;
        gemm::call(python->unsupported, &call, &reason);
        return reason == nullptr ? std::nullopt : std::optional(first_line(reason));
      },
      .prepare = [file](const Problem& p, const Device& device, const Operands& o) -> Launch {
        const auto arguments = call_of(p, device, o);
        const PythonCall call = file.call(p, device, *arguments);
        std::int64_t launch = 0;
        gemm::call(python->prepare, &call, &launch);
        const std::shared_ptr<void> held(nullptr,
                                         [launch, arguments](void*) { python->release(launch); });
        return [launch, held](Stream stream) { gemm::call(python->launch, launch, stream); };
      }};
}

}  // namespace gemm
