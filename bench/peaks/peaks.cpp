#include "bench/peaks/peaks.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

// Dense FLOP per cycle and SM; 0: the unit does not exist. Tensor rates accumulate in FP32.
//
// Sources: NVIDIA's whitepapers for Turing, A100 (7.5, 8.0), GA102, Ada (8.6, 8.9), H100 (9.0), RTX
// Blackwell (12.0), the throughput table of the CUDA C++ Best Practices Guide, and for 10.0 the
// rates relative to Hopper in CUTLASS's Blackwell documentation. peaks_test.cpp compares them with
// data sheets. FP64 is that of the tensor cores where they have it (8.0, 9.0, 10.0).
struct Rates {
  int compute_capability;
  int of_unit[8];  // in the order of Unit
  // NVIDIA halves what accumulates in FP32, TF32, BF16, FP16 and FP8, on products whose name begins
  // "NVIDIA GeForce".
  bool halved_on_geforce;
  // Tensor figures of the data sheet are quoted at a clock below the one the device reports (H100
  // SXM: 1830 of 1980 MHz), which the tensor cores do not reach in power.
  double tensor_clock_share;
};

constexpr Rates kRates[] = {
    // FP32, TF32, BF16, FP16, FP8, FP64, INT32, INT8
    {75, {128, 0, 0, 1024, 0, 4, 128, 2048}, true, 1},
    {80, {128, 1024, 2048, 2048, 0, 128, 128, 4096}, false, 1},
    {86, {256, 512, 1024, 1024, 0, 4, 128, 2048}, true, 1},
    {89, {256, 512, 1024, 1024, 2048, 4, 128, 2048}, true, 1},
    {90, {256, 2048, 4096, 4096, 8192, 256, 128, 8192}, false, 1830.0 / 1980.0},
    {100, {256, 4096, 8192, 8192, 16384, 128, 128, 16384}, false, 1855.0 / 1965.0},
    {103, {256, 4096, 8192, 8192, 16384, 4, 0, 0}, false, 1},
    {120, {256, 512, 1024, 1024, 2048, 4, 128, 2048}, true, 1},
};

// Those draw so much that data sheets quote them at a lower clock. FP64 has no such clock.
bool is_tensor_unit(Unit unit) {
  return unit != Unit::fp32_fma && unit != Unit::fp64 && unit != Unit::int32_imad;
}

const Rates* rates_of(int compute_capability) {
  const auto* found = std::ranges::find(kRates, compute_capability, &Rates::compute_capability);
  return found == std::end(kRates) ? nullptr : found;
}

Peak unknown(std::string name, std::optional<Precision> precision, std::string why) {
  return {std::move(name), precision, std::nullopt, Peak::Origin::unknown, std::move(why)};
}

Peak nominal_compute(const DeviceInfo& device, const PrecisionTraits& traits) {
  const auto none = [&](const std::string& why) {
    return unknown(std::string(traits.unit_name), traits.precision,
                   why + ": give --gemm_peak_flops");
  };
  if (device.kind == Device::Kind::cpu) return none("a CPU does not report it");
  const std::string capability = "compute capability " + capability_text(device.compute_capability);
  const Rates* rates = rates_of(device.compute_capability);
  if (rates == nullptr) return none(capability + " is not in the table");
  const std::optional<double> rate =
      flop_per_clock(device.compute_capability, traits.unit, device.name);
  if (!rate) return none("the table has no rate for " + capability);
  if (!device.clock_hz) return none("the device does not report its clock");
  const double clock =
      *device.clock_hz * (is_tensor_unit(traits.unit) ? rates->tensor_clock_share : 1);
  return {
      std::string(traits.unit_name),
      traits.precision,
      *rate * device.sm_count * clock / traits.unit_products,
      Peak::Origin::table,
      formatted("%g FLOP/clock/SM (table, compute capability %s) x %d SMs x %.0f MHz", *rate,
                capability_text(device.compute_capability).c_str(), device.sm_count, clock * 1e-6) +
          (traits.unit_products > 1 ? formatted(" / %d", traits.unit_products) : ""),
      clock};
}

