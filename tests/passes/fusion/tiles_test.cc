// Programs that go by tiles, what a tile's program computes, and loops that reshapes merge and split.
#include "passes/fusion/tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/shared_loops.h"
#include "passes/generic_context.h"
#include "tests/passes/attention_programs.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Literal;
using testing::ElementsAre;

DeviceSpec SmallCaches() {
  DeviceSpec device;
  device.l2_bytes = kAttentionCache;
  device.l3_bytes = 8 * kAttentionCache;
  return device;
}

const Instruction* TilesOf(const hlo::Module& module) {
  for (const auto& instruction : module.entry()->instructions()) {
    if (HeroOf(*instruction).kind == KernelKind::kTiles) return instruction.get();
  }
  return nullptr;
}

std::unique_ptr<hlo::Module> Formed(const std::string& text) {
  auto module = Parse(text);
  GenericContext context({}, SmallCaches());
  FormTiles().Run(*module, context);
  hlo::VerifyModule(*module);
  return module;
}

class TilesTest : public ::testing::TestWithParam<AttentionProgram> {};

TEST_P(TilesTest, ComputesWhatItDid) {
  const auto before = Parse(GetParam().text);
  const std::vector<Literal> arguments = RandomArguments(*before, Inputs::kMild, 7);
  const auto after = Formed(GetParam().text);
  EXPECT_EQ(Difference(hlo::Evaluate(*before, arguments), hlo::Evaluate(*after, arguments), kBitwise), "")
      << hlo::PrintModule(*after);
  EXPECT_EQ(TilesOf(*after) != nullptr, GetParam().goes_by_tiles) << hlo::PrintModule(*after);
}

// Bytes of one trip's part of an array.
int64_t OffsetOf(const TileArray& array, const std::vector<int64_t>& trip, hlo::ElementType type) {
  int64_t offset = 0;
  for (size_t loop = 0; loop < trip.size(); ++loop) offset += array.steps[loop] * trip[loop];
  return offset * hlo::BytesOf(type);
}

// One tile after another gives all of the results, and the evaluator's bits: the same sums in the same order.
TEST_P(TilesTest, TilesTogetherAreTheWhole) {
  if (!GetParam().goes_by_tiles) return;
  const auto module = Formed(GetParam().text);
  ASSERT_NE(TilesOf(*module), nullptr);
  const Instruction& tiles = *TilesOf(*module);
  const TileProgram program = TileProgramOf(tiles);
  hlo::VerifyModule(*program.module);
  const hlo::Computation& tile = *program.module->entry();

  // The fusion's operands, by the program before it.
  std::vector<Literal> operands;
  uint64_t seed = 3;
  for (const Instruction* operand : tiles.operands()) {
    const auto given = Parse("HloModule m\nENTRY e { ROOT p = " + operand->shape().ToString(false) + " parameter(0) }");
    const bool is_position = operand->Is(hlo::Opcode::kIota);
    operands.push_back(RandomArguments(*given, Inputs::kMild, ++seed)[0]);
    for (int64_t i = 0; is_position && i < operand->shape().ElementCount(); ++i) operands.back().SetInt(i, i);
  }
  const auto alone = Parse(hlo::PrintModule(*module));
  for (const auto& computation : alone->computations()) {
    if (computation->name() == tiles.called()->name()) alone->set_entry(computation.get());
  }
  const std::vector<Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*alone, operands));
  std::vector<Literal> results;
  results.reserve(expected.size());
  for (const Literal& result : expected) results.emplace_back(result.shape());

  int64_t count = 1;
  for (const int64_t trips : program.trips) count *= trips;
  ASSERT_GE(count, 8);
  for (int64_t number = 0; number < count; ++number) {
    std::vector<int64_t> trip;
    trip.reserve(program.trips.size());
    int64_t inner = count;
    for (const int64_t trips : program.trips) trip.push_back(number / (inner /= trips) % trips);
    std::vector<Literal> parts;
    for (size_t i = 0; i < program.parameters.size(); ++i) {
      const Literal& operand = operands[static_cast<size_t>(program.parameters[i].number)];
      Literal& part = parts.emplace_back(tile.parameter(static_cast<int64_t>(i))->shape());
      const int64_t from = OffsetOf(program.parameters[i], trip, operand.element_type());
      ASSERT_LE(from + part.ByteSize(), operand.ByteSize());
      std::memcpy(part.mutable_data(), operand.data() + from, static_cast<size_t>(part.ByteSize()));
    }
    const std::vector<Literal> made = hlo::FlattenLiteral(hlo::Evaluate(*program.module, parts));
    for (size_t i = 0; i < made.size(); ++i) {
      const int64_t to = OffsetOf(program.results[i], trip, made[i].element_type());
      ASSERT_LE(to + made[i].ByteSize(), results[i].ByteSize());
      std::memcpy(results[i].mutable_data() + to, made[i].data(), static_cast<size_t>(made[i].ByteSize()));
    }
  }
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(Difference(expected[i], results[i], kBitwise), "") << i;
}

