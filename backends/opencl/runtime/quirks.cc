#include "backends/opencl/runtime/quirks.h"

#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

namespace hlorun::opencl {
namespace {

struct Row {
  const char* platform;  // part of the platform's name
  bool cpu_only;
  Quirks quirks;
};

const Row kRows[] = {
    // PoCL 3.1: measured on x86-64; see docs/opencl-platforms.md.
    {"Portable Computing Language",
     true,
     {.may_take_raw_pointers = true,
      .binaries_need_launch = true,
      .large_grid_groups = 65536,
      .has_pocl_cache = true,
      .joins_kernels = true,
      .mixes_up_grids = true,
      .compiles_in_processes = true,
#if defined(__x86_64__)
      .calls_kernels = true,
      .drops_functions = true,
      .inline_assembly = true,
      .bf16_dot = "assembly",
      .s8_dot = "assembly",
      .half_conversion = "assembly",
      .matrix_unit = true,
#endif
      .volatile_memory_size = true,
      .inline_device = "basic",
      .device_list_variable = "POCL_DEVICES",
      .device_list = "pthread basic",
      .thread_count_variable = "POCL_MAX_PTHREAD_COUNT"}},
    // Intel's CPU runtime refuses vector operands of inline assembly and follows the affinity mask.
    {"Intel",
     true,
     {.may_take_raw_pointers = true,
      .compiles_in_processes = true,
#if defined(__x86_64__)
      .calls_kernels = true,
#endif
      .spare_registers = 4,
      .bf16_dot = "intrinsic",
      .s8_dot = "intrinsic",
      .half_conversion = "vectors",
      .matrix_unit = true,
      .target_variable = "CL_CONFIG_CPU_TARGET_ARCH",
      .target = "sapphirerapids",
      .target_library = "libintelocl",
      .target_features = {"amxbf16", "amxint8", "amxtile", "avx512bf16", "avx512fp16", "avx512vnni", "avxvnni"}}},
    // PTX by inline assembly; measured on an H200 (docs/gpu.md).
    {"NVIDIA", false, {.matrix_fragments = "ptx", .sub_group_moves = "ptx"}},
    // The simulator that finds accesses out of bounds and races (tests/end_to_end/oclgrind).
    {"Oclgrind", false, {.refuses_prefetch = true, .doubts_upper_halves = true, .builds_one_at_a_time = true}},
};

bool IsLoaded(const char* library) {
  const auto is_it = [](dl_phdr_info* info, size_t, void* part) {
    return std::strstr(info->dlpi_name, static_cast<const char*>(part)) != nullptr ? 1 : 0;
  };
  return dl_iterate_phdr(is_it, const_cast<char*>(library)) != 0;
}

// By variable, as it was when platforms were first asked for.
const std::map<std::string, std::string>& Targets() {
  static const std::map<std::string, std::string> targets = [] {
    std::map<std::string, std::string> told;
    for (const Row& row : kRows) {
      const Quirks& quirks = row.quirks;
      if (quirks.target_variable == nullptr) continue;
      if (IsTarget(quirks, ThisCpu()) && !IsLoaded(quirks.target_library))
        setenv(quirks.target_variable, quirks.target, 0);
      const char* target = std::getenv(quirks.target_variable);
      told[quirks.target_variable] = target != nullptr ? target : "";
    }
    return told;
  }();
  return targets;
}

}  // namespace

Quirks QuirksOf(const std::string& platform_name, cl_device_type type) {
  const bool is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
  for (const Row& row : kRows) {
    if (platform_name.find(row.platform) != std::string::npos && (is_cpu || !row.cpu_only)) return row.quirks;
  }
  return {};
}

std::vector<std::string> ShowInlineDevices() {
  static const std::vector<std::string> shown = [] {
    std::vector<std::string> names;
    for (const Row& row : kRows) {
      if (row.quirks.device_list_variable == nullptr || std::getenv(row.quirks.device_list_variable) != nullptr)
        continue;
      setenv(row.quirks.device_list_variable, row.quirks.device_list, 0);
      names.emplace_back(row.quirks.inline_device);
    }
    return names;
  }();
  return shown;
}

bool IsTarget(const Quirks& quirks, const HostCpu& cpu) {
  return quirks.target != nullptr && std::all_of(quirks.target_features.begin(), quirks.target_features.end(),
                                                 [&](const std::string& feature) { return cpu.Has(feature); });
}

void NameCpuToPlatforms() { Targets(); }

std::string CpuTargetOf(const Quirks& quirks) {
  return quirks.target_variable != nullptr ? Targets().at(quirks.target_variable) : "";
}

std::string BuildOptionsOf(const cl::Device& device) {
  // Without -w, PoCL counts on stderr the vectors that are wider than the device's registers.
  std::string options = "-cl-denorms-are-zero -w";
  const std::string platform = cl::Platform(device.getInfo<CL_DEVICE_PLATFORM>()).getInfo<CL_PLATFORM_NAME>();
  const Quirks quirks = QuirksOf(platform, device.getInfo<CL_DEVICE_TYPE>());
  if (quirks.refuses_prefetch) options += " -DHLORUN_NO_PREFETCH";
  if (quirks.doubts_upper_halves) options += " -DHLORUN_HALVES_IN_MEMORY";
  // "OpenCL C 3.0 ..."; 1.2 is every compiler's default.
  const std::string version = device.getInfo<CL_DEVICE_OPENCL_C_VERSION>();
  const size_t digits = std::strlen("OpenCL C ");
  if (version.size() > digits && version[digits] >= '2')
    options += version[digits] == '2' ? " -cl-std=CL2.0" : " -cl-std=CL3.0";
  return options;
}

}  // namespace hlorun::opencl
