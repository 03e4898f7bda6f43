#include "bench/run/turn.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <iostream>
#include <string>

#include "bench/base/interrupt.hpp"
#include "bench/base/text.hpp"
#include "bench/timing/timing.hpp"

namespace gemm::bench {

// In a folder that all users of a host share. flock needs no right to write, and a link of that
// name is not followed.
File take_turn(const DeviceInfo& device) {
  const std::string path = "/tmp/gemm_bench." +
                           slug(device.uuid_hash.value_or(device.pci_bus_id.value_or("cpu"))) +
                           ".lock";
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  File file(open(path.c_str(), kFlags));
  if (!file) file = File(open(path.c_str(), kFlags | O_CREAT, 0444));
  if (!file) return file;
  bool said = false;
  while (flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return File();
    if (!said) std::cerr << "Waiting until another process has measured on this device ...\n";
    said = true;
    if (interrupted()) throw Interrupted();
    idle(0.005);
  }
  return file;
}

}  // namespace gemm::bench
