#include "passes/dynamic/resize_parameters.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/callers.h"
#include "hlo/error.h"
#include "hlo/shape_inference.h"
#include "hlo/verifier.h"
#include "passes/spmd/factor_rule.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

Shape WithDimension(const Shape& shape, int64_t& leaf, int64_t d, int64_t size) {
  if (shape.IsTuple()) {
    std::vector<Shape> elements;
    for (const Shape& element : shape.tuple_shapes()) elements.push_back(WithDimension(element, leaf, d, size));
    return Shape::Tuple(std::move(elements));
  }
  Shape resized = shape;
  if (leaf-- == 0) resized.mutable_dimensions()[static_cast<size_t>(d)] = size;
  return resized;
}

// New shapes, spread until nothing changes any more.
class Spread {
 public:
  explicit Spread(hlo::Module& module) : module_(module), callers_(hlo::CallersOf(module)) {}

  void Resize(const DimensionOfLeaf& at, int64_t size) {
    int64_t leaf = at.leaf;
    for (Instruction* parameter : module_.entry()->parameters()) {
      const int64_t count = hlo::LeafCount(parameter->shape());
      if (leaf < count) return Set(parameter, leaf, at.dimension, size);
      leaf -= count;
    }
  }

  void Run() {
    while (!work_.empty()) {
      Instruction* next = work_.front();
      work_.pop_front();
      Visit(next);
    }
  }

  const std::unordered_map<Instruction*, Shape>& shapes() const { return shapes_; }
  const Instruction* conflict() const { return conflict_; }

 private:
  const Shape& ShapeOf(Instruction* i) const {
    const auto found = shapes_.find(i);
    return found == shapes_.end() ? i->shape() : found->second;
  }
  Shape LeafOf(Instruction* i, int64_t leaf) const { return hlo::FlattenShape(ShapeOf(i))[static_cast<size_t>(leaf)]; }

  void Set(Instruction* i, int64_t leaf, int64_t d, int64_t size) {
    const int64_t now = LeafOf(i, leaf).dimension(d);
    if (now == size) return;
    const int64_t original = hlo::FlattenShape(i->shape())[static_cast<size_t>(leaf)].dimension(d);
    if (now != original) {
      if (conflict_ == nullptr) conflict_ = i;
      return;
    }
    int64_t countdown = leaf;
    shapes_[i] = WithDimension(ShapeOf(i), countdown, d, size);
    work_.push_back(i);
    for (Instruction* user : i->users()) work_.push_back(user);
    const auto caller = callers_.find(i->parent());
    if (caller != callers_.end() && (i->Is(Opcode::kParameter) || i->IsRoot())) work_.push_back(caller->second);
  }

  // Leaves [first, first + count) of `a` have the dimensions of those of `b` from `second` on, both ways.
  void Link(Instruction* a, int64_t first, Instruction* b, int64_t second, int64_t count) {
    for (int64_t leaf = 0; leaf < count; ++leaf) {
      const Shape x = LeafOf(a, first + leaf), y = LeafOf(b, second + leaf);
      for (int64_t d = 0; x.IsArray() && d < x.rank(); ++d) {
        if (x.dimension(d) == y.dimension(d)) continue;
        const Shape original = hlo::FlattenShape(a->shape())[static_cast<size_t>(first + leaf)];
        if (x.dimension(d) != original.dimension(d)) {
          Set(b, second + leaf, d, x.dimension(d));
        } else {
          Set(a, first + leaf, d, y.dimension(d));
        }
      }
    }
  }
  void LinkAll(Instruction* a, Instruction* b) { Link(a, 0, b, 0, hlo::LeafCount(a->shape())); }

  void Visit(Instruction* i) {
    switch (i->opcode()) {
      case Opcode::kTuple: {
        int64_t leaf = 0;
        for (Instruction* operand : i->operands()) {
          Link(operand, 0, i, leaf, hlo::LeafCount(operand->shape()));
          leaf += hlo::LeafCount(operand->shape());
        }
        return;
      }
      case Opcode::kGetTupleElement:
        return Link(i->operand(0), hlo::LeafNumber(i->operand(0)->shape(), {{i->tuple_index()}}), i, 0,
                    hlo::LeafCount(i->shape()));
      case Opcode::kWhile:
        for (Instruction* other : {i->operand(0), i->while_body()->parameter(0), i->while_condition()->parameter(0),
                                   i->while_body()->root()}) {
          LinkAll(i, other);
        }
        return;
      case Opcode::kConditional:
        for (size_t b = 0; b < i->called_computations().size(); ++b) {
          const auto branch = static_cast<int64_t>(b);
          LinkAll(i->operand(branch + 1), i->called(branch)->parameter(0));
          LinkAll(i, i->called(branch)->root());
        }
        return;
      case Opcode::kScan: VisitScan(i); return Infer(i);
      case Opcode::kSetDimensionSize: return LinkAll(i->operand(0), i);
      case Opcode::kParameter:
      case Opcode::kGetDimensionSize: return;
      default: VisitFactors(i); Infer(i);
    }
  }

