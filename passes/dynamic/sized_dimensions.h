// Which dimensions of a lowered module's values vary: those that share a loop with a parameter's dimension of varying
// size.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "passes/dynamic/signature.h"

namespace hlorun::passes {

class SizedDimensions {
 public:
  // Index into the signature's parameters, kFixed for a dimension that does not vary.
  static constexpr int kFixed = -1;

  SizedDimensions(const hlo::Module& module, const SizeSignature& signature);

  // The size parameter that dimension `d` of leaf `leaf` follows. Any instruction that runs, inside of fusions too.
  int OriginOf(const hlo::Instruction* instruction, int64_t leaf, int64_t d) const;

 private:
  using Dimensions = std::vector<int>;  // of an array, an origin each
  using Leaves = std::vector<Dimensions>;

  Leaves Walk(const hlo::Computation& computation, std::span<const Leaves> arguments);
  Leaves Transfer(const hlo::Instruction& op);
  Leaves ThroughFactors(const hlo::Instruction& op) const;
  const Leaves& Of(const hlo::Instruction* instruction) const { return leaves_.at(instruction); }

  std::unordered_map<const hlo::Instruction*, Leaves> leaves_;
};

}  // namespace hlorun::passes
