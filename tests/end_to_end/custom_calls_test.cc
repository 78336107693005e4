// Custom-calls from the command line: registrations that are wrong, calls that do not fit, calls that fail, and saved
// plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/end_to_end/hlorun_command.h"

namespace hlorun {
namespace {

using ::testing::HasSubstr;
using testing_support::CommandResult;
using testing_support::RunCommand;
using testing_support::TemporaryFolder;

constexpr const char* kKernel = R"(__kernel void twice(__global const float* x, __global float* y) {
  y[get_global_id(0)] = 2 * x[get_global_id(0)];
}
)";

constexpr const char* kEntry = R"({"target": "mylib::twice", "operands": ["f32[n]"], "results": ["f32[n]"],
  "source": "twice.cl", "kernel": "twice", "arguments": ["operand 0", "result 0"], "global": ["n"]})";

class CustomCallsTest : public ::testing::Test {
 protected:
  // A registration of one entry, in a file beside twice.cl.
  std::string Registration(const std::string& entry) {
    return "--custom_calls=" + folder_.Write("calls.json", "{\"custom_calls\": [" + entry + "]}") + " ";
  }
  std::string Module(const std::string& call) {
    return folder_.Write(
        "m.hlo",
        "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] custom-call(x), " + call + "\n}\n");
  }
  CommandResult Hlorun(const std::string& arguments) {
    return testing_support::Hlorun("--no_cache --seed=1 " + arguments);
  }
  void ExpectTrouble(const std::string& arguments, const std::vector<std::string>& texts) {
    SCOPED_TRACE(arguments);
    testing_support::ExpectTrouble(Hlorun(arguments), texts);
  }
  // kEntry with one of its parts replaced.
  void ExpectBadEntry(const std::string& part, const std::string& with, const std::vector<std::string>& texts) {
    std::string entry = kEntry;
    const size_t at = entry.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    ExpectTrouble(Registration(entry.replace(at, part.size(), with)) + twice_, texts);
  }

  const TemporaryFolder folder_;
  const std::string kernel_ = folder_.Write("twice.cl", kKernel);
  const std::string twice_ = Module("custom_call_target=\"mylib::twice\"");
};

TEST_F(CustomCallsTest, UnknownTargetsAndPythonCallbacks) {
  ExpectTrouble(Registration(kEntry) + Module("custom_call_target=\"mylib::twise\""),
                {"%y = f32[4] custom-call(%x)", "custom-call target \"mylib::twise\" is not known",
                 "the nearest known ones are \"mylib::twice\"", "--custom_calls"});
  ExpectTrouble(Module("custom_call_target=\"lapack_sgetfr_ffi\""), {"\"lapack_sgetrf_ffi\""});
  ExpectTrouble(Module("custom_call_target=\"mhlo.erg\""), {"\"mhlo.erf\""});
  ExpectTrouble(Module("custom_call_target=\"xla_ffi_python_cpu_callback\", api_version=API_VERSION_TYPED_FFI, "
                       "backend_config={index = 0 : ui64}"),
                {"%y", "\"xla_ffi_python_cpu_callback\" calls back into the Python process", "pure_callback"});
}

TEST_F(CustomCallsTest, CallsThatDoNotFitTheirRegistration) {
  ExpectTrouble(
      Registration(kEntry) + folder_.Write("s32.hlo",
                                           "HloModule m\nENTRY e { x = s32[4] parameter(0)\n"
                                           " ROOT y = f32[4] custom-call(x), custom_call_target=\"mylib::twice\" }"),
      {"%y", "operand 0 is s32[4], which is not f32[n]: its type must be f32"});
  ExpectTrouble(
      Registration(kEntry) + folder_.Write("two.hlo",
                                           "HloModule m\nENTRY e { x = f32[4] parameter(0)\n"
                                           " ROOT y = f32[4] custom-call(x, x), custom_call_target=\"mylib::twice\" }"),
      {"%y", "it has 2 operand arrays, its registration (f32[n]) -> (f32[n]) has 1"});
  ExpectTrouble(
      Registration(kEntry) + folder_.Write("size.hlo",
                                           "HloModule m\nENTRY e { x = f32[4] parameter(0)\n"
                                           " ROOT y = f32[5] custom-call(x), custom_call_target=\"mylib::twice\" }"),
      {"%y", "result 0 is f32[5], which is not f32[n]: dimension 0 must be n = 4"});
  ExpectTrouble(
      Registration(kEntry) + Module("custom_call_target=\"mylib::twice\", output_to_operand_aliasing={{}: (1, {})}"),
      {"m.hlo:4:", "output_to_operand_aliasing names operand 1 of 1"});
}

