#include "passes/memory/hand_over.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "passes/fusion/hero.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kHandedBytes = 64;  // more is not worth a kernel's time
constexpr size_t kScalarOps = 16;

struct Read {
  Instruction* reader;
  int64_t operand;
};

// Where `value` is read after `region`; nothing where some reader cannot be given another array instead.
std::optional<std::vector<Read>> ReadsAfter(const Instruction* region, ValueId value, const Dataflow& dataflow) {
  std::vector<Read> reads;
  bool is_after = false;
  for (const auto& instruction : region->parent()->instructions()) {
    is_after |= instruction.get() == region;
    for (int64_t i = 0; i < instruction->operand_count(); ++i) {
      const Instruction* operand = instruction->operand(i);
      const auto& held = dataflow.ValuesOf(operand);
      if (std::find(held.begin(), held.end(), value) == held.end()) continue;
      // Tuples keep their elements for readers anywhere.
      if (instruction->Is(Opcode::kTuple) && !instruction->IsRoot()) return std::nullopt;
      const bool reads_now = instruction->IsRoot() || !MovesNoData(*instruction);
      if (!is_after || !reads_now || instruction.get() == region) continue;
      if (!operand->shape().IsArray()) return std::nullopt;
      reads.push_back({instruction.get(), i});
    }
  }
  return reads;
}

// The region with what it is given as operand `number` as one result more, whose element it returns.
Instruction* WithResult(Instruction* region, int64_t number) {
  Computation* body = region->parent();
  Computation* called = region->called();
  Instruction* root = called->root();
  std::vector<Instruction*> results = root->Is(Opcode::kTuple) ? root->operands() : std::vector<Instruction*>{root};
  results.push_back(called->parameter(number));
  std::vector<hlo::Shape> shapes;
  for (const Instruction* result : results) shapes.push_back(result->shape());
  called->set_root(called->Add(Opcode::kTuple, hlo::Shape::Tuple(shapes), results));
  if (root->Is(Opcode::kTuple)) called->Remove(root);

  Instruction* more = body->Add(region->CloneWithOperands(hlo::Shape::Tuple(shapes), region->operands()), region);
  const auto element = [&](size_t index) {
    return body->Add(
        std::make_unique<Instruction>(Opcode::kGetTupleElement, shapes[index], std::vector<Instruction*>{more},
                                      hlo::attr::TupleIndex{static_cast<int64_t>(index)}),
        region);
  };
  Instruction* last = element(results.size() - 1);
  if (region->shape().IsTuple()) {
    const std::vector<Instruction*> users(region->users().begin(), region->users().end());
    for (Instruction* user : users) user->ReplaceOperand(0, more);
    body->Remove(region);
  } else {
    body->Replace(region, element(0));
  }
  return last;
}

bool IsCalledOnce(const Instruction& region) {
  int64_t calls = 0;
  for (const auto& computation : region.module()->computations()) {
    for (const auto& instruction : computation->instructions()) {
      const auto& called = instruction->called_computations();
      calls += std::count(called.begin(), called.end(), region.called());
    }
  }
  return calls == 1;
}

// A kernel of a few scalars, which one work-item runs anyway.
bool ComputesScalars(const Instruction& kernel) {
  if (!kernel.Is(Opcode::kFusion) || HeroOf(kernel).kind != KernelKind::kLoop) return false;
  const auto& inner = kernel.called()->instructions();
  return inner.size() <= kScalarOps && std::all_of(inner.begin(), inner.end(), [](const auto& instruction) {
           return instruction->Is(Opcode::kTuple) || (instruction->shape().IsScalar() && !instruction->HasSideEffect());
         });
}

// `flow` goes from a result of `region` to the slot of one of its operands.
bool HandOverBy(Instruction* region, const Flow& flow, const Dataflow& dataflow, const KernelModel& kernels) {
  const Value& next = dataflow.value(flow.from);
  const Instruction* result = region->called()->root();
  const auto& users = region->users();
  const bool takes_apart =
      !result->shape().IsTuple() ||
      (result->Is(Opcode::kTuple) && std::all_of(users.begin(), users.end(), [](const Instruction* user) {
         return user->Is(Opcode::kGetTupleElement);
       }));
  if (!takes_apart || region->IsRoot()) return false;

  const auto given =
      std::find_if(region->operands().begin(), region->operands().end(), [&](const Instruction* operand) {
        const auto& held = dataflow.ValuesOf(operand);
        return held.size() == 1 && held[0] == flow.to;
      });
  if (given == region->operands().end()) return false;
  const int64_t number = given - region->operands().begin();
  if (!kernels.MayShareBuffer(*region, number, next.leaf) || !IsCalledOnce(*region)) return false;
  const std::optional<std::vector<Read>> reads = ReadsAfter(region, flow.to, dataflow);
  const auto fits = [&](const Read& read) {
    return read.reader->operand(read.operand)->shape().SameAs((*given)->shape());
  };
  if (!reads || reads->empty() || !std::all_of(reads->begin(), reads->end(), fits)) return false;
  Instruction* handed = WithResult(region, number);
  for (const Read& read : *reads) read.reader->ReplaceOperand(read.operand, handed);
  return true;
}

}  // namespace

bool HandOver(const Flow& flow, const Dataflow& dataflow, const KernelModel& kernels) {
  if (flow.consumer != nullptr || flow.to == kNoValue || flow.from == kNoValue) return false;
  const Value &next = dataflow.value(flow.from), &last = dataflow.value(flow.to);
  if (last.kind != Value::Kind::kCarried || next.kind != Value::Kind::kDefined || next.bytes > kHandedBytes)
    return false;
  Computation* body = flow.source->parent();
  const auto is_next = [&](const auto& instruction) { return instruction.get() == next.instruction; };
  const auto found = std::find_if(body->instructions().begin(), body->instructions().end(), is_next);
  if (found == body->instructions().end()) return false;
  Instruction* kernel = found->get();
  if (HeroOf(*kernel).kind == KernelKind::kRegion) return HandOverBy(kernel, flow, dataflow, kernels);
  if (!ComputesScalars(*kernel)) return false;
  const std::string config = std::exchange(kernel->backend_config, kRegionConfig);
  const bool handed = HandOverBy(kernel, flow, dataflow, kernels);
  if (!handed) kernel->backend_config = config;  // else it is gone
  return handed;
}

}  // namespace hlorun::passes
