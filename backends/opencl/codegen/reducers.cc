#include "backends/opencl/codegen/reducers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "backends/opencl/codegen/scratch.h"
#include "hlo/builder.h"
#include "passes/dynamic/extents.h"

namespace hlorun::opencl {

using hlo::Instruction;
using hlo::Opcode;

std::optional<Value> NeutralOf(Opcode opcode, hlo::ElementType type) {
  const ir::Type t = ValueType(type);
  const auto real = [&](double x) { return Value{ir::Constant(x, t), hlo::IsComplex(type) ? ir::Zero(t) : nullptr}; };
  const bool is_complex = hlo::IsComplex(type), floating = hlo::IsFloating(type),
             is_pred = type == hlo::ElementType::kPred, is_signed = hlo::IsSigned(type);
  const int bits = hlo::BitsOf(type);
  const int64_t highest = bits - (is_signed ? 1 : 0) >= 63 ? std::numeric_limits<int64_t>::max()
                                                           : (int64_t{1} << (bits - (is_signed ? 1 : 0))) - 1;
  switch (opcode) {
    case Opcode::kAdd:
      if (is_complex) return Value{ir::Constant(-0.0, t), ir::Constant(-0.0, t)};
      return real(floating ? -0.0 : 0);
    case Opcode::kOr:
    case Opcode::kXor: return real(0);
    case Opcode::kMultiply: return real(1);
    case Opcode::kAnd: return is_pred ? real(1) : Value{ir::Int(-1, t), nullptr};
    case Opcode::kMaximum:
      if (floating) return real(-INFINITY);
      return is_pred || !is_signed ? real(0) : Value{ir::Int(-highest - 1, t), nullptr};
    case Opcode::kMinimum:
      if (floating) return real(INFINITY);
      if (is_pred) return real(1);
      return type == hlo::ElementType::kU64 ? Value{ir::Int(-1, t), nullptr} : Value{ir::Int(highest, t), nullptr};
    default: return std::nullopt;
  }
}

bool HasLanes(const Instruction& reduce) {
  if (reduce.operand_count() != 2) return false;
  const std::optional<Opcode> opcode = hlo::ReducerOpcode(*reduce.called());
  return opcode.has_value() && NeutralOf(opcode.value(), reduce.shape().element_type()).has_value();
}

std::vector<std::vector<const Instruction*>> ReduceLevels(const Instruction& instruction) {
  if (!instruction.Is(Opcode::kFusion)) return {{&instruction}};
  const hlo::Computation* computation = instruction.called();
  std::map<const Instruction*, size_t> depth;
  std::vector<std::vector<const Instruction*>> levels;
  for (const Instruction* op : computation->PostOrder()) {
    size_t d = 0;
    for (const Instruction* operand : op->operands())
      d = std::max(d, depth[operand] + (operand->Is(Opcode::kReduce) ? 1 : 0));
    depth[op] = d;
    if (!op->Is(Opcode::kReduce)) continue;
    if (levels.size() <= d) levels.resize(d + 1);
    levels[d].push_back(op);
  }
  std::erase_if(levels, [](const auto& level) { return level.empty(); });
  return levels;
}

bool ReduceAlike(const Instruction& a, const Instruction& b) {
  return a.operand(0)->shape().SameDimensions(b.operand(0)->shape()) && a.dimensions() == b.dimensions();
}

const Instruction* CommonSize(const std::vector<const Instruction*>& reduces, int64_t d) {
  const Instruction* size = nullptr;
  for (const Instruction* reduce : reduces) {
    const Instruction* own = passes::NeutralFrom(*reduce, d);
    if (own == nullptr || (size != nullptr && own != size)) return nullptr;
    size = own;
  }
  return size;
}

int64_t PartialBytes(const Instruction& reduce) {
  int64_t bytes = 0;
  for (const hlo::Shape& leaf : hlo::FlattenShape(reduce.shape()))
    bytes += int64_t{hlo::BytesOf(PartialType(leaf.element_type()))} * (hlo::IsComplex(leaf.element_type()) ? 2 : 1);
  return bytes;
}

int64_t PartialBytes(const Instruction& reduce, int64_t count) { return AlignScratch(count * PartialBytes(reduce)); }

}  // namespace hlorun::opencl
