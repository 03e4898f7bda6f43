// A process that may do anything: it is given a time, its output is kept, and it dies with us.
#pragma once

#include <string>
#include <vector>

namespace gemm::bench {

struct ChildEnd {
  std::string answer;   // what it wrote to kAnswer, whole
  std::string printed;  // the last kilobytes of its stdout and stderr
  std::string how;      // "it called exit(3)", "segmentation fault", "it did not end within 30 s";
                        // empty if it ended with 0
};

// The descriptor on which a child answers.
inline constexpr int kAnswer = 3;

// Runs it to its end, or ends it after so many seconds, with all that it started. Throws
// std::runtime_error if it cannot be started, Interrupted after Ctrl-C.
ChildEnd run_child(const std::vector<std::string>& command, double seconds);

// For the child: it dies with its parent, first of all if memory gets scarce, and without a core.
void become_child();

}  // namespace gemm::bench
