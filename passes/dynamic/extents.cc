#include "passes/dynamic/extents.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "hlo/builder.h"
#include "hlo/cumulative_window.h"
#include "hlo/elementwise.h"
#include "hlo/error.h"
#include "passes/dynamic/dimension_remarks.h"
#include "passes/dynamic/signature.h"
#include "passes/expand/reducer_identity.h"
#include "passes/fusion/hero.h"
#include "passes/kernel_model.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::Contains;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

using Why = std::shared_ptr<const std::string>;

// How far one dimension is needed: not at all (yet), up to a size, or all of it.
struct Need {
  enum class Kind : uint8_t { kNone, kSized, kAll };
  Kind kind = Kind::kNone;
  Instruction* size = nullptr;  // of the executed computation
  int64_t mul = 1, div = 1, add = 0;
  Why why;  // of kAll; null until it is known

  static Need All(Why why = nullptr) { return {Kind::kAll, nullptr, 1, 1, 0, std::move(why)}; }
  static Need Upto(Instruction* size) { return size == nullptr ? All() : Need{Kind::kSized, size, 1, 1, 0, nullptr}; }
  bool operator==(const Need& other) const {
    return kind == other.kind && size == other.size && mul == other.mul && div == other.div && add == other.add;
  }
  void Join(const Need& other) {
    if (other.kind == Kind::kNone || *this == other || kind == Kind::kAll) return;
    if (kind == Kind::kSized && other.kind == Kind::kSized) {
      *this = All(std::make_shared<std::string>("its readers need it to different sizes"));
    } else {
      *this = other;
    }
  }
};
using Needs = std::vector<Need>;  // one a dimension

Needs AllOf(const Shape& shape, const Why& why = nullptr) {
  return Needs(static_cast<size_t>(shape.rank()), Need::All(why));
}

// "%name (opcode at FILE:LINE) reads it anywhere"
Why ReadsAll(const Instruction& op) {
  const std::string source = op.module()->SourceOf(op);
  return std::make_shared<std::string>(fmt::format("%{} ({}{}{}) may read all of it", op.name(),
                                                   hlo::OpcodeName(op.opcode()), source.empty() ? "" : " at ", source));
}

// What a rule says of one operand.
struct OperandNeeds {
  const Instruction& op;
  const Needs& result;  // of an array result; all leaves of a multi-output reduce have the same
  int64_t operand;
  const std::function<Instruction*(const Instruction*)>&
      resolve;  // a scalar, as an instruction of the executed computation

  const Shape& shape() const { return op.operand(operand)->shape(); }
  Needs All() const { return AllOf(shape()); }
};

Needs ThroughBroadcast(const OperandNeeds& at) {
  Needs needs;
  for (const int64_t d : at.op.dimensions()) needs.push_back(at.result[static_cast<size_t>(d)]);
  for (size_t i = 0; i < needs.size(); ++i) {
    if (at.shape().dimensions()[i] != at.op.shape().dimension(at.op.dimensions()[i])) needs[i] = Need::All();
  }
  return needs;
}

Needs ThroughTranspose(const OperandNeeds& at) {
  Needs needs(at.result.size());
  for (size_t i = 0; i < needs.size(); ++i) needs[static_cast<size_t>(at.op.dimensions()[i])] = at.result[i];
  return needs;
}

// Groups of dimensions with equal element counts on both sides; only a group's slowest dimension may be needed in part.
Needs ThroughReshape(const OperandNeeds& at) {
  const hlo::Dims &in = at.shape().dimensions(), &out = at.op.shape().dimensions();
  Needs needs = at.All();
  size_t i = 0, o = 0;
  while (i < in.size() && o < out.size()) {
    const size_t first_in = i, first_out = o;
    int64_t x = in[i++], y = out[o++];
    while (x != y) {
      if (x < y && i < in.size())
        x *= in[i++];
      else if (y < x && o < out.size())
        y *= out[o++];
      else
        return at.All();
    }
    // Leading ones are needed anyway.
    size_t slow_in = first_in, slow_out = first_out;
    while (slow_in + 1 < i && in[slow_in] == 1) ++slow_in;
    while (slow_out + 1 < o && out[slow_out] == 1) ++slow_out;
    Need need = at.result[slow_out];
    for (size_t d = slow_out + 1; d < o && need.kind == Need::Kind::kSized; ++d) {
      if (at.result[d].kind == Need::Kind::kNone) need = Need::All();
    }
    if (need.kind == Need::Kind::kSized) {
      // Elements of the group up to need * (elements behind one step of the result), in steps of the operand.
      int64_t rest_out = 1, rest_in = 1;
      for (size_t d = slow_out + 1; d < o; ++d) rest_out *= out[d];
      for (size_t d = slow_in + 1; d < i; ++d) rest_in *= in[d];
      if (rest_in != rest_out && need.add != 0) need = Need::All();
      if (rest_out % rest_in == 0) {
        need.mul *= rest_out / rest_in;
      } else if (rest_in % rest_out == 0) {
        need.div *= rest_in / rest_out;
      } else {
        need = Need::All();
      }
    }
    if (need.kind == Need::Kind::kSized) needs[slow_in] = need;
  }
  return needs;
}

