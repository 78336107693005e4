#include "passes/layout/channels_last.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "hlo/permutation.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

// The two orders of an image's dimensions.
class Orders {
 public:
  explicit Orders(int64_t rank) : rank_(rank), to_last_(static_cast<size_t>(rank)), to_first_(to_last_.size()) {
    std::iota(to_last_.begin(), to_last_.end(), 0);
    std::rotate(to_last_.begin() + 1, to_last_.begin() + 2, to_last_.end());
    for (size_t i = 0; i < to_last_.size(); ++i) to_first_[static_cast<size_t>(to_last_[i])] = static_cast<int64_t>(i);
  }

  int64_t rank() const { return rank_; }
  // As transposes have them: of an array with channels first, and back.
  const std::vector<int64_t>& to_last() const { return to_last_; }
  const std::vector<int64_t>& to_first() const { return to_first_; }
  // Where a dimension of the array with channels first is in the other order.
  int64_t Last(int64_t d) const { return to_first_[static_cast<size_t>(d)]; }
  std::vector<int64_t> Last(std::vector<int64_t> dimensions) const {
    for (int64_t& d : dimensions) d = Last(d);
    return dimensions;
  }
  // Of a list that names dimensions in ascending order.
  std::vector<int64_t> LastInOrder(std::vector<int64_t> dimensions) const {
    dimensions = Last(std::move(dimensions));
    std::sort(dimensions.begin(), dimensions.end());
    return dimensions;
  }
  // A list with an entry for each dimension.
  template <typename T>
  std::vector<T> Moved(const std::vector<T>& list) const {
    std::vector<T> moved;
    moved.reserve(to_last_.size());
    for (int64_t d : to_last_) moved.push_back(list[static_cast<size_t>(d)]);
    return moved;
  }

 private:
  int64_t rank_;
  std::vector<int64_t> to_last_, to_first_;
};

// Whether an operand has the dimensions' order of the op's result: the others are numbers and places.
bool IsOrdered(const Instruction& op, int64_t operand) {
  switch (op.opcode()) {
    case Opcode::kGather:
    case Opcode::kPad:
    case Opcode::kReduceWindow:
    case Opcode::kSlice: return operand == 0;
    case Opcode::kScatter: return operand != 1;
    case Opcode::kSelectAndScatter: return operand < 2;
    default: return true;
  }
}

// Whether the dimensions that an index picks from, `picked`, are those where the index's own stand in the other array,
// and the others keep their places: pixels of images. The index's dimensions go by their order, which changes where
// channels are picked together with what stands behind them.
bool PicksInPlace(const std::vector<int64_t>& picked, const std::vector<int64_t>& kept, int64_t rank) {
  if (hlo::Contains(picked, 1) && picked.back() > 1) return false;
  std::vector<int64_t> rest;
  for (int64_t d = 0; d < rank; ++d) {
    if (!hlo::Contains(picked, d)) rest.push_back(d);
  }
  return rest == kept;
}

bool PicksInPlace(const Instruction& op, int64_t rank) {
  if (op.operand(0)->shape().rank() != rank) return false;
  if (op.Is(Opcode::kGather)) {
    const auto& gather = op.As<hlo::attr::Gather>();
    return gather.operand_batching_dims.empty() && PicksInPlace(gather.collapsed_slice_dims, gather.offset_dims, rank);
  }
  const auto& scatter = op.As<hlo::attr::Scatter>();
  return op.operand_count() == 3 && op.operand(2)->shape().rank() == rank && scatter.input_batching_dims.empty() &&
         PicksInPlace(scatter.inserted_window_dims, scatter.update_window_dims, rank);
}

// Of equal elements the first in a window is selected, in the order of its dimensions.
bool WindowsKeepOrder(const Instruction& select_and_scatter) {
  const hlo::Window& window = select_and_scatter.As<hlo::attr::Windowed>().window;
  const auto is_flat = [](const hlo::WindowDimension& w) { return w.size == 1; };
  return is_flat(window[1]) || std::all_of(window.begin() + 2, window.end(), is_flat);
}

