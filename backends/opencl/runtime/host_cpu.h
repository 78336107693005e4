// What the operating system says about the CPU of this process: the features that generated code depends on, and
// caches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hlo/device_spec.h"

namespace hlorun::opencl {

struct HostCpu {
  std::string model;  // "AMD EPYC ..."
  std::string isa;    // sorted, comma-separated, only features that code generation asks for: "avx,avx2,avx512bf16"
  int64_t vector_bytes = 16;
  int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // 0: unknown; l3: of these cores
  int64_t memory_bytes = 0;                          // physical, or the cgroup's limit

  bool Has(std::string_view feature) const;  // one of `isa`, whole
};

const HostCpu& ThisCpu();  // read once

// Features, vectors and caches of this CPU; caches of unknown size stay as they are.
void FillFromCpu(DeviceSpec& spec);

}  // namespace hlorun::opencl
