// Children that misbehave end on time, and the reason is reported.
#include "bench/run/child.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>

#include <cerrno>
#include <stdexcept>
#include <string>

#include "bench/base/clock.hpp"
#include "bench/timing/timing.hpp"

namespace gemm::bench {
namespace {

ChildEnd shell(const std::string& script, double seconds = 20) {
  return run_child({"/bin/sh", "-c", script}, seconds);
}

TEST(Child, AnswersAndPrintsApart) {
  const ChildEnd end = shell("echo out; echo err >&2; echo answer >&3");
  EXPECT_EQ(end.answer, "answer\n");
  EXPECT_EQ(end.printed, "out\nerr\n");
  EXPECT_EQ(end.how, "");
}

TEST(Child, TellsHowItEnded) {
  EXPECT_EQ(shell("exit 3").how, "it called exit(3)");
  EXPECT_EQ(shell("kill -SEGV $$").how, "Segmentation fault");
  EXPECT_EQ(shell("kill -ABRT $$").how, "it called abort()");
  EXPECT_EQ(shell("kill -KILL $$").how, "it was killed, probably because memory ran out");
}

TEST(Child, IsEndedWhenItsTimeIsOver) {
  const double start = now_seconds();
  const ChildEnd end = shell("trap '' TERM INT; echo before; while :; do sleep 0.1; done", 0.3);
  EXPECT_EQ(end.how, "it did not end within 0.3 s");
  EXPECT_EQ(end.printed, "before\n");
  EXPECT_LT(now_seconds() - start, 10);
}

TEST(Child, WhoClosesItsPipesIsEndedTooAndWhoFloodsThem) {
  EXPECT_EQ(shell("exec >&- 2>&- 3>&-; sleep 60", 0.3).how, "it did not end within 0.3 s");
  const ChildEnd flood = shell("yes", 0.3);
  EXPECT_EQ(flood.how, "it did not end within 0.3 s");
  EXPECT_LE(flood.printed.size(), 8U << 10);
}

TEST(Child, WhatItLeavesBehindHoldsNothingUp) {
  const double start = now_seconds();
  EXPECT_EQ(shell("sleep 60 & exit 0").how, "");
  EXPECT_LT(now_seconds() - start, 10);
}

TEST(Child, WhatItLeavesBehindInASessionOfItsOwnEndsToo) {
  const ChildEnd end = shell("setsid sh -c 'echo $$; exec sleep 60' & sleep 0.3");
  const pid_t left_behind = std::stoi(end.printed);
  EXPECT_EQ(kill(left_behind, 0), -1) << left_behind;
  EXPECT_EQ(errno, ESRCH);
}

TEST(Child, AnAnswerMayBeLongerThanAPipe) {
  EXPECT_EQ(shell("head -c 1000000 /dev/zero >&3").answer.size(), 1000000U);
}

TEST(Child, ThatCannotBeStartedIsSaid) {
  EXPECT_THROW(run_child({"/nowhere/to/be/found"}, 1), std::runtime_error);
}

}  // namespace
}  // namespace gemm::bench