bool KeepsOrder(const Instruction& op, int64_t rank) {
  if (!op.shape().IsArray() || op.shape().rank() != rank || !op.shape().IsStatic()) return false;
  if (!op.control_predecessors().empty() || !op.control_successors().empty()) return false;
  switch (op.opcode()) {
    case Opcode::kClamp:
    case Opcode::kConcatenate:
    case Opcode::kPad:
    case Opcode::kSlice: return true;
    case Opcode::kSelectAndScatter: return WindowsKeepOrder(op);
    case Opcode::kReduceWindow: return op.operand_count() == 2;
    case Opcode::kGather:
    case Opcode::kScatter: return PicksInPlace(op, rank);
    default: return op.Has(hlo::kElementwise) && op.operand_count() > 0;
  }
}

// Broadcasts, which can as well be made in the other order, and numbers.
bool IsFree(const Instruction& operand, int64_t rank) {
  return operand.shape().rank() != rank || operand.IsConstant() || operand.Is(Opcode::kBroadcast) ||
         operand.Is(Opcode::kIota);
}

double BytesOf(const Instruction& array) { return static_cast<double>(array.shape().ByteSize()); }

// Whether `user` reads dimensions of `value` by their number alone, in whatever order they lie.
bool ReadsAnyOrder(const Instruction& user, const Instruction& value, const Orders& orders) {
  const auto keeps_rest = [&](const std::vector<int64_t>& removed) {
    std::vector<int64_t> rest;
    for (int64_t d = 0; d < orders.rank(); ++d) {
      if (!hlo::Contains(removed, d)) rest.push_back(orders.Last(d));
    }
    return std::is_sorted(rest.begin(), rest.end());
  };
  if (user.Is(Opcode::kReduce)) return user.operand_count() == 2 && keeps_rest(user.dimensions());
  if (!user.Is(Opcode::kDot) || user.operand_count() != 2 || user.operand(0) == user.operand(1)) return false;
  const auto& dot = user.As<hlo::attr::Dot>();
  const bool is_lhs = user.operand(0) == &value;
  std::vector<int64_t> removed = is_lhs ? dot.lhs_contracting : dot.rhs_contracting;
  const std::vector<int64_t>& batch = is_lhs ? dot.lhs_batch : dot.rhs_batch;
  removed.insert(removed.end(), batch.begin(), batch.end());
  return keeps_rest(removed);
}

// Ops of one computation that keep the order of dimensions, in connected groups.
class Groups {
 public:
  Groups(const Computation* computation, const Orders& orders) : orders_(orders) {
    const std::vector<Instruction*> order = computation->PostOrder();
    for (Instruction* op : order) {
      if (!KeepsOrder(*op, orders.rank())) continue;
      group_of_[op] = members_.size();
      members_.push_back({op});
      for (int64_t i = 0; i < op->operand_count(); ++i) {
        if (!IsOrdered(*op, i)) continue;
        if (group_of_.contains(op->operand(i))) Merge(group_of_.at(op->operand(i)), group_of_.at(op));
        // Ops that read one transpose change together or not at all.
        if (!op->operand(i)->Is(Opcode::kTranspose)) continue;
        const auto& users = op->operand(i)->users();
        const auto other = std::find_if(users.begin(), users.end(), [&](const Instruction* user) {
          return user != op && group_of_.contains(user);
        });
        if (other != users.end()) Merge(group_of_.at(*other), group_of_.at(op));
      }
    }
    // Operands before users.
    for (std::vector<Instruction*>& members : members_) members.clear();
    for (Instruction* op : order) {
      if (const auto found = group_of_.find(op); found != group_of_.end()) members_[found->second].push_back(op);
    }
  }

  bool Run() {
    bool changed = false;
    for (const std::vector<Instruction*>& members : members_) {
      if (members.empty() || BytesSpared(members) <= 0) continue;
      Change(members);
      changed = true;
    }
    return changed;
  }

 private:
  void Merge(size_t from, size_t into) {
    if (from == into) return;
    if (members_[from].size() > members_[into].size()) std::swap(from, into);
    for (Instruction* member : members_[from]) {
      group_of_[member] = into;
      members_[into].push_back(member);
    }
    members_[from].clear();
  }

