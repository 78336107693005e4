// DeviceSpec: all that compilation may know of a device. Never a live device: so one that is not here can be compiled
// for, and one that is here can be made poorer for a test. Reads and writes JSON (--device_spec=FILE).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hlorun {

enum class DeviceClass : uint8_t { kCpu, kGpu };

struct DeviceSpec {
  std::string name = "generic";
  std::string platform;  // "Portable Computing Language", "Intel(R) OpenCL", ...
  std::string driver_version;
  std::string isa;  // the CPU features that generated code may depend on, sorted: "avx512bf16,avx512f"
  DeviceClass device_class = DeviceClass::kCpu;

  int64_t compute_units = 2;
  int64_t vector_bytes = 64;    // width of a vector register: float lanes = vector_bytes / 4
  int64_t l1_bytes = 32 << 10;  // per core
  int64_t l2_bytes = 1 << 20;   // per core
  int64_t l3_bytes = 16 << 20;  // shared
  int64_t local_memory_bytes = 32 << 10;
  int64_t max_work_group_size = 4096;
  int64_t sub_group_size = 0;  // 0: no sub-groups
  int64_t global_memory_bytes = int64_t{8} << 30;
  int64_t max_allocation_bytes = int64_t{2} << 30;
  int64_t buffer_alignment = 64;  // of a buffer's start, bytes
  int64_t argument_bytes = 1024;  // all of a kernel's arguments together: what every device takes

  bool has_f64 = true;
  bool has_f16 = false;  // arithmetic in half; storage always works
  bool has_int64_atomics = true;
  bool unified_memory = true;        // host and device share memory
  bool raw_pointers = true;          // kernels take plain host pointers; never without unified memory
  bool has_inline_assembly = false;  // x86 instructions by inline assembly (PoCL)
  int64_t spare_registers = 0;  // of 32 vector registers, how many a kernel's tiles leave to the platform's compiler
  std::string bf16_dot;         // how kernels multiply pairs of bf16 ("assembly", "intrinsic"); empty: not
  std::string s8_dot;           // how they multiply words of four s8
  std::string half_conversion;  // how they convert halves by F16C ("assembly", "vectors"); empty: by integers
  bool has_bf16_tiles = false;  // products of bf16 by the CPU's matrix unit (AMX), by inline assembly
  bool has_s8_tiles = false;    // of s8

  // How kernels of GPU class use a GPU's matrix instructions (codegen/fragments.h); empty: not.
  std::string matrix_fragments;
  bool has_s8_fragments = false;    // for products of s8 too
  bool has_wide_fragments = false;  // those of four sub-groups together, too (codegen/wide_fragments.h)
  bool has_integer_dot = false;     // kernels of GPU class multiply words of four bytes (codegen/integer_dot.h)
  // How work-items of a sub-group hand each other values in them (codegen/sub_groups.h); empty: not.
  std::string sub_group_moves;

  // Measured by bench/roofline; 0: not measured, a default is used.
  double f32_gflops = 0;
  double bandwidth_gbps = 0;                 // main memory
  double launch_us = 0;                      // one kernel, queued behind others
  std::map<std::string, double> cost_table;  // everything else roofline measures, by name

  // A cost by its name: one of the three fields above, or an entry of the table; 0 where it was not measured.
  double Cost(const std::string& cost) const;
  void SetCost(const std::string& cost, double value);

  std::string ToJson() const;
  // Fields that are absent keep the values of `base`. Throws Error naming the first unknown or ill-typed field.
  static DeviceSpec FromJson(const std::string& text, const DeviceSpec& base);
};

}  // namespace hlorun
