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

using Entry = decltype(&gemm_kernel);

// Never closed: a library may leave threads and handlers behind.
Entry open(const UserKernel& user) {
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
  if (const int theirs = abi(); theirs != gemm_kernel_abi())
    throw CannotLoad(file + " was built with version " + std::to_string(theirs) +
                     " of gemm_kernel.h, this program has " + std::to_string(gemm_kernel_abi()) +
                     ": rebuild it");
  const std::string name = user.entry.empty() ? "gemm_kernel" : user.entry;
  const auto entry = reinterpret_cast<Entry>(dlsym(library, name.c_str()));
  if (entry == nullptr)
    throw CannotLoad(file + " has no function " + name + " (declare it extern \"C\")");
  // dlsym also finds those of the libraries that it needs: exit, for example.
  const void* const abi_of = reinterpret_cast<const void*>(abi);
  Dl_info ours{}, found{};
  if (dladdr(abi_of, &ours) == 0 || dladdr(reinterpret_cast<const void*>(entry), &found) == 0 ||
      ours.dli_fbase != found.dli_fbase)
    throw CannotLoad(file + " has no function " + name + " of its own");
  return entry;
}

}  // namespace

Prepare load_library(const UserKernel& user) {
  return [user, opened = std::make_shared<Entry>()](const Problem& p, const Device&,
                                                    const Operands& o) -> Launch {
    if (*opened == nullptr) *opened = open(user);
    return [entry = *opened, call = call_of(p, o),
            precision = traits_of(p.precision).name](Stream stream) {
      if (const char* wrong = entry(&call, precision.data(), stream); wrong != nullptr)
        throw std::runtime_error(first_line(wrong));
    };
  };
}

}  // namespace gemm
