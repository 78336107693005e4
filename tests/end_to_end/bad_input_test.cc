// Bad input, as a user meets it: for each kind one clear message, exit code 2, at once.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "hlo/proto/hlo.pb.h"
#include "hlo/proto/proto.h"
#include "hlo/text/parser.h"
#include "tests/end_to_end/hlorun_command.h"
#include "tests/end_to_end/npy_text.h"

namespace hlorun {
namespace {

using ::testing::HasSubstr;
using testing_support::CommandResult;
using testing_support::Hlorun;
using testing_support::HlorunRanks;
using testing_support::kAtOnceSeconds;
using testing_support::NpyText;
using testing_support::ReadAll;
using testing_support::RunCommand;
using testing_support::TemporaryFolder;

constexpr const char* kModule = R"(HloModule weighted
ENTRY main {
  x = f32[4]{0} parameter(0), metadata={op_name="model/x"}
  w = s32[4]{0} parameter(1), metadata={op_name="params['w']"}
  f = f32[4]{0} convert(w)
  ROOT y = f32[4]{0} multiply(x, f)
}
)";

class BadInputTest : public ::testing::Test {
 protected:
  // Fails with exit code 2, nothing on stdout, and a message that holds each of `texts`.
  void ExpectTrouble(const std::string& arguments, const std::vector<std::string>& texts,
                     const std::string& environment = "") {
    SCOPED_TRACE(arguments);
    const CommandResult result = Hlorun(arguments, environment);
    testing_support::ExpectTrouble(result, texts);
    EXPECT_LT(result.seconds, kAtOnceSeconds);
    EXPECT_EQ(result.err.rfind("hlorun: ", 0), 0u) << result.err;
  }
  void ExpectBadModule(const std::string& body, const std::vector<std::string>& texts) {
    ExpectTrouble("--compile_only " + folder_.Write("bad.hlo", "HloModule bad\nENTRY main {\n" + body + "}\n"), texts);
  }
  std::string Run(const std::string& inputs) const { return "--inputs=" + inputs + " " + module_; }

