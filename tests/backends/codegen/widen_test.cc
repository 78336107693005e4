// Vector loops as code over vectors: what stays a scalar.
#include "backends/opencl/codegen/widen.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/opencl/codegen/widener.h"

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

// Lanes of the comparisons in the vectors of: for i in first .. first + 64: out[i] = compare(op, i, bound) ? 1 : 2.
// Where `first`, a multiple of 64, lies is not known, so that the loop is not cut at the bound.
int LanesOfComparison(ir::Op op, int64_t bound, bool index_first = true) {
  const ir::BufferRef out = ir::MakeBuffer("out", hlo::ElementType::kF32, 640, ir::Buffer::Space::kGlobal, true);
  const ir::Var i = ir::MakeIndex("i", 0, 639, ir::kIndex32), first = ir::MakeIndex("first", 0, 576, ir::kIndex32);
  first->factor = 64;
  const ir::Expr index = ir::Ref(i), other = ir::Int(bound);
  const ir::Expr below = index_first ? ir::Compare(op, index, other) : ir::Compare(op, other, index);
  const ir::Stmt store = ir::Store(out, index, ir::Select(below, ir::Real(1), ir::Real(2)));
  return WidestMask(
      WidenVectorLoop(ir::For(ir::LoopRole::kVector, i, ir::Ref(first), ir::Ref(first) + 64, store, 1, 16)));
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

// for i in 0 .. 96: first[i] = x[i]; second[i] = x[i], past the caches, by vectors of 8: the buffers in the order in
// which they are stored to, and how far each vector lies behind the first.
std::vector<std::pair<std::string, int64_t>> StreamedStores() {
  const auto global = [](const char* name, bool written) {
    return ir::MakeBuffer(name, hlo::ElementType::kF32, 96, ir::Buffer::Space::kGlobal, written);
  };
  const ir::BufferRef in = global("in", false), first = global("first", true), second = global("second", true);
  first->streams = second->streams = true;
  const ir::Var i = ir::MakeIndex("i", 0, 95, ir::kIndex32), x = ir::MakeVar("x", ir::kF32Type);
  const ir::Expr base = ir::Ref(i);
  const ir::Stmt body = ir::Block(
      {ir::Let(x, ir::Load(in, base)), ir::Store(first, base, ir::Ref(x)), ir::Store(second, base, ir::Ref(x))});
  const ir::Stmt loop = WidenVectorLoop(ir::For(ir::LoopRole::kVector, i, ir::Int(0), ir::Int(96), body, 1, 8));
  std::vector<std::pair<std::string, int64_t>> stores;
  for (const ir::Stmt& s : loop->body[0]->body) {
    if (s->kind != ir::StmtKind::kStore) continue;
    EXPECT_TRUE(s->streaming);
    stores.emplace_back(s->buffer->name, ir::ConstantDifference(s->index->args[0], ir::Ref(loop->var)).value_or(-1));
  }
  EXPECT_EQ(loop->step->integer, static_cast<int64_t>(stores.size()) / 2 * 8);
  return stores;
}

TEST(Widen, StreamsAreWrittenLineByLine) {
  using Stores = std::vector<std::pair<std::string, int64_t>>;
  EXPECT_EQ(StreamedStores(), (Stores{{"first", 0}, {"first", 8}, {"second", 0}, {"second", 8}}));
}

TEST(Widen, WhatAllLanesShareMayDifferBetweenVectors) {
  // A name for the first lane's answer, another one for each vector.
  const ir::Var i = ir::MakeIndex("i", 0, 191, ir::kIndex32), first = ir::MakeIndex("first", 0, 96, ir::kIndex32),
                below = ir::MakeVar("below", ir::kPredType);
  const ir::BufferRef out = ir::MakeBuffer("out", hlo::ElementType::kF32, 192, ir::Buffer::Space::kGlobal, true);
  out->streams = true;
  first->factor = 96;
  const ir::Stmt body = ir::Block({ir::Let(below, ir::Ref(i) < ir::Int(24)),
                                   ir::Store(out, ir::Ref(i), ir::Select(ir::Ref(below), ir::Real(1), ir::Real(2)))});
  const ir::Stmt loop =
      WidenVectorLoop(ir::For(ir::LoopRole::kVector, i, ir::Ref(first), ir::Ref(first) + 96, body, 1, 8));
  EXPECT_EQ(loop->step->integer, 8);
}

TEST(Widen, APlaceByAnotherNameIsStillEven) {
  const ir::BufferRef in = ir::MakeBuffer("in", hlo::ElementType::kF32, 128, ir::Buffer::Space::kGlobal, false);
  const ir::BufferRef out = ir::MakeBuffer("out", hlo::ElementType::kF32, 64, ir::Buffer::Space::kGlobal, true);
  const ir::Var i = ir::MakeIndex("i", 0, 63, ir::kIndex32), at = ir::MakeVar("at", ir::kIndex32);
  const ir::Stmt body = ir::Block({ir::Let(at, ir::Ref(i) * 2), ir::Store(out, ir::Ref(i), ir::Load(in, ir::Ref(at)))});
  const ir::Stmt loop = WidenVectorLoop(ir::For(ir::LoopRole::kVector, i, ir::Int(0), ir::Int(64), body, 1, 8));
  const ir::Expr& place = loop->body[0]->body.back()->value->args[0];
  ASSERT_EQ(place->kind, ir::ExprKind::kRamp);
  EXPECT_EQ(place->args[0]->kind, ir::ExprKind::kVar);
  EXPECT_EQ(KnownFactor(place->args[0], 16), 16);
}

// Where each loop begins, or a store where there is none, and how many lanes are stored, in the order of the code.
using Steps = std::vector<std::pair<int64_t, int>>;
void StoredSteps(const ir::Stmt& s, const ir::Expr& first, std::optional<int64_t> begin, Steps& steps) {
  if (s->kind == ir::StmtKind::kFor) begin = ir::ConstantDifference(s->begin, first);
  if (s->kind == ir::StmtKind::kStore) {
    const ir::Expr& place = s->index->kind == ir::ExprKind::kRamp ? s->index->args[0] : s->index;
    steps.emplace_back(begin ? *begin : ir::ConstantDifference(place, first).value_or(-1), s->value->type.lanes);
  }
  for (const ir::Stmt& b : s->body) StoredSteps(b, first, begin, steps);
}

// Of: for i in first .. first + extent: sum = 0; for k in 0 .. 10: sum += y[k * 64 + i]; x[i] = x[i] * sum, which may
// not run twice, by vectors of 16. Without the sums it is little work.
Steps StepsInPlace(int64_t extent, bool sums) {
  const auto global = [&](const char* name, int64_t elements) {
    return ir::MakeBuffer(name, hlo::ElementType::kF32, elements, ir::Buffer::Space::kGlobal, true);
  };
  const ir::BufferRef x = global("x", 1 << 20), y = global("y", 1 << 20);
  const ir::Var i = ir::MakeIndex("i", 0, 1 << 19, ir::kIndex32), k = ir::MakeIndex("k", 0, 9, ir::kIndex32),
                first = ir::MakeIndex("first", 0, 1 << 10, ir::kIndex32), sum = ir::MakeVar("sum", ir::kF32Type);
  std::vector<ir::Stmt> body = {ir::Let(sum, ir::Real(0))};
  if (sums) {
    const ir::Expr next = ir::Ref(sum) + ir::Load(y, ir::Ref(k) * 64 + ir::Ref(i));
    body.push_back(ir::For(ir::LoopRole::kSerial, k, ir::Int(0), ir::Int(10), ir::Assign(sum, next)));
  }
  body.push_back(ir::Store(x, ir::Ref(i), ir::Load(x, ir::Ref(i)) * ir::Ref(sum)));
  Steps steps;
  StoredSteps(WidenVectorLoop(
                  ir::For(ir::LoopRole::kVector, i, ir::Ref(first), ir::Ref(first) + extent, ir::Block(body), 1, 16)),
              ir::Ref(first), std::nullopt, steps);
  return steps;
}

TEST(Widen, TailsOfMuchWorkAreVectorsToo) {
  EXPECT_EQ(StepsInPlace(64, true), (Steps{{0, 16}}));
  EXPECT_EQ(StepsInPlace(200, true), (Steps{{0, 16}, {192, 8}}));
  EXPECT_EQ(StepsInPlace(20, true), (Steps{{0, 16}, {16, 4}}));
  EXPECT_EQ(StepsInPlace(29, true), (Steps{{0, 16}, {16, 8}, {24, 4}, {28, 1}}));
  EXPECT_EQ(StepsInPlace(18, true), (Steps{{0, 16}, {16, 1}}));
  EXPECT_EQ(StepsInPlace(29, false).size(), 2);
}

ir::Expr Multiple(int64_t factor) {
  const ir::Var x = ir::MakeIndex("x", 0, 1 << 20, ir::kIndex32);
  x->factor = factor;
  return ir::Ref(x);
}
ir::Expr Divided(const ir::Expr& x, int64_t by) { return ir::Binary(ir::Op::kFloorDiv, x, ir::Int(by)); }
ir::Expr Rest(const ir::Expr& x, int64_t by) { return ir::Binary(ir::Op::kFloorMod, x, ir::Int(by)); }

TEST(KnownFactor, OfQuotients) {
  EXPECT_EQ(KnownFactor(Divided(Multiple(64), 8), 16), 8);
  EXPECT_EQ(KnownFactor(Divided(Multiple(64), 2), 16), 16);
  EXPECT_EQ(KnownFactor(Divided(Multiple(64), 64), 16), 1);
  EXPECT_EQ(KnownFactor(Divided(Multiple(12), 3), 16), 4);
  // 4 / 8, 12 / 8, ...: what is rounded tells nothing.
  EXPECT_EQ(KnownFactor(Divided(Multiple(4), 8), 16), 1);
  EXPECT_EQ(KnownFactor(Divided(Multiple(64), 3), 16), 1);
  EXPECT_EQ(KnownFactor(Divided(Multiple(64) + 4, 4), 16), 1);
  EXPECT_EQ(KnownFactor(ir::Binary(ir::Op::kFloorDiv, Multiple(64), Multiple(8)), 16), 1);
}

TEST(KnownFactor, OfRests) {
  EXPECT_EQ(KnownFactor(Rest(Multiple(8), 64), 16), 8);
  EXPECT_EQ(KnownFactor(Rest(Multiple(8), 20), 16), 4);
  EXPECT_EQ(KnownFactor(Rest(Multiple(8), 9), 16), 1);
  EXPECT_EQ(KnownFactor(Rest(Multiple(1), 16), 16), 1);
}

}  // namespace
}  // namespace hlorun::opencl
