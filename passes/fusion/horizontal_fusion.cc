#include "passes/fusion/horizontal_fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>

#include "passes/control/time_model.h"
#include "passes/dynamic/extents.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/kernel_places.h"
#include "passes/fusion/meaning.h"
#include "passes/fusion/outline_region.h"
#include "passes/fusion/updated_part.h"
#include "passes/memory/array_lives.h"
#include "passes/memory/moved_lives.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Of one launch: its code picks pointers and a body by number.
constexpr size_t kMostParts = 128, kMostBodies = 32;
constexpr size_t kMostOperations = 1024;  // of all bodies
constexpr int64_t kPointerBytes = 8;
// Left for predicates of branches and loops (codegen/guard.h).
constexpr int64_t kOtherArguments = 8;
// How many kernels of the same ops are asked in vain whether they may join one of them.
constexpr size_t kMostMisses = 32;
// The module's peak may grow by this share of it, or by so many bytes.
constexpr int64_t kShareOfPeak = 64, kFreeBytes = 1 << 20;
// A GPU of which nothing was measured.
constexpr double kGpuGflops = 10'000, kGpuGbytes = 500;

DeviceSpec WithDefaults(DeviceSpec device) {
  if (device.f32_gflops <= 0) device.f32_gflops = kGpuGflops;
  if (device.bandwidth_gbps <= 0) device.bandwidth_gbps = kGpuGbytes;
  return device;
}

// The ops of a kernel, whatever the sizes.
std::string OpsOf(const Instruction& kernel) {
  std::string ops;
  const auto add = [&](const Instruction& i) {
    const hlo::Shape shape = hlo::FlattenShape(i.shape())[0];
    ops += fmt::format("{}:{};", static_cast<int>(i.opcode()), static_cast<int>(shape.element_type()));
  };
  if (!kernel.Is(Opcode::kFusion)) add(kernel);
  if (kernel.Is(Opcode::kFusion)) {
    for (const auto& inner : kernel.called()->instructions()) add(*inner);
  }
  return ops;
}

// Which kernels are worth joining, by themselves.
class Eligibility {
 public:
  explicit Eligibility(const PassContext& context) : context_(context), time_(WithDefaults(context.device)) {}

  bool Allows(const Instruction& i) const {
    const KernelKind kind = HeroOf(i).kind;
    const bool is_known = kind == KernelKind::kLoop || kind == KernelKind::kReduction || kind == KernelKind::kRow;
    if (!is_known || i.Is(Opcode::kCopy)) return false;
    if (UpdateAtRoot(i) != nullptr || !ExtentsOf(i).empty()) return false;
    if (!i.control_predecessors().empty() || !i.control_successors().empty()) return false;
    if (i.HasSideEffect() || (i.users().empty() && !i.IsRoot())) return false;
    const auto is_plain = [](const hlo::Shape& shape) {
      return shape.IsArray() && shape.IsStatic() && shape.ElementCount() > 0;
    };
    const std::vector<hlo::Shape>& leaves = i.shape().IsTuple() ? i.shape().tuple_shapes() : std::vector{i.shape()};
    if (!std::all_of(leaves.begin(), leaves.end(), is_plain)) return false;
    if (!std::all_of(i.operands().begin(), i.operands().end(),
                     [&](const Instruction* operand) { return is_plain(operand->shape()); }))
      return false;
    return time_.Launched(i) <= 2 * time_.launch() && context_.kernels.RunsBesideOthers(i);
  }

  // What is the same in every run.
  std::unordered_set<const Instruction*> ConstantsOf(const Computation& computation) const {
    std::unordered_set<const Instruction*> constants;
    if (&computation != computation.module()->entry()) return constants;
    int64_t leaf = 0;
    for (const Instruction* parameter : computation.parameters()) {
      const std::vector<int64_t>& said = context_.options.constant_parameters;
      if (parameter->shape().IsArray() && std::find(said.begin(), said.end(), leaf) != said.end())
        constants.insert(parameter);
      leaf += hlo::LeafCount(parameter->shape());
    }
    for (const auto& i : computation.instructions()) {
      const bool depends = i->Is(Opcode::kParameter) || i->HasSideEffect() || i->Has(hlo::kControl);
      if (!depends && std::all_of(i->operands().begin(), i->operands().end(),
                                  [&](const Instruction* operand) { return constants.contains(operand); }))
        constants.insert(i.get());
    }
    return constants;
  }

  const TimeModel& time() const { return time_; }
  size_t most_arguments() const {
    return static_cast<size_t>(std::max<int64_t>(context_.device.argument_bytes / kPointerBytes - kOtherArguments, 0));
  }

 private:
  const PassContext& context_;
  const TimeModel time_;
};

// Kernels of one computation that one launch runs.
struct Group {
  std::vector<Instruction*> parts;
  int64_t place = 0, time = 0;
  std::unordered_set<const Instruction*> operands;
  std::unordered_set<std::string> bodies;
  size_t results = 0, operations = 0;
};

class Joiner {
 public:
  Joiner(Computation& computation, const Eligibility& eligible, const ArrayLives& lives, MovedLives& moved)
      : computation_(computation), eligible_(eligible), lives_(lives), moved_(moved), places_(computation) {}

