#include "passes/spmd/overlap_collectives.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/communication_cost.h"
#include "passes/control/time_model.h"
#include "passes/memory/schedule_graph.h"
#include "passes/spmd/link.h"
#include "passes/spmd/uniform_predicates.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Order = ScheduleGraph::Order;

// What may be taken beyond the schedule's peak: of arguments and peak together, and in any case.
constexpr double kMemoryForOverlap = 0.1;
constexpr int64_t kBytesForOverlap = 16 << 20;
// How far the computation may run ahead of the first collective that is under way, in instructions; the first order
// that keeps to the memory is taken.
constexpr int kWindows[] = {std::numeric_limits<int>::max(), 64, 8, 2};

// Microseconds.
struct Times {
  TimeModel kernels;
  spmd::Link link;
  double Of(const Instruction& collective) const { return link.Microseconds(hlo::RingBytes(collective)); }
};

bool IsWorthStarting(const Instruction& i, const Times& times) {
  if (!i.Has(hlo::kCollective) || i.Has(hlo::kAsync) || i.Is(Opcode::kRaggedAllToAll) || i.IsRoot()) return false;
  // A reducer of several ops is a kernel itself.
  if (!i.called_computations().empty() && !hlo::ReducerOpcode(*i.called())) return false;
  if (!i.control_predecessors().empty() || !i.control_successors().empty()) return false;
  return times.Of(i) >= spmd::kWorthMicroseconds;
}

struct Pair {
  Instruction* start;
  Instruction* done;
};
constexpr std::string_view kStart = "-start";  // behind the collective's name

// The collective, in a computation of its own, as a start and a done in its place.
Pair Split(Computation* computation, Instruction* collective) {
  Computation* wrapped = computation->module()->AddComputation("async_" + collective->name());
  std::vector<Instruction*> parameters;
  std::vector<hlo::Shape> operands;
  for (int64_t i = 0; i < collective->operand_count(); ++i) {
    operands.push_back(collective->operand(i)->shape());
    parameters.push_back(wrapped->AddParameter(i, operands.back(), fmt::format("p{}", i)));
  }
  wrapped->set_root(wrapped->Add(collective->CloneWithOperands(collective->shape(), std::move(parameters))));
  auto start = std::make_unique<Instruction>(
      Opcode::kAsyncStart, hlo::Shape::Tuple({hlo::Shape::Tuple(std::move(operands)), collective->shape()}),
      collective->operands(), hlo::attr::Async{}, std::vector<Computation*>{wrapped});
  start->metadata = collective->metadata;
  start->set_name(collective->name() + std::string(kStart));
  Instruction* started = computation->Add(std::move(start), collective);
  auto done = std::make_unique<Instruction>(Opcode::kAsyncDone, collective->shape(), std::vector<Instruction*>{started},
                                            hlo::attr::Async{}, std::vector<Computation*>{wrapped});
  done->metadata = collective->metadata;
  done->set_name(collective->name() + "-done");
  Instruction* finished = computation->Add(std::move(done), collective);
  computation->Replace(collective, finished);
  return {started, finished};
}

// As it was, in the place of the done.
void Join(Computation* computation, const Pair& pair) {
  Computation* wrapped = pair.start->called();
  auto plain = wrapped->root()->CloneWithOperands(pair.done->shape(), pair.start->operands());
  plain->set_name(pair.start->name().substr(0, pair.start->name().size() - kStart.size()));
  Instruction* collective = computation->Add(std::move(plain), pair.done);
  computation->Replace(pair.done, collective);
  computation->Remove(pair.start);
  computation->module()->RemoveComputation(wrapped);
}

// A device that computes and a link that sends, one thing at a time each.
class Simulation {
 public:
  Simulation(const ScheduleGraph& graph, const Times& times, int64_t budget, int window)
      : graph_(graph), times_(times), budget_(budget), window_(window), run_(graph), missing_(graph.size()) {
    for (size_t i = 0; i < graph.size(); ++i) {
      const auto node = static_cast<int>(i);
      if (graph.instruction(node)->Is(Opcode::kAsyncStart)) starts_.push_back(node);
      missing_[i] = graph.before(node).size();
      if (missing_[i] == 0) ready_.insert(node);
    }
    FindLeadingNodes();
  }

  Order Play() {
    while (!ready_.empty()) Take(Next());
    return order_;
  }

  // Microseconds of computation between each start and its done.
  const std::unordered_map<const Instruction*, double>& hidden() const { return hidden_; }

 private:
  bool Is(int node, Opcode opcode) const { return graph_.instruction(node)->Is(opcode); }
  bool Fits(int node) const { return run_.During(node) <= budget_; }

