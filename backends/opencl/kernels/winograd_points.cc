#include "backends/opencl/kernels/winograd_points.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

constexpr double kA = 0.6875, kB = 1.375;
constexpr double kA2 = kA * kA, kB2 = kB * kB;

Expr Scaled(double factor, const Expr& x) { return ir::Constant(factor, x->type) * x; }
// x + factor * y
Expr Plus(const Expr& x, double factor, const Expr& y) { return ir::Fma(ir::Constant(factor, y->type), y, x); }

Expr Named(const std::string& name, const Expr& x, std::vector<Stmt>& statements) {
  const ir::Var var = ir::MakeVar(name, x->type);
  statements.push_back(ir::Let(var, x));
  return ir::Ref(var);
}

}  // namespace

// The polynomial with the other points as roots, by powers. At p and -p its even part is the same and its odd part
// opposite.
std::vector<Expr> InputAtPoints(const std::vector<Expr>& d, std::vector<Stmt>& statements) {
  const Expr even_a = Named("even_a", Plus(d[4], -kB2, d[2]), statements),
             odd_a = Named("odd_a", Plus(d[3], -kB2, d[1]), statements);
  const Expr even_b = Named("even_b", Plus(d[4], -kA2, d[2]), statements),
             odd_b = Named("odd_b", Plus(d[3], -kA2, d[1]), statements);
  const auto end = [&](size_t first) {
    return Plus(Plus(d[first + 4], -(kA2 + kB2), d[first + 2]), kA2 * kB2, d[first]);
  };
  return {end(0), Plus(even_a, kA, odd_a), Plus(even_a, -kA, odd_a), Plus(even_b, kB, odd_b), Plus(even_b, -kB, odd_b),
          end(1)};
}

// The weights' polynomial at each point, over the product of the point's distances to the others.
std::vector<Expr> WeightsAtPoints(const std::vector<Expr>& g, std::vector<Stmt>& statements) {
  const double at_a = 1 / (2 * kA2 * (kA2 - kB2)), at_b = 1 / (2 * kB2 * (kB2 - kA2));
  const Expr even_a = Named("even_a", Plus(Scaled(at_a, g[0]), kA2 * at_a, g[2]), statements);
  const Expr even_b = Named("even_b", Plus(Scaled(at_b, g[0]), kB2 * at_b, g[2]), statements);
  return {Scaled(1 / (kA2 * kB2), g[0]), Plus(even_a, kA * at_a, g[1]),  Plus(even_a, -kA * at_a, g[1]),
          Plus(even_b, kB * at_b, g[1]), Plus(even_b, -kB * at_b, g[1]), g[2]};
}

std::vector<Expr> OutputsFromPoints(const std::vector<Expr>& m, std::vector<Stmt>& statements) {
  const Expr sum_a = Named("sum_a", m[1] + m[2], statements),
             difference_a = Named("difference_a", m[1] - m[2], statements);
  const Expr sum_b = Named("sum_b", m[3] + m[4], statements),
             difference_b = Named("difference_b", m[3] - m[4], statements);
  return {m[0] + sum_a + sum_b, Plus(Scaled(kA, difference_a), kB, difference_b), Plus(Scaled(kA2, sum_a), kB2, sum_b),
          Plus(Plus(m[5], kA2 * kA, difference_a), kB2 * kB, difference_b)};
}

}  // namespace hlorun::opencl
