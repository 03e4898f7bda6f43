#include "bench/base/text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gemm::bench {
namespace {

TEST(Text, OfAnyLengthIsFormatted) {
  const std::string name(5000, 'x');
  EXPECT_EQ(formatted("%s %.1f", name.c_str(), 0.5), name + " 0.5");
  EXPECT_EQ(formatted("%s", ""), "");
}

TEST(Text, IsOneLineWithoutControlCharacters) {
  EXPECT_EQ(one_line("a\n\t b\x1b[31mc\x7f\n"), "a  b [31mc");
  EXPECT_EQ(one_line("\xc2\x9b"
                     "31m\xc2\xb5s"),
            "31m\xc2\xb5s");  // U+009B begins a sequence, too
  EXPECT_EQ(one_line(std::string("a\0b", 3)), "a b");
}

TEST(Text, ThatIsTooLongIsCutBetweenCharacters) {
  EXPECT_EQ(one_line("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(one_line("abcdefghi", 8), "abcde...");
  EXPECT_EQ(one_line("abcd\xc2\xb5"
                     "fghi",
                     8),
            "abcd...");
  EXPECT_EQ(one_line(std::string(100000, 'x')).size(), kLongestText);
}

TEST(Text, ThatIsQuotedHoldsNoCommand) {
  EXPECT_EQ(quote_lines("::stop-commands::x\r\n\x1b[2Jb\n"), "| ::stop-commands::x\n| [2Jb\n");
  EXPECT_EQ(quote_lines("no end of line"), "| no end of line\n");
  EXPECT_EQ(quote_lines(""), "");
}

TEST(Text, IsWrappedAtSpacesOrInsideAWordThatIsTooLong) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(wrapped("abcdefghij", 4), "abcd\nefgh\nij");
  EXPECT_EQ(wrapped("\xc2\xb5\xc2\xb5\xc2\xb5", 2), "\xc2\xb5\xc2\xb5\n\xc2\xb5");
  EXPECT_EQ(wrapped("  --option  what it does", 16, 12),
            "  --option  what\n            it\n            does");
  EXPECT_EQ(columns_of("2 \xc2\xb5s"), 4U);
}

}  // namespace
}  // namespace gemm::bench
