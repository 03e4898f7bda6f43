// A process that may do anything: its time is limited, its output is kept, and neither it nor a
// process that it started outlives this one.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace gemm::bench {

struct ChildEnd {
  std::string answer;   // what it wrote to kAnswer, whole
  std::string printed;  // the last kilobytes of its stdout and stderr
  std::string how;      // "it called exit(3)", "segmentation fault", "it did not end within 30 s";
                        // empty if it ended with 0
  bool late = false;    // it was ended because its time was up
  double seconds = 0;   // its life
  // Its answer began to come between these two moments (now_seconds()).
  double answered_after = 0, answered_before = 0;
};

// The descriptor on which a child answers, and those by which its samples are interleaved with
// those of this process.
inline constexpr int kAnswer = 3, kTurn = 4, kTurnOver = 5;

// Called at each turn of this process, in which the child and what it started stand still.
// `enough`: the child needs no further turn. Returns whether it gets one.
using BetweenTurns = std::function<bool(bool enough)>;

// Runs it to its end, or ends it after so many seconds, with all processes that it started, also
// those in sessions of their own. Only for a program without other children: it ends all orphans
// that are handed to this process. Throws std::runtime_error if it cannot be started, Interrupted
// after Ctrl-C, and what `between` throws. It finds `input` at its stdin.
ChildEnd run_child(const std::vector<std::string>& command, double seconds,
                   const std::string& input = {}, const BetweenTurns& between = {});

// For the child: it dies with its parent, first of all if memory gets scarce, and without a core.
void become_child();

// For the child: ends its turn, and waits for the next. False: there is none.
bool next_turn(bool enough);

// For the child, before it runs code of a user: what is at its stdin, which is empty from then on.
// run_in_python.py does both for a process that is Python.
std::string take_request();

}  // namespace gemm::bench
