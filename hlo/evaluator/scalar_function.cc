#include "hlo/evaluator/scalar_function.h"

#include <cstring>

#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"

namespace hlorun::hlo {
namespace {

constexpr int64_t kLanes = 512;

// Ops that give their operand's bytes when everything is a scalar.
bool IsIdentityOnScalars(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kCopy:
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kBitcast:
    case Opcode::kTranspose:
    case Opcode::kOptimizationBarrier:
      return instruction.shape().IsScalar() && instruction.operand(0)->shape().IsScalar();
    case Opcode::kBitcastConvert:
      return !IsFloating(instruction.operand(0)->shape().element_type()) &&
             !IsFloating(instruction.shape().element_type()) && instruction.shape().IsScalar() &&
             instruction.operand(0)->shape().IsScalar() &&
             BitsOf(instruction.shape().element_type()) == BitsOf(instruction.operand(0)->shape().element_type());
    default: return false;
  }
}

}  // namespace

// Registers hold one value a lane. Inputs are read in place; so an operand is either a register or an input.
struct ScalarFunction::LaneProgram {
  struct Operand {
    bool is_input = false;
    size_t index = 0;
  };
  struct Step {
    LaneOp op;
    int operand_count = 0;
    Operand operands[3];
    size_t result = 0;
  };
  std::vector<Step> steps;
  std::vector<std::unique_ptr<std::byte[]>> registers;
  std::vector<Operand> results;
  std::vector<int> result_bytes;
  std::vector<int> input_bytes;
  // An input that is returned passes through a register, for another result may overwrite it.
  struct Move {
    Operand from;
    size_t to = 0;
    int bytes = 0;
  };
  std::vector<Move> returned_inputs;

  bool widened = false;

  ElementType Held(ElementType type) const { return widened && IsNarrowFloat(type) ? ElementType::kF32 : type; }
  size_t NewRegister(ElementType declared) {
    const ElementType type = Held(declared);
    registers.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(kLanes * BytesOf(type))));
    return registers.size() - 1;
  }

  // Leaves of each instruction's value, as operands.
  using Values = std::unordered_map<const Instruction*, std::vector<Operand>>;
  // False when some instruction is not expressible.
  bool Append(const Computation& computation, const std::vector<std::vector<Operand>>& arguments,
              std::vector<Operand>& root);
  bool AppendInstruction(const Instruction& instruction, Values& values);
  void SplatConstant(const Instruction& instruction, Values& values);
};

void ScalarFunction::LaneProgram::SplatConstant(const Instruction& instruction, Values& values) {
  const Literal literal = ConvertedTo(instruction.literal(), Held(instruction.literal().element_type()));
  const size_t slot = NewRegister(literal.element_type());
  const auto bytes = static_cast<size_t>(BytesOf(literal.element_type()));
  for (size_t i = 0; i < kLanes; ++i) std::memcpy(registers[slot].get() + i * bytes, literal.data(), bytes);
  values[&instruction] = {{false, slot}};
}

bool ScalarFunction::LaneProgram::AppendInstruction(const Instruction& instruction, Values& values) {
  if (instruction.Is(Opcode::kTuple)) {
    std::vector<Operand> leaves;
    for (const Instruction* operand : instruction.operands()) {
      if (!operand->shape().IsScalar()) return false;
      leaves.push_back(values.at(operand)[0]);
    }
    values[&instruction] = leaves;
    return true;
  }
  if (instruction.Is(Opcode::kGetTupleElement)) {
    values[&instruction] = {values.at(instruction.operand(0))[static_cast<size_t>(instruction.tuple_index())]};
    return instruction.shape().IsScalar();
  }
  if (instruction.Is(Opcode::kCall) || instruction.Is(Opcode::kFusion)) {
    std::vector<std::vector<Operand>> arguments;
    for (const Instruction* operand : instruction.operands()) arguments.push_back(values.at(operand));
    return Append(*instruction.called(), arguments, values[&instruction]);
  }
  if (!instruction.shape().IsScalar()) return false;
  if (instruction.Is(Opcode::kConstant)) {
    SplatConstant(instruction, values);
    return true;
  }
  if (IsIdentityOnScalars(instruction)) {
    values[&instruction] = values.at(instruction.operand(0));
    return true;
  }
  std::optional<LaneOp> op = LaneOp::For(instruction, widened);
  if (!op.has_value()) return false;
  Step step{*op, static_cast<int>(instruction.operand_count()), {}, NewRegister(instruction.shape().element_type())};
  for (int i = 0; i < step.operand_count; ++i) step.operands[i] = values.at(instruction.operand(i))[0];
  steps.push_back(step);
  values[&instruction] = {{false, step.result}};
  return true;
}

