#include "bench/device/resident.hpp"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

namespace gemm::bench {

bool copy_resident(void* to, const void* from, std::int64_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(from), first = address / page * page,
             end = (address + static_cast<std::uintptr_t>(bytes) + page - 1) / page * page;
  std::vector<unsigned char> in_memory((end - first) / page);
  if (mincore(reinterpret_cast<void*>(first), end - first, in_memory.data()) != 0 ||
      !std::ranges::all_of(in_memory, [](unsigned char flags) { return (flags & 1) != 0; }))
    return false;
  // The kernel copies it: a page that may not be read is an error, and no signal.
  for (std::int64_t done = 0; done < bytes;) {
    const iovec local{static_cast<std::byte*>(to) + done, static_cast<std::size_t>(bytes - done)};
    const iovec remote{const_cast<std::byte*>(static_cast<const std::byte*>(from)) + done,
                       local.iov_len};
    const ssize_t count = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (count < 0 && (errno == ENOSYS || errno == EPERM)) {  // a container forbids it
      std::memcpy(local.iov_base, remote.iov_base, local.iov_len);
      return true;
    }
    if (count <= 0) return false;
    done += count;
  }
  return true;
}

}  // namespace gemm::bench