  // Of transposes: those that are there and those that would be.
  double BytesSpared(const std::vector<Instruction*>& members) const {
    double spared = 0;
    const size_t group = group_of_.at(members[0]);
    const auto is_member = [&](const Instruction* op) {
      const auto found = group_of_.find(op);
      return found != group_of_.end() && found->second == group;
    };
    std::unordered_set<const Instruction*> seen;
    for (const Instruction* member : members) {
      for (int64_t i = 0; i < member->operand_count(); ++i) {
        if (!IsOrdered(*member, i)) continue;
        const Instruction* operand = member->operand(i);
        if (IsFree(*operand, orders_.rank()) || is_member(operand) || !seen.insert(operand).second) continue;
        if (!operand->Is(Opcode::kTranspose)) {
          spared -= BytesOf(*operand);
        } else if (hlo::IsIdentity(hlo::Composed(operand->dimensions(), orders_.to_last())) &&
                   std::all_of(operand->users().begin(), operand->users().end(), is_member)) {
          spared += BytesOf(*operand);
        }
      }
      bool goes_first = member->IsRoot(), went_last = false;
      for (const Instruction* user : member->users()) {
        if (user->Is(Opcode::kTranspose)) {
          went_last |= user->dimensions() == orders_.to_last();
        } else {
          goes_first |= !is_member(user) && !ReadsAnyOrder(*user, *member, orders_);
        }
      }
      spared += (went_last ? BytesOf(*member) : 0) - (goes_first ? BytesOf(*member) : 0);
    }
    return spared;
  }

  void Change(const std::vector<Instruction*>& members) {
    last_.clear();
    for (Instruction* member : members) last_[member] = ChannelsLastOf(member);
    for (Instruction* member : members) HandOver(member);
  }

  Instruction* OperandOf(Instruction* operand, hlo::Builder& build) {
    const auto known = last_.find(operand);
    if (known != last_.end()) return known->second;
    const hlo::Shape& shape = operand->shape();
    if (shape.rank() != orders_.rank()) return operand;
    const Dims dimensions = orders_.Moved(shape.dimensions());
    if (operand->Is(Opcode::kBroadcast))
      return build.Broadcast(operand->operand(0), dimensions, orders_.Last(operand->dimensions()));
    if (operand->Is(Opcode::kIota))
      return build.Iota({shape.element_type(), dimensions}, orders_.Last(operand->dimensions()[0]));
    return Transposed(operand, orders_.to_last(), build);
  }

  // One transpose for two, none where they cancel.
  static Instruction* Transposed(Instruction* x, const std::vector<int64_t>& permutation, hlo::Builder& build) {
    if (!x->Is(Opcode::kTranspose)) return build.Transpose(x, permutation);
    const std::vector<int64_t> both = hlo::Composed(x->dimensions(), permutation);
    return hlo::IsIdentity(both) ? x->operand(0) : build.Transpose(x->operand(0), both);
  }

