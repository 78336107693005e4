// hlo-opt's own flags: which passes run, what is read and written, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/end_to_end/command.h"

namespace hlorun {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::CommandResult;
using testing_support::ReadAll;
using testing_support::RunCommand;
using testing_support::TemporaryFolder;

// x + 0 with a dead instruction: what `rewrite` and `dce` change is apart.
constexpr const char* kModule = R"(HloModule plus_zero, entry_computation_layout={(f32[4]{0})->f32[4]{0}}
ENTRY main {
  x = f32[4]{0} parameter(0)
  zero = f32[] constant(0)
  zeros = f32[4]{0} broadcast(zero), dimensions={}
  dead = f32[4]{0} tanh(x)
  ROOT y = f32[4]{0} multiply(x, x)
}
)";

class HloOptTest : public ::testing::Test {
 protected:
  static CommandResult HloOpt(const std::string& arguments) { return RunCommand(HLO_OPT_BINARY " " + arguments); }
  static std::string Printed(const std::string& arguments) {
    const CommandResult result = HloOpt(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.err;
    return result.out;
  }
  static void ExpectTrouble(const std::string& arguments, const std::string& text) {
    SCOPED_TRACE(arguments);
    testing_support::ExpectTrouble(HloOpt(arguments), {text});
  }
  const TemporaryFolder folder_;
  const std::string module_ = folder_.Write("plus_zero.hlo", kModule);
};

TEST_F(HloOptTest, AnEmptyListOfPassesPrintsTheModuleAsItIs) {
  const std::string printed = Printed("--passes= " + module_);
  EXPECT_THAT(printed, HasSubstr("tanh("));
  EXPECT_EQ(Printed("--passes=none " + module_), printed);
  // A fixed point of printing.
  EXPECT_EQ(Printed("--passes= " + folder_.Write("again.hlo", printed)), printed);
}

TEST_F(HloOptTest, OnlyTheNamedPassesRun) {
  EXPECT_THAT(Printed("--passes=dce " + module_), Not(HasSubstr("tanh(")));
  EXPECT_THAT(Printed("--passes=cse " + module_), HasSubstr("tanh("));
  ExpectTrouble("--passes=dce,frobnicate " + module_, "there is no pass 'frobnicate'");
}

TEST_F(HloOptTest, WithoutPassesTheWholePipelineRuns) {
  const std::string printed = Printed(module_);
  EXPECT_THAT(printed, Not(HasSubstr("tanh(")));
  EXPECT_THAT(printed, HasSubstr("is_scheduled=true"));
}

TEST_F(HloOptTest, EveryListedPassCanBeNamed) {
  const std::string list = Printed("--list-passes");
  std::string names;
  std::istringstream lines(list);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const std::string name = line.substr(0, line.find(' '));
    EXPECT_GT(line.size(), name.size() + 10) << "no summary: " << line;
    names += (names.empty() ? "" : ",") + name;
  }
  EXPECT_GT(count, 20);
  EXPECT_THAT(Printed("--passes=" + names + " " + module_), HasSubstr("multiply("));
}

TEST_F(HloOptTest, DumpsBeforeAfterAndAfterMatchingPasses) {
  Printed("--dump_to=" + (folder_ / "dump") + " --dump_pass_re='^rules$' " + module_);
  EXPECT_THAT(ReadAll(folder_ / "dump/module_0000.plus_zero.before_optimizations.txt"), HasSubstr("tanh("));
  EXPECT_THAT(ReadAll(folder_ / "dump/module_0000.plus_zero.after_optimizations.txt"), Not(HasSubstr("tanh(")));
  int between = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "dump")) {
    const std::string name = entry.path().filename();
    if (name.find("_optimizations") != std::string::npos) continue;
    EXPECT_THAT(name, HasSubstr("rules"));
    ++between;
  }
  EXPECT_GT(between, 0);
}

TEST_F(HloOptTest, EmitsProtoThatReadsBackAsTheSameText) {
  const std::string proto = folder_ / "module.pb";
  EXPECT_EQ(Printed("--passes= --emit-proto -o " + proto + " " + module_), "");
  EXPECT_THAT(ReadAll(proto), HasSubstr("plus_zero"));
  EXPECT_EQ(Printed("--passes= " + proto), Printed("--passes= " + module_));
}

TEST_F(HloOptTest, SplitsItsInput) {
  const std::string two = folder_.Write("two.hlo", std::string(kModule) + "// -----\n" + kModule);
  const std::string printed = Printed("--passes=dce --split-input-file " + two);
  EXPECT_THAT(printed, HasSubstr("// -----\n"));
  EXPECT_EQ(printed.find("HloModule"), 0u);
  EXPECT_NE(printed.find("HloModule", 1), std::string::npos);
  EXPECT_THAT(printed, Not(HasSubstr("tanh(")));
}

TEST_F(HloOptTest, ReadsStandardInputAndWritesFiles) {
  const CommandResult result =
      RunCommand("cat " + module_ + " | " HLO_OPT_BINARY " --passes=dce -o " + (folder_ / "out.hlo") + " -");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ReadAll(folder_ / "out.hlo"), Printed("--passes=dce " + module_));
  ExpectTrouble("--passes= -o /proc/none/out.hlo " + module_, "/proc/none/out.hlo");
}

TEST_F(HloOptTest, FillsElidedConstantsOnlyWhenAsked) {
  const std::string elided = folder_.Write(
      "elided.hlo", "HloModule e\nENTRY main {\n  c = f32[8]{0} constant({...})\n  ROOT y = f32[8]{0} negate(c)\n}\n");
  ExpectTrouble("--passes= " + elided, "elided.hlo:3:");
  EXPECT_THAT(Printed("--passes= --fill_elided " + elided), Not(HasSubstr("{...}")));
}

TEST_F(HloOptTest, ReadsADeviceSpec) {
  const std::string spec = folder_.Write("spec.json", R"({"device_class": "gpu", "has_f64": false})");
  EXPECT_THAT(Printed("--device_spec=" + spec + " " + module_), HasSubstr("multiply("));
  ExpectTrouble("--device_spec=" + folder_.Write("bad.json", "{\"colour\": 3}") + " " + module_,
                "unknown field \"colour\"");
  ExpectTrouble("--device_spec=" + (folder_ / "none.json") + " " + module_, "none.json");
}

TEST_F(HloOptTest, StatsNamePassesTimesAndRules) {
  const CommandResult result = HloOpt("--stats " + module_);
  EXPECT_EQ(result.exit_code, 0);
  for (const char* text : {"pass", "runs", "changed", "ms", "share", "dce", "all passes", "rule", "fired"})
    EXPECT_THAT(result.err, HasSubstr(text));
  EXPECT_EQ(result.out, Printed(module_));
}

TEST_F(HloOptTest, BadCommandLines) {
  ExpectTrouble("", "no FILE given");
  ExpectTrouble("--frobnicate " + module_, "frobnicate");
  ExpectTrouble(folder_ / "none.hlo", "none.hlo");
  ExpectTrouble(folder_.Write("garbage.hlo", "garbage"), "garbage.hlo");
}

}  // namespace
}  // namespace hlorun
