// HLO text: what XLA prints and its tests write is read, printed and read again to the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

namespace hlorun::hlo {
namespace {

using ::testing::HasSubstr;

std::filesystem::path ModelsDirectory() {
  if (const char* shared = std::getenv("HLORUN_SHARED")) return std::filesystem::path(shared) / "models";
  // The shared folder lies beside the repository, or one level further up beside its worktrees.
  const std::filesystem::path source = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
  for (const char* up : {"../shared/models", "../../shared/models"}) {
    if (std::filesystem::exists(source / up)) return source / up;
  }
  return {};
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Prints what was read from `text`, and checks that this is a fixed point.
std::string RoundTrip(const std::string& text, bool fill_elided = false) {
  const std::string printed = PrintModule(*ParseModule(text, {"original", fill_elided}));
  const std::string again = PrintModule(*ParseModule(printed, {"printed", false}));
  EXPECT_EQ(printed, again);
  return printed;
}

// The instruction as printed, read as the root of a computation with `before` in front of it.
std::string RoundTripInstruction(const std::string& before, const std::string& instruction) {
  const std::string printed = RoundTrip("HloModule m\n" + before + "\n  ROOT %root = " + instruction + "\n}\n");
  const size_t begin = printed.rfind("ROOT %root = ") + 13;
  return printed.substr(begin, printed.find('\n', begin) - begin);
}

Error ErrorOf(const std::string& text) {
  try {
    ParseModule(text, {"bad.hlo", false});
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error for: " << text;
  return Error(ErrorCode::kInternal, "none");
}

TEST(TextModelsTest, RealModulesPrintToAFixedPoint) {
  const std::filesystem::path models = ModelsDirectory();
  if (models.empty()) GTEST_SKIP() << "no shared models: set HLORUN_SHARED to the folder that holds models/";
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(models)) {
    if (entry.path().extension() != ".hlo") continue;
    SCOPED_TRACE(entry.path().string());
    RoundTrip(ReadAll(entry.path()), true);
    ++count;
  }
  EXPECT_GT(count, 10);
}

TEST(TextTest, MinimalModule) {
  const auto module =
      ParseModule("HloModule m\nENTRY e {\n  p = f32[2,3]{1,0} parameter(0)\n  ROOT n = f32[2,3] negate(p)\n}\n");
  EXPECT_EQ(module->name(), "m");
  EXPECT_EQ(module->entry()->root()->opcode(), Opcode::kNegate);
  EXPECT_EQ(module->entry()->root()->operand(0)->shape().ToString(), "f32[2,3]{1,0}");
}

// Every row is an instruction as XLA prints it, over the operands below: it must come back unchanged.
constexpr char kOperands[] = R"(add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
step {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = f32[] add(a, b)
  ROOT t = (f32[], f32[]) tuple(s, s)
}
id {
  ROOT a = f32[4,4] parameter(0)
}
ENTRY e {
  p = f32[4,4]{1,0} parameter(0)
  v = f32[4]{0} parameter(1)
  z = f32[] constant(0)
  i = s32[] constant(1)
  q = pred[] constant(true)
  ids = s32[4] constant({1, 1, 1, 1})
  tok = token[] after-all()
  img = f32[1,8,8,3]{3,2,1,0} parameter(2)
  ker = f32[3,3,3,16]{3,2,1,0} parameter(3)
  state = u64[2] constant({1, 2})
  cube = f32[4,4,4] broadcast(z), dimensions={}
  start = (f32[4]{0}, f32[4]{0}, u32[]) copy-start(v), cross_program_prefetch_index=0
)";

class TextInstructionTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TextInstructionTest, ComesBackUnchanged) { EXPECT_EQ(RoundTripInstruction(kOperands, GetParam()), GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Opcodes, TextInstructionTest,
    ::testing::Values(
        "f32[4,4]{1,0} add(%p, %p)", "pred[4,4]{1,0} compare(%p, %p), direction=GE, type=TOTALORDER",
        "f32[4,5]{1,0} pad(%p, %z), padding=0_0x0_1", "f32[7,3]{1,0} pad(%p, %z), padding=0_0_1x0_-1_0",
        "f32[] pad(%z, %z), padding=", "f32[2,4]{1,0} slice(%p), slice={[0:4:2], [0:4:1]}",
        "f32[2,4]{1,0} slice(%p), slice={[0:2], [0:4]}",
        "f32[1,4]{1,0} dynamic-slice(%p, %i, %i), dynamic_slice_sizes={1,4}",
        "f32[4,4]{1,0} dynamic-update-slice(%p, %p, %i, %i)",
        "f32[4,4,4,4]{3,2,1,0} dot(%p, %p), lhs_contracting_dims={}, rhs_contracting_dims={}",
        "f32[4]{0} dot(%p, %p), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, "
        "rhs_contracting_dims={1}, operand_precision={highest,default}, algorithm=dot_bf16_bf16_f32",
        "f32[4,4]{1,0} ragged-dot(%p, %cube, %ids), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
        "lhs_ragged_dims={0}, rhs_group_dims={0}",
        "f32[1,4,4,16]{3,2,1,0} convolution(%img, %ker), window={size=3x3 stride=2x2 pad=0_1x0_1}, "
        "dim_labels=b01f_01io->b01f",
        "f32[3,15,15,16]{3,2,1,0} convolution(%img, %ker), window={size=3x3 pad=-1_2x1_1 lhs_dilate=2x2 "
        "rhs_dilate=1x2 rhs_reversal=1x0}, dim_labels=f01b_i01o->b01f, feature_group_count=3",
        "f32[2,2]{1,0} reduce-window(%p, %z), window={size=2x2 stride=2x2}, to_apply=%add",
        "f32[4,4]{1,0} select-and-scatter(%p, %p, %z), window={size=1x1}, select=%less, scatter=%add",
        "f32[4]{0} reduce(%p, %z), dimensions={1}, to_apply=%add",
        "f32[4,4]{1,0} map(%p, %p), dimensions={0,1}, to_apply=%add",
        "f32[4,4]{1,0} sort(%p), dimensions={1}, is_stable=true, to_apply=%less",
        "(f32[4]{0}, f32[]) scan(%v, %z), dimensions={0}, num_carries=1, is_reverse=true, is_associative=false, "
        "to_apply=%step",
        "(f32[4,2]{1,0}, s32[4,2]{1,0}) topk(%p), k=2, largest=false",
        "f32[4,4]{1,0} gather(%p, %ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,4}, indices_are_sorted=true",
        "f32[4,4]{1,0} scatter(%p, %ids, %p), update_window_dims={1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, unique_indices=true, "
        "to_apply=%add",
        "s32[4]{0} iota(), iota_dimension=0", "f32[16]{0} reshape(%p), inferred_dimension=0",
        "f32[4,4]{0,1} transpose(%p), dimensions={1,0}", "f32[<=16]{0} dynamic-reshape(%p, %i)",
        "s32[] get-dimension-size(%p), dimensions={1}", "f32[4,<=4]{1,0} set-dimension-size(%p, %i), dimensions={1}",
        "(f32[4,4]{1,0}, f32[4]{0}, f32[4]{0}) batch-norm-training(%p, %v, %v), epsilon=0.001, feature_index=1",
        "c64[4,3]{1,0} fft(%p), fft_type=RFFT, fft_length={4}", "f32[4,4]{1,0} cholesky(%p), lower=true",
        "f32[4,4]{1,0} triangular-solve(%p, %p), left_side=true, lower=true, unit_diagonal=true, "
        "transpose_a=TRANSPOSE",
        "f32[4,4]{1,0} reduce-precision(%p), exponent_bits=5, mantissa_bits=10",
        "f32[4]{0} rng(%z, %z), distribution=rng_uniform",
        "(u64[2]{0}, u32[4]{0}) rng-bit-generator(%state), algorithm=rng_three_fry",
        "u64[2]{0} rng-get-and-update-state(), delta=2", "(f32[4]{0}, token[]) infeed(%tok), infeed_config=\"abc\"",
        "token[] outfeed(%p, %tok), outfeed_shape=f32[4,4]{1,0}, outfeed_config=\"x\\\"y\"",
        "(f32[4,4]{1,0}, u32[], token[]) send(%p, %tok), channel_id=1, is_host_transfer=true",
        "f32[4,4]{1,0} domain(%p), domain={kind=\"sharding\", entry={maximal device=0}, exit={maximal device=1}}",
        "f32[4,4]{1,0} conditional(%q, %p, %p), true_computation=%id, false_computation=%id",
        "f32[4,4]{1,0} conditional(%i, %p, %p), branch_computations={%id, %id}",
        "f32[] call(%z, %z), to_apply=%add, frontend_attributes={composite.attributes={x = 1 : "
        "i32},composite.name=\"f\"}",
        "f32[] call(%z, %z), is_composite=true, to_apply=%add",
        "f32[4,4]{1,0} all-reduce(%p), channel_id=3, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, "
        "to_apply=%add",
        "f32[16,4]{1,0} all-gather(%p), channel_id=2, replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}",
        "f32[8,4]{1,0} all-gather(%p), channel_id=2, replica_groups=mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) "
        "{'b'}, use_global_device_ids=true, dimensions={0}",
        "f32[1,4]{1,0} reduce-scatter(%p), replica_groups={{0,1,2,3}}, constrain_layout=true, dimensions={0}, "
        "to_apply=%add",
        "(f32[4,4]{1,0}, f32[4,4]{1,0}) all-to-all(%p, %p), replica_groups={{0,1}}",
        "f32[4,4]{1,0} collective-permute(%p), source_target_pairs={{0,1},{1,0}}",
        "f32[4,4]{1,0} collective-broadcast(%p), replica_groups={}", "f32[4]{0} copy-done(%start)",
        "f32[4,4]{1,0} fusion(%p), kind=kLoop, output_to_operand_aliasing={{}: (0, {})}, calls=%id, "
        "backend_config={\"a\": [1, 2]}",
        "f32[4,4]{1,0} custom-call(%p, %v), window={size=2x2 stride=1x2 pad=0_1x1_0}, dim_labels=bf01_oi01->bf01, "
        "feature_group_count=2, operand_precision={high,highest}, padding_type=PADDING_SAME, "
        "custom_call_target=\"foo\", operand_layout_constraints={f32[4,4]{1,0}, f32[4]{0}}, "
        "custom_call_has_side_effect=true, literal=s32[2]{0} {1, 2}, output_to_operand_aliasing={{}: (0, {})}, "
        "schedule=SCHEDULE_LATEST, api_version=API_VERSION_STATUS_RETURNING, called_computations={%id}, "
        "backend_config=\"opaque \\\"x\\\"\"",
        "f32[4,4]{1,0:T(8,128)(2,1)E(4)S(1)} copy(%p), sharding={devices=[2,2]<=[4] last_tile_dims={manual}}",
        "f32[4,4]{1,0} copy(%p), sharding={devices=[2,1,2]0,1,2,3 last_tile_dim_replicate metadata={op_name=\"x\"}}",
        "f32[4,4]{1,0} copy(%p), sharding={devices=[2,1]<=[2] shard_as 1}",
        "f32[4,4]{1,0} copy(%p), sharding={maximal device=1}",
        "f32[4,4]{1,0} copy(%p), sharding={mesh['x'=2], [{'x'}, {}]}",
        "(f32[4]{0}, f32[]) tuple(%v, %z), sharding={{replicated}, {manual}}",
        "f32[4,4]{1,0} copy(%p), control-predecessors={%v, %z}, "
        "metadata={op_type=\"t\" "
        "op_name=\"a[\\'b\\']\" source_file=\"f\\303\\251\" source_line=3 source_end_line=4 source_column=1 "
        "source_end_column=5 profile_type={1} deduplicated_name=\"d\" scheduling_name=\"s\" stack_frame_id=7}",
        "f32[4,4]{1,0} exponential(%p), result_accuracy={mode=highest}",
        "f32[2,2]{1,0} constant({ { 1, 0.1 }, { nan, -inf } })",
        "s64[2]{0} constant({-9223372036854775808, 9223372036854775807})", "u64[] constant(18446744073709551615)",
        "bf16[3]{0} constant({0.1001, 1, 6.528e+04})", "f16[2]{0} constant({0.099976, 65504})",
        "f64[2]{0} constant({0.333333333333333, 1.7976931348623157e+308})",
        "f32[4]{0} constant({0.333333343, 1e+06, 1.4013e-45, -0.0})",
        "f32[3]{0} constant({nan(0x1234), -nan(0x400001), -nan})", "c64[2]{0} constant({(1, -2.5), (0, nan)})",
        "pred[3]{0} constant({1, 0, 1})", "pred[] constant(true)", "s4[2]{0} constant({-8, 7})",
        "f8e5m2[4]{0} constant({nan(0x1), -nan, inf, 1.5e-05})", "f8e4m3fn[3]{0} constant({1.5, 448, nan})",
        "(f32[2]{0}, s32[]) constant(( {1, 2}, 3 ))", "f32[0]{0} constant({})", "f32[2,0]{1,0} constant({ {}, {} })",
        "f32[0,2]{1,0} constant({  })", "f32[2,1]{1,0} constant({ {1}, {2} })",
        "f32[1,2,1,2]{3,2,1,0} constant({ { /*i0=0*/ { /*i1=0*/ { 1, 2 } }, { /*i1=1*/ { 1, 2 } } } })"));

TEST(TextTest, MeshGroupsExpand) {
  using Groups = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(ParseReplicaGroups("mesh['a'=2,'b'=4] {'a'}").Expanded(), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(ParseReplicaGroups("mesh['a'=2,'b'=4] {'b'}").Expanded(), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(ParseReplicaGroups("mesh['a'=2,'b'=2] {'b','a'}").Expanded(), (Groups{{0, 2, 1, 3}}));
  EXPECT_EQ(ParseReplicaGroups("mesh['a'=2,'b'=2] {'a','b'}").Expanded(), (Groups{{0, 1, 2, 3}}));
  EXPECT_EQ(ParseReplicaGroups("mesh['a'=4] {'a':(2)2,'a':(1)2}").Expanded(), (Groups{{0, 2, 1, 3}}));
  EXPECT_EQ(ParseReplicaGroups("mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a'}").Expanded(),
            (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(ParseReplicaGroups("mesh['a'=4,'b'=2] {'a':(2)2}").Expanded(), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(ParseReplicaGroups("mesh['a'=4], device_ids=(3,1,0,2) {'a':(1)2}").Expanded(), (Groups{{3, 0}, {1, 2}}));
  EXPECT_EQ(ParseReplicaGroups("mesh['data parallel'=2,'b,c'=1] {'data parallel'}").Expanded(), (Groups{{0, 1}}));
  EXPECT_THROW(ParseReplicaGroups("mesh['a'=4] {'b'}"), Error);
  EXPECT_THROW(ParseReplicaGroups("mesh['a"), Error);
  EXPECT_THROW(ParseReplicaGroups("mesh['a'=4], device_ids=(0,1) {'a'}"), Error);
  EXPECT_THROW(ParseReplicaGroups("mesh['a'=4] {'a':(3)2}"), Error);
}

TEST(TextTest, HeaderAndTables) {
  const std::string text =
      "HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }, "
      "alias_passthrough_params=true, entry_computation_layout={(f32[2]{0}, f32[2]{0})->f32[2]{0}}, "
      "allow_spmd_sharding_propagation_to_parameters={true,false}, allow_spmd_sharding_propagation_to_output={true}, "
      "replica_count=2, num_partitions=4, frontend_attributes={a=\"b\",xla.sdy.meshes={mesh = "
      "#sdy.mesh<[\"x\"=2]>}}\n\n"
      "FileNames\n1 \"a.py\"\n2 \"<embedded \\'x\\'>\"\n\nFunctionNames\n1 \"f\"\n\nFileLocations\n"
      "1 {file_name_id=1 function_name_id=1 line=1 end_line=2 column=3 end_column=4}\n\nStackFrames\n"
      "1 {file_location_id=1 parent_frame_id=1}\n\n\n"
      "ENTRY %e (p: f32[2], q: f32[2]) -> f32[2] {\n  %p = f32[2]{0} parameter(0), "
      "parameter_replication={true}\n  %q = f32[2]{0} parameter(1)\n  ROOT %r = f32[2]{0} add(%p, %q)\n}\n\n";
  EXPECT_EQ(RoundTrip(text), text);
}

TEST(TextTest, ShortForms) {
  // No header: named after the entry; no ENTRY: the last computation; no ROOT: the last instruction; no shape:
  // inferred.
  const auto module =
      ParseModule("c { ROOT p = f32[2] parameter(0) }\nd { p = f32[2] parameter(0)\n q = add(p, p)\n n = negate(q) }");
  EXPECT_EQ(module->name(), "module_d");
  EXPECT_EQ(module->entry()->name(), "d");
  EXPECT_EQ(module->entry()->root()->opcode(), Opcode::kNegate);
  EXPECT_EQ(module->entry()->root()->shape().ToString(), "f32[2]");

  const auto list = ParseModule(
      "HloModule m\n%p = f32[2] parameter(0)\nROOT %q = f32[2] add(f32[2] %p, f32[2]{0} p)\n%r = f32[2] negate(q)");
  EXPECT_EQ(list->entry()->root()->name(), "q");

  const auto single = ParseModule("f32[2] add(f32[2] x, f32[2] y)");
  EXPECT_EQ(single->entry()->parameter_count(), 2);

  const auto nested =
      ParseModule("ENTRY e { p = f32[2] parameter(0)\n ROOT r = add(negate(p), f32[2] multiply(p, p)) }");
  EXPECT_EQ(nested->entry()->root()->operand(1)->opcode(), Opcode::kMultiply);
}

TEST(TextTest, AsyncSugarIsWrapped) {
  const auto module = ParseModule(
      "ENTRY e { p = f32[8] parameter(0)\n"
      " s = ((f32[8]), f32[4], u32[]) slice-start(p), slice={[0:4]}, async_execution_thread=\"t\", "
      "metadata={op_name=\"x\"}\n"
      " u = ((f32[8]), f32[4], u32[]) slice-update(s)\n ROOT d = f32[4] slice-done(u) }");
  const Instruction* start = module->entry()->root()->operand(0)->operand(0);
  EXPECT_EQ(start->opcode(), Opcode::kAsyncStart);
  EXPECT_EQ(start->called()->root()->opcode(), Opcode::kSlice);
  EXPECT_EQ(start->called()->root()->As<attr::Slice>().limits, std::vector<int64_t>{4});
  EXPECT_EQ(start->called()->root()->metadata.op_name, "x");
  EXPECT_EQ(module->entry()->root()->called(), start->called());
  RoundTrip(PrintModule(*module));
}

TEST(TextTest, SeveralModulesAndComments) {
  const auto modules = ParseModules(
      "HloModule a\nENTRY e { // one\n p = f32[] parameter(0) /* two */ }\n// -----\nHloModule b\n%x = f32[] "
      "constant(1)\n");
  ASSERT_EQ(modules.size(), 2u);
  EXPECT_EQ(modules[1]->name(), "b");
}

TEST(TextTest, NamesThatComputationsShareBecomeUnique) {
  const auto module = ParseModule(
      "c { p = f32[] parameter(0) }\nENTRY e { p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=c }");
  EXPECT_EQ(module->entry()->parameter(0)->name(), "p.1");
}

// The values were read from jaxlib 0.10.2.
TEST(TextTest, ElidedConstantsAreFilledAsByXla) {
  const std::string printed = RoundTrip(
      "HloModule m\nENTRY e {\n a = f32[2] constant({...})\n b = s32[3] constant({...})\n c = u8[7] constant({...})\n"
      " c2 = u8[7] constant({...})\n d = pred[5] constant({...})\n e = s64[2] constant({...})\n f = bf16[3] "
      "constant({...})\n"
      " g = s4[5] constant({...})\n g1 = s2[5] constant({...})\n ROOT h = c64[2] constant({...})\n}\n",
      true);
  for (const char* value :
       {"{0, 1.4013e-45}", "{2, 3, 4}", "{5, 0, 1, 2, 0, 0, 0}", "{6, 3, 4, 5, 0, 0, 0}", "{1, 0, 0, 0, 0}",
        "{38654705672, 47244640266}", "{1.053e-34, 7.347e-40, 0}", "{-3, -7, 0, 0, 0}", "{-2, -2, 0, 0, 0}",
        "{(2.10195e-44, 2.24208e-44), (2.38221e-44, 2.52234e-44)}"}) {
    EXPECT_THAT(printed, HasSubstr(value));
  }
}

TEST(TextTest, PrintOptions) {
  const std::string text =
      "HloModule m\nENTRY e {\n  c = f32[3] constant({1, 2, 3}), metadata={op_name=\"n\"}\n  ROOT r = f32[3] "
      "negate(c)\n}\n";
  const auto module = ParseModule(text);
  PrintOptions options;
  options.elide_constants_above = 2;
  options.metadata = false;
  options.operand_shapes = true;
  const std::string printed = PrintModule(*module, options);
  EXPECT_THAT(printed, HasSubstr("constant({...})\n"));
  EXPECT_THAT(printed, HasSubstr("negate(f32[3] %c)"));
  PrintOptions canonical;
  canonical.canonical = true;
  const auto renamed =
      ParseModule("HloModule other\nENTRY x {\n  d = f32[3] constant({1, 2, 3})\n  ROOT s = f32[3] negate(d)\n}\n");
  EXPECT_EQ(PrintModule(*module, canonical), PrintModule(*renamed, canonical));
}

struct BadText {
  const char* text;
  const char* message;  // part of what()
};

void PrintTo(const BadText& bad, std::ostream* out) { *out << bad.message; }

class TextErrorTest : public ::testing::TestWithParam<BadText> {};

TEST_P(TextErrorTest, IsReported) { EXPECT_THAT(ErrorOf(GetParam().text).what(), HasSubstr(GetParam().message)); }

INSTANTIATE_TEST_SUITE_P(
    Messages, TextErrorTest,
    ::testing::Values(
        BadText{"", "expected HloModule, but the text ends here"}, BadText{"HloModule m\n", "expected a computation"},
        BadText{"HloModule m\nENTRY e {\n  ROOT b = f32[2] add(a, a)\n  a = f32[2] parameter(0)\n}\n",
                "bad.hlo:3:23: error: %a is not defined before this line in computation e"},
        BadText{
            "ENTRY e { a = f32[2] parameter(0)\n ROOT b = f32[2] call(a), to_apply=c }\nc { p = f32[2] parameter(0) }",
            "computation c is not defined above its use"},
        BadText{"ENTRY e { a = f32[] constant(1)\n a = f32[] constant(2)\n}", "%a is already defined on line 1"},
        BadText{"c { a = f32[] constant(1) }\nc { a = f32[] constant(1) }", "computation c is already defined"},
        BadText{"ENTRY e { a = f32[] constant(1) }\nENTRY f { a = f32[] constant(1) }", "already has an ENTRY"},
        BadText{"ENTRY e { ROOT a = f32[] constant(1)\n ROOT b = f32[] constant(1) }", "already has a ROOT"},
        BadText{"ENTRY e { a = f32[] parameter(0)\n ROOT b = f32[] sine(a), dimension={0} }",
                "sine has no attribute dimension"},
        BadText{"ENTRY e { a = f32[] parameter(1) }", "parameter(0) is missing"},
        BadText{"ENTRY e { a = f32[] parameter(0)\n b = f32[] parameter(0) }", "parameter(0) is already %a"},
        BadText{"ENTRY e { a = f32[] parameter(-1) }", "-1 is not the number of a parameter"},
        BadText{"ENTRY e { a = f32[] parameter(1000000000) }", "is not the number of a parameter"},
        BadText{"ENTRY e { a = f32[2] parameter(0)\n b = f32[2] add(a) }", "add takes 2 operands, but has 1"},
        BadText{"ENTRY e { ROOT x = ((), f32[2]) async-done-start() }", "'async-done-start' is none"},
        BadText{"ENTRY e { ROOT x = ((), f32[2]) async-update-start() }", "'async-update-start' is none"},
        BadText{"ENTRY e { ROOT x = ((), f32[2]) copy-done-start() }", "copy-done takes 1 operand, but has 0"},
        BadText{
            "ENTRY e { p = f32[1] parameter(0)\n z = f32[] constant(0)\n r = pad(p, z), padding=0_4611686018427387903 }",
            "f32[4611686018427387904] is larger than any memory"},
        BadText{"ENTRY e { a = f64[2147483648,1] parameter(0)\n b = f64[1,2147483648] parameter(1)\n"
                " r = dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
                "f64[2147483648,2147483648] is larger than any memory"},
        BadText{"ENTRY e { a = f32[2] parameter(0)\n b = f32[2] slice(a) }", "slice needs the attribute slice="},
        BadText{"ENTRY e { a = f32[2] parameter(0)\n b = f32[2] call(a) }", "call needs the attribute to_apply="},
        BadText{"ENTRY e { a = f32[2] parameter(0)\n b = pred[2] compare(a, a), direction=XX }",
                "expected one of EQ, NE"},
        BadText{"ENTRY e { a = f32[2] parameter(0)\n b = f32[2] iota(), iota_dimension=0, iota_dimension=0 }",
                "given twice"},
        BadText{"ENTRY e { a = f33[2] parameter(0) }", "expected an opcode, but 'f33' is none"},
        BadText{"ENTRY e { a = (f33[2]) parameter(0) }", "expected an element type such as f32, but found 'f33'"},
        BadText{"ENTRY e { a = f32[?] parameter(0) }", "this dimension has no bound"},
        BadText{"ENTRY e { a = f32[-2] parameter(0) }", "negative"},
        BadText{"ENTRY e { a = f32[9999999999,9999999999] parameter(0) }", "multiply to more than"},
        BadText{"ENTRY e { a = f32[2,2]{0,0} parameter(0) }", "no permutation of the 2 dimensions"},
        BadText{"ENTRY e { a = f32[2,2]{0} parameter(0) }", "this layout names 1 dimensions, but its shape has 2"},
        BadText{"ENTRY e { a = s32[2] constant({1}) }", "expected 2 elements in dimension 0 of s32[2], but found 1"},
        BadText{"ENTRY e { a = s32[2] constant({1, 2, 3}) }", "expected '}' after the 2 elements"},
        BadText{"ENTRY e { a = s32[2] constant(1) }", "expected '{' of dimension 0"},
        BadText{"ENTRY e { a = s32[1000000000] constant({1}) }", "too short for the 1000000000 elements"},
        BadText{"ENTRY e { a = u32[] constant(-1) }", "-1 is out of the range of u32"},
        BadText{"ENTRY e { a = s8[] constant(128) }", "128 is out of the range of s8"},
        BadText{"ENTRY e { a = s4[] constant(8) }", "8 is out of the range of s4"},
        BadText{"ENTRY e { a = f32[] constant(1e39) }", "1e39 is out of the range of f32"},
        BadText{"ENTRY e { a = f16[] constant(65520) }", "65520 is out of the range of f16"},
        BadText{"ENTRY e { a = f32[] constant(0x10) }", "expected a number"},
        BadText{"ENTRY e { a = f32[] constant(true) }", "expected a number"},
        BadText{"ENTRY e { a = s32[] constant(1.5) }", "expected an integer"},
        BadText{"ENTRY e { a = f32[] constant(nan(0x800000)) }", "has no payload"},
        BadText{"ENTRY e { a = f32[4] constant({...}) }", "--xla_dump_large_constants"},
        BadText{"ENTRY e { a = f32[4] constant({...}) }", "print_large_constants=True"},
        BadText{"ENTRY e (p: f32[2]) -> f32[3] { p = f32[2] parameter(0) }", "the result is declared as f32[3]"},
        BadText{"ENTRY e { p = f32[2] parameter(0), sharding={devices=[2]<=[4]} }", "has 2 tiles, but names 4 devices"},
        BadText{"ENTRY e { p = f32[2] parameter(0), sharding={nonsense} }", "expected a sharding"},
        BadText{"ENTRY e { p = f32[2] parameter(0), metadata={op_name=\"x }", "this string is never closed"},
        BadText{"ENTRY e { p = f32[2] parameter(0), metadata={op_name=\"x\"", "this '{' is never closed"},
        BadText{"ENTRY e { p = f32[2] parameter(0) /* }", "this comment is never closed"},
        BadText{"ENTRY e { p = f32[2] reshape(p) }", "is not defined before this line"},
        BadText{"ENTRY e { p = f32[2] parameter(0)\n q = reshape(p) }",
                "its shape cannot be inferred and must be given"},
        BadText{"HloModule m, replica_count=0\nENTRY e { p = f32[2] parameter(0) }", "0 is not a number of devices"},
        BadText{"HloModule m, is_scheduled=maybe\nENTRY e { p = f32[2] parameter(0) }", "expected true or false"}));

TEST(TextErrorTest, PointsAtTheUnknownOpcode) {
  const Error error = ErrorOf("HloModule m\nENTRY e {\n  ROOT p = f32[2] paramter(0)\n}\n");
  EXPECT_EQ(std::string(error.what()),
            "bad.hlo:3:19: error: expected an opcode, but 'paramter' is none\n"
            "    ROOT p = f32[2] paramter(0)\n"
            "                    ^");
}

TEST(TextErrorTest, LongLinesAreShownInPart) {
  const std::string text = "HloModule m, x={" + std::string(100000, 'a') + "}, =\nENTRY e { p = f32[2] parameter(0) }";
  const Error error = ErrorOf(text);
  EXPECT_EQ(error.location().column, 100020);
  EXPECT_LT(error.location().excerpt.size(), 500u);
}

// --- malformed input: an error or a module, never a crash ---

constexpr char kSample[] =
    R"(HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }, entry_computation_layout={(f32[4]{0})->(f32[4]{0})}, frontend_attributes={a="b"}

FileNames
1 "a.py"

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY %e (p: f32[4]) -> (f32[4]) {
  %p = f32[4]{0:T(8)S(1)} parameter(0), sharding={devices=[2]<=[2]}, metadata={op_name="x" source_line=3}
  %c = f32[2,2]{1,0} constant({ { 1, nan(0x1) }, { -inf, 0.5 } })
  %w = f32[2] reduce-window(%p, f32[] constant(0)), window={size=2 stride=2 pad=0_0}, to_apply=add
  %g = f32[8] all-gather(%p), replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'a'}, dimensions={0}
  %s = f32[2] slice(%p), slice={[0:4:2]}, backend_config={"k": [1, 2]}
  ROOT %t = (f32[4]{0}) tuple(%p)
}
)";

TEST(TextFuzzTest, TruncatedAtEveryPlace) {
  const std::string text(kSample);
  for (size_t length = 0; length < text.size() - 2; ++length) {
    try {
      ParseModule(text.substr(0, length));
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << length << ": " << error.what();
    }
  }
}

TEST(TextFuzzTest, MutatedCharacters) {
  const std::string original(kSample);
  constexpr std::string_view kCharacters = "{}()[]<>=,:\"'%/*-+.0123456789aefnT?\n \\\x01\xff";
  uint64_t state = 88172645463325252ull;
  const auto random = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  for (int round = 0; round < 20000; ++round) {
    std::string text = original;
    for (uint64_t edits = random() % 4 + 1; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = kCharacters[random() % kCharacters.size()]; break;
        case 1: text.erase(at, random() % 8); break;
        default: text.insert(at, 1, kCharacters[random() % kCharacters.size()]);
      }
    }
    try {
      const std::string printed = PrintModule(*ParseModule(text));
      EXPECT_EQ(printed, PrintModule(*ParseModule(printed)));
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what() << "\n" << text;
    }
  }
}

TEST(TextFuzzTest, GarbageAndDeepNesting) {
  constexpr int kDeep = 10000;
  const std::string open(kDeep, '('), close(kDeep, ')');
  EXPECT_THAT(ErrorOf("ENTRY e { p = " + open + "f32[]" + close + " parameter(0) }").what(),
              HasSubstr("nested more than"));
  std::string instructions;
  for (int i = 0; i < kDeep; ++i) instructions += "negate(";
  EXPECT_THAT(ErrorOf("ENTRY e { p = f32[] parameter(0)\n q = " + instructions + "p" + close + " }").what(),
              HasSubstr("nested more than"));
  const std::string braces(kDeep, '{'), ends(kDeep, '}');
  EXPECT_THAT(ErrorOf("ENTRY e { p = f32[] parameter(0), sharding=" + braces + ends + " }").what(),
              HasSubstr("nested more than"));
  for (const std::string& text : {std::string("\0\1\2", 3), std::string("}}}}"), std::string(1000, '\xff'), braces}) {
    EXPECT_THROW(ParseModule(text), Error);
  }
}

}  // namespace
}  // namespace hlorun::hlo
