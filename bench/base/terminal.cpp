#include "bench/base/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

namespace gemm::bench {
namespace {

std::function<std::string(std::size_t)> status_line;  // empty: none
const char* phase = "";

void clear() {
  if (status_line) std::cout << "\r\033[K" << std::flush;
}

// The last column stays free: some terminals break the line there.
void draw() {
  const auto width = terminal_width();
  if (!status_line || !width) return;
  clear();
  std::cout << status_line(*width > 1 ? *width - 1 : 0) << std::flush;
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

bool colours() {
  const char* none = std::getenv("NO_COLOR");
  return terminal_width() && (none == nullptr || *none == '\0');
}

void show_status(std::function<std::string(std::size_t width)> line) {
  phase = "";
  if (!terminal_width()) return;
  status_line = std::move(line);
  draw();
}

void show_phase(const char* now) {
  phase = now;
  const AboveStatus redrawn;
}

const char* shown_phase() { return phase; }

void end_status() {
  clear();
  status_line = nullptr;
}

AboveStatus::AboveStatus() { clear(); }

AboveStatus::~AboveStatus() {
  std::cout << std::flush;
  draw();
}

}  // namespace gemm::bench
