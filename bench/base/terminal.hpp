// Standard output as a terminal: its width, and a status line at its bottom.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace gemm::bench {

// Columns of the terminal; nothing for a file, a pipe or TERM=dumb, which get plain lines without
// any escape sequence.
std::optional<std::size_t> terminal_width();

// Whether colours are wanted: on a terminal without NO_COLOR (no-color.org).
bool colours();

// Shows a line that is at most as long as its argument. Does nothing without a terminal.
void show_status(std::function<std::string(std::size_t width)> line);
void end_status();

// What the case that runs is doing, such as "warm-up": redraws the line, which may have it. Empty
// after show_status.
void show_phase(const char* phase);
const char* shown_phase();

// While one exists, the status line is cleared, so that output appears above it.
class AboveStatus {
 public:
  AboveStatus();
  AboveStatus(const AboveStatus&) = delete;
  ~AboveStatus();
};

}  // namespace gemm::bench
