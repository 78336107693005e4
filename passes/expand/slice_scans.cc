#include "passes/expand/slice_scans.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "passes/expand/reducer_identity.h"
#include "passes/expand/scan_function.h"
#include "passes/expand/slice_scan.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;
using hlo::Shape;
using Instructions = std::vector<Instruction*>;

namespace {

// Beyond so many instructions on the way nobody looks whether an array depends on another one's result.
constexpr size_t kMostLookedAt = 4096;
// Of those that may give another result of a scan. There are as many as there are scans of the same array.
constexpr size_t kMostTried = 16;
// Each result of a scan is looked at alone first, which of many arrays takes the square of their number.
constexpr size_t kManyArrays = 8;
// That fill vectors.
constexpr int64_t kManyColumns = 16;

class Replacement {
 public:
  // `at` is the root that the scan was found by.
  Replacement(const SliceScan& scan, Instruction* at)
      : scan_(scan), build_(at->parent(), at), module_(at->module()), values_(scan.elements) {
    build_.before = at;
    is_reverse_ = std::all_of(values_.begin(), values_.end(), [&](const Instruction* elements) {
      return elements->Is(Opcode::kReverse) && elements->dimensions() == std::vector{scan.dimension};
    });
    if (!is_reverse_) return;
    for (Instruction*& value : values_) value = value->operand(0);
  }

  // What the results are now; null where nothing asks for one.
  Instructions Run() {
    const std::optional<Opcode> opcode = ScanOpcode(scan_);
    const bool has_identity =
        opcode && !(opcode == Opcode::kMultiply && hlo::IsComplex(values_[0]->shape().element_type()));
    Instructions results = has_identity ? ByIdentity(*opcode) : ByTruths();
    for (size_t k = 0; k < results.size(); ++k) {
      const Instruction* old = scan_.results[k];
      if (old == nullptr) continue;
      if (is_reverse_) results[k] = build_.Reverse(results[k], {scan_.dimension});
      results[k]->mutable_shape().set_layout(old->shape().layout());
      results[k]->sharding = old->sharding;
    }
    return results;
  }

 private:
  Instructions ByIdentity(Opcode opcode) {
    const ElementType type = values_[0]->shape().element_type();
    // Sums are never -0: even and odd ones lie among zeros that have been added.
    const hlo::Literal initial =
        opcode == Opcode::kAdd ? hlo::Literal::Scalar(type, 0.0) : ReducerIdentity(opcode, type);
    Instruction* neutral = build_.Constant(initial);
    return {Cumulative({values_[0], neutral}, hlo::MakeScalarComputation(module_, opcode, type))};
  }

  Instructions ByTruths() {
    Instructions operands = {Truths()};
    operands.insert(operands.end(), values_.begin(), values_.end());
    operands.push_back(build_.ScalarConstant(ElementType::kPred, int64_t{0}));
    for (const Instruction* value : values_)
      operands.push_back(build_.ScalarConstant(value->shape().element_type(), int64_t{0}));
    Instruction* all = Cumulative(std::move(operands), Reducer());
    Instructions results;
    for (size_t k = 0; k < values_.size(); ++k)
      results.push_back(scan_.results[k] ? build_.GetTupleElement(all, static_cast<int64_t>(k) + 1) : nullptr);
    return results;
  }

  // As many as there are elements.
  Instruction* Truths() {
    const Shape& shape = values_[0]->shape();
    Instruction* truths = build_.Splat(Shape(ElementType::kPred, shape.dimensions()), int64_t{1});
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (!shape.is_dynamic_dimension(d)) continue;
      const hlo::attr::Dimensions along{{d}};
      Instruction* size = build_.Make(Opcode::kGetDimensionSize, {values_[0]}, along);
      truths = build_.Make(Opcode::kSetDimensionSize, {truths, size}, along);
    }
    return truths;
  }

  // The function where both sides are elements, else the side that is one.
  Computation* Reducer() {
    Computation* reducer = module_->AddComputation("scanned");
    hlo::Builder build(reducer);
    std::vector<Instructions> sides(2);
    Instructions are_elements;
    int64_t number = 0;
    for (Instructions& side : sides) {
      are_elements.push_back(reducer->AddParameter(number++, Shape::Scalar(ElementType::kPred), "is_element"));
      for (const Instruction* value : values_)
        side.push_back(reducer->AddParameter(number++, Shape::Scalar(value->shape().element_type()), "value"));
    }
    // In a window to the end what comes first is the later argument.
    const Instructions both = Combined(scan_, sides[is_reverse_ ? 1 : 0], sides[is_reverse_ ? 0 : 1], build);
    Instructions results = {build.Binary(Opcode::kOr, are_elements[0], are_elements[1])};
    for (size_t k = 0; k < both.size(); ++k) {
      Instruction* with_first = build.Select(are_elements[1], both[k], sides[0][k]);
      results.push_back(build.Select(are_elements[0], with_first, sides[1][k]));
    }
    reducer->set_root(build.Tuple(results));
    return reducer;
  }

  Instruction* Cumulative(Instructions operands, Computation* reducer) {
    const Shape& shape = values_[0]->shape();
    hlo::attr::Windowed windowed;
    windowed.window.resize(static_cast<size_t>(shape.rank()));
    hlo::WindowDimension& along = windowed.window[static_cast<size_t>(scan_.dimension)];
    along.size = shape.dimension(scan_.dimension);
    (is_reverse_ ? along.padding_high : along.padding_low) = along.size - 1;
    return build_.Make(Opcode::kReduceWindow, std::move(operands), windowed, {reducer});
  }

