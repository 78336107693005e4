// cholesky and triangular-solve, in f64 or c128, on stacks of matrices.
#include <cmath>
#include <complex>
#include <limits>

#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/evaluator/op_functions.h"

namespace hlorun::hlo {
namespace {

using Value = std::complex<double>;

// A square or rectangular matrix of a stack, read and written as complex f64.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns) : columns_(columns), values_(static_cast<size_t>(rows * columns)) {}
  Value& operator()(int64_t i, int64_t j) { return values_[static_cast<size_t>(i * columns_ + j)]; }
  void Fill(Value value) { std::fill(values_.begin(), values_.end(), value); }
  void Load(const Literal& stack, int64_t index) {
    const auto size = static_cast<int64_t>(values_.size());
    for (int64_t i = 0; i < size; ++i) values_[static_cast<size_t>(i)] = stack.GetComplex(index * size + i);
  }
  void Store(Literal& stack, int64_t index) const {
    const auto size = static_cast<int64_t>(values_.size());
    for (int64_t i = 0; i < size; ++i) stack.SetComplex(index * size + i, values_[static_cast<size_t>(i)]);
  }

 private:
  int64_t columns_;
  std::vector<Value> values_;
};

// a = l l^H from the lower triangle of `a`; all NaN when it is not positive definite. Where it is singular in its last
// column alone, the rest stays: as XLA:CPU, whose last element is 0 / 0.
Matrix Factor(Matrix a, int64_t n) {
  Matrix l(n, n);
  for (int64_t j = 0; j < n; ++j) {
    double diagonal = a(j, j).real();
    for (int64_t k = 0; k < j; ++k) diagonal -= std::norm(l(j, k));
    if (!(diagonal > 0)) {
      constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
      if (diagonal == 0 && j == n - 1) {
        l(j, j) = {kNan, kNan};
      } else {
        l.Fill(kNan);
      }
      return l;
    }
    const double root = std::sqrt(diagonal);
    l(j, j) = root;
    for (int64_t i = j + 1; i < n; ++i) {
      Value sum = a(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= l(i, k) * std::conj(l(j, k));
      l(i, j) = sum / root;
    }
  }
  return l;
}

}  // namespace

// Reads one triangle, writes it, and zeros the other.
Literal EvaluateCholesky(OpCall& call) {
  const bool lower = call.As<attr::Cholesky>().lower;
  const int64_t n = call.shape.dimensions().back();
  Literal result(call.shape);
  call.evaluation.Charge(call.shape.ElementCount() * n);
  for (int64_t b = 0; n > 0 && b < call.shape.ElementCount() / (n * n); ++b) {
    Matrix a(n, n);
    a.Load(call.operand(0), b);
    if (!lower) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < i; ++j) a(i, j) = std::conj(a(j, i));
      }
    }
    Matrix l = Factor(a, n);
    if (!lower) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < i; ++j) {
          const Value moved = l(i, j);
          l(i, j) = l(j, i);  // zero, or NaN
          l(j, i) = std::conj(moved);
        }
      }
    }
    l.Store(result, b);
  }
  return result;
}

// op(a) x = b, or x op(a) = b: columns (or rows) of x one after another, by substitution.
Literal EvaluateTriangularSolve(OpCall& call) {
  const auto& solve = call.As<attr::TriangularSolve>();
  const Literal& a_stack = call.operand(0);
  const int64_t n = a_stack.shape().dimensions().back();
  const int64_t rows = call.shape.dimension(call.shape.rank() - 2);
  const int64_t columns = call.shape.dimensions().back();
  Literal result(call.shape);
  if (call.shape.ElementCount() == 0) return result;
  call.evaluation.Charge(call.shape.ElementCount() * n);
  const bool transposed = solve.transpose_a != TransposeKind::kNoTranspose;
  for (int64_t batch = 0; batch < call.shape.ElementCount() / (rows * columns); ++batch) {
    Matrix a(n, n);
    a.Load(a_stack, batch);
    Matrix x(rows, columns);
    x.Load(call.operand(1), batch);
    // x op(a) = b is op(a)^T x^T = b^T.
    const bool turned = transposed == solve.left_side;
    auto element = [&](int64_t i, int64_t j) {
      const Value value = turned ? a(j, i) : a(i, j);
      return solve.transpose_a == TransposeKind::kAdjoint ? std::conj(value) : value;
    };
    const bool forward = solve.lower != turned;
    for (int64_t vector = 0; vector < (solve.left_side ? columns : rows); ++vector) {
      auto at = [&](int64_t i) -> Value& { return solve.left_side ? x(i, vector) : x(vector, i); };
      for (int64_t step = 0; step < n; ++step) {
        const int64_t i = forward ? step : n - 1 - step;
        Value sum = at(i);
        for (int64_t other = 0; other < step; ++other) {
          const int64_t j = forward ? other : n - 1 - other;
          sum -= element(i, j) * at(j);
        }
        at(i) = solve.unit_diagonal ? sum : sum / element(i, i);
      }
    }
    x.Store(result, batch);
  }
  return result;
}

}  // namespace hlorun::hlo
