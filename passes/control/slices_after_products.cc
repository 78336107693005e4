#include "passes/control/slices_after_products.h"

#include <algorithm>
#include <optional>

#include "hlo/builder.h"
#include "passes/control/loop_carry.h"
#include "passes/control/trip_count.h"

namespace hlorun::passes {
namespace {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

// A product of this many rows runs near the peak by itself.
constexpr int64_t kMostRows = 128;
// Fewer trips than slices, by this factor, would make products that nobody reads.
constexpr int64_t kSlicesPerTrip = 2;
// All results together beside what they are made of.
constexpr int64_t kGrowth = 4;

// What every trip sees alike, and what is merely moved or converted of it.
bool IsInvariant(const Instruction& loop, const Instruction& i) {
  if (i.IsConstant()) return true;
  if (i.Is(Opcode::kGetTupleElement))
    return i.operand(0) == loop.while_body()->parameter(0) && IsPassedOn(loop, i.tuple_index());
  const bool moves = i.Is(Opcode::kReshape) || i.Is(Opcode::kTranspose) || i.Is(Opcode::kConvert);
  return moves && IsInvariant(loop, *i.operand(0));
}

// One of the product's operands: a slice of `all`, one element along `dimension`, without that dimension.
struct SlicedOperand {
  int64_t number;  // of the operand
  Instruction* slice;
  int64_t dimension;

  Instruction* all() const { return slice->operand(0); }

  static std::optional<SlicedOperand> Of(const Instruction& dot, int64_t number, const Instruction& loop) {
    Instruction* x = dot.operand(number);
    if (!x->Is(Opcode::kReshape) || !x->operand(0)->Is(Opcode::kDynamicSlice)) return std::nullopt;
    SlicedOperand found{number, x->operand(0), -1};
    if (found.slice->operand_count() != 1 + found.all()->shape().rank()) return std::nullopt;  // starts in one array
    if (!IsInvariant(loop, *found.all()) || !found.all()->shape().IsStatic()) return std::nullopt;
    const Dims &whole = found.all()->shape().dimensions(), &sizes = found.slice->shape().dimensions();
    for (size_t d = 0; d < whole.size(); ++d) {
      if (sizes[d] == whole[d]) continue;
      if (sizes[d] != 1 || found.dimension >= 0) return std::nullopt;
      found.dimension = static_cast<int64_t>(d);
    }
    if (found.dimension < 0) return std::nullopt;
    Dims rest = sizes;
    rest.erase(rest.begin() + found.dimension);
    return x->shape().dimensions() == rest ? std::optional(found) : std::nullopt;
  }
};

bool IsWorthwhile(const Instruction& dot, const SlicedOperand& sliced, int64_t trips) {
  const hlo::Shape &all = sliced.all()->shape(), &other = dot.operand(1 - sliced.number)->shape();
  const int64_t slices = all.dimension(sliced.dimension);
  const auto& attributes = dot.As<hlo::attr::Dot>();
  int64_t depth = 1;
  for (const int64_t d : attributes.lhs_contracting) depth *= dot.operand(0)->shape().dimension(d);
  const int64_t rows = dot.operand(sliced.number)->shape().ElementCount() / std::max<int64_t>(1, depth);
  return trips * kSlicesPerTrip >= slices && rows <= kMostRows &&
         dot.shape().ByteSize() * slices <= kGrowth * (all.ByteSize() + other.ByteSize());
}

Instruction* SliceOfProduct(Instruction* dot, const SlicedOperand& sliced) {
  hlo::Builder build(dot->parent(), dot);
  hlo::attr::Dot attributes = dot->As<hlo::attr::Dot>();
  std::vector<int64_t>& contracting = sliced.number == 0 ? attributes.lhs_contracting : attributes.rhs_contracting;
  for (int64_t& d : contracting) d += d >= sliced.dimension ? 1 : 0;
  Instruction* operands[] = {dot->operand(0), dot->operand(1)};
  operands[sliced.number] = sliced.all();
  Instruction* products = build.Dot(operands[0], operands[1], attributes, dot->shape().element_type());

  // Where the slices' dimension lies among those of the result: lhs, then rhs, without what is contracted.
  int64_t place = sliced.dimension - std::count_if(contracting.begin(), contracting.end(),
                                                   [&](int64_t d) { return d < sliced.dimension; });
  if (sliced.number == 1)
    place += operands[0]->shape().rank() - static_cast<int64_t>(attributes.lhs_contracting.size());
  Instruction* start = sliced.slice->operand(1 + sliced.dimension);
  std::vector<Instruction*> starts(static_cast<size_t>(products->shape().rank()),
                                   build.ScalarConstant(start->shape().element_type(), 0));
  starts[static_cast<size_t>(place)] = start;
  Dims sizes = products->shape().dimensions();
  sizes[static_cast<size_t>(place)] = 1;
  return build.Reshape(build.DynamicSlice(products, std::move(starts), std::move(sizes)), dot->shape().dimensions());
}

bool InBody(const Instruction& loop, int64_t trips) {
  bool changed = false;
  for (Instruction* dot : loop.while_body()->PostOrder()) {
    if (!dot->Is(Opcode::kDot) || !dot->As<hlo::attr::Dot>().lhs_batch.empty()) continue;
    for (const int64_t number : {0, 1}) {
      if (!IsInvariant(loop, *dot->operand(1 - number))) continue;
      const auto sliced = SlicedOperand::Of(*dot, number, loop);
      if (!sliced || !IsWorthwhile(*dot, *sliced, trips)) continue;
      dot->parent()->Replace(dot, SliceOfProduct(dot, *sliced));
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace

bool SliceAfterProducts::Run(hlo::Module& module, PassContext& context) {
  if (context.options.memory_limit > 0) return false;
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    for (Instruction* loop : computation->PostOrder()) {
      if (!loop->Is(Opcode::kWhile) || !MayGrow(*loop)) continue;
      if (const std::optional<int64_t> trips = TripCountOf(*loop)) changed |= InBody(*loop, *trips);
    }
  }
  return changed;
}

}  // namespace hlorun::passes
