// Arrays on disk: .npy in every form NumPy writes, .npz by name and position, comparison, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <limits>

#include "driver/arrays/array_set.h"
#include "driver/arrays/compare.h"
#include "driver/arrays/npy.h"
#include "driver/arrays/npz.h"
#include "driver/arrays/seeded.h"
#include "driver/arrays/varied_inputs.h"
#include "hlo/atomic_file.h"
#include "hlo/error.h"
#include "hlo/reader.h"
#include "tests/end_to_end/command.h"
#include "tests/end_to_end/npy_text.h"

namespace hlorun {
namespace {

using hlo::ElementType;
using hlo::Literal;
using hlo::Shape;
using ::testing::HasSubstr;
using testing_support::BytesOf;
using testing_support::NpyText;
using testing_support::TemporaryFolder;

std::string MessageOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

TEST(NpyTest, FortranOrderAndBigEndianBecomeRowMajorAndNative) {
  const Shape shape(ElementType::kS32, {2, 3});
  const Literal fortran =
      ToLiteral(ParseNpy(NpyText("<i4", "(2, 3)", BytesOf<int32_t>({0, 3, 1, 4, 2, 5}), true), "f"), shape);
  EXPECT_THAT(fortran.values<int32_t>(), ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
  const std::string big("\0\0\0\x07\0\0\1\0", 8);
  const Literal swapped = ToLiteral(ParseNpy(NpyText(">i4", "(2,)", big), "b"), Shape(ElementType::kS32, {2}));
  EXPECT_THAT(swapped.values<int32_t>(), ::testing::ElementsAre(7, 256));
}

TEST(NpyTest, Int64NarrowsOnlyWithoutLoss) {
  const Shape shape(ElementType::kS32, {2});
  const Literal narrow = ToLiteral(ParseNpy(NpyText("<i8", "(2,)", BytesOf<int64_t>({-1, 5})), "n"), shape);
  EXPECT_THAT(narrow.values<int32_t>(), ::testing::ElementsAre(-1, 5));
  EXPECT_THAT(MessageOf([&] {
                ToLiteral(ParseNpy(NpyText("<i8", "(2,)", BytesOf<int64_t>({1, int64_t{1} << 40})), "n"), shape);
              }),
              HasSubstr("element 1 is 1099511627776, which does not fit s32"));
}

TEST(NpyTest, RawBytesServeTypesThatNumpyLacks) {
  const Literal bf16 =
      ToLiteral(ParseNpy(NpyText("<V2", "(1,)", std::string("\x80\x3f", 2)), "v"), Shape(ElementType::kBF16, {1}));
  EXPECT_EQ(bf16.GetDouble(0), 1.0);
  const Literal f8 =
      ToLiteral(ParseNpy(NpyText("|u1", "(1,)", std::string(1, '\x3c')), "v"), Shape(ElementType::kF8E5M2, {1}));
  EXPECT_EQ(f8.GetDouble(0), 1.0);
}

TEST(NpyTest, MismatchesNameBothTypes) {
  const NpyArray array = ParseNpy(NpyText("<f8", "(2,)", BytesOf<double>({1, 2})), "x");
  EXPECT_EQ(MessageOf([&] { ToLiteral(array, Shape(ElementType::kF32, {2})); }),
            "the array is float64[2], the module wants f32[2]");
  EXPECT_EQ(MessageOf([&] { ToLiteral(array, Shape(ElementType::kF64, {3})); }),
            "the array is float64[2], the module wants f64[3]");
}

TEST(NpyTest, GarbageIsAnErrorWhereverItIsCut) {
  const std::string whole = NpyText("<f4", "(3,)", BytesOf<float>({1, 2, 3}));
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(MessageOf([&] { ParseNpy(whole.substr(0, length), "cut"); }), "no error") << length;
  }
  EXPECT_THAT(MessageOf([&] { ParseNpy(NpyText("<U4", "(3,)", ""), "text"); }), HasSubstr("are not numbers"));
  EXPECT_THAT(MessageOf([&] { ParseNpy(NpyText("<f4", "(-3,)", ""), "negative"); }), HasSubstr("shape"));
}

TEST(ArraySetTest, WritesAndReadsDirectoriesAndArchives) {
  const TemporaryFolder folder;
  const Shape shape(ElementType::kBF16, {2, 2});
  std::vector<Literal> arrays = {SeededLiteral(shape, 0, {}), SeededLiteral(Shape(ElementType::kPred, {3}), 1, {}),
                                 SeededLiteral(Shape::Scalar(ElementType::kF64), 2, {})};
  const std::vector<ArraySlot> slots = SlotsOf({arrays[0].shape(), arrays[1].shape(), arrays[2].shape()});
  SaveArrays(folder / "made/here", arrays);
  EXPECT_EQ(LoadArrays(folder / "made/here", slots, "input"), arrays);
  SaveArrays(folder / "all.npz", arrays);
  EXPECT_EQ(LoadArrays(folder / "all.npz", slots, "input"), arrays);
}

TEST(ArraySetTest, ArchivesMatchByDottedPath) {
  const TemporaryFolder folder;
  const Literal w = SeededLiteral(Shape(ElementType::kF32, {4}), 0, {}),
                b = SeededLiteral(Shape(ElementType::kF32, {4}), 1, {});
  WriteNpz(folder / "p.npz", {{"params.b", b}, {"params.w", w}});
  const auto loaded = LoadArrays(
      folder / "p.npz", {{0, "Arg_0", "params['w']", w.shape()}, {1, "Arg_1", "params['b']", b.shape()}}, "input");
  EXPECT_EQ(loaded, (std::vector<Literal>{w, b}));
}

// A checksum that does not fit, and a directory that says there is more than there is.
TEST(ArraySetTest, CorruptArchives) {
  const TemporaryFolder folder;
  const Literal w = SeededLiteral(Shape(ElementType::kF32, {64}), 0, {});
  WriteNpz(folder / "w.npz", {{"w", w}});
  const std::string whole = hlo::ReadFileOrStdin(folder / "w.npz");
  const auto message_of = [&](std::string contents) {
    std::ofstream(folder / "bad.npz", std::ios::binary) << contents;
    return MessageOf([&] { ReadNpz(folder / "bad.npz"); });
  };
  const size_t data = whole.find(std::string(reinterpret_cast<const char*>(w.data()), 16));
  ASSERT_NE(data, std::string::npos);
  std::string flipped = whole;
  flipped[data + 5] = static_cast<char>(flipped[data + 5] ^ 1);
  EXPECT_THAT(message_of(flipped), HasSubstr("w.npy is corrupt"));
  // The size in the central directory, which counts, is 24 bytes behind its signature.
  const size_t directory = whole.find("PK\001\002");
  ASSERT_NE(directory, std::string::npos);
  std::string large = whole;
  large[directory + 24 + 3] = 0x7f;
  EXPECT_THAT(message_of(large), testing::AnyOf(HasSubstr("w.npy is corrupt"), HasSubstr("w.npy cannot be read")));
}

TEST(ArraySetTest, MissingAndSurplusArraysAreNamed) {
  const TemporaryFolder folder;
  const ArraySlot slot{0, "Arg_0.1", "x", Shape(ElementType::kF32, {2})};
  EXPECT_THAT(MessageOf([&] { LoadArrays(folder.path(), {slot}, "input"); }),
              HasSubstr("input 0 (%Arg_0.1, x) f32[2] is missing"));
  SaveArrays(folder.path(), {Literal(slot.shape), Literal(slot.shape)});
  EXPECT_THAT(MessageOf([&] { LoadArrays(folder.path(), {slot}, "input"); }), HasSubstr("holds more arrays"));
  EXPECT_THAT(MessageOf([&] { LoadArrays(folder / "none", {slot}, "input"); }),
              HasSubstr("there is no file or directory"));
}

TEST(AtomicFilesTest, NothingAppearsWithoutCommit) {
  const TemporaryFolder folder;
  {
    AtomicFiles files;
    files.Write(folder / "a", {"one"});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(AtomicFilesTest, ManyFilesAppearTogether) {
  const TemporaryFolder folder;
  AtomicFiles files;
  for (int i = 0; i < 300; ++i) files.Write(folder / std::to_string(i), {"one", " two"});
  EXPECT_FALSE(std::filesystem::exists(folder / "0"));
  files.Commit();
  for (int i = 0; i < 300; ++i) EXPECT_EQ(std::filesystem::file_size(folder / std::to_string(i)), 7u);
  const auto entries =
      std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator());
  EXPECT_EQ(entries, 300);
}

TEST(AtomicFilesTest, WhatKilledProcessesLeftGoesWithTheNextWrite) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    AtomicFiles files;
    files.Write(folder / "a", {"whole"});
    std::ofstream(files.Reserve(folder / "b")) << "cut";
    std::ofstream(MakeTemporaryFolder(folder.path(), "work") + "/part") << "cut";
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(std::filesystem::is_empty(folder.path()));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  std::ofstream(folder / ".b.00000000.1.0.tmp") << "another node's";
  WriteFileAtomically(folder / "c", "new");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("c", ".b.00000000.1.0.tmp"));
}

TEST(AtomicFilesTest, AFullDiskIsReported) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  // A folder that cannot take files stands for a full disk: the error names the path.
  EXPECT_THAT(MessageOf([&] { WriteFileAtomically("/proc/nothing/here", "x"); }), HasSubstr("/proc/nothing"));
}

