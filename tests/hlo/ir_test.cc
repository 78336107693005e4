// The IR's own invariants: users, removal, order, names, number types.
#include <gtest/gtest.h>

#include <cmath>

#include "hlo/module.h"
#include "hlo/number_types.h"

namespace hlorun::hlo {
namespace {

TEST(InstructionTest, UsersFollowOperands) {
  Module module("m");
  Computation* c = module.AddComputation("main");
  Instruction* p = c->AddParameter(0, Shape(ElementType::kF32, {4}), "p");
  Instruction* sum = c->Add(Opcode::kAdd, p->shape(), {p, p});
  c->set_root(sum);
  ASSERT_EQ(p->users().size(), 1u);
  Instruction* negated = c->Add(Opcode::kNegate, p->shape(), {p});
  sum->ReplaceOperand(0, negated);
  EXPECT_EQ(p->users().size(), 2u);
  sum->ReplaceOperand(1, negated);
  EXPECT_EQ(p->users(), std::vector<Instruction*>{negated});
  EXPECT_EQ(c->PostOrder(), (std::vector<Instruction*>{p, negated, sum}));
}

TEST(ComputationTest, CyclesAreReported) {
  Module module("m");
  Computation* c = module.AddComputation("main");
  Instruction* p = c->AddParameter(0, Shape(ElementType::kF32, {4}), "p");
  Instruction* a = c->Add(Opcode::kNegate, p->shape(), {p});
  Instruction* b = c->Add(Opcode::kNegate, p->shape(), {a});
  a->ReplaceOperand(0, b);
  EXPECT_THROW(c->PostOrder(), Error);
}

TEST(ModuleTest, NamesStayUnique) {
  Module module("m");
  Computation* c = module.AddComputation("main");
  Instruction* first = c->AddParameter(0, Shape(ElementType::kF32, {}), "x.1");
  Instruction* second = c->AddParameter(1, Shape(ElementType::kF32, {}), "x.1");
  EXPECT_EQ(first->name(), "x.1");
  EXPECT_NE(second->name(), "x.1");
}

TEST(NarrowFloatTest, EveryPatternRoundTrips) {
  for (ElementType type : {ElementType::kF8E5M2, ElementType::kF8E4M3FN, ElementType::kF8E4M3B11FNUZ,
                           ElementType::kF8E5M2FNUZ, ElementType::kF8E4M3FNUZ, ElementType::kF8E4M3,
                           ElementType::kF8E3M4, ElementType::kF4E2M1FN, ElementType::kF8E8M0FNU}) {
    for (int bits = 0; bits < (1 << BitsOf(type)); ++bits) {
      const float value = NarrowToFloat(type, static_cast<uint8_t>(bits));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(NarrowToFloat(type, FloatToNarrow(type, value))))
            << ElementTypeName(type) << " " << bits;
      } else {
        EXPECT_EQ(FloatToNarrow(type, value), bits) << ElementTypeName(type);
      }
    }
  }
}

TEST(ShapeTest, PrintsAsHloText) {
  Shape shape(ElementType::kF32, {2, 3});
  shape.set_layout(Layout::RowMajor(2));
  shape.set_dynamic_dimension(0, true);
  EXPECT_EQ(shape.ToString(), "f32[<=2,3]{1,0}");
  EXPECT_EQ(Shape::Tuple({Shape::Scalar(ElementType::kPred), shape}).ToString(false), "(pred[], f32[<=2,3])");
  EXPECT_THROW(Shape(ElementType::kF32, {int64_t{1} << 40, int64_t{1} << 40}).ElementCount(), Error);
}

}  // namespace
}  // namespace hlorun::hlo
