#include "hlo/device_spec.h"

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "hlo/error.h"

namespace hlorun {
namespace {

using Json = nlohmann::ordered_json;

// Visits every field with its JSON name; reading, writing and the check for unknown names share it.
template <typename Spec, typename Visit>
void ForEachField(Spec& spec, Visit&& visit) {
  visit("name", spec.name);
  visit("platform", spec.platform);
  visit("driver_version", spec.driver_version);
  visit("isa", spec.isa);
  visit("device_class", spec.device_class);
  visit("compute_units", spec.compute_units);
  visit("vector_bytes", spec.vector_bytes);
  visit("l1_bytes", spec.l1_bytes);
  visit("l2_bytes", spec.l2_bytes);
  visit("l3_bytes", spec.l3_bytes);
  visit("local_memory_bytes", spec.local_memory_bytes);
  visit("max_work_group_size", spec.max_work_group_size);
  visit("sub_group_size", spec.sub_group_size);
  visit("global_memory_bytes", spec.global_memory_bytes);
  visit("max_allocation_bytes", spec.max_allocation_bytes);
  visit("buffer_alignment", spec.buffer_alignment);
  visit("argument_bytes", spec.argument_bytes);
  visit("has_f64", spec.has_f64);
  visit("has_f16", spec.has_f16);
  visit("has_int64_atomics", spec.has_int64_atomics);
  visit("unified_memory", spec.unified_memory);
  visit("raw_pointers", spec.raw_pointers);
  visit("has_inline_assembly", spec.has_inline_assembly);
  visit("spare_registers", spec.spare_registers);
  visit("bf16_dot", spec.bf16_dot);
  visit("s8_dot", spec.s8_dot);
  visit("half_conversion", spec.half_conversion);
  visit("has_bf16_tiles", spec.has_bf16_tiles);
  visit("has_s8_tiles", spec.has_s8_tiles);
  visit("matrix_fragments", spec.matrix_fragments);
  visit("has_s8_fragments", spec.has_s8_fragments);
  visit("has_wide_fragments", spec.has_wide_fragments);
  visit("has_integer_dot", spec.has_integer_dot);
  visit("sub_group_moves", spec.sub_group_moves);
  visit("f32_gflops", spec.f32_gflops);
  visit("bandwidth_gbps", spec.bandwidth_gbps);
  visit("launch_us", spec.launch_us);
  visit("cost_table", spec.cost_table);
}

void Read(const Json& json, const char* field, DeviceClass& value) {
  const auto text = json.get<std::string>();
  if (text != "cpu" && text != "gpu") Invalid("device spec: {} must be \"cpu\" or \"gpu\", not \"{}\"", field, text);
  value = text == "gpu" ? DeviceClass::kGpu : DeviceClass::kCpu;
}

// Counts of bytes, units and items.
void Read(const Json& json, const char* field, int64_t& value) {
  constexpr uint64_t kMost = uint64_t{1} << 50;
  if (!json.is_number_unsigned() || json.get<uint64_t>() > kMost)
    Invalid("device spec: {} must be a whole number from 0 to 2^50", field);
  value = json.get<int64_t>();
}

void CheckCost(double cost, const std::string& name) {
  if (!std::isfinite(cost) || cost < 0) Invalid("device spec: the cost {} must not be negative or infinite", name);
}

void Read(const Json& json, const char* field, double& value) {
  value = json.get<double>();
  CheckCost(value, field);
}

template <typename T>
void Read(const Json& json, const char*, T& value) {
  value = json.get<T>();
}

Json Write(DeviceClass value) { return value == DeviceClass::kGpu ? "gpu" : "cpu"; }
template <typename T>
Json Write(const T& value) {
  return value;
}

// The fields that are costs.
template <typename Spec>
auto* CostField(Spec& spec, const std::string& name) {
  if (name == "f32_gflops") return &spec.f32_gflops;
  if (name == "bandwidth_gbps") return &spec.bandwidth_gbps;
  return name == "launch_us" ? &spec.launch_us : nullptr;
}

}  // namespace

double DeviceSpec::Cost(const std::string& cost) const {
  if (const double* field = CostField(*this, cost)) return *field;
  const auto found = cost_table.find(cost);
  return found == cost_table.end() ? 0 : found->second;
}

void DeviceSpec::SetCost(const std::string& cost, double value) {
  double* field = CostField(*this, cost);
  (field != nullptr ? *field : cost_table[cost]) = value;
}

std::string DeviceSpec::ToJson() const {
  Json json;
  ForEachField(*this, [&](const char* field, const auto& value) { json[field] = Write(value); });
  return json.dump(2) + "\n";
}

DeviceSpec DeviceSpec::FromJson(const std::string& text, const DeviceSpec& base) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& e) {
    Invalid("device spec: not JSON: {}", e.what());
  }
  if (!json.is_object()) Invalid("device spec: expected a JSON object of fields such as \"device_class\"");
  DeviceSpec spec = base;
  std::map<std::string, bool> known;
  ForEachField(spec, [&](const char* field, auto& value) {
    known[field] = true;
    if (!json.contains(field)) return;
    try {
      Read(json[field], field, value);
    } catch (const Json::exception& e) {
      Invalid("device spec: field \"{}\" has the wrong type: {}", field, e.what());
    }
  });
  for (const auto& [field, unused] : json.items()) {
    if (!known.contains(field)) Invalid("device spec: unknown field \"{}\"", field);
  }
  for (const auto& [name, cost] : spec.cost_table) CheckCost(cost, name);
  const std::pair<const char*, int64_t> counts[] = {{"compute_units", spec.compute_units},
                                                    {"vector_bytes", spec.vector_bytes},
                                                    {"max_work_group_size", spec.max_work_group_size},
                                                    {"argument_bytes", spec.argument_bytes}};
  for (const auto& [name, count] : counts) {
    if (count < 1) Invalid("device spec: {} must be at least 1", name);
  }
  if (!std::has_single_bit(static_cast<uint64_t>(spec.buffer_alignment)))
    Invalid("device spec: buffer_alignment must be a power of two");
  // A host pointer means nothing to a device with memory of its own.
  if (!spec.unified_memory) spec.raw_pointers = false;
  return spec;
}

}  // namespace hlorun
