// Which products a library multiplies (--dot_library), instead of kernels of our own.
#pragma once

#include <optional>

#include "backends/opencl/clblast_numbers.h"
#include "hlo/device_spec.h"
#include "hlo/instruction.h"
#include "passes/expand/dot_form.h"
#include "passes/options.h"

namespace hlorun::opencl {

struct LibraryProduct {
  passes::DotForm form;
  hlo::ElementType type = hlo::ElementType::kF32;  // of both operands and the result
  ClblastNumbers numbers{};                        // that were chosen for it
};

// Nullopt: our kernels multiply. CLBlast takes canonical dots of one type among f32, f64, c64, c128 and, where the
// device computes with halves, f16. `auto` wants it on GPU-class devices whose cost table (bench/roofline) shows it to
// be faster.
std::optional<LibraryProduct> LibraryProductOf(const hlo::Instruction& instruction, const DeviceSpec& device,
                                               const CompileOptions& options);

// Names in DeviceSpec::cost_table: f32 products of 1024^3, GFLOP/s.
inline constexpr const char* kOwnProductCost = "own_product_gflops";
inline constexpr const char* kClblastProductCost = "clblast_product_gflops";

}  // namespace hlorun::opencl
