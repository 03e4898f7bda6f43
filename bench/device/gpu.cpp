#include "bench/device/gpu.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <stdexcept>

#include "bench/base/clock.hpp"

namespace gemm::bench {
namespace {

// Declarations of NVML, because nvml.h is not on every machine that has the library: only what is
// used here, with the numbers and layouts of NVML 12 and 13, which are the same.
namespace nvml {

enum Status : int {
  kSuccess = 0,
  kInvalidArgument = 2,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
};
constexpr int kGraphicsClock = 0, kSmClock = 1, kMemoryClock = 2;
constexpr int kGpuSensor = 0;
constexpr int kCorrected = 0, kUncorrected = 1, kVolatile = 0;
constexpr unsigned long long kXid = 8;   // a kind of event
constexpr unsigned kPowerInstant = 186;  // a field; in mW
constexpr int kUnsignedInt = 1;          // the type of a field's value
constexpr unsigned kDriverBytes = 80;

using Handle = struct nvmlDevice_st*;

struct FieldValue {
  unsigned field, scope;
  long long microseconds_since_1970, latency_microseconds;
  int type;
  Status status;
  union {
    double real;
    unsigned natural;
  } value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);

struct Event {
  Handle gpu;
  unsigned long long kind, data;  // of an XID: its number
  unsigned instances[2];
};
static_assert(sizeof(Event) == 32 && offsetof(Event, data) == 16);
using EventSet = struct nvmlEventSet_st*;

struct Temperature {
  unsigned version;
  int sensor, celsius;
};
// A struct's version contains its size.
constexpr unsigned kTemperatureVersion = sizeof(Temperature) | 1U << 24;

}  // namespace nvml

// The library, loaded and initialised for as long as this lives.
class Nvml {
 public:
  explicit Nvml(const char* name)
      : library_(dlopen(name, RTLD_NOW | RTLD_LOCAL), [](void* p) { dlclose(p); }) {
    if (library_ == nullptr)
      throw std::runtime_error("NVML is not installed (" + std::string(name) + ")");
    const nvml::Status status = call("nvmlInit_v2");
    if (status == nvml::kFunctionNotFound)
      throw std::runtime_error("NVML is too old: " + std::string(name) + " has no nvmlInit_v2");
    if (status != nvml::kSuccess) throw std::runtime_error("NVML: " + text(status));
  }
  ~Nvml() { call("nvmlShutdown"); }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // kFunctionNotFound where this version of the library has none of that name. The types of the
  // arguments are those of NVML's parameters.
  template <typename... Arguments>
  nvml::Status call(const char* name, Arguments... arguments) const {
    const auto function = this->function<nvml::Status(Arguments...)>(name);
    return function != nullptr ? function(arguments...) : nvml::kFunctionNotFound;
  }

  std::string text(nvml::Status status) const {
    if (status == nvml::kNoPermission) return "no permission";
    if (status == nvml::kDriverNotLoaded) return "the driver is not loaded";
    const auto text = function<const char*(nvml::Status)>("nvmlErrorString");
    return text != nullptr ? text(status) : "error " + std::to_string(status);
  }

 private:
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_.get(), name));
  }

  std::unique_ptr<void, void (*)(void*)> library_;
};

// Values in one of NVML's units as SI; 0 means unknown.
std::optional<double> times(std::optional<unsigned> value, double unit) {
  if (!value || *value == 0) return std::nullopt;
  return *value * unit;
}
constexpr double kMegahertz = 1e6, kMilliwatt = 1e-3, kMillijoule = 1e-3;
constexpr std::size_t kMostXids = 100;