bool ScalarFunction::LaneProgram::Append(const Computation& computation,
                                         const std::vector<std::vector<Operand>>& arguments,
                                         std::vector<Operand>& root) {
  Values values;
  for (const Instruction* instruction : computation.PostOrder()) {
    if (instruction->Is(Opcode::kParameter)) {
      values[instruction] = arguments[static_cast<size_t>(instruction->parameter_number())];
    } else if (!AppendInstruction(*instruction, values)) {
      return false;
    }
  }
  root = values.at(computation.root());
  return true;
}

ScalarFunction::ScalarFunction(Evaluation& evaluation, const Computation& computation, bool widened)
    : evaluation_(evaluation), computation_(computation) {
  auto program = std::make_unique<LaneProgram>();
  program->widened = widened;
  std::vector<std::vector<LaneProgram::Operand>> arguments;
  for (const Instruction* parameter : computation.parameters()) {
    if (!parameter->shape().IsScalar()) return;
    arguments.push_back({{true, arguments.size()}});
    program->input_bytes.push_back(BytesOf(program->Held(parameter->shape().element_type())));
  }
  if (!program->Append(computation, arguments, program->results)) return;
  ForEachLeaf(computation.root()->shape(), [&](const ShapeIndex&, const Shape& leaf) {
    LaneProgram::Operand& result = program->results[program->result_bytes.size()];
    program->result_bytes.push_back(BytesOf(program->Held(leaf.element_type())));
    if (!result.is_input) return;
    const LaneProgram::Operand kept{false, program->NewRegister(leaf.element_type())};
    program->returned_inputs.push_back({result, kept.index, program->result_bytes.back()});
    result = kept;
  });
  program_ = std::move(program);
}

ScalarFunction::~ScalarFunction() = default;

void ScalarFunction::Run(std::span<const void* const> inputs, std::span<void* const> results, int64_t count) {
  if (program_ == nullptr) return RunOneByOne(inputs, results, count);
  const LaneProgram& program = *program_;
  evaluation_.Charge(count);
  for (int64_t begin = 0; begin < count; begin += kLanes) {
    const int64_t lanes = std::min(kLanes, count - begin);
    auto address = [&](LaneProgram::Operand operand) -> const void* {
      if (!operand.is_input) return program.registers[operand.index].get();
      return static_cast<const std::byte*>(inputs[operand.index]) + begin * program.input_bytes[operand.index];
    };
    for (const LaneProgram::Step& step : program.steps) {
      const void* operands[3];
      for (int i = 0; i < step.operand_count; ++i) operands[i] = address(step.operands[i]);
      step.op.Run(operands, program.registers[step.result].get(), lanes);
    }
    for (const LaneProgram::Move& move : program.returned_inputs) {
      std::memcpy(program.registers[move.to].get(), address(move.from), static_cast<size_t>(lanes * move.bytes));
    }
    for (size_t j = 0; j < program.results.size(); ++j) {
      std::memcpy(static_cast<std::byte*>(results[j]) + begin * program.result_bytes[j],
                  program.registers[program.results[j].index].get(),
                  static_cast<size_t>(lanes * program.result_bytes[j]));
    }
  }
}

void ScalarFunction::RunOneByOne(std::span<const void* const> inputs, std::span<void* const> results, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Literal> arguments;
    for (size_t k = 0; k < inputs.size(); ++k) {
      Literal argument(computation_.parameter(static_cast<int64_t>(k))->shape());
      const auto bytes = argument.ByteSize();
      std::memcpy(argument.mutable_data(), static_cast<const std::byte*>(inputs[k]) + i * bytes,
                  static_cast<size_t>(bytes));
      arguments.push_back(std::move(argument));
    }
    const Literal result = evaluation_.Run(computation_, std::move(arguments));
    for (size_t j = 0; j < results.size(); ++j) {
      const Literal& leaf = result.shape().IsTuple() ? result.elements()[j] : result;
      std::memcpy(static_cast<std::byte*>(results[j]) + i * leaf.ByteSize(), leaf.data(),
                  static_cast<size_t>(leaf.ByteSize()));
    }
  }
}

std::optional<Opcode> SingleOpcode(const Computation& computation) {
  const Instruction* root = computation.root();
  if (computation.parameter_count() != 2 || root->operand_count() != 2 || !root->shape().IsScalar())
    return std::nullopt;
  const Instruction* x = computation.parameter(0);
  const Instruction* y = computation.parameter(1);
  const bool in_order = root->operand(0) == x && root->operand(1) == y;
  const bool swapped = root->operand(0) == y && root->operand(1) == x && root->Has(kCommutative);
  if (!in_order && !swapped) return std::nullopt;
  if (root->shape().element_type() != x->shape().element_type()) return std::nullopt;
  return root->opcode();
}

}  // namespace hlorun::hlo