  // What the next start needs, for each.
  void FindLeadingNodes() {
    leads_to_.assign(graph_.size(), kNoStart);
    for (size_t s = 0; s < starts_.size(); ++s) {
      std::vector<int> work = {starts_[s]};
      while (!work.empty()) {
        const int node = work.back();
        work.pop_back();
        for (const int before : graph_.before(node)) {
          int& first = leads_to_[static_cast<size_t>(before)];
          if (first != kNoStart) continue;
          first = static_cast<int>(s);
          work.push_back(before);
        }
      }
    }
  }

  int Next() const {
    int first_done = -1, leading = -1, computing = -1;
    const int behind = under_way_.empty() ? std::numeric_limits<int>::max() : *under_way_.begin();
    const bool is_link_idle = link_free_ <= now_;
    for (const int node : ready_) {
      if (Is(node, Opcode::kAsyncDone)) {
        // Where the link is slower than estimated, the host would wait here with nothing queued: only for another
        // start.
        if (FinishOf(node) <= now_ && leads_to_[static_cast<size_t>(node)] != kNoStart) return node;
        if (first_done < 0 || FinishOf(node) < FinishOf(first_done)) first_done = node;
        continue;
      }
      if (!Fits(node) || (behind < node && node - behind > window_)) continue;
      if (Is(node, Opcode::kAsyncStart)) return node;
      const bool leads = is_link_idle && leads_to_[static_cast<size_t>(node)] == static_cast<int>(started_);
      if (leads && leading < 0) leading = node;
      if (computing < 0) computing = node;
    }
    if (leading >= 0) return leading;
    if (computing >= 0) return computing;
    return first_done >= 0 ? first_done : *ready_.begin();
  }

  double FinishOf(int done) const { return finish_.at(graph_.instruction(done)->operand(0)); }

  void Take(int node) {
    const Instruction* instruction = graph_.instruction(node);
    ready_.erase(node);
    order_.push_back(node);
    run_.Step(node);
    if (instruction->Is(Opcode::kAsyncStart)) {
      link_free_ = std::max(link_free_, now_) + times_.Of(*instruction->called()->root());
      finish_[instruction] = link_free_;
      computed_at_start_[instruction] = computed_;
      under_way_.insert(node);
      ++started_;
    } else if (instruction->Is(Opcode::kAsyncDone)) {
      const Instruction* start = instruction->operand(0);
      now_ = std::max(now_, finish_.at(start));
      hidden_[start] = computed_ - computed_at_start_.at(start);
      std::erase_if(under_way_, [&](int other) { return graph_.instruction(other) == start; });
    } else if (instruction->Has(hlo::kCollective)) {
      // Takes its turn behind those that are under way.
      now_ = link_free_ = std::max(link_free_, now_) + times_.Of(*instruction);
    } else {
      const double time = times_.kernels.Launched(*instruction);
      now_ += time;
      computed_ += time;
    }
    for (const int after : graph_.after(node)) {
      if (--missing_[static_cast<size_t>(after)] == 0) ready_.insert(after);
    }
  }

  static constexpr int kNoStart = std::numeric_limits<int>::max();

  const ScheduleGraph& graph_;
  const Times& times_;
  const int64_t budget_;
  const int window_;
  ScheduleGraph::Run run_;
  Order order_;
  std::vector<size_t> missing_;
  std::set<int> ready_, under_way_;  // of nodes: the schedule's order
  std::vector<int> starts_, leads_to_;
  size_t started_ = 0;
  double now_ = 0, link_free_ = 0, computed_ = 0;
  std::unordered_map<const Instruction*, double> finish_, computed_at_start_, hidden_;
};

class Overlapper {
 public:
  Overlapper(Computation* computation, PassContext& context, const Times& times, CalledPeaks& peaks)
      : computation_(computation),
        context_(context),
        kernels_(context.kernels),
        memory_limit_(context.options.memory_limit),
        times_(times),
        peaks_(peaks) {}

  bool Run() {
    const ScheduleGraph plain(*computation_, kernels_, peaks_);
    const int64_t peak = plain.PeakOf(plain.TextOrder());
    peaks_[computation_] = peak - plain.given_bytes();
    std::vector<Pair> pairs;
    for (Instruction* i : computation_->PostOrder()) {
      if (IsWorthStarting(*i, times_)) pairs.push_back(Split(computation_, i));
    }
    if (pairs.empty()) return false;
    if (!Reorder(pairs, BudgetFor(peak))) {
      JoinAll(pairs.begin(), pairs);
      return false;
    }
    for (const Pair& pair : pairs) ExplainStarted(pair);
    const ScheduleGraph now(*computation_, kernels_, peaks_);
    peaks_[computation_] = now.PeakOf(now.TextOrder()) - now.given_bytes();
    return true;
  }

 private:
  int64_t BudgetFor(int64_t peak) const {
    int64_t arguments = 0;
    for (const Instruction* parameter : computation_->module()->entry()->parameters()) {
      arguments += parameter->shape().ByteSize();
    }
    const auto share = static_cast<int64_t>(static_cast<double>(peak + arguments) * kMemoryForOverlap);
    const int64_t budget = peak + std::max(share, kBytesForOverlap);
    return memory_limit_ > 0 ? std::max(peak, std::min(budget, memory_limit_ - arguments)) : budget;
  }