  // All inputs have as many slices.
  void VisitScan(Instruction* i) {
    const auto& scan = i->As<hlo::attr::Scan>();
    const int64_t along = scan.scan_dimension, old = i->operand(0)->shape().dimension(along);
    int64_t length = old;
    const int64_t inputs = i->operand_count() - scan.num_carries;
    for (int64_t input = 0; input < inputs; ++input) {
      const int64_t now = LeafOf(i->operand(input), 0).dimension(along);
      if (now != old) length = now;
    }
    for (int64_t input = 0; input < inputs; ++input) Set(i->operand(input), 0, along, length);
  }

  void VisitFactors(Instruction* i) {
    const spmd::FactorRule rule = spmd::FactorRuleOf(*i);
    if (!rule.is_known) return;
    std::vector<int64_t> sizes;
    for (const auto& factor : rule.factors) sizes.push_back(factor.size);
    const auto is_shared = [&](int f) {
      const spmd::FactorKind kind = rule.factors[static_cast<size_t>(f)].kind;
      return kind != spmd::FactorKind::kWindow && kind != spmd::FactorKind::kSelected;
    };
    const auto each_dimension = [&](const auto& visit) {
      for (size_t o = 0; o < rule.operands.size(); ++o) {
        for (size_t d = 0; d < rule.operands[o].size(); ++d)
          visit(i->operand(static_cast<int64_t>(o)), 0, static_cast<int64_t>(d), rule.operands[o][d]);
      }
      for (size_t r = 0; r < rule.results.size(); ++r) {
        for (size_t d = 0; d < rule.results[r].size(); ++d)
          visit(i, static_cast<int64_t>(r), static_cast<int64_t>(d), rule.results[r][d]);
      }
    };
    // A changed dimension changes its factor; of several, the major one.
    each_dimension([&](Instruction* tensor, int64_t leaf, int64_t d, const std::vector<int>& factors) {
      if (factors.empty() || !is_shared(factors[0])) return;
      const int64_t now = LeafOf(tensor, leaf).dimension(d);
      if (now == hlo::FlattenShape(tensor->shape())[static_cast<size_t>(leaf)].dimension(d)) return;
      int64_t others = 1;
      for (size_t f = 1; f < factors.size(); ++f) others *= sizes[static_cast<size_t>(factors[f])];
      if (now % others == 0) sizes[static_cast<size_t>(factors[0])] = now / others;
    });
    each_dimension([&](Instruction* tensor, int64_t leaf, int64_t d, const std::vector<int>& factors) {
      int64_t product = 1;
      for (const int f : factors) {
        if (!is_shared(f)) return;
        product *= sizes[static_cast<size_t>(f)];
      }
      if (!factors.empty()) Set(tensor, leaf, d, product);
    });
  }

  // Results that windows, padding and concatenation give.
  void Infer(Instruction* i) {
    constexpr Opcode kInferred[] = {Opcode::kConvolution, Opcode::kReduceWindow, Opcode::kPad, Opcode::kConcatenate,
                                    Opcode::kScan};
    if (std::find(std::begin(kInferred), std::end(kInferred), i->opcode()) == std::end(kInferred)) return;
    std::vector<std::unique_ptr<Instruction>> stands;
    std::vector<Instruction*> operands;
    for (Instruction* operand : i->operands()) {
      stands.push_back(std::make_unique<Instruction>(Opcode::kParameter, ShapeOf(operand), std::vector<Instruction*>{},
                                                     hlo::attr::Parameter{}));
      operands.push_back(stands.back().get());
    }
    const std::vector<Shape> leaves = hlo::FlattenShape(
        hlo::InferShape(i->opcode(), operands, i->attributes(), i->called_computations(), i->shape()));
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      for (int64_t d = 0; d < leaves[leaf].rank(); ++d)
        Set(i, static_cast<int64_t>(leaf), d, leaves[leaf].dimension(d));
    }
  }

  hlo::Module& module_;
  std::unordered_map<Instruction*, Shape> shapes_;
  const hlo::Callers callers_;
  std::deque<Instruction*> work_;
  const Instruction* conflict_ = nullptr;
};