Needs ThroughReduce(const OperandNeeds& at) {
  if (at.operand >= at.op.operand_count() / 2) return at.All();
  Needs needs = at.All();
  size_t next = 0;
  for (int64_t d = 0; d < at.shape().rank(); ++d) {
    if (!Contains(at.op.dimensions(), d)) needs[static_cast<size_t>(d)] = at.result[next++];
  }
  return needs;
}

Needs ThroughDot(const OperandNeeds& at) {
  const auto& dot = at.op.As<hlo::attr::Dot>();
  const bool is_lhs = at.operand == 0;
  const auto& batch = is_lhs ? dot.lhs_batch : dot.rhs_batch;
  const auto& contracting = is_lhs ? dot.lhs_contracting : dot.rhs_contracting;
  Needs needs = at.All();
  for (size_t i = 0; i < batch.size(); ++i) needs[static_cast<size_t>(batch[i])] = at.result[i];
  const int64_t lhs_free = at.op.operand(0)->shape().rank() - static_cast<int64_t>(batch.size() + contracting.size());
  auto next = batch.size() + static_cast<size_t>(is_lhs ? 0 : lhs_free);
  for (int64_t d = 0; d < at.shape().rank(); ++d) {
    if (!Contains(batch, d) && !Contains(contracting, d)) needs[static_cast<size_t>(d)] = at.result[next++];
  }
  return needs;
}

// How far windows read where their results are needed as `need` says: the last one ends at (size - 1) * stride +
// dilated window - low.
Need ThroughWindow(Need need, const hlo::WindowDimension& w) {
  if (need.kind != Need::Kind::kSized || w.base_dilation != 1 || need.div != 1) return Need::All();
  need.add = (need.add - 1) * w.stride + (w.size - 1) * w.window_dilation + 1 - w.padding_low;
  need.mul *= w.stride;
  return need;
}

Needs ThroughConvolution(const OperandNeeds& at) {
  const auto& conv = at.op.As<hlo::attr::Convolution>();
  const hlo::attr::ConvolutionDimensions& n = conv.dimensions;
  Needs needs = at.All();
  if (at.operand != 0) return needs;
  if (conv.batch_group_count == 1)
    needs[static_cast<size_t>(n.input_batch)] = at.result[static_cast<size_t>(n.output_batch)];
  for (size_t i = 0; i < conv.window.size(); ++i) {
    const Need& need = at.result[static_cast<size_t>(n.output_spatial[i])];
    needs[static_cast<size_t>(n.input_spatial[i])] = ThroughWindow(need, conv.window[i]);
  }
  return needs;
}

Needs ThroughReduceWindow(const OperandNeeds& at) {
  Needs needs = at.All();
  if (at.operand >= at.op.operand_count() / 2) return needs;
  const hlo::Window& window = at.op.As<hlo::attr::Windowed>().window;
  for (size_t d = 0; d < needs.size(); ++d) needs[d] = ThroughWindow(at.result[d], window[d]);
  return needs;
}

Needs ThroughSlice(const OperandNeeds& at) {
  const auto& slice = at.op.As<hlo::attr::Slice>();
  Needs needs = at.result;
  for (size_t d = 0; d < needs.size(); ++d) {
    if (needs[d].kind != Need::Kind::kSized) continue;
    if (needs[d].div != 1) {
      needs[d] = Need::All();
      continue;
    }
    needs[d].add = needs[d].add * slice.strides[d] + slice.starts[d];
    needs[d].mul *= slice.strides[d];
  }
  return needs;
}

