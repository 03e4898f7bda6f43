#include "bench/peaks/peaks.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

// Dense FLOP per cycle and SM; 0: the unit does not exist, or its rate is not known. Tensor rates
// accumulate in FP32.
//
// Sources: NVIDIA's whitepapers for Turing, A100 (7.5, 8.0), GA102, Ada (8.6, 8.9), H100 (9.0), RTX
// Blackwell (12.0), the throughput table of the CUDA C++ Best Practices Guide, for 10.0 the rates
// relative to Hopper in CUTLASS's Blackwell documentation, for INT8 of 10.3 nvMatmulHeuristics, and
// for 8.7, 11.0 and 12.1 the data sheets of Jetson Orin, Jetson Thor and DGX Spark. peaks_test.cpp
// compares them with data sheets. FP64 is that of the tensor cores where they have it (8.0, 9.0,
// 10.0).
struct Rates {
  int compute_capability;
  int of_unit[8];  // in the order of Unit
  // NVIDIA halves what accumulates in FP32, TF32, BF16, FP16 and FP8, on products whose name begins
  // "NVIDIA GeForce".
  bool halved_on_geforce = false;
  // Tensor figures of the data sheet are quoted at a clock below the one the device reports (H100
  // SXM: 1830 of 1980 MHz), which the tensor cores do not reach in power.
  double tensor_clock_share = 1;
  // Block-scaled FP8 (MXFP8) is not halved. cuBLASLt multiplies FP8 with one scale per matrix at
  // that rate, too.
  bool block_scaled = false;
};

constexpr Rates kRates[] = {
    // FP32, TF32, BF16, FP16, FP8, FP64, INT32, INT8
    {75, {128, 0, 0, 1024, 0, 4, 128, 2048}, true},
    {80, {128, 1024, 2048, 2048, 0, 128, 128, 4096}},
    {86, {256, 512, 1024, 1024, 0, 4, 128, 2048}, true},
    {87, {256, 1024, 2048, 2048, 0, 4, 128, 4096}},
    {89, {256, 512, 1024, 1024, 2048, 4, 128, 2048}, true},
    {90, {256, 2048, 4096, 4096, 8192, 256, 128, 8192}, false, 1830.0 / 1980.0},
    {100, {256, 4096, 8192, 8192, 16384, 128, 128, 16384}, false, 1855.0 / 1965.0},
    {103, {256, 4096, 8192, 8192, 16384, 4, 128, 512}},
    {110, {256, 4096, 8192, 8192, 16384, 0, 128, 0}},
    {120, {256, 512, 1024, 1024, 2048, 4, 128, 2048}, true, 1, true},
    {121, {256, 512, 1024, 1024, 2048, 4, 128, 2048}},
};

constexpr unsigned bit(Unit unit) { return 1U << static_cast<unsigned>(unit); }
// Those draw so much that data sheets quote them at a lower clock. FP64 has no such clock.
constexpr unsigned kTensor = bit(Unit::tf32_tensor) | bit(Unit::bf16_tensor) |
                             bit(Unit::fp16_tensor) | bit(Unit::fp8_tensor) |
                             bit(Unit::int8_tensor);
constexpr bool is_tensor_unit(Unit unit) { return (kTensor & bit(unit)) != 0; }

// Products that differ from others of their capability, by the name that the CUDA runtime reports.
// A name stands for itself and for what continues it behind a space or a dash: "NVIDIA H20-3e",
// "NVIDIA H20 MIG 1g.12gb", but not "NVIDIA H200".
struct Product {
  std::string_view name;
  double tensor_share = 1;     // of the tensor rates of its capability
  double tensor_clock = 0;     // MHz at which its data sheet states tensor figures; 0: as others
  unsigned unknown_units = 0;  // whose published figure fits no rate per SM and clock, or is none
  int sm_count = 0;            // the row is of products with so many; 0: any
};