  Instruction* ChannelsLastOf(Instruction* op) {
    hlo::Builder build(op->parent(), op);
    build.before = op;
    std::vector<Instruction*> operands = op->operands();
    for (int64_t i = 0; i < op->operand_count(); ++i) {
      if (!IsOrdered(*op, i)) continue;
      Instruction*& operand = operands[static_cast<size_t>(i)];
      operand = OperandOf(operand, build);
    }
    switch (op->opcode()) {
      case Opcode::kConcatenate: return build.Concatenate(operands, orders_.Last(op->dimensions()[0]));
      case Opcode::kGather: {
        hlo::attr::Gather gather = op->As<hlo::attr::Gather>();
        gather.offset_dims = orders_.LastInOrder(gather.offset_dims);
        gather.collapsed_slice_dims = orders_.LastInOrder(gather.collapsed_slice_dims);
        gather.start_index_map = orders_.Last(gather.start_index_map);
        gather.slice_sizes = orders_.Moved(gather.slice_sizes);
        return build.Make(op->opcode(), operands, std::move(gather));
      }
      case Opcode::kScatter: {
        hlo::attr::Scatter scatter = op->As<hlo::attr::Scatter>();
        scatter.update_window_dims = orders_.LastInOrder(scatter.update_window_dims);
        scatter.inserted_window_dims = orders_.LastInOrder(scatter.inserted_window_dims);
        scatter.scatter_dims_to_operand_dims = orders_.Last(scatter.scatter_dims_to_operand_dims);
        return build.Make(op->opcode(), operands, std::move(scatter), op->called_computations());
      }
      case Opcode::kPad: return build.Pad(operands[0], operands[1], orders_.Moved(op->As<hlo::attr::Pad>().padding));
      case Opcode::kSlice: {
        const auto& slice = op->As<hlo::attr::Slice>();
        return build.Slice(operands[0], orders_.Moved(slice.starts), orders_.Moved(slice.limits),
                           orders_.Moved(slice.strides));
      }
      case Opcode::kReduceWindow:
      case Opcode::kSelectAndScatter:
        return build.Make(op->opcode(), operands,
                          hlo::attr::Windowed{orders_.Moved(op->As<hlo::attr::Windowed>().window)},
                          op->called_computations());
      default: {
        const hlo::Shape shape(op->shape().element_type(), orders_.Moved(op->shape().dimensions()));
        Instruction* copy = op->parent()->Add(op->CloneWithOperands(shape, operands), op);
        copy->sharding.reset();  // it tiles the dimensions of the other order
        return copy;
      }
    }
  }

  // What reads `member` from outside of the group reads its successor.
  void HandOver(Instruction* member) {
    Instruction* last = last_.at(member);
    const std::vector<Instruction*> users = member->users();
    bool is_wanted = member->IsRoot();
    for (Instruction* user : users) {
      if (last_.contains(user)) continue;
      hlo::Builder build(user->parent(), user);
      build.before = user;
      Instruction* successor = nullptr;
      if (user->Is(Opcode::kTranspose)) {
        const std::vector<int64_t> both = hlo::Composed(orders_.to_first(), user->dimensions());
        successor = hlo::IsIdentity(both) ? last : build.Transpose(last, both);
      } else if (ReadsAnyOrder(*user, *member, orders_)) {
        successor = Reading(user, member, last, build);
      }
      is_wanted |= successor == nullptr;
      if (successor != nullptr) user->ReplaceAllUsesWith(successor);
    }
    if (!is_wanted) return;
    hlo::Builder build(member->parent(), member);
    build.before = member;
    member->ReplaceAllUsesWith(build.Transpose(last, orders_.to_first()));
  }

  Instruction* Reading(Instruction* user, const Instruction* member, Instruction* last, hlo::Builder& build) const {
    if (user->Is(Opcode::kReduce))
      return build.Reduce({last}, {user->operand(1)}, orders_.Last(user->dimensions()), user->called());
    hlo::attr::Dot dot = user->As<hlo::attr::Dot>();
    const bool is_lhs = user->operand(0) == member;
    for (std::vector<int64_t>* role :
         {is_lhs ? &dot.lhs_batch : &dot.rhs_batch, is_lhs ? &dot.lhs_contracting : &dot.rhs_contracting})
      *role = orders_.Last(*role);
    Instruction* product = build.Dot(is_lhs ? last : user->operand(0), is_lhs ? user->operand(1) : last, dot,
                                     user->shape().element_type());
    product->frontend_attributes = user->frontend_attributes;
    product->backend_config = user->backend_config;
    return product;
  }

  const Orders& orders_;
  std::vector<std::vector<Instruction*>> members_;
  std::unordered_map<const Instruction*, size_t> group_of_;
  std::unordered_map<const Instruction*, Instruction*> last_;  // of the group that changes
};

}  // namespace

bool ChannelsLast::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (Computation* computation : module.ControlComputations()) {
    for (int64_t rank = 4; rank <= 5; ++rank) changed |= Groups(computation, Orders(rank)).Run();
  }
  return changed;
}

}  // namespace hlorun::passes
