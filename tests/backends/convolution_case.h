// Convolutions of random operands on the first OpenCL device, compared with sums in double on the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "hlo/device_spec.h"
#include "hlo/literal.h"
#include "hlo/module.h"
#include "tests/backends/launch_runner.h"

namespace hlorun::opencl {

// "f32[1,5,5,3] x f32[3,3,3,4] -> f32[1,5,5,4] {size=3x3 pad=1_1x1_1}", run as it is or with bias and relu behind it.
struct ConvolutionCase {
  std::string input, weights, output, window;
  std::string labels = "b01f_01io->b01f";
};

// Labels of an image with channels last, of so many feature groups.
std::string Grouped(int64_t groups);

// The process's one.
LaunchRunner& Runner();

std::string ConvolutionText(const ConvolutionCase& c, bool fused);

std::vector<hlo::Literal> RandomOperands(const hlo::Instruction& root);

// The result of an executed convolution or fusion of one; guards behind its scratch are checked.
hlo::Literal OnDevice(const hlo::Instruction& root, const std::vector<hlo::Literal>& operands, const DeviceSpec& spec,
                      const CompileOptions& options);

// Of random operands: the largest error is within what the result's type allows.
void ExpectConvolution(const ConvolutionCase& c, bool fused, const DeviceSpec& spec,
                       const CompileOptions& options = {});

}  // namespace hlorun::opencl