  const SliceScan& scan_;
  hlo::Builder build_;
  hlo::Module* module_;
  Instructions values_;  // in the order in which they lie
  bool is_reverse_ = false;
};

class Scans {
 public:
  explicit Scans(const Computation& computation) {
    const Instructions order = computation.PostOrder();
    if (std::none_of(order.begin(), order.end(), [](const Instruction* op) { return InterleavingOf(*op).has_value(); }))
      return;
    for (size_t i = 0; i < order.size(); ++i) places_[order[i]] = i;
    std::unordered_set<const Instruction*> dead;
    for (size_t i = order.size(); i-- > 0;) {
      Instruction* op = order[i];
      const auto is_dead = [&](const Instruction* user) { return dead.contains(user); };
      if (!op->IsRoot() && std::all_of(op->users().begin(), op->users().end(), is_dead) && !op->HasSideEffect()) {
        dead.insert(op);
        continue;
      }
      const std::optional<Interleaving> parts = InterleavingOf(*op);
      if (!parts) continue;
      by_elements_[parts->elements].push_back(op);
      roots_.push_back(op);
    }
  }

  bool Replace() {
    Find();
    for (auto& [root, scan] : found_) {
      if (now_.contains(root) || !Suits(scan)) continue;
      AddOtherResults(scan);
      const Instructions results = Replacement(scan, root).Run();
      for (size_t k = 0; k < results.size(); ++k) {
        if (results[k] == nullptr) continue;
        now_[scan.results[k]] = results[k];
        replaced_.push_back(scan.results[k]);
      }
    }
    // Only now: what one scan is of may be another's result.
    for (Instruction* old : replaced_) old->ReplaceAllUsesWith(now_.at(old));
    for (Instruction* old : replaced_) old->parent()->RemoveWithDeadOperands(old);
    return !replaced_.empty();
  }

 private:
  // The outermost level is seen first. In front come those of many arrays, which give the results of scans of some of
  // these too.
  void Find() {
    std::unordered_set<const Instruction*> inner;
    std::unordered_set<const Instruction*> of_many;  // arrays of scans of many, which give all of their results
    for (Instruction* root : roots_) {
      if (inner.contains(root) || of_many.contains(InterleavingOf(*root)->elements)) continue;
      std::optional<SliceScan> scan = SliceScanOf(root);
      if (!scan) continue;
      inner.insert(scan->inner.begin(), scan->inner.end());
      if (scan->elements.size() >= kManyArrays) of_many.insert(scan->elements.begin(), scan->elements.end());
      found_.emplace_back(root, *std::move(scan));
    }
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.second.elements.size() > b.second.elements.size(); });
  }

  // Whether no array is made of `result`; false where it may be.
  bool AreIndependentOf(const Instruction* result, const Instructions& elements) const {
    std::vector<const Instruction*> open(elements.begin(), elements.end());
    std::unordered_set<const Instruction*> seen;
    while (!open.empty()) {
      const Instruction* op = open.back();
      open.pop_back();
      if (op == result || seen.size() > kMostLookedAt) return false;
      // Results that came together wait for all that either is made of, whatever lies before them.
      if (const auto now = now_.find(op); now != now_.end())
        op = now->second;
      else if (!come_together_ && places_.contains(op) && places_.at(op) < places_.at(result))
        continue;
      if (!seen.insert(op).second) continue;
      open.insert(open.end(), op->operands().begin(), op->operands().end());
    }
    return true;
  }

  static bool Suits(const SliceScan& scan) {
    if (ScanOpcode(scan)) return true;
    return (!IsExpensive(scan) || HasColumns(scan)) && !RoundsAtEachStep(scan) && SeemsAssociative(scan);
  }

  // One element after the other takes the time of each: logaddexp along f32[1048576] 38 ms, 14 by the recursion.
  static bool HasColumns(const SliceScan& scan) {
    const hlo::Dims& dimensions = scan.elements[0]->shape().dimensions();
    return hlo::CheckedProduct(hlo::Dims(dimensions.begin() + scan.dimension + 1, dimensions.end())) >= kManyColumns;
  }

  void AddOtherResults(SliceScan& scan) {
    ScanResults known(scan);
    for (size_t k = 0; k < scan.elements.size(); ++k) {
      if (scan.results[k] != nullptr) continue;
      const auto others = by_elements_.find(scan.elements[k]);
      if (others == by_elements_.end()) continue;
      size_t tried = 0;
      for (Instruction* other : others->second) {
        if (now_.contains(other)) continue;
        if (++tried > kMostTried) break;
        if (!AreIndependentOf(other, scan.elements)) continue;
        if (!known.Add(other)) continue;
        come_together_ = true;
        break;
      }
    }
  }

  Instructions roots_;  // interleavings that are needed, users before operands
  std::unordered_map<const Instruction*, Instructions> by_elements_;
  std::unordered_map<const Instruction*, size_t> places_;  // operands have lower ones
  std::vector<std::pair<Instruction*, SliceScan>> found_;
  std::unordered_map<const Instruction*, Instruction*> now_;  // what takes the place of a result
  Instructions replaced_;
  bool come_together_ = false;  // results of one op, some
};

}  // namespace

bool SliceScans::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (Computation* computation : module.PostOrder()) changed |= Scans(*computation).Replace();
  if (changed) module.is_scheduled = false;
  return changed;
}

}  // namespace hlorun::passes
