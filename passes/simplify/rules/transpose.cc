// Transpose and reverse.
#include <algorithm>

#include "hlo/permutation.h"
#include "passes/simplify/product_readers.h"
#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// The dimensions that are not 1 keep their order.
bool OnlyUnitsMove(const Match& m) {
  std::vector<int64_t> wide;
  for (int64_t d : m.root->dimensions()) {
    if (m[X]->shape().dimension(d) != 1) wide.push_back(d);
  }
  return std::is_sorted(wide.begin(), wide.end()) && !hlo::IsIdentity(m.root->dimensions());
}

Instruction* ComposeTransposes(Match& m) {
  return m.build.Transpose(m[X], hlo::Composed(m[A]->dimensions(), m.root->dimensions()));
}

Instruction* BroadcastTransposed(Match& m) {
  std::vector<int64_t> position(m.root->dimensions().size());
  for (size_t i = 0; i < position.size(); ++i) {
    position[static_cast<size_t>(m.root->dimensions()[i])] = static_cast<int64_t>(i);
  }
  std::vector<int64_t> dimensions;
  for (int64_t d : m[A]->dimensions()) dimensions.push_back(position[static_cast<size_t>(d)]);
  return m.build.Broadcast(m[X], m.dimensions(), dimensions);
}

bool ReversesUnitsOnly(const Match& m) {
  const std::vector<int64_t>& dimensions = m.root->dimensions();
  return std::all_of(dimensions.begin(), dimensions.end(), [&](int64_t d) { return m.shape().dimension(d) <= 1; });
}

// No reversed dimension comes from the operand of the broadcast.
bool ReversesCopies(const Match& m) {
  const std::vector<int64_t>& from = m[A]->dimensions();
  const std::vector<int64_t>& reversed = m.root->dimensions();
  return std::none_of(reversed.begin(), reversed.end(),
                      [&](int64_t d) { return std::find(from.begin(), from.end(), d) != from.end(); });
}

// Rows of one length one behind the other, which become columns side by side: as a shuffle of channels does. More of
// them are better turned by squares.
bool JoinsRows(const Match& m) {
  constexpr int64_t kMostRows = 4;
  const std::vector<int64_t>& order = m.root->dimensions();
  const auto rank = static_cast<int64_t>(order.size());
  if (m.shape().ElementCount() == 0 || rank < 2 || m[B]->shape().rank() + 1 != rank ||
      m[B]->operand_count() > kMostRows)
    return false;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t expected = d + 2 == rank ? rank - 1 : d + 1 == rank ? rank - 2 : d;
    if (order[static_cast<size_t>(d)] != expected) return false;
  }
  const Dims &apart = m[A]->shape().dimensions(), &together = m[B]->shape().dimensions();
  const int64_t last = m[B]->shape().rank() - 1;
  return m[B]->dimensions()[0] == last && std::equal(apart.begin(), apart.end() - 2, together.begin()) &&
         std::all_of(m[B]->operands().begin(), m[B]->operands().end(),
                     [&](const Instruction* operand) { return operand->shape().dimension(last) == apart.back(); });
}

Instruction* ColumnsSideBySide(Match& m) {
  Dims column = m.dimensions();
  column.back() = 1;
  std::vector<Instruction*> columns;
  for (Instruction* operand : m[B]->operands()) columns.push_back(m.build.Reshape(operand, column));
  return m.build.Concatenate(columns, m.shape().rank() - 1);
}

// The transpose is then next to the products, which read transposed operands as they are.
Instruction* ScaleBefore(Match& m) {
  Instruction* factor = m.build.Broadcast(m.build.Constant(m.Splat(C)), m[X]->shape().dimensions(), {});
  return m.build.Transpose(m.build.Binary(Opcode::kMultiply, m[X], factor), m[A]->dimensions());
}

}  // namespace

