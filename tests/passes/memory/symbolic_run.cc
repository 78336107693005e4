#include "tests/passes/memory/symbolic_run.h"

#include <fmt/format.h>

#include <map>
#include <stdexcept>

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Symbol = int64_t;
using Symbols = std::vector<Symbol>;  // by leaf; 0 for tokens

class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Bytes of one allocation as disjoint ranges, each holding (part of) a symbol.
class Memory {
 public:
  void Write(const Slice& slice, Symbol symbol) {
    auto& ranges = allocations_[slice.allocation];
    Clear(ranges, slice.offset, slice.offset + slice.bytes);
    if (slice.bytes > 0) ranges[slice.offset] = {slice.offset + slice.bytes, symbol, slice.offset};
  }
  bool Holds(const Slice& slice, Symbol symbol) const {
    if (slice.bytes == 0) return true;
    const auto allocation = allocations_.find(slice.allocation);
    if (allocation == allocations_.end()) return false;
    const auto it = allocation->second.find(slice.offset);
    return it != allocation->second.end() && it->second.symbol == symbol &&
           it->second.end == slice.offset + slice.bytes && it->second.origin == slice.offset;
  }

 private:
  struct Piece {
    int64_t end;
    Symbol symbol;
    int64_t origin;
  };
  static void Clear(std::map<int64_t, Piece>& ranges, int64_t begin, int64_t end) {
    auto it = ranges.lower_bound(begin);
    if (it != ranges.begin() && std::prev(it)->second.end > begin) --it;
    while (it != ranges.end() && it->first < end) it = ranges.erase(it);
  }
  std::map<int32_t, std::map<int64_t, Piece>> allocations_;
};

class SymbolicRun {
 public:
  SymbolicRun(const hlo::Module& module, const BufferAssignment& buffers, const KernelModel& kernels)
      : module_(module), buffers_(buffers), kernels_(kernels) {}

  void Run() {
    for (const Allocation& allocation : buffers_.allocations()) {
      const auto number = static_cast<int32_t>(&allocation - buffers_.allocations().data());
      if (allocation.kind != Allocation::Kind::kConstant) continue;
      memory_.Write({number, 0, allocation.bytes}, constant_symbols_[number] = Fresh());
    }
    for (const Instruction* parameter : module_.entry()->parameters()) {
      Symbols& symbols = environment_[parameter];
      ForEachArray(parameter, [&](const Slice& slice) {
        symbols.push_back(slice.allocation < 0 ? 0 : Fresh());
        if (slice.allocation >= 0) memory_.Write(slice, symbols.back());
      });
    }
    Execute(*module_.entry());
    const Instruction* root = module_.entry()->root();
    Demand(root, root);
    for (size_t leaf = 0; leaf < buffers_.results().size(); ++leaf) {
      if (buffers_.results()[leaf] != buffers_.SliceOf(root, static_cast<int64_t>(leaf))) {
        throw Violation(fmt::format("result {} is not where the root's leaf lies", leaf));
      }
    }
  }

 private:
  Symbol Fresh() { return ++last_; }

  template <typename Visit>
  void ForEachArray(const Instruction* instruction, const Visit& visit) {
    const int64_t leaves = hlo::LeafCount(instruction->shape());
    for (int64_t leaf = 0; leaf < leaves; ++leaf) visit(buffers_.SliceOf(instruction, leaf));
  }

  // `reader` needs all leaves of `instruction`.
  void Demand(const Instruction* instruction, const Instruction* reader) {
    const Symbols& symbols = environment_.at(instruction);
    for (size_t leaf = 0; leaf < symbols.size(); ++leaf) {
      if (symbols[leaf] == 0) continue;
      if (!memory_.Holds(buffers_.SliceOf(instruction, static_cast<int64_t>(leaf)), symbols[leaf])) {
        throw Violation(fmt::format("%{} reads leaf {} of %{}, which has been overwritten", reader->name(), leaf,
                                    instruction->name()));
      }
    }
  }

