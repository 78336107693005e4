#include "passes/control/predication.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hlo/cost_analysis.h"
#include "passes/control/known_trip_counts.h"
#include "passes/control/time_model.h"
#include "passes/fusion/hero.h"
#include "passes/kernel_model.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr std::string_view kPredicated = "\"predicated\"";
// Beyond this many iterations in the queue the host would not notice an early end in time.
constexpr int64_t kMostAhead = 16;
// Launches that --branches=predicate may spend on iterations that do not run.
constexpr double kMostLaunches = 65536;

// The number after `key` in a backend_config that passes wrote.
std::optional<int64_t> NumberOf(const std::string& config, std::string_view key) {
  size_t at = config.find(fmt::format("\"{}\"", key));
  if (at != std::string::npos) at = config.find_first_of("0123456789", at + key.size() + 2);
  if (at == std::string::npos) return std::nullopt;
  int64_t number = 0;
  std::from_chars(config.data() + at, config.data() + config.size(), number);
  return number;
}

std::string WhyNotPredicated(const Instruction& i, const KernelModel& kernels) {
  if (i.Is(Opcode::kWhile) && !hlo::KnownTripCount(i)) {
    const std::optional<LoopPredication> loop = PredicationOf(i);
    if (!loop || loop->ahead > 0) return fmt::format("the host must ask when the loop %{} inside ends", i.name());
  }
  if (i.Is(Opcode::kConditional) && !IsPredicated(i))
    return fmt::format("the host takes the branch of %{} inside", i.name());
  for (const Computation* called : i.called_computations()) {
    if (!i.Has(hlo::kControl)) break;
    if (std::string why = WhyNotPredicated(*called, kernels); !why.empty()) return why;
  }
  if (i.Has(hlo::kControl)) return "";
  const KernelKind kind = HeroOf(i).kind;
  if (kind == KernelKind::kHost) return fmt::format("%{} is not a kernel of hlorun's", i.name());
  if (kind == KernelKind::kCollective) return fmt::format("%{} takes part in a collective", i.name());
  if (i.Is(Opcode::kPartitionId) || i.Is(Opcode::kReplicaId)) return fmt::format("the host writes %{}", i.name());
  if (kind != KernelKind::kNone && kernels.RunsAlone(i))
    return fmt::format("a library or the host computes %{}", i.name());
  if (i.HasSideEffect()) return fmt::format("%{} ({}) has an effect", i.name(), hlo::OpcodeName(i.opcode()));
  return "";
}

class Predicator {
 public:
  explicit Predicator(PassContext& context)
      : context_(context), time_(context.device), strategy_(context.options.branches) {}

  bool Mark(Instruction* instruction) const {
    return instruction->Is(Opcode::kWhile) ? MarkLoop(instruction) : MarkConditional(instruction);
  }

 private:
  bool MarkConditional(Instruction* conditional) const {
    double launches = 0;
    for (const Computation* branch : conditional->called_computations()) {
      if (!WhyNotPredicated(*branch, context_.kernels).empty()) return false;
      launches += time_.Launches(*branch);
    }
    const bool cheap = launches * time_.launch() <= time_.round_trip();
    if (!cheap && (strategy_ != BranchStrategy::kPredicate || launches > kMostLaunches)) return false;
    conditional->backend_config = fmt::format("{{{}:{{}}}}", kPredicated);
    return true;
  }

  bool MarkLoop(Instruction* loop) const {
    if (hlo::KnownTripCount(*loop)) return false;
    for (const Computation* called : loop->called_computations()) {
      if (!WhyNotPredicated(*called, context_.kernels).empty()) return false;
    }
    const double launches = time_.Launches(*loop->while_condition()) + time_.Launches(*loop->while_body());
    const int64_t bound = NumberOf(loop->backend_config, kTripBound).value_or(-1);
    // What the iterations after the end may cost: as much as waiting in each of a short loop's.
    const double spare = TimeModel::kAssumedTrips * time_.round_trip() / time_.launch();
    const double all = static_cast<double>(bound) * launches;
    if (bound >= 0 && (all <= spare || (strategy_ == BranchStrategy::kPredicate && all <= kMostLaunches))) {
      loop->backend_config = fmt::format(R"({{{}:{{"at_most":"{}"}}}})", kPredicated, bound);
    } else if (2 * launches <= spare) {
      const double iteration = time_.Launched(*loop->while_condition()) + time_.Launched(*loop->while_body());
      const double covered = std::ceil(time_.round_trip() / std::max(iteration, 1e-3));
      const int64_t ahead = std::clamp<int64_t>(static_cast<int64_t>(std::min(covered, 1e6)), 1, kMostAhead);
      loop->backend_config = fmt::format(R"({{{}:{{"ahead":"{}"}}}})", kPredicated, ahead);
    } else {
      return false;
    }
    OwnPredicate(loop->while_condition());
    return true;
  }

  // The body reads the predicate while it writes the next carry, so the predicate is no part of the carry.
  static void OwnPredicate(Computation* condition) {
    Instruction* root = condition->root();
    if (HeroOf(*root).kind != KernelKind::kNone && !root->Is(Opcode::kCopy)) return;
    auto copy = std::make_unique<Instruction>(Opcode::kCopy, root->shape(), std::vector<Instruction*>{root});
    condition->set_root(condition->Add(std::move(copy)));
  }

  PassContext& context_;
  const TimeModel time_;
  const BranchStrategy strategy_;
};

}  // namespace

bool IsPredicated(const Instruction& conditional) {
  return conditional.backend_config.find(kPredicated) != std::string::npos;
}

std::optional<LoopPredication> PredicationOf(const Instruction& loop) {
  if (!IsPredicated(loop)) return std::nullopt;
  return LoopPredication{NumberOf(loop.backend_config, "ahead").value_or(0),
                         NumberOf(loop.backend_config, "at_most").value_or(-1)};
}

std::string WhyNotPredicated(const Computation& computation, const KernelModel& kernels) {
  for (const auto& instruction : computation.instructions()) {
    if (std::string why = WhyNotPredicated(*instruction, kernels); !why.empty()) return why;
  }
  return "";
}

bool PredicateControl::Run(hlo::Module& module, PassContext& context) {
  const Predicator predicator(context);
  bool changed = false;
  // Callees first: what is inside a branch is marked before the branch is.
  for (Computation* computation : module.ControlComputations()) {
    for (const auto& instruction : computation->instructions()) {
      if (!instruction->Is(Opcode::kWhile) && !instruction->Is(Opcode::kConditional)) continue;
      // Marks of an earlier compilation say nothing.
      if (IsPredicated(*instruction)) instruction->backend_config.clear();
      if (context.options.branches != BranchStrategy::kHost) changed |= predicator.Mark(instruction.get());
    }
  }
  return changed;
}

}  // namespace hlorun::passes
