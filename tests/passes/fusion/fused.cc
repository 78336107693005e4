#include "tests/passes/fusion/fused.h"

#include <gtest/gtest.h>

#include <random>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/sink_reshapes.h"
#include "passes/generic_context.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Literal;

constexpr const char* kHeader = R"(HloModule m
add { add.a = f32[] parameter(0)  add.b = f32[] parameter(1)  ROOT add.r = f32[] add(add.a, add.b) }
max { max.a = f32[] parameter(0)  max.b = f32[] parameter(1)  ROOT max.r = f32[] maximum(max.a, max.b) }
recurrence {
  rec.a = f32[] parameter(0)  rec.b = f32[] parameter(1)  rec.c = f32[] parameter(2)  rec.d = f32[] parameter(3)
  rec.e = f32[] multiply(rec.a, rec.c)  rec.f = f32[] multiply(rec.c, rec.b)  rec.g = f32[] add(rec.f, rec.d)
  ROOT rec.r = (f32[], f32[]) tuple(rec.e, rec.g)
}
ENTRY e {
)";

std::vector<Literal> RandomArguments(const hlo::Module& module) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<Literal> arguments;
  for (const Instruction* parameter : module.entry()->parameters()) {
    Literal literal(parameter->shape());
    for (int64_t i = 0; i < literal.ElementCount(); ++i) literal.SetComplex(i, real(random));
    arguments.push_back(std::move(literal));
  }
  return arguments;
}

}  // namespace

const Instruction* Fused::Kernel(size_t i) const {
  for (const Instruction* instruction : module->entry()->PostOrder()) {
    if (HeroOf(*instruction).kind != KernelKind::kNone && i-- == 0) return instruction;
  }
  return nullptr;
}

Fused Fuse(const std::string& body, const DeviceSpec& device) {
  Fused fused;
  fused.module = hlo::ParseModule(kHeader + body + "\n}");
  const std::vector<Literal> arguments = RandomArguments(*fused.module);
  const Literal expected = hlo::Evaluate(*fused.module, arguments);
  GenericContext context({}, device);
  SinkReshapes().Run(*fused.module, context);
  Fusion().Run(*fused.module, context);
  hlo::VerifyModule(*fused.module);
  EXPECT_TRUE(hlo::Evaluate(*fused.module, arguments) == expected) << hlo::PrintModule(*fused.module);
  for (const Instruction* instruction : fused.module->entry()->PostOrder()) {
    const KernelKind kind = HeroOf(*instruction).kind;
    if (kind != KernelKind::kNone) fused.kernels.push_back(kind);
  }
  return fused;
}

}  // namespace hlorun::passes
