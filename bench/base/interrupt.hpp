// Ctrl-C and SIGTERM set a flag that is read between launches; the second signal ends the process.
#pragma once

#include "bench/base/device_errors.hpp"

namespace gemm::bench {

// The user pressed Ctrl-C.
struct Interrupted : EndsTheRun {
  Interrupted() : EndsTheRun("interrupted") {}
};

void watch_for_interrupt();
bool interrupted();

// Sleeps, but not through Ctrl-C.
void idle(double seconds);

}  // namespace gemm::bench
