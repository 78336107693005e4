#include "passes/expand/product_group.h"

#include <algorithm>
#include <map>
#include <optional>

#include "passes/spmd/factor_rule.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Set = std::unordered_set<const Instruction*>;

// Large: at least this part of the seed's elements.
constexpr int64_t kLargePart = 2;

// Ops that a part of a value takes along: their results' parts need the same parts of operands (by factor rules).
bool MayJoin(const Instruction& i) {
  if (!i.shape().IsArray() || !i.shape().IsStatic() || i.HasSideEffect()) return false;
  switch (i.opcode()) {
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kReduce:
    case Opcode::kDot:
    case Opcode::kClamp:
    case Opcode::kCopy:
    case Opcode::kIota: return true;
    case Opcode::kRng: return false;
    default: return i.Has(hlo::kElementwise);
  }
}

class Finder {
 public:
  explicit Finder(Instruction* seed)
      : seed_(seed), least_(seed->shape().ElementCount() / kLargePart), order_(seed->parent()->PostOrder()) {
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
  }

  std::vector<ProductGroup> Groups() {
    if (!CollectReach()) return {};
    KeepWhatLeadsOn();
    PullProducers();
    std::vector<Instruction*> results;
    for (Instruction* instruction : order_) {
      if (!all_.contains(instruction) || shared_.contains(instruction)) continue;
      const auto& users = instruction->users();
      const bool is_wanted =
          instruction->IsRoot() ||
          std::any_of(users.begin(), users.end(), [&](const Instruction* u) { return !all_.contains(u); });
      if (!is_wanted) continue;
      if (IsLarge(*instruction)) return {};
      results.push_back(instruction);
    }
    return SplitByDependence(results);
  }

 private:
  bool IsLarge(const Instruction& i) const { return i.shape().IsArray() && i.shape().ElementCount() >= least_; }

  // Forward from the seed, up to small products and what cannot be cut.
  bool CollectReach() {
    std::vector<Instruction*> work = {seed_};
    all_ = {seed_};
    while (!work.empty()) {
      Instruction* x = work.back();
      work.pop_back();
      if (x->Is(Opcode::kDot) && !IsLarge(*x)) continue;
      for (Instruction* user : x->users()) {
        if (!MayJoin(*user)) {
          if (IsLarge(*x)) return false;
          continue;
        }
        if (all_.insert(user).second) work.push_back(user);
      }
    }
    return true;
  }

  // Small values stay only where they lead to large ones, or come from one.
  void KeepWhatLeadsOn() {
    Set kept, leading;
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
      const Instruction* x = *at;
      if (!all_.contains(x)) continue;
      const auto& operands = x->operands();
      const bool from_large = std::any_of(operands.begin(), operands.end(),
                                          [&](const Instruction* o) { return all_.contains(o) && IsLarge(*o); });
      const bool ends = x->Is(Opcode::kDot) && !IsLarge(*x);
      const auto& users = x->users();
      const bool leads_on =
          !ends && std::any_of(users.begin(), users.end(), [&](const Instruction* u) { return leading.contains(u); });
      if (IsLarge(*x) || leads_on) leading.insert(x);
      if (IsLarge(*x) || leads_on || from_large) kept.insert(x);
    }
    all_ = std::move(kept);
  }

  // Large operands that only members use, and constants, are made where they are used.
  void PullProducers() {
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
      Instruction* x = *at;
      if (all_.contains(x) || x->users().empty() || x->IsRoot()) continue;
      const auto& users = x->users();
      const bool used_inside =
          std::any_of(users.begin(), users.end(), [&](const Instruction* u) { return all_.contains(u); });
      if (!used_inside) continue;
      const bool is_constant = x->Is(Opcode::kConstant) && x->shape().IsArray() && x->shape().ElementCount() == 1;
      const bool is_cheap = x->Is(Opcode::kBroadcast) || x->Is(Opcode::kIota);
      const bool only_inside =
          std::all_of(users.begin(), users.end(), [&](const Instruction* u) { return all_.contains(u); });
      // A copy of a constant or a cheap op stays outside for the others.
      if (is_constant || (IsLarge(*x) && MayJoin(*x) && (only_inside || is_cheap)))
        (only_inside ? all_ : shared_).insert(x);
    }
    all_.insert(shared_.begin(), shared_.end());
  }

  // Whether `from` needs one of `targets`, which all come after the seed.
  bool Needs(const Instruction* from, const Set& targets) const {
    std::vector<const Instruction*> work = {from};
    Set seen = {from};
    while (!work.empty()) {
      const Instruction* x = work.back();
      work.pop_back();
      for (const Instruction* operand : x->operands()) {
        if (targets.contains(operand)) return true;
        if (position_.at(operand) > position_.at(seed_) && seen.insert(operand).second) work.push_back(operand);
      }
    }
    return false;
  }

  ProductGroup GroupFor(const std::vector<Instruction*>& results) const {
    ProductGroup group{seed_, {}, results, {}, {}};
    std::vector<const Instruction*> work(results.begin(), results.end());
    group.members_set.insert(results.begin(), results.end());
    while (!work.empty()) {
      const Instruction* x = work.back();
      work.pop_back();
      for (const Instruction* operand : x->operands()) {
        if (all_.contains(operand) && group.members_set.insert(operand).second) work.push_back(operand);
      }
    }
    Set outside;
    for (Instruction* instruction : order_) {
      if (!group.Has(instruction)) continue;
      group.members.push_back(instruction);
      for (Instruction* operand : instruction->operands()) {
        if (!group.Has(operand) && outside.insert(operand).second) group.operands.push_back(operand);
      }
    }
    return group;
  }

  std::vector<ProductGroup> SplitByDependence(std::vector<Instruction*> results) const {
    std::vector<ProductGroup> groups;
    while (!results.empty()) {
      const Set open(results.begin(), results.end());
      std::vector<Instruction*> ready, later;
      for (Instruction* r : results) {
        // Members are computed anew; what lies outside of them must be there.
        const ProductGroup alone = GroupFor({r});
        const bool waits = std::any_of(alone.operands.begin(), alone.operands.end(),
                                       [&](const Instruction* o) { return open.contains(o) || Needs(o, open); });
        (waits ? later : ready).push_back(r);
      }
      if (ready.empty()) return {};
      groups.push_back(GroupFor(ready));
      if (!groups.back().Has(seed_)) return {};
      results = std::move(later);
    }
    return groups;
  }

  Instruction* seed_;
  int64_t least_;
  std::vector<Instruction*> order_;
  std::unordered_map<const Instruction*, size_t> position_;
  Set all_, shared_;
};

