// What device code says of a launch: each field is refused where the host could not use it.
#include "kernels/user/configuration.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace gemm {
namespace {

TEST(Configuration, OfDeviceCodeIsCheckedBeforeItIsUsed) {
  const auto with = [](auto change) {
    Configuration c{.grid = {8, 4, 1}, .block = {16, 16, 1}, .shared_bytes = 1024, .arguments = 2};
    c.offsets[0] = 0;
    c.offsets[1] = 8;
    change(c);
    return c;
  };
  const std::vector<std::size_t> sizes{8, 4};
  const Configuration good = with([](Configuration&) {});
  EXPECT_EQ(fault_of(good, sizes), std::nullopt);
  EXPECT_EQ(fault_of(good, std::nullopt), std::nullopt);
  EXPECT_EQ(fault_of(with([](auto& c) { c.offsets[1] = 508; }), sizes), std::nullopt);
  const Configuration bad[] = {
      with([](auto& c) { c.grid.x = 0; }),
      with([](auto& c) { c.grid.x = 1U << 31; }),
      with([](auto& c) { c.grid.z = 65536; }),
      with([](auto& c) {
        c.block = {0, 1, 1};
      }),
      with([](auto& c) {
        c.block = {1024, 2, 1};
      }),
      with([](auto& c) {
        c.block = {1U << 31, 2, 1};
      }),
      with([](auto& c) {
        c.block = {1, 1, 65};
      }),
      with([](auto& c) { c.shared_bytes = 3000000000; }),  // negative as an int
      with([](auto& c) { c.arguments = 33; }),
      with([](auto& c) { c.arguments = 1000; }),
      with([](auto& c) { c.offsets[0] = 512; }),
      with([](auto& c) { c.offsets[1] = 4000000000; }),
  };
  for (const Configuration& c : bad) {
    EXPECT_NE(fault_of(c, sizes), std::nullopt);
    EXPECT_NE(fault_of(c, std::nullopt), std::nullopt);
  }
  // A parameter that ends behind the bytes, and another number of parameters.
  EXPECT_NE(fault_of(with([](auto& c) { c.offsets[1] = 509; }), sizes), std::nullopt);
  EXPECT_NE(fault_of(with([](auto& c) { c.arguments = 1; }), sizes), std::nullopt);
}

}  // namespace
}  // namespace gemm
