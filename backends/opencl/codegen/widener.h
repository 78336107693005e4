// One iteration of a vector loop as code over floatN values: what widen.h and bf16_pairs.h are made of.
#pragma once

#include <map>
#include <set>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// What a loop body touches, to know whether running an iteration twice does harm.
struct LoopEffects {
  std::set<const ir::Variable*> assigned;
  std::set<const ir::Buffer*> loaded, stored;
};
LoopEffects EffectsOf(const ir::Stmt& body);
// An iteration may run twice: nothing it reads is written by the loop.
bool IsRepeatable(const LoopEffects& effects);

// The largest divisor of `width` that is known to divide x.
int64_t KnownFactor(const ir::Expr& x, int64_t width);

// Thrown by Widener where vectors cannot say what the statement does.
struct CannotWiden {};

// Iterations base, base + stride, ... of a loop, `width` of them, side by side. Variables that differ between them get
// `suffix` behind their names.
class Widener {
 public:
  Widener(ir::Var loop_var, ir::Expr base, int64_t stride, int width, const LoopEffects& effects,
          std::string suffix = "");

  ir::Stmt Widen(const ir::Stmt& s);
  ir::Expr Widen(const ir::Expr& x);
  // One value for all iterations, or CannotWiden.
  ir::Expr Uniform(const ir::Expr& x);

 private:
  ir::Stmt WidenLet(const ir::Stmt& s);
  bool Streams(const ir::Buffer& buffer, const ir::Expr& index) const;

  ir::Var loop_var_;
  ir::Expr base_;
  int64_t stride_;
  int width_;
  const LoopEffects& effects_;
  std::string suffix_;
  std::map<const ir::Variable*, ir::Var> widened_;
  std::map<const ir::Variable*, ir::Expr> ramps_;
};

}  // namespace hlorun::opencl
