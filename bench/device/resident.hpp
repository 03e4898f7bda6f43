// Memory of the host as it is, without what reading it could set off: pages that are not there are
// not made, and no handler of page faults runs.
#pragma once

#include <cstdint>

namespace gemm::bench {

// Copies it; false where a page is not in memory or may not be read.
bool copy_resident(void* to, const void* from, std::int64_t bytes);

}  // namespace gemm::bench
