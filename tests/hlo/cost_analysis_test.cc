// FLOPs and bytes by hand-counted examples.
#include "hlo/cost_analysis.h"

#include <gtest/gtest.h>

#include "hlo/builder.h"
#include "hlo/module.h"

namespace hlorun::hlo {
namespace {

constexpr ElementType F32 = ElementType::kF32;

class CostTest : public testing::Test {
 protected:
  Instruction* P(Dims dimensions, ElementType type = F32) {
    return main_->AddParameter(main_->parameter_count(), Shape(type, std::move(dimensions)), "p");
  }

  Module module_{"m"};
  Computation* main_ = module_.AddComputation("main");
  Builder b_{main_};
};

TEST_F(CostTest, ElementwiseAndTranscendental) {
  Instruction* x = P({4, 8});
  const Cost add = CostOf(*b_.Binary(Opcode::kAdd, x, x));
  EXPECT_EQ(add.flops, 32);
  EXPECT_EQ(add.bytes_read, 256);
  EXPECT_EQ(add.bytes_written, 128);
  const Cost exp = CostOf(*b_.Unary(Opcode::kExp, x));
  EXPECT_EQ(exp.flops, 0);
  EXPECT_EQ(exp.transcendentals, 32);
  EXPECT_EQ(CostOf(*x).bytes_written, 0);
}

TEST_F(CostTest, DotCountsMultiplyAndAdd) {
  attr::Dot dot;
  dot.lhs_contracting = {1};
  dot.rhs_contracting = {0};
  EXPECT_EQ(CostOf(*b_.Dot(P({8, 64}), P({64, 32}), dot, F32)).flops, 2.0 * 8 * 64 * 32);
}

TEST_F(CostTest, ConvolutionSkipsPadding) {
  attr::Convolution conv;
  conv.window = {{3, 1, 1, 1, 1, 1, false}};
  conv.dimensions = {0, 2, {1}, 1, 2, {0}, 0, 2, {1}};
  // Of 5 outputs x 3 taps, one falls into the padding at each end.
  const Instruction* result = b_.Make(Opcode::kConvolution, {P({2, 5, 3}), P({3, 3, 4})}, conv);
  EXPECT_EQ(CostOf(*result).flops, 2.0 * 2 * 4 * 3 * 13);
}

TEST_F(CostTest, ReduceAppliesItsComputation) {
  Instruction* sum = b_.Reduce({P({4, 8})}, {P({})}, {1}, MakeScalarComputation(&module_, Opcode::kAdd, F32));
  EXPECT_EQ(CostOf(*sum).flops, 28);
}

TEST_F(CostTest, SlicesReadWhatTheyTake) {
  Instruction* x = P({1024});
  Instruction* start = P({}, ElementType::kS32);
  const Cost slice = CostOf(*b_.DynamicSlice(x, {start}, {16}));
  EXPECT_EQ(slice.bytes_read, 64 + 4);
  const Cost update = CostOf(*b_.DynamicUpdateSlice(x, P({16}), {start}));
  EXPECT_EQ(update.bytes_read, 64 + 4);
  EXPECT_EQ(update.bytes_written, 64);
}

TEST_F(CostTest, FusionMovesOperandsAndResultsOnly) {
  Computation* fused = module_.AddComputation("fused");
  Instruction* p = fused->AddParameter(0, Shape(F32, {100}), "p");
  Builder inner(fused);
  Instruction* head = inner.Slice(p, {0}, {10}, {1});
  fused->set_root(inner.Binary(Opcode::kMultiply, inner.Unary(Opcode::kTanh, head), head));
  const Cost cost = CostOf(*b_.Make(Opcode::kFusion, {P({100})}, attr::Fusion{}, {fused}));
  EXPECT_EQ(cost.flops, 10);
  EXPECT_EQ(cost.transcendentals, 10);
  EXPECT_EQ(cost.bytes_read, 40);
  EXPECT_EQ(cost.bytes_written, 40);
}

TEST_F(CostTest, LoopsCountTheirKnownTrips) {
  Computation* body = module_.AddComputation("body");
  body->set_root(Builder(body).Unary(Opcode::kNegate, body->AddParameter(0, Shape(F32, {10}), "x")));
  Computation* condition = module_.AddComputation("condition");
  condition->AddParameter(0, Shape(F32, {10}), "x");
  condition->set_root(Builder(condition).ScalarConstant(ElementType::kPred, 1));
  Instruction* loop = b_.Make(Opcode::kWhile, {P({10})}, attr::None{}, {condition, body});
  EXPECT_EQ(CostOf(*loop).flops, 10);
  loop->backend_config = R"({"known_trip_count":{"n":"7"}})";
  EXPECT_EQ(CostOf(*loop).flops, 70);
}

}  // namespace
}  // namespace hlorun::hlo
