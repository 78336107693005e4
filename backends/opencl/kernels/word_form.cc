#include "backends/opencl/kernels/word_form.h"

#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

struct WordRow {
  WordKind kind;
  hlo::ElementType operands, sums;
  int64_t elements;
  hlo::ElementType element;
  std::string DeviceSpec::*dot;
};
const WordRow kWords[] = {
    {WordKind::kBf16Pairs, hlo::ElementType::kBF16, hlo::ElementType::kF32, 2, hlo::ElementType::kU16,
     &DeviceSpec::bf16_dot},
    {WordKind::kS8Quads, hlo::ElementType::kS8, hlo::ElementType::kS32, 4, hlo::ElementType::kU8, &DeviceSpec::s8_dot},
};

}  // namespace

WordForm WordFormOf(hlo::ElementType operands, hlo::ElementType sums, int64_t depth, const DeviceSpec& device) {
  constexpr int64_t kLanes = 16;
  if (device.device_class != DeviceClass::kCpu || RegisterLanes(device, sums) != kLanes) return {};
  for (const WordRow& row : kWords) {
    const std::string& dot = device.*row.dot;
    if (operands == row.operands && sums == row.sums && depth % row.elements == 0 && !dot.empty())
      return {row.kind, row.elements, row.element, dot};
  }
  return {};
}

}  // namespace hlorun::opencl
