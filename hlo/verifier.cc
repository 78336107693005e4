#include "hlo/verifier.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "hlo/collective_checks.h"
#include "hlo/error.h"
#include "hlo/shape_inference.h"

namespace hlorun::hlo {
namespace {

// The alternative of Attributes that each opcode carries.
size_t PayloadIndexOf(Opcode opcode) {
  static const std::array kIndices = {
#define HLO_PAYLOAD_INDEX(enumerator, name, arity, traits, payload) Attributes(attr::payload{}).index(),
      HLO_OPCODES(HLO_PAYLOAD_INDEX)
#undef HLO_PAYLOAD_INDEX
  };
  return kIndices[static_cast<size_t>(opcode)];
}

bool ContainsIndex(const Shape& shape, const ShapeIndex& index) {
  const Shape* at = &shape;
  for (int64_t i : index) {
    if (!at->IsTuple() || i < 0 || i >= static_cast<int64_t>(at->tuple_shapes().size())) return false;
    at = &at->tuple_shape(i);
  }
  return true;
}

std::string IndexText(const ShapeIndex& index) { return fmt::format("{{{}}}", fmt::join(index, ",")); }

Shape WithoutDynamicDimensions(const Shape& shape) {
  Shape result = shape;
  for (int64_t i = 0; i < shape.rank(); ++i) result.set_dynamic_dimension(i, false);
  for (Shape& element : result.mutable_tuple_shapes()) element = WithoutDynamicDimensions(element);
  return result;
}

// --- one instruction ---

void CheckPlace(const Instruction& instruction, const Computation& computation) {
  if (instruction.parent() != &computation) Invalid("it lies in another computation");
  for (const Instruction* operand : instruction.operands()) {
    if (operand->parent() != &computation) Invalid("its operand %{} lies in another computation", operand->name());
    const auto& users = operand->users();
    if (std::find(users.begin(), users.end(), &instruction) == users.end()) {
      Invalid("its operand %{} does not list it as a user", operand->name());
    }
  }
  for (const Instruction* predecessor : instruction.control_predecessors()) {
    if (predecessor->parent() != &computation) {
      Invalid("its control predecessor %{} lies in another computation", predecessor->name());
    }
  }
  for (const Computation* callee : instruction.called_computations()) {
    if (callee == nullptr || callee->module() != computation.module())
      Invalid("it calls a computation of another module");
    if (callee == computation.module()->entry()) Invalid("it calls the entry computation {}", callee->name());
  }
}

// XLA does not hold a stated shape to its operands' dynamic dimensions, and neither does this.
void CheckShape(const Instruction& instruction) {
  const Shape inferred = InferShape(instruction);
  if (instruction.shape().SameAs(inferred)) return;
  if (WithoutDynamicDimensions(instruction.shape()).SameAs(WithoutDynamicDimensions(inferred))) return;
  Invalid("its shape is {}, but its operands and attributes give {}", instruction.shape().ToString(false),
          inferred.ToString(false));
}

void CheckSharding(const Sharding& sharding, const Shape& shape) {
  if (sharding.kind == Sharding::Kind::kTuple) {
    const auto leaves = shape.IsTuple() ? std::max<int64_t>(LeafCount(shape), 1) : 1;
    const auto elements = static_cast<int64_t>(sharding.elements.size());
    const bool empty = shape.IsTuple() && shape.tuple_shapes().empty() && elements <= 1;
    if (elements != leaves && !empty)
      Invalid("its sharding has {} elements, but its shape {} leaves", elements, leaves);
    size_t i = 0;
    ForEachLeaf(shape, [&](const ShapeIndex&, const Shape& leaf) { CheckSharding(sharding.elements.at(i++), leaf); });
    return;
  }
  if (sharding.kind != Sharding::Kind::kTiled || !shape.IsArray()) return;
  const auto tiled = static_cast<int64_t>(sharding.tile_dimensions.size()) -
                     (sharding.replicate_on_last_tile_dim ? 1 : 0) -
                     static_cast<int64_t>(sharding.last_tile_dims.size());
  if (tiled != shape.rank()) Invalid("its sharding tiles {} dimensions, but its shape has {}", tiled, shape.rank());
}

// Which start each done belongs to, where a done is an opcode of its own.
void CheckAsyncPair(const Instruction& instruction) {
  static constexpr std::pair<Opcode, Opcode> kPairs[] = {
      {Opcode::kAllGatherDone, Opcode::kAllGatherStart},
      {Opcode::kAllReduceDone, Opcode::kAllReduceStart},
      {Opcode::kCollectivePermuteDone, Opcode::kCollectivePermuteStart},
      {Opcode::kCopyDone, Opcode::kCopyStart}};
  for (const auto& [done, start] : kPairs) {
    if (instruction.Is(done) && !instruction.operand(0)->Is(start)) {
      Invalid("its operand must be {}, not {}", OpcodeName(start), OpcodeName(instruction.operand(0)->opcode()));
    }
    const bool is_start = instruction.Is(start);
    if (is_start && (instruction.users().size() != 1 || !instruction.users()[0]->Is(done))) {
      Invalid("it must have one user, a {}", OpcodeName(done));
    }
  }
  if (instruction.Is(Opcode::kAsyncDone) || instruction.Is(Opcode::kAsyncUpdate)) {
    const Instruction& previous = *instruction.operand(0);
    if (!previous.Is(Opcode::kAsyncStart) && !previous.Is(Opcode::kAsyncUpdate)) {
      Invalid("its operand must be async-start or async-update, not {}", OpcodeName(previous.opcode()));
    }
    if (previous.called_computations() != instruction.called_computations()) {
      Invalid("it calls another computation than %{}", previous.name());
    }
  }
}

void CheckCallAliases(const Instruction& instruction, const attr::CustomCall& call) {
  std::set<ShapeIndex> outputs;
  for (const auto& [output, input] : call.output_operand_aliasing) {
    const auto& [operand, index] = input;
    if (operand < 0 || operand >= instruction.operand_count()) {
      Invalid("output_to_operand_aliasing names operand {} of {}", operand, instruction.operand_count());
    }
    const Shape& from = instruction.operand(operand)->shape();
    if (!ContainsIndex(instruction.shape(), output) || !ContainsIndex(from, index)) {
      Invalid("output_to_operand_aliasing names output {} and element {} of operand {}, which there are not",
              IndexText(output), IndexText(index), operand);
    }
    const Shape& result = SubshapeAt(instruction.shape(), output);
    if (!result.IsArray() || !result.SameAs(SubshapeAt(from, index))) {
      Invalid("output_to_operand_aliasing puts output {} ({}) into {}", IndexText(output), result.ToString(false),
              SubshapeAt(from, index).ToString(false));
    }
    if (!outputs.insert(output).second) Invalid("output_to_operand_aliasing names output {} twice", IndexText(output));
  }
}

void CheckOwnRules(const Instruction& instruction) {
  if (instruction.Is(Opcode::kConstant)) {
    const Shape& value = instruction.literal().shape();
    if (!value.SameAs(instruction.shape())) {
      Invalid("its value has shape {}, but it is declared as {}", value.ToString(false),
              instruction.shape().ToString(false));
    }
  }
  if (instruction.Is(Opcode::kParameter)) {
    const int64_t number = instruction.parameter_number();
    const Computation& computation = *instruction.parent();
    if (number < 0 || number >= computation.parameter_count() || computation.parameter(number) != &instruction) {
      Invalid("parameter number {} is taken by another instruction or out of range", number);
    }
  }
  if (instruction.Is(Opcode::kCustomCall)) {
    const auto& call = instruction.As<attr::CustomCall>();
    if (call.layout_constrained && static_cast<int64_t>(call.operand_layouts.size()) != instruction.operand_count()) {
      Invalid("it has {} operands, but operand_layout_constraints for {}", instruction.operand_count(),
              call.operand_layouts.size());
    }
    CheckCallAliases(instruction, call);
  }
}

void CheckInstruction(const Instruction& instruction, const Computation& computation) {
  CheckPlace(instruction, computation);
  if (instruction.attributes().index() != PayloadIndexOf(instruction.opcode())) {
    Invalid("its attributes are those of another opcode");
  }
  CheckOwnRules(instruction);
  CheckAsyncPair(instruction);
  CheckShape(instruction);
  CheckCollective(instruction, *computation.module());
  if (instruction.sharding) CheckSharding(*instruction.sharding, instruction.shape());
}

// --- computations ---

void CheckSchedule(const Computation& computation) {
  std::unordered_set<const Instruction*> before;
  for (const auto& instruction : computation.instructions()) {
    for (const Instruction* operand : instruction->operands()) {
      if (!before.contains(operand)) {
        Invalid("computation {}: the module is scheduled, but %{} comes before its operand %{}", computation.name(),
                instruction->name(), operand->name());
      }
    }
    before.insert(instruction.get());
  }
}

void CheckComputation(const Computation& computation, const ModuleSource& file) {
  const Instruction* root = computation.root();
  if (root == nullptr) Invalid("computation {}: it has no root", computation.name());
  if (root->parent() != &computation) Invalid("computation {}: its root lies in another one", computation.name());
  for (int64_t i = 0; i < computation.parameter_count(); ++i) {
    if (computation.parameter(i) == nullptr) Invalid("computation {}: parameter {} is missing", computation.name(), i);
  }
  for (const auto& instruction : computation.instructions()) {
    try {
      CheckInstruction(*instruction, computation);
    } catch (const Error& error) {
      const std::string source = computation.module()->SourceOf(*instruction);
      throw Error(error.code(),
                  fmt::format("computation {}: {}: {}{}", computation.name(), instruction->ToString(), error.message(),
                              source.empty() ? "" : fmt::format(" (from {})", source)),
                  file.PlaceOf(instruction.get()));
    }
  }
  try {
    computation.PostOrder();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("computation {}: {}", computation.name(), error.message()),
                file.PlaceOf(root));
  }
}

// Computations that compute one element (reducers, comparators) or lie inside of a kernel (fusions) cannot communicate.
void CheckEmbedded(const Module& module) {
  std::unordered_set<const Computation*> checked;
  for (const auto& computation : module.computations()) {
    for (const auto& caller : computation->instructions()) {
      const bool runs_as_program = caller->Has(kControl) || caller->Has(kAsync) || caller->Is(Opcode::kCustomCall);
      if (runs_as_program) continue;
      for (const Computation* callee : caller->called_computations()) {
        if (!checked.insert(callee).second) continue;
        for (const auto& inner : callee->instructions()) {
          if (!inner->Has(kCollective) && !inner->Is(Opcode::kInfeed) && !inner->Is(Opcode::kOutfeed)) continue;
          Invalid("computation {}: %{} communicates, which a computation called by {} (%{}) cannot", callee->name(),
                  inner->name(), OpcodeName(caller->opcode()), caller->name());
        }
      }
    }
  }
}

// Computations that call each other deeper than this would need more stack than a thread has. Throws on recursion, too.
void CheckNesting(const Module& module) {
  constexpr int kDeepest = 1000;
  std::unordered_map<const Computation*, int> depths;
  for (const Computation* computation : module.PostOrder()) {
    int depth = 0;
    for (const auto& instruction : computation->instructions()) {
      for (const Computation* callee : instruction->called_computations()) depth = std::max(depth, depths[callee] + 1);
    }
    depths[computation] = depth;
    if (depth > kDeepest) Invalid("computation {}: calls are nested more than {} deep", computation->name(), kDeepest);
  }
}

// --- the header ---

void CheckEntryLayout(const Module& module) {
  if (!module.entry_layout) return;
  const ProgramShape& declared = *module.entry_layout;
  const ProgramShape actual = module.entry()->program_shape();
  if (declared.parameters.size() != actual.parameters.size()) {
    Invalid("entry_computation_layout has {} parameters, but the entry {} has {}", declared.parameters.size(),
            module.entry()->name(), actual.parameters.size());
  }
  for (size_t i = 0; i < actual.parameters.size(); ++i) {
    if (declared.parameters[i].SameAs(actual.parameters[i])) continue;
    Invalid("entry_computation_layout gives parameter {} the shape {}, but %{} is {}", i,
            declared.parameters[i].ToString(false), actual.parameter_names[i], actual.parameters[i].ToString(false));
  }
  if (!declared.result.SameAs(actual.result)) {
    Invalid("entry_computation_layout gives the result the shape {}, but %{} is {}", declared.result.ToString(false),
            module.entry()->root()->name(), actual.result.ToString(false));
  }
}

void CheckParameterIndex(const Module& module, std::string_view what, int64_t parameter, const ShapeIndex& index) {
  const Computation& entry = *module.entry();
  const bool exists = parameter >= 0 && parameter < entry.parameter_count();
  if (!exists) Invalid("{} names parameter {}, but the entry has {}", what, parameter, entry.parameter_count());
  const Shape& shape = entry.parameter(parameter)->shape();
  if (!ContainsIndex(shape, index)) {
    Invalid("{} names element {} of parameter {}, whose shape is {}", what, IndexText(index), parameter,
            shape.ToString(false));
  }
}

void CheckAliases(const Module& module) {
  const Shape& result = module.entry()->root()->shape();
  std::set<ShapeIndex> outputs;
  std::set<std::pair<int64_t, ShapeIndex>> parameters;
  for (const AliasEntry& alias : module.input_output_alias) {
    CheckParameterIndex(module, "input_output_alias", alias.parameter, alias.parameter_index);
    if (!ContainsIndex(result, alias.output)) {
      Invalid("input_output_alias names output {}, but the result's shape is {}", IndexText(alias.output),
              result.ToString(false));
    }
    if (!outputs.insert(alias.output).second)
      Invalid("input_output_alias names output {} twice", IndexText(alias.output));
    if (!parameters.insert({alias.parameter, alias.parameter_index}).second) {
      Invalid("input_output_alias names element {} of parameter {} twice", IndexText(alias.parameter_index),
              alias.parameter);
    }
    const Shape& output = SubshapeAt(result, alias.output);
    const Shape& input = SubshapeAt(module.entry()->parameter(alias.parameter)->shape(), alias.parameter_index);
    if (output.ByteSize() != input.ByteSize()) {
      Invalid("input_output_alias puts output {} ({}) into parameter {} ({}): they differ in size",
              IndexText(alias.output), output.ToString(false), alias.parameter, input.ToString(false));
    }
  }
  for (const DonorEntry& donor : module.buffer_donors) {
    CheckParameterIndex(module, "buffer_donor", donor.parameter, donor.parameter_index);
    if (!parameters.insert({donor.parameter, donor.parameter_index}).second) {
      Invalid("buffer_donor names element {} of parameter {}, which is donated or aliased already",
              IndexText(donor.parameter_index), donor.parameter);
    }
  }
}

}  // namespace

void VerifyModule(const Module& module, const ModuleSource& source) {
  try {
    if (module.entry() == nullptr) Invalid("it has no entry computation");
    if (module.replica_count < 1 || module.num_partitions < 1) {
      Invalid("replica_count={} and num_partitions={} must be positive", module.replica_count, module.num_partitions);
    }
    if (module.replica_count > INT32_MAX / module.num_partitions) {
      Invalid("replica_count={} x num_partitions={} are more devices than there can be", module.replica_count,
              module.num_partitions);
    }
    for (const auto& computation : module.computations()) CheckComputation(*computation, source);
    CheckNesting(module);
    CheckEmbedded(module);
    if (module.is_scheduled) {
      for (const auto& computation : module.computations()) CheckSchedule(*computation);
    }
    CheckEntryLayout(module);
    CheckAliases(module);
  } catch (const Error& error) {
    SourceLocation place = error.location();
    place.file = source.file;
    throw Error(error.code(), fmt::format("module {}: {}", module.name(), error.message()), std::move(place));
  }
}

}  // namespace hlorun::hlo
