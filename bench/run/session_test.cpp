// What the record says of the device, after the rates of the time models have been set.
#include "bench/run/session.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "bench/device/test_backend.hpp"
#include "bench/peaks/measured_peaks.hpp"

namespace gemm::bench {
namespace {

// NVML and the CUDA runtime name a driver differently.
class RenamingBackend : public ForwardingBackend {
 public:
  explicit RenamingBackend(Backend& real) : ForwardingBackend(real), device_(real.device()) {
    device_.driver = "580.1";
  }
  const DeviceInfo& device() const override { return device_; }
  void set_rates(double dram, double l2) override {
    device_.dram_bytes_per_second = dram;
    device_.l2_bytes_per_second = l2;
    device_.driver = "CUDA 13.0";
  }

 private:
  DeviceInfo device_;
};

MeasuredPeak memory_peak(const std::string& name, double bytes_per_second) {
  MeasuredPeak one{.name = name, .what = "a test", .seconds = {1e-3, 1e-3, 1e-3, 1e-3}};
  one.bytes_per_second = bytes_per_second;
  one.samples = 7;
  return one;
}

TEST(Session, NamesTheDriverAsBeforeWhenRatesAreSet) {
  ASSERT_EQ(setenv("XDG_CACHE_HOME", ::testing::TempDir().c_str(), 1), 0);
  const std::unique_ptr<Backend> host = make_host_backend();
  auto backend = std::make_unique<RenamingBackend>(*host);
  const std::filesystem::path file = peaks_file(backend->device());
  ASSERT_TRUE(save_peaks(file, backend->device(),
                         {memory_peak("DRAM_read", 1e11), memory_peak("L2_read", 2e11)}));
  Options options;
  options.peaks_from = PeaksFrom::stored;
  const Session session(std::move(backend), options, {});
  std::filesystem::remove(file);
  EXPECT_EQ(session.device().dram_bytes_per_second, 1e11);
  EXPECT_EQ(session.run_to_json()["device"]["driver"], "580.1");
}

}  // namespace
}  // namespace gemm::bench
