#include "backends/opencl/kernels/winograd_points.h"

#include <cmath>
#include <span>

#include <fmt/format.h>

#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

// The finite points but 0, one of each pair.
constexpr double kOfFour[] = {1}, kOfSix[] = {0.6875, 1.375};

std::span<const double> PointPairs(int64_t points) {
  HLORUN_CHECK(points == 4 || points == 6);
  return points == 4 ? std::span<const double>(kOfFour) : std::span<const double>(kOfSix);
}

Expr Scaled(double factor, const Expr& x) { return factor == 1 ? x : ir::Constant(factor, x->type) * x; }
// x + factor * y
Expr Plus(const Expr& x, double factor, const Expr& y) {
  if (factor == 1) return x + y;
  return factor == -1 ? x - y : ir::Fma(ir::Constant(factor, y->type), y, x);
}

Expr Named(const std::string& name, const Expr& x, std::vector<Stmt>& statements) {
  const ir::Var var = ir::MakeVar(name, x->type);
  statements.push_back(ir::Let(var, x));
  return ir::Ref(var);
}

// The polynomial whose roots are all pairs but one (or all, where `without` is none of them): its coefficients of x^0,
// x^2, x^4 ...; the last is 1.
std::vector<double> WithRoots(std::span<const double> pairs, size_t without) {
  std::vector<double> coefficients = {1};
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (i == without) continue;
    coefficients.insert(coefficients.begin(), 0);
    for (size_t j = 0; j + 1 < coefficients.size(); ++j) coefficients[j] -= pairs[i] * pairs[i] * coefficients[j + 1];
  }
  return coefficients;
}

// The polynomial's value where x^0, x^2, ... are every other element from `first` on.
Expr Apply(const std::vector<double>& polynomial, const std::vector<Expr>& elements, size_t first) {
  Expr sum = elements[first + 2 * (polynomial.size() - 1)];
  for (size_t i = polynomial.size() - 1; i-- > 0;) sum = Plus(sum, polynomial[i], elements[first + 2 * i]);
  return sum;
}

}  // namespace

std::vector<WinogradForm> WinogradFormsOf(int64_t taps) {
  if (taps == 1) return {{1, 1}};
  std::vector<WinogradForm> forms;
  for (const int64_t points : {6, 4}) {
    const int64_t outputs = points + 1 - taps;
    if (outputs > 1) forms.push_back({outputs, taps});
  }
  return forms;
}

// The polynomial with the other points as roots, by powers. At p and -p its even part is the same and its odd part
// opposite.
std::vector<Expr> InputAtPoints(const WinogradForm& form, const std::vector<Expr>& d, std::vector<Stmt>& statements) {
  if (form.points() == 1) return d;
  const std::span<const double> pairs = PointPairs(form.points());
  const std::vector<double> all = WithRoots(pairs, pairs.size());
  std::vector<Expr> values = {Apply(all, d, 0)};
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::vector<double> others = WithRoots(pairs, i);
    const Expr even = Named(fmt::format("even_{}", i), Apply(others, d, 2), statements);
    const Expr odd = Named(fmt::format("odd_{}", i), Apply(others, d, 1), statements);
    values.push_back(Plus(even, pairs[i], odd));
    values.push_back(Plus(even, -pairs[i], odd));
  }
  values.push_back(Apply(all, d, 1));
  return values;
}

// The weights' polynomial at each point, over the product of the point's distances to the others.
std::vector<Expr> WeightsAtPoints(const WinogradForm& form, const std::vector<Expr>& g, std::vector<Stmt>& statements) {
  if (form.points() == 1) return g;
  const std::span<const double> pairs = PointPairs(form.points());
  double to_zero = 1;
  for (const double q : pairs) to_zero *= -q * q;
  std::vector<Expr> values = {Scaled(1 / to_zero, g.front())};
  for (size_t pair = 0; pair < pairs.size(); ++pair) {
    const double p = pairs[pair];
    double distances = 2 * p * p;
    for (const double q : pairs) distances *= q == p ? 1 : p * p - q * q;
    Expr even = Scaled(1 / distances, g[0]);
    for (size_t i = 2; i < g.size(); i += 2) even = Plus(even, std::pow(p, i) / distances, g[i]);
    even = Named(fmt::format("even_{}", pair), even, statements);
    for (const double sign : {1, -1}) {
      Expr value = even;
      for (size_t i = 1; i < g.size(); i += 2) value = Plus(value, sign * std::pow(p, i) / distances, g[i]);
      values.push_back(value);
    }
  }
  values.push_back(g.back());
  return values;
}

std::vector<Expr> OutputsFromPoints(const WinogradForm& form, const std::vector<Expr>& m,
                                    std::vector<Stmt>& statements) {
  if (form.points() == 1) return m;
  const std::span<const double> pairs = PointPairs(form.points());
  std::vector<Expr> sums, differences;
  for (size_t i = 0; i < pairs.size(); ++i) {
    sums.push_back(Named(fmt::format("sum_{}", i), m[1 + 2 * i] + m[2 + 2 * i], statements));
    differences.push_back(Named(fmt::format("difference_{}", i), m[1 + 2 * i] - m[2 + 2 * i], statements));
  }
  std::vector<Expr> outputs;
  for (int64_t j = 0; j < form.outputs; ++j) {
    Expr sum = j == 0 ? m.front() : j + 1 == form.outputs ? m.back() : nullptr;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const Expr& of_pair = j % 2 == 0 ? sums[i] : differences[i];
      const double power = std::pow(pairs[i], j);
      sum = sum ? Plus(sum, power, of_pair) : Scaled(power, of_pair);
    }
    outputs.push_back(sum);
  }
  return outputs;
}

}  // namespace hlorun::opencl
