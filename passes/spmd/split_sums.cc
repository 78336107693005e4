#include "passes/spmd/split_sums.h"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_set>

#include "hlo/communication_cost.h"
#include "passes/control/time_model.h"
#include "passes/kernel_model.h"
#include "passes/spmd/channels.h"
#include "passes/spmd/link.h"
#include "passes/spmd/product_parts.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Instructions = std::vector<Instruction*>;
using InstructionSet = std::unordered_set<const Instruction*>;

// Twice as many parts must gain so much: their messages are work of the cores that compute.
constexpr double kWorthMoreParts = 1.03;

// How the product is cut, and what product and exchange then take of the step, in microseconds.
struct Cut {
  FreeDimension along;
  int64_t parts = 0;
  double microseconds = 0;
};

// A sum that takes long.
struct Sum {
  Instruction* collective;
  double starts;  // microseconds of computation before it
};

// What else is there to do once a product and its sum are ready to start, in microseconds.
struct Rest {
  double kernels;  // that need not wait for the sum
  double link;     // of sums that start later, and need not wait for it either
};

const Instructions& OperandsOf(const Instruction& i) { return i.operands(); }
const Instructions& UsersOf(const Instruction& i) { return i.users(); }

class Splitter {
 public:
  Splitter(Computation* computation, const PassContext& context, int64_t& next_channel)
      : computation_(computation),
        kernels_(context.device),
        model_(context.kernels),
        link_(spmd::LinkOf(context.device)),
        next_channel_(next_channel) {}

  bool Run() {
    const std::vector<Sum> sums = LongSums();
    std::vector<std::pair<Instruction*, Cut>> cuts;
    InstructionSet done;  // when a sum starts: all that this one and those before it wait for
    for (auto sum = sums.begin(); sum != sums.end(); ++sum) {
      Instruction* collective = sum->collective;
      Reach(collective, OperandsOf, done);
      if (!IsSumOfProduct(*collective)) continue;
      const Rest rest = Beside(*collective, done, {sum + 1, sums.end()});
      if (const std::optional<Cut> cut = BestCut(*collective, rest)) cuts.emplace_back(collective, *cut);
    }
    for (const auto& [collective, cut] : cuts) Split(collective, cut);
    return !cuts.empty();
  }

 private:
  double Exchange(const Instruction& collective, int64_t parts = 1) const {
    return link_.Microseconds(hlo::RingBytes(collective) / static_cast<double>(parts));
  }

  bool IsSumOfProduct(const Instruction& collective) const {
    const Instruction& dot = *collective.operand(0);
    return collective.operand_count() == 1 && hlo::ReducerOpcode(*collective.called()).has_value() &&
           dot.Is(Opcode::kDot) && !dot.IsRoot() && dot.users().size() == 1 && dot.operand(0) != dot.operand(1) &&
           !HasControlEdges(collective) && !HasControlEdges(dot);
  }