Peak nominal_memory(const DeviceInfo& device) {
  const auto none = [](const std::string& why) {
    return unknown("DRAM", std::nullopt, why + ": give --gemm_peak_bandwidth");
  };
  if (device.kind == Device::Kind::cpu) return none("a CPU does not report it");
  if (device.integrated) return none("an integrated GPU misreports its memory clock");
  if (!device.memory_clock_hz || !device.bus_width_bits)
    return none("the device does not report its memory clock or bus width");
  return {"DRAM",
          std::nullopt,
          2 * *device.memory_clock_hz * static_cast<double>(*device.bus_width_bits) / 8,
          Peak::Origin::queried,
          formatted("2 x %.0f MHz x %lld bit (queried)", *device.memory_clock_hz * 1e-6,
                    static_cast<long long>(*device.bus_width_bits)),
          device.memory_clock_hz};
}

}  // namespace

std::string_view name_of(Peak::Origin origin) {
  constexpr std::string_view kNames[] = {"queried", "table", "given", "measured", "unknown"};
  return kNames[static_cast<int>(origin)];
}

std::string rate_text(double per_second, Precision precision) {
  const ElementType input = traits_of(precision).input;
  const bool integers = input == ElementType::s32 || input == ElementType::s8;
  const auto [scale, prefix] = per_second >= 1e12  ? std::pair(1e-12, 'T')
                               : per_second >= 1e9 ? std::pair(1e-9, 'G')
                                                   : std::pair(1e-6, 'M');
  return formatted("%.4g %c%s/s", per_second * scale, prefix, integers ? "OP" : "FLOP");
}

std::optional<double> flop_per_clock(int compute_capability, Unit unit,
                                     std::string_view device_name) {
  const Rates* rates = rates_of(compute_capability);
  if (rates == nullptr) return std::nullopt;
  const int rate = rates->of_unit[static_cast<int>(unit)];
  const bool tensor = is_tensor_unit(unit);
  // TU116 and TU117 (GTX 16xx, T400 to T1200, MX450) are 7.5 without tensor cores.
  const bool turing_with_tensor_cores = device_name.find("RTX") != std::string_view::npos ||
                                        device_name.ends_with("T4") || device_name.ends_with("T4G");
  if (rate == 0 || (tensor && compute_capability == 75 && !turing_with_tensor_cores))
    return std::nullopt;
  const bool halved = tensor && unit != Unit::int8_tensor && rates->halved_on_geforce &&
                      device_name.starts_with("NVIDIA GeForce");
  return halved ? rate / 2 : rate;
}

std::vector<Peak> peaks_of(const DeviceInfo& device, const GivenPeaks& given) {
  std::vector<Peak> peaks;
  for (const PrecisionTraits& traits : kPrecisions)
    if (device.kind == Device::Kind::gpu || traits.unit == Unit::fp32_fma)
      peaks.push_back(nominal_compute(device, traits));
  peaks.push_back(nominal_memory(device));
  for (Peak& peak : peaks) {
    const bool memory = !peak.precision;
    const std::optional<double>& figure = memory ? given.bytes_per_second : given.flop_per_second;
    if (!figure) continue;
    peak.per_second = figure;
    peak.clock_hz.reset();
    peak.origin = Peak::Origin::given;
    peak.source = memory ? "--gemm_peak_bandwidth" : "--gemm_peak_flops";
  }
  return peaks;
}

std::optional<double> Peak::at(std::optional<double> other_clock_hz) const {
  if (!per_second || !clock_hz || !other_clock_hz) return per_second;
  return *per_second * *other_clock_hz / *clock_hz;
}

const Peak* compute_peak(const std::vector<Peak>& peaks, Precision precision) {
  const auto found = std::ranges::find(peaks, std::optional(precision), &Peak::precision);
  return found == peaks.end() ? nullptr : &*found;
}

const Peak* memory_peak(const std::vector<Peak>& peaks) {
  const auto found = std::ranges::find(peaks, std::optional<Precision>(), &Peak::precision);
  return found == peaks.end() ? nullptr : &*found;
}

std::optional<Roof> roof_at(const std::vector<Peak>& peaks, Precision precision,
                            double flop_per_byte, const Clocks& clocks) {
  const Peak* compute = compute_peak(peaks, precision);
  const Peak* memory = memory_peak(peaks);
  if (compute == nullptr || memory == nullptr) return std::nullopt;
  if (!compute->per_second || !memory->per_second) return std::nullopt;
  const double compute_bound = *compute->at(clocks.sm_hz);
  const double memory_bound = flop_per_byte * *memory->at(clocks.memory_hz);
  if (memory_bound < compute_bound) return Roof{memory->name, memory_bound};
  return Roof{compute->name, compute_bound};
}

}  // namespace gemm::bench
