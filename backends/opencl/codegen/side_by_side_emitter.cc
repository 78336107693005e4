// Kernels side by side: each part's own launches, the first ones of all parts as one, then the second ones.
#include <algorithm>
#include <unordered_map>

#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/joined_launch.h"
#include "hlo/computation.h"
#include "hlo/error.h"
#include "passes/fusion/side_by_side.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;

// The fusion's operands and results, as its parts name them.
class Parts {
 public:
  explicit Parts(const EmitRequest& request)
      : request_(request), parts_(passes::PartsOf(request.instruction)), shared_(ArgumentsInPlace()) {
    for (int64_t leaf = 0; leaf < hlo::LeafCount(request.instruction.shape()); ++leaf) {
      const auto [part, own] = passes::PartThatMakes(request.instruction, leaf);
      std::vector<int64_t>& leaves = leaves_[part];
      leaves.resize(std::max(leaves.size(), static_cast<size_t>(own) + 1), -1);
      leaves[static_cast<size_t>(own)] = leaf;
    }
  }

  const std::vector<const Instruction*>& list() const { return parts_; }

  Launches Emit(const Instruction& part) const {
    Launches launches = EmitInstruction(part, AliasesOf(part), request_.context);
    for (EmittedLaunch& launch : launches) {
      for (ArgumentRef& argument : launch.arguments) argument = Outside(part, argument);
    }
    return launches;
  }

 private:
  // By operand: the result that shares its place; -1 for none.
  std::vector<int64_t> ArgumentsInPlace() const {
    std::vector<int64_t> shared(static_cast<size_t>(request_.instruction.operand_count()), -1);
    const auto leaves = static_cast<size_t>(hlo::LeafCount(request_.instruction.shape()));
    for (size_t leaf = 0; leaf < std::min(leaves, request_.aliases.size()); ++leaf) {
      if (request_.aliases[leaf] >= 0) shared[static_cast<size_t>(request_.aliases[leaf])] = static_cast<int64_t>(leaf);
    }
    return shared;
  }

  AliasPattern AliasesOf(const Instruction& part) const {
    const std::vector<int64_t>& leaves = leaves_.at(&part);
    AliasPattern aliases(leaves.size(), -1);
    for (size_t i = 0; i < request_.aliases.size(); ++i) {
      if (request_.aliases[i] < 0) continue;
      const int64_t operand = part.OperandIndex(request_.instruction.called()->parameter(request_.aliases[i]));
      const auto own = std::find(leaves.begin(), leaves.end(), static_cast<int64_t>(i));
      if (operand < 0) continue;
      if (own != leaves.end())
        aliases[static_cast<size_t>(own - leaves.begin())] = operand;
      else
        aliases.push_back(operand);
    }
    return aliases;
  }

  ArgumentRef Outside(const Instruction& part, ArgumentRef argument) const {
    HLORUN_CHECK(argument.kind != ArgumentRef::Kind::kScratch);  // KernelModel::RunsBesideOthers
    if (argument.kind == ArgumentRef::Kind::kResult)
      argument.number = leaves_.at(&part)[static_cast<size_t>(argument.number)];
    if (argument.kind != ArgumentRef::Kind::kOperand) return argument;
    argument.number = part.operand(argument.number)->parameter_number();
    // What is updated in place is one argument.
    if (const int64_t leaf = shared_[static_cast<size_t>(argument.number)]; leaf >= 0) {
      argument.kind = ArgumentRef::Kind::kResult;
      argument.number = leaf;
    }
    return argument;
  }

  const EmitRequest& request_;
  const std::vector<const Instruction*> parts_;
  const std::vector<int64_t> shared_;
  std::unordered_map<const Instruction*, std::vector<int64_t>> leaves_;  // of a part: which of the fusion's they are
};

}  // namespace

Launches EmitSideBySide(const EmitRequest& request) {
  const Parts parts(request);
  std::vector<Launches> turns;
  for (const Instruction* part : parts.list()) {
    Launches launches = parts.Emit(*part);
    turns.resize(std::max(turns.size(), launches.size()));
    for (size_t i = 0; i < launches.size(); ++i) turns[i].push_back(std::move(launches[i]));
  }
  Launches all;
  for (const Launches& turn : turns) {
    for (EmittedLaunch& launch : JoinLaunches(turn, request.context.device)) all.push_back(std::move(launch));
  }
  return all;
}

}  // namespace hlorun::opencl
