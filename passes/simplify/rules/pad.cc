// Pad.
#include <algorithm>

#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

const std::vector<hlo::PaddingDimension>& PaddingOf(const Instruction& pad) { return pad.As<hlo::attr::Pad>().padding; }

bool NoneIs(const Instruction& pad, bool (*holds)(const hlo::PaddingDimension&)) {
  return std::none_of(PaddingOf(pad).begin(), PaddingOf(pad).end(), holds);
}

bool IsInterior(const hlo::PaddingDimension& p) { return p.interior != 0; }
bool IsPositive(const hlo::PaddingDimension& p) { return p.low > 0 || p.high > 0 || p.interior != 0; }
bool IsNegative(const hlo::PaddingDimension& p) { return p.low < 0 || p.high < 0; }

}  // namespace

std::vector<Rule> PadRules() {
  return {
      {"pad_of_nothing", Exactness::kExact, Op(Opcode::kPad, X, Any()),
       [](const Match& m) { return NoneIs(*m.root, IsPositive) && NoneIs(*m.root, IsNegative); },
       [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          z = f32[] parameter(1)
          ROOT r = f32[4] pad(x, z), padding=0_0)",
       R"(x = f32[4] parameter(0)
          z = f32[] parameter(1)
          ROOT r = f32[4] pad(x, z), padding=1_-1)"},
      {"pad_that_only_cuts", Exactness::kExact, Op(Opcode::kPad, X, Any()),
       [](const Match& m) { return NoneIs(*m.root, IsPositive) && !NoneIs(*m.root, IsNegative); },
       [](Match& m) {
         Dims starts, limits;
         for (size_t i = 0; i < PaddingOf(*m.root).size(); ++i) {
           starts.push_back(-PaddingOf(*m.root)[i].low);
           limits.push_back(m[X]->shape().dimensions()[i] + PaddingOf(*m.root)[i].high);
         }
         return m.build.Slice(m[X], starts, limits, Dims(starts.size(), 1));
       },
       R"(x = f32[6] parameter(0)
          z = f32[] parameter(1)
          ROOT r = f32[3] pad(x, z), padding=-1_-2)",
       R"(x = f32[6] parameter(0)
          z = f32[] parameter(1)
          ROOT r = f32[3] pad(x, z), padding=1_-4)"},
      {"pad_of_empty", Exactness::kExact, Op(Opcode::kPad, X, Y),
       [](const Match& m) { return m[X]->shape().ElementCount() == 0; },
       [](Match& m) { return m.build.Broadcast(m[Y], m.dimensions(), {}); },
       R"(x = f32[0] parameter(0)
          z = f32[] parameter(1)
          ROOT r = f32[3] pad(x, z), padding=1_2)",
       R"(x = f32[1] parameter(0)
          z = f32[] parameter(1)
          ROOT r = f32[4] pad(x, z), padding=1_2)"},
      {"pad_of_pad", Exactness::kExact, Op(Opcode::kPad, Op(Opcode::kPad, X, Y).As(A), Y),
       [](const Match& m) {
         return NoneIs(*m.root, IsInterior) && NoneIs(*m.root, IsNegative) && NoneIs(*m[A], IsNegative);
       },
       [](Match& m) {
         std::vector<hlo::PaddingDimension> padding = PaddingOf(*m[A]);
         for (size_t i = 0; i < padding.size(); ++i) {
           padding[i].low += PaddingOf(*m.root)[i].low;
           padding[i].high += PaddingOf(*m.root)[i].high;
         }
         return m.build.Pad(m[X], m[Y], padding);
       },
       R"(x = f32[4] parameter(0)
          z = f32[] parameter(1)
          p = f32[10] pad(x, z), padding=1_2_1
          ROOT r = f32[13] pad(p, z), padding=3_0)",
       R"(x = f32[4] parameter(0)
          z = f32[] parameter(1)
          p = f32[3] pad(x, z), padding=1_-2
          ROOT r = f32[6] pad(p, z), padding=3_0)"},
      {"pad_of_same_splat", Exactness::kExact, Op(Opcode::kPad, Splat().As(C), Splat().As(D)),
       [](const Match& m) { return m.Splat(C) == m.Splat(D); }, [](Match& m) { return m.Fill(m.Splat(C)); },
       R"(c = f32[] constant(2)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[7] pad(b, c), padding=1_2)",
       R"(c = f32[] constant(2)
          d = f32[] constant(3)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[7] pad(b, d), padding=1_2)"},
  };
}

}  // namespace hlorun::passes
