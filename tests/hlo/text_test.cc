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

TEST(TextTest, DotKeepsItsAttributes) {
  EXPECT_EQ(RoundTripInstruction("ENTRY e {\n a = f32[4,4] parameter(0)",
                                 "f32[4,4,4] dot(f32[4,4] %a, a), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                                 "operand_precision={highest,default}, algorithm=dot_bf16_bf16_f32"),
            "f32[4,4,4] dot(%a, %a), lhs_batch_dims={0}, lhs_contracting_dims={}, rhs_batch_dims={0}, "
            "rhs_contracting_dims={}, operand_precision={highest,default}, algorithm=dot_bf16_bf16_f32");
}

TEST(TextErrorTest, PointsAtTheUnknownOpcode) {
  const Error error = ErrorOf("HloModule m\nENTRY e {\n  ROOT p = f32[2] paramter(0)\n}\n");
  EXPECT_EQ(std::string(error.what()),
            "bad.hlo:3:19: error: expected an opcode, but 'paramter' is none\n"
            "    ROOT p = f32[2] paramter(0)\n"
            "                    ^");
}

}  // namespace
}  // namespace hlorun::hlo
