// Broadcast, iota and splat constants. Canonical: a reshape that only adds unit dimensions does not feed a broadcast,
// the dimensions of a broadcast come in increasing order, and a constant of equal elements is the broadcast of a
// scalar.
#include <algorithm>
#include <numeric>

#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

bool IsSorted(const Match& m) { return std::is_sorted(m.root->dimensions().begin(), m.root->dimensions().end()); }

bool SameCount(const Match& m) { return m[X]->shape().ElementCount() == m.shape().ElementCount(); }

// X is A without A's unit dimensions.
bool ReshapeOnlyAddsUnits(const Match& m) {
  Dims wide = m[A]->shape().dimensions();
  std::erase(wide, 1);
  return m[X]->shape().dimensions() == wide;
}

Instruction* BroadcastPastReshape(Match& m) {
  std::vector<int64_t> dimensions;
  for (int64_t i = 0; i < m[A]->shape().rank(); ++i) {
    if (m[A]->shape().dimension(i) != 1) dimensions.push_back(m.root->dimensions()[static_cast<size_t>(i)]);
  }
  return m.build.Broadcast(m[X], m.dimensions(), dimensions);
}

Instruction* ComposeBroadcasts(Match& m) {
  std::vector<int64_t> dimensions;
  for (int64_t d : m[A]->dimensions()) dimensions.push_back(m.root->dimensions()[static_cast<size_t>(d)]);
  return m.build.Broadcast(m[X], m.dimensions(), dimensions);
}

// broadcast(x, {1,0}) -> broadcast(transpose(x, {1,0}), {0,1})
Instruction* SortDimensions(Match& m) {
  const std::vector<int64_t>& dimensions = m.root->dimensions();
  std::vector<int64_t> permutation(dimensions.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::sort(permutation.begin(), permutation.end(), [&](int64_t a, int64_t b) {
    return dimensions[static_cast<size_t>(a)] < dimensions[static_cast<size_t>(b)];
  });
  std::vector<int64_t> sorted = dimensions;
  std::sort(sorted.begin(), sorted.end());
  return m.build.Broadcast(m.build.Transpose(m[X], permutation), m.dimensions(), sorted);
}

}  // namespace

std::vector<Rule> BroadcastRules() {
  return {
      {"constant_to_splat", Exactness::kExact, Constant().As(C),
       [](const Match& m) {
         return m.shape().IsArray() && m.shape().ElementCount() > 1 && SplatOf(*m.root).has_value();
       },
       [](Match& m) { return m.Fill(m.Splat(C)); }, R"(ROOT r = f32[3] constant({2, 2, 2}))",
       R"(ROOT r = f32[3] constant({2, 2, 3}))"},
      {"broadcast_to_same", Exactness::kExact, Op(Opcode::kBroadcast, X),
       [](const Match& m) { return IsSorted(m) && m[X]->shape().SameAs(m.shape()); }, [](Match& m) { return m[X]; },
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[2,3] broadcast(x), dimensions={0,1})",
       R"(x = f32[3,3] parameter(0)
          ROOT r = f32[3,3] broadcast(x), dimensions={1,0})"},
      {"broadcast_to_unit_dimensions", Exactness::kExact, Op(Opcode::kBroadcast, X),
       [](const Match& m) { return IsSorted(m) && SameCount(m) && !m[X]->shape().SameAs(m.shape()); },
       [](Match& m) { return m.build.Reshape(m[X], m.dimensions()); },
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[2,1,3] broadcast(x), dimensions={0,2})",
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[2,2,3] broadcast(x), dimensions={0,2})"},
      {"broadcast_of_broadcast",
       Exactness::kExact,
       Op(Opcode::kBroadcast, Op(Opcode::kBroadcast, X).As(A)),
       {},
       ComposeBroadcasts,
       R"(x = f32[3] parameter(0)
          b = f32[2,3] broadcast(x), dimensions={1}
          ROOT r = f32[3,4,2] broadcast(b), dimensions={2,0})",
       R"(x = f32[3] parameter(0)
          b = f32[3] negate(x)
          ROOT r = f32[2,3] broadcast(b), dimensions={1})"},
      {"broadcast_of_added_units", Exactness::kExact, Op(Opcode::kBroadcast, Op(Opcode::kReshape, X).As(A)),
       ReshapeOnlyAddsUnits, BroadcastPastReshape,
       R"(x = f32[3] parameter(0)
          b = f32[1,3,1] reshape(x)
          ROOT r = f32[1,2,3,1] broadcast(b), dimensions={0,2,3})",
       R"(x = f32[3,2] parameter(0)
          b = f32[6,1] reshape(x)
          ROOT r = f32[6,1,2] broadcast(b), dimensions={0,1})"},
      {"broadcast_unsorted", Exactness::kExact, Op(Opcode::kBroadcast, X), [](const Match& m) { return !IsSorted(m); },
       SortDimensions,
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[3,4,2] broadcast(x), dimensions={2,0})",
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[2,4,3] broadcast(x), dimensions={0,2})"},
      {"iota_of_one", Exactness::kExact, Op(Opcode::kIota),
       [](const Match& m) { return m.shape().dimension(m.root->dimensions().at(0)) == 1; },
       [](Match& m) { return m.Fill(0.0); }, R"(ROOT r = s32[4,1] iota(), iota_dimension=1)",
       R"(ROOT r = s32[4,1] iota(), iota_dimension=0)"},
      {"iota_of_rank_above_one", Exactness::kExact, Op(Opcode::kIota),
       [](const Match& m) { return m.shape().rank() > 1; },
       [](Match& m) {
         const int64_t dimension = m.root->dimensions().at(0);
         const hlo::Shape line(m.shape().element_type(), {m.shape().dimension(dimension)});
         return m.build.Broadcast(m.build.Iota(line, 0), m.dimensions(), {dimension});
       },
       R"(ROOT r = s32[4,3] iota(), iota_dimension=1)", R"(ROOT r = s32[4] iota(), iota_dimension=0)"},
  };
}

}  // namespace hlorun::passes
