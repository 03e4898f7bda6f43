// Text as a terminal, a log or a record gets it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gemm::bench {

// printf into a string of any length.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

// The longest text that the readers of a record accept, in bytes.
inline constexpr std::size_t kLongestText = 1000;

// For one line of a terminal or a record: runs of control characters, line breaks among them,
// become one space, and what exceeds `longest` bytes becomes "...".
std::string one_line(std::string_view text, std::size_t longest = kLongestText);

// What somebody else's code printed: each line behind "| ", so that no terminal and no CI runner
// takes it for a command, without control characters.
std::string quote_lines(std::string_view text);

}  // namespace gemm::bench
