// Partitioning, module in, module out.
#include "passes/spmd/spmd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "hlo/error.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/text/printer.h"
#include "passes/spmd/annotations.h"
#include "passes/spmd/shardy.h"
#include "tests/passes/equivalence.h"
#include "tests/passes/spmd/op_cases.h"
#include "tests/passes/spmd/partition_check.h"

namespace hlorun::passes {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

// The partitioned module's text, after checking that it computes the same.
std::string Check(const std::string& text, int64_t partitions) {
  const PartitionOutcome outcome = PartitionAndCompare(*Parse(text), partitions, 3);
  EXPECT_EQ(outcome.difference, "") << outcome.text;
  return outcome.text;
}

std::string Entry(const std::string& body, const std::string& header = "") {
  return "HloModule m" + header +
         "\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\nENTRY e {\n" + body +
         "\n}\n";
}

TEST(Spmd, DataParallelDotNeedsNoCollective) {
  const std::string text = Check(Entry(R"(x = f32[8,6] parameter(0), sharding={devices=[4,1]<=[4]}
    w = f32[6,10] parameter(1), sharding={replicated}
    d = f32[8,10] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT t = f32[8,10] tanh(d))"),
                                 4);
  EXPECT_THAT(text, HasSubstr("f32[2,10] dot"));
  EXPECT_THAT(text, HasSubstr("sharding={devices=[4,1]<=[4]}"));
  EXPECT_THAT(text, Not(HasSubstr("all-")));
}

TEST(Spmd, ContractingDimensionBecomesReduceScatterWhereTheResultIsCut) {
  const std::string text = Check(Entry(R"(x = f32[8,64] parameter(0), sharding={devices=[1,2]<=[2]}
    w = f32[64,10] parameter(1), sharding={devices=[2,1]<=[2]}
    ROOT d = f32[8,10] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[1,2]<=[2]})"),
                                 2);
  EXPECT_THAT(text, HasSubstr("reduce-scatter"));
  EXPECT_THAT(text, Not(HasSubstr("all-reduce")));
}

TEST(Spmd, ContractingDimensionBecomesAllReduceWhereTheResultIsWhole) {
  const std::string text = Check(Entry(R"(x = f32[8,64] parameter(0), sharding={devices=[1,2]<=[2]}
    w = f32[64,10] parameter(1), sharding={devices=[2,1]<=[2]}
    ROOT d = f32[8,10] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated})"),
                                 2);
  EXPECT_THAT(text, HasSubstr("all-reduce"));
}

TEST(Spmd, UnevenPartsAreMaskedBeforeTheyAreReduced) {
  // Padding of the arguments holds NaNs.
  const std::string text = Check(Entry(R"(x = f32[7,5] parameter(0), sharding={devices=[4,1]<=[4]}
    z = f32[] constant(0)
    ROOT r = f32[5] reduce(x, z), dimensions={0}, to_apply=add)"),
                                 4);
  EXPECT_THAT(text, HasSubstr("f32[2,5]"));
  EXPECT_THAT(text, HasSubstr("select"));
}

TEST(Spmd, SpatialConvolutionExchangesHalosWithNeighboursOnly) {
  const std::string text = Check(Entry(R"(x = f32[1,16,8,3] parameter(0), sharding={devices=[1,4,1,1]<=[4]}
    k = f32[3,3,3,4] parameter(1), sharding={replicated}
    ROOT c = f32[1,16,8,4] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f)"),
                                 4);
  EXPECT_THAT(text, HasSubstr("f32[1,1,8,3] collective-permute"));
  EXPECT_THAT(text, Not(HasSubstr("all-gather")));
}

TEST(Spmd, MovingAnAxisToAnotherDimensionIsAnAllToAll) {
  const std::string text = Check(Entry(R"(x = f32[8,6] parameter(0), sharding={devices=[2,1]<=[2]}
    ROOT c = f32[8,6] copy(x), sharding={devices=[1,2]<=[2]})"),
                                 2);
  EXPECT_THAT(text, HasSubstr("all-to-all"));
  EXPECT_THAT(text, Not(HasSubstr("all-gather")));
}

TEST(Spmd, AnotherOrderOfDevicesIsAPermute) {
  const std::string text = Check(Entry(R"(x = f32[8,6] parameter(0), sharding={devices=[4,1]<=[4]}
    ROOT c = f32[8,6] copy(x), sharding={devices=[4,1]<=[2,2]T(1,0)})"),
                                 4);
  EXPECT_THAT(text, HasSubstr("collective-permute"));
  EXPECT_THAT(text, HasSubstr("{1,2}"));
}

