#include "bench/device/host_settings.hpp"

#include <dlfcn.h>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace gemm::bench {
namespace {

template <typename Function>
Function* loaded(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

HostSettings::HostSettings() {
  std::fegetenv(&arithmetic_);
#ifdef _OPENMP
  openmp_threads_ = omp_get_max_threads();
#endif
  if (const auto get = loaded<int()>("openblas_get_num_threads")) openblas_threads_ = get();
}

void HostSettings::restore() const {
#ifdef _OPENMP
  omp_set_num_threads(openmp_threads_);
#endif
  std::fesetenv(&arithmetic_);
  if (const auto set = loaded<void(int)>("openblas_set_num_threads");
      set != nullptr && openblas_threads_ > 0)
    set(openblas_threads_);
}

}  // namespace gemm::bench
