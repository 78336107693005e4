#include "backends/opencl/runtime/compile_program.h"

#include <nlohmann/json.hpp>

#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/marked_instructions.h"
#include "backends/opencl/runtime/pocl_cache.h"
#include "backends/opencl/runtime/warm_up.h"

namespace hlorun::opencl {
namespace {

std::string BinaryOf(const cl::Program& program) {
  size_t size = 0;
  CheckCl(clGetProgramInfo(program(), CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr),
          "asking for a binary's size");
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  CheckCl(clGetProgramInfo(program(), CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr), "asking for a binary");
  return binary;
}

cl::Program FromMarked(const std::string& binary, const ProgramRequest& request, const cl::Context& context,
                       const cl::Device& device) {
  cl::Program program = UnbuiltProgram(WithMarkedInstructions(binary), context, device);
  if (clBuildProgram(program(), 1, &device(), request.options.c_str(), nullptr, nullptr) != CL_SUCCESS)
    throw Refused(program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device));
  return program;
}

}  // namespace

std::string ProgramRequest::ToJson() const {
  nlohmann::json json = {{"source", source},
                         {"options", options},
                         {"kernels", nlohmann::json::array()},
                         {"scratch_bytes", scratch_bytes},
                         {"raw_pointers", raw_pointers},
                         {"links_generic_variants", links_generic_variants}};
  for (const KernelRequest& kernel : kernels) {
    nlohmann::json& entry = json["kernels"].emplace_back();
    entry = {{"symbol", kernel.symbol},
             {"guarded", kernel.guarded},
             {"integers", kernel.integers},
             {"variants", nlohmann::json::array()}};
    for (const Grid& grid : kernel.variants)
      entry["variants"].push_back({{"groups", grid.groups}, {"local", grid.local}});
  }
  return json.dump();
}

ProgramRequest ProgramRequest::FromJson(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  ProgramRequest request;
  json.at("source").get_to(request.source);
  json.at("options").get_to(request.options);
  json.at("scratch_bytes").get_to(request.scratch_bytes);
  json.at("raw_pointers").get_to(request.raw_pointers);
  json.at("links_generic_variants").get_to(request.links_generic_variants);
  for (const nlohmann::json& entry : json.at("kernels")) {
    KernelRequest& kernel = request.kernels.emplace_back();
    entry.at("symbol").get_to(kernel.symbol);
    entry.at("guarded").get_to(kernel.guarded);
    entry.at("integers").get_to(kernel.integers);
    for (const nlohmann::json& variant : entry.at("variants")) {
      Grid& grid = kernel.variants.emplace_back();
      variant.at("groups").get_to(grid.groups);
      variant.at("local").get_to(grid.local);
    }
  }
  return request;
}

cl::Program UnbuiltProgram(const std::string& binary, const cl::Context& context, const cl::Device& device) {
  const size_t size = binary.size();
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int of_binary = CL_SUCCESS, status = CL_SUCCESS;
  cl::Program program(clCreateProgramWithBinary(context(), 1, &device(), &size, &bytes, &of_binary, &status));
  CheckCl(status == CL_SUCCESS ? of_binary : status, "loading a compiled program");
  return program;
}

std::string CompileProgram(const ProgramRequest& request, const cl::Device& device) {
  const cl::Context context(device);
  cl::Program program(context, request.source, false);
  if (clBuildProgram(program(), 1, &device(), request.options.c_str(), nullptr, nullptr) != CL_SUCCESS)
    throw Refused(program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device));
  if (request.source.find(kInstructionMark) != std::string::npos)
    program = FromMarked(BinaryOf(program), request, context, device);
  if (!request.kernels.empty()) WarmUp(request, program, context, device);
  if (request.links_generic_variants) {
    std::vector<std::string> symbols;
    for (const KernelRequest& kernel : request.kernels) symbols.push_back(kernel.symbol);
    LinkGenericVariants(symbols);
  }
  return BinaryOf(program);
}

}  // namespace hlorun::opencl
