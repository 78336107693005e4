#include "passes/simplify/pattern.h"

#include <cmath>
#include <limits>

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

Pattern::Pattern(Slot slot) : node_(std::make_shared<Node>(Node{{}, {}, {}, slot})) {}

Pattern::Pattern(Opcode opcode, std::vector<Pattern> operands)
    : node_(std::make_shared<Node>(Node{opcode, std::move(operands), {}, {}})) {}

Pattern::Pattern(Predicate predicate) : node_(std::make_shared<Node>(Node{{}, {}, {std::move(predicate)}, {}})) {}

Pattern Pattern::As(Slot slot) const {
  auto node = std::make_shared<Node>(*node_);
  node->slot = slot;
  return Pattern(std::shared_ptr<const Node>(std::move(node)));
}

Pattern Pattern::If(Predicate predicate) const {
  auto node = std::make_shared<Node>(*node_);
  node->predicates.push_back(std::move(predicate));
  return Pattern(std::shared_ptr<const Node>(std::move(node)));
}

Pattern Pattern::OneUse() const {
  return If([](const Instruction& instruction) { return instruction.users().size() == 1 && !instruction.IsRoot(); });
}

Pattern Pattern::Over(std::vector<Pattern> operands) const {
  auto node = std::make_shared<Node>(*node_);
  node->operands = std::move(operands);
  return Pattern(std::shared_ptr<const Node>(std::move(node)));
}

bool Pattern::MatchOperands(const Instruction& instruction, Bindings& bindings) const {
  const std::vector<Pattern>& patterns = node_->operands;
  if (patterns.empty()) return true;
  if (patterns.size() != instruction.operands().size()) return false;
  const Bindings before = bindings;
  bool all = true;
  for (size_t i = 0; all && i < patterns.size(); ++i) all = patterns[i].Matches(instruction.operands()[i], bindings);
  if (all) return true;
  bindings = before;
  if (patterns.size() != 2 || !instruction.Has(hlo::kCommutative)) return false;
  if (patterns[0].Matches(instruction.operand(1), bindings) && patterns[1].Matches(instruction.operand(0), bindings)) {
    return true;
  }
  bindings = before;
  return false;
}

bool Pattern::Matches(Instruction* instruction, Bindings& bindings) const {
  if (node_->opcode && !instruction->Is(*node_->opcode)) return false;
  for (const Predicate& predicate : node_->predicates) {
    if (!predicate(*instruction)) return false;
  }
  if (!MatchOperands(*instruction, bindings)) return false;
  if (node_->slot) {
    Instruction*& bound = bindings[static_cast<size_t>(*node_->slot)];
    if (bound != nullptr && bound != instruction) return false;
    bound = instruction;
  }
  return true;
}

std::optional<Literal> SplatOf(const Instruction& instruction) {
  if (instruction.Is(Opcode::kBroadcast)) return SplatOf(*instruction.operand(0));
  if (!instruction.IsConstant() || !instruction.shape().IsArray()) return std::nullopt;
  const Literal& literal = instruction.literal();
  if (instruction.As<hlo::attr::Constant>().elided || literal.ElementCount() == 0 || !literal.IsAllSame()) {
    return std::nullopt;
  }
  const hlo::Shape scalar = hlo::Shape::Scalar(literal.element_type());
  auto storage = std::make_shared<Literal>(literal);
  return Literal::View(scalar, storage->data(), storage);
}

namespace pattern {

namespace {

Pattern SplatThat(std::function<bool(const Literal&)> holds) {
  return Pattern([holds = std::move(holds)](const Instruction& instruction) {
    const std::optional<Literal> value = SplatOf(instruction);
    return value && holds(*value);
  });
}

// Integers are compared as integers: a double does not hold every s64.
bool IsInt(const Literal& literal) {
  return hlo::IsInteger(literal.element_type()) || literal.element_type() == hlo::ElementType::kPred;
}

bool Equals(const Literal& literal, double value) {
  if (IsInt(literal)) return literal.GetInt(0) == static_cast<int64_t>(value);
  if (!hlo::IsFloating(literal.element_type())) return false;
  const double held = literal.GetDouble(0);
  return held == value && std::signbit(held) == std::signbit(value);
}

// The extreme of the literal's type, as it would be stored.
bool IsExtreme(const Literal& literal, bool highest) {
  const hlo::ElementType type = literal.element_type();
  if (hlo::IsFloating(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return literal.GetDouble(0) == (highest ? infinity : -infinity);
  }
  if (!IsInt(literal)) return false;
  if (type == hlo::ElementType::kPred) return literal.GetInt(0) == (highest ? 1 : 0);
  const int bits = hlo::BitsOf(type);
  if (hlo::IsUnsigned(type)) {
    const uint64_t most = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    return static_cast<uint64_t>(literal.GetInt(0)) == (highest ? most : 0);
  }
  const auto most = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  return literal.GetInt(0) == (highest ? most : -most - 1);
}

}  // namespace

Pattern Any() {
  return Pattern([](const Instruction&) { return true; });
}
Pattern Constant() {
  return Pattern(Opcode::kConstant).If([](const Instruction& c) { return !c.As<hlo::attr::Constant>().elided; });
}
Pattern Splat() {
  return SplatThat([](const Literal&) { return true; });
}
Pattern Zero() { return Value(0.0); }
Pattern One() { return Value(1.0); }
Pattern NegativeZero() {
  return SplatThat([](const Literal& value) { return hlo::IsFloating(value.element_type()) && Equals(value, -0.0); });
}
Pattern Value(double value) {
  return SplatThat([value](const Literal& literal) { return Equals(literal, value); });
}
Pattern Lowest() {
  return SplatThat([](const Literal& literal) { return IsExtreme(literal, false); });
}
Pattern Highest() {
  return SplatThat([](const Literal& literal) { return IsExtreme(literal, true); });
}
Pattern Unary(Pattern operand) {
  return Pattern([](const Instruction& op) {
           return op.Has(hlo::kElementwise) && op.operand_count() == 1 && !op.Is(Opcode::kCopy);
         })
      .Over({std::move(operand)});
}
Pattern Binary(Pattern lhs, Pattern rhs) {
  return Pattern([](const Instruction& op) { return op.Has(hlo::kElementwise) && op.operand_count() == 2; })
      .Over({std::move(lhs), std::move(rhs)});
}

}  // namespace pattern

}  // namespace hlorun::passes
