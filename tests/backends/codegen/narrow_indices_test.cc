// Kernels before and after their indices become 32-bit ones.
#include "backends/opencl/codegen/narrow_indices.h"

#include <gtest/gtest.h>

namespace hlorun::opencl {
namespace {

ir::Function FunctionOf(const ir::Stmt& body) {
  ir::Function function;
  function.name = "f";
  function.body = body;
  return function;
}
std::string Narrowed(const ir::Stmt& body) { return ir::ToString(WithNarrowIndices(FunctionOf(body))); }

ir::BufferRef Global(hlo::ElementType type, bool written) {
  return ir::MakeBuffer(written ? "out" : "in", type, 640, ir::Buffer::Space::kGlobal, written);
}

// for i in 0 .. 64: out[i * 10] = in[s64(j)], with `type` as the index type.
ir::Stmt Loop(const ir::Type& type) {
  const ir::Var i = ir::MakeIndex("i", 0, 63, type), j = ir::MakeVar("j", ir::kIndex32);
  const ir::Expr load = ir::Load(Global(hlo::ElementType::kF32, false), ir::Cast(ir::Ref(j), type.element));
  const ir::Stmt body = ir::Block({ir::Let(j, ir::Cast(ir::Ref(i), hlo::ElementType::kS32)),
                                   ir::Store(Global(hlo::ElementType::kF32, true), ir::Ref(i) * 10, load)});
  return ir::For(ir::LoopRole::kSerial, i, ir::Int(0, type), ir::Int(64, type), body);
}

TEST(NarrowIndices, IndicesAreWhatTheyWereIn32Bits) {
  EXPECT_EQ(Narrowed(Loop(ir::kIndex)), ir::ToString(FunctionOf(Loop(ir::kIndex32))));
  EXPECT_NE(Narrowed(Loop(ir::kIndex)), ir::ToString(FunctionOf(Loop(ir::kIndex))));
}

TEST(NarrowIndices, OneVariableStaysOne) {
  const ir::Stmt loop = WithNarrowIndices(FunctionOf(Loop(ir::kIndex))).body;
  const ir::Expr& place = loop->body[0]->body[1]->index;
  ASSERT_EQ(place->args[0]->kind, ir::ExprKind::kVar);
  EXPECT_EQ(place->args[0]->var, loop->var);
  EXPECT_EQ(loop->var->type, ir::kIndex32);
  EXPECT_EQ(loop->var->max, 63);
}

TEST(NarrowIndices, VectorsOfIndicesKeepTheirLanes) {
  const ir::Var i = ir::MakeIndex("i", 0, 63, ir::kIndex);
  const ir::Expr load = ir::Load(Global(hlo::ElementType::kF32, false), ir::Ramp(ir::Ref(i), 4));
  const ir::Stmt store = ir::Store(Global(hlo::ElementType::kF32, true), ir::Ramp(ir::Ref(i), 4), load);
  EXPECT_EQ(WithNarrowIndices(FunctionOf(store)).body->index->type, ir::kIndex32.WithLanes(4));
}

TEST(NarrowIndices, BitsOfFloatsStayAsTheyAre) {
  const ir::Var i = ir::MakeIndex("i", 0, 63, ir::kIndex);
  const ir::Expr bits =
      ir::BitCast(ir::Load(Global(hlo::ElementType::kF64, false), ir::Ref(i)), hlo::ElementType::kS64);
  const ir::Expr is_negative = ir::Compare(ir::Op::kLt, bits, ir::Zero(bits->type));
  const ir::Stmt store = ir::Store(Global(hlo::ElementType::kPred, true), ir::Ref(i), is_negative);
  EXPECT_EQ(Narrowed(store), ir::ToString(FunctionOf(store)));
}

}  // namespace
}  // namespace hlorun::opencl