class NvmlGpu : public Gpu {
 public:
  NvmlGpu(const char* library, const std::string& pci_bus_id) : nvml_(library) {
    const nvml::Status status =
        nvml_.call("nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &handle_);
    if (status == nvml::kNotFound || status == nvml::kInvalidArgument)
      throw std::runtime_error("NVML does not know the GPU " + pci_bus_id);
    if (status != nvml::kSuccess) throw std::runtime_error("NVML: " + nvml_.text(status));
    has_instant_power_ = instant_power().has_value();
    if (nvml_.call("nvmlEventSetCreate", &events_) == nvml::kSuccess)
      nvml_.call("nvmlDeviceRegisterEvents", handle_, nvml::kXid, events_);
  }
  ~NvmlGpu() override {
    if (events_ != nullptr) nvml_.call("nvmlEventSetFree", events_);
  }
  NvmlGpu(const NvmlGpu&) = delete;
  NvmlGpu& operator=(const NvmlGpu&) = delete;

  GpuFacts facts() override {
    GpuFacts facts{
        .power_limit_w = times(ask("nvmlDeviceGetEnforcedPowerLimit", 0U), kMilliwatt),
        .sm_hz_max = times(ask("nvmlDeviceGetMaxClockInfo", 0U, nvml::kSmClock), kMegahertz),
        .application_clocks_set = application_clock_lowered(nvml::kGraphicsClock) ||
                                  application_clock_lowered(nvml::kMemoryClock),
    };
    if (char version[nvml::kDriverBytes] = {};
        nvml_.call("nvmlSystemGetDriverVersion", version, nvml::kDriverBytes) == nvml::kSuccess)
      facts.driver = version;
    return facts;
  }

  GpuReading read() override {
    GpuReading reading;
    const double start = now_seconds();
    reading.sm_hz = clock(nvml::kSmClock);
    reading.memory_hz = clock(nvml::kMemoryClock);
    reading.power_w = times(
        has_instant_power_ ? instant_power() : ask("nvmlDeviceGetPowerUsage", 0U), kMilliwatt);
    reading.temperature_c = temperature();
    reading.reasons = ask("nvmlDeviceGetCurrentClocksEventReasons", 0ULL);
    if (!reading.reasons)
      reading.reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons", 0ULL);  // its old name
    if (const auto energy = ask("nvmlDeviceGetTotalEnergyConsumption", 0ULL))
      reading.joules = kMillijoule * static_cast<double>(*energy);
    reading.when = (start + now_seconds()) / 2;
    return reading;
  }

  GpuHealth health() override {
    constexpr char kErrors[] = "nvmlDeviceGetTotalEccErrors";
    const GpuReading now = read();
    GpuHealth health{
        .sm_hz = now.sm_hz,
        .memory_hz = now.memory_hz,
        .power_w = now.power_w,
        .temperature_c = now.temperature_c,
        .ecc_corrected = ask(kErrors, 0ULL, nvml::kCorrected, nvml::kVolatile),
        .ecc_uncorrected = ask(kErrors, 0ULL, nvml::kUncorrected, nvml::kVolatile),
    };
    for (const auto& [name, share] : summarize({&now, 1}).reasons) health.reasons.push_back(name);
    unsigned corrected = 0, uncorrected = 0, pending = 0;
    if (const auto failed =
            ask("nvmlDeviceGetRemappedRows", 0U, &corrected, &uncorrected, &pending)) {
      health.rows_remapped = corrected + uncorrected;
      health.remapping_pending = pending != 0;
      health.remapping_failed = *failed != 0;
    }
    nvml::Event event{};
    while (events_ != nullptr && xids_.size() < kMostXids && !lost_ &&
           nvml_.call("nvmlEventSetWait_v2", events_, &event, 0U) == nvml::kSuccess)
      if ((event.kind & nvml::kXid) != 0) xids_.push_back(event.data);
    health.xids = xids_;
    health.other_processes = other_processes();
    return health;
  }

 private:
  // Calls the function of this name, which takes the GPU, `arguments` and a pointer to `value`, and
  // returns what it leaves there.
  template <typename Value, typename... Arguments>
  std::optional<Value> ask(const char* name, Value value, Arguments... arguments) {
    if (lost_) return std::nullopt;
    const nvml::Status status = nvml_.call(name, handle_, arguments..., &value);
    if (status == nvml::kGpuIsLost) lost_ = true;  // each call may take seconds from now on
    if (status != nvml::kSuccess) return std::nullopt;
    return value;
  }

  // Of the processes with a context here. This one has such a context, but NVML may not show it to
  // a container, and shows clients of MPS apart from its server.
  std::optional<std::uint64_t> other_processes() {
    std::optional<std::uint64_t> others;
    for (const char* function : {"nvmlDeviceGetComputeRunningProcesses_v3",
                                 "nvmlDeviceGetMPSComputeRunningProcesses_v3"}) {
      if (lost_) return others;
      unsigned count = 0;  // without room for processes it is answered with their number
      const nvml::Status status =
          nvml_.call(function, handle_, &count, static_cast<void*>(nullptr));
      if (status == nvml::kGpuIsLost) lost_ = true;
      if (status == nvml::kSuccess || status == nvml::kInsufficientSize)
        others = std::max<std::uint64_t>(others.value_or(0), count > 0 ? count - 1 : 0);
    }
    return others;
  }

  std::optional<double> clock(int which) {
    return times(ask("nvmlDeviceGetClockInfo", 0U, which), kMegahertz);
  }

  std::optional<unsigned> instant_power() {
    const auto field =
        ask("nvmlDeviceGetFieldValues", nvml::FieldValue{.field = nvml::kPowerInstant}, 1);
    if (!field || field->status != nvml::kSuccess || field->type != nvml::kUnsignedInt)
      return std::nullopt;
    return field->value.natural;
  }

  std::optional<double> temperature() {
    if (const auto found = ask(
            "nvmlDeviceGetTemperatureV",
            nvml::Temperature{.version = nvml::kTemperatureVersion, .sensor = nvml::kGpuSensor}))
      return found->celsius;
    return ask("nvmlDeviceGetTemperature", 0U, nvml::kGpuSensor);
  }

  bool application_clock_lowered(int clock) {
    const auto now = ask("nvmlDeviceGetApplicationsClock", 0U, clock);
    const auto usual = ask("nvmlDeviceGetDefaultApplicationsClock", 0U, clock);
    return now && usual && *now < *usual;
  }

  Nvml nvml_;
  nvml::Handle handle_ = nullptr;
  bool lost_ = false;
  nvml::EventSet events_ = nullptr;
  std::vector<std::uint64_t> xids_;
  // Decided once, so that no row mixes power of the moment with what the plain call gives: on most
  // GPUs since Ampere the mean of the last second.
  bool has_instant_power_ = false;
};

constexpr std::uint64_t kIdle = 0x1;
constexpr std::pair<std::uint64_t, const char*> kReasons[] = {
    {kClocksSet, "clocks set by user"},
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "thermal slowdown (software)"},
    {0x40, "thermal slowdown (hardware)"},
    {0x80, "power brake"},
    {0x100, "display"},
};

