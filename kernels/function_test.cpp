#include "kernels/function.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gemm {
namespace {

using Add = Function<int(int)>;

int plus_one(int i) { return i + 1; }

TEST(Function, IsNullByDefault) {
  EXPECT_FALSE(Add());
  EXPECT_TRUE(Add() == nullptr);
  EXPECT_FALSE(Add(nullptr));
}

TEST(Function, CallsALambdaAFunctionOrAnotherFunction) {
  EXPECT_EQ(Add([by = 2](int i) { return i + by; })(40), 42);
  EXPECT_EQ(Add(plus_one)(41), 42);
  EXPECT_EQ(Function<double(int)>(Add(plus_one))(41), 42.0);
  int called = 0;
  const Function<void(int)> ignores_the_result = [&](int i) { return called = i; };
  ignores_the_result(42);
  EXPECT_EQ(called, 42);
}

TEST(Function, TakesWhatCannotBeCopied) {
  const Function<std::unique_ptr<int>(std::unique_ptr<int>)> same =
      [kept = std::make_unique<int>(1)](std::unique_ptr<int> i) {
        *i += *kept;
        return i;
      };
  EXPECT_EQ(*same(std::make_unique<int>(41)), 42);
}

TEST(Function, CopiesShareWhatTheyCall) {
  const Function<int()> one = [count = 0]() mutable { return ++count; };
  const Function<int()> other = one;
  EXPECT_EQ(one(), 1);
  EXPECT_EQ(other(), 2);
}

TEST(Function, TheLastOwnerDeletesItOnce) {
  const auto alive = std::make_shared<int>();
  {
    Function<long()> one = [alive] { return alive.use_count(); };
    Function<long()> other = one;
    EXPECT_EQ(one(), 2);
    one = std::move(other);
    EXPECT_FALSE(other);
    const Function<long()>& self = one;
    one = self;
    EXPECT_EQ(one(), 2);
    one = nullptr;
    EXPECT_EQ(alive.use_count(), 1);
    other = [alive] { return alive.use_count(); };
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Function, ThreadsMayCopyOne) {
  const auto alive = std::make_shared<std::string>("alive");
  {
    const Function<std::string()> shared = [alive] { return *alive; };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&shared] {
        for (int i = 0; i < 1000; ++i) {
          const Function<std::string()> copy = shared;
          EXPECT_EQ(copy(), "alive");
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace gemm
