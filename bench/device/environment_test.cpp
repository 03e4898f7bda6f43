// Which variables are taken out and which are only told, and what counts as injected code.
#include "bench/device/environment.hpp"

#include <gtest/gtest.h>

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

TEST_F(CleanEnvironment, TakesOutWhatOnlyFalsifiesABaseline) {
  const std::vector<const char*> falsifying = {
      "NVIDIA_TF32_OVERRIDE",      "CUBLAS_EMULATE_DOUBLE_PRECISION",
      "CUBLAS_EMULATION_STRATEGY", "CUBLAS_WORKSPACE_CONFIG",
      "CUBLAS_LOGINFO_DBG",        "CUBLASLT_LOG_LEVEL",
      "CUDA_LAUNCH_BLOCKING",      "CUBLAS_OF_A_LATER_RELEASE"};
  for (const char* name : falsifying) set(name, "1");
  const Environment found = clean_environment();
  for (const char* name : falsifying) {
    EXPECT_EQ(std::getenv(name), nullptr) << name;
    EXPECT_EQ(found.removed.count(name), 1U) << name;
    EXPECT_EQ(found.recorded.count(name), 0U) << name;
  }
}

TEST_F(CleanEnvironment, TellsWhatAUserMayHaveChosenAndLeavesIt) {
  const std::vector<const char*> chosen = {"OMP_NUM_THREADS", "OPENBLAS_CORETYPE",
                                           "CUDA_MODULE_LOADING", "GOMP_SPINCOUNT",
                                           "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"};
  for (const char* name : chosen) set(name, "7");
  const Environment found = clean_environment();
  for (const char* name : chosen) {
    EXPECT_STREQ(std::getenv(name), "7") << name;
    EXPECT_EQ(found.recorded.at(name), "7") << name;
  }
  EXPECT_TRUE(found.removed.empty());
}

TEST_F(CleanEnvironment, TellsNeitherFoldersNorAnythingElse) {
  set("LD_PRELOAD_", "x");
  set("AWS_SECRET_ACCESS_KEY", "x");
  set("CUDA_HOME", "/usr/local/cuda");
  set("CUDA_VISIBLE_DEVICES", "GPU-1234");
  set("CUDA_INJECTION64_PATH", "/home/me/nsys/libToolsInjection64.so");
  set("OMP_PLACES", "{0:4},{4:4}");
  set("GOMP_DEBUG", "/a/one.so:/b/two.so");
  set("CUDA_CACHE_PATH", std::string(5000, 'x').c_str());
  const Environment found = clean_environment();
  for (const char* name :
       {"LD_PRELOAD_", "AWS_SECRET_ACCESS_KEY", "CUDA_HOME", "CUDA_VISIBLE_DEVICES"})
    EXPECT_EQ(found.recorded.count(name) + found.removed.count(name), 0U) << name;
  EXPECT_EQ(found.recorded.at("CUDA_INJECTION64_PATH"), "libToolsInjection64.so");
  EXPECT_EQ(found.recorded.at("OMP_PLACES"), "{0:4},{4:4}");
  EXPECT_EQ(found.recorded.at("GOMP_DEBUG"), "one.so:two.so");
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