std::optional<Range> range_over(std::span<const GpuReading> readings,
                                std::optional<double> GpuReading::*value) {
  std::vector<double> values;
  for (const GpuReading& reading : readings)
    if (reading.*value) values.push_back(*(reading.*value));
  return range_of(std::move(values));
}

constexpr std::size_t kMostReadings = std::size_t{1} << 20;  // 110 MB; six hours at 20 ms
constexpr std::size_t kMostDurations = 1024;

}  // namespace

std::unique_ptr<Gpu> open_nvml(const std::string& pci_bus_id, std::string& why_not,
                               const char* library) {
  try {
    return std::make_unique<NvmlGpu>(library, pci_bus_id);
  } catch (const std::runtime_error& error) {
    why_not = error.what();
    return nullptr;
  }
}

std::optional<Range> range_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const std::size_t size = values.size();
  return Range{values.front(), (values[(size - 1) / 2] + values[size / 2]) / 2, values.back()};
}

GpuState summarize(std::span<const GpuReading> readings) {
  GpuState state{
      .readings = std::ssize(readings),
      .sm_hz = range_over(readings, &GpuReading::sm_hz),
      .memory_hz = range_over(readings, &GpuReading::memory_hz),
      .power_w = range_over(readings, &GpuReading::power_w),
      .temperature_c = range_over(readings, &GpuReading::temperature_c),
  };
  const auto with = [&](std::uint64_t bits) {
    return static_cast<double>(std::ranges::count_if(readings, [&](const GpuReading& reading) {
      return reading.reasons && (*reading.reasons & bits) != 0;
    }));
  };
  const auto telling = static_cast<double>(std::ranges::count_if(
      readings, [](const GpuReading& reading) { return reading.reasons.has_value(); }));
  if (telling == 0) return state;
  state.throttled_share = with(kThrottled) / telling;
  std::uint64_t named = kIdle;
  for (const auto& [bit, name] : kReasons) {
    named |= bit;
    if (const double count = with(bit); count > 0)
      state.reasons.emplace_back(name, count / telling);
  }
  if (const double count = with(~named); count > 0)
    state.reasons.emplace_back("other", count / telling);
  std::ranges::stable_sort(state.reasons, std::ranges::greater{},
                           &std::pair<std::string, double>::second);
  return state;
}

