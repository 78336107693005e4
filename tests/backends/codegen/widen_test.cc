// Vector loops as code over vectors: what stays a scalar.
#include "backends/opencl/codegen/widen.h"

#include <gtest/gtest.h>

namespace hlorun::opencl {
namespace {

int WidestMask(const ir::Expr& x) {
  int lanes = x->kind == ir::ExprKind::kCompare ? x->type.lanes : 0;
  for (const ir::Expr& a : x->args) lanes = std::max(lanes, WidestMask(a));
  return lanes;
}

int WidestMask(const ir::Stmt& s) {
  int lanes = s->value != nullptr ? WidestMask(s->value) : 0;
  for (const ir::Stmt& b : s->body) lanes = std::max(lanes, WidestMask(b));
  return lanes;
}

// Lanes of the comparisons in the vectors of: for i in 0 .. 64: out[i] = compare(op, i, bound) ? 1 : 2.
int LanesOfComparison(ir::Op op, int64_t bound, bool index_first = true) {
  const ir::BufferRef out = ir::MakeBuffer("out", hlo::ElementType::kF32, 64, ir::Buffer::Space::kGlobal, true);
  const ir::Var i = ir::MakeIndex("i", 0, 63, ir::kIndex32);
  const ir::Expr index = ir::Ref(i), other = ir::Int(bound);
  const ir::Expr below = index_first ? ir::Compare(op, index, other) : ir::Compare(op, other, index);
  const ir::Stmt store = ir::Store(out, index, ir::Select(below, ir::Real(1), ir::Real(2)));
  return WidestMask(WidenVectorLoop(ir::For(ir::LoopRole::kVector, i, ir::Int(0), ir::Int(64), store, 1, 16)));
}

TEST(Widen, TheFirstLaneTellsWhereVectorsEnd) {
  EXPECT_EQ(LanesOfComparison(ir::Op::kLt, 32), 1);
  EXPECT_EQ(LanesOfComparison(ir::Op::kGe, 48), 1);
  EXPECT_EQ(LanesOfComparison(ir::Op::kGt, 32, false), 1);
  EXPECT_EQ(LanesOfComparison(ir::Op::kLe, 32, false), 1);
}

TEST(Widen, EachLaneTellsWithinAVector) {
  EXPECT_EQ(LanesOfComparison(ir::Op::kLt, 40), 16);
  EXPECT_EQ(LanesOfComparison(ir::Op::kLe, 32), 16);
  EXPECT_EQ(LanesOfComparison(ir::Op::kGt, 32), 16);
  EXPECT_EQ(LanesOfComparison(ir::Op::kEq, 32), 16);
  EXPECT_EQ(LanesOfComparison(ir::Op::kLt, 32, false), 16);
}

}  // namespace
}  // namespace hlorun::opencl