  const TemporaryFolder folder_;
  const std::string module_ = folder_.Write("weighted.hlo", kModule);
};

TEST_F(BadInputTest, TextIsNamedWithItsLine) {
  ExpectBadModule("  x = f32[4] parameter(0)\n  ROOT y = f32[4] frobnicate(x)\n", {"bad.hlo:4:", "frobnicate"});
  ExpectBadModule("  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, z)\n", {"bad.hlo:4:", "z"});
  ExpectBadModule("  a = f32[4] add(b, b)\n  ROOT b = f32[4] add(a, a)\n", {"bad.hlo:3:", "b"});  // a cycle
  ExpectBadModule("  ROOT x = f32[4] parameter(1)\n", {"bad.hlo:", "parameter(0) is missing"});
  ExpectBadModule("  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, ", {"bad.hlo:", "error"});
}

TEST_F(BadInputTest, ShapesThatDoNotFitAreNamedWithTheirLine) {
  ExpectBadModule(
      "  x = f32[4] parameter(0)\n\n  ROOT y = f32[5] negate(x)\n",
      {"bad.hlo:5:", "%y = f32[5] negate(%x)", "its shape is f32[5], but its operands and attributes give f32[4]"});
  ExpectBadModule(
      "  a = f32[8,64] parameter(0)\n  b = f32[65,32] parameter(1)\n"
      "  ROOT d = f32[8,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
      {"bad.hlo:5:", "64", "65"});
  ExpectBadModule("  x = f32[4] parameter(0)\n  y = s32[4] parameter(1)\n  ROOT z = f32[4] add(x, y)\n",
                  {"bad.hlo:5:", "%z"});
}

TEST_F(BadInputTest, ModulesWithoutContentsAreErrors) {
  const auto refused = [&](const std::string& text, const std::vector<std::string>& messages) {
    ExpectTrouble("--compile_only " + folder_.Write("bad.hlo", text), messages);
  };
  refused("", {"bad.hlo: the file is empty"});
  refused("\n\n", {"bad.hlo:1:1", "expected HloModule"});
  refused("HloModule m\n", {"bad.hlo:1:12", "expected a computation"});
  refused("HloModule a\nHloModule b\nENTRY e { ROOT x = f32[] parameter(0) }\n",
          {"bad.hlo:2:1", "expected a computation"});
  refused("HloModule m\nENTRY e {\n}\n", {"bad.hlo:3:1", "expected an instruction"});
}

TEST_F(BadInputTest, NamesOfDimensionsThatDoNotExist) {
  for (const char* symbols : {"n:0:1", "n:1:0", "n:-1:0", "n:0", "n"}) {
    const std::string text = fmt::format(
        "HloModule m, frontend_attributes={{hlorun.symbols=\"{}\"}}\nENTRY e {{\n  ROOT x = f32[4] parameter(0)\n}}\n",
        symbols);
    ExpectTrouble("--compile_only " + folder_.Write("bad.hlo", text), {"names no dimension of its parameters"});
  }
}

TEST_F(BadInputTest, SizesThatOverflowAndConstantsThatDoNotFit) {
  ExpectBadModule("  ROOT x = f32[4294967296,4294967296] parameter(0)\n",
                  {"bad.hlo:3:", "multiply to more than 2^63 - 1"});
  ExpectBadModule("  ROOT x = f32[4294967296,4294967296,0] parameter(0)\n",
                  {"bad.hlo:3:", "multiply to more than 2^63 - 1"});
  ExpectBadModule("  ROOT x = f64[4294967296,1073741824] parameter(0)\n", {"bad.hlo:3:", "larger than any memory"});
  ExpectBadModule("  ROOT x = f32[99999999999999999999] parameter(0)\n", {"bad.hlo:3:", "expected a dimension's size"});
  ExpectBadModule("  ROOT x = f32[<=2147483648] parameter(0)\n",
                  {"bad.hlo:3:", "a size of type s32 cannot be as large as the bound of dimension 0"});
  ExpectBadModule("  ROOT x = f32[4] parameter(0), sharding={devices=[0]<=[0]}\n",
                  {"bad.hlo:3:", "a dimension of this sharding has no tiles"});
  ExpectBadModule("  ROOT c = f32[3] constant({1, 2})\n", {"bad.hlo:3:", "expected 3 elements", "found 2"});
  ExpectBadModule("  ROOT c = f32[3] constant({1, 2, 3, 4})\n", {"bad.hlo:3:", "after the 3 elements"});
  ExpectBadModule("  ROOT c = f32[2,2] constant({{1, 2}, {3}})\n",
                  {"bad.hlo:3:", "expected 2 elements in dimension 1"});
  ExpectBadModule("  ROOT c = f32[] constant({1, 2})\n", {"bad.hlo:3:", "expected a number"});
  ExpectBadModule("  ROOT c = s8[2] constant({1, 300})\n", {"bad.hlo:3:", "out of the range of s8"});
  ExpectBadModule("  ROOT c = f32[1000000000,1000] constant({1, 2})\n", {"bad.hlo:3:", "too short"});
}

// Calls f(N-1) `times` times in each f(N), up to `depth`.
std::string CallsOfCalls(int depth, int times) {
  std::string text = "HloModule calls\nf0 { x = f32[] parameter(0)\n ROOT y = f32[] negate(x) }\n";
  for (int i = 1; i <= depth; ++i) {
    const std::string callee = "to_apply=f" + std::to_string(i - 1);
    text += "f" + std::to_string(i) + " { x = f32[] parameter(0)\n";
    if (times == 2) text += " a = f32[] call(x), " + callee + "\n";
    text += " ROOT y = f32[] call(" + std::string(times == 2 ? "a" : "x") + "), " + callee + " }\n";
  }
  return text + "ENTRY e { x = f32[] parameter(0)\n ROOT y = f32[] call(x), to_apply=f" + std::to_string(depth) +
         " }\n";
}

TEST_F(BadInputTest, RecursionAndDeepNestingEndAtOnce) {
  const auto refused = [&](const std::string& text, const std::vector<std::string>& messages) {
    ExpectTrouble("--compile_only " + folder_.Write("bad.hlo", text), messages);
  };
  refused(
      "HloModule m\nf { x = f32[] parameter(0)\n ROOT y = f32[] call(x), to_apply=f }\nENTRY e { x = f32[] parameter(0)\n"
      " ROOT y = f32[] call(x), to_apply=f }\n",
      {"bad.hlo:3:", "computation f is not defined above its use"});
  refused(CallsOfCalls(5000, 1), {"calls are nested more than 1000 deep"});
  refused(CallsOfCalls(60, 2), {"inlining computation", "larger than 2000000 instructions"});
  std::string chain = "HloModule m\nENTRY e {\n  t0 = f32[4] parameter(0)\n", doubling = chain;
  for (int i = 1; i <= 10000; ++i) {
    const std::string before = "t" + std::to_string(i - 1), root = i == 10000 ? "  ROOT t" : "  t";
    chain += root + std::to_string(i) + " = tuple(" + before + ")\n";
    doubling += root + std::to_string(i) + " = tuple(" + before + ", " + before + ")\n";
  }
  refused(chain + "}\n", {"bad.hlo:", "tuples are nested more than 200 deep"});
  refused(doubling + "}\n", {"bad.hlo:", "a tuple of more than 100000 elements"});
  const std::string open(10000, '('), close(10000, ')');
  refused("HloModule m\nENTRY e {\n ROOT p = " + open + "f32[]" + close + " parameter(0)\n}\n",
          {"bad.hlo:3:", "nested more than 200 deep"});
}

TEST_F(BadInputTest, ProtosThatAreCutOrDamagedAreErrors) {
  const std::string proto = hlo::ModuleToProto(*hlo::ParseModule(kModule));
  ASSERT_EQ(RunCommand(HLORUN_BINARY " --compile_only " + folder_.Write("whole.pb", proto)).exit_code, 0);
  for (const size_t part : {3, 2})
    ExpectTrouble("--compile_only " + folder_.Write("cut.pb", proto.substr(0, proto.size() / part)), {"cut.pb"});
  ExpectTrouble("--compile_only " + folder_.Write("noise.pb", std::string(500, '\x9c')), {"noise.pb"});
}

TEST_F(BadInputTest, ACycleInAProtoIsAnError) {
  hlo::proto::HloModuleProto proto;
  ASSERT_TRUE(proto.ParseFromString(hlo::ModuleToProto(*hlo::ParseModule(kModule))));
  auto& instructions = *proto.mutable_computations(0)->mutable_instructions();
  ASSERT_EQ(instructions.size(), 4);
  instructions[2].set_operand_ids(0, instructions[2].id());
  ExpectTrouble("--compile_only " + folder_.Write("cycle.pb", proto.SerializeAsString()), {"cycle.pb"});
}

TEST_F(BadInputTest, ArraysAreNamedByIndexNameOpNameShapeAndType) {
  const std::string floats(16, '\0'), w = NpyText("<i4", "(4,)", floats);
  folder_.Write("count/0.npy", NpyText("<f4", "(4,)", floats));
  ExpectTrouble(Run(folder_ / "count"), {"input 1 (%w, params['w']) s32[4] is missing", "count/1.npy"});
  folder_.Write("shape/0.npy", NpyText("<f4", "(2, 2)", floats));
  folder_.Write("shape/1.npy", w);
  ExpectTrouble(Run(folder_ / "shape"),
                {"input 0 (%x, model/x) f32[4]", "the array is float32[2,2], the module wants f32[4]"});
  folder_.Write("type/0.npy", NpyText("<f8", "(4,)", floats + floats));
  folder_.Write("type/1.npy", w);
  ExpectTrouble(Run(folder_ / "type"), {"input 0 (%x, model/x) f32[4]", "float64[4]"});
  folder_.Write("many/0.npy", NpyText("<f4", "(4,)", floats));
  folder_.Write("many/1.npy", w);
  folder_.Write("many/2.npy", w);
  ExpectTrouble(Run(folder_ / "many"), {"holds more arrays", "many/2.npy"});
  folder_.Write("cut/0.npy", NpyText("<f4", "(4,)", floats.substr(0, 7)));
  folder_.Write("cut/1.npy", w);
  ExpectTrouble(Run(folder_ / "cut"), {"cut/0.npy"});
}

TEST_F(BadInputTest, FilesThatVanishedAreNamed) {
  folder_.Write("gone/1.npy", NpyText("<i4", "(4,)", std::string(16, '\0')));
  ASSERT_EQ(symlink((folder_ / "nowhere.npy").c_str(), (folder_ / "gone/0.npy").c_str()), 0);
  ExpectTrouble(Run(folder_ / "gone"), {"input 0 (%x, model/x) f32[4] is missing", "gone/0.npy"});
  ExpectTrouble(folder_ / "vanished.hlo", {"cannot open", "vanished.hlo", "No such file"});
  ExpectTrouble(folder_.path(), {"cannot read", folder_.path(), "Is a directory"});
  ExpectTrouble("--expect=" + (folder_ / "nothing") + " " + module_, {"expected output", "nothing"});
}

TEST_F(BadInputTest, AFullDiskLeavesNoOutputs) {
  const std::string module = folder_.Write("large.hlo", R"(HloModule large
ENTRY main {
  x = f32[65536] parameter(0)
  y = f32[16] slice(x), slice={[0:16]}
  ROOT t = (f32[16], f32[65536]) tuple(y, x)
}
)");
  const std::string disk = folder_.Write("disk/", "") + ".";
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "only root can mount a small disk";
  ExpectTrouble("--outputs=" + disk + "/out " + module, {"cannot write", "/out/1.npy", "No space left on device"});
  EXPECT_EQ(RunCommand("find " + disk + " -type f").out, "");
  ExpectTrouble("--outputs=" + disk + "/out.npz " + module, {"cannot write", "out.npz"});
  EXPECT_EQ(RunCommand("find " + disk + " -type f").out, "");
  umount(disk.c_str());
}

TEST_F(BadInputTest, AResultThatCannotBePrintedIsAnError) {
  const CommandResult result = RunCommand(HLORUN_BINARY " --json " + module_ + " >/dev/full");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("cannot write to the standard output: No space left on device"));
  for (const char* flag : {"--help", "--version", "--list_devices"}) {
    const CommandResult text = RunCommand(std::string(HLORUN_BINARY " ") + flag + " >/dev/full");
    EXPECT_EQ(text.exit_code, 2) << flag;
    EXPECT_THAT(text.err, HasSubstr("cannot write to the standard output")) << flag;
  }
}

