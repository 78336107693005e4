// --mesh, --in_shardings, --out_shardings.
#include "passes/spmd/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/error.h"
#include "hlo/text/printer.h"
#include "tests/passes/equivalence.h"
#include "tests/passes/spmd/partition_check.h"

namespace hlorun::passes {
namespace {

using ::testing::HasSubstr;

constexpr const char* kDot = R"(HloModule m
ENTRY e {
  x = f32[8,6] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[6,10] parameter(1)
  ROOT d = f32[8,10] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";

std::unique_ptr<hlo::Module> With(const std::string& text, const std::string& mesh, const std::string& in,
                                  const std::string& out) {
  auto module = Parse(text);
  spmd::OverrideShardings(*module, {mesh, in, out});
  return module;
}

std::string ShardingOf(const hlo::Instruction* instruction) {
  return instruction->sharding ? instruction->sharding->ToString() : "none";
}

TEST(Overrides, AxesOfAMesh) {
  const auto module = With(kDot, "data:2,model:2", "[data,None];[None,model]", "[(model,data)]");
  EXPECT_EQ(ShardingOf(module->entry()->parameter(0)), "{devices=[2,1,2]<=[2,2] last_tile_dim_replicate}");
  EXPECT_EQ(ShardingOf(module->entry()->parameter(1)), "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(ShardingOf(module->entry()->root()), "{devices=[4,1]<=[2,2]T(1,0)}");
  const PartitionOutcome outcome = PartitionAndCompare(*module, 4, 3);
  EXPECT_EQ(outcome.difference, "") << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("f32[4,6] parameter(0)"));
  EXPECT_THAT(outcome.text, HasSubstr("f32[6,5] parameter(1)"));
}

TEST(Overrides, TextAndNothing) {
  const auto module = With(kDot, "", ";{devices=[2,2]<=[4]}", "");
  EXPECT_EQ(ShardingOf(module->entry()->parameter(0)), "{devices=[1,4]<=[4]}");
  EXPECT_EQ(ShardingOf(module->entry()->parameter(1)), "{devices=[2,2]<=[4]}");
}

TEST(Overrides, AMeshTakesThePlaceOfTheModules) {
  constexpr const char* kByAxes = R"(HloModule m, frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\"x\"=8]>}"}
ENTRY e {
  a = f32[8,6] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}
  ROOT t = f32[8,6] tanh(a)
})";
  const auto module = With(kByAxes, "x:2", "", "");
  const PartitionOutcome outcome = PartitionAndCompare(*module, 2, 3);
  EXPECT_EQ(outcome.difference, "") << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("f32[4,6] parameter(0)"));
}

TEST(Overrides, AResultThatIsAParameterIsCopied) {
  const auto module = With("HloModule m\nENTRY e { ROOT x = f32[8,6] parameter(0) }\n", "a:2", "[a]", "[None,a]");
  const PartitionOutcome outcome = PartitionAndCompare(*module, 2, 3);
  EXPECT_EQ(outcome.difference, "") << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("all-to-all"));
}

std::string ErrorOf(const std::string& mesh, const std::string& in, const std::string& out) {
  try {
    With(kDot, mesh, in, out);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Overrides, WhatDoesNotFitIsSaid) {
  EXPECT_EQ(ErrorOf("data", "", ""), "--mesh=data: expected NAME:SIZE,.., such as data:2,model:2");
  EXPECT_EQ(ErrorOf("a:2,a:2", "", ""), "--mesh=a:2,a:2: it has the axis a twice");
  EXPECT_EQ(
      ErrorOf("", "[data]", ""),
      "--in_shardings: [data] for parameter array 0: there is no mesh with such axes: give one (--mesh=data:2,model:2)");
  EXPECT_EQ(ErrorOf("data:2", "[model]", ""),
            "--in_shardings: [model] for parameter array 0: the mesh data:2 has no axis model");
  EXPECT_EQ(ErrorOf("data:2", "[data,data]", ""),
            "--in_shardings: [data,data] for parameter array 0: it uses the axis data twice");
  EXPECT_EQ(ErrorOf("data:2", "[None,None,data]", ""),
            "--in_shardings: [None,None,data] for parameter array 0: it has 3 dimensions, the array f32[8,6] has 2");
  EXPECT_EQ(ErrorOf("data:2", ";;[data]", ""),
            "--in_shardings: there are 3 shardings, but the module has 2 parameter arrays");
  EXPECT_EQ(ErrorOf("data:2", "", ";[data]"), "--out_shardings: there are 2 shardings, but the module has 1 results");
  EXPECT_THAT(ErrorOf("", "{devices=[2]<=[2]}", ""),
              HasSubstr("--in_shardings: {devices=[2]<=[2]} for parameter array 0: "));
  EXPECT_THAT(ErrorOf("", "{devices=[2", ""), HasSubstr("--in_shardings: {devices=[2 for parameter array 0: "));
  EXPECT_THAT(ErrorOf("", "data", ""), HasSubstr("expected axes of each dimension"));
}

}  // namespace
}  // namespace hlorun::passes