// Results of each device, of an argument that is its own part of 0, 1, 2, ...
std::vector<hlo::Literal> ResultsOfParts(const std::string& text, int64_t partitions,
                                         const std::function<int64_t(int64_t device)>& first, const hlo::Dims& sizes) {
  std::vector<std::vector<hlo::Literal>> arguments;
  for (int64_t device = 0; device < partitions; ++device) {
    hlo::Literal part(hlo::Shape(hlo::ElementType::kS32, sizes));
    for (int64_t i = 0; i < part.ElementCount(); ++i) part.SetInt(i, first(device) + i);
    arguments.push_back({part});
  }
  return hlo::EvaluateSpmd(*Partitioned(*Parse(text), partitions), arguments);
}

std::vector<int64_t> Integers(const hlo::Literal& literal) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < literal.ElementCount(); ++i) values.push_back(literal.GetInt(i));
  return values;
}

// Inside of a manual computation parts only move among devices of one place along the manual axes.
TEST(Spmd, PermutesStayInTheirManualGroups) {
  const std::string text = R"(HloModule m, num_partitions=16
ENTRY e {
  p = s32[16] parameter(0), sharding={devices=[2,8]<=[2,2,4]T(1,0,2) last_tile_dim_replicate}
  c = s32[16] custom-call(p), custom_call_target="Sharding", sharding={devices=[2,8]<=[2,2,4]T(1,0,2) last_tile_dim_replicate}
  m = s32[8] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={devices=[1,2,8]<=[2,2,4]T(1,0,2) last_tile_dims={manual, replicated}}
  u = s32[8] custom-call(m), custom_call_target="Sharding", sharding={devices=[4,2,2]<=[2,2,4]T(2,1,0) last_tile_dims={manual, replicated}}
  v = s32[8] custom-call(u), custom_call_target="Sharding", sharding={devices=[4,2,2]<=[2,2,2,2]T(3,0,1,2) last_tile_dims={manual, replicated}}
  w = s32[8] custom-call(v), custom_call_target="Sharding", sharding={devices=[1,2,8]<=[2,2,4]T(1,0,2) last_tile_dims={manual, replicated}}
  ROOT r = s32[16] custom-call(w), custom_call_target="SPMDShardToFullShape", sharding={devices=[2,8]<=[2,2,4]T(1,0,2) last_tile_dim_replicate}
})";
  const auto first = [](int64_t device) { return device / 4 % 2 * 8; };
  const std::vector<hlo::Literal> results = ResultsOfParts(text, 16, first, {8});
  for (int64_t device = 0; device < 16; ++device) {
    std::vector<int64_t> expected(8);
    std::iota(expected.begin(), expected.end(), first(device));
    EXPECT_EQ(Integers(results[static_cast<size_t>(device)]), expected) << device;
  }
}