  void Execute(const hlo::Computation& computation) {
    for (const auto& owned : computation.instructions()) {
      if (!owned->Is(Opcode::kParameter)) environment_[owned.get()] = Step(owned.get());
    }
  }

  void Bind(const hlo::Computation& computation, int64_t parameter, const Symbols& symbols) {
    environment_[computation.parameter(parameter)] = symbols;
  }

  Symbols Step(const Instruction* instruction) {
    switch (instruction->opcode()) {
      case Opcode::kConstant: return {constant_symbols_.at(buffers_.SliceOf(instruction).allocation)};
      case Opcode::kTuple: {
        Symbols symbols;
        for (const Instruction* operand : instruction->operands()) {
          const Symbols& part = environment_.at(operand);
          symbols.insert(symbols.end(), part.begin(), part.end());
        }
        return symbols;
      }
      case Opcode::kGetTupleElement: {
        const Instruction* tuple = instruction->operand(0);
        int64_t first = 0;
        for (int64_t i = 0; i < instruction->tuple_index(); ++i) first += hlo::LeafCount(tuple->shape().tuple_shape(i));
        const auto begin = environment_.at(tuple).begin() + first;
        return Symbols(begin, begin + hlo::LeafCount(instruction->shape()));
      }
      case Opcode::kWhile: return StepWhile(instruction);
      case Opcode::kConditional: return StepConditional(instruction);
      case Opcode::kCall:
        for (int64_t i = 0; i < instruction->operand_count(); ++i) {
          Bind(*instruction->called(), i, environment_.at(instruction->operand(i)));
        }
        Execute(*instruction->called());
        return environment_.at(instruction->called()->root());
      default:
        if (!instruction->Has(hlo::kTransparent)) return StepKernel(instruction);
        if (instruction->shape().IsToken()) return {0};
        return environment_.at(instruction->operand(0));
    }
  }

  Symbols StepKernel(const Instruction* instruction) {
    const Slice scratch = buffers_.ScratchOf(instruction);
    for (const Instruction* operand : instruction->operands()) Demand(operand, instruction);
    if (scratch.allocation >= 0) memory_.Write(scratch, Fresh());
    for (const Instruction* operand : instruction->operands()) Demand(operand, instruction);
    Symbols results;
    ForEachArray(instruction, [&](const Slice& slice) {
      const auto leaf = static_cast<int64_t>(results.size());
      CheckSharing(instruction, leaf, slice);
      results.push_back(slice.allocation < 0 ? 0 : Fresh());
      if (slice.allocation >= 0) memory_.Write(slice, results.back());
    });
    // Two results of one kernel must not lie over each other.
    environment_[instruction] = results;
    Demand(instruction, instruction);
    return results;
  }

  void CheckSharing(const Instruction* instruction, int64_t leaf, const Slice& result) {
    const bool moves = instruction->Is(Opcode::kCopy);
    for (int64_t i = 0; i < instruction->operand_count(); ++i) {
      const int64_t leaves = hlo::LeafCount(instruction->operand(i)->shape());
      for (int64_t j = 0; j < leaves; ++j) {
        const Slice operand = buffers_.SliceOf(instruction->operand(i), j);
        if (operand.allocation < 0 || !operand.Overlaps(result)) continue;
        if (operand.offset != result.offset || operand.bytes != result.bytes || leaves != 1 ||
            !(moves || kernels_.MayShareBuffer(*instruction, i, leaf))) {
          throw Violation(fmt::format("result leaf {} of %{} lies over operand {}", leaf, instruction->name(), i));
        }
      }
    }
    if (result.allocation < 0) return;
    const auto kind = buffers_.allocations()[static_cast<size_t>(result.allocation)].kind;
    if (kind == Allocation::Kind::kArgument || kind == Allocation::Kind::kConstant) {
      throw Violation(fmt::format("%{} writes into an argument or a constant", instruction->name()));
    }
  }