INSTANTIATE_TEST_SUITE_P(Programs, TilesTest, ::testing::ValuesIn(AttentionPrograms()),
                         [](const auto& info) { return info.param.name; });

TEST(Tiles, NotOnGpus) {
  const auto module = Parse(AttentionPrograms()[0].text);
  DeviceSpec device = SmallCaches();
  device.device_class = DeviceClass::kGpu;
  GenericContext context({}, device);
  EXPECT_FALSE(FormTiles().Run(*module, context));
}

TEST(SharedLoopsTest, ReshapesSplitDimensions) {
  const auto module = Parse(R"(HloModule m
ENTRY e {
  x = f32[96,50] parameter(0)
  y = f32[96,50] negate(x)
  r = f32[8,12,50] reshape(y)
  t = f32[12,8,50] transpose(r), dimensions={1,0,2}
  ROOT z = f32[96,50] reshape(t)
})");
  std::vector<const Instruction*> members;
  for (const Instruction* instruction : module->entry()->PostOrder()) {
    if (!instruction->Is(hlo::Opcode::kParameter)) members.push_back(instruction);
  }
  const SharedLoops loops(members);
  const SharedLoops::Tensor first = loops.Of(*members[0]);
  ASSERT_EQ(first[0].size(), 2u);
  const int eight = first[0][0], twelve = first[0][1], fifty = first[1][0];
  EXPECT_EQ(loops.SizeOf(eight), 8);
  EXPECT_EQ(loops.SizeOf(twelve), 12);
  EXPECT_TRUE(loops.MayCut(eight) && loops.MayCut(twelve) && loops.MayCut(fifty));
  EXPECT_THAT(loops.OfOperand(*members[0], 0), ElementsAre(ElementsAre(eight, twelve), ElementsAre(fifty)));
  EXPECT_THAT(loops.Of(*members[3]), ElementsAre(ElementsAre(twelve, eight), ElementsAre(fifty)));
}

TEST(SharedLoopsTest, WhatIsContractedStaysWhole) {
  const auto module = Parse(R"(HloModule m
ENTRY e {
  x = f32[4,30,16] parameter(0)
  ROOT s = f32[4,30,30] dot(x, x), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
})");
  const Instruction* dot = module->entry()->root();
  const SharedLoops loops({dot});
  const SharedLoops::Tensor result = loops.Of(*dot);
  // One array, walked by two loops.
  EXPECT_NE(result[1], result[2]);
  EXPECT_EQ(loops.OfOperand(*dot, 0)[1], result[1]);
  EXPECT_EQ(loops.OfOperand(*dot, 1)[1], result[2]);
  EXPECT_FALSE(loops.MayCut(loops.OfOperand(*dot, 0)[2][0]));
  EXPECT_TRUE(loops.MayCut(result[1][0]));
}

}  // namespace
}  // namespace hlorun::passes
