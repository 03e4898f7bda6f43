#include "bench/base/interrupt.hpp"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "bench/base/clock.hpp"

namespace gemm::bench {
namespace {

std::atomic<bool> interrupt_seen = false;

}  // namespace

void watch_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupt_seen = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return interrupt_seen; }

void idle(double seconds) {
  const double end = now_seconds() + seconds;
  for (double left = seconds; left > 0 && !interrupted(); left = end - now_seconds())
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(0.05, left)));
}

}  // namespace gemm::bench