Needs ThroughPad(const OperandNeeds& at) {
  if (at.operand != 0) return at.All();
  const auto& padding = at.op.As<hlo::attr::Pad>().padding;
  Needs needs = at.result;
  for (size_t d = 0; d < needs.size(); ++d) {
    if (needs[d].kind != Need::Kind::kSized) continue;
    if (padding[d].interior != 0)
      needs[d] = Need::All();
    else
      needs[d].add -= padding[d].low;
  }
  return needs;
}

// Whole along the dimensions that the op moves elements in, as the result in the others.
Needs AllAlong(const OperandNeeds& at, const std::vector<int64_t>& moved) {
  if (at.shape().rank() != static_cast<int64_t>(at.result.size())) return at.All();
  Needs needs = at.result;
  for (const int64_t d : moved) needs[static_cast<size_t>(d)] = Need::All();
  return needs;
}

Needs ThroughConcatenate(const OperandNeeds& at) { return AllAlong(at, at.op.dimensions()); }
Needs ThroughReverse(const OperandNeeds& at) { return AllAlong(at, at.op.dimensions()); }

Needs ThroughGather(const OperandNeeds& at) {
  const auto& gather = at.op.As<hlo::attr::Gather>();
  Needs needs = at.All();
  std::vector<size_t> batch;
  for (size_t d = 0; d < at.result.size(); ++d) {
    if (!Contains(gather.offset_dims, static_cast<int64_t>(d))) batch.push_back(d);
  }
  if (at.operand == 1) {
    size_t next = 0;
    for (int64_t d = 0; d < at.shape().rank(); ++d) {
      if (d != gather.index_vector_dim) needs[static_cast<size_t>(d)] = at.result[batch[next++]];
    }
  }
  return needs;
}

using NeedsRule = Needs (*)(const OperandNeeds&);
NeedsRule RuleOf(Opcode opcode) {
  static const std::map<Opcode, NeedsRule> kRules = {
      {Opcode::kBitcast, ThroughReshape},
      {Opcode::kBroadcast, ThroughBroadcast},
      {Opcode::kConcatenate, ThroughConcatenate},
      {Opcode::kConvolution, ThroughConvolution},
      {Opcode::kDot, ThroughDot},
      {Opcode::kGather, ThroughGather},
      {Opcode::kPad, ThroughPad},
      {Opcode::kReduce, ThroughReduce},
      {Opcode::kReduceWindow, ThroughReduceWindow},
      {Opcode::kReshape, ThroughReshape},
      {Opcode::kReverse, ThroughReverse},
      {Opcode::kSlice, ThroughSlice},
      {Opcode::kTranspose, ThroughTranspose},
  };
  const auto found = kRules.find(opcode);
  return found == kRules.end() ? nullptr : found->second;
}

// select(iota(d) < n, x, y): of x nothing is needed from n on.
Needs ThroughElementwise(const OperandNeeds& at) {
  if (at.shape().rank() != static_cast<int64_t>(at.result.size())) return at.All();
  Needs needs = at.result;
  if (!at.op.Is(Opcode::kSelect) || at.operand != 1) return needs;
  const Instruction* fill = at.op.operand(2);
  if (fill->Is(Opcode::kBroadcast)) fill = fill->operand(0);
  if (!fill->IsConstant() || !fill->shape().IsScalar()) return needs;
  for (size_t d = 0; d < needs.size(); ++d) {
    const Instruction* size = FilledFrom(at.op, static_cast<int64_t>(d), fill->literal());
    Instruction* resolved = size == nullptr ? nullptr : at.resolve(size);
    // The smaller of the two is needed: where they differ, the mask's, which is there for this.
    if (resolved != nullptr && needs[d].kind != Need::Kind::kNone) needs[d] = Need::Upto(resolved);
  }
  return needs;
}

Needs OperandNeedsOf(const OperandNeeds& at) {
  if (!at.shape().IsArray()) return {};
  if (hlo::IsElementwise(at.op)) return ThroughElementwise(at);
  const NeedsRule rule = RuleOf(at.op.opcode());
  return rule == nullptr ? at.All() : rule(at);
}

