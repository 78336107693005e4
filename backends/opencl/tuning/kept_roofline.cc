#include "backends/opencl/tuning/kept_roofline.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "backends/opencl/runtime/cache_directory.h"
#include "backends/opencl/runtime/compile_lock.h"
#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/host_cpu.h"
#include "backends/opencl/tuning/roofline.h"
#include "hlo/atomic_file.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using Json = nlohmann::ordered_json;

// Of how things are measured: what another version measured is not comparable.
constexpr int kVersion = 2;

bool HasCosts(const DeviceSpec& spec) { return spec.f32_gflops > 0 && spec.bandwidth_gbps > 0 && spec.launch_us > 0; }

// The spec with the costs of the file; nullopt when there is none that is this device's.
std::optional<DeviceSpec> Read(const std::string& path, const std::string& device, const DeviceSpec& base) {
  std::string text;
  if (!ReadWholeFile(path, text)) return std::nullopt;
  try {
    const Json json = Json::parse(text);
    if (json.at("device").get<std::string>() != device) return std::nullopt;
    DeviceSpec spec = base;
    for (const auto& [name, value] : json.at("costs").items()) {
      const auto cost = value.get<double>();
      if (!(cost > 0)) return std::nullopt;
      spec.SetCost(name, cost);
    }
    return HasCosts(spec) ? std::optional(spec) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void Keep(const std::string& path, const std::string& device, const DeviceSpec& spec) {
  Json costs = {
      {"f32_gflops", spec.f32_gflops}, {"bandwidth_gbps", spec.bandwidth_gbps}, {"launch_us", spec.launch_us}};
  for (const auto& [name, value] : spec.cost_table) costs[name] = value;
  const Json json = {{"device", device}, {"costs", costs}};
  try {
    WriteFileAtomically(path, {json.dump(1) + "\n"}, Fault::kCacheWrite);
  } catch (const Error&) {
    // A disk that cannot be written makes no error: the next run measures again.
  }
}

}  // namespace

std::string MeasuredDevice(const DeviceContext& context) {
  const DeviceSpec& spec = context.spec();
  const bool is_cpu = context.device().spec().device_class == DeviceClass::kCpu;
  return fmt::format("{}, CPU {}, {} units, vectors {}, caches {} {} {}, words {} {}, tiles {} {}, roofline {}",
                     context.device().Fingerprint(), is_cpu ? ThisCpu().model : "-", spec.compute_units,
                     spec.vector_bytes, spec.l1_bytes, spec.l2_bytes, spec.l3_bytes,
                     spec.bf16_dot.empty() ? "-" : spec.bf16_dot, spec.s8_dot.empty() ? "-" : spec.s8_dot,
                     spec.has_bf16_tiles, spec.has_s8_tiles, kVersion);
}

std::string RooflinePathIn(const std::string& cache_folder, const std::string& measured_device) {
  return cache_folder + "/roofline/" + HashText(measured_device) + ".json";
}

DeviceSpec MeasuredSpec(const std::shared_ptr<DeviceContext>& context, const BuildOptions& build,
                        const std::function<void(const std::string& stage)>& observe) {
  const DeviceSpec& spec = context->spec();
  if (HasCosts(spec)) return spec;
  const auto measure = [&] {
    if (observe) observe("roofline");
    return MeasureRoofline(context);
  };
  if (!build.use_disk_cache) return measure();
  const std::string folder = build.cache_dir.empty() ? DefaultCacheDirectory() : build.cache_dir;
  const std::string device = MeasuredDevice(*context), path = RooflinePathIn(folder, device);
  if (std::optional<DeviceSpec> kept = Read(path, device, spec)) return *kept;
  const CompileLock lock(folder + "/roofline", device);
  // Somebody else may have measured meanwhile.
  if (std::optional<DeviceSpec> kept = lock.waited() ? Read(path, device, spec) : std::nullopt) return *kept;
  const DeviceSpec measured = measure();
  Keep(path, device, measured);
  return measured;
}

}  // namespace hlorun::opencl
