#include "passes/expand/linear_algebra.h"

#include <limits>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "passes/expand/counted_loop.h"

namespace hlorun::passes {

using hlo::ComparisonDirection;
using hlo::Dims;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

// Stacks of matrices [batch, rows, columns]; other leading dimensions are merged into one outside.
Instruction* Stacked(hlo::Builder& build, Instruction* x) {
  const Dims& dimensions = x->shape().dimensions();
  const int64_t rows = dimensions[dimensions.size() - 2], columns = dimensions.back();
  const int64_t batch = hlo::CheckedProduct({dimensions.data(), dimensions.size() - 2});
  return build.Reshape(x, {batch, rows, columns});
}

Instruction* Swapped(hlo::Builder& build, Instruction* x) { return build.Transpose(x, {0, 2, 1}); }

Instruction* Conjugate(hlo::Builder& build, Instruction* x) {
  if (!hlo::IsComplex(x->shape().element_type())) return x;
  // From zero, not negated: the conjugate of a real number has no -0.
  Instruction* imaginary = build.Unary(Opcode::kImag, x);
  imaginary = build.Binary(Opcode::kSubtract, build.Splat(imaginary->shape(), 0.0), imaginary);
  return build.Binary(Opcode::kComplex, build.Unary(Opcode::kReal, x), imaginary);
}

// [batch, 1, columns] of row `i`, or [batch, rows, 1] of column `i`.
Instruction* Line(hlo::Builder& build, Instruction* x, Instruction* i, int64_t dimension) {
  Instruction* zero = build.ScalarConstant(ElementType::kS32, int64_t{0});
  std::vector<Instruction*> starts(3, zero);
  starts[static_cast<size_t>(dimension)] = i;
  Dims sizes = x->shape().dimensions();
  sizes[static_cast<size_t>(dimension)] = 1;
  return build.DynamicSlice(x, starts, sizes);
}

Instruction* WithLine(hlo::Builder& build, Instruction* x, Instruction* line, Instruction* i, int64_t dimension) {
  Instruction* zero = build.ScalarConstant(ElementType::kS32, int64_t{0});
  std::vector<Instruction*> starts(3, zero);
  starts[static_cast<size_t>(dimension)] = i;
  return build.DynamicUpdateSlice(x, line, starts);
}

Instruction* Product(hlo::Builder& build, Instruction* x, Instruction* y, int64_t contracting_y) {
  hlo::attr::Dot dot;
  dot.lhs_batch = dot.rhs_batch = {0};
  dot.lhs_contracting = {2};
  dot.rhs_contracting = {contracting_y};
  dot.precision = {hlo::Precision::kHighest, hlo::Precision::kHighest};
  return build.Dot(x, y, dot, x->shape().element_type());
}

// Column j of the factor from the columns before it: (a_j - l row_j^H) / sqrt of its diagonal element.
std::vector<Instruction*> NextColumn(hlo::Builder& build, Instruction* j, Instruction* a, Instruction* l) {
  Instruction* row = Conjugate(build, Line(build, l, j, 1));
  Instruction* column = build.Binary(Opcode::kSubtract, Line(build, a, j, 2), Product(build, l, row, 2));
  Instruction* diagonal = Line(build, column, j, 1);  // [batch, 1, 1]
  if (hlo::IsComplex(diagonal->shape().element_type())) {
    Instruction* real = build.Unary(Opcode::kReal, diagonal);
    diagonal = build.Binary(Opcode::kComplex, real, build.Splat(real->shape(), 0.0));
  }
  Instruction* root = build.Unary(Opcode::kSqrt, diagonal);
  const Dims& dimensions = column->shape().dimensions();
  const auto spread = [&](Instruction* x) {
    return build.Broadcast(build.Reshape(x, {dimensions[0]}), dimensions, {0});
  };
  Instruction* positions = build.Iota(Shape(ElementType::kS32, dimensions), 1);
  Instruction* here = build.Broadcast(j, dimensions, {});
  Instruction* below = build.Compare(positions, here, ComparisonDirection::kGt);
  Instruction* at = build.Compare(positions, here, ComparisonDirection::kEq);
  Instruction* scaled = build.Binary(Opcode::kDivide, column, spread(root));
  Instruction* rest = build.Select(at, spread(root), build.Splat(column->shape(), 0.0));
  return {a, WithLine(build, l, build.Select(below, scaled, rest), j, 2)};
}

// All NaN where a diagonal element of the factor is the root of a negative number, and of those that are zero, 0 / 0.
Instruction* NanUnlessPositive(hlo::Builder& build, hlo::Module* module, Instruction* l) {
  const Shape index(ElementType::kS32, l->shape().dimensions());
  Instruction* real = hlo::IsComplex(l->shape().element_type()) ? build.Unary(Opcode::kReal, l) : l;
  Instruction* zero = build.Splat(real->shape(), 0.0);
  Instruction* off = build.Compare(build.Iota(index, 1), build.Iota(index, 2), ComparisonDirection::kNe);
  Instruction* fine = build.Binary(Opcode::kOr, off, build.Compare(real, zero, ComparisonDirection::kGe));
  hlo::Computation* both = hlo::MakeScalarComputation(module, Opcode::kAnd, ElementType::kPred);
  fine = build.Reduce({fine}, {build.ScalarConstant(ElementType::kPred, int64_t{1})}, {1, 2}, both);
  Instruction* nan = build.Splat(l->shape(), std::numeric_limits<double>::quiet_NaN());
  Instruction* nowhere = build.Splat(real->shape(), std::numeric_limits<double>::quiet_NaN());
  if (real != l) nowhere = build.Binary(Opcode::kComplex, nowhere, nowhere);
  Instruction* kept = build.Binary(Opcode::kOr, off, build.Compare(real, zero, ComparisonDirection::kNe));
  return build.Select(build.Broadcast(fine, l->shape().dimensions(), {0}), build.Select(kept, l, nowhere), nan);
}

void ExpandOne(Instruction* cholesky) {
  hlo::Builder build(cholesky->parent(), cholesky);
  build.before = cholesky;
  const bool lower = cholesky->As<hlo::attr::Cholesky>().lower;
  Instruction* a = Stacked(build, cholesky->operand(0));
  if (!lower) a = Conjugate(build, Swapped(build, a));
  const int64_t size = a->shape().dimension(1);
  const LoopStep step = [](hlo::Builder& in, Instruction* j, const std::vector<Instruction*>& carried) {
    return NextColumn(in, j, carried[0], carried[1]);
  };
  Instruction* l = CountedLoop(build, cholesky->module(), size, {a, build.Splat(a->shape(), 0.0)}, step)[1];
  l = NanUnlessPositive(build, cholesky->module(), l);
  if (!lower) l = Conjugate(build, Swapped(build, l));
  cholesky->parent()->Replace(cholesky, build.Reshape(l, cholesky->shape().dimensions()));
}

// Row i of the solution of a lower triangular system from the rows before it.
std::vector<Instruction*> NextRow(hlo::Builder& build, Instruction* i, const std::vector<Instruction*>& carried) {
  Instruction *strict = carried[0], *diagonal = carried[1], *b = carried[2], *x = carried[3];
  Instruction* known = Product(build, Line(build, strict, i, 1), x, 1);
  Instruction* row = build.Binary(Opcode::kSubtract, Line(build, b, i, 1), known);
  const Dims& dimensions = row->shape().dimensions();
  Instruction* divisor = build.Reshape(Line(build, diagonal, i, 1), {dimensions[0]});
  row = build.Binary(Opcode::kDivide, row, build.Broadcast(divisor, dimensions, {0}));
  return {strict, diagonal, b, WithLine(build, x, row, i, 1)};
}

// Solves l x = b for lower triangular l; what is not below or on the diagonal is never used.
Instruction* SolveLower(hlo::Builder& build, hlo::Module* module, Instruction* l, Instruction* b, bool unit_diagonal) {
  const Shape index(ElementType::kS32, l->shape().dimensions());
  Instruction *rows = build.Iota(index, 1), *columns = build.Iota(index, 2);
  Instruction* zeros = build.Splat(l->shape(), 0.0);
  Instruction* strict = build.Select(build.Compare(rows, columns, ComparisonDirection::kGt), l, zeros);
  const int64_t batch = l->shape().dimension(0), size = l->shape().dimension(1);
  const Shape line(l->shape().element_type(), {batch, size, 1});
  Instruction* diagonal = nullptr;
  if (unit_diagonal) {
    diagonal = build.Splat(line, 1.0);
  } else {
    Instruction* on = build.Select(build.Compare(rows, columns, ComparisonDirection::kEq), l, zeros);
    hlo::Computation* add = hlo::MakeScalarComputation(module, Opcode::kAdd, l->shape().element_type());
    Instruction* zero = build.ScalarConstant(l->shape().element_type(), 0.0);
    diagonal = build.Reshape(build.Reduce({on}, {zero}, {2}, add), line.dimensions());
  }
  return CountedLoop(build, module, size, {strict, diagonal, b, build.Splat(b->shape(), 0.0)}, NextRow)[3];
}

void ExpandSolve(Instruction* solve) {
  const auto& attributes = solve->As<hlo::attr::TriangularSolve>();
  hlo::Builder build(solve->parent(), solve);
  build.before = solve;
  Instruction* a = Stacked(build, solve->operand(0));
  Instruction* b = Stacked(build, solve->operand(1));
  bool lower = attributes.lower;
  // op(a) x = b; and x op(a) = b is op(a)^T x^T = b^T.
  if (attributes.transpose_a == hlo::TransposeKind::kAdjoint) a = Conjugate(build, a);
  if ((attributes.transpose_a != hlo::TransposeKind::kNoTranspose) == attributes.left_side) {
    a = Swapped(build, a);
    lower = !lower;
  }
  if (!attributes.left_side) b = Swapped(build, b);
  // An upper triangular system is a lower one, backwards.
  if (!lower) {
    a = build.Reverse(a, {1, 2});
    b = build.Reverse(b, {1});
  }
  Instruction* x = SolveLower(build, solve->module(), a, b, attributes.unit_diagonal);
  if (!lower) x = build.Reverse(x, {1});
  if (!attributes.left_side) x = Swapped(build, x);
  solve->parent()->Replace(solve, build.Reshape(x, solve->shape().dimensions()));
}

bool ExpandAll(hlo::Module& module, Opcode opcode, void (*expand)(Instruction*)) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(opcode) || instruction->shape().ElementCount() == 0) continue;
      expand(instruction);
      changed = true;
    }
  }
  return changed;
}

}  // namespace

bool ExpandCholesky::Run(hlo::Module& module, PassContext&) { return ExpandAll(module, Opcode::kCholesky, ExpandOne); }

bool ExpandTriangularSolve::Run(hlo::Module& module, PassContext&) {
  return ExpandAll(module, Opcode::kTriangularSolve, ExpandSolve);
}

}  // namespace hlorun::passes