  // False where no order is worth it; `pairs` keeps those that are.
  bool Reorder(std::vector<Pair>& pairs, int64_t budget) {
    const ScheduleGraph graph(*computation_, kernels_, peaks_);
    for (const int window : kWindows) {
      Simulation simulation(graph, times_, budget, window);
      const Order order = simulation.Play();
      if (graph.PeakOf(order) > budget) continue;
      const auto is_worth = [&](const Pair& pair) {
        return std::min(simulation.hidden().at(pair.start), times_.Of(*pair.start->called()->root())) >=
               spmd::kWorthMicroseconds / 2;
      };
      if (std::none_of(pairs.begin(), pairs.end(), is_worth)) return false;
      std::vector<Instruction*> instructions;
      for (const int node : order) instructions.push_back(graph.instruction(node));
      computation_->SetOrder(instructions);
      JoinAll(std::stable_partition(pairs.begin(), pairs.end(), is_worth), pairs);
      return true;
    }
    fits_ = false;
    return false;
  }

  // Those from `first` on are not worth it, or cannot be had.
  void JoinAll(std::vector<Pair>::iterator first, std::vector<Pair>& pairs) {
    for (auto pair = first; pair != pairs.end(); ++pair) {
      ExplainApart(*pair);
      Join(computation_, *pair);
    }
    pairs.erase(first, pairs.end());
  }

  Remark& About(const Pair& pair) {
    Remark& remark = context_.remarks.emplace_back();
    remark.subject = Remark::Subject::kCollective;
    remark.instruction = pair.start->name().substr(0, pair.start->name().size() - kStart.size());
    remark.source = computation_->module()->SourceOf(*pair.start);
    return remark;
  }

  // What runs between start and done, the longest first; what the estimates leave of the exchange after that.
  void ExplainStarted(const Pair& pair) {
    std::vector<std::pair<double, const Instruction*>> beside;
    double hidden = 0;
    bool is_between = false;
    for (const auto& instruction : computation_->instructions()) {
      if (instruction.get() == pair.done) break;
      if (is_between && !instruction->Has(hlo::kCollective) && !instruction->Has(hlo::kAsync)) {
        const double time = times_.kernels.Launched(*instruction);
        hidden += time;
        if (time > 0) beside.emplace_back(time, instruction.get());
      }
      is_between |= instruction.get() == pair.start;
    }
    std::stable_sort(beside.begin(), beside.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> names;
    for (size_t i = 0; i < beside.size() && i < kNamed; ++i) names.push_back("%" + beside[i].second->name());
    if (beside.size() > kNamed) names.push_back(fmt::format("{} more", beside.size() - kNamed));
    const double takes = times_.Of(*pair.start->called()->root());
    Remark& remark = About(pair);
    remark.choice = "started early";
    remark.reason = fmt::format("beside it run {}", fmt::join(names, ", "));
    remark.cost = fmt::format("about {:.3g} us on the link, of which {:.3g} stay exposed behind {:.3g} us of kernels",
                              takes, std::max(0.0, takes - hidden), hidden);
    if (context_.device.device_class == DeviceClass::kCpu)
      remark.cost += "; CPU devices of one host run it apart, for it is work of the same cores";
  }

  void ExplainApart(const Pair& pair) {
    Remark& remark = About(pair);
    remark.choice = "apart";
    remark.reason = fits_ ? "nothing that takes as long is left to run beside it"
                          : "an order that starts it early takes more memory than it may";
    remark.cost = fmt::format("about {:.3g} us, all of them exposed", times_.Of(*pair.start->called()->root()));
    if (!fits_) remark.advice = "a higher --memory_limit, or a smaller batch";
  }

  static constexpr size_t kNamed = 3;

  Computation* computation_;
  PassContext& context_;
  const KernelModel& kernels_;
  const int64_t memory_limit_;
  const Times& times_;
  CalledPeaks& peaks_;
  bool fits_ = true;  // into the memory
};

}  // namespace

bool OverlapCollectives::Run(hlo::Module& module, PassContext& context) {
  if (module.replica_count * module.num_partitions == 1) return false;
  // Devices of several kinds must come to the same collectives, whatever each of them measured.
  const bool mixed = module.frontend_attributes.contains(spmd::kMixedDevices);
  const Times times{TimeModel(context.device), mixed ? spmd::Link{} : spmd::LinkOf(context.device)};
  CalledPeaks peaks;
  bool changed = false;
  for (Computation* computation : module.ControlComputations()) {
    changed |= Overlapper(computation, context, times, peaks).Run();
  }
  return changed;
}

}  // namespace hlorun::passes
