// What a file is, is found by its content; what hlorun cannot read says how to export it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hlo/reader.h"

namespace hlorun::hlo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kModule[] = "HloModule m\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n";

std::string MessageOf(const std::string& bytes, const ReadOptions& options = {}) {
  try {
    ReadModulesFromBytes(bytes, "model.bin", options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SniffTest, KindsAreFoundByContent) {
  EXPECT_EQ(SniffFileKind(kModule), FileKind::kHloText);
  EXPECT_EQ(SniffFileKind("// a comment\n/* another */ HloModule m"), FileKind::kHloText);
  EXPECT_EQ(SniffFileKind("ENTRY e { ROOT p = f32[] parameter(0) }"), FileKind::kHloText);
  EXPECT_EQ(SniffFileKind("%add = f32[2] add(f32[2] %x, f32[2] %y)"), FileKind::kHloText);
  EXPECT_EQ(SniffFileKind("module @jit_f attributes {} {\n}"), FileKind::kStableHloText);
  EXPECT_EQ(SniffFileKind("\"builtin.module\"() ({\n"), FileKind::kStableHloText);
  EXPECT_EQ(SniffFileKind("#loc = loc(unknown)\nmodule @m {\n}"), FileKind::kStableHloText);
  EXPECT_EQ(SniffFileKind("ML\xEFR\rStableHLO_v1.0.0"), FileKind::kStableHloBytecode);
  EXPECT_EQ(SniffFileKind(std::string("PK\x03\x04\0\0", 6)), FileKind::kTorchExport);
  EXPECT_EQ(SniffFileKind(std::string("\x08\x08\x12\x07pytorch\x1a\0", 13)), FileKind::kOnnx);
  EXPECT_EQ(SniffFileKind(std::string(kPlanMagic) + "more"), FileKind::kPlan);
  EXPECT_EQ(SniffFileKind(std::string("\0\1\2\3", 4)), FileKind::kUnknown);
  EXPECT_EQ(SniffFileKind(""), FileKind::kUnknown);
}

TEST(ReaderTest, SeveralModulesInAFile) {
  const auto modules = ReadModulesFromBytes(fmt::format("{0}\n// -----\n{0}", kModule), "two.hlo");
  EXPECT_EQ(modules.size(), 2u);
}

TEST(ReaderTest, MessagesNameTheCommand) {
  EXPECT_THAT(MessageOf("PK\x03\x04 zip"), HasSubstr("export_torch.py model.bin"));
  EXPECT_THAT(MessageOf(std::string("\x08\x08\x12\x07pytorch\x1a\0", 13)), HasSubstr("ONNX"));
  EXPECT_THAT(MessageOf(std::string(kPlanMagic)), HasSubstr("saved plan"));
  EXPECT_THAT(MessageOf(""), HasSubstr("empty"));
  EXPECT_THAT(MessageOf(std::string("\0\1\2", 3)), HasSubstr("00 01 02"));
}

TEST(ReaderTest, MissingFilesAndFolders) {
  try {
    ReadModules("/nonexistent/graph.hlo");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/graph.hlo"));
  }
  EXPECT_THROW(ReadModules("/tmp"), Error);
}

// The conversion runs the script under an interpreter; here both are shell scripts of the test.
class StableHloTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("hlorun_reader_test_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    setenv("HLORUN_PYTHON", "/bin/sh", 1);
  }
  void TearDown() override {
    unsetenv("HLORUN_PYTHON");
    std::filesystem::remove_all(folder_);
  }
  std::string Script(const std::string& text) {
    const std::filesystem::path path = folder_ / "converter";
    std::ofstream(path) << text;
    return path.string();
  }
  std::filesystem::path folder_;
};

TEST_F(StableHloTest, TheConvertersOutputIsParsed) {
  ReadOptions options;
  options.stablehlo_converter = Script(fmt::format("cat > /dev/null; printf '{}'", kModule));
  EXPECT_EQ(ReadModulesFromBytes("module @m {\n}", "m.mlir", options).front()->name(), "m");
}

TEST_F(StableHloTest, AFailureGivesTheCommandAndTheReason) {
  ReadOptions options;
  options.stablehlo_converter = Script("echo 'first' >&2; echo 'No module named jaxlib' >&2; exit 1");
  EXPECT_THAT(MessageOf("module @m {\n}", options),
              AllOf(HasSubstr("No module named jaxlib"), HasSubstr("python3 scripts/stablehlo_to_hlo.py model.bin")));
  setenv("HLORUN_PYTHON", "/nonexistent/python3", 1);
  EXPECT_THAT(MessageOf("module @m {\n}", options), HasSubstr("pip install jax"));
}

}  // namespace
}  // namespace hlorun::hlo
