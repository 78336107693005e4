// KernelExtents as an attribute, and the masks that extents come from.
#include <sstream>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "passes/dynamic/extents.h"
#include "passes/expand/reducer_identity.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

constexpr const char* kAttribute = "hlorun.extents";

std::string ToText(const OperandExtent& e) { return fmt::format("{}*{}/{}+{}", e.operand, e.mul, e.div, e.add); }

OperandExtent FromText(std::istream& text) {
  OperandExtent e;
  char times = 0, over = 0, plus = 0;
  if (!(text >> e.operand >> times >> e.mul >> over >> e.div >> plus >> e.add))
    Invalid("an attribute {} cannot be read", kAttribute);
  return e;
}

// The scalar that a broadcast spreads; null when `x` is none.
const Instruction* SpreadScalar(const Instruction& x) {
  if (x.Is(Opcode::kBroadcast) && x.operand(0)->shape().IsScalar()) return x.operand(0);
  return x.shape().IsScalar() ? &x : nullptr;
}

// In s32, as sizes are: one of a narrower type would begin again within the dimension.
bool CountsAlong(const Instruction& x, int64_t dimension) {
  if (x.shape().element_type() != hlo::ElementType::kS32) return false;
  if (x.Is(Opcode::kIota)) return x.dimensions()[0] == dimension;
  if (!x.Is(Opcode::kBroadcast)) return false;
  for (size_t i = 0; i < x.dimensions().size(); ++i) {
    if (x.dimensions()[i] == dimension) return CountsAlong(*x.operand(0), static_cast<int64_t>(i));
  }
  return false;
}

// n where `predicate` is false from n on along `dimension`.
const Instruction* TrueBelow(const Instruction& predicate, int64_t dimension) {
  if (predicate.Is(Opcode::kBroadcast)) {
    for (size_t i = 0; i < predicate.dimensions().size(); ++i) {
      if (predicate.dimensions()[i] == dimension) return TrueBelow(*predicate.operand(0), static_cast<int64_t>(i));
    }
    return nullptr;
  }
  if (predicate.Is(Opcode::kAnd)) {
    const Instruction* first = TrueBelow(*predicate.operand(0), dimension);
    return first != nullptr ? first : TrueBelow(*predicate.operand(1), dimension);
  }
  if (!predicate.Is(Opcode::kCompare)) return nullptr;
  const auto direction = predicate.As<hlo::attr::Compare>().direction;
  const bool less = direction == hlo::ComparisonDirection::kLt, greater = direction == hlo::ComparisonDirection::kGt;
  if (!less && !greater) return nullptr;
  const Instruction *count = predicate.operand(less ? 0 : 1), *limit = predicate.operand(less ? 1 : 0);
  return CountsAlong(*count, dimension) ? SpreadScalar(*limit) : nullptr;
}

// Zeros of either sign are as good: they differ where all else that is summed is -0.
bool IsFilledWith(const Instruction& x, const hlo::Literal& fill) {
  const Instruction* scalar = SpreadScalar(x);
  if (scalar == nullptr || !scalar->IsConstant()) return false;
  return scalar->literal() == fill || (fill.GetComplex(0) == 0.0 && scalar->literal().GetComplex(0) == 0.0);
}

}  // namespace

std::optional<OperandExtent> KernelExtents::Of(int64_t leaf, int64_t dimension) const {
  for (const OfResult& result : results) {
    if (result.leaf == leaf && result.dimension == dimension) return result.extent;
  }
  return std::nullopt;
}

KernelExtents ExtentsOf(const Instruction& instruction) {
  KernelExtents extents;
  const auto found = instruction.frontend_attributes.find(kAttribute);
  if (found == instruction.frontend_attributes.end()) return extents;
  std::stringstream list(found->second);
  for (std::string item; std::getline(list, item, ',');) {
    std::stringstream text(item);
    if (item.starts_with("k=")) {
      text.ignore(2);
      extents.contraction = FromText(text);
      continue;
    }
    KernelExtents::OfResult result;
    char dot = 0, equals = 0;
    text >> result.leaf >> dot >> result.dimension >> equals;
    result.extent = FromText(text);
    extents.results.push_back(result);
  }
  return extents;
}

void SetExtents(Instruction& instruction, const KernelExtents& extents) {
  std::string text;
  for (const KernelExtents::OfResult& r : extents.results)
    text += fmt::format("{}{}.{}={}", text.empty() ? "" : ",", r.leaf, r.dimension, ToText(r.extent));
  if (extents.contraction) text += fmt::format("{}k={}", text.empty() ? "" : ",", ToText(*extents.contraction));
  instruction.frontend_attributes[kAttribute] = text;
}

const Instruction* FilledFrom(const Instruction& x, int64_t dimension, const hlo::Literal& fill) {
  if (!x.Is(Opcode::kSelect) || !IsFilledWith(*x.operand(2), fill)) return nullptr;
  const Instruction* size = TrueBelow(*x.operand(0), dimension);
  return size != nullptr ? size : FilledFrom(*x.operand(1), dimension, fill);
}

const Instruction* NeutralFrom(const Instruction& reduce, int64_t dimension) {
  const std::optional<Opcode> opcode = hlo::ReducerOpcode(*reduce.called());
  if (!opcode || reduce.operand_count() != 2) return nullptr;
  const Instruction& x = *reduce.operand(0);
  return FilledFrom(x, dimension, ReducerIdentity(*opcode, x.shape().element_type()));
}

}  // namespace hlorun::passes
