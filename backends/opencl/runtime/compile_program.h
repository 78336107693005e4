// Source -> binary: one program, in this process or in a process for it (compiler_process.h).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/opencl/plan.h"
#include "backends/opencl/runtime/cl.h"

namespace hlorun::opencl {

// A kernel to launch before the binary is taken: null pointers where `guarded`, else scratch, then zeros.
struct KernelRequest {
  std::string symbol;
  bool guarded = false;
  uint32_t integers = 0;       // parameters after the pointers
  std::vector<Grid> variants;  // one launch each
};

struct ProgramRequest {
  std::string source, options;
  std::vector<KernelRequest> kernels;  // none where a build is final
  int64_t scratch_bytes = 0;
  bool raw_pointers = false;
  bool links_generic_variants = false;  // see pocl_cache.h

  std::string ToJson() const;
  // Throws std::exception when `text` is no such thing.
  static ProgramRequest FromJson(const std::string& text);
};

// The compiler does not take the source; what() is its log.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Of what CompileProgram returned, to be built. Throws Error when the driver does not take it.
cl::Program UnbuiltProgram(const std::string& binary, const cl::Context& context, const cl::Device& device);

// In a context of its own: platforms compile one program at a time in a context. Throws Refused, Error or cl::Error.
std::string CompileProgram(const ProgramRequest& request, const cl::Device& device);

}  // namespace hlorun::opencl