// One local array may be parts of two whole ones.
TEST(Spmd, AManualComputationHandsItsOperandOnAsAnotherArray) {
  const std::string text = R"(HloModule m, num_partitions=2
ENTRY e {
  x = s32[8,2] parameter(0), sharding={devices=[2,1]<=[2]}
  c = s32[8,2] custom-call(x), custom_call_target="Sharding", sharding={devices=[2,1]<=[2]}
  m = s32[4,2] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={manual}
  n = s32[4,2] custom-call(m), custom_call_target="Sharding", sharding={manual}
  y = s32[4,4] custom-call(n), custom_call_target="SPMDShardToFullShape", sharding={devices=[1,2]<=[2]}
  ROOT t = (s32[8,2], s32[4,4]) tuple(x, y), sharding={{replicated}, {replicated}}
})";
  const auto first = [](int64_t device) { return 8 * device; };
  for (const hlo::Literal& result : ResultsOfParts(text, 2, first, {4, 2})) {
    std::vector<int64_t> all(16);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(Integers(result.elements()[0]), all);
    EXPECT_THAT(Integers(result.elements()[1]),
                ::testing::ElementsAre(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  }
}

TEST(Spmd, PlacesBeyond32BitsAreRefused) {
  const auto module = Parse(R"(HloModule m, num_partitions=4
ENTRY e {
  p = s8[4294967296] parameter(0), sharding={replicated}
  ROOT n = s8[4294967296] negate(p), sharding={devices=[4]<=[4]}
})");
  try {
    Partitioned(*module, 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cut another dimension"));
  }
}

TEST(Spmd, ListedDeviceOrdersAreOneMesh) {
  const std::string text = Check(Entry(R"(x = f32[8,6] parameter(0), sharding={devices=[3,1]2,0,1}
    y = f32[8,6] parameter(1), sharding={devices=[3,1]2,0,1}
    ROOT c = f32[8,6] add(x, y))"),
                                 3);
  EXPECT_THAT(text, HasSubstr("f32[3,6] add"));
  EXPECT_THAT(text, Not(HasSubstr("collective")));
}

TEST(Spmd, VocabularyShardedLookupMasksAndReduces) {
  const std::string text = Check(Entry(R"(x = f32[12,6] parameter(0), sharding={devices=[4,1]<=[4]}
    i = s32[3,1] parameter(1), sharding={replicated}
    ROOT g = f32[3,6] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,6}, sharding={replicated})"),
                                 4);
  EXPECT_THAT(text, HasSubstr("f32[3,6] all-reduce"));
  EXPECT_THAT(text, Not(HasSubstr("all-gather")));
}

TEST(Spmd, RngGivesTheSameNumbers) {
  Check(Entry(R"(s = u64[2] parameter(0)
    r = (u64[2], u32[8,6]) rng-bit-generator(s), algorithm=rng_three_fry
    b = u32[8,6] get-tuple-element(r), index=1
    ROOT c = u32[8,6] copy(b), sharding={devices=[2,1]<=[2]})"),
        2);
}

// A scan whose step is `step` over f32[6,8,6] with a carry of f32[8,6].
std::string ScanText(const std::string& step, const std::string& x, const std::string& carry,
                     const std::string& result = "") {
  return "HloModule m\nstep { x = f32[8,6] parameter(0)\n c = f32[8,6] parameter(1)\n" + step +
         "\nROOT t = (f32[8,6], f32[8,6]) tuple(y, y) }\nENTRY e { x = f32[6,8,6] parameter(0)" + x +
         "\n c = f32[8,6] parameter(1)" + carry +
         "\n ROOT s = (f32[6,8,6], f32[8,6]) scan(x, c), dimensions={0}, num_carries=1, to_apply=step" + result + "}";
}
constexpr const char* kRunning = "y = f32[8,6] add(x, c)";

TEST(Spmd, AScanIsCutAlongWhatItsStepDoesNotMix) {
  const std::string text = Check(ScanText(kRunning, ", sharding={devices=[1,2,1]<=[2]}", ""), 2);
  EXPECT_THAT(text, HasSubstr("f32[4,6] add"));
  EXPECT_THAT(text, HasSubstr("sharding={devices=[2,1]<=[2]}"));  // of the carry, which nobody annotated
  EXPECT_THAT(text, Not(HasSubstr("all-")));
}

TEST(Spmd, AScansResultsCutItsOperands) {
  const std::string text =
      Check(ScanText(kRunning, "", "", ", sharding={{devices=[1,1,3]<=[3]}, {devices=[1,3]<=[3]}}"), 3);
  EXPECT_THAT(text, HasSubstr("f32[8,2] add"));
  EXPECT_THAT(text, HasSubstr("f32[6,8,2] parameter(0)"));
  EXPECT_THAT(text, Not(HasSubstr("all-")));
}

TEST(Spmd, StepsOfAScanAreEveryones) {
  // The array is exchanged once, in front of the loop.
  const std::string text =
      Check(ScanText(kRunning, ", sharding={devices=[2,1,1]<=[2]}", ", sharding={devices=[2,1]<=[2]}"), 2);
  EXPECT_THAT(text, HasSubstr("f32[4,6] add"));
  EXPECT_THAT(text, HasSubstr("all-to-all"));
  EXPECT_THAT(text, Not(HasSubstr("all-reduce")));
}

TEST(Spmd, AScansStepMayCommunicate) {
  const std::string text =
      Check(ScanText(R"(z = f32[] constant(0) m = f32[6] reduce(x, z), dimensions={0}, to_apply=max
                  b = f32[8,6] broadcast(m), dimensions={1} y = f32[8,6] add(b, c))",
                     ", sharding={devices=[1,4,1]<=[4]}", "")
                .insert(std::string("HloModule m").size(),
                        "\nmax { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }"),
            4);
  EXPECT_THAT(text, HasSubstr("f32[6,2,6] parameter(0)"));
  EXPECT_THAT(text, HasSubstr("f32[6] all-reduce"));
}

