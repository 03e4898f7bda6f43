#include "bench/base/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace gemm::bench {
namespace {

struct Status {
  std::recursive_mutex mutex;
  std::function<std::string(std::size_t)> line;
  bool has_thread = false;
};

// Never destroyed: its thread lives as long as the process.
Status& status() {
  static auto* const the_status = new Status;
  return *the_status;
}

// The last column stays free: some terminals break the line there.
void draw(const Status& shown) {
  const auto width = terminal_width();
  if (shown.line && width)
    std::cout << "\r\033[K" << shown.line(*width > 1 ? *width - 1 : 0) << std::flush;
}

void clear(const Status& shown) {
  if (shown.line) std::cout << "\r\033[K" << std::flush;
}

}  // namespace

std::optional<std::size_t> terminal_width() {
  const char* kind = std::getenv("TERM");
  if (isatty(STDOUT_FILENO) == 0 || kind == nullptr || std::string_view(kind) == "dumb")
    return std::nullopt;
  constexpr std::size_t kUsual = 80;
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsual;
}

void show_status(std::function<std::string(std::size_t width)> line) {
  if (!terminal_width()) return;
  Status& shown = status();
  const std::lock_guard lock(shown.mutex);
  shown.line = std::move(line);
  draw(shown);
  if (std::exchange(shown.has_thread, true)) return;
  std::thread([&shown] {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      const std::lock_guard again(shown.mutex);
      draw(shown);
    }
  }).detach();
}

void end_status() {
  const std::lock_guard lock(status().mutex);
  clear(status());
  status().line = nullptr;
}

AboveStatus::AboveStatus() {
  status().mutex.lock();
  clear(status());
}

AboveStatus::~AboveStatus() {
  std::cout << std::flush;
  draw(status());
  status().mutex.unlock();
}

}  // namespace gemm::bench
