// Which variables are taken out and which are only told, and what counts as injected code.
#include "bench/device/environment.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

namespace gemm::bench {
namespace {

class CleanEnvironment : public testing::Test {
 protected:
  void set(const char* name, const char* value) {
    ASSERT_EQ(setenv(name, value, 1), 0);
    names_.emplace_back(name);
  }
  ~CleanEnvironment() override {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }

 private:
  std::vector<std::string> names_;
};

TEST_F(CleanEnvironment, TakesOutWhatFalsifiesAndTellsWhatAUserMayHaveChosen) {
  const std::vector<const char*> removed = {"NVIDIA_TF32_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG",
                                            "CUBLASLT_LOG_LEVEL", "CUDA_LAUNCH_BLOCKING",
                                            "CUBLAS_OF_A_LATER_RELEASE"};
  const std::vector<std::array<std::string, 3>> recorded = {
      // name, value, as it is told: of files their names alone
      {"OMP_NUM_THREADS", "7", "7"},
      {"OMP_PLACES", "{0:4},{4:4}", "{0:4},{4:4}"},
      {"OPENBLAS_CORETYPE", "ZEN", "ZEN"},
      {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50", "50"},
      {"CUDA_INJECTION64_PATH", "/home/me/nsys/libToolsInjection64.so", "libToolsInjection64.so"},
      {"GOMP_DEBUG", "/a/one.so:/b/two.so", "one.so:two.so"}};
  const std::vector<const char*> private_to_the_user = {"LD_PRELOAD_", "AWS_SECRET_ACCESS_KEY",
                                                        "CUDA_HOME", "CUDA_VISIBLE_DEVICES"};
  for (const char* name : removed) set(name, "1");
  for (const auto& [name, value, told] : recorded) set(name.c_str(), value.c_str());
  for (const char* name : private_to_the_user) set(name, "GPU-1234");
  set("CUDA_CACHE_PATH", std::string(5000, 'x').c_str());

  const Environment found = clean_environment();
  for (const char* name : removed) {
    EXPECT_EQ(std::getenv(name), nullptr) << name;
    EXPECT_EQ(found.removed.count(name), 1U) << name;
    EXPECT_EQ(found.recorded.count(name), 0U) << name;
  }
  EXPECT_EQ(found.removed.size(), removed.size());
  for (const auto& [name, value, told] : recorded) {
    EXPECT_EQ(std::getenv(name.c_str()), value);
    EXPECT_EQ(found.recorded.at(name), told);
  }
  for (const char* name : private_to_the_user) EXPECT_EQ(found.recorded.count(name), 0U) << name;
  EXPECT_LT(found.recorded.at("CUDA_CACHE_PATH").size(), 300U);
}

TEST(InjectedCode, IsThatOfProfilersSanitizersAndPreloadedFiles) {
  const std::vector<std::string> usual = {"",
                                          "linux-vdso.so.1",
                                          "/lib/libcuda.so.1",
                                          "/lib/libcublasLt.so.13",
                                          "/lib/libnvidia-ml.so.1",
                                          "/home/injection/libgomp.so.1"};
  EXPECT_TRUE(injected_among(usual, "").empty());
  for (const char* name :
       {"libcuda-injection.so", "libToolsInjection64.so", "libcuinj64-13.0.so", "libcupti.so.13",
        "libnvperf_host.so", "libsanitizer-collection.so", "libTreeLauncherTargetInjection.so"}) {
    std::vector<std::string> loaded = usual;
    loaded.push_back(std::string("/opt/nvidia/") + name);
    EXPECT_EQ(injected_among(loaded, ""), std::vector<std::string>{name});
  }
  EXPECT_EQ(injected_among({"/x/libcupti.so.13"}, "/x/libcupti.so.13:/y/a.so /y/b.so"),
            (std::vector<std::string>{"libcupti.so.13", "a.so", "b.so"}));
}

}  // namespace
}  // namespace gemm::bench