TEST(Spmd, RunningSumsExchangeTheirTotalsOnly) {
  const std::string text = Check(Entry(R"(x = f32[4,64] parameter(0), sharding={devices=[1,4]<=[4]}
    z = f32[] constant(0)
    ROOT r = f32[4,64] reduce-window(x, z), window={size=1x64 pad=0_0x63_0}, to_apply=add, sharding={devices=[1,4]<=[4]})"),
                                 4);
  EXPECT_THAT(text, HasSubstr("f32[4,4] all-gather"));
  EXPECT_THAT(text, HasSubstr("f32[4,16] reduce-window"));
}

// Cumulative and associative ops, cut along any dimension, and scans: what no rule knows would warn.
TEST(Spmd, NothingCumulativeIsReplicated) {
  int64_t ran = 0;
  ForEachShardedCase(0, 1, 40, [&](const ShardedCase& sharded) {
    const bool is_cumulative =
        sharded.name.starts_with("cum") || sharded.name.starts_with("scan") || sharded.name.starts_with("associative");
    if (!is_cumulative) return;
    ++ran;
    std::vector<Remark> remarks;
    Partitioned(*sharded.module, sharded.partitions, &remarks);
    EXPECT_THAT(remarks, Each(Field(&Remark::warns, false))) << sharded.name;
  });
  EXPECT_GE(ran, 500);
}

constexpr const char* kShardyHeader =
    R"(, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=4, "model"=2]>}})";

TEST(Spmd, ShardyAnnotationsAndSubAxes) {
  const std::string text = Check(
      Entry(
          R"(x = f32[8,16] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"data\":(1)2, \"model\"}, {}]>"}
    w = f32[16,4] parameter(1), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{}, {\"data\":(2)2}]>"}
    ROOT d = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
          kShardyHeader),
      8);
  EXPECT_THAT(text, HasSubstr("f32[2,2] dot"));
  EXPECT_THAT(text, HasSubstr("devices=[4,1,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate"));
}

TEST(Spmd, ManualComputationKeepsItsCollectives) {
  const std::string module = std::string("HloModule m") + kShardyHeader + R"(
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
    body { x = f32[2,8] parameter(0) w = f32[8,4] parameter(1)
      d = f32[2,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT r = f32[2,4] all-reduce(d), channel_id=1, replica_groups={{0,1},{2,3},{4,5},{6,7}}, use_global_device_ids=true, to_apply=add }
    ENTRY e { x = f32[8,16] parameter(0) w = f32[16,4] parameter(1)
      in = (f32[2,8], f32[8,4]) custom-call(x, w), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"data\"}, {\"model\"}]>, <@mesh, [{\"model\"}, {}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"data\", \"model\"}>"}
      a = f32[2,8] get-tuple-element(in), index=0
      b = f32[8,4] get-tuple-element(in), index=1
      c = f32[2,4] call(a, b), to_apply=body
      ROOT out = f32[8,4] custom-call(c), custom_call_target="xla.sdy.LocalToGlobalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\"data\", \"model\"}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"data\"}, {}]>]>"}
    })";
  const std::string text = hlo::PrintModule(*Partitioned(*Parse(module), 8));
  EXPECT_THAT(text, HasSubstr("all-reduce"));
  EXPECT_THAT(text, Not(HasSubstr("custom-call")));
  EXPECT_THAT(text, Not(HasSubstr("all-gather")));
}

