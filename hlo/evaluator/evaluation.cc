#include "hlo/evaluator/evaluation.h"

#include "hlo/error.h"
#include "hlo/evaluator/spmd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hlorun::hlo {
namespace {

constexpr int kDepthLimit = 500;  // nested calls; deeper ones would end in a stack overflow

}  // namespace

// A computation flattened for execution: values live in numbered slots; each step knows which operands nobody reads
// afterwards, so that they can be updated in place.
struct Evaluation::Step {
  const Instruction* instruction = nullptr;
  OpFunction function = nullptr;
  std::vector<size_t> operands;
  std::vector<bool> last_use;
  size_t result = 0;
};
struct Evaluation::Program {
  std::vector<Step> steps;
  size_t slots = 0;
  size_t root = 0;
};

Evaluation::Evaluation(const EvaluatorOptions& options, SpmdRun* spmd, int64_t device)
    : options_(options), spmd_(spmd), device_(device) {}

void Evaluation::Post(const Mailbox::Key& key, Literal value) {
  if (spmd_ != nullptr) return spmd_->Post(key, std::move(value));
  mailbox_.Put(key, std::move(value));
}

Literal Evaluation::Receive(const Mailbox::Key& key, const Instruction& receiver) {
  return spmd_ != nullptr ? spmd_->Receive(key, receiver) : mailbox_.Take(key, receiver);
}

Evaluation::~Evaluation() = default;

void Evaluation::Charge(int64_t steps) {
  steps_ += steps;
  if (options_.step_limit > 0 && steps_ > options_.step_limit) {
    Fail(ErrorCode::kResourceExhausted, "evaluation stopped after {} elementary steps, its limit", options_.step_limit);
  }
}

namespace {

// Operands first, and get-tuple-element at once after its tuple: then the tuple is gone before its parts are updated.
std::vector<const Instruction*> ExecutionOrder(const Computation& computation) {
  std::vector<const Instruction*> order;
  std::unordered_map<const Instruction*, bool> placed;
  auto place = [&](auto&& self, const Instruction* instruction) -> void {
    if (placed[instruction]) return;
    placed[instruction] = true;
    order.push_back(instruction);
    for (const Instruction* user : instruction->users()) {
      if (user->Is(Opcode::kGetTupleElement)) self(self, user);
    }
  };
  for (const Instruction* instruction : computation.PostOrder()) place(place, instruction);
  return order;
}

}  // namespace

const Evaluation::Program& Evaluation::ProgramOf(const Computation& computation) {
  std::unique_ptr<Program>& program = programs_[&computation];
  if (program != nullptr) return *program;
  auto built = std::make_unique<Program>();
  std::unordered_map<const Instruction*, size_t> slot_of;
  for (const Instruction* instruction : ExecutionOrder(computation)) {
    Step step;
    step.instruction = instruction;
    step.function = OpFunctionOf(instruction->opcode());
    step.result = built->slots++;
    slot_of[instruction] = step.result;
    for (const Instruction* operand : instruction->operands()) step.operands.push_back(slot_of.at(operand));
    built->steps.push_back(std::move(step));
  }
  built->root = slot_of.at(computation.root());
  std::vector<bool> read_later(built->slots, false);
  read_later[built->root] = true;
  for (auto step = built->steps.rbegin(); step != built->steps.rend(); ++step) {
    step->last_use.resize(step->operands.size());
    for (size_t i = step->operands.size(); i-- > 0;) {
      step->last_use[i] = !read_later[step->operands[i]];
      read_later[step->operands[i]] = true;
    }
  }
  program = std::move(built);
  return *program;
}

Literal Evaluation::Run(const Computation& computation, std::vector<Literal> arguments) {
  HLORUN_CHECK(static_cast<int64_t>(arguments.size()) == computation.parameter_count());
  if (++depth_ > kDepthLimit) {
    Fail(ErrorCode::kResourceExhausted, "computation {}: calls are nested deeper than {}", computation.name(),
         kDepthLimit);
  }
  const Program& program = ProgramOf(computation);
  const bool observed = &computation == observed_ && options_.observer != nullptr;
  std::vector<Literal> values(program.slots);
  std::vector<Literal> operands;
  for (const Step& step : program.steps) {
    const Instruction& instruction = *step.instruction;
    if (instruction.Is(Opcode::kParameter)) {
      values[step.result] = std::move(arguments[static_cast<size_t>(instruction.parameter_number())]);
    } else {
      operands.clear();
      for (size_t i = 0; i < step.operands.size(); ++i) {
        Literal& value = values[step.operands[i]];
        if (step.last_use[i]) {
          operands.push_back(std::move(value));
        } else {
          operands.push_back(value);
        }
      }
      values[step.result] = Apply(instruction, operands);
    }
    if (observed) options_.observer(instruction, values[step.result]);
  }
  --depth_;
  return std::move(values[program.root]);
}

Literal Evaluation::Apply(const Instruction& instruction, std::span<Literal> operands) {
  OpCall call{*this, instruction, operands, ActualShape(instruction, operands)};
  CropOperands(instruction, call.shape, operands);
  FillOperands(instruction, operands);
  Charge(call.shape.IsArray() ? 1 + call.shape.ElementCount() : 1);
  return OpFunctionOf(instruction.opcode())(call);
}

DenormalFlush::DenormalFlush(bool flush) : active_(flush) {
  if (!active_) return;
#if defined(__x86_64__)
  constexpr unsigned kFlushToZeroAndDenormalsAreZero = 0x8040;
  saved_ = _mm_getcsr();
  _mm_setcsr(static_cast<unsigned>(saved_) | kFlushToZeroAndDenormalsAreZero);
#elif defined(__aarch64__)
  constexpr uint64_t kFlushToZero = uint64_t{1} << 24;
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  asm volatile("msr fpcr, %0" ::"r"(saved_ | kFlushToZero));
#endif
}

DenormalFlush::~DenormalFlush() {
  if (!active_) return;
#if defined(__x86_64__)
  _mm_setcsr(static_cast<unsigned>(saved_));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" ::"r"(saved_));
#endif
}

}  // namespace hlorun::hlo