// The first that fits counts. Clocks are data sheet over rate and SMs: 835.5 TFLOP/s of FP16 on an
// H100 NVL are 1545 MHz. Most data sheets of GB200 and GB300 give 2,500 TFLOP/s of BF16. Factors
// by which INT8 of the RTX 5090 D and units of mining GPUs are cut are not published.
constexpr Product kProducts[] = {
    {"NVIDIA A10G", 0.5},
    {"NVIDIA L20", 0.5},
    {"NVIDIA L40", 0.5},
    {"NVIDIA H20", 0.25, 1853, bit(Unit::fp32_fma) | bit(Unit::fp64)},
    {"NVIDIA H800", 1, 0, bit(Unit::fp64)},
    {"NVIDIA H100 NVL", 1, 1545},
    {"NVIDIA H200 NVL", 1, 1545},
    {"NVIDIA B100", 1, 0, kTensor},
    {"NVIDIA GB200", 1, 2062, 0, 148},
    {"NVIDIA GB200", 1, 2008},
    {"NVIDIA GB300", 1, 2062, bit(Unit::int8_tensor), 148},
    {"NVIDIA GB300", 1, 2008, bit(Unit::int8_tensor)},
    {"NVIDIA B300", 1, 1855, bit(Unit::int8_tensor)},
    {"NVIDIA GB10", 1, 2543},
    {"NVIDIA GeForce RTX 5090 D", 1, 0, bit(Unit::int8_tensor)},
    {"NVIDIA CMP", 1, 0, ~0U},
};

const Product& product_of(std::string_view device_name, int sm_count) {
  static constexpr Product kOrdinary = {};
  const auto fits = [&](const Product& product) {
    if (!device_name.starts_with(product.name)) return false;
    const std::string_view rest = device_name.substr(product.name.size());
    return (rest.empty() || rest[0] == ' ' || rest[0] == '-') &&
           (product.sm_count == 0 || product.sm_count == sm_count);
  };
  const auto* found = std::ranges::find_if(kProducts, fits);
  return found == std::end(kProducts) ? kOrdinary : *found;
}

const Rates* rates_of(int compute_capability) {
  const auto* found = std::ranges::find(kRates, compute_capability, &Rates::compute_capability);
  return found == std::end(kRates) ? nullptr : found;
}

bool is_halved(const Rates& rates, Unit unit, std::string_view device_name) {
  return is_tensor_unit(unit) && unit != Unit::int8_tensor && rates.halved_on_geforce &&
         device_name.starts_with("NVIDIA GeForce");
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
  const Product& product = product_of(device.name, device.sm_count);
  if ((product.unknown_units & bit(traits.unit)) != 0)
    return none(std::string(product.name) + ": no rate per SM and clock is published");
  const std::optional<double> rate =
      flop_per_clock(device.compute_capability, traits.unit, device.name);
  if (!rate) return none("the table has no rate for " + capability);
  if (!device.clock_hz) return none("the device does not report its clock");
  double clock = *device.clock_hz;
  if (is_tensor_unit(traits.unit))
    clock =
        product.tensor_clock > 0 ? 1e6 * product.tensor_clock : clock * rates->tensor_clock_share;
  const std::string whose =
      product.name.empty() ? capability : capability + ", " + std::string(product.name);
  Peak peak{std::string(traits.unit_name),
            traits.precision,
            *rate * device.sm_count * clock / traits.unit_products,
            Peak::Origin::table,
            formatted("%g FLOP/clock/SM (table, %s) x %d SMs x %.0f MHz", *rate, whose.c_str(),
                      device.sm_count, clock * 1e-6) +
                (traits.unit_products > 1 ? formatted(" / %d", traits.unit_products) : ""),
            clock};
  if (traits.unit == Unit::fp8_tensor && rates->block_scaled &&
      is_halved(*rates, traits.unit, device.name)) {
    peak.limit_per_second = 2 * *peak.per_second;
    peak.source += "; block-scaled " + rate_text(*peak.limit_per_second, traits.precision);
  }
  return peak;
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
  if (!tensor) return rate;
  return rate * product_of(device_name, 0).tensor_share *
         (is_halved(*rates, unit, device_name) ? 0.5 : 1);
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
    peak.limit_per_second.reset();
    peak.origin = Peak::Origin::given;
    peak.source = memory ? "--gemm_peak_bandwidth" : "--gemm_peak_flops";
  }
  return peaks;
}

std::optional<double> Peak::at(std::optional<double> other_clock_hz) const {
  if (!per_second || !clock_hz || !other_clock_hz) return per_second;
  return *per_second * *other_clock_hz / *clock_hz;
}

std::optional<double> Peak::limit_at(std::optional<double> other_clock_hz) const {
  Peak limit = *this;
  if (limit_per_second) limit.per_second = limit_per_second;
  return limit.at(other_clock_hz);
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
