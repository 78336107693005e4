// Tuples, and ops that only pass a value on.
#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Instruction;
using hlo::Opcode;

namespace {

// The tuple that `root` takes apart and puts together again unchanged, or null.
Instruction* Reassembled(const Instruction& root) {
  if (root.operand_count() == 0) return nullptr;
  Instruction* whole = nullptr;
  for (int64_t i = 0; i < root.operand_count(); ++i) {
    const Instruction* element = root.operand(i);
    if (!element->Is(Opcode::kGetTupleElement) || element->tuple_index() != i) return nullptr;
    if (whole != nullptr && whole != element->operand(0)) return nullptr;
    whole = element->operand(0);
  }
  return whole->shape().SameAs(root.shape()) ? whole : nullptr;
}

}  // namespace

std::vector<Rule> TupleRules() {
  return {
      {"element_of_tuple",
       Exactness::kExact,
       Op(Opcode::kGetTupleElement, Op(Opcode::kTuple).As(A)),
       {},
       [](Match& m) { return m[A]->operand(m.root->tuple_index()); },
       R"(x = f32[2] parameter(0)
          y = s32[] parameter(1)
          t = (f32[2], s32[]) tuple(x, y)
          ROOT r = f32[2] get-tuple-element(t), index=0)",
       R"(t = (f32[2], s32[]) parameter(0)
          ROOT r = f32[2] get-tuple-element(t), index=0)"},
      {"tuple_of_elements", Exactness::kExact, Op(Opcode::kTuple),
       [](const Match& m) { return Reassembled(*m.root) != nullptr; }, [](Match& m) { return Reassembled(*m.root); },
       R"(t = (f32[2], s32[]) parameter(0)
          a = f32[2] get-tuple-element(t), index=0
          b = s32[] get-tuple-element(t), index=1
          ROOT r = (f32[2], s32[]) tuple(a, b))",
       R"(t = (f32[2], f32[2]) parameter(0)
          a = f32[2] get-tuple-element(t), index=0
          b = f32[2] get-tuple-element(t), index=1
          ROOT r = (f32[2], f32[2]) tuple(b, a))"},
      {"copy",
       Exactness::kExact,
       Op(Opcode::kCopy, X),
       {},
       [](Match& m) { return m[X]; },
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[2,3] copy(x))",
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[2,3] negate(x))"},
      {"size_of_static_dimension",
       Exactness::kExact,
       Op(Opcode::kGetDimensionSize, X),
       {},
       [](Match& m) {
         const int64_t size = m[X]->shape().dimension(m.root->dimensions().at(0));
         return m.build.ScalarConstant(hlo::ElementType::kS32, size);
       },
       R"(x = f32[2,3] parameter(0)
          ROOT r = s32[] get-dimension-size(x), dimensions={1})",
       R"(x = f32[2,<=3] parameter(0)
          ROOT r = s32[] get-dimension-size(x), dimensions={1})"},
  };
}

}  // namespace hlorun::passes
