#include "tests/passes/spmd/merged_cases.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;

// Copies the case to the end of `entry`; its result there.
Instruction* Append(const hlo::Module& module, Computation* entry) {
  hlo::ComputationMap copies;
  for (const Computation* computation : module.PostOrder()) {
    if (computation == module.entry()) continue;
    Computation* copy = entry->module()->AddComputation(computation->name());
    hlo::InstructionMap map;
    copy->set_root(computation->CloneInto(copy, map, copies));
    copies[computation] = copy;
  }
  hlo::InstructionMap map;
  for (const Instruction* parameter : module.entry()->parameters()) {
    Instruction* copy = entry->AddParameter(entry->parameter_count(), parameter->shape(), parameter->name());
    copy->sharding = parameter->sharding;
    map[parameter] = copy;
  }
  return module.entry()->CloneInto(entry, map, copies);
}

}  // namespace

std::unique_ptr<hlo::Module> Merge(const std::vector<ShardedCase>& cases) {
  auto merged = std::make_unique<hlo::Module>("merged");
  Computation* entry = merged->AddComputation("main");
  merged->set_entry(entry);
  std::vector<Instruction*> results;
  std::vector<hlo::Shape> shapes;
  hlo::Sharding sharding;
  sharding.kind = hlo::Sharding::Kind::kTuple;
  for (const ShardedCase& one : cases) {
    Instruction* result = Append(*one.module, entry);
    results.push_back(result);
    shapes.push_back(result->shape());
    const bool is_tuple = result->sharding && result->sharding->kind == hlo::Sharding::Kind::kTuple;
    std::vector<hlo::Sharding> leaves(static_cast<size_t>(hlo::LeafCount(result->shape())));
    if (is_tuple)
      leaves = result->sharding->elements;
    else if (result->sharding)
      std::fill(leaves.begin(), leaves.end(), *result->sharding);
    sharding.elements.insert(sharding.elements.end(), leaves.begin(), leaves.end());
  }
  Instruction* root = entry->Add(hlo::Opcode::kTuple, hlo::Shape::Tuple(shapes), results);
  root->sharding = sharding;
  entry->set_root(root);
  return merged;
}

}  // namespace hlorun::passes
