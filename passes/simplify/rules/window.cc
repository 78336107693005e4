// Reduce-window.
#include <algorithm>

#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

const hlo::Window& WindowOf(const Match& m) { return m.root->As<hlo::attr::Windowed>().window; }

// Whether windows stay, in dimension d, with one of the copies that the broadcast A makes.
bool KeepsToCopies(const Match& m, size_t d) {
  return WindowOf(m)[d].IsPointwise() && !hlo::Contains(m[A]->dimensions(), static_cast<int64_t>(d));
}

bool HasCopies(const Match& m) {
  size_t copied = 0;
  bool is_worth_it = false;
  for (size_t d = 0; d < WindowOf(m).size(); ++d) {
    if (!KeepsToCopies(m, d)) continue;
    ++copied;
    is_worth_it |= m[A]->shape().dimensions()[d] > 1;
  }
  return m.root->operand_count() == 2 && is_worth_it && copied < WindowOf(m).size();
}

// Windows over one of the copies, which is then copied as often.
Instruction* WindowsOfOneCopy(Match& m) {
  Dims dimensions;
  hlo::Window window;
  std::vector<int64_t> kept, of_x(m[A]->dimensions().size());
  for (size_t d = 0; d < WindowOf(m).size(); ++d) {
    if (KeepsToCopies(m, d)) continue;
    const auto of_result = static_cast<int64_t>(d);
    for (size_t i = 0; i < of_x.size(); ++i) {
      if (m[A]->dimensions()[i] == of_result) of_x[i] = static_cast<int64_t>(kept.size());
    }
    kept.push_back(of_result);
    dimensions.push_back(m[A]->shape().dimension(of_result));
    window.push_back(WindowOf(m)[d]);
  }
  Instruction* one = m.build.Broadcast(m[X], dimensions, of_x);
  one = m.build.Make(Opcode::kReduceWindow, {one, m[Y]}, hlo::attr::Windowed{std::move(window)}, {m.root->called()});
  return m.build.Broadcast(one, m.dimensions(), kept);
}

#define ADDS "add_f32 { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }\n"

}  // namespace

std::vector<Rule> WindowRules() {
  return {
      {"window_of_copies", Exactness::kExact, Op(Opcode::kReduceWindow, Op(Opcode::kBroadcast, X).As(A), Y), HasCopies,
       WindowsOfOneCopy, "HloModule m\n" ADDS R"(ENTRY e { x = f32[4] parameter(0)
          z = f32[] constant(0)
          b = f32[2,4,5,3] broadcast(x), dimensions={1}
          ROOT r = f32[2,4,5,3] reduce-window(b, z), window={size=1x3x3x1 pad=0_0x1_1x1_1x0_0}, to_apply=add_f32 })",
       "HloModule m\n" ADDS R"(ENTRY e { x = f32[2,3] parameter(0)
          z = f32[] constant(0)
          b = f32[2,4,4,3] broadcast(x), dimensions={0,3}
          ROOT r = f32[2,4,4,3] reduce-window(b, z), window={size=1x3x3x1 pad=0_0x1_1x1_1x0_0}, to_apply=add_f32 })"},
  };
}

#undef ADDS

}  // namespace hlorun::passes
