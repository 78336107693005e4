// Composable matchers over instructions, for rewrite rules.
//
// A pattern is a tree: Transpose(Transpose(X)) matches a transpose of a transpose of anything and binds the latter to
// slot X. A slot that occurs twice must bind the same instruction twice; a commutative op matches in either order.
// Patterns are immutable values, cheap to copy; matching allocates nothing.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "hlo/instruction.h"
#include "hlo/literal.h"

namespace hlorun::passes {

// What a pattern binds: X, Y, Z for values, A, B for ops inside the pattern, C, D for constants.
enum class Slot : uint8_t { kX, kY, kZ, kA, kB, kC, kD, kCount };
using Bindings = std::array<hlo::Instruction*, static_cast<size_t>(Slot::kCount)>;

class Pattern {
 public:
  using Predicate = std::function<bool(const hlo::Instruction&)>;

  // Anything, bound to a slot.
  Pattern(Slot slot);  // NOLINT: slots read as patterns in rules
  // An instruction of this opcode with these operands; no operands given: any operands.
  explicit Pattern(hlo::Opcode opcode, std::vector<Pattern> operands = {});
  // Any opcode that satisfies the predicate.
  explicit Pattern(Predicate predicate);

  Pattern As(Slot slot) const;
  Pattern If(Predicate predicate) const;
  Pattern OneUse() const;
  Pattern Over(std::vector<Pattern> operands) const;  // with these operands

  bool Matches(hlo::Instruction* instruction, Bindings& bindings) const;
  std::optional<hlo::Opcode> opcode() const { return node_->opcode; }

 private:
  struct Node {
    std::optional<hlo::Opcode> opcode;
    std::vector<Pattern> operands;
    std::vector<Predicate> predicates;
    std::optional<Slot> slot;
  };
  explicit Pattern(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  bool MatchOperands(const hlo::Instruction& instruction, Bindings& bindings) const;

  std::shared_ptr<const Node> node_;
};

// The scalar that every element of `instruction` equals, when it is a constant of equal elements or a broadcast of one.
std::optional<hlo::Literal> SplatOf(const hlo::Instruction& instruction);

namespace pattern {

inline constexpr Slot X = Slot::kX, Y = Slot::kY, Z = Slot::kZ, A = Slot::kA, B = Slot::kB, C = Slot::kC, D = Slot::kD;

template <typename... P>
Pattern Op(hlo::Opcode opcode, P... operands) {
  return Pattern(opcode, std::vector<Pattern>{Pattern(operands)...});
}
Pattern Any();
// Constants: a literal, or one value in every element.
Pattern Constant();
Pattern Splat();
Pattern Zero();          // +0 of floating types, 0 of integers, false
Pattern NegativeZero();  // -0, floating types only
Pattern One();           // 1, and true
Pattern Value(double value);
Pattern Lowest();   // -inf, or the least integer; false
Pattern Highest();  // +inf, or the largest integer; true
// An elementwise op of one operand or of two.
Pattern Unary(Pattern operand);
Pattern Binary(Pattern lhs, Pattern rhs);

}  // namespace pattern

}  // namespace hlorun::passes
