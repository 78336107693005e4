#include "backends/opencl/kernels/word_form.h"

#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

struct WordRow {
  WordKind kind;
  hlo::ElementType operands, sums;
  int64_t elements;
  std::string DeviceSpec::*dot;
};
const WordRow kWords[] = {
    {WordKind::kBf16Pairs, hlo::ElementType::kBF16, hlo::ElementType::kF32, 2, &DeviceSpec::bf16_dot},
    {WordKind::kS8Quads, hlo::ElementType::kS8, hlo::ElementType::kS32, 4, &DeviceSpec::s8_dot},
};

}  // namespace

std::optional<WordForm> WordFormOf(hlo::ElementType operands, hlo::ElementType sums, int64_t depth,
                                   const DeviceSpec& device) {
  constexpr int64_t kLanes = 16;
  if (device.device_class != DeviceClass::kCpu || RegisterLanes(device, sums) != kLanes) return std::nullopt;
  for (const WordRow& row : kWords) {
    const std::string& dot = device.*row.dot;
    if (operands == row.operands && sums == row.sums && depth % row.elements == 0 && !dot.empty())
      return WordForm{row.kind, row.elements, dot};
  }
  return std::nullopt;
}

}  // namespace hlorun::opencl