TEST(Spmd, WhatCannotBeCutIsReplicatedWithAWarningThatNamesIt) {
  std::vector<Remark> remarks;
  Partitioned(*Parse(Entry(R"(x = f32[8,6] parameter(0), sharding={devices=[2,1]<=[2]}
    ROOT odd = f32[8,6] custom-call(x), custom_call_target="something")")),
              2, &remarks);
  EXPECT_THAT(remarks, Contains(AllOf(Field(&Remark::reason, HasSubstr("custom-call cannot be cut")),
                                      Field(&Remark::warns, true))));
  EXPECT_THAT(remarks, Contains(Field(&Remark::instruction, "odd")));
}

TEST(Spmd, EveryAddedCollectiveIsExplained) {
  std::vector<Remark> remarks;
  Partitioned(*Parse(Entry(R"(x = f32[8,6] parameter(0), sharding={devices=[2,1]<=[2]}
    ROOT c = f32[8,6] copy(x), sharding={replicated})")),
              2, &remarks);
  EXPECT_THAT(remarks, Contains(Field(&Remark::reason, HasSubstr("all-gather of f32[8,6]"))));
}

TEST(Spmd, ModulesOfSingleDevicesStayAsTheyAre) {
  const std::string module = R"(HloModule m, num_partitions=2
    ENTRY e { x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
      ROOT g = f32[8] all-gather(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={0} })";
  EXPECT_FALSE(spmd::NeedsPartitioning(*Parse(module), {}));
}

// The driver joins the parts by it, though later passes may replace the root.
TEST(Spmd, TheModuleRemembersHowItsResultLies) {
  const auto parts = Partitioned(*Parse(Entry(R"(x = f32[8,6] parameter(0), sharding={devices=[2,1]<=[2]}
    ROOT c = f32[8,6] negate(x))")),
                                 2);
  EXPECT_EQ(parts->frontend_attributes.at(spmd::kResultSharding), "{devices=[2,1]<=[2]}");
  EXPECT_EQ(hlo::PrintModule(*Parse(hlo::PrintModule(*parts))), hlo::PrintModule(*parts));
}

TEST(Spmd, NumberOfPartitions) {
  const std::string body = "x = f32[8] parameter(0), sharding={devices=[4]<=[4]}  ROOT c = f32[8] copy(x)";
  EXPECT_EQ(spmd::PartitionCountOf(*Parse(Entry(body))), 4);
  EXPECT_EQ(spmd::PartitionCountOf(*Parse(Entry(body, kShardyHeader))), 8);
  EXPECT_EQ(spmd::PartitionCountOf(*Parse(Entry(body, ", num_partitions=4"))), 4);
}

struct BadCase {
  const char* name;
  const char* sharding;
  const char* message;
};

void PrintTo(const BadCase& c, std::ostream* out) { *out << c.name; }

class SpmdBadInput : public ::testing::TestWithParam<BadCase> {};

TEST_P(SpmdBadInput, IsASentenceThatNamesTheInstruction) {
  const std::string text =
      Entry(fmt::format("x = f32[8,6] parameter(0), {}\n ROOT c = f32[8,6] copy(x), sharding={{devices=[2,2]<=[4]}}",
                        GetParam().sharding),
            ", frontend_attributes={xla.sdy.meshes={m = #sdy.mesh<[\"a\"=4]>}}");
  try {
    Partitioned(*Parse(text), 4);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("%x"));
    EXPECT_THAT(error.message(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SpmdBadInput,
    ::testing::Values(
        BadCase{"tiles", "sharding={devices=[3,1]0,1,2}", "is for 3 devices"},
        BadCase{"rank", "sharding={devices=[4]<=[4]}", "has 1 dimensions"},
        BadCase{"axis", R"(frontend_attributes={xla.sdy.sharding="#sdy.sharding<@m, [{\"b\"}, {}]>"})",
                "which its mesh does not have"},
        BadCase{"mesh", R"(frontend_attributes={xla.sdy.sharding="#sdy.sharding<@n, [{\"a\"}, {}]>"})",
                "names the mesh @n"},
        BadCase{"twice", R"(frontend_attributes={xla.sdy.sharding="#sdy.sharding<@m, [{\"a\"}, {\"a\"}]>"})", "twice"},
        BadCase{"subaxis", R"(frontend_attributes={xla.sdy.sharding="#sdy.sharding<@m, [{\"a\":(1)3}, {}]>"})",
                "does not divide"},
        BadCase{"text", R"(frontend_attributes={xla.sdy.sharding="#sdy.sharding<@m, [{a}]>"})", "expected"}),
    [](const auto& info) { return std::string(info.param.name); });

std::string ErrorOf(const std::string& text, int64_t partitions) {
  try {
    Partitioned(*Parse(text), partitions);
    return "no error";
  } catch (const Error& error) {
    return error.message();
  }
}

constexpr const char* kAt = R"(, metadata={source_file="model.py" source_line=)";

TEST(SpmdBadInput, ShardingsForDifferentDevicesAreBothNamed) {
  const std::string message =
      ErrorOf(Entry(fmt::format(R"(x = f32[8,6] parameter(0), sharding={{devices=[3,1]0,1,2}}{0}7}}
    ROOT c = f32[8,6] copy(x), sharding={{devices=[2,2]<=[4]}}{0}9}})",
                                kAt)),
              4);
  EXPECT_THAT(message, HasSubstr("%x at model.py:7"));
  EXPECT_THAT(message, HasSubstr("%c at model.py:9"));
}

TEST(SpmdBadInput, TwoNotationsThatContradictEachOtherAreBothShown) {
  const std::string message = ErrorOf(
      Entry(
          fmt::format(
              R"(x = f32[8,6] parameter(0), sharding={{devices=[1,2,4]<=[8] last_tile_dim_replicate}}, frontend_attributes={{xla.sdy.sharding="#sdy.sharding<@mesh, [{{\"data\"}}, {{}}]>"}}{}7}}
    ROOT c = f32[8,6] copy(x))",
              kAt),
          R"(, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=4, "model"=2]>}})"),
      8);
  EXPECT_THAT(message, HasSubstr("%x at model.py:7"));
  EXPECT_THAT(message, HasSubstr("contradict each other in dimension 0"));
}

TEST(SpmdBadInput, ALoopAndItsBodyThatContradictEachOtherAreBothNamed) {
  const std::string message = ErrorOf(fmt::format(R"(HloModule m
body {{ s = (s32[], f32[8,6]) parameter(0), sharding={{{{replicated}}, {{devices=[2,1]<=[2]}}}}{0}3}}
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,6] get-tuple-element(s), index=1
  ROOT t = (s32[], f32[8,6]) tuple(i, x) }}
cond {{ s = (s32[], f32[8,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT }}
ENTRY e {{ x = f32[8,6] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[8,6]) tuple(z, x)
  w = (s32[], f32[8,6]) while(t), condition=cond, body=body, sharding={{{{replicated}}, {{devices=[1,2]<=[2]}}}}{0}8}}
  ROOT r = f32[8,6] get-tuple-element(w), index=1 }})",
                                                  kAt),
                                      2);
  EXPECT_THAT(message, HasSubstr("%s at model.py:3"));
  EXPECT_THAT(message, HasSubstr("%w at model.py:8"));
}

