// Each rule of the verifier rejects a module that breaks it, naming the computation and the instruction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "hlo/text/parser.h"
#include "hlo/verifier.h"

namespace hlorun::hlo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Verify(const Module& module) {
  try {
    VerifyModule(module);
  } catch (const Error& error) {
    return error.what();
  }
  return "valid";
}

std::string Verify(const std::string& text) { return Verify(*ParseModule(text)); }

// An entry of these instructions, under a header with `attributes`.
std::string Entry(const std::string& instructions, const std::string& attributes = "") {
  return fmt::format(
      "HloModule m{}\nadd {{\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}}\n"
      "ENTRY e {{\n p = f32[4] parameter(0)\n{}\n}}\n",
      attributes, instructions);
}

TEST(VerifierTest, AcceptsValidModules) {
  EXPECT_EQ(Verify(Entry(" ROOT r = f32[4] negate(p)")), "valid");
  EXPECT_EQ(Verify(Entry(" z = f32[] constant(0)\n ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add",
                         ", entry_computation_layout={(f32[4]{0})->f32[]}")),
            "valid");
}

TEST(VerifierTest, AHundredThousandInstructionsTakeSeconds) {
  std::string text = "HloModule long\nENTRY e {\n  v0 = f32[4] parameter(0)\n";
  for (int i = 1; i < 100000; ++i) {
    text += fmt::format("  {}v{} = f32[4] add(v{}, v{})\n", i == 99999 ? "ROOT " : "", i, i - 1, std::max(0, i - 7));
  }
  const std::clock_t start = std::clock();
  EXPECT_EQ(Verify(text + "}\n"), "valid");
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 5);
}

TEST(VerifierTest, ShapesFollowFromOperands) {
  EXPECT_THAT(Verify(Entry(" ROOT r = f32[5] negate(p)")),
              AllOf(HasSubstr("module m: computation e: %r = f32[5] negate(%p)"), HasSubstr("give f32[4]")));
  EXPECT_THAT(Verify(Entry(" q = f32[5] parameter(1)\n ROOT r = f32[5] add(p, q)")), HasSubstr("%r"));
}

TEST(VerifierTest, AnOutfeedHasTheShapeOfItsOperand) {
  const std::string outfeed = " t = token[] after-all()\n ROOT o = token[] outfeed(p, t), outfeed_shape=";
  EXPECT_EQ(Verify(Entry(outfeed + "f32[4]{0}")), "valid");
  EXPECT_THAT(Verify(Entry(outfeed + "s32[4]{0}")), HasSubstr("outfeed_shape is s32[4], but the operand is f32[4]"));
}

TEST(VerifierTest, LayoutOfTheEntryFits) {
  EXPECT_THAT(Verify(Entry(" ROOT r = f32[4] negate(p)", ", entry_computation_layout={(f32[5]{0})->f32[4]{0}}")),
              HasSubstr("parameter 0 the shape f32[5], but %p is f32[4]"));
  EXPECT_THAT(Verify(Entry(" ROOT r = f32[4] negate(p)", ", entry_computation_layout={()->f32[4]{0}}")),
              HasSubstr("has 0 parameters, but the entry e has 1"));
  EXPECT_THAT(Verify(Entry(" ROOT r = f32[4] negate(p)", ", entry_computation_layout={(f32[4]{0})->f32[]}")),
              HasSubstr("result the shape f32[]"));
}

TEST(VerifierTest, AliasesAndDonors) {
  const std::string root = " ROOT r = f32[4] negate(p)";
  EXPECT_EQ(Verify(Entry(root, ", input_output_alias={ {}: (0, {}, may-alias) }")), "valid");
  EXPECT_THAT(Verify(Entry(root, ", input_output_alias={ {}: (1, {}, may-alias) }")), HasSubstr("names parameter 1"));
  EXPECT_THAT(Verify(Entry(root, ", input_output_alias={ {0}: (0, {}) }")), HasSubstr("names output {0}"));
  EXPECT_THAT(Verify(Entry(root, ", input_output_alias={ {}: (0, {2}) }")), HasSubstr("element {2} of parameter 0"));
  EXPECT_THAT(Verify(Entry(root, ", input_output_alias={ {}: (0, {}), {}: (0, {}) }")), HasSubstr("twice"));
  EXPECT_THAT(Verify(Entry(" ROOT r = f32[2] slice(p), slice={[0:2]}", ", input_output_alias={ {}: (0, {}) }")),
              HasSubstr("differ in size"));
  EXPECT_THAT(Verify(Entry(root, ", input_output_alias={ {}: (0, {}) }, buffer_donor={ (0, {}) }")),
              HasSubstr("donated or aliased already"));
}

