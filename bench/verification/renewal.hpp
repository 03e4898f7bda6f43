// A check of one sample's results, which is queued behind its launches and read later.
#pragma once

#include "bench/verification/verdict.hpp"

namespace gemm::bench {

class PendingVerdict {
 public:
  virtual ~PendingVerdict() = default;
  // Waits until the device has come so far. Of several sets the worst.
  virtual Verdict read() = 0;
};

}  // namespace gemm::bench
