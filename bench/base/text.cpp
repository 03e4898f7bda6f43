#include "bench/base/text.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <sstream>

namespace gemm::bench {
namespace {

// How many bytes at `at` are a control character: one of ASCII, or U+0080 to U+009F in UTF-8.
std::size_t control_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  if (byte(at) < 0x20 || byte(at) == 0x7f) return 1;
  return byte(at) == 0xc2 && byte(at + 1) >= 0x80 && byte(at + 1) < 0xa0 ? 2 : 0;
}

}  // namespace

std::string formatted(const char* format, ...) {
  std::va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::string text(static_cast<std::size_t>(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  va_end(arguments);
  return text;
}

std::string one_line(std::string_view text, std::size_t longest) {
  constexpr std::string_view kCut = "...";
  std::string line;
  bool space = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t control = control_bytes(text, i);
    i += control;
    if (control == 0) {
      if (space && !line.empty()) line += ' ';
      line += text[i++];
    }
    space = control > 0;
  }
  if (line.size() <= longest) return line;
  std::size_t end = longest - kCut.size();
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;  // in UTF-8
  return line.substr(0, end).append(kCut);
}

std::string quote_lines(std::string_view text) {
  std::string all;
  for (const std::string& line : parts_of(std::string(text), '\n'))
    all += "| " + one_line(line, line.size()) + "\n";
  return all;
}

std::vector<std::string> parts_of(const std::string& list, char separator) {
  std::vector<std::string> parts;
  std::istringstream rest(list);
  for (std::string part; std::getline(rest, part, separator);) parts.push_back(part);
  return parts;
}

std::string list_of(const std::vector<std::string>& items, const char* separator) {
  std::string list;
  for (const std::string& item : items) list += (list.empty() ? "" : separator) + item;
  return list;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

std::string wrapped(std::string_view line, std::size_t width, std::size_t indent) {
  std::string all;
  const std::string margin(indent, ' ');
  std::size_t room = width;
  while (columns_of(line) > room) {
    std::size_t end = 0;  // in bytes
    for (std::size_t columns = 0; columns < room || (line[end] & 0xc0) == 0x80; ++end)
      columns += (line[end] & 0xc0) != 0x80;
    std::size_t space = line.rfind(' ', end);
    // Not in the margin, nor between an option and its text.
    if (space == std::string_view::npos ||
        columns_of(line.substr(0, space)) <= (all.empty() ? indent : 0))
      space = end;
    all += std::string(line.substr(0, space)) + "\n" + margin;
    line.remove_prefix(std::min(line.find_first_not_of(' ', space), line.size()));
    room = width - indent;
  }
  return all.append(line);
}

}  // namespace gemm::bench
