// Checks what a user's device code says of its launch: the limits of CUDA, and the kernel's own.
#include "kernels/user/configuration.hpp"

#include <cstdint>

namespace gemm {
namespace {

// Of CUDA: of a grid, of a block, and of the threads in it. A GPU may allow less, which its driver
// says.
constexpr Dim kMostBlocks{0x7fffffff, 65535, 65535}, kLongestBlock{1024, 1024, 64};
constexpr std::uint64_t kMostThreads = 1024;
constexpr unsigned kMostSharedBytes = 1 << 20;

std::string text(Dim d) {
  return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
}

bool within(Dim d, Dim most) {
  return d.x >= 1 && d.y >= 1 && d.z >= 1 && d.x <= most.x && d.y <= most.y && d.z <= most.z;
}

}  // namespace

std::optional<std::string> fault_of(const Configuration& c,
                                    const std::optional<std::vector<std::size_t>>& parameters) {
  const std::string launch = "the description of the launch has ";
  if (!within(c.grid, kMostBlocks)) return launch + "a grid of " + text(c.grid) + " blocks";
  if (!within(c.block, kLongestBlock) ||
      std::uint64_t{c.block.x} * c.block.y * c.block.z > kMostThreads)
    return launch + "blocks of " + text(c.block) + " threads";
  if (c.shared_bytes > kMostSharedBytes)
    return launch + std::to_string(c.shared_bytes) + " bytes of dynamic shared memory";
  if (c.arguments > kMostArguments || (parameters && c.arguments != parameters->size()))
    return launch + std::to_string(c.arguments) + " arguments" +
           (parameters ? ", the kernel " + std::to_string(parameters->size()) + " parameters" : "");
  for (unsigned i = 0; i < c.arguments; ++i) {
    const std::size_t size = parameters ? (*parameters)[i] : 1;
    if (c.offsets[i] >= kMostArgumentBytes || size > kMostArgumentBytes - c.offsets[i])
      return launch + "argument " + std::to_string(i) + " at byte " + std::to_string(c.offsets[i]) +
             " of " + std::to_string(kMostArgumentBytes);
  }
  return std::nullopt;
}

}  // namespace gemm
