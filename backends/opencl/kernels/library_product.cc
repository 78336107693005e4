#include "backends/opencl/kernels/library_product.h"

#include "backends/opencl/kernels/tuning_record.h"

namespace hlorun::opencl {
namespace {

double CostOf(const DeviceSpec& device, const char* name) {
  const auto found = device.cost_table.find(name);
  return found == device.cost_table.end() ? 0 : found->second;
}

// What was measured for this very product says more than the cost table.
bool IsChosen(const hlo::Instruction& dot, const DeviceSpec& device, const CompileOptions& options) {
  if (options.dot_library != DotLibrary::kAuto) return options.dot_library == DotLibrary::kClblast;
  if (const ProductSchedule* tuned = TunedScheduleOf(dot, options))
    return std::holds_alternative<LibrarySchedule>(*tuned);
  return device.device_class == DeviceClass::kGpu && CostOf(device, kOwnProductCost) > 0 &&
         CostOf(device, kClblastProductCost) > CostOf(device, kOwnProductCost);
}

// Those that were chosen for the product, else for another of its type: where they change CLBlast compiles anew.
ClblastNumbers NumbersOf(const hlo::Instruction& dot, const CompileOptions& options) {
  const ProductSchedule* tuned = TunedScheduleOf(dot, options);
  const auto* library = tuned == nullptr ? nullptr : std::get_if<LibrarySchedule>(tuned);
  if (library == nullptr && options.tuned != nullptr) library = options.tuned->LibraryOf(dot.shape().element_type());
  return library == nullptr ? ClblastNumbers{} : library->numbers;
}

bool HasRoutine(hlo::ElementType type, const DeviceSpec& device) {
  switch (type) {
    case hlo::ElementType::kF32:
    case hlo::ElementType::kC64: return true;
    case hlo::ElementType::kF64:
    case hlo::ElementType::kC128: return device.has_f64;
    case hlo::ElementType::kF16: return device.has_f16;
    default: return false;
  }
}

}  // namespace

std::optional<LibraryProduct> LibraryProductOf(const hlo::Instruction& instruction, const DeviceSpec& device,
                                               const CompileOptions& options) {
  if (!instruction.Is(hlo::Opcode::kDot) || !IsChosen(instruction, device, options)) return std::nullopt;
  const std::optional<passes::DotForm> form = passes::DotFormOf(instruction);
  const hlo::ElementType type = instruction.shape().element_type();
  const bool one_type =
      instruction.operand(0)->shape().element_type() == type && instruction.operand(1)->shape().element_type() == type;
  if (!form || !one_type || !HasRoutine(type, device)) return std::nullopt;
  if (form->batch * form->m * form->n * form->k == 0) return std::nullopt;
  return LibraryProduct{*form, type, NumbersOf(instruction, options)};
}

}  // namespace hlorun::opencl
