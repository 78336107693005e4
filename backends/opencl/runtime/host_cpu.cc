#include "backends/opencl/runtime/host_cpu.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "backends/opencl/runtime/tile_permission.h"

namespace hlorun::opencl {
namespace {

// /proc/cpuinfo's flag and the name in DeviceSpec::isa.
constexpr struct {
  const char* flag;
  const char* name;
} kFeatures[] = {
    {"avx", "avx"},
    {"avx2", "avx2"},
    {"fma", "fma"},
    {"f16c", "f16c"},
    {"avx_vnni", "avxvnni"},
    {"avx512f", "avx512f"},
    {"avx512bw", "avx512bw"},
    {"avx512dq", "avx512dq"},
    {"avx512vl", "avx512vl"},
    {"avx512cd", "avx512cd"},
    {"avx512vbmi", "avx512vbmi"},
    {"avx512_vnni", "avx512vnni"},
    {"avx512_bf16", "avx512bf16"},
    {"avx512_fp16", "avx512fp16"},
    {"amx_tile", "amxtile"},
    {"amx_bf16", "amxbf16"},
    {"amx_int8", "amxint8"},
    {"asimd", "asimd"},
    {"sve", "sve"},
};

// "name : value" of the first processor.
std::string CpuInfo(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, name.size(), name) != 0) continue;
    if (line.find_first_not_of(" \t", name.size()) != colon) continue;
    return colon + 2 <= line.size() ? line.substr(colon + 2) : "";
  }
  return "";
}

std::string Features(std::string flags_line) {
  std::set<std::string> flags, present;
  std::istringstream words(flags_line);
  for (std::string word; words >> word;) flags.insert(word);
  for (const auto& feature : kFeatures) {
    if (flags.contains(feature.flag)) present.insert(feature.name);
  }
  // What the system does not let the process use, the CPU has not.
  if (present.contains("amxtile") && !AskForTiles())
    std::erase_if(present, [](const std::string& name) { return name.starts_with("amx"); });
  std::string isa;
  for (const std::string& name : present) isa += (isa.empty() ? "" : ",") + name;
  return isa;
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "32K", "1024K", "32M" -> bytes.
int64_t CacheSize(const std::string& text) {
  if (text.empty()) return 0;
  const int64_t number = std::atoll(text.c_str());
  return text.back() == 'K' ? number << 10 : text.back() == 'M' ? number << 20 : number;
}

// A guest of a few cores is shown the whole of a socket's last cache (480 MiB for two cores), which all other guests
// use too: no core is taken to have more than this of it, which is what the CPUs with the most have.
constexpr int64_t kMostL3OfCore = 16 << 20;

void ReadCaches(HostCpu& cpu) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    const std::string level = FirstLine(folder + "level");
    if (level.empty()) return;
    if (FirstLine(folder + "type") == "Instruction") continue;
    const int64_t bytes = CacheSize(FirstLine(folder + "size"));
    if (level == "1") cpu.l1_bytes = bytes;
    if (level == "2") cpu.l2_bytes = bytes;
    if (level == "3") cpu.l3_bytes = std::min(bytes, kMostL3OfCore * sysconf(_SC_NPROCESSORS_ONLN));
  }
}

int64_t MemoryBytes() {
  const int64_t physical = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const int64_t limit = std::atoll(FirstLine(path).c_str());  // "max" reads as 0
    if (limit > 0 && limit < physical) return limit;
  }
  return physical;
}

HostCpu Read() {
  HostCpu cpu;
  cpu.model = CpuInfo("model name");
  const std::string flags = CpuInfo("flags");
  cpu.isa = Features(flags.empty() ? CpuInfo("Features") : flags);
  const auto has = [&](const char* name) {
    return ("," + cpu.isa + ",").find("," + std::string(name) + ",") != std::string::npos;
  };
  cpu.vector_bytes = has("avx512f") ? 64 : has("avx") ? 32 : 16;
  ReadCaches(cpu);
  cpu.memory_bytes = MemoryBytes();
  return cpu;
}

}  // namespace

bool HostCpu::Has(std::string_view feature) const {
  return ("," + isa + ",").find("," + std::string(feature) + ",") != std::string::npos;
}

const HostCpu& ThisCpu() {
  static const HostCpu cpu = Read();
  return cpu;
}

void FillFromCpu(DeviceSpec& spec) {
  const HostCpu& cpu = ThisCpu();
  spec.isa = cpu.isa;
  spec.vector_bytes = cpu.vector_bytes;
  if (cpu.l1_bytes > 0) spec.l1_bytes = cpu.l1_bytes;
  if (cpu.l2_bytes > 0) spec.l2_bytes = cpu.l2_bytes;
  if (cpu.l3_bytes > 0) spec.l3_bytes = cpu.l3_bytes;
}

}  // namespace hlorun::opencl