// What is needed of the leaves of each instruction of one computation.
class NeedTable {
 public:
  void Join(const Instruction* instruction, size_t leaf, const Needs& needs) {
    std::vector<Needs>& all = Of(instruction);
    for (size_t d = 0; d < all[leaf].size(); ++d) all[leaf][d].Join(needs[d]);
  }
  void JoinAll(const Instruction* instruction, const Why& why) {
    const std::vector<Shape> leaves = hlo::FlattenShape(instruction->shape());
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) Join(instruction, leaf, AllOf(leaves[leaf], why));
  }
  void JoinOperands(const Instruction& op) {
    const Why why = ReadsAll(op);
    for (const Instruction* operand : op.operands()) JoinAll(operand, why);
  }
  std::vector<Needs>& Of(const Instruction* instruction) {
    auto [found, added] = table_.try_emplace(instruction);
    if (added) {
      for (const Shape& leaf : hlo::FlattenShape(instruction->shape()))
        found->second.emplace_back(static_cast<size_t>(leaf.rank()));
    }
    return found->second;
  }

 private:
  std::unordered_map<const Instruction*, std::vector<Needs>> table_;
};

class ComputationWork {
 public:
  ComputationWork(Computation* computation, const PassContext& context, WholeDimensions& whole)
      : computation_(computation), context_(context), whole_(whole) {
    order_ = computation->PostOrder();
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
  }