GpuMonitor::GpuMonitor(std::unique_ptr<Gpu> gpu, double interval_seconds)
    : gpu_(std::move(gpu)), facts_(gpu_->facts()), interval_seconds_(interval_seconds) {
  if (!(interval_seconds >= 1e-6))
    throw std::invalid_argument("the interval between readings of a GPU must be above 0");
  thread_ = std::thread([this] { run(); });
}

GpuMonitor::~GpuMonitor() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::vector<GpuReading> GpuMonitor::between(double from, double to) const {
  const std::lock_guard lock(mutex_);
  const auto first = std::ranges::lower_bound(readings_, from, {}, &GpuReading::when);
  const auto last = std::ranges::upper_bound(first, readings_.end(), to, {}, &GpuReading::when);
  return {first, last};
}

std::optional<double> GpuMonitor::read_seconds() const {
  const std::lock_guard lock(mutex_);
  const std::span all = readings_;
  return median_of(
      range_over(all.last(std::min(all.size(), kMostDurations)), &GpuReading::duration));
}

void GpuMonitor::pause(bool paused) {
  std::unique_lock lock(mutex_);
  paused_ = paused;
  wake_.notify_all();
  if (paused) wake_.wait(lock, [this] { return !reading_; });
}

GpuHealth GpuMonitor::health() {
  pause(true);
  GpuHealth health = gpu_->health();
  pause(false);
  return health;
}

void GpuMonitor::run() {
  using Clock = std::chrono::steady_clock;
  const auto interval =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval_seconds_));
  Clock::time_point deadline = Clock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !paused_; });
    if (stop_) return;
    reading_ = true;
    lock.unlock();
    const double start = now_seconds();
    GpuReading reading = gpu_->read();
    reading.duration = now_seconds() - start;
    lock.lock();
    reading_ = false;
    wake_.notify_all();

    if (readings_.size() == kMostReadings)  // the rows of the older half are long written
      readings_.erase(readings_.begin(), readings_.begin() + kMostReadings / 2);
    readings_.push_back(reading);

    // The next multiple of the interval: no drift, and missed readings are not made up for.
    deadline += interval * ((Clock::now() - deadline) / interval + 1);
    wake_.wait_until(lock, deadline, [this] { return stop_; });
  }
}

std::unique_ptr<GpuMonitor> monitor_gpu(DeviceInfo& device, double interval_seconds,
                                        std::string& why_not) {
  std::unique_ptr<Gpu> gpu;
  if (device.kind == Device::Kind::cpu)
    why_not = "a CPU has no NVML";
  else if (!device.pci_bus_id)
    why_not = "the CUDA runtime does not report the PCI bus id of the GPU";
  else
    gpu = open_nvml(*device.pci_bus_id, why_not);
  if (!gpu) return nullptr;
  if (const auto driver = gpu->facts().driver) device.driver = driver;
  if (interval_seconds > 0) return std::make_unique<GpuMonitor>(std::move(gpu), interval_seconds);
  why_not = "--gemm_monitor=0";
  return nullptr;
}

}  // namespace gemm::bench