// The leaf's number among all leaves of the entry's parameters, and its changed dimension.
std::vector<DimensionOfLeaf> ChangedParameters(hlo::Module& module, const Spread& spread) {
  std::vector<DimensionOfLeaf> changed;
  int64_t first = 0;
  for (Instruction* parameter : module.entry()->parameters()) {
    const auto found = spread.shapes().find(parameter);
    const std::vector<Shape> old = hlo::FlattenShape(parameter->shape());
    const std::vector<Shape> now = found == spread.shapes().end() ? old : hlo::FlattenShape(found->second);
    for (size_t leaf = 0; leaf < old.size(); ++leaf) {
      for (int64_t d = 0; old[leaf].IsArray() && d < old[leaf].rank(); ++d) {
        if (old[leaf].dimension(d) != now[leaf].dimension(d))
          changed.push_back({first + static_cast<int64_t>(leaf), d});
      }
    }
    first += static_cast<int64_t>(old.size());
  }
  return changed;
}

std::string NameOfLeaf(const hlo::Module& module, int64_t leaf) {
  for (const Instruction* parameter : module.entry()->parameters()) {
    const int64_t count = hlo::LeafCount(parameter->shape());
    if (leaf < count) return fmt::format("parameter {} (%{})", parameter->parameter_number(), parameter->name());
    leaf -= count;
  }
  return "";
}

void CheckAllNamed(hlo::Module& module, const Spread& spread, const std::vector<DimensionOfLeaf>& named) {
  for (const DimensionOfLeaf& d : ChangedParameters(module, spread)) {
    if (std::find(named.begin(), named.end(), d) != named.end()) continue;
    Invalid(
        "dimension {} of {} meets a dimension of varying size in the program, so it varies too: bound it as well "
        "(--bound={}:{}=N)",
        d.dimension, NameOfLeaf(module, d.leaf), d.leaf, d.dimension);
  }
}

// The elements of an op's attributes that spell a whole dimension.
void FollowAttributes(Instruction* i, const Shape& operand_before, const Shape& operand_now) {
  for (int64_t d = 0; d < operand_before.rank(); ++d) {
    const int64_t before = operand_before.dimension(d), now = operand_now.dimension(d);
    const auto n = static_cast<size_t>(d);
    if (before == now) continue;
    if (i->Is(Opcode::kSlice)) {
      int64_t& limit = i->MutableAs<hlo::attr::Slice>().limits[n];
      if (limit == before) limit = now;
    } else if (i->Is(Opcode::kDynamicSlice)) {
      int64_t& size = i->MutableAs<hlo::attr::DynamicSlice>().sizes[n];
      if (size == before) size = now;
    } else if (i->Is(Opcode::kGather)) {
      int64_t& size = i->MutableAs<hlo::attr::Gather>().slice_sizes[n];
      if (size == before) size = now;
    } else if (i->Is(Opcode::kReduceWindow)) {
      hlo::WindowDimension& window = i->MutableAs<hlo::attr::Windowed>().window[n];
      if (window.size != before || before == 1) continue;
      // A running value: the window is the whole dimension, and padding lets it start or end at each element.
      if (window.padding_low == before - 1) window.padding_low = now - 1;
      if (window.padding_high == before - 1) window.padding_high = now - 1;
      window.size = now;
    }
  }
}

void Apply(hlo::Module& module, const Spread& spread) {
  for (const auto& [instruction, shape] : spread.shapes()) {
    if (!instruction->IsConstant()) continue;
    Invalid("%{} is a constant of {}: its size cannot follow; make it a parameter, or export at the size",
            instruction->name(), instruction->shape().ToString(false));
  }
  for (Computation* computation : module.ControlComputations()) {
    for (const auto& instruction : computation->instructions()) {
      if (instruction->operand_count() == 0) continue;
      Instruction* operand = instruction->operand(0);
      const auto found = spread.shapes().find(operand);
      if (found != spread.shapes().end() && found->second.IsArray())
        FollowAttributes(instruction.get(), operand->shape(), found->second);
    }
  }
  for (const auto& [instruction, shape] : spread.shapes()) instruction->set_shape(shape.WithoutLayout());
  module.entry_layout.reset();
  hlo::VerifyModule(module);
}

}  // namespace

void ResizeParameters(hlo::Module& module, const std::vector<NewSize>& sizes) {
  Spread spread(module);
  std::vector<DimensionOfLeaf> named;
  for (const NewSize& size : sizes) {
    spread.Resize(size.dimension, size.size);
    named.push_back(size.dimension);
  }
  spread.Run();
  if (spread.conflict() != nullptr) Invalid("%{} would need two sizes at once", spread.conflict()->name());
  CheckAllNamed(module, spread, named);
  Apply(module, spread);
}

void CheckParametersMeet(hlo::Module& module, const std::vector<DimensionOfLeaf>& dimensions) {
  Spread spread(module);
  // A size that no dimension of the program is likely to have by chance.
  constexpr int64_t kProbe = 1000003;
  for (const DimensionOfLeaf& d : dimensions) spread.Resize(d, kProbe);
  spread.Run();
  CheckAllNamed(module, spread, dimensions);
}

}  // namespace hlorun::passes