TEST(SpmdBadInput, AMeshThatDoesNotMultiplyOut) {
  const std::string message = ErrorOf(
      Entry(
          R"(x = f32[8,6] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"data\"}, {}]>"}
    ROOT c = f32[8,6] copy(x))",
          kShardyHeader),
      6);
  EXPECT_THAT(message, HasSubstr("@mesh, data:4 x model:2, has 8 devices, the module is for 6 partitions"));
}

TEST(SpmdBadInput, TilesThatAreMoreThanTheDevices) {
  EXPECT_THAT(ErrorOf(Entry("x = f32[8,6] parameter(0), sharding={devices=[2,3]<=[4]}\n ROOT c = f32[8,6] copy(x)"), 4),
              HasSubstr("4"));
}

TEST(Shardy, ReadsWhatJaxWrites) {
  const auto meshes = spmd::ParseShardyMeshes(
      R"({mesh = #sdy.mesh<["data"=4, "model"=2]>, other = #sdy.mesh<["x"=2], device_ids=[1, 0]>, empty = #sdy.mesh<[]>})");
  ASSERT_EQ(meshes.size(), 3u);
  EXPECT_EQ(meshes.at("mesh").axes[1].second, 2);
  EXPECT_EQ(meshes.at("other").device_ids, (std::vector<int64_t>{1, 0}));
  const auto shardings = spmd::ParseShardyShardings(
      R"(#sdy.sharding_per_value<[<@mesh, [{"data", ?}p1, {"model":(1)2}], replicated={"x"}, unreduced={"y"}>, <@mesh, []>]>)");
  ASSERT_EQ(shardings.size(), 2u);
  EXPECT_TRUE(shardings[0].dimensions[0].open);
  EXPECT_EQ(shardings[0].dimensions[0].priority, 1);
  EXPECT_EQ(shardings[0].dimensions[1].axes[0].size, 2);
  EXPECT_EQ(shardings[0].replicated[0].name, "x");
  EXPECT_EQ(spmd::ParseManualAxes(R"(#sdy<manual_axes{"a", "b"}>)"), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace hlorun::passes