TEST(VerifierTest, GroupsOfCollectives) {
  const auto reduce = [](const std::string& attributes) {
    return Entry(" ROOT r = f32[4] all-reduce(p), to_apply=add" + attributes, ", replica_count=2, num_partitions=2");
  };
  EXPECT_EQ(Verify(reduce(", replica_groups={}")), "valid");
  EXPECT_EQ(Verify(reduce(", replica_groups={{0,1}}")), "valid");
  EXPECT_EQ(Verify(reduce(", replica_groups=[2,2]<=[4], channel_id=1, use_global_device_ids=true")), "valid");
  EXPECT_THAT(Verify(reduce(", replica_groups={{0,2}}")), HasSubstr("names 2, but the module has 2 replicas"));
  EXPECT_THAT(Verify(reduce(", replica_groups={{0},{0}}")), HasSubstr("names 0 twice"));
  EXPECT_THAT(Verify(reduce(", replica_groups={{0}}")), HasSubstr("names 1 of the module's 2 replicas"));
  EXPECT_THAT(Verify(reduce(", replica_groups={{0,1,2,3}}, use_global_device_ids=true")),
              HasSubstr("needs a channel_id"));
  EXPECT_THAT(
      Verify(Entry(" ROOT r = f32[4] collective-permute(p), source_target_pairs={{0,1},{1,1}}", ", replica_count=2")),
      HasSubstr("sends to 1 twice"));
  EXPECT_THAT(Verify(Entry(" ROOT r = f32[4] collective-permute(p), source_target_pairs={{0,7}}", ", replica_count=2")),
              HasSubstr("names 7"));
}

TEST(VerifierTest, ReducersDoNotCommunicate) {
  EXPECT_THAT(
      Verify("HloModule m\nadd {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"
             "bad {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n s = f32[] add(a, b)\n"
             " ROOT c = f32[] all-reduce(s), replica_groups={}, to_apply=add\n}\n"
             "ENTRY e {\n p = f32[4] parameter(0)\n z = f32[] constant(0)\n"
             " ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=bad\n}\n"),
      AllOf(HasSubstr("computation bad"), HasSubstr("%r")));
}

TEST(VerifierTest, AsyncStartsAndDonesPair) {
  EXPECT_THAT(Verify(Entry(" s = (f32[4], f32[4], u32[]) copy-start(p)\n ROOT r = f32[4] negate(p)")),
              HasSubstr("must have one user, a copy-done"));
}

TEST(VerifierTest, ShardingsFitTheirShapes) {
  EXPECT_THAT(Verify(Entry(" ROOT r = f32[4] negate(p), sharding={devices=[2,1]<=[2]}")),
              HasSubstr("tiles 2 dimensions"));
  EXPECT_THAT(Verify(Entry(" ROOT r = (f32[4], f32[4]) tuple(p, p), sharding={{replicated}}")),
              HasSubstr("1 elements"));
}

TEST(VerifierTest, CyclesAndRecursionBuiltByHand) {
  const auto module = ParseModule(Entry(" x = f32[4] negate(p)\n ROOT y = f32[4] negate(x)"));
  Instruction* y = module->entry()->root();
  y->operand(0)->ReplaceOperand(0, y);
  EXPECT_THAT(Verify(*module), HasSubstr("cycle"));

  const auto recursive = ParseModule(
      "HloModule m\nf {\n a = f32[] parameter(0)\n ROOT b = f32[] negate(a)\n}\n"
      "g {\n a = f32[] parameter(0)\n ROOT b = f32[] call(a), to_apply=f\n}\n"
      "ENTRY e {\n a = f32[] parameter(0)\n ROOT b = f32[] call(a), to_apply=g\n}\n");
  Computation* g = recursive->entry()->root()->called();
  g->root()->set_called(0, g);
  EXPECT_THAT(Verify(*recursive), HasSubstr("calls itself"));
}

TEST(VerifierTest, AScheduleIsInOrder) {
  const auto module = ParseModule(Entry(" x = f32[4] negate(p)\n ROOT y = f32[4] negate(x)", ", is_scheduled=true"));
  Instruction* y = module->entry()->root();
  Instruction* x = y->operand(0);
  module->entry()->SetOrder({module->entry()->parameter(0), y, x});
  EXPECT_THAT(Verify(*module), HasSubstr("%y comes before its operand %x"));
}

TEST(VerifierTest, AttributesBelongToTheOpcode) {
  const auto module = ParseModule(Entry(" ROOT y = f32[4] negate(p)"));
  module->entry()->root()->set_attributes(attr::TupleIndex{1});
  EXPECT_THAT(Verify(*module), HasSubstr("another opcode"));
}

}  // namespace
}  // namespace hlorun::hlo