  // All that take long enough to be started early, by when they can start: the order in which they run.
  std::vector<Sum> LongSums() const {
    std::vector<Sum> sums;
    const Instructions order = computation_->PostOrder();
    for (Instruction* i : order) {
      if (!i->Is(Opcode::kAllReduce) || Exchange(*i) < spmd::kWorthMicroseconds) continue;
      InstructionSet before;
      Reach(i, OperandsOf, before);
      double starts = 0;
      // Added in one order, so that every rank rounds, and sorts, alike.
      for (const Instruction* other : order) starts += before.contains(other) ? kernels_.Launched(*other) : 0;
      sums.push_back({i, starts});
    }
    std::stable_sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) { return a.starts < b.starts; });
    return sums;
  }

  // Adds what `next` leads to from `from`, itself not; what leads on from those that are in the set is there already.
  static void Reach(const Instruction* from, const Instructions& (*next)(const Instruction&), InstructionSet& reached) {
    std::vector<const Instruction*> work = {from};
    while (!work.empty()) {
      const Instruction* at = work.back();
      work.pop_back();
      for (const Instruction* to : next(*at)) {
        if (reached.insert(to).second) work.push_back(to);
      }
    }
  }

  Rest Beside(const Instruction& collective, const InstructionSet& done, std::span<const Sum> later) const {
    InstructionSet after;
    Reach(&collective, UsersOf, after);
    Rest rest{};
    for (const auto& instruction : computation_->instructions()) {
      if (!done.contains(instruction.get()) && !after.contains(instruction.get()))
        rest.kernels += kernels_.Launched(*instruction);
    }
    for (const Sum& sum : later) rest.link += after.contains(sum.collective) ? 0 : Exchange(*sum.collective);
    return rest;
  }

  // Nullopt where no cut is worth it. The link takes one sum after another: those that follow end the earlier, the
  // earlier this one starts.
  std::optional<Cut> BestCut(const Instruction& collective, const Rest& rest) const {
    const Instruction& dot = *collective.operand(0);
    const double whole = kernels_.Launched(dot);
    const double exposed = std::max(0.0, Exchange(collective) + rest.link - rest.kernels);
    const std::vector<int64_t> copied = model_.CopiedOperands(dot);
    std::optional<Cut> best;
    for (const FreeDimension& along : FreeDimensions(dot)) {
      // Parts share their copy of what is not cut, or each makes its own while it multiplies: strided, that takes about
      // twice a plain copy's time (docs/collectives.md).
      const int64_t whole_operand = 1 - along.operand;
      const bool shared = std::find(copied.begin(), copied.end(), whole_operand) != copied.end();
      const double again = shared ? 0 : 2 * kernels_.Moved(dot.operand(whole_operand)->shape().ByteSize());
      double more_parts = 1;
      for (int64_t parts = 2; parts <= kMostParts; parts *= 2, more_parts *= kWorthMoreParts) {
        const auto count = static_cast<double>(parts);
        const double exchange = Exchange(collective, parts);
        if (exchange < std::max(spmd::kWorthMicroseconds, 2e6 * link_.latency)) break;
        if (dot.shape().dimension(along.of_result) % parts != 0) break;
        const double part = kernels_.launch() + again + whole / count;
        const double sent = part + (count - 1) * std::max(part, exchange) + exchange + rest.link;
        const Cut cut{along, parts, std::max(count * part, sent - rest.kernels) * more_parts};
        if (!best || cut.microseconds < best->microseconds) best = cut;
      }
    }
    if (!best || best->microseconds * kWorthGain > whole + exposed) return std::nullopt;
    return best;
  }

  void Split(Instruction* collective, const Cut& cut) {
    Instruction* dot = collective->operand(0);
    hlo::Builder build(computation_, dot);
    build.before = collective;
    const auto operand = static_cast<size_t>(cut.along.operand);
    const hlo::Dims whole = dot->operand(cut.along.operand)->shape().dimensions();
    const int64_t size = whole[static_cast<size_t>(cut.along.of_operand)] / cut.parts;
    Instructions sums;
    for (int64_t part = 0; part < cut.parts; ++part) {
      hlo::Dims starts(whole.size(), 0), limits = whole;
      starts[static_cast<size_t>(cut.along.of_operand)] = part * size;
      limits[static_cast<size_t>(cut.along.of_operand)] = (part + 1) * size;
      Instructions operands = dot->operands();
      operands[operand] = build.Slice(operands[operand], starts, limits, hlo::Dims(whole.size(), 1));
      auto attributes = collective->As<hlo::attr::Collective>();
      if (part > 0 && attributes.channel_id) attributes.channel_id = next_channel_++;
      sums.push_back(build.Make(Opcode::kAllReduce, {Product(build, *dot, operands)}, std::move(attributes),
                                collective->called_computations()));
    }
    computation_->Replace(collective, build.Concatenate(sums, cut.along.of_result));
    computation_->RemoveWithDeadOperands(dot);
  }

  Computation* computation_;
  TimeModel kernels_;
  const KernelModel& model_;
  spmd::Link link_;
  int64_t& next_channel_;
};

}  // namespace

bool SplitSums::Run(hlo::Module& module, PassContext& context) {
  if (!ExchangesBesideKernels(module, context)) return false;
  int64_t next_channel = spmd::FirstFreeChannel(module);
  bool changed = false;
  for (Computation* computation : module.ControlComputations()) {
    changed |= Splitter(computation, context, next_channel).Run();
  }
  return changed;
}

}  // namespace hlorun::passes