std::vector<Rule> TransposeRules() {
  return {
      {"scaled_transpose_for_products", Exactness::kExact,
       Op(Opcode::kMultiply, Op(Opcode::kTranspose, X).OneUse().As(A), Splat().As(C)),
       [](const Match& m) { return OnlyProductsRead(*m.root); }, ScaleBefore,
       R"(x = f32[4,3] parameter(0)
          y = f32[3,5] parameter(1)
          t = f32[3,4] transpose(x), dimensions={1,0}
          c = f32[] constant(0.5)
          b = f32[3,4] broadcast(c), dimensions={}
          s = f32[3,4] multiply(t, b)
          ROOT d = f32[4,5] dot(s, y), lhs_contracting_dims={0}, rhs_contracting_dims={0})",
       R"(x = f32[4,3] parameter(0)
          t = f32[3,4] transpose(x), dimensions={1,0}
          c = f32[] constant(0.5)
          b = f32[3,4] broadcast(c), dimensions={}
          ROOT s = f32[3,4] multiply(t, b))"},
      {"transpose_identity", Exactness::kExact, Op(Opcode::kTranspose, X),
       [](const Match& m) { return hlo::IsIdentity(m.root->dimensions()); }, [](Match& m) { return m[X]; },
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[2,3] transpose(x), dimensions={0,1})",
       R"(x = f32[3,3] parameter(0)
          ROOT r = f32[3,3] transpose(x), dimensions={1,0})"},
      {"transpose_of_transpose",
       Exactness::kExact,
       Op(Opcode::kTranspose, Op(Opcode::kTranspose, X).As(A)),
       {},
       ComposeTransposes,
       R"(x = f32[2,3,4] parameter(0)
          y = f32[3,4,2] transpose(x), dimensions={1,2,0}
          ROOT r = f32[3,2,4] transpose(y), dimensions={0,2,1})",
       R"(x = f32[2,3,4] parameter(0)
          y = f32[3,4,2] reshape(x)
          ROOT r = f32[3,2,4] transpose(y), dimensions={0,2,1})"},
      {"transpose_of_units", Exactness::kExact, Op(Opcode::kTranspose, X), OnlyUnitsMove,
       [](Match& m) { return m.build.Reshape(m[X], m.dimensions()); },
       R"(x = f32[2,1,3] parameter(0)
          ROOT r = f32[1,2,3] transpose(x), dimensions={1,0,2})",
       R"(x = f32[2,1,3] parameter(0)
          ROOT r = f32[3,1,2] transpose(x), dimensions={2,1,0})"},
      {"transpose_of_broadcast",
       Exactness::kExact,
       Op(Opcode::kTranspose, Op(Opcode::kBroadcast, X).As(A)),
       {},
       BroadcastTransposed,
       R"(x = f32[2,3] parameter(0)
          y = f32[2,4,3] broadcast(x), dimensions={0,2}
          ROOT r = f32[3,4,2] transpose(y), dimensions={2,1,0})",
       R"(x = f32[2,3] parameter(0)
          y = f32[2,3] negate(x)
          ROOT r = f32[3,2] transpose(y), dimensions={1,0})"},
      {"transpose_of_joined_rows", Exactness::kExact,
       Op(Opcode::kTranspose, Op(Opcode::kReshape, Op(Opcode::kConcatenate).As(B).OneUse()).As(A).OneUse()), JoinsRows,
       ColumnsSideBySide,
       R"(x = f32[3,5] parameter(0)
          y = f32[3,5] parameter(1)
          c = f32[3,10] concatenate(x, y), dimensions={1}
          r = f32[3,2,5] reshape(c)
          ROOT t = f32[3,5,2] transpose(r), dimensions={0,2,1})",
       R"(x = f32[3,5] parameter(0)
          y = f32[3,7] parameter(1)
          c = f32[3,12] concatenate(x, y), dimensions={1}
          r = f32[3,2,6] reshape(c)
          ROOT t = f32[3,6,2] transpose(r), dimensions={0,2,1})"},
      {"reverse_of_units", Exactness::kExact, Op(Opcode::kReverse, X), ReversesUnitsOnly, [](Match& m) { return m[X]; },
       R"(x = f32[1,3] parameter(0)
          ROOT r = f32[1,3] reverse(x), dimensions={0})",
       R"(x = f32[1,3] parameter(0)
          ROOT r = f32[1,3] reverse(x), dimensions={0,1})"},
      {"reverse_of_reverse", Exactness::kExact, Op(Opcode::kReverse, Op(Opcode::kReverse, X).As(A)),
       [](const Match& m) { return m.root->dimensions() == m[A]->dimensions(); }, [](Match& m) { return m[X]; },
       R"(x = f32[2,3] parameter(0)
          y = f32[2,3] reverse(x), dimensions={1}
          ROOT r = f32[2,3] reverse(y), dimensions={1})",
       R"(x = f32[2,3] parameter(0)
          y = f32[2,3] reverse(x), dimensions={1}
          ROOT r = f32[2,3] reverse(y), dimensions={0})"},
      {"reverse_of_broadcast", Exactness::kExact, Op(Opcode::kReverse, Op(Opcode::kBroadcast, X).As(A)), ReversesCopies,
       [](Match& m) { return m[A]; },
       R"(x = f32[3] parameter(0)
          y = f32[2,3] broadcast(x), dimensions={1}
          ROOT r = f32[2,3] reverse(y), dimensions={0})",
       R"(x = f32[3] parameter(0)
          y = f32[2,3] broadcast(x), dimensions={1}
          ROOT r = f32[2,3] reverse(y), dimensions={1})"},
  };
}

}  // namespace hlorun::passes
