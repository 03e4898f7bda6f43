// A library with the names and the binary interface of NVML, for card_test.cpp: the bus id chooses
// how the GPU behaves. Structures are read and written byte by byte, at the offsets of the public
// header, so that a wrong declaration in gpu.cpp is found. With FAKE_NVML_OLD it has only what a
// driver of 2018 has. Ends the process if it is unloaded while initialised, or if a GPU is asked
// again that has said that it is lost.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

constexpr int kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNoPermission = 4,
              kNotFound = 6, kInsufficientSize = 7, kGpuIsLost = 15;
#ifndef FAKE_NVML_OLD
constexpr int kNotSupported = 3, kTimeout = 10, kVersionMismatch = 25;
#endif

struct FakeGpu {
  std::string_view bus_id;
  int open_status = kSuccess;
  bool instant_power = true;
  int answers = -1;  // calls that are answered before the GPU is lost; -1: all
  bool clocks_lowered = false;
  bool lost = false;
};

FakeGpu gpus[] = {
    {.bus_id = "0000:01:00.0"},
    {.bus_id = "0000:02:00.0", .instant_power = false},
    {.bus_id = "0000:03:00.0", .answers = 8},
    {.bus_id = "0000:04:00.0", .open_status = kNoPermission},
    {.bus_id = "0000:05:00.0", .clocks_lowered = true},
    {.bus_id = "0000:06:00.0", .open_status = kGpuIsLost},
};

int users = 0;
#ifndef FAKE_NVML_OLD
int xids_left = 0, event_sets = 0;
#endif

struct Guard {
  ~Guard() {
    if (users != 0) std::abort();
#ifndef FAKE_NVML_OLD
    if (event_sets != 0) std::abort();
#endif
  }
} guard;

// Every question to a GPU passes here.
int answer(FakeGpu* gpu) {
  if (users == 0) return kUninitialized;
  if (gpu->answers == 0) {
    if (gpu->lost) std::abort();
    gpu->lost = true;
    return kGpuIsLost;
  }
  if (gpu->answers > 0) --gpu->answers;
  return kSuccess;
}

template <typename Value>
int answer(FakeGpu* gpu, Value* to, Value value) {
  const int status = answer(gpu);
  if (status == kSuccess) *to = value;
  return status;
}

template <typename Value>
void put(void* structure, std::size_t offset, Value value) {
  std::memcpy(static_cast<char*>(structure) + offset, &value, sizeof value);
}

template <typename Value>
Value get(const void* structure, std::size_t offset) {
  Value value;
  std::memcpy(&value, static_cast<const char*>(structure) + offset, sizeof value);
  return value;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  if (const char* status = std::getenv("FAKE_NVML_INIT")) return std::atoi(status);
  ++users;
  return kSuccess;
}

int nvmlShutdown() {
  --users;
  return kSuccess;
}

const char* nvmlErrorString(int status) {
  return status == kGpuIsLost ? "GPU is lost" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char* to, unsigned size) {
  constexpr char kVersion[] = "580.95.05";
  if (size < sizeof kVersion) return kInsufficientSize;
  std::memcpy(to, kVersion, sizeof kVersion);
  return kSuccess;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, FakeGpu** to) {
  for (FakeGpu& gpu : gpus)
    if (gpu.bus_id == bus_id) {
      *to = &gpu;
      return gpu.open_status;
    }
  return kNotFound;
}

int nvmlDeviceGetClockInfo(FakeGpu* gpu, int clock, unsigned* to) {
  if (clock != 1 && clock != 2) return kInvalidArgument;
  return answer(gpu, to, clock == 1 ? 1560U : 3201U);
}

int nvmlDeviceGetMaxClockInfo(FakeGpu* gpu, int clock, unsigned* to) {
  if (clock != 1 && clock != 2) return kInvalidArgument;
  return answer(gpu, to, clock == 1 ? 1980U : 3201U);
}

int nvmlDeviceGetEnforcedPowerLimit(FakeGpu* gpu, unsigned* to) { return answer(gpu, to, 700000U); }

int nvmlDeviceGetPowerUsage(FakeGpu* gpu, unsigned* to) { return answer(gpu, to, 412500U); }