// Dimensions of values that are the same loop, by union of sets.
class Loops {
 public:
  explicit Loops(const ProductGroup& group) {
    for (const Instruction* member : group.members) Join(*member);
  }

  std::optional<TileLoop> Of(const Instruction* value, int64_t dimension) {
    const int root = Find(Node(value, dimension));
    TileLoop loop{value->shape().dimension(dimension), {}};
    for (const auto& [place, node] : nodes_) {
      if (Find(node) != root) continue;
      if (blocked_.contains(node) || !loop.dimension_of.emplace(place.first, place.second).second) return std::nullopt;
    }
    return loop;
  }

 private:
  int Node(const Instruction* value, int64_t dimension) {
    const auto [at, is_new] = nodes_.emplace(std::pair(value, dimension), static_cast<int>(parents_.size()));
    if (is_new) parents_.push_back(at->second);
    return at->second;
  }
  int Find(int node) {
    while (parents_[static_cast<size_t>(node)] != node) node = parents_[static_cast<size_t>(node)];
    return node;
  }

  void Join(const Instruction& member) {
    if (member.Is(Opcode::kConstant)) return;
    const spmd::FactorRule rule = spmd::FactorRuleOf(member);
    std::map<int, int> node_of;  // factor: a dimension that has it
    const auto visit = [&](const Instruction* value, const spmd::FactorRule::Tensor& tensor) {
      for (int64_t d = 0; d < value->shape().rank(); ++d) {
        const int node = Node(value, d);
        const auto& factors = tensor[static_cast<size_t>(d)];
        const bool is_one = factors.size() == 1 && rule.is_known;
        const bool may_cut =
            is_one && rule.factors[static_cast<size_t>(factors[0])].kind == spmd::FactorKind::kParallel;
        if (!may_cut) blocked_.insert(node);
        for (const int factor : factors) {
          const auto [at, is_new] = node_of.emplace(factor, node);
          if (!is_new) parents_[static_cast<size_t>(Find(node))] = Find(at->second);
        }
      }
    };
    for (int64_t i = 0; i < member.operand_count(); ++i)
      visit(member.operand(i), rule.operands[static_cast<size_t>(i)]);
    visit(&member, rule.results[0]);
  }

  std::map<std::pair<const Instruction*, int64_t>, int> nodes_;
  std::vector<int> parents_;
  std::unordered_set<int> blocked_;
};

}  // namespace

std::vector<ProductGroup> ProductGroupsOf(Instruction* seed) { return Finder(seed).Groups(); }

std::vector<TileLoop> TileLoopsOf(const ProductGroup& group) {
  Loops loops(group);
  std::vector<TileLoop> found;
  for (int64_t d = 0; d < group.seed->shape().rank(); ++d) {
    std::optional<TileLoop> loop = loops.Of(group.seed, d);
    const auto has = [&](const Instruction* result) { return loop->dimension_of.contains(result); };
    if (loop && std::all_of(group.results.begin(), group.results.end(), has)) found.push_back(std::move(*loop));
  }
  return found;
}

}  // namespace hlorun::passes
