// What ends a run, and what a device can do to the program that uses it.
#pragma once

#include <stdexcept>

namespace gemm::bench {

// After this nothing more can be measured.
struct EndsTheRun : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An allocation exceeds the free memory of the device.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The device can do nothing more for this process (an illegal address, a GPU that fell off the
// bus).
struct DeviceLost : EndsTheRun {
  using EndsTheRun::EndsTheRun;
};

}  // namespace gemm::bench
