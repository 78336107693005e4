#include "passes/expand/reduce_in_products.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "hlo/builder.h"
#include "hlo/elementwise.h"
#include "hlo/exchanged_dimensions.h"
#include "passes/dynamic/signature.h"
#include "passes/expand/reducer_identity.h"
#include "passes/expand/selecting_reducer.h"
#include "passes/kernel_model.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Contains;
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// A result that the second cache holds is read again from there. A GPU's is far from its units, and may be larger than
// any matrix: one of some size is not stored, whatever the cache (not measured on a GPU).
constexpr int64_t kCachesOfResult = 2, kGpuResultBytes = 4 << 20;
// Groups of rows at least, so that reducing them costs little beside it; and a result's elements for one of an operand,
// which other roles than its own may make the product copy.
constexpr int64_t kFewestGroups = 2, kGrowth = 1;
// Of elementwise ops between a product and its reduction.
constexpr size_t kMostFinishing = 64;

// What is between a product and its reduction, all of the product's dimensions.
struct Finished {
  Instruction* dot = nullptr;
  std::vector<Instruction*> values;  // users before operands, the dot and arrays in memory among them
};

// What a product's kernel finishes its result with: computed at each place, or found there in memory.
bool MayFinish(const Instruction& op) {
  if (hlo::IsComplex(op.shape().element_type())) return false;
  return hlo::IsElementwise(op) || op.Is(Opcode::kDot) || op.Is(Opcode::kBroadcast) || op.Is(Opcode::kIota) ||
         op.Is(Opcode::kParameter) || op.Is(Opcode::kConstant);
}

// Whether nothing outside of `reduce` needs the product, nor what is made of it.
bool IsOnlyReduced(const Finished& finished, const Instruction& reduce) {
  std::unordered_set<const Instruction*> made_of_dot = {finished.dot};
  const auto is_made = [&](const Instruction* x) { return made_of_dot.contains(x); };
  for (bool grows = true; std::exchange(grows, false);) {
    for (const Instruction* x : finished.values) {
      if (!is_made(x) && std::any_of(x->operands().begin(), x->operands().end(), is_made))
        grows |= made_of_dot.insert(x).second;
    }
  }
  return std::all_of(made_of_dot.begin(), made_of_dot.end(), [&](const Instruction* x) {
    return !x->IsRoot() && x->control_successors().empty() && x->control_predecessors().empty() &&
           std::all_of(x->users().begin(), x->users().end(),
                       [&](const Instruction* user) { return user == &reduce || is_made(user); });
  });
}

// One product, with what finishes it; else no dot.
Finished FinishedBefore(const Instruction& reduce) {
  const Shape& shape = reduce.operand(0)->shape();
  std::vector<Instruction*> work;
  std::unordered_set<const Instruction*> seen;
  const auto add = [&](Instruction* x) {
    if (x->shape().IsArray() && x->shape().SameDimensions(shape) && seen.insert(x).second) work.push_back(x);
  };
  for (int64_t i = 0; i < reduce.operand_count() / 2; ++i) add(reduce.operand(i));
  Finished finished;
  while (!work.empty()) {
    Instruction* x = work.back();
    work.pop_back();
    finished.values.push_back(x);
    if (!MayFinish(*x) || finished.values.size() > kMostFinishing) return {};
    if (x->Is(Opcode::kDot) && std::exchange(finished.dot, x) != nullptr) return {};
    if (!hlo::IsElementwise(*x)) continue;
    for (Instruction* operand : x->operands()) add(operand);
  }
  if (finished.dot == nullptr || finished.dot->shape().rank() < 2 || finished.dot->shape().rank() > 3) return {};
  return IsOnlyReduced(finished, reduce) ? finished : Finished{};
}