TEST_F(CustomCallsTest, RegistrationsThatAreWrong) {
  ExpectTrouble("--custom_calls=" + (folder_ / "none.json") + " " + twice_, {"none.json", "No such file"});
  ExpectTrouble("--custom_calls=" + folder_.Write("bad.json", "{") + " " + twice_, {"bad.json"});
  ExpectTrouble("--custom_calls=" + folder_.Write("empty.json", "{}") + " " + twice_, {"empty.json", "custom_calls"});
  ExpectTrouble(Registration(std::string(kEntry) + ", " + kEntry) + twice_, {"mylib::twice is registered twice"});
  ExpectBadEntry("\"mylib::twice\"", "\"TopK\"", {"calls.json: TopK", "hlorun's own"});
  ExpectBadEntry("\"kernel\"", "\"kernal\"", {"mylib::twice", "\"kernal\" is no key", "kernel"});
  ExpectBadEntry("\"f32[n]\"", "\"f31[n]\"", {"mylib::twice", "f31 is no element type"});
  ExpectBadEntry("\"operand 0\"", "\"operand 1\"", {"\"operand 1\" is no argument"});
  ExpectBadEntry("\"global\": [\"n\"]", "\"global\": []", {"a grid has 1 to 3 dimensions"});
  ExpectBadEntry("\"global\": [\"n\"]", "\"global\": [\"n/0\"]", {"mylib::twice", "divides by 0"});
  ExpectBadEntry("\"global\": [\"n\"]", "\"global\": [\"m\"]", {"mylib::twice", "nothing gives m a value"});
  ExpectBadEntry("twice.cl", "thrice.cl", {"mylib::twice", "thrice.cl", "No such file"});
  ExpectTrouble(Registration(R"({"target": "f", "operands": [], "results": []})") + twice_, {"f", "neither"});
  ExpectTrouble(
      Registration(R"({"target": "f", "operands": [], "results": [], "library": "./none.so", "function": "f"})") +
          twice_,
      {"f", "none.so", "does not load"});
}

TEST_F(CustomCallsTest, KernelsThatDoNotBuildKeepSourceAndLog) {
  folder_.Write("twice.cl", "__kernel void twice(__global const float* x, __global float* y) { y[0] = undeclared; }\n");
  ExpectTrouble(Registration(kEntry) + twice_, {"the OpenCL compiler refuses", "source: ", "log: "});
  folder_.Write("twice.cl", "__kernel void thrice(__global const float* x, __global float* y) { y[0] = x[0]; }\n");
  ExpectTrouble(Registration(kEntry) + twice_, {"mylib::twice", "twice.cl has no kernel twice"});
}

TEST_F(CustomCallsTest, AKernelAloneHasNoReference) {
  const CommandResult result = Hlorun("--reference " + Registration(kEntry) + twice_);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("\"mylib::twice\" is an OpenCL kernel, which the evaluator cannot run"));
  EXPECT_THAT(result.err, HasSubstr("register a library"));
}

TEST_F(CustomCallsTest, AFailingCallSaysWhy) {
  const std::string module = folder_.Write("refuse.hlo", R"(HloModule refuse
ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] abs(x)
  n = f32[4] negate(a)
  one = f32[] constant(1)
  ones = f32[4] broadcast(one), dimensions={}
  s = f32[4] subtract(n, ones)
  ROOT y = f32[4] custom-call(s), custom_call_target="mylib::refuse_negative"
}
)");
  const std::string out = folder_ / "out";
  for (const char* flags : {"", "--reference "}) {
    ExpectTrouble(std::string(flags) + "--custom_calls=" HLORUN_EXAMPLE_CALLS " --outputs=" + out + " " + module,
                  {"\"mylib::refuse_negative\" failed with 1: element 0 is -"});
  }
  EXPECT_EQ(RunCommand("find " + out + " -type f 2>/dev/null").out, "");
}

// Kernels with an effect stay, although nothing reads them; pure ones that nothing reads go, equal ones are one.
TEST_F(CustomCallsTest, EffectsAreLaunchedAndPureKernelsMerged) {
  const auto launches_with = [&](const std::string& attributes) {
    const std::string call = " = f32[4] custom-call(x), custom_call_target=\"mylib::twice\"" + attributes + "\n";
    const std::string module =
        folder_.Write("k.hlo", "HloModule k\nENTRY e {\n  x = f32[4] parameter(0)\n  a" + call + "  b" + call + "  c" +
                                   call + "  ROOT r = (f32[4], f32[4]) tuple(a, b)\n}\n");
    const CommandResult result = Hlorun("--profile " + Registration(kEntry) + module);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    int launches = 0;
    for (size_t at = result.err.find("[kernel]"); at != std::string::npos; at = result.err.find("[kernel]", at + 1))
      ++launches;
    return launches;
  };
  EXPECT_EQ(launches_with(""), 1);
  EXPECT_EQ(launches_with(", custom_call_has_side_effect=true"), 3);
}

TEST_F(CustomCallsTest, SavedPlansKeepKernelsAndAskForFunctions) {
  const std::string plan = folder_ / "m.plan";
  ASSERT_EQ(
      Hlorun("--save_plan=" + plan + " --outputs=" + (folder_ / "a") + " " + Registration(kEntry) + twice_).exit_code,
      0);
  ASSERT_EQ(Hlorun("--outputs=" + (folder_ / "b") + " " + plan).exit_code, 0);
  EXPECT_EQ(RunCommand("cmp " + (folder_ / "a/0.npy") + " " + (folder_ / "b/0.npy")).exit_code, 0);

  const std::string square = folder_.Write("square.hlo",
                                           "HloModule m\nENTRY e { x = f32[3,3] parameter(0)\n"
                                           " ROOT y = f32[3,3] custom-call(x), custom_call_target=\"mylib::square\" }");
  const std::string calls = "--custom_calls=" HLORUN_EXAMPLE_CALLS " ";
  ASSERT_EQ(Hlorun("--save_plan=" + plan + " " + calls + square).exit_code, 0);
  EXPECT_EQ(Hlorun(calls + plan).exit_code, 0);
  ExpectTrouble(plan, {"custom-call target \"mylib::square\" is not known", "--custom_calls"});
}

}  // namespace
}  // namespace hlorun