TEST(CompareTest, BoundsAreRelativeToTheLargestExpectedValue) {
  Literal expected(Shape(ElementType::kF32, {3})), actual = expected;
  expected.SetDouble(0, 100);
  actual.SetDouble(0, 100);
  actual.SetDouble(2, 0.005);
  EXPECT_TRUE(Compare(actual, expected, {}).equal);
  actual.SetDouble(2, 0.02);
  const Comparison comparison = Compare(actual, expected, {});
  EXPECT_FALSE(comparison.equal);
  EXPECT_THAT(comparison.message, HasSubstr("element [2]: 0.0199999996, expected 0"));
  EXPECT_TRUE(Compare(actual, expected, {std::nullopt, 0.03}).equal);
}

TEST(CompareTest, NanAndInfinityMustBeWhereTheyAreExpected) {
  Literal expected(Shape(ElementType::kF32, {2})), actual = expected;
  expected.SetDouble(0, std::nan(""));
  expected.SetDouble(1, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(Compare(actual, expected, {}).equal);
  EXPECT_TRUE(Compare(expected, expected, {}).equal);
  EXPECT_FALSE(Compare(expected, actual, {}).equal);
}

TEST(CompareTest, IntegersAreExact) {
  Literal expected(Shape(ElementType::kS64, {1})), actual = expected;
  expected.SetInt(0, int64_t{1} << 60);
  actual.SetInt(0, (int64_t{1} << 60) + 1);
  EXPECT_FALSE(Compare(actual, expected, {1.0, 10.0}).equal);
}

TEST(SeededTest, TheSameSeedGivesTheSameArrayAndAnotherSlotAnother) {
  const Shape shape(ElementType::kF32, {64, 64});
  EXPECT_EQ(SeededLiteral(shape, 3, {}), SeededLiteral(shape, 3, {}));
  EXPECT_FALSE(SeededLiteral(shape, 3, {}) == SeededLiteral(shape, 4, {}));
  SeedOptions data;
  data.normal = {3};
  double sum = 0, squares = 0;
  const Literal normal = SeededLiteral(shape, 3, data);
  for (const float v : normal.values<float>()) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  EXPECT_NEAR(sum / 4096, 0, 0.1);
  EXPECT_NEAR(squares / 4096, 1, 0.1);
}

TEST(VariedInputsTest, EachRunGetsItsOwnValuesInMemoryOfItsOwn) {
  std::vector<int64_t> made;
  std::vector<Literal> originals;
  VariedInputs varied(3, [&](int64_t run) {
    made.push_back(run);
    originals.push_back(Literal::Scalar(ElementType::kS32, run * 10));
    return std::vector<Literal>{originals.back(), Literal(Shape(ElementType::kF32, {0}))};
  });
  EXPECT_THAT(made, ::testing::IsEmpty());
  for (int64_t run = 1; run <= 3; ++run) {
    const std::vector<Literal> inputs = varied.Next();
    ASSERT_EQ(inputs.size(), 2u);
    EXPECT_EQ(inputs[0].GetInt(0), run * 10);
    EXPECT_NE(inputs[0].data(), originals[static_cast<size_t>(run - 1)].data());
    EXPECT_THAT(made, ::testing::ElementsAre(1, 2, 3)) << "small ones are made at once";
  }
}

TEST(VariedInputsTest, NoMoreIsMadeAheadThan64RunsOrAQuarterOfAGibibyte) {
  const auto of_bytes = [](int64_t bytes, int64_t runs, size_t& made) {
    return VariedInputs(runs, [bytes, &made](int64_t) {
      ++made;
      return std::vector<Literal>{Literal(Shape(ElementType::kU8, {bytes}))};
    });
  };
  size_t made = 0;
  VariedInputs halves = of_bytes(int64_t{96} << 20, 5, made);
  halves.Next();
  EXPECT_EQ(made, 2u);
  halves.Next();
  EXPECT_EQ(made, 2u);
  halves.Next();
  EXPECT_EQ(made, 4u);
  made = 0;
  VariedInputs whole = of_bytes(int64_t{300} << 20, 5, made);
  whole.Next();
  EXPECT_EQ(made, 1u);
  made = 0;
  VariedInputs small = of_bytes(1, 1000, made);
  small.Next();
  EXPECT_EQ(made, 64u);
}

Literal Doubles(std::initializer_list<double> values) {
  Literal literal(Shape(ElementType::kF64, {static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), literal.mutable_values<double>().begin());
  return literal;
}

TEST(CompareTest, SquaresOfLargeValuesDoNotOverflow) {
  EXPECT_FALSE(Compare(Doubles({1e200, 2e200}), Doubles({1e200, 3e200}), {}).equal);
  const Comparison close = Compare(Doubles({1e200, 2e200}), Doubles({1e200, 2e200 * (1 + 1e-14)}), {});
  EXPECT_TRUE(close.equal) << close.message;
  EXPECT_NEAR(close.relative_l2, 1e-14, 1e-14);
}

TEST(CompareTest, PartsOfComplexNumbersAreOfTheirOwnKind) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const auto one = [](float real, float imaginary) {
    Literal literal(Shape(ElementType::kC64, {1}));
    literal.mutable_values<std::complex<float>>()[0] = {real, imaginary};
    return literal;
  };
  EXPECT_TRUE(Compare(one(kInfinity, 1), one(kInfinity, 1.00001F), {}).equal);
  EXPECT_FALSE(Compare(one(kInfinity, 1), one(kInfinity, 1.1F), {}).equal);
  EXPECT_FALSE(Compare(one(kInfinity, 1), one(-kInfinity, 1), {}).equal);
  EXPECT_FALSE(Compare(one(1, kNan), one(1, 2), {}).equal);
  EXPECT_TRUE(Compare(one(1, kNan), one(1, kNan), {}).equal);
}

TEST(CompareTest, NothingIsEqualToNothing) {
  const Literal nothing(Shape(ElementType::kF32, {0, 3}));
  EXPECT_TRUE(Compare(nothing, nothing, {-1.0, -1.0}).equal);
}

TEST(NpyTest, ShapesThatOverflowAreRefused) {
  const std::string none;
  EXPECT_THAT(MessageOf([&] { ParseNpy(NpyText("<f8", "(4294967296, 536870912)", none), "n"); }),
              HasSubstr("more than 2^63 - 1"));
}

TEST(NpyTest, BytesThatNoElementHasAreRefused) {
  const auto read = [](const char* descr, char byte, ElementType type) {
    return MessageOf([&] { ToLiteral(ParseNpy(NpyText(descr, "(1,)", std::string(1, byte)), "n"), Shape(type, {1})); });
  };
  EXPECT_THAT(read("|i1", 8, ElementType::kS4), HasSubstr("element 0 is 8, which does not fit s4"));
  EXPECT_THAT(read("|i1", -9, ElementType::kS4), HasSubstr("element 0 is -9, which does not fit s4"));
  EXPECT_THAT(read("|u1", 16, ElementType::kU4), HasSubstr("element 0 is 16, which does not fit u4"));
  EXPECT_THAT(read("|u1", 16, ElementType::kF4E2M1FN), HasSubstr("element 0 is 16, which does not fit f4e2m1fn"));
  EXPECT_EQ(read("|i1", -8, ElementType::kS4), "no error");
}

TEST(NpyTest, BytesAreReadAsNumpyReadsThem) {
  const auto read = [](const char* descr, char byte, ElementType type) {
    return ToLiteral(ParseNpy(NpyText(descr, "(1,)", std::string(1, byte)), "n"), Shape(type, {1})).GetInt(0);
  };
  EXPECT_EQ(read("|b1", '\xff', ElementType::kPred), 1);
  EXPECT_EQ(read("|V1", 15, ElementType::kS4), -1);  // -1 of ml_dtypes' int4
  EXPECT_EQ(read("|V1", '\xff', ElementType::kS4), -1);
  EXPECT_EQ(read("|V1", 7, ElementType::kS4), 7);
  EXPECT_EQ(read("|V1", 2, ElementType::kS2), -2);
  EXPECT_EQ(read("|V1", '\xf3', ElementType::kU4), 3);
}

TEST(ArraySetTest, NamesThatFitInPartAreNoPositions) {
  const TemporaryFolder folder;
  WriteNpz(folder / "p.npz", {{"b", Doubles({1})}, {"other", Doubles({2})}});
  const Shape one(ElementType::kF64, {1});
  const std::vector<ArraySlot> slots = {{0, "a", "", one}, {1, "b", "", one}};
  EXPECT_THAT(MessageOf([&] { LoadArrays(folder / "p.npz", slots, "input"); }), HasSubstr("none is named like 0 (%a)"));
}

TEST(ArraySetTest, TokensAreInNoFile) {
  const TemporaryFolder folder;
  const Shape token = Shape::Scalar(ElementType::kToken);
  const std::vector<Literal> saved = {SeededLiteral(token, 0, {}), Doubles({1, 2}), Literal(token)};
  const std::vector<ArraySlot> slots = SlotsOf({token, saved[1].shape(), token});
  for (const char* path : {"arrays", "arrays.npz"}) {
    SaveArrays(folder / path, saved);
    const std::vector<Literal> loaded = LoadArrays(folder / path, slots, "input");
    ASSERT_EQ(loaded.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(Compare(loaded[i], saved[i], {}).equal);
    EXPECT_EQ(loaded[1].values<double>()[1], 2);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "arrays/0.npy"));
  EXPECT_EQ(Preview(saved[0]), "[token]");
  SaveArrays(folder / "none.npz", {saved[0]});
  EXPECT_EQ(LoadArrays(folder / "none.npz", SlotsOf({token}), "input").size(), 1u);
}

}  // namespace
}  // namespace hlorun