// Whether all values can be made with their last two dimensions exchanged: memory has none of them.
bool MayExchange(const Finished& finished) {
  return std::all_of(finished.values.begin(), finished.values.end(), [](const Instruction* x) {
    if (!x->Is(Opcode::kBroadcast)) return !x->Is(Opcode::kParameter) && !x->Is(Opcode::kConstant);
    const std::vector<int64_t> places = hlo::ExchangedDimensions(*x);
    return std::is_sorted(places.begin(), places.end());
  });
}

// Values with their last two dimensions exchanged, made of what they are made of, where MayExchange.
class Exchange {
 public:
  Exchange(hlo::Builder& build, const Finished& finished) : build_(build), finished_(finished) {}

  Instruction* Of(Instruction* x) {
    if (const auto known = done_.find(x); known != done_.end()) return known->second;
    Instruction* exchanged = Make(x);
    return done_[x] = exchanged;
  }

 private:
  Instruction* Make(Instruction* x) {
    if (x == finished_.dot) return Dot(*x);
    if (x->Is(Opcode::kBroadcast))
      return build_.Broadcast(x->operand(0), Exchanged(x->shape()), hlo::ExchangedDimensions(*x));
    if (x->Is(Opcode::kIota))
      return build_.Iota(Shape(x->shape().element_type(), Exchanged(x->shape())), hlo::ExchangedDimensions(*x)[0]);
    std::vector<Instruction*> operands;
    for (Instruction* operand : x->operands()) {
      const bool is_scalar = operand->shape().rank() == 0;  // of select and clamp
      operands.push_back(is_scalar ? operand : Of(operand));
    }
    const Shape shape(x->shape().element_type(), Exchanged(x->shape()));
    Instruction* clone = x->parent()->Add(x->CloneWithOperands(shape, std::move(operands)), build_.before);
    clone->sharding.reset();
    return clone;
  }

  Instruction* Dot(const Instruction& dot) {
    hlo::attr::Dot attributes = dot.As<hlo::attr::Dot>();
    std::swap(attributes.lhs_batch, attributes.rhs_batch);
    std::swap(attributes.lhs_contracting, attributes.rhs_contracting);
    std::reverse(attributes.precision.begin(), attributes.precision.end());
    Instruction* exchanged =
        build_.Dot(dot.operand(1), dot.operand(0), std::move(attributes), dot.shape().element_type());
    exchanged->frontend_attributes = dot.frontend_attributes;
    exchanged->backend_config = dot.backend_config;
    return exchanged;
  }

  static Dims Exchanged(const Shape& shape) {
    Dims dimensions = shape.dimensions();
    std::swap(dimensions[dimensions.size() - 1], dimensions[dimensions.size() - 2]);
    return dimensions;
  }

  hlo::Builder& build_;
  const Finished& finished_;
  std::unordered_map<Instruction*, Instruction*> done_;
};

// What groups start from; empty where that may not be done more than once.
std::vector<Instruction*> StartsOfGroups(const Instruction& reduce, hlo::Builder& build) {
  const int64_t count = reduce.operand_count() / 2;
  if (count == 1) {
    const auto identity = ReducerIdentity(*reduce.called(), reduce.operand(0)->shape().element_type());
    return identity ? std::vector<Instruction*>{build.Constant(*identity)} : std::vector<Instruction*>{};
  }
  // Groups of rows by columns are another order than rows by columns, which ties may tell.
  if (reduce.dimensions().size() > 1 || !SelectsByOrder(*reduce.called())) return {};
  return {reduce.operands().begin() + count, reduce.operands().end()};
}

class Rewriter {
 public:
  Rewriter(Instruction* reduce, const PassContext& context)
      : reduce_(reduce), context_(context), build_(reduce->parent(), reduce) {
    build_.before = reduce;
  }