  Symbols StepWhile(const Instruction* loop) {
    Symbols carried = environment_.at(loop->operand(0));
    constexpr int kIterations = 2;
    for (int iteration = 0;; ++iteration) {
      Bind(*loop->while_condition(), 0, carried);
      // Nothing moves what is carried: each slot must hold its value when an iteration starts.
      Demand(loop->while_condition()->parameter(0), loop);
      Execute(*loop->while_condition());
      Demand(loop->while_condition()->root(), loop);
      if (iteration == kIterations) break;
      Bind(*loop->while_body(), 0, carried);
      Execute(*loop->while_body());
      carried = environment_.at(loop->while_body()->root());
    }
    environment_[loop] = carried;
    Demand(loop, loop);
    return carried;
  }

  // Every branch runs from the same state. What follows runs once, after the last branch, with everything spoilt that
  // any other branch writes; a result that the branches disagree on is a fresh symbol.
  Symbols StepConditional(const Instruction* conditional) {
    Demand(conditional->operand(0), conditional);
    const Memory before = memory_;
    Symbols result;
    std::vector<Memory> after;
    std::vector<Symbols> returned;
    for (size_t i = 0; i < conditional->called_computations().size(); ++i) {
      const hlo::Computation& branch = *conditional->called_computations()[i];
      memory_ = before;
      Bind(branch, 0, environment_.at(conditional->operand(static_cast<int64_t>(i) + 1)));
      Execute(branch);
      const Symbols& symbols = environment_[conditional] = environment_.at(branch.root());
      if (i == 0) result = symbols;
      for (size_t leaf = 0; leaf < result.size(); ++leaf) {
        if (result[leaf] != symbols[leaf]) result[leaf] = -1;
      }
      after.push_back(memory_);
      returned.push_back(symbols);
    }
    // Where branches disagree on a result, each must have left its own in the result's slice.
    for (size_t i = 0; i < after.size(); ++i) {
      for (size_t leaf = 0; leaf < result.size(); ++leaf) {
        if (result[leaf] == -1 &&
            !after[i].Holds(buffers_.SliceOf(conditional, static_cast<int64_t>(leaf)), returned[i][leaf])) {
          throw Violation(fmt::format("branch {} of %{} leaves no result {}", i, conditional->name(), leaf));
        }
      }
    }
    for (const hlo::Computation* branch : conditional->called_computations()) Spoil(*branch);
    for (size_t leaf = 0; leaf < result.size(); ++leaf) {
      if (result[leaf] != -1) continue;
      result[leaf] = Fresh();
      memory_.Write(buffers_.SliceOf(conditional, static_cast<int64_t>(leaf)), result[leaf]);
    }
    return result;
  }

  // Overwrites all that the kernels of a computation, and of those it calls, write.
  void Spoil(const hlo::Computation& computation) {
    for (const auto& instruction : computation.instructions()) {
      if (instruction->Has(hlo::kControl)) {
        for (const hlo::Computation* callee : instruction->called_computations()) Spoil(*callee);
      } else if (!instruction->Has(hlo::kTransparent) && !instruction->Is(Opcode::kParameter) &&
                 !instruction->IsConstant()) {
        ForEachArray(instruction.get(), [&](const Slice& slice) {
          if (slice.allocation >= 0) memory_.Write(slice, Fresh());
        });
      }
    }
  }

  const hlo::Module& module_;
  const BufferAssignment& buffers_;
  const KernelModel& kernels_;
  Memory memory_;
  std::map<const Instruction*, Symbols> environment_;
  std::map<int32_t, Symbol> constant_symbols_;
  Symbol last_ = 0;
};

}  // namespace

std::string CheckSymbolically(const hlo::Module& module, const BufferAssignment& buffers, const KernelModel& kernels) {
  try {
    SymbolicRun(module, buffers, kernels).Run();
  } catch (const Violation& violation) {
    return violation.what();
  }
  return "";
}

}  // namespace hlorun::passes