  // How many launches are fewer.
  size_t Run() {
    FindCandidates();
    // What is due first, first.
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.due < b.due; });
    for (size_t i = 0; i < candidates_.size(); ++i) alike_[candidates_[i].ops].push_back(i);
    std::vector<size_t> seeds(alike_.size(), 0);
    for (Candidate& candidate : candidates_) {
      const size_t seed = seeds[candidate.ops]++;
      if (!candidate.is_joined) FormGroup(alike_[candidate.ops], seed);
    }
    size_t fewer = 0;
    for (const Group& group : groups_) {
      Instruction* joined = OutlineRegion(computation_, group.parts, kSideBySideConfig, "side_by_side");
      places_.Put(joined, group.place);
      fewer += group.parts.size() - 1;
    }
    if (fewer > 0) places_.Reorder();
    return fewer;
  }

 private:
  struct Candidate {
    Instruction* kernel;
    size_t ops;   // which
    int64_t due;  // where its first reader was at first
    bool is_joined = false;
  };

  void FindCandidates() {
    std::map<std::string, size_t> numbers;
    const auto constants = eligible_.ConstantsOf(computation_);
    for (Instruction* i : places_.order()) {
      if (MovesNoData(*i) || constants.contains(i) || !eligible_.Allows(*i)) continue;
      const size_t ops = numbers.try_emplace(OpsOf(*i), numbers.size()).first->second;
      candidates_.push_back({i, ops, places_.SpanOf(*i).before});
    }
    alike_.resize(numbers.size());
  }

  // Of number `seed` of `alike` and those behind it that may run where it must at the latest.
  void FormGroup(const std::vector<size_t>& alike, size_t seed) {
    Group group;
    const Candidate& first = candidates_[alike[seed]];
    const int64_t before = places_.PlaceOf(first.kernel);
    group.place = places_.SpanOf(*first.kernel).before - 1;
    if (group.place % KernelPlaces::kStep == 0) return;  // no room is left in front of its reader
    group.time = TimeOf(group.place);
    const size_t moves = moved_.moves();
    std::vector<size_t> joined;
    for (size_t i = seed, misses = 0; i < alike.size() && misses < kMostMisses; ++i) {
      const Candidate& other = candidates_[alike[i]];
      if (other.is_joined) continue;
      if (!Join(*other.kernel, group)) {
        if (i == seed) return;
        ++misses;
        continue;
      }
      joined.push_back(alike[i]);
      // So that what needs it, or makes what it needs, does not join.
      places_.Put(other.kernel, group.place);
    }
    if (joined.size() < 2) {
      moved_.UndoTo(moves);
      places_.Put(first.kernel, before);
      return;
    }
    for (const size_t candidate : joined) candidates_[candidate].is_joined = true;
    groups_.push_back(std::move(group));
  }

  // Before what comes next, or after the last of all.
  int64_t TimeOf(int64_t place) const {
    const auto next = static_cast<size_t>(place / KernelPlaces::kStep + 1);
    const std::vector<Instruction*>& order = places_.order();
    return next < order.size() ? lives_.TimeOf(order[next]) - 1 : lives_.TimeOf(order.back()) + 1;
  }

  bool Join(Instruction& kernel, Group& group) {
    const size_t operations = kernel.Is(Opcode::kFusion) ? kernel.called()->instructions().size() : 1;
    const std::string body = MeaningOf(kernel);
    const bool is_new = !group.bodies.contains(body);
    size_t arguments = group.operands.size() + group.results + LeavesOf(kernel);
    for (const Instruction* operand : kernel.operands()) arguments += group.operands.contains(operand) ? 0 : 1;
    if (group.parts.size() >= kMostParts || arguments > eligible_.most_arguments()) return false;
    if (is_new && (group.bodies.size() >= kMostBodies || group.operations + operations > kMostOperations)) return false;
    if (!places_.SpanOf(kernel).Holds(group.place) || !moved_.Move(kernel, group.time)) return false;
    group.parts.push_back(&kernel);
    group.operands.insert(kernel.operands().begin(), kernel.operands().end());
    group.results += LeavesOf(kernel);
    if (is_new) group.operations += operations;
    group.bodies.insert(body);
    return true;
  }

  static size_t LeavesOf(const Instruction& kernel) { return static_cast<size_t>(hlo::LeafCount(kernel.shape())); }

  Computation& computation_;
  const Eligibility& eligible_;
  const ArrayLives& lives_;
  MovedLives& moved_;
  KernelPlaces places_;
  std::vector<Candidate> candidates_;
  std::vector<std::vector<size_t>> alike_;  // by ops: candidates of the same
  std::vector<Group> groups_;
};

void Explain(size_t fewer, const Eligibility& eligible, std::vector<Remark>& remarks) {
  Remark& remark = remarks.emplace_back();
  remark.subject = Remark::Subject::kLaunch;
  remark.choice = "side by side";
  remark.reason = fmt::format("{} small kernels have work-groups of other kernels' launches", fewer);
  remark.cost = fmt::format("about {:.3g} us less a run", static_cast<double>(fewer) * eligible.time().launch());
}

}  // namespace

bool HorizontalFusion::Run(hlo::Module& module, PassContext& context) {
  const bool keeps_limit = context.options.memory_limit > 0;
  if (context.device.device_class != DeviceClass::kGpu || keeps_limit || !module.is_scheduled) return false;
  const Eligibility eligible(context);
  ArrayLives lives(module, context.kernels);
  const int64_t most = lives.profile().most();
  MovedLives moved(lives, lives.profile(), most + std::max(most / kShareOfPeak, kFreeBytes));
  size_t fewer = 0;
  for (Computation* computation : module.ControlComputations())
    fewer += Joiner(*computation, eligible, lives, moved).Run();
  if (fewer > 0) Explain(fewer, eligible, context.remarks);
  return fewer > 0;
}

}  // namespace hlorun::passes
