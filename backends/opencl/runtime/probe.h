// Questions to an OpenCL runtime that may crash the process that asks: a child process (hlorun-probe) asks them, and
// the answer is kept on disk for that driver.
#pragma once

#include <cstdint>
#include <string>

namespace hlorun::opencl {

// Whether kernels of this device may be given plain host pointers. `driver_key` identifies device and driver. False
// when the child crashes, takes longer than 30 seconds, or is not installed.
bool ProbeRawPointers(int platform_index, int device_index, const std::string& driver_key);

// Whether the host may call a function of a compiled kernel (native_call.h).
bool ProbeNativeCalls(int platform_index, int device_index, const std::string& driver_key);

// Whether kernels of this device may multiply words of bf16 (and round to them) or of s8 in this form
// (codegen/word_dot.h), and do it right.
bool ProbeBf16Dot(const std::string& form, int platform_index, int device_index, const std::string& driver_key);
bool ProbeS8Dot(const std::string& form, int platform_index, int device_index, const std::string& driver_key);

// Whether they may convert halves in this form (codegen/half_conversion.h), up to `lanes` at a time, and do it right.
bool ProbeHalves(const std::string& form, int64_t lanes, int platform_index, int device_index, const std::string& driver_key);

// Whether they may multiply tiles of "bf16" or "s8" on the CPU's matrix unit (codegen/matrix_unit.h).
bool ProbeMatrixUnit(const std::string& type, int platform_index, int device_index, const std::string& driver_key);

// Whether they may multiply 16-bit floats, s8, or 16-bit floats by four sub-groups together (codegen/wide_fragments.h),
// by a GPU's matrix instructions in this form (codegen/fragments.h), and do it right.
bool ProbeFragments(const std::string& form, int platform_index, int device_index, const std::string& driver_key);
bool ProbeS8Fragments(const std::string& form, int platform_index, int device_index, const std::string& driver_key);
bool ProbeWideFragments(const std::string& form, int platform_index, int device_index, const std::string& driver_key);

// Whether their work-items, in sub-groups of `size`, may hand each other values in this form (codegen/sub_groups.h),
// and are the lanes that they are said to be.
bool ProbeSubGroupMoves(const std::string& form, int64_t size, int platform_index, int device_index,
                        const std::string& driver_key);

}  // namespace hlorun::opencl
