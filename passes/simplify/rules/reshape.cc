// Reshape: composed, or pushed through the ops that make it vanish.
#include <algorithm>

#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

Dims WithoutUnits(Dims dimensions) {
  std::erase(dimensions, 1);
  return dimensions;
}

// The reshape only adds or drops unit dimensions.
bool OnlyUnits(const Match& m) {
  return m.shape().ElementCount() > 0 && WithoutUnits(m[A]->shape().dimensions()) == WithoutUnits(m.dimensions());
}

// reshape(broadcast(x)) -> broadcast(x without unit dimensions)
Instruction* BroadcastOnly(Match& m) {
  const hlo::Shape& before = m[A]->shape();
  // Wide dimension number k of `before` is wide dimension number k of the result.
  std::vector<int64_t> after_of(static_cast<size_t>(before.rank()), -1);
  int64_t next = 0;
  for (int64_t i = 0; i < before.rank(); ++i) {
    if (before.dimension(i) == 1) continue;
    while (m.shape().dimension(next) == 1) ++next;
    after_of[static_cast<size_t>(i)] = next++;
  }
  std::vector<int64_t> dimensions;
  for (int64_t d : m[A]->dimensions()) {
    if (before.dimension(d) != 1) dimensions.push_back(after_of[static_cast<size_t>(d)]);
  }
  Instruction* x = m[X];
  const Dims wide = WithoutUnits(x->shape().dimensions());
  if (wide != x->shape().dimensions()) x = m.build.Reshape(x, wide);
  return m.build.Broadcast(x, m.dimensions(), dimensions);
}

}  // namespace

std::vector<Rule> ReshapeRules() {
  return {
      {"reshape_to_same", Exactness::kExact, Op(Opcode::kReshape, X),
       [](const Match& m) { return m[X]->shape().SameAs(m.shape()); }, [](Match& m) { return m[X]; },
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[2,3] reshape(x))",
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[3,2] reshape(x))"},
      {"reshape_of_reshape", Exactness::kExact, Op(Opcode::kReshape, Op(Opcode::kReshape, X)), {},
       [](Match& m) { return m.build.Reshape(m[X], m.dimensions()); },
       R"(x = f32[2,3] parameter(0)
          y = f32[6] reshape(x)
          ROOT r = f32[3,2] reshape(y))",
       R"(x = f32[2,3] parameter(0)
          y = f32[3,2] transpose(x), dimensions={1,0}
          ROOT r = f32[6] reshape(y))"},
      {"reshape_of_splat", Exactness::kExact, Op(Opcode::kReshape, Op(Opcode::kBroadcast, X)),
       [](const Match& m) { return m[X]->shape().IsScalar(); },
       [](Match& m) { return m.build.Broadcast(m[X], m.dimensions(), {}); },
       R"(x = f32[] parameter(0)
          y = f32[2,3] broadcast(x), dimensions={}
          ROOT r = f32[6] reshape(y))",
       R"(x = f32[3] parameter(0)
          y = f32[2,3] broadcast(x), dimensions={1}
          ROOT r = f32[6] reshape(y))"},
      {"reshape_of_broadcast", Exactness::kExact, Op(Opcode::kReshape, Op(Opcode::kBroadcast, X).As(A)), OnlyUnits,
       BroadcastOnly,
       R"(x = f32[3,1] parameter(0)
          y = f32[2,3,1] broadcast(x), dimensions={1,2}
          ROOT r = f32[1,2,3] reshape(y))",
       R"(x = f32[3] parameter(0)
          y = f32[2,3] broadcast(x), dimensions={1}
          ROOT r = f32[3,2] reshape(y))"},
  };
}

}  // namespace hlorun::passes
