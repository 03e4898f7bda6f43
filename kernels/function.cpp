#include "kernels/function.hpp"

#include <atomic>

namespace gemm {

void Shared::acquire() { std::atomic_ref(owners_).fetch_add(1, std::memory_order_relaxed); }

void Shared::release() {
  if (std::atomic_ref(owners_).fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace gemm
