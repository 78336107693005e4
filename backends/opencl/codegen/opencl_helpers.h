// OpenCL C functions that generated kernels call: conversions of storage types, gathers, masked loads, reductions of
// lanes. Each exists for every number of lanes, generated on demand.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/opencl/codegen/interleaved.h"
#include "backends/opencl/codegen/kernel_ir.h"
#include "hlo/device_spec.h"

namespace hlorun::opencl {

// "float16", "uint"; predicates are int.
std::string CTypeName(ir::Type type);
// How an element of a storage type lies in memory: bf16 -> "ushort", pred -> "uchar".
std::string CarrierName(hlo::ElementType storage);
// The element of masks for `select` of elements of so many bytes.
const char* MaskElement(int64_t bytes);
hlo::ElementType CarrierType(hlo::ElementType storage);
// "__global", "__local", "__private"
const char* SpaceName(ir::Buffer::Space space);

// The helpers of one kernel, in the order in which they were first needed. Each function returns the helper's name.
class HelperSet {
 public:
  // By `device`'s bf16_dot AVX512_BF16's instructions may be used; by "assembly" others of AVX-512 may be, too; by its
  // half_conversion those of F16C. Throws Error kInvalidArgument where word_dot.h or half_conversion.h has no such
  // form.
  explicit HelperSet(const DeviceSpec& device);
  std::string Unaligned(const std::string& element, int lanes);  // vector type with the element's alignment
  std::string UnalignedPairs();                                  // uint16 with the alignment of a bf16
  std::string FromStorage(hlo::ElementType storage, int lanes);  // carrier -> computation type; empty: the same
  std::string ToStorage(hlo::ElementType storage, int lanes);    // computation type -> carrier
  std::string Round(hlo::ElementType storage, int lanes);        // f32 -> f32 as if stored and loaded
  std::string Gather(ir::Buffer::Space space, const std::string& element, int lanes, const std::string& index);
  std::string StridedGather(ir::Buffer::Space space, const std::string& element, int lanes, const std::string& index);
  std::string MaskedGather(ir::Buffer::Space space, const std::string& element, int lanes, const std::string& index);
  // `known`: the compiler knows the mask.
  std::string MaskedLoad(ir::Buffer::Space space, hlo::ElementType storage, int lanes, const std::string& index,
                         bool known);
  // interleaved.h
  std::string Repeats(ir::Buffer::Space space, const std::string& element, int lanes, int64_t times);
  std::string EveryNth(ir::Buffer::Space space, const std::string& element, int lanes, const opencl::EveryNth& which);
  std::string StoreInTurns(ir::Buffer::Space space, const std::string& element, int lanes, int64_t stride);
  std::string Scatter(ir::Buffer::Space space, const std::string& element, int lanes, const std::string& index);
  std::string ReduceLanes(ir::Op op, ir::Type type);
  // Of vectors of integers of at most 32 bits, none of whose lanes divides by zero or overflows: rounded to zero, and
  // what is left.
  std::string Quotient(ir::Type type);
  std::string Remainder(ir::Type type);
  // From the type `whole` to `half`.
  std::string UpperHalf(const std::string& half, const std::string& whole);
  // A named helper with lanes: "hl_round_bf16", "hl_to_bf16", "hl_from_f16", "hl_result_bf16" (rounds what is not
  // denormal); other names are returned as they are.
  std::string Named(const std::string& function, int lanes);
  // What to call for OpenCL C's `builtin` on `type`: itself, or a function of math_functions.h.
  std::string Math(const std::string& builtin, ir::Type type);
  void Add(const std::string& name, const std::string& source);

  std::string Text() const;

 private:
  // One of word_dot.h's functions that round by the device's form, which it has.
  std::string Bf16Rounding(const char* function);

  std::string bf16_form_;
  std::string half_form_;
  std::map<std::string, bool> known_;
  std::vector<std::string> sources_;
};

}  // namespace hlorun::opencl
