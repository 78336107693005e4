// Vector loops cut where their comparisons change their answers.
#include "backends/opencl/codegen/loop_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;
using testing::ElementsAre;
using Ranges = std::vector<std::pair<int64_t, int64_t>>;

class LoopPiecesTest : public ::testing::Test {
 protected:
  // for i in begin .. end, by vectors of 16: out[i] = condition ? x[i + 1] : y[i], where the loads ask, too.
  Stmt Loop(int64_t begin, int64_t end, const Expr& condition) const {
    const ir::Var is_first = ir::MakeVar("is_first", ir::kPredType), a = ir::MakeVar("a", ir::kF32Type),
                  b = ir::MakeVar("b", ir::kF32Type);
    const Stmt body = ir::Block({ir::Let(is_first, condition), ir::Let(a, ir::Load(x_, i() + 1, ir::Ref(is_first))),
                                 ir::Let(b, ir::Load(y_, i(), ir::Not(condition))),
                                 ir::Store(out_, i(), ir::Select(ir::Ref(is_first), ir::Ref(a), ir::Ref(b)))});
    return ir::For(ir::LoopRole::kVector, i_, ir::Int(begin), ir::Int(end), body, 1, 16);
  }

  Expr i() const { return ir::Ref(i_); }

  static Ranges RangesOf(const std::vector<Stmt>& pieces) {
    Ranges ranges;
    for (const Stmt& piece : pieces) {
      EXPECT_EQ(piece->role, ir::LoopRole::kVector);
      EXPECT_EQ(piece->width, 16);
      ranges.emplace_back(piece->begin->integer, piece->end->integer);
    }
    return ranges;
  }

  // Of the arrays that a piece loads, without asking; "?" where it asks.
  static std::vector<std::string> Loaded(const Stmt& s) {
    std::vector<std::string> names;
    if (s->value != nullptr) Collect(s->value, names);
    for (const Stmt& b : s->body) {
      for (const std::string& name : Loaded(b)) names.push_back(name);
    }
    return names;
  }

 private:
  static void Collect(const Expr& x, std::vector<std::string>& names) {
    if (x->kind == ir::ExprKind::kLoad) names.push_back(x->args.size() > 1 ? "?" : x->buffer->name);
    for (const Expr& a : x->args) Collect(a, names);
  }

  const ir::Var i_ = ir::MakeIndex("i", 0, 511, ir::kIndex32);
  const ir::BufferRef x_ = ir::MakeBuffer("x", hlo::ElementType::kF32, 513),
                      y_ = ir::MakeBuffer("y", hlo::ElementType::kF32, 512),
                      out_ = ir::MakeBuffer("out", hlo::ElementType::kF32, 512, ir::Buffer::Space::kGlobal, true);
};

TEST_F(LoopPiecesTest, EachReadsOneArray) {
  const std::vector<Stmt> pieces = PiecesOf(Loop(0, 512, i() < ir::Int(32)));
  EXPECT_EQ(RangesOf(pieces), (Ranges{{0, 32}, {32, 512}}));
  EXPECT_THAT(Loaded(pieces[0]), ElementsAre("x"));
  EXPECT_THAT(Loaded(pieces[1]), ElementsAre("y"));
}

TEST_F(LoopPiecesTest, WholeVectorsLieAtMultiplesOfTheirWidth) {
  EXPECT_EQ(RangesOf(PiecesOf(Loop(0, 512, i() < ir::Int(1)))), (Ranges{{0, 1}, {1, 16}, {16, 512}}));
  EXPECT_EQ(RangesOf(PiecesOf(Loop(0, 512, ir::Compare(ir::Op::kGe, i() + 1, ir::Int(512))))),
            (Ranges{{0, 496}, {496, 511}, {511, 512}}));
  EXPECT_EQ(RangesOf(PiecesOf(Loop(3, 99, i() < ir::Int(50)))), (Ranges{{3, 35}, {35, 50}, {50, 51}, {51, 99}}));
}

TEST_F(LoopPiecesTest, OfEveryComparison) {
  using ir::Op;
  const auto answers = [&](Op op) {
    std::vector<std::string> arrays;
    for (const Stmt& piece : PiecesOf(Loop(0, 512, ir::Compare(op, i(), ir::Int(32))))) {
      const std::vector<std::string> loaded = Loaded(piece);
      arrays.push_back(fmt::format("{}:{}", piece->begin->integer, loaded.size() == 1 ? loaded[0] : "both"));
    }
    return arrays;
  };
  EXPECT_THAT(answers(Op::kLt), ElementsAre("0:x", "32:y"));
  EXPECT_THAT(answers(Op::kLe), ElementsAre("0:x", "32:x", "33:y", "48:y"));
  EXPECT_THAT(answers(Op::kGt), ElementsAre("0:y", "32:y", "33:x", "48:x"));
  EXPECT_THAT(answers(Op::kGe), ElementsAre("0:y", "32:x"));
  EXPECT_THAT(answers(Op::kEq), ElementsAre("0:y", "32:x", "33:y", "48:y"));
  EXPECT_THAT(answers(Op::kNe), ElementsAre("0:x", "32:y", "33:x", "48:x"));
  // The number first: 32 > i.
  EXPECT_EQ(RangesOf(PiecesOf(Loop(0, 512, ir::Compare(Op::kGt, ir::Int(32), i())))), (Ranges{{0, 32}, {32, 512}}));
}

