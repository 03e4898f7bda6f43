#include "bench/kernel_code/fingerprint.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <ios>
#include <optional>
#include <stdexcept>
#include <string>

namespace gemm::bench {
namespace {

TEST(Fingerprint, IsSixteenDigitsThatTellTextsApart) {
  EXPECT_EQ(hash_of(""), "cbf29ce484222325");  // FNV-1a's own test vectors
  EXPECT_EQ(hash_of("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(hash_of("foobar"), "85944171f73967e8");
}

TEST(Fingerprint, OfALaunchIsThatOfItsKernelsInTheirOrder) {
  EXPECT_EQ(combined({}), std::nullopt);
  EXPECT_EQ(combined({"a"}), "a");
  EXPECT_EQ(combined({"a", std::nullopt}), std::nullopt);
  ASSERT_TRUE(combined({"a", "b"}));
  EXPECT_EQ(combined({"a", "b"}), combined({"a", "b"}));
  EXPECT_NE(combined({"a", "b"}), combined({"b", "a"}));
  EXPECT_NE(combined({"a", "b"}), combined({"a"}));
}

TEST(Fingerprint, WhatTheProgramDoesNotHaveHasNone) {
  EXPECT_EQ(own_fingerprint("no such kernel", 90), std::nullopt);
  EXPECT_NO_THROW(fingerprints_in("/proc/self/exe"));
}

TEST(Fingerprint, WhatIsNoProgramIsRefusedAndNothingIsReadBeyondItsEnd) {
  const auto path = std::filesystem::path(testing::TempDir()) / "gemm_bench_fingerprint_test";
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string head(1 << 16, '\0');
  self.read(head.data(), static_cast<std::streamsize>(head.size()));
  for (const std::string& content :
       {std::string(), std::string("text"), head.substr(0, 4), head.substr(0, 20), head}) {
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_THROW(fingerprints_in(path), std::runtime_error) << content.size();
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace gemm::bench
