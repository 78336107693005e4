#include "tests/passes/memory/memory_simulation.h"

#include <cstring>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

class Simulation {
 public:
  Simulation(const hlo::Module& module, const BufferAssignment& buffers, std::span<const Literal> arguments)
      : module_(module), buffers_(buffers) {
    constexpr auto kGarbage = std::byte{0xA5};
    for (const Allocation& allocation : buffers.allocations()) {
      memory_.emplace_back(static_cast<size_t>(allocation.bytes), kGarbage);
      if (allocation.constant != nullptr) {
        std::memcpy(memory_.back().data(), allocation.constant->literal().data(), memory_.back().size());
      }
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Instruction* parameter = module.entry()->parameter(static_cast<int64_t>(i));
      int64_t leaf = 0;
      for (const Literal& array : hlo::FlattenLiteral(arguments[i])) Store(buffers.SliceOf(parameter, leaf++), array);
    }
  }

  std::vector<Literal> Run() {
    Execute(*module_.entry());
    std::vector<Literal> results;
    const std::vector<hlo::Shape> shapes = hlo::FlattenShape(module_.entry()->root()->shape());
    for (size_t i = 0; i < shapes.size(); ++i) results.push_back(Load(buffers_.results()[i], shapes[i]));
    return results;
  }

 private:
  void Store(const Slice& slice, const Literal& literal) {
    if (slice.allocation < 0 || slice.bytes == 0) return;
    std::memcpy(memory_[static_cast<size_t>(slice.allocation)].data() + slice.offset, literal.data(),
                static_cast<size_t>(slice.bytes));
  }

  Literal Load(const Slice& slice, const hlo::Shape& shape) const {
    Literal literal(shape);
    if (slice.allocation < 0 || slice.bytes == 0) return literal;
    std::memcpy(literal.mutable_data(), memory_[static_cast<size_t>(slice.allocation)].data() + slice.offset,
                static_cast<size_t>(slice.bytes));
    return literal;
  }

  Literal LoadWhole(const Instruction* instruction, const hlo::Shape& shape, int64_t& leaf) const {
    if (!shape.IsTuple()) return Load(buffers_.SliceOf(instruction, leaf++), shape);
    std::vector<Literal> elements;
    for (const hlo::Shape& element : shape.tuple_shapes()) elements.push_back(LoadWhole(instruction, element, leaf));
    return Literal::Tuple(std::move(elements));
  }
  Literal LoadWhole(const Instruction* instruction) const {
    int64_t leaf = 0;
    return LoadWhole(instruction, instruction->shape(), leaf);
  }

  void Execute(const hlo::Computation& computation) {
    for (const auto& instruction : computation.instructions()) Step(*instruction);
  }

  void Step(const Instruction& instruction) {
    if (instruction.Is(Opcode::kWhile)) {
      for (;;) {
        Execute(*instruction.while_condition());
        if (LoadWhole(instruction.while_condition()->root()).GetInt(0) == 0) return;
        Execute(*instruction.while_body());
      }
    }
    if (instruction.Is(Opcode::kConditional)) {
      const Literal selector = LoadWhole(instruction.operand(0));
      const auto branches = static_cast<int64_t>(instruction.called_computations().size());
      int64_t taken = selector.GetInt(0);
      if (selector.element_type() == hlo::ElementType::kPred) {
        taken = taken != 0 ? 0 : 1;
      } else if (taken < 0 || taken >= branches) {
        taken = branches - 1;
      }
      return Execute(*instruction.called(taken));
    }
    if (instruction.Is(Opcode::kCall)) return Execute(*instruction.called());
    if (instruction.Has(hlo::kTransparent) || instruction.Is(Opcode::kParameter) || instruction.IsConstant()) return;
    std::vector<Literal> operands;
    for (const Instruction* operand : instruction.operands()) operands.push_back(LoadWhole(operand));
    const Literal result = hlo::EvaluateInstruction(instruction, operands);
    Slice scratch = buffers_.ScratchOf(&instruction);
    if (scratch.allocation >= 0) {
      std::memset(memory_[static_cast<size_t>(scratch.allocation)].data() + scratch.offset, 0x5A,
                  static_cast<size_t>(scratch.bytes));
    }
    int64_t leaf = 0;
    for (const Literal& array : hlo::FlattenLiteral(result)) Store(buffers_.SliceOf(&instruction, leaf++), array);
  }

  const hlo::Module& module_;
  const BufferAssignment& buffers_;
  std::vector<std::vector<std::byte>> memory_;  // by allocation
};

}  // namespace

std::vector<Literal> Simulate(const hlo::Module& module, const BufferAssignment& buffers,
                              std::span<const Literal> arguments) {
  return Simulation(module, buffers, arguments).Run();
}

}  // namespace hlorun::passes
