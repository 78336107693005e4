// What the functions of the op table see: one run of a module on one device.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/mailbox.h"

namespace hlorun::hlo {

class Evaluation;
class SpmdRun;

// One instruction with its operands' values. Literals carry the sizes that dimensions really have: where the
// instruction's shape says f32[<=8], a literal may be f32[5]. Functions therefore read dimensions from literals.
struct OpCall {
  Evaluation& evaluation;
  const Instruction& instruction;
  std::span<Literal> operands;  // the function's to consume: values used elsewhere are shared copies
  Shape shape;                  // of the result, with actual sizes and without dynamic dimensions

  const Literal& operand(int64_t i) const { return operands[static_cast<size_t>(i)]; }
  template <typename T>
  const T& As() const {
    return instruction.As<T>();
  }
};
using OpFunction = Literal (*)(OpCall& call);

// The function that defines `opcode`; every opcode has one.
OpFunction OpFunctionOf(Opcode opcode);

// A 128-bit counter: what random numbers are made from.
struct RngState {
  uint64_t low = 0;
  uint64_t high = 0;
  RngState Advanced(uint64_t by) const { return {low + by, high + (low + by < low ? 1 : 0)}; }
};

// One device's run. Not thread-safe; devices of an SPMD run have one each.
class Evaluation {
 public:
  explicit Evaluation(const EvaluatorOptions& options, SpmdRun* spmd = nullptr, int64_t device = 0);
  ~Evaluation();

  Literal Run(const Computation& computation, std::vector<Literal> arguments);
  Literal Apply(const Instruction& instruction, std::span<Literal> operands);
  // Counts elementary steps; throws kResourceExhausted past the limit.
  void Charge(int64_t steps);

  const EvaluatorOptions& options() const { return options_; }
  SpmdRun* spmd() const { return spmd_; }  // null: a single device
  int64_t device() const { return device_; }
  void set_observed(const Computation* computation) { observed_ = computation; }
  RngState& rng_state() { return rng_state_; }
  // Transfers between devices, or from this one to itself.
  void Post(const Mailbox::Key& key, Literal value);
  Literal Receive(const Mailbox::Key& key, const Instruction& receiver);

 private:
  struct Step;
  struct Program;
  const Program& ProgramOf(const Computation& computation);

  const EvaluatorOptions& options_;
  SpmdRun* spmd_;
  int64_t device_;
  int64_t steps_ = 0;
  int depth_ = 0;
  const Computation* observed_ = nullptr;
  Mailbox mailbox_;                   // of a single device
  RngState rng_state_{0x7012395, 0};  // where XLA:CPU starts
  std::unordered_map<const Computation*, std::unique_ptr<Program>> programs_;
};

// The shape of the result where operands have these values: the instruction's, with actual sizes in place of bounds.
Shape ActualShape(const Instruction& instruction, std::span<const Literal> operands);

// What a static result is moved from reaches up to its bound, or as far as one window of it does: zeros lie beyond the
// actual sizes.
void FillOperands(const Instruction& instruction, std::span<Literal> operands);

// Cuts static operands of an elementwise op down to the actual sizes of its result.
void CropOperands(const Instruction& instruction, const Shape& actual, std::span<Literal> operands);

// Flushes denormals of f32 and f64 arithmetic to zero in this thread while it lives, as XLA:CPU does.
class DenormalFlush {
 public:
  explicit DenormalFlush(bool flush);
  ~DenormalFlush();
  DenormalFlush(const DenormalFlush&) = delete;
  DenormalFlush& operator=(const DenormalFlush&) = delete;

 private:
  bool active_;
  uint64_t saved_ = 0;
};

}  // namespace hlorun::hlo
