// One measurement at a time on a device: another would disturb it.
#pragma once

#include "bench/base/durable.hpp"
#include "bench/device/device.hpp"

namespace gemm::bench {

// Waits until no other process has the turn on this device, and says so on stderr if it must. The
// turn ends with the returned file, or with the process. Of a file system without locks, and where
// the lock's file cannot be opened, it is an empty file, and nothing is waited for. Throws
// Interrupted.
File take_turn(const DeviceInfo& device);

}  // namespace gemm::bench