TEST_F(LoopPiecesTest, NoneWhereNothingChanges) {
  EXPECT_EQ(PiecesOf(Loop(0, 512, i() < ir::Int(0))).size(), 1u);
  EXPECT_EQ(PiecesOf(Loop(0, 512, i() < ir::Int(512))).size(), 1u);
  // Fewer than four vectors.
  EXPECT_EQ(PiecesOf(Loop(0, 48, i() < ir::Int(16))).size(), 1u);
  // What is compared is no number, or not the variable.
  const Expr other = ir::Ref(ir::MakeIndex("n", 0, 511, ir::kIndex32));
  EXPECT_EQ(PiecesOf(Loop(0, 512, i() < other)).size(), 1u);
  EXPECT_EQ(PiecesOf(Loop(0, 512, i() * -2 < ir::Int(-2000))).size(), 1u);
}

TEST_F(LoopPiecesTest, NotMoreThanAFew) {
  const auto below = [&](int64_t n) { return i() < ir::Int(n); };
  const Expr four = ir::Or(ir::Or(below(32), below(64)), ir::Or(below(96), below(128)));
  EXPECT_EQ(PiecesOf(Loop(0, 512, four)).size(), 5u);
  EXPECT_EQ(PiecesOf(Loop(0, 512, ir::Or(four, below(160)))).size(), 1u);
}

// for i, for k in 0 .. 5: out[i] = out[i] + (0 <= i + k - 2 < 512 ? x[i + k - 2] : 0), times `stride` where it is
// not 1.
Stmt Window(int64_t end, int64_t stride) {
  using ir::Op;
  const ir::Var i = ir::MakeIndex("i", 0, end - 1, ir::kIndex32), k = ir::MakeIndex("k", 0, 4, ir::kIndex32),
                is_inside = ir::MakeVar("is_inside", ir::kPredType);
  const ir::BufferRef x = ir::MakeBuffer("x", hlo::ElementType::kF32, 512),
                      out = ir::MakeBuffer("out", hlo::ElementType::kF32, 512, ir::Buffer::Space::kGlobal, true);
  const Expr at = ir::Ref(i) * stride + ir::Ref(k) + -2;
  const Expr inside = ir::And(ir::Compare(Op::kGe, at, ir::Int(0)), ir::Compare(Op::kLt, at, ir::Int(512)));
  const Stmt tap =
      ir::Block({ir::Let(is_inside, inside),
                 ir::Store(out, ir::Ref(i), ir::Load(out, ir::Ref(i)) + ir::Load(x, at, ir::Ref(is_inside)))});
  const Stmt taps = ir::For(ir::LoopRole::kSerial, k, ir::Int(0), ir::Int(5), tap);
  return ir::For(ir::LoopRole::kVector, i, ir::Int(0), ir::Int(end), taps, 1, 16);
}

TEST_F(LoopPiecesTest, WindowsAskAtTheirEndsAlone) {
  const std::vector<Stmt> pieces = PiecesOf(Window(512, 1));
  EXPECT_EQ(RangesOf(pieces), (Ranges{{0, 16}, {16, 496}, {496, 512}}));
  EXPECT_THAT(Loaded(pieces[0]), ElementsAre("out", "?"));
  EXPECT_THAT(Loaded(pieces[1]), ElementsAre("out", "x"));
  EXPECT_THAT(Loaded(pieces[2]), ElementsAre("out", "?"));
  // 2 i + 2 < 512.
  EXPECT_EQ(RangesOf(PiecesOf(Loop(0, 512, i() * 2 < ir::Int(32)))), (Ranges{{0, 16}, {16, 512}}));
  EXPECT_EQ(RangesOf(PiecesOf(Window(256, 2))), (Ranges{{0, 16}, {16, 240}, {240, 256}}));
  // Too short to be worth three loops.
  EXPECT_EQ(RangesOf(PiecesOf(Window(64, 1))).size(), 1u);
}

}  // namespace
}  // namespace hlorun::opencl