  bool Run() {
    const Finished finished = FinishedBefore(*reduce_);
    if (finished.dot == nullptr || !IsLarge(*finished.dot)) return false;
    const int64_t rank = finished.dot->shape().rank();
    const bool reduces_rows = Contains(reduce_->dimensions(), rank - 2);
    if (!reduces_rows &&
        (!Contains(reduce_->dimensions(), rank - 1) || !Grows(*finished.dot) || !MayExchange(finished))) {
      return false;
    }
    const std::vector<Instruction*> starts = StartsOfGroups(*reduce_, build_);
    if (starts.empty()) return false;
    const int64_t count = reduce_->operand_count() / 2;
    std::vector<Instruction*> values(reduce_->operands().begin(), reduce_->operands().begin() + count);
    std::vector<int64_t> dimensions = reduce_->dimensions();
    const Instruction* dot = finished.dot;
    if (!reduces_rows) {
      Exchange exchange(build_, finished);
      for (Instruction*& value : values) value = exchange.Of(value);
      dot = exchange.Of(finished.dot);
      std::replace(dimensions.begin(), dimensions.end(), rank - 1, rank - 2);
    }
    if (Reduce(values, starts, *dot, std::move(dimensions))) return true;
    for (Instruction* unused : values) RemoveDead(unused);
    for (Instruction* unused : starts) RemoveDead(unused);
    return false;
  }

 private:
  bool IsLarge(const Instruction& dot) const {
    const int64_t in_caches = kCachesOfResult * context_.device.l2_bytes;
    const bool is_gpu = context_.device.device_class == DeviceClass::kGpu;
    return dot.shape().ByteSize() >= (is_gpu ? std::min(in_caches, kGpuResultBytes) : in_caches);
  }
  static bool Grows(const Instruction& dot) {
    return std::all_of(dot.operands().begin(), dot.operands().end(), [&](const Instruction* operand) {
      return dot.shape().ElementCount() >= kGrowth * operand->shape().ElementCount();
    });
  }

  static void RemoveDead(Instruction* unused) {
    if (unused->IsDead() && !unused->Is(Opcode::kParameter)) unused->parent()->RemoveWithDeadOperands(unused);
  }

  // Rows of `values` by groups, then the groups.
  bool Reduce(const std::vector<Instruction*>& values, const std::vector<Instruction*>& starts, const Instruction& dot,
              std::vector<int64_t> dimensions) {
    const auto of_rows = static_cast<size_t>(dot.shape().rank() - 2);
    const int64_t rows = dot.shape().dimensions()[of_rows], together = context_.kernels.RowsFinishedTogether(dot);
    if (together == 0 || rows < kFewestGroups * together) return false;
    hlo::Window window(of_rows + 2);
    window[of_rows].size = window[of_rows].stride = together;
    window[of_rows].padding_high = (together - rows % together) % together;
    const size_t count = values.size();
    std::vector<Instruction*> operands = values;
    operands.insert(operands.end(), starts.begin(), starts.end());
    Instruction* groups =
        build_.Make(Opcode::kReduceWindow, operands, hlo::attr::Windowed{window}, {reduce_->called()});
    std::vector<Instruction*> partial = {groups};
    if (count > 1) {
      partial.clear();
      for (size_t i = 0; i < count; ++i) partial.push_back(build_.GetTupleElement(groups, static_cast<int64_t>(i)));
    }
    const std::vector<Instruction*> initial(reduce_->operands().begin() + static_cast<int64_t>(count),
                                            reduce_->operands().end());
    reduce_->parent()->Replace(reduce_, build_.Reduce(partial, initial, std::move(dimensions), reduce_->called()));
    return true;
  }

  Instruction* reduce_;
  const PassContext& context_;
  hlo::Builder build_;
};

}  // namespace

bool ReduceInProducts::Run(hlo::Module& module, PassContext& context) {
  // Kernels of products whose sizes vary end at the sizes.
  if (!SignatureOf(module).empty()) return false;
  bool changed = false;
  for (Computation* computation : module.ControlComputations()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (instruction->Is(Opcode::kReduce) && !instruction->dimensions().empty())
        changed |= Rewriter(instruction, context).Run();
    }
  }
  return changed;
}

}  // namespace hlorun::passes
