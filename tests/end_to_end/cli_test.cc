// The command line as a user meets it: results, flags, exit codes, and one clear message for each kind of bad input.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/end_to_end/hlorun_command.h"
#include "tests/end_to_end/npy_text.h"

namespace hlorun {
namespace {

using ::testing::HasSubstr;
using testing_support::CommandResult;
using testing_support::Hlorun;
using testing_support::HlorunRanks;
using testing_support::NpyText;
using testing_support::ReadAll;
using testing_support::RunCommand;
using testing_support::TemporaryFolder;

constexpr const char* kModule = R"(HloModule double
ENTRY main {
  x = f32[4]{0} parameter(0), metadata={op_name="x"}
  ROOT y = f32[4]{0} add(x, x)
}
)";

class CliTest : public ::testing::Test {
 protected:
  // Fails with exit code 2 and one message that holds `text`.
  void ExpectTrouble(const std::string& arguments, const std::string& text, const std::string& environment = "") {
    SCOPED_TRACE(arguments);
    testing_support::ExpectTrouble(Hlorun(arguments, environment), {text, "hlorun: "});
  }
  const TemporaryFolder folder_;
  const std::string module_ = folder_.Write("double.hlo", kModule);
};

TEST_F(CliTest, RunsOnGivenArraysAndWritesResults) {
  folder_.Write("in/0.npy", NpyText({1, 2, 3, -4}));
  const CommandResult result =
      Hlorun("--inputs=" + (folder_ / "in") + " --outputs=" + (folder_ / "made/out") + " " + module_);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string written = ReadAll(folder_ / "made/out/0.npy");
  ASSERT_GE(written.size(), 16u);
  EXPECT_EQ(written.substr(written.size() - 16), NpyText({2, 4, 6, -8}).substr(NpyText({2, 4, 6, -8}).size() - 16));
  EXPECT_THAT(result.out, HasSubstr("result 0: f32[4]"));
}

TEST_F(CliTest, ReadsTheModuleFromStdin) {
  const CommandResult result = RunCommand("cat " + module_ + " | " HLORUN_BINARY " --json -");
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

// Scores of 4 MiB, whole twice: with less memory they are made a tile at a time.
TEST_F(CliTest, AttentionFitsIntoLessMemoryThanItsScores) {
  const std::string module = folder_.Write("attention.hlo", R"(HloModule attention
largest { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT r = f32[] maximum(a, b) }
sum { c = f32[] parameter(0)
      d = f32[] parameter(1)
      ROOT s = f32[] add(c, d) }
ENTRY main {
  q = f32[1,500,4,16] parameter(0)
  k = f32[1,524,4,16] parameter(1)
  v = f32[1,524,4,16] parameter(2)
  scores = f32[1,4,500,524] dot(q, k), lhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_batch_dims={0,2}, rhs_contracting_dims={3}
  low = f32[] constant(-inf)
  most = f32[1,4,500] reduce(scores, low), dimensions={3}, to_apply=largest
  mosts = f32[1,4,500,524] broadcast(most), dimensions={0,1,2}
  less = f32[1,4,500,524] subtract(scores, mosts)
  e = f32[1,4,500,524] exponential(less)
  zero = f32[] constant(0)
  total = f32[1,4,500] reduce(e, zero), dimensions={3}, to_apply=sum
  totals = f32[1,4,500,524] broadcast(total), dimensions={0,1,2}
  p = f32[1,4,500,524] divide(e, totals)
  o = f32[1,4,16,500] dot(v, p), lhs_batch_dims={0,2}, lhs_contracting_dims={1}, rhs_batch_dims={0,1}, rhs_contracting_dims={3}
  ROOT out = f32[1,500,4,16] transpose(o), dimensions={0,3,1,2}
}
)");
  const CommandResult whole = Hlorun("--json --reference --normal=0-2 " + module);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_GT(nlohmann::json::parse(whole.out)["peak_bytes"], 8 << 20);
  const CommandResult tiled = Hlorun("--json --reference --normal=0-2 --memory_limit=4000K " + module);
  ASSERT_EQ(tiled.exit_code, 0) << tiled.err;
  EXPECT_LT(nlohmann::json::parse(tiled.out)["peak_bytes"], 4 << 20);
}

// Under a limit just below what the program takes, v is computed again for its late readers; the bits stay.
TEST_F(CliTest, ValuesAreComputedAgainWithinTheMemoryLimit) {
  const std::string module = folder_.Write("late.hlo", R"(HloModule late
ENTRY e {
  x = f32[65536] parameter(0)
  v = f32[65536] exponential(x)
  w = f32[262144] concatenate(v, v, v, v), dimensions={0}
  s = f32[512,512] reshape(w)
  d = f32[512,512] dot(s, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[512,512] dot(d, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[262144] reshape(f)
  z = f32[65536] slice(g), slice={[65536:131072]}
  m = f32[65536] multiply(z, v)
  t = f32[65536] reverse(v), dimensions={0}
  ROOT r = f32[65536] subtract(m, t)
}
)");
  const CommandResult whole = Hlorun("--json " + module);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto all = nlohmann::json::parse(whole.out);
  const auto limit = all["peak_bytes"].get<int64_t>() - 1;
  const CommandResult limited = Hlorun(fmt::format("--json --memory_limit={} {}", limit, module));
  ASSERT_EQ(limited.exit_code, 0) << limited.err;
  const auto less = nlohmann::json::parse(limited.out);
  EXPECT_LE(less["peak_bytes"].get<int64_t>(), limit);
  EXPECT_EQ(less["results"], all["results"]);
  testing_support::ExpectTrouble(Hlorun("--memory_limit=3M " + module), {"--memory_limit", "computed again"});
}

TEST_F(CliTest, JsonIsOneLineWithEveryField) {
  const CommandResult result = Hlorun("--json --iterations=3 " + module_);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
  const auto json = nlohmann::json::parse(result.out);
  for (const char* field :
       {"compile_s", "first_ms", "best_ms", "median_ms", "iterations", "arena_bytes", "largest_live_bytes",
        "argument_bytes", "kernels", "schedules_measured", "kernels_compiled", "host_thunks", "device", "results"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  EXPECT_EQ(json["iterations"], 3);
  EXPECT_EQ(json["argument_bytes"], 16);
}

TEST_F(CliTest, NoIterationsIsTheFirstRunAlone) {
  const CommandResult result = Hlorun("--json --iterations=0 " + module_);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["iterations"], 0);
  EXPECT_EQ(json["best_ms"], json["first_ms"]);
  EXPECT_EQ(json["results"].size(), 1);
  EXPECT_THAT(Hlorun("--iterations=0 " + module_).out, testing::HasSubstr("first run"));
}

TEST_F(CliTest, ExpectSaysEqualOrWhereNot) {
  folder_.Write("in/0.npy", NpyText({1, 2, 3, 4}));
  folder_.Write("right/0.npy", NpyText({2, 4, 6, 8}));
  folder_.Write("wrong/0.npy", NpyText({2, 4, 7, 8}));
  const std::string run = "--inputs=" + (folder_ / "in") + " " + module_ + " --expect=" + folder_.path();
  EXPECT_EQ(Hlorun(run + "/right").exit_code, 0);
  const CommandResult wrong = Hlorun(run + "/wrong");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("output 0 differs from the expected value: element [2]: 6, expected 7"));
  EXPECT_EQ(Hlorun(run + "/wrong --abs_error_bound=2").exit_code, 0);
}

TEST_F(CliTest, ReferenceComparesWithTheEvaluator) {
  EXPECT_EQ(Hlorun("--reference " + module_).exit_code, 0);
  EXPECT_EQ(Hlorun("--reference=each " + module_).exit_code, 0);
}

TEST_F(CliTest, DebugNansNamesTheFirstInstruction) {
  const std::string module = folder_.Write("nan.hlo", R"(HloModule nan
ENTRY main {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} log(x)
  ROOT z = f32[4]{0} add(y, x)
}
)");
  folder_.Write("in/0.npy", NpyText({1, 2, -3, 4}));
  const CommandResult result = Hlorun("--debug_nans --inputs=" + (folder_ / "in") + " " + module);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("first NaN in element 2 (row-major) of %y = f32[4] log(%x)"));
  EXPECT_EQ(Hlorun("--debug_nans " + module).exit_code, 0);
}

TEST_F(CliTest, DashAndUnderscoreAreTheSameInAFlagsName) {
  EXPECT_EQ(Hlorun("--compile-only --device-class=cpu " + module_).exit_code, 0);
}

TEST_F(CliTest, HelpFitsAScreen) {
  const CommandResult help = Hlorun("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 60);
}

TEST_F(CliTest, DumpsEveryStage) {
  ASSERT_EQ(Hlorun("--dump_to=" + (folder_ / "dump") + " --dump_pass_re=.* " + module_).exit_code, 0);
  for (const char* stage :
       {"before_optimizations.txt", "after_optimizations.txt", "buffer-assignment.txt", "plan.txt"}) {
    EXPECT_NE(ReadAll(folder_ / "dump/module_0000.double." + stage), "") << stage;
  }
}

// As many rows as there are, not the bound's: rows that go two at a time (codegen/jam.h) would be all of them.
TEST_F(CliTest, RowsEndAtTheirSize) {
  const std::string sized = folder_.Write("sized.hlo", R"(HloModule sized
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[<=4096,128]{1,0} parameter(0)
  zero = f32[] constant(0)
  e = f32[<=4096,128]{1,0} exponential(x)
  s = f32[<=4096]{0} reduce(e, zero), dimensions={1}, to_apply=sum
  b = f32[<=4096,128]{1,0} broadcast(s), dimensions={0}
  ROOT q = f32[<=4096,128]{1,0} divide(e, b)
}
)");
  ASSERT_EQ(Hlorun("--compile_only --device_class=cpu --dump_to=" + (folder_ / "sized") + " " + sized).exit_code, 0);
  const std::string kernel = ReadAll(folder_ / "sized/module_0000.sized.k0.cl");
  EXPECT_NE(kernel.find("loop_total"), std::string::npos) << kernel;
}

TEST_F(CliTest, ASavedPlanRunsWithoutPassesOrCompilation) {
  const std::string plan = folder_ / "double.plan";
  folder_.Write("in/0.npy", NpyText({1, 2, 3, 4}));
  folder_.Write("right/0.npy", NpyText({2, 4, 6, 8}));
  ASSERT_EQ(Hlorun("--save_plan=" + plan + " " + module_).exit_code, 0);
  const CommandResult run =
      Hlorun("--json --inputs=" + (folder_ / "in") + " --expect=" + (folder_ / "right") + " " + plan);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["kernels_compiled"], 0);
  EXPECT_EQ(json["passes_run"], 0);
}

TEST_F(CliTest, ProcessesMayShareThePlatformsCacheAndNotTheirOwn) {
  for (const char* round : {"a", "b", "c"}) {
    const std::string folder = folder_ / round;
    const CommandResult result =
        RunCommand("export POCL_CACHE_DIR=" + folder + "; run() { " HLORUN_BINARY " --cache_dir=" + folder +
                   "/$1.cache \"$2\" \"$3\"; }; ids=; code=0\nfor i in 1 2 3 4; do\n  (run $i --save_plan=" + folder +
                   "/$i.plan " + module_ + " && run $i --reference " + folder +
                   "/$i.plan) &\n  ids=\"$ids $!\"\ndone\nfor id in $ids; do wait $id || code=$?; done; exit $code");
    EXPECT_EQ(result.exit_code, 0) << round << result.err;
  }
}

TEST_F(CliTest, ACorruptPlanIsAnErrorWhereverItIsDamaged) {
  const std::string plan = folder_ / "double.plan";
  ASSERT_EQ(Hlorun("--save_plan=" + plan + " " + module_).exit_code, 0);
  const std::string whole = ReadAll(plan);
  ExpectTrouble(folder_.Write("cut.plan", whole.substr(0, whole.size() / 2)), "cut.plan");
  std::string flipped = whole;
  flipped[whole.size() / 3] = static_cast<char>(flipped[whole.size() / 3] ^ 0x40);
  ExpectTrouble(folder_.Write("flipped.plan", flipped), "flipped.plan");
}

TEST_F(CliTest, BadModules) {
  ExpectTrouble("/no/such/file.hlo", "/no/such/file.hlo");
  ExpectTrouble(folder_.Write("garbage.hlo", "\x01\x02garbage"), "garbage.hlo");
  ExpectTrouble(folder_.Write("empty.hlo", ""), "empty.hlo");
  ExpectTrouble(folder_.Write("cut.hlo", std::string(kModule).substr(0, 60)), "cut.hlo:");
  ExpectTrouble(
      folder_.Write("opcode.hlo",
                    "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] frobnicate(x)\n}\n"),
      "opcode.hlo:4:");
  ExpectTrouble(
      folder_.Write(
          "shape.hlo",
          "HloModule m\nENTRY e {\n  a = f32[8,64] parameter(0)\n  b = f32[65,32] parameter(1)\n  ROOT y = f32[8,32] "
          "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"),
      "contracting");
}

TEST_F(CliTest, BadArrays) {
  const auto run = [&](const std::string& inputs) { return "--inputs=" + inputs + " " + module_; };
  ExpectTrouble(run(folder_ / "none"), "there is no file or directory");
  folder_.Write("empty/readme", "");
  ExpectTrouble(run(folder_ / "empty"), "input 0 (%x, x) f32[4] is missing");
  folder_.Write("shape/0.npy", NpyText({1, 2, 3}));
  ExpectTrouble(run(folder_ / "shape"), "the array is float32[3], the module wants f32[4]");
  folder_.Write("many/0.npy", NpyText({1, 2, 3, 4}));
  folder_.Write("many/1.npy", NpyText({1, 2, 3, 4}));
  ExpectTrouble(run(folder_ / "many"), "holds more arrays");
  folder_.Write("garbage/0.npy", "no array");
  ExpectTrouble(run(folder_ / "garbage"), "not a .npy file");
}

TEST_F(CliTest, BadFlags) {
  ExpectTrouble("--frobnicate " + module_, "frobnicate");
  ExpectTrouble("--iterations=-1 " + module_, "iterations");
  ExpectTrouble("--dot_library=mkl " + module_, "expected auto, own or clblast");
  ExpectTrouble("--device_class=tpu " + module_, "cpu");
  ExpectTrouble("--normal=1,x " + module_, "\"x\" is no number");
  ExpectTrouble("--constant_params=1,3-2 " + module_, "\"3-2\" is no number and no range");
  ExpectTrouble("--normal=9223372036854775807 " + module_, "\"9223372036854775807\" is no number");
  ExpectTrouble("--constant_params=99 " + module_, "parameter 99 is said to be constant");
  ExpectTrouble("--rel_error_bound=-1 " + module_, "rel_error_bound: -1 is no number from 0 on");
  ExpectTrouble("--abs_error_bound=nan " + module_, "abs_error_bound: nan is no number from 0 on");
  ExpectTrouble("--compile_only --outputs=" + (folder_ / "out") + " " + module_, "--compile_only and --outputs");
  ExpectTrouble("--bucket=pow2 --bound=0:0=8 --strict " + module_, "--bucket and --strict");
  const std::string plan = folder_ / "double.plan";
  ASSERT_EQ(Hlorun("--save_plan=" + plan + " " + module_).exit_code, 0);
  ExpectTrouble("--bound=0:0=8 " + plan, "double.plan is a saved plan: give --bound to the run that saves it");
  ExpectTrouble("", "no module is given");
}

TEST_F(CliTest, BadDevices) {
  ExpectTrouble("--device=nosuchdevice " + module_, "nosuchdevice");
  ExpectTrouble(module_, "pocl-opencl-icd", "OCL_ICD_VENDORS=/nonexistent");
  for (const char* field : {"\"buffer_alignment\": 0", "\"compute_units\": 0", "\"l2_bytes\": 1e30",
                            "\"vector_bytes\": -4", "\"launch_us\": -1", "\"l1_bytes\": 18446744073709551615"}) {
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    ExpectTrouble("--device_spec=" + folder_.Write("spec.json", fmt::format("{{{}}}", field)) + " " + module_, name);
  }
  ExpectTrouble("--device_spec=" + folder_.Write("spec.json", "{\"colour\": 3}") + " " + module_,
                "unknown field \"colour\"");
}

TEST_F(CliTest, OutputsThatCannotBeWrittenAreAnErrorAndLeaveNothing) {
  ExpectTrouble("--outputs=/proc/hlorun " + module_, "/proc/hlorun");
}

TEST_F(CliTest, AModuleForSeveralDevicesSaysHowToRunIt) {
  const std::string module = folder_.Write("pair.hlo", R"(HloModule pair, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[4] parameter(0)
  ROOT y = f32[4] all-reduce(x), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
}
)");
  ExpectTrouble(module, "mpirun -n 2");
  folder_.Write("in/0.npy", NpyText({1, 2, 3, 4}));
  folder_.Write("right/0.npy", NpyText({2, 4, 6, 8}));
  const std::string arguments = "--inputs=" + (folder_ / "in") + " --expect=" + (folder_ / "right") + " " + module;
  const CommandResult in_process = Hlorun("--devices=2 " + arguments);
  EXPECT_EQ(in_process.exit_code, 0) << in_process.err;
  const CommandResult ranks = HlorunRanks(2, arguments);
  EXPECT_EQ(ranks.exit_code, 0) << ranks.err;
}

}  // namespace
}  // namespace hlorun
