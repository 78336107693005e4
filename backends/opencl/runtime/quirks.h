// What is special about an OpenCL platform. Everything that depends on a platform's name is here and nowhere else.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/runtime/cl.h"
#include "backends/opencl/runtime/host_cpu.h"
#include "hlo/device_spec.h"

namespace hlorun::opencl {

struct Quirks {
  // CPU runtimes that take a plain host pointer through clSetKernelArgSVMPointer although not all of them advertise
  // system SVM. Believed only after a probe in a child process (see probe.h).
  bool may_take_raw_pointers = false;
  // Binaries read after a build hold only a generic variant of each kernel; those read after a launch hold the final
  // machine code for that local size.
  bool binaries_need_launch = false;
  // ... and a second variant is compiled when a grid reaches this many groups in a dimension. 0: never.
  int64_t large_grid_groups = 0;
  // Keeps compiled kernels in a folder of its own, where processes may read each other's half-written files, and
  // compiles a variant for any local size before it hands out a binary: see pocl_cache.h.
  bool has_pocl_cache = false;
  // A kernel costs much by itself - its passes over the kernel's body, the linker - and a function little: kernels of
  // one work-item are joined into one that calls them. Measured in docs/compile-time.md.
  bool joins_kernels = false;
  // Aborts now and then where two queues launch a kernel in grids of different widths at once; kernels of the plan may
  // be one for the platform (joins_kernels).
  bool mixes_up_grids = false;
  // One thread of a process compiles at a time, whatever the contexts: see compiler_process.h.
  bool compiles_in_processes = false;
  // Compiled kernels are functions in libraries of this process, which it can call itself: see native_call.h. Believed
  // only after a probe.
  bool calls_kernels = false;
  // ... but keeps only those that a kernel calls.
  bool drops_functions = false;
  // Kernels may hold x86 inline assembly.
  bool inline_assembly = false;
  // Its compiler loads so many elements of a register tile's rows ahead that it spills sums where all of 32 vector
  // registers are in use: a tile leaves it as many.
  int64_t spare_registers = 0;
  // Programs with clang's prefetch builtin build, but their kernels cannot be made.
  bool refuses_prefetch = false;
  // It takes an element of a vector's upper half for uninitialized, and ends where it follows a vector made of vectors.
  bool doubts_upper_halves = false;
  // The forms of codegen/word_dot.h that its compiler may take on a CPU that has the instructions, or null.
  const char* bf16_dot = nullptr;
  const char* s8_dot = nullptr;
  // ... and of codegen/half_conversion.h.
  const char* half_conversion = nullptr;
  // Kernels may drive the CPU's matrix unit (codegen/matrix_unit.h).
  bool matrix_unit = false;
  // How its kernels may use the GPU's matrix instructions (codegen/fragments.h), or null.
  const char* matrix_fragments = nullptr;
  // How work-items of its sub-groups hand each other values (codegen/sub_groups.h) where no extension says so, or null.
  const char* sub_group_moves = nullptr;
  // CL_DEVICE_GLOBAL_MEM_SIZE changes from run to run; the machine's memory is used instead.
  bool volatile_memory_size = false;
  // Two builds at the same time crash its compiler.
  bool builds_one_at_a_time = false;
  // Beginning of the name of a device of the same platform that runs kernels in the thread that enqueues them, or null,
  // and the environment variable, with its value, that makes the platform show it. Takes plain pointers as the others
  // do.
  const char* inline_device = nullptr;
  const char* device_list_variable = nullptr;
  const char* device_list = nullptr;
  // The environment variable that names the CPU to its compiler, and what it is on a CPU with these features. Virtual
  // machines may show new features under the number of a model that the compiler takes for an older one.
  const char* target_variable = nullptr;
  const char* target = nullptr;
  const char* target_library = nullptr;  // part of its file's name: the variable is read when it is loaded
  std::vector<std::string> target_features = {};
  // The environment variable that bounds the number of worker threads, or null when the affinity mask does.
  const char* thread_count_variable = nullptr;
};

Quirks QuirksOf(const std::string& platform_name, cl_device_type type);

// Asks platforms, by their environment variables, to show their inline devices too. Before the first call of OpenCL;
// what the user has set stays. Returns the names' beginnings of devices that would not be shown otherwise.
std::vector<std::string> ShowInlineDevices();

// Names this CPU to platforms that would take it for another. Before the first call of OpenCL: nothing is named to a
// platform that is loaded already, and nothing where the user has set the variable.
void NameCpuToPlatforms();
// What the platform's compiler was told by then, by whomever; empty: nothing.
std::string CpuTargetOf(const Quirks& quirks);
// Whether a CPU is one that is named.
bool IsTarget(const Quirks& quirks, const HostCpu& cpu);

// Options that every program of hlorun is built with on this device. XLA:CPU flushes denormals, so kernels do.
std::string BuildOptionsOf(const cl::Device& device);

}  // namespace hlorun::opencl
