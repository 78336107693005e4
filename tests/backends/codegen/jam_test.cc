// Two iterations side by side: one loop where the ends agree, names and arrays of their own, each in its own order.
#include "backends/opencl/codegen/jam.h"

#include <gtest/gtest.h>

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

// for k < `end`: sum0[k % 4] += in[row * 8 + k]; v1 = sum0[0]; out[row] = v1
struct Row {
  explicit Row(const Expr& end_of_row = nullptr) {
    const ir::BufferRef in = ir::MakeBuffer("in", hlo::ElementType::kF32, 64),
                        out = ir::MakeBuffer("out", hlo::ElementType::kF32, 8, ir::Buffer::Space::kGlobal, true),
                        sum = ir::MakeBuffer("sum0", hlo::ElementType::kF32, 4, ir::Buffer::Space::kPrivate, true);
    const ir::Var k = ir::MakeIndex("k0", 0, 7), v = ir::MakeVar("v1", ir::kF32Type);
    const Expr at = ir::Binary(ir::Op::kFloorMod, ir::Ref(k), ir::Int(4));
    const Stmt step = ir::Store(sum, at, ir::Load(sum, at) + ir::Load(in, ir::Ref(row) * 8 + ir::Ref(k)));
    const Expr end = end_of_row ? ir::Ref(row) + 1 : ir::Int(8);
    body = ir::Block({ir::DeclareArray(sum), ir::For(ir::LoopRole::kSerial, k, ir::Int(0), end, step),
                      ir::Let(v, ir::Load(sum, ir::Int(0))), ir::Store(out, ir::Ref(row), ir::Ref(v))});
  }
  Stmt Jam() const {
    const ir::Var two = ir::MakeIndex("two", 0, 3);
    return Jammed(body, row, ir::Ref(two) * 2, ir::Ref(two) * 2 + 1);
  }
  ir::Var row = ir::MakeIndex("row", 0, 7);
  Stmt body;
};

int Loops(const Stmt& s) {
  int loops = s->kind == ir::StmtKind::kFor ? 1 : 0;
  for (const Stmt& b : s->body) loops += Loops(b);
  return loops;
}

TEST(Jam, LoopsWithTheSameEndsAreOne) {
  const Row row;
  const std::string text = ir::ToString(row.Jam());
  EXPECT_EQ(Loops(row.Jam()), 1) << text;
  // Both arrays, both variables, and each row's own place.
  for (const char* part : {"sum0", "sum0b", "v1", "v1b", "(two * 2)", "((two * 2) + 1)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("row"), std::string::npos) << text;
  EXPECT_EQ(text.find("k0b"), std::string::npos) << text;
}

TEST(Jam, LoopsThatEndElsewhereStayApart) {
  const Row row(ir::Int(1));
  EXPECT_EQ(Loops(row.Jam()), 2) << ir::ToString(row.Jam());
}

TEST(Jam, TheFirstComesFirst) {
  const Row row;
  const Stmt jammed = row.Jam();
  ASSERT_EQ(jammed->kind, ir::StmtKind::kBlock);
  std::vector<std::string> lets;
  for (const Stmt& s : jammed->body) {
    if (s->kind == ir::StmtKind::kLet) lets.push_back(s->var->name);
  }
  EXPECT_EQ(lets, (std::vector<std::string>{"v1", "v1b"}));
}

}  // namespace
}  // namespace hlorun::opencl