TEST_F(BadInputTest, WithoutAPlatformThePackageIsNamed) {
  ExpectTrouble(module_, {"no OpenCL device found", "pocl-opencl-icd"}, "OCL_ICD_VENDORS=/nonexistent");
}

TEST_F(BadInputTest, AnArrayThatTheDeviceCannotHoldIsNamedWithItsBytes) {
  const std::string module = folder_.Write("large.hlo", R"(HloModule large
ENTRY main {
  x = f32[] parameter(0)
  ROOT y = f32[1000000] broadcast(x), dimensions={}
}
)");
  const std::string spec =
      folder_.Write("small.json", R"({"global_memory_bytes": 2000000, "max_allocation_bytes": 2000000})");
  ExpectTrouble("--device_spec=" + spec + " " + module, {"needs 4000000 bytes", "f32[1000000]", "large"});
}

TEST_F(BadInputTest, InputsThatTheMachineCannotHoldAreRefusedBeforeTheyAreMade) {
  // Each is small enough for a device, all together are not for any machine.
  std::string parameters;
  for (int i = 0; i < 4096; ++i) parameters += fmt::format("  x{0} = f32[1073741824] parameter({0})\n", i);
  const std::string module = folder_.Write(
      "many.hlo", "HloModule many\nENTRY main {\n" + parameters + "  ROOT y = f32[1] slice(x7), slice={[0:1]}\n}\n");
  ExpectTrouble(module, {"the inputs take 17592186044416 bytes", "this machine has", "--compile_only"});
}

