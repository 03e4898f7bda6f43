// Text as a terminal, a log or a record gets it.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace gemm::bench {

// printf into a string of any length.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

// The longest text that the readers of a record accept, in bytes.
inline constexpr std::size_t kLongestText = 1000;

// For one line of a terminal or a record: runs of control characters, line breaks among them,
// become one space, and what exceeds `longest` bytes becomes "...".
std::string one_line(std::string_view text, std::size_t longest = kLongestText);

// Output of code that is not ours: each line after "| ", so that neither a terminal nor a CI runner
// interprets it, without control characters.
std::string quote_lines(std::string_view text);

// What is between the separators of a list; what is behind the last one only if it is not empty.
std::vector<std::string> parts_of(const std::string& list, char separator = ',');

// "a, b"
std::string list_of(const std::vector<std::string>& items, const char* separator = ", ");

// The number that is the whole text; nothing for any other text.
template <typename T>
std::optional<T> number_in(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end ? std::optional(number) : std::nullopt;
}

// How many characters a terminal shows of UTF-8 text.
std::size_t columns_of(std::string_view text);

// Breaks a line at its spaces, or inside a word that is too long, so that none is longer than
// `width` columns; further lines begin with `indent` spaces.
std::string wrapped(std::string_view line, std::size_t width, std::size_t indent = 0);

}  // namespace gemm::bench