  // `sizes`: of the entry's results; none for other computations.
  bool Run(const std::vector<DimensionOfLeaf>& sizes) {
    Seed(sizes);
    bool changed = false;
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) changed |= Visit(*it);
    return changed;
  }

 private:
  // The instruction and its leaf that leaf `index` of the root is.
  void SeedLeaf(const Instruction* root, const hlo::ShapeIndex& index, const Needs& needs) {
    size_t depth = 0;
    while (depth < index.size() && root->Is(Opcode::kTuple)) {
      result_tuples_.insert(root);
      root = root->operand(index[depth++]);
    }
    if (depth == index.size() && root->shape().IsArray()) return table_.Join(root, 0, needs);
    table_.JoinAll(root, ReadsAll(*root));
  }

  void Seed(const std::vector<DimensionOfLeaf>& sizes) {
    Instruction* root = computation_->root();
    const bool is_entry = computation_ == computation_->module()->entry();
    const Why is_result =
        std::make_shared<std::string>(is_entry ? "it is a result of static size" : "a loop or branch carries it whole");
    if (sizes.empty() || !root->Is(Opcode::kTuple)) return table_.JoinAll(root, is_result);
    int64_t leaf = 0;
    hlo::ForEachLeaf(root->shape(), [&](const hlo::ShapeIndex& index, const Shape& shape) {
      Needs needs = AllOf(shape, is_result);
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i].leaf == leaf)
          needs[static_cast<size_t>(sizes[i].dimension)] = Need::Upto(root->operand(static_cast<int64_t>(i) + 1));
      }
      SeedLeaf(root, index, needs);
      ++leaf;
    });
  }

  bool Visit(Instruction* op) {
    if (op->Is(Opcode::kTuple)) {
      // What the result's tuples hold is needed as far as the results are.
      const bool only_holds_results = result_tuples_.contains(op) &&
                                      std::all_of(op->users().begin(), op->users().end(), [&](const Instruction* user) {
                                        return result_tuples_.contains(user);
                                      });
      if (!op->IsRoot() && !only_holds_results) table_.JoinOperands(*op);
      for (const Instruction* operand : op->operands()) {
        if (!operand->shape().IsArray() && !operand->Is(Opcode::kTuple)) table_.JoinAll(operand, ReadsAll(*op));
      }
      return false;
    }
    if (op->Is(Opcode::kGetTupleElement)) {
      const bool by_leaf = op->operand(0)->Is(Opcode::kFusion) || op->operand(0)->Is(Opcode::kReduceWindow);
      if (by_leaf && op->shape().IsArray()) {
        table_.Join(op->operand(0), static_cast<size_t>(op->tuple_index()), table_.Of(op)[0]);
      } else {
        table_.JoinOperands(*op);
      }
      return false;
    }
    const KernelKind kind = HeroOf(*op).kind;
    const bool has_loops = kind == KernelKind::kLoop || kind == KernelKind::kReduction || kind == KernelKind::kRow ||
                           kind == KernelKind::kDot || kind == KernelKind::kConvolution ||
                           kind == KernelKind::kReduceWindow;
    if (!has_loops && !op->Is(Opcode::kBitcast)) {
      table_.JoinOperands(*op);
      Note(op, op);
      return false;
    }
    KeepEarlier(op);
    if (kind == KernelKind::kDot) FindContraction(op);
    if (kind == KernelKind::kReduceWindow) FindNeutralEnd(op);
    PassOn(op);
    return op->Is(Opcode::kBitcast) ? false : Attach(op);
  }

  // Sizes that are known only after `op` cannot bound it.
  void KeepEarlier(const Instruction* op) {
    for (Needs& leaf : table_.Of(op)) {
      for (Need& need : leaf) {
        if (need.kind == Need::Kind::kSized && position_.at(need.size) >= position_.at(op)) {
          need = Need::All(std::make_shared<std::string>("its size is known only after it"));
        }
      }
    }
  }

  // Why each dimension of `op`, which became `executed`, is computed whole.
  void Note(const Instruction* op, const Instruction* executed) {
    std::vector<std::vector<std::string>>& whole = whole_[executed];
    for (const Needs& leaf : table_.Of(op)) {
      std::vector<std::string>& reasons = whole.emplace_back();
      for (const Need& need : leaf) reasons.push_back(need.why == nullptr ? "" : *need.why);
    }
  }

  // The contraction's size, when both operands are zero beyond it and the kernel stops there.
  void FindContraction(const Instruction* op) {
    contraction_ = {};
    if (!context_.kernels.BoundsContraction(*op)) return;
    const Instruction* dot = HeroOf(*op).instruction;
    const auto& attributes = dot->As<hlo::attr::Dot>();
    if (attributes.lhs_contracting.size() != 1) return;
    const Need lhs = ZeroFrom(Outer(op, dot->operand(0)), attributes.lhs_contracting[0]);
    const Need rhs = ZeroFrom(Outer(op, dot->operand(1)), attributes.rhs_contracting[0]);
    if (lhs.kind != Need::Kind::kSized || !(lhs == rhs) || position_.at(lhs.size) >= position_.at(op)) return;
    contraction_ = lhs;
  }

  // From the end of its array to the array's size, a reversed cumulative op meets neutral elements only.
  void FindNeutralEnd(const Instruction* op) {
    const Instruction* reduce = HeroOf(*op).instruction;
    const std::optional<hlo::CumulativeWindow> window = CumulativeWindowOf(*reduce);
    if (!window || !window->reverse || !context_.kernels.BoundsContraction(*op)) return;
    const int64_t count = reduce->operand_count() / 2;
    const std::optional<Opcode> opcode = count == 1 ? hlo::ReducerOpcode(*reduce->called()) : std::nullopt;
    Need all;
    for (int64_t i = 0; i < count; ++i) {
      // Of a reducer of its own the initial value is neutral.
      const Instruction* initial = reduce->operand(count + i);
      if (!initial->IsConstant()) initial = Outer(op, initial);
      if (!opcode && (initial == nullptr || !initial->IsConstant())) return;
      const hlo::Literal neutral =
          opcode ? ReducerIdentity(*opcode, reduce->operand(0)->shape().element_type()) : initial->literal();
      const Need end = FilledBeyond(Outer(op, reduce->operand(i)), window->dimension, neutral);
      if (end.kind != Need::Kind::kSized || position_.at(end.size) >= position_.at(op)) return;
      if (i > 0 && !(end == all)) return;
      all = end;
    }
    contraction_ = all;
  }

  // The executed instruction that `inner` of `op`'s computation stands for; null when it is computed inside.
  static Instruction* Outer(const Instruction* op, const Instruction* inner) {
    if (!op->Is(Opcode::kFusion)) return const_cast<Instruction*>(inner);
    return inner->Is(Opcode::kParameter) ? op->operand(inner->parameter_number()) : nullptr;
  }

  // From where on an executed array is zero along a dimension.
  Need ZeroFrom(const Instruction* x, int64_t d) const {
    if (x == nullptr || !x->shape().IsArray()) return {};
    return FilledBeyond(x, d, hlo::Literal::Scalar(x->shape().element_type(), int64_t{0}));
  }

  // From where on an executed array is `fill` along a dimension.
  Need FilledBeyond(const Instruction* x, int64_t d, const hlo::Literal& fill) const {
    if (x == nullptr || !x->shape().IsArray()) return {};
    if (x->Is(Opcode::kBitcast) || x->Is(Opcode::kReshape)) {
      const Shape& from = x->operand(0)->shape();
      // The same dimension with the same ones before and behind it.
      int64_t before = 1, count = 1;
      for (int64_t i = 0; i < d; ++i) before *= x->shape().dimension(i);
      for (int64_t i = 0; i < from.rank(); count *= from.dimension(i++)) {
        if (count == before && from.dimension(i) == x->shape().dimension(d))
          return FilledBeyond(x->operand(0), i, fill);
      }
      return {};
    }
    const Instruction* fusion = x;
    const Instruction* value = x;
    if (x->Is(Opcode::kGetTupleElement) && x->operand(0)->Is(Opcode::kFusion)) {
      fusion = x->operand(0);
      value = fusion->called()->root()->operand(x->tuple_index());
    } else if (x->Is(Opcode::kFusion)) {
      value = x->called()->root();
    }
    int64_t along = d;
    while (value->Is(Opcode::kTranspose)) {
      along = value->dimensions()[static_cast<size_t>(along)];
      value = value->operand(0);
    }
    const Instruction* size = FilledFrom(*value, along, fill);
    Instruction* outer = size == nullptr               ? nullptr
                         : fusion->Is(Opcode::kFusion) ? Outer(fusion, size)
                                                       : const_cast<Instruction*>(size);
    return outer == nullptr ? Need{} : Need::Upto(outer);
  }

  // What `op` needs of its operands.
  void PassOn(const Instruction* op) {
    if (!op->Is(Opcode::kFusion)) {
      const std::function<Instruction*(const Instruction*)> self = [](const Instruction* x) {
        return const_cast<Instruction*>(x);
      };
      PassOnOne(*op, table_.Of(op), table_, self);
      return;
    }
    const Computation& inside = *op->called();
    NeedTable inner;
    const std::vector<Needs>& results = table_.Of(op);
    const Instruction* root = inside.root();
    if (root->Is(Opcode::kTuple)) {
      for (size_t i = 0; i < results.size(); ++i) inner.Join(root->operand(static_cast<int64_t>(i)), 0, results[i]);
    } else {
      for (size_t leaf = 0; leaf < results.size(); ++leaf) inner.Join(root, leaf, results[leaf]);
    }
    const std::function<Instruction*(const Instruction*)> resolve = [&](const Instruction* x) { return Outer(op, x); };
    const std::vector<Instruction*> order = inside.PostOrder();
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if ((*it)->Is(Opcode::kParameter)) {
        const Instruction* operand = op->operand((*it)->parameter_number());
        if (operand->shape().IsArray())
          table_.Join(operand, 0, inner.Of(*it)[0]);
        else
          table_.JoinAll(operand, ReadsAll(*op));
      } else if ((*it)->Is(Opcode::kGetTupleElement) && (*it)->operand(0)->Is(Opcode::kReduceWindow)) {
        inner.Join((*it)->operand(0), static_cast<size_t>((*it)->tuple_index()), inner.Of(*it)[0]);
      } else if (!(*it)->Is(Opcode::kTuple)) {
        PassOnOne(**it, inner.Of(*it), inner, resolve);
      }
    }
  }

  void PassOnOne(const Instruction& op, const std::vector<Needs>& results, NeedTable& table,
                 const std::function<Instruction*(const Instruction*)>& resolve) {
    Needs joined = results.empty() ? Needs{} : results[0];
    for (const Needs& leaf : results) {
      for (size_t d = 0; d < joined.size() && d < leaf.size(); ++d) joined[d].Join(leaf[d]);
    }
    const Why reads_all = ReadsAll(op);
    for (int64_t i = 0; i < op.operand_count(); ++i) {
      const Instruction* operand = op.operand(i);
      if (!operand->shape().IsArray()) {
        table.JoinAll(operand, reads_all);
        continue;
      }
      Needs needs = OperandNeedsOf({op, joined, i, resolve});
      if (op.Is(Opcode::kDot) && contraction_.kind == Need::Kind::kSized) {
        const auto& dot = op.As<hlo::attr::Dot>();
        needs[static_cast<size_t>(i == 0 ? dot.lhs_contracting[0] : dot.rhs_contracting[0])] = contraction_;
      } else if (op.Is(Opcode::kReduceWindow) && i < op.operand_count() / 2 &&
                 contraction_.kind == Need::Kind::kSized) {
        needs[static_cast<size_t>(CumulativeWindowOf(op)->dimension)] = contraction_;
      }
      for (Need& need : needs) {
        if (need.kind == Need::Kind::kAll && need.why == nullptr) need.why = reads_all;
      }
      table.Join(operand, 0, needs);
    }
  }

  // A leaf that nobody reads may end where one of the others does.
  static const Need& NeedOrOthers(const std::vector<Needs>& needs, size_t leaf, size_t d) {
    if (needs[leaf][d].kind != Need::Kind::kNone) return needs[leaf][d];
    for (const Needs& other : needs) {
      if (other.size() == needs[leaf].size() && other[d].kind == Need::Kind::kSized) return other[d];
    }
    return needs[leaf][d];
  }

  // Gives `op` its extents and the sizes they read; what is no fusion becomes one.
  bool Attach(Instruction* op) {
    KernelExtents extents;
    std::vector<Instruction*> sizes;
    const auto number = [&](const Need& need) {
      const auto found = std::find(sizes.begin(), sizes.end(), need.size);
      if (found == sizes.end()) sizes.push_back(need.size);
      const auto at = std::find(sizes.begin(), sizes.end(), need.size) - sizes.begin();
      return OperandExtent{op->operand_count() + at, need.mul, need.div, need.add};
    };
    const std::vector<Needs>& needs = table_.Of(op);
    for (size_t leaf = 0; leaf < needs.size(); ++leaf) {
      for (size_t d = 0; d < needs[leaf].size(); ++d) {
        const Need& need = NeedOrOthers(needs, leaf, d);
        if (need.kind != Need::Kind::kSized) continue;
        extents.results.push_back({static_cast<int64_t>(leaf), static_cast<int64_t>(d), number(need)});
      }
    }
    if (contraction_.kind == Need::Kind::kSized) extents.contraction = number(contraction_);
    contraction_ = {};
    if (extents.empty()) {
      Note(op, op);
      return false;
    }
    Instruction* fusion = op->Is(Opcode::kFusion) ? op : Wrap(op);
    Note(op, fusion);
    for (Instruction* size : sizes) {
      fusion->called()->AddParameter(fusion->operand_count(), size->shape(), "extent");
      fusion->AppendOperand(size);
    }
    SetExtents(*fusion, extents);
    return true;
  }

  Instruction* Wrap(Instruction* op) {
    Computation* body = op->module()->AddComputation("sized_" + op->name());
    std::vector<Instruction*> inner;
    for (int64_t i = 0; i < op->operand_count(); ++i)
      inner.push_back(body->AddParameter(i, op->operand(i)->shape(), fmt::format("p{}", i)));
    body->set_root(body->Add(op->CloneWithOperands(op->shape(), std::move(inner))));
    auto fusion = std::make_unique<Instruction>(Opcode::kFusion, op->shape(), op->operands(), hlo::attr::Fusion{},
                                                std::vector<Computation*>{body});
    fusion->set_name(op->name() + "_sized");
    fusion->metadata = op->metadata;
    Instruction* added = computation_->Add(std::move(fusion), op);
    position_[added] = position_.at(op);
    computation_->Replace(op, added);
    return added;
  }

  Computation* computation_;
  const PassContext& context_;
  WholeDimensions& whole_;
  std::vector<Instruction*> order_;
  std::unordered_map<const Instruction*, size_t> position_;
  NeedTable table_;
  std::unordered_set<const Instruction*> result_tuples_;
  Need contraction_;
};

}  // namespace

bool BoundWork::Run(hlo::Module& module, PassContext& context) {
  const SizeSignature signature = SignatureOf(module);
  if (signature.empty()) return false;
  bool changed = false;
  WholeDimensions whole;
  for (Computation* computation : module.ControlComputations()) {
    const bool is_entry = computation == module.entry();
    const bool here =
        ComputationWork(computation, context, whole).Run(is_entry ? signature.results : std::vector<DimensionOfLeaf>{});
    if (here) computation->SetOrder(computation->PostOrder());
    changed |= here;
  }
  ExplainDimensions(module, signature, whole, context.remarks);
  return changed;
}

}  // namespace hlorun::passes
