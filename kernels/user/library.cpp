// A user's shared library: its C function gemm_kernel enqueues or computes the product.
#include <dlfcn.h>

#include <cfenv>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "kernels/user/gemm_kernel.h"
#include "kernels/user/user_kernel.hpp"

namespace gemm {
namespace {

struct Opened {
  decltype(&gemm_kernel) entry = nullptr;
  unsigned takes = 0;
};

// Never closed: a library may leave threads and handlers behind.
Opened open(const UserKernel& user) {
  const std::string file = user.file.filename().string();
  const std::string path = std::filesystem::absolute(user.file);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::string why = dlerror();  // contains the whole path
    if (why.starts_with(path)) why.replace(0, path.size(), file);
    throw CannotLoad(why);
  }
  std::fesetenv(FE_DFL_ENV);  // one linked with -ffast-math flushes denormals in the whole process
  const auto abi = reinterpret_cast<int (*)()>(dlsym(library, "gemm_kernel_abi"));
  if (abi == nullptr)
    throw CannotLoad(file + " has no gemm_kernel_abi: include gemm_kernel.h and rebuild it");
  if (const int theirs = abi(); theirs < 1 || theirs > gemm_kernel_abi())
    throw CannotLoad(file + " was built with version " + std::to_string(theirs) +
                     " of gemm_kernel.h, this program has " + std::to_string(gemm_kernel_abi()) +
                     ": rebuild it");
  const std::string name = user.entry.empty() ? "gemm_kernel" : user.entry;
  const auto entry = reinterpret_cast<decltype(&gemm_kernel)>(dlsym(library, name.c_str()));
  if (entry == nullptr)
    throw CannotLoad(file + " has no function " + name + " (declare it extern \"C\")");
  // dlsym also finds those of the libraries that it needs: exit, for example.
  const auto is_its_own = [of_abi = reinterpret_cast<const void*>(abi)](const void* symbol) {
    Dl_info ours{}, found{};
    return dladdr(of_abi, &ours) != 0 && dladdr(symbol, &found) != 0 &&
           ours.dli_fbase == found.dli_fbase;
  };
  if (!is_its_own(reinterpret_cast<const void*>(entry)))
    throw CannotLoad(file + " has no function " + name + " of its own");
  const auto* const takes = static_cast<const unsigned*>(dlsym(library, "gemm_kernel_takes"));
  return {entry, takes != nullptr && is_its_own(takes) ? *takes : 0};
}

}  // namespace

Loaded load_library(const UserKernel& user) {
  const auto opened = [user, kept = std::make_shared<Opened>()] {
    if (kept->entry == nullptr) *kept = open(user);
    return *kept;
  };
  return {.takes = [opened](const Problem&, const Device&) { return opened().takes; },
          .prepare = [opened](const Problem& p, const Device& device, const Operands& o) -> Launch {
            return [entry = opened().entry, call = call_of(p, device, o),
                    precision = traits_of(p.precision).name](Stream stream) {
              if (const char* wrong = entry(call.get(), precision.data(), stream); wrong != nullptr)
                throw std::runtime_error(first_line(wrong));
            };
          }};
}

}  // namespace gemm