TEST_F(BadInputTest, PlansOfOthersSayWhose) {
  const std::string plan = folder_ / "weighted.plan";
  ASSERT_EQ(RunCommand(HLORUN_BINARY " --compile_only --save_plan=" + plan + " " + module_).exit_code, 0);
  ExpectTrouble(plan, {"weighted.plan was made for another device or driver", "--recompile"}, "POCL_DEVICES=basic");
  EXPECT_EQ(RunCommand("POCL_DEVICES=basic " HLORUN_BINARY " --recompile " + plan).exit_code, 0);
  std::string other = ReadAll(plan);
  other[8] = static_cast<char>(other[8] + 1);  // the format's version, behind the magic
  ExpectTrouble(folder_.Write("other.plan", other), {"other.plan is a plan of format", "this hlorun reads format"});
}

TEST_F(BadInputTest, PlansThatAreCutOrDamagedAreErrors) {
  const std::string plan = folder_ / "weighted.plan";
  ASSERT_EQ(RunCommand(HLORUN_BINARY " --compile_only --save_plan=" + plan + " " + module_).exit_code, 0);
  const std::string whole = ReadAll(plan);
  for (const size_t length : {size_t{9}, size_t{40}, whole.size() / 2, whole.size() - 1}) {
    ExpectTrouble(folder_.Write("cut.plan", whole.substr(0, length)), {"cut.plan"});
  }
  for (const size_t part : {size_t{16}, size_t{5}, size_t{2}}) {
    std::string damaged = whole;
    damaged[damaged.size() / part] = static_cast<char>(damaged[damaged.size() / part] ^ 0x55);
    ExpectTrouble(folder_.Write("damaged.plan", damaged), {"damaged.plan"});
  }
}

TEST_F(BadInputTest, MoreRanksThanPartitionsSaysHowMany) {
  const std::string module = folder_.Write("two.hlo", R"(HloModule two
ENTRY main {
  x = f32[8] parameter(0), sharding={devices=[2]<=[2]}
  ROOT y = f32[8] negate(x)
}
)");
  const CommandResult result = HlorunRanks(3, module);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_LT(result.seconds, kAtOnceSeconds);
  EXPECT_THAT(result.err,
              HasSubstr("two is for 2 partitions, which 3 ranks cannot share evenly: run it with mpirun -n 2"));
}

}  // namespace
}  // namespace hlorun