int nvmlDeviceGetTemperature(FakeGpu* gpu, int sensor, unsigned* to) {
  return sensor == 0 ? answer(gpu, to, 61U) : kInvalidArgument;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(FakeGpu* gpu, unsigned long long* to) {
  return answer(gpu, to, 0x8ULL);
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetCurrentClocksEventReasons(FakeGpu* gpu, unsigned long long* to) {
  return answer(gpu, to, 0x4ULL);
}

int nvmlDeviceGetApplicationsClock(FakeGpu* gpu, int clock, unsigned* to) {
  return answer(gpu, to, clock == 2 ? 3201U : gpu->clocks_lowered ? 1200U : 1980U);
}

int nvmlDeviceGetDefaultApplicationsClock(FakeGpu* gpu, int clock, unsigned* to) {
  return answer(gpu, to, clock == 2 ? 3201U : 1980U);
}

int nvmlDeviceGetTotalEnergyConsumption(FakeGpu* gpu, unsigned long long* to) {
  return answer(gpu, to, 123456789012ULL);  // mJ
}

int nvmlDeviceGetTemperatureV(FakeGpu* gpu, void* structure) {
  if (get<std::uint32_t>(structure, 0) != 0x100000c) return kVersionMismatch;  // 1, of 12 bytes
  if (get<std::int32_t>(structure, 4) != 0) return kInvalidArgument;
  const int status = answer(gpu);
  if (status == kSuccess) put(structure, 8, std::int32_t{63});
  return status;
}

int nvmlDeviceGetTotalEccErrors(FakeGpu* gpu, int type, int counter, unsigned long long* to) {
  if (counter != 0) return kInvalidArgument;  // since the driver was loaded
  return answer(gpu, to, type == 1 ? 2ULL : 5ULL);
}

int nvmlDeviceGetRemappedRows(FakeGpu* gpu, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  *corrected = 3;
  *uncorrected = 1;
  *pending = 1;
  return answer(gpu, failed, 0U);
}

// Three processes, the caller among them, and none under MPS.
int nvmlDeviceGetComputeRunningProcesses_v3(FakeGpu* gpu, unsigned* count, void*) {
  const int status = answer(gpu);
  if (status != kSuccess) return status;
  const bool room = *count >= 3;
  *count = 3;
  return room ? kSuccess : kInsufficientSize;
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(FakeGpu* gpu, unsigned* count, void*) {
  return answer(gpu, count, 0U);
}

int nvmlEventSetCreate(FakeGpu*** set) {
  static FakeGpu* watched = nullptr;
  *set = &watched;
  ++event_sets;
  return kSuccess;
}

int nvmlEventSetFree(FakeGpu**) {
  --event_sets;
  return kSuccess;
}

int nvmlDeviceRegisterEvents(FakeGpu* gpu, unsigned long long kinds, FakeGpu** set) {
  if (kinds != 8) return kInvalidArgument;
  *set = gpu;
  xids_left = 2;
  return kSuccess;
}

int nvmlEventSetWait_v2(FakeGpu**, void* event, unsigned milliseconds) {
  if (milliseconds != 0 || xids_left == 0) return kTimeout;
  put(event, 8, std::uint64_t{8});
  put(event, 16, std::uint64_t{xids_left-- == 2 ? 48U : 79U});
  return kSuccess;
}

int nvmlDeviceGetFieldValues(FakeGpu* gpu, int count, void* structures) {
  constexpr std::size_t kBytes = 40, kType = 24, kStatus = 28, kValue = 32;
  const int status = answer(gpu);
  if (status != kSuccess) return status;
  for (int i = 0; i < count; ++i) {
    char* field = static_cast<char*>(structures) + i * kBytes;
    const bool known = get<std::uint32_t>(field, 0) == 186 && gpu->instant_power;
    put(field, kStatus, std::int32_t{known ? kSuccess : kNotSupported});
    put(field, kType, std::int32_t{known ? 1 : 0});
    put(field, kValue,
        std::uint64_t{0xabcd} << 32 | (known ? 693250 : 0));  // only the low half counts
  }
  return kSuccess;
}
#endif
}
