#include "passes/expand/tiny_products.h"

#include <algorithm>
#include <vector>

#include "hlo/builder.h"
#include "passes/dynamic/signature.h"

namespace hlorun::passes {
namespace {

using hlo::Contains;
using hlo::Dims;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

// Results side by side, elements of each sum, products of one row: what a loop keeps in registers.
constexpr int64_t kLongestRow = 4, kDeepest = 8, kMostProducts = 32;
// Of fewer, a product's kernel costs no more than a launch.
constexpr int64_t kFewestRows = 256;

// One operand: where each of its dimensions but the contracting ones lies in the result.
struct Side {
  Instruction* value;
  const std::vector<int64_t>& contracting;
  std::vector<int64_t> places;
  int64_t free = 1;  // elements of a batch's matrix that are not contracted
};

Side SideOf(const Instruction& dot, int64_t operand, int64_t first_free) {
  const auto& attributes = dot.As<hlo::attr::Dot>();
  const std::vector<int64_t>& batch = operand == 0 ? attributes.lhs_batch : attributes.rhs_batch;
  Side side{dot.operand(operand), operand == 0 ? attributes.lhs_contracting : attributes.rhs_contracting, {}, 1};
  for (int64_t d = 0; d < side.value->shape().rank(); ++d) {
    if (Contains(side.contracting, d)) continue;
    const auto in_batch = std::find(batch.begin(), batch.end(), d);
    side.places.push_back(in_batch != batch.end() ? in_batch - batch.begin() : first_free++);
    if (in_batch == batch.end()) side.free *= side.value->shape().dimension(d);
  }
  return side;
}

// What products are summed in; invalid: not here.
ElementType SumTypeOf(const Instruction& dot) {
  const ElementType result = dot.shape().element_type();
  for (const ElementType type : {ElementType::kF64, ElementType::kF32, ElementType::kS32}) {
    if (result == type) return type;
  }
  return result == ElementType::kBF16 || result == ElementType::kF16 ? ElementType::kF32 : ElementType::kInvalid;
}

bool IsTiny(const Instruction& dot, const Side& lhs, const Side& rhs) {
  const int64_t results = dot.shape().ElementCount(), of_batch = lhs.free * rhs.free;
  if (of_batch == 0 || results == 0) return false;
  int64_t depth = 1;
  for (const int64_t d : lhs.contracting) depth *= lhs.value->shape().dimension(d);
  const bool has_batch = !dot.As<hlo::attr::Dot>().lhs_batch.empty();
  const int64_t row = has_batch ? of_batch : rhs.free, rows = results / row;
  const bool is_row = !has_batch || lhs.free == 1 || rhs.free == 1;
  return is_row && row <= kLongestRow && rows >= kFewestRows && depth >= 1 && depth <= kDeepest &&
         depth * row <= kMostProducts;
}

class Expansion {
 public:
  explicit Expansion(Instruction* dot) : dot_(dot), build_(dot->parent(), dot), type_(SumTypeOf(*dot)) {
    build_.before = dot;
  }

  void Run(const Side& lhs, const Side& rhs) {
    Dims sizes;
    for (const int64_t d : lhs.contracting) sizes.push_back(lhs.value->shape().dimension(d));
    Dims at(sizes.size(), 0);
    Instruction* sum = Zero();  // so that a sum of negative zeros is one of a product, too
    do {
      sum = build_.Binary(Opcode::kAdd, sum, build_.Binary(Opcode::kMultiply, Part(lhs, at), Part(rhs, at)));
    } while (hlo::NextIndex(at, sizes));
    const ElementType result = dot_->shape().element_type();
    dot_->parent()->Replace(dot_, type_ == result ? sum : build_.Convert(sum, result));
  }

 private:
  Instruction* Zero() {
    return build_.Broadcast(build_.Constant(hlo::Literal::Scalar(type_, 0.0)), dot_->shape().dimensions(), {});
  }

  // The side's elements at a place of the contracting dimensions, where the results are that they belong to.
  Instruction* Part(const Side& side, const std::vector<int64_t>& at) {
    const Dims& dims = side.value->shape().dimensions();
    Dims starts(dims.size(), 0), limits = dims, kept;
    for (size_t i = 0; i < at.size(); ++i) {
      const auto d = static_cast<size_t>(side.contracting[i]);
      starts[d] = at[i];
      limits[d] = at[i] + 1;
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!Contains(side.contracting, static_cast<int64_t>(d))) kept.push_back(dims[d]);
    }
    Instruction* part = build_.Reshape(build_.Slice(side.value, starts, limits, Dims(dims.size(), 1)), kept);
    if (part->shape().element_type() != type_) part = build_.Convert(part, type_);
    return build_.Broadcast(part, dot_->shape().dimensions(), side.places);
  }

  Instruction* dot_;
  hlo::Builder build_;
  ElementType type_;
};

bool Expand(Instruction* dot) {
  const auto& attributes = dot->As<hlo::attr::Dot>();
  const bool is_plain = dot->operand_count() == 2 && attributes.algorithm.empty() && dot->frontend_attributes.empty();
  if (!is_plain || SumTypeOf(*dot) == ElementType::kInvalid) return false;
  const auto batch = static_cast<int64_t>(attributes.lhs_batch.size());
  const Side lhs = SideOf(*dot, 0, batch);
  const auto free = static_cast<int64_t>(lhs.places.size()) - batch;
  const Side rhs = SideOf(*dot, 1, batch + free);
  for (const Side* side : {&lhs, &rhs}) {
    const ElementType type = side->value->shape().element_type();
    if (hlo::IsComplex(type) || hlo::BitsOf(type) < 8) return false;
    if (!std::is_sorted(side->places.begin(), side->places.end())) return false;
  }
  if (!IsTiny(*dot, lhs, rhs)) return false;
  Expansion(dot).Run(lhs, rhs);
  return true;
}

}  // namespace

bool TinyProducts::Run(hlo::Module& module, PassContext&) {
  // Products whose sizes vary end at the sizes.
  if (!SignatureOf(module).empty()) return false;
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (instruction->Is(Opcode::kDot)) changed |= Expand(instruction);
    }
  }
  return changed;
}

}  // namespace hlorun::passes
