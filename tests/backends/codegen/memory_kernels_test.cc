// Kernels that move memory: loads that cross the vectors, and results written past the caches, with vectors that are a
// quarter of a cache line, half of it and the whole, against the evaluator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/runtime/device.h"
#include "hlo/text/parser.h"
#include "tests/backends/codegen/kernel_runner.h"

namespace hlorun::opencl {
namespace {

using Cases = std::vector<std::pair<std::string, std::string>>;

// Shuffles are kept as they are by inline assembly where the device takes it, as in every kernel that it runs.
DeviceSpec SpecOf(int64_t vector_bytes, int64_t l3_bytes) {
  static const DeviceSpec device = ListDevices().at(0)->spec();
  DeviceSpec spec = CpuSpec();
  // Assembly has no operand for vectors that the device has not.
  spec.has_inline_assembly = device.has_inline_assembly && vector_bytes <= device.vector_bytes;
  spec.vector_bytes = vector_bytes;
  spec.l3_bytes = l3_bytes;
  return spec;
}

// With results that are larger than the last cache, and smaller.
void RunCases(const Cases& cases) {
  for (const auto& [vector_bytes, l3_bytes] :
       std::vector<std::pair<int64_t, int64_t>>{{16, 0}, {32, 0}, {32, 1 << 30}, {64, 0}}) {
    SCOPED_TRACE(fmt::format("vectors of {} bytes, {} bytes of cache", vector_bytes, l3_bytes));
    KernelRunner runner(SpecOf(vector_bytes, l3_bytes));
    for (const auto& [name, text] : cases) runner.Add(name, text);
    runner.RunAll();
  }
}

std::string Transpose(const std::string& type, int64_t rows, int64_t columns) {
  return fmt::format(
      "ENTRY e {{ x = {0}[{1},{2}] parameter(0) ROOT r = {0}[{2},{1}] transpose(x), dimensions={{1,0}} }}", type, rows,
      columns);
}

std::string SourceOf(const std::string& text, const DeviceSpec& spec) {
  const auto module = hlo::ParseModule(text);
  const CompileOptions options;
  const hlo::Instruction& root = *module->entry()->root();
  const AliasPattern apart(static_cast<size_t>(hlo::LeafCount(root.shape())), -1);
  return EmitInstruction(root, apart, {spec, options}).front().source;
}

bool Has(const std::string& source, const std::string& part) { return source.find(part) != std::string::npos; }

// Part of two arrays side by side, from a place that only the run knows: vectors under masks that lie inside of an
// array, across its ends and beyond them; arrays shorter than a vector.
TEST(MemoryKernels, MaskedLoadsOfEachType) {
  Cases cases;
  for (const char* type : {"pred", "s8", "u16", "bf16", "s32", "f32", "u64", "f64"}) {
    for (const int64_t length : {5, 16, 37, 64}) {
      cases.emplace_back(fmt::format("{}_{}", type, length), fmt::format(R"(
joined {{
  x = {0}[3,{1}] parameter(0)
  y = {0}[3,{1}] parameter(1)
  p = s32[] parameter(2)
  low = s32[] constant(31)
  at = s32[] and(p, low)
  zero = s32[] constant(0)
  both = {0}[3,{2}] concatenate(x, y), dimensions={{1}}
  part = {0}[3,{1}] dynamic-slice(both, zero, at), dynamic_slice_sizes={{3,{1}}}
  ROOT r = {0}[3,{1}] maximum(part, x)
}}
ENTRY e {{
  x = {0}[3,{1}] parameter(0)
  y = {0}[3,{1}] parameter(1)
  p = s32[] parameter(2)
  ROOT r = {0}[3,{1}] fusion(x, y, p), kind=kLoop, calls=joined
}})",
                                                                         type, length, 2 * length));
      ASSERT_TRUE(length < 16 || Has(SourceOf(cases.back().second, SpecOf(64, 1 << 30)), " hl_masked_load"));
    }
  }
  RunCases(cases);
}

// Whole squares, ends that reach back in both dimensions, and dimensions too short for a line, a vector or a square.
TEST(MemoryKernels, TransposesOfEachType) {
  Cases cases;
  for (const char* type : {"f32", "f64", "bf16", "s8", "u16", "s4", "pred"}) {
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{128, 192}, {33, 47}, {20, 9}})
      cases.emplace_back(fmt::format("{}_{}x{}", type, rows, columns), Transpose(type, rows, columns));
  }
  RunCases(cases);
}

// Here the next dimension prolongs the result's runs of nine.
constexpr const char* kShortResults =
    R"(f { a = f32[3,3,40,37] parameter(0) b = f32[37,40,3,3] parameter(1) t = f32[37,40,3,3] transpose(a), dimensions={3,2,0,1}
         ROOT s = f32[37,40,3,3] subtract(b, t) }
       ENTRY e { x = f32[3,3,40,37] parameter(0) y = f32[37,40,3,3] parameter(1) ROOT r = f32[37,40,3,3] fusion(x, y), kind=kLoop, calls=f })";

TEST(MemoryKernels, TransposesInFusions) {
  RunCases({
      {"batch", "ENTRY e { x = f32[3,40,50] parameter(0) ROOT r = f32[3,50,40] transpose(x), dimensions={0,2,1} }"},
      {"weights", kShortResults},
      {"weights_bf16",
       "ENTRY e { x = bf16[3,3,40,37] parameter(0) ROOT r = bf16[37,40,3,3] transpose(x), dimensions={3,2,0,1} }"},
      {"weights_s8", "ENTRY e { x = s8[3,70,66] parameter(0) ROOT r = s8[66,70,3] transpose(x), dimensions={2,1,0} }"},
      {"groups",
       R"(f { a = f32[4,30,64] parameter(0) t = f32[4,64,30] transpose(a), dimensions={0,2,1} s = f32[4,4,16,30] reshape(t)
           u = f32[4,4,16,30] transpose(s), dimensions={1,0,2,3} v = f32[16,16,30] reshape(u) ROOT w = f32[16,30,16] transpose(v), dimensions={1,2,0} }
         ENTRY e { x = f32[4,30,64] parameter(0) ROOT r = f32[16,30,16] fusion(x), kind=kLoop, calls=f })"},
      {"nhwc", "ENTRY e { x = f32[2,9,7,40] parameter(0) ROOT r = f32[2,40,9,7] transpose(x), dimensions={0,3,1,2} }"},
      {"nchw", "ENTRY e { x = f32[2,40,9,7] parameter(0) ROOT r = f32[2,9,7,40] transpose(x), dimensions={0,2,3,1} }"},
      {"few_channels",
       "ENTRY e { x = f32[2,3,30,31] parameter(0) ROOT r = f32[2,30,31,3] transpose(x), dimensions={0,2,3,1} }"},
      {"straight_beside",
       R"(f { a = f32[70,50] parameter(0) b = f32[50,70] parameter(1) t = f32[50,70] transpose(a), dimensions={1,0} n = f32[50,70] negate(t)
           s = f32[50,70] add(n, b) ROOT m = f32[50,70] multiply(s, t) }
         ENTRY e { x = f32[70,50] parameter(0) y = f32[50,70] parameter(1) ROOT r = f32[50,70] fusion(x, y), kind=kLoop, calls=f })"},
      {"two_crossing",
       R"(f { a = f32[70,50] parameter(0) b = bf16[70,50] parameter(1) t = f32[50,70] transpose(a), dimensions={1,0} u = bf16[50,70] transpose(b), dimensions={1,0}
           w = f32[50,70] convert(u) ROOT s = f32[50,70] subtract(t, w) }
         ENTRY e { x = f32[70,50] parameter(0) y = bf16[70,50] parameter(1) ROOT r = f32[50,70] fusion(x, y), kind=kLoop, calls=f })"},
      {"one_twice",
       R"(f { a = f32[64,64] parameter(0) t = f32[64,64] transpose(a), dimensions={1,0} v = f32[64,64] reverse(t), dimensions={1}
           ROOT s = f32[64,64] subtract(t, v) }
         ENTRY e { x = f32[64,64] parameter(0) ROOT r = f32[64,64] fusion(x), kind=kLoop, calls=f })"},
      {"many_crossing",
       R"(f { a = f32[40,30] parameter(0) b = f32[40,30] parameter(1) c = f32[40,30] parameter(2) d = f32[40,30] parameter(3) e = f32[40,30] parameter(4)
           k = f32[40,30] add(a, b) l = f32[40,30] multiply(c, d) m = f32[40,30] add(k, l) n = f32[40,30] add(m, e) ROOT t = f32[30,40] transpose(n), dimensions={1,0} }
         ENTRY e { x = f32[40,30] parameter(0) y = f32[40,30] parameter(1) z = f32[40,30] parameter(2) v = f32[40,30] parameter(3) w = f32[40,30] parameter(4)
           ROOT r = f32[30,40] fusion(x, y, z, v, w), kind=kLoop, calls=f })"},
      {"padded",
       R"(f { a = f32[40,30] parameter(0) t = f32[30,40] transpose(a), dimensions={1,0} z = f32[] constant(2) ROOT p = f32[33,48] pad(t, z), padding=1_2x5_3 }
         ENTRY e { x = f32[40,30] parameter(0) ROOT r = f32[33,48] fusion(x), kind=kLoop, calls=f })"},
      {"where_data_says",
       R"(f { a = f32[80,60] parameter(0) i = s32[] parameter(1) d = f32[40,30] dynamic-slice(a, i, i), dynamic_slice_sizes={40,30}
           ROOT t = f32[30,40] transpose(d), dimensions={1,0} }
         ENTRY e { x = f32[80,60] parameter(0) i = s32[] parameter(1) ROOT r = f32[30,40] fusion(x, i), kind=kLoop, calls=f })"},
      {"narrower",
       R"(f { a = f32[70,50] parameter(0) t = f32[50,70] transpose(a), dimensions={1,0} b = bf16[50,70] convert(t) c = s8[50,70] convert(t) ROOT o = (f32[50,70], bf16[50,70], s8[50,70]) tuple(t, b, c) }
         ENTRY e { x = f32[70,50] parameter(0) ROOT r = (f32[50,70], bf16[50,70], s8[50,70]) fusion(x), kind=kLoop, calls=f })"},
      {"wider",
       R"(f { a = s8[70,50] parameter(0) t = s8[50,70] transpose(a), dimensions={1,0} ROOT b = f64[50,70] convert(t) }
         ENTRY e { x = s8[70,50] parameter(0) ROOT r = f64[50,70] fusion(x), kind=kLoop, calls=f })"},
  });
}

TEST(MemoryKernels, ResultsPastTheCaches) {
  const std::string sum = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n";
  Cases cases = {
      {"several",
       R"(f { a = f32[1000] parameter(0) b = bf16[1000] convert(a) c = s8[1000] convert(a) d = f32[1000] exponential(a) ROOT o = (bf16[1000], s8[1000], f32[1000]) tuple(b, c, d) }
         ENTRY e { x = f32[1000] parameter(0) ROOT r = (bf16[1000], s8[1000], f32[1000]) fusion(x), kind=kLoop, calls=f })"},
      {"ends", "ENTRY e { x = f32[40,72] parameter(0) ROOT r = f32[40,72] negate(x) }"},
      {"pieces",
       R"(f { a = f32[9,24] parameter(0) b = f32[9,40] parameter(1) c = f32[9,64] concatenate(a, b), dimensions={1} ROOT n = f32[9,64] negate(c) }
         ENTRY e { x = f32[9,24] parameter(0) y = f32[9,40] parameter(1) ROOT r = f32[9,64] fusion(x, y), kind=kLoop, calls=f })"},
  };
  for (const int64_t rows : {1, 5}) {
    for (const int64_t length : {96, 100, 120, 333}) {
      for (const bool reverse : {false, true}) {
        const std::string pad = reverse ? fmt::format("0_{}", length - 1) : fmt::format("{}_0", length - 1);
        cases.emplace_back(
            fmt::format("cumulative_{}x{}{}", rows, length, reverse ? "_reverse" : ""),
            sum + fmt::format("ENTRY e {{ x = f32[{0},{1}] parameter(0) z = f32[] constant(0) ROOT r = f32[{0},{1}] "
                              "reduce-window(x, z), window={{size=1x{1} pad=0_0x{2}}}, to_apply=add }}",
                              rows, length, pad));
      }
    }
  }
  RunCases(cases);
}

// Seven elements are no square, although vectors cross them.
constexpr const char* kShortAcross =
    "ENTRY e { x = f32[3,64,16,7] parameter(0) ROOT r = f32[7,3,16,64] transpose(x), dimensions={3,0,2,1} }";
// Here the next dimension prolongs them to 28.
constexpr const char* kProlonged =
    "ENTRY e { x = f32[64,4,7] parameter(0) ROOT r = f32[7,4,64] transpose(x), dimensions={2,1,0} }";

TEST(MemoryKernels, SquaresAreTurnedInRegisters) {
  const auto turns = [](const std::string& text) {
    return Has(SourceOf(text, SpecOf(32, 0)), "interleave_low_float8");
  };
  EXPECT_TRUE(turns(Transpose("f32", 64, 64)));
  EXPECT_TRUE(turns(Transpose("bf16", 33, 47)));
  EXPECT_FALSE(turns(kShortAcross));
  EXPECT_TRUE(turns(kProlonged));
  EXPECT_TRUE(turns(kShortResults));
  EXPECT_FALSE(turns(Transpose("pred", 64, 64))) << "no vectors of pred";
}

TEST(MemoryKernels, RowsOfAFewElementsAreWrittenOut) {
  Cases cases;
  for (const char* type : {"f32", "f64", "c64", "bf16", "s8", "u16", "s4", "pred"}) {
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{2, 200}, {3, 33}, {3, 1000}, {4, 69}})
      cases.emplace_back(fmt::format("{}_{}x{}", type, rows, columns), Transpose(type, rows, columns));
  }
  constexpr const char* kTwoResults =
      R"(f { a = f32[2,3,70] parameter(0) b = f32[2,70,3] parameter(1) t = f32[2,70,3] transpose(a), dimensions={0,2,1}
           s = f32[2,70,3] subtract(b, t) c = bf16[2,70,3] convert(t) ROOT r = (f32[2,70,3], bf16[2,70,3]) tuple(s, c) }
         ENTRY e { x = f32[2,3,70] parameter(0) y = f32[2,70,3] parameter(1)
           ROOT r = (f32[2,70,3], bf16[2,70,3]) fusion(x, y), kind=kLoop, calls=f })";
  cases.emplace_back("two_results", kTwoResults);
  // Small matrices: turned, and products of two points' elements.
  constexpr const char* kMatrices =
      R"(f { a = f32[70,3,2] parameter(0) b = f32[70,2] parameter(1) c = f32[70,3] parameter(2)
           t = f32[70,2,3] transpose(a), dimensions={0,2,1} d = f32[70,2,3] broadcast(b), dimensions={0,1}
           g = f32[70,2,3] broadcast(c), dimensions={0,2} h = f32[70,2,3] multiply(d, g) ROOT r = f32[70,2,3] add(t, h) }
         ENTRY e { a = f32[70,3,2] parameter(0) b = f32[70,2] parameter(1) c = f32[70,3] parameter(2)
           ROOT r = f32[70,2,3] fusion(a, b, c), kind=kLoop, calls=f })";
  cases.emplace_back("matrices", kMatrices);
  RunCases(cases);
  const auto in_turns = [](const std::string& text, const char* vector) {
    return Has(SourceOf(text, SpecOf(32, 0)), fmt::format("hl_store_in_turns3_g_{}", vector));
  };
  EXPECT_TRUE(in_turns(Transpose("f32", 3, 100), "float8")) << SourceOf(Transpose("f32", 3, 100), SpecOf(32, 0));
  EXPECT_TRUE(in_turns(Transpose("bf16", 3, 100), "ushort8"));
  EXPECT_TRUE(in_turns(kTwoResults, "float8") && in_turns(kTwoResults, "ushort8"));
  EXPECT_FALSE(in_turns(Transpose("f32", 3, 7), "float8")) << "fewer than a vector";
  EXPECT_TRUE(Has(SourceOf(kMatrices, SpecOf(32, 0)), "hl_store_in_turns6_g_float8"));
}

// Vectors along channels whose results lie between those of other taps: a group takes all taps of a few channels.
std::string TapsLast(int64_t channels) {
  return fmt::format(
      "ENTRY e {{ x = f32[3,3,{0},2] parameter(0) ROOT r = f32[{0},3,3,2] transpose(x), dimensions={{2,0,1,3}} }}",
      channels);
}

// Columns side by side as rows of two to four elements: known columns of each vector, converted behind or not, of two
// columns at once; rows of five, short dimensions around them and windows in them go their own ways.
TEST(MemoryKernels, ColumnsBecomeRows) {
  Cases cases;
  for (const char* type : {"u8", "bf16", "s64"}) {
    for (const int64_t columns : {2, 3, 4, 5}) {
      for (const int64_t across : {7, 75}) {
        std::string parameters, inner, names;
        for (int64_t c = 0; c < columns; ++c) {
          parameters += fmt::format("  x{0} = {1}[3,{2},1] parameter({0})\n", c, type, across);
          inner += fmt::format("  n{0} = {1}[3,{2},1] add(x{0}, x{3})\n", c, type, across, (c + 1) % columns);
          names += fmt::format("{}n{}", c == 0 ? "" : ", ", c);
        }
        std::string arguments;
        for (int64_t c = 0; c < columns; ++c) arguments += fmt::format("{}x{}", c == 0 ? "" : ", ", c);
        cases.emplace_back(
            fmt::format("{}_{}_{}", type, columns, across),
            fmt::format("HloModule m\nf {{\n{2}{3}  ROOT r = {0}[3,{1},{4}] concatenate({5}), dimensions={{2}}\n}}\n"
                        "g {{\n{2}{3}  c = {0}[3,{1},{4}] concatenate({5}), dimensions={{2}}\n"
                        "  ROOT r = f32[3,{1},{4}] convert(c)\n}}\n"
                        "ENTRY e {{\n{2}  a = {0}[3,{1},{4}] fusion({6}), kind=kLoop, calls=f\n"
                        "  b = f32[3,{1},{4}] fusion({6}), kind=kLoop, calls=g\n"
                        "  ROOT t = ({0}[3,{1},{4}], f32[3,{1},{4}]) tuple(a, b)\n}}\n",
                        type, across, parameters, inner, columns, names, arguments));
      }
    }
  }
  cases.emplace_back("wider_part", R"(ENTRY e { x = u8[5,70,3] parameter(0) y = u8[5,70,1] parameter(1)
                                      ROOT r = u8[5,70,4] concatenate(x, y), dimensions={2} })");
  RunCases(cases);
  const auto module_text = [](int64_t columns) {
    return fmt::format(
        "ENTRY e {{ x = f32[9,640,1] parameter(0) y = f32[9,640,{}] parameter(1) "
        "ROOT r = f32[9,640,{}] concatenate(x, y), dimensions={{2}} }}",
        columns - 1, columns);
  };
  EXPECT_TRUE(Has(SourceOf(module_text(3), SpecOf(64, 0)), "hl_store_in_turns3"));
  EXPECT_FALSE(Has(SourceOf(module_text(5), SpecOf(64, 0)), "hl_store_in_turns"));
}

// Vectors go along the dimension in which what makes the columns lies side by side, without a division, whether it is
// as long as a vector or half as long.
TEST(MemoryKernels, ColumnsOfRowsAreReadSideBySide) {
  // Of an image's channels, each less its own mean, every second one another array's: [rows * columns, channels].
  const auto shuffled = [](int64_t channels, int64_t first, int64_t taken) {
    return fmt::format(R"(
f {{ x = f32[35,{0}] parameter(0) m = f32[{0}] parameter(1) y = f32[5,7,{0},1] parameter(2)
     b = f32[35,{0}] broadcast(m), dimensions={{1}} s = f32[35,{0}] subtract(x, b) r = f32[5,7,{0},1] reshape(s)
     u = f32[5,7,{2},1] slice(r), slice={{[0:5], [0:7], [{1}:{3}], [0:1]}}
     v = f32[5,7,{2},1] slice(y), slice={{[0:5], [0:7], [{1}:{3}], [0:1]}}
     ROOT c = f32[5,7,{2},2] concatenate(v, u), dimensions={{3}} }}
ENTRY e {{ x = f32[35,{0}] parameter(0) m = f32[{0}] parameter(1) y = f32[5,7,{0},1] parameter(2)
     ROOT r = f32[5,7,{2},2] fusion(x, m, y), kind=kLoop, calls=f }})",
                       channels, first, taken, first + taken);
  };
  const auto repeated = [](int64_t channels, int64_t copies) {
    return fmt::format(R"(
f {{ x = f32[90,{0}] parameter(0) m = f32[{0}] parameter(1) b = f32[90,{0}] broadcast(m), dimensions={{1}}
     s = f32[90,{0}] multiply(x, b) ROOT r = f32[90,{0},{1}] broadcast(s), dimensions={{0,1}} }}
ENTRY e {{ x = f32[90,{0}] parameter(0) m = f32[{0}] parameter(1)
     ROOT r = f32[90,{0},{1}] fusion(x, m), kind=kLoop, calls=f }})",
                       channels, copies);
  };
  // Four by four pixels of three colours each, from the channels of a smaller image.
  constexpr const char* kPixels =
      R"(ENTRY e { x = f32[6,20,3,4,4] parameter(0) ROOT r = f32[6,4,20,4,3] transpose(x), dimensions={0,3,1,4,2} })";
  Cases cases;
  for (const auto& [channels, first, taken] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{{58, 0, 58}, {58, 29, 29}, {20, 3, 11}, {16, 0, 16}}) {
    cases.emplace_back(fmt::format("shuffled_{}_{}", channels, taken), shuffled(channels, first, taken));
    const std::string source = SourceOf(shuffled(channels, first, taken), SpecOf(64, 0));
    EXPECT_TRUE(Has(source, "hl_store_in_turns2_g_float")) << source;
    EXPECT_FALSE(Has(source, "gather") || Has(source, "% 58") || Has(source, "% 20")) << source;
  }
  for (const int64_t channels : {8, 9, 15, 33}) {
    for (const int64_t copies : {2, 3, 4})
      cases.emplace_back(fmt::format("repeated_{}_{}", channels, copies), repeated(channels, copies));
    const std::string source = SourceOf(repeated(channels, 2), SpecOf(64, 0));
    EXPECT_TRUE(Has(source, channels < 16 ? "hl_store_in_turns2_g_float8" : "hl_store_in_turns2_g_float16")) << source;
    EXPECT_FALSE(Has(source, "gather")) << source;
  }
  cases.emplace_back("pixels", kPixels);
  EXPECT_TRUE(Has(SourceOf(kPixels, SpecOf(64, 0)), "hl_store_in_turns12_g_float16"));
  RunCases(cases);
}

// Pixels of a few elements that change places are loops over those, and larger pictures read each element once.
TEST(MemoryKernels, PixelsMoveAndRepeat) {
  const auto turned = [](const char* type, int64_t elements, int64_t rows = 70, int64_t columns = 33) {
    return fmt::format(
        "ENTRY e {{ x = {0}[3,{2},{3},{1}] parameter(0) ROOT r = {0}[3,{3},{2},{1}] transpose(x), dimensions={{0,2,1,3}} }}",
        type, elements, rows, columns);
  };
  const auto larger = [](const char* type, int64_t times, int64_t columns) {
    return fmt::format(R"(
f {{ x = {0}[6,5,{2}] parameter(0) y = {0}[6,{3},{4}] parameter(1)
     b = {0}[6,5,{1},{2},{1}] broadcast(x), dimensions={{0,1,3}} r = {0}[6,{3},{4}] reshape(b)
     ROOT s = {0}[6,{3},{4}] add(r, y) }}
ENTRY e {{ x = {0}[6,5,{2}] parameter(0) y = {0}[6,{3},{4}] parameter(1)
     ROOT r = {0}[6,{3},{4}] fusion(x, y), kind=kLoop, calls=f }})",
                       type, times, columns, 5 * times, columns * times);
  };
  Cases cases;
  for (const char* type : {"f32", "bf16", "u8", "f64"}) {
    for (const int64_t n : {2, 3, 4, 7}) cases.emplace_back(fmt::format("turned_{}_{}", type, n), turned(type, n));
    for (const int64_t n : {2, 3, 4, 8, 16}) {
      for (const int64_t columns : {12, 28})
        cases.emplace_back(fmt::format("larger_{}_{}_{}", type, n, columns), larger(type, n, columns));
    }
  }
  RunCases(cases);
  // Whichever side is longer.
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{70, 33}, {33, 70}, {64, 64}}) {
    const std::string source = SourceOf(turned("f32", 3, rows, columns), SpecOf(64, 0));
    EXPECT_FALSE(Has(source, "gather") || Has(source, "scatter") || Has(source, "float16")) << source;
  }
  // Nothing of what is computed: vectors do that.
  constexpr const char* kComputed =
      R"(f { x = f32[3,70,33,3] parameter(0) t = f32[3,33,70,3] transpose(x), dimensions={0,2,1,3}
             ROOT h = f32[3,33,70,3] tanh(t) }
         ENTRY e { x = f32[3,70,33,3] parameter(0) ROOT r = f32[3,33,70,3] fusion(x), kind=kLoop, calls=f })";
  EXPECT_TRUE(Has(SourceOf(kComputed, SpecOf(64, 0)), "float16"));
  EXPECT_TRUE(Has(SourceOf(larger("f32", 2, 28), SpecOf(64, 0)), "hl_repeat2_g_float16"));
  EXPECT_TRUE(Has(SourceOf(larger("f32", 4, 28), SpecOf(64, 0)), "hl_repeat4_g_float16"));
}

// A module's beginning: the first of the largest, as JAX writes it.
std::string FirstLargest(const std::string& type) {
  return fmt::format(
      "HloModule m\nlargest {{\n  a = {0}[] parameter(0)\n  i = s32[] parameter(1)\n  b = {0}[] parameter(2)\n"
      "  j = s32[] parameter(3)\n  more = pred[] compare(a, b), direction=GT\n"
      "  is_nan = pred[] compare(a, a), direction=NE\n  keeps = pred[] or(more, is_nan)\n"
      "  v = {0}[] select(keeps, a, b)\n  same = pred[] compare(a, b), direction=EQ\n"
      "  first = pred[] compare(i, j), direction=LT\n  both = pred[] and(same, first)\n  o = pred[] or(keeps, both)\n"
      "  w = s32[] select(o, i, j)\n  ROOT t = ({0}[], s32[]) tuple(v, w)\n}}\n",
      type);
}

// Lanes that are rows read them whole and turn them: rows of whole squares and with a rest, of few and many, of several
// dimensions of results, sums that go by their order, values that are computed where they are read.
TEST(MemoryKernels, LanesThatAreRowsReadThemWhole) {
  Cases cases;
  for (const char* type : {"bf16", "f32", "f64"}) {
    for (const int64_t row : {12, 16, 21, 256}) {
      for (const std::string rows : {"37", "50,6"}) {
        // Few different values, so that many are the same.
        const std::string fused = fmt::format(
            "f {{\n  x = {0}[{1},{2}] parameter(0)\n  y = s32[{1},{2}] convert(x)\n  z = {0}[{1},{2}] convert(y)\n"
            "  n = s32[{1},{2}] iota(), iota_dimension={3}\n  c = {0}[] constant(0)\n  d = s32[] constant(0)\n"
            "  ROOT r = ({0}[{1}], s32[{1}]) reduce(z, n, c, d), dimensions={{{3}}}, to_apply=largest\n}}\n"
            "ENTRY e {{\n  x = {0}[{1},{2}] parameter(0)\n"
            "  ROOT r = ({0}[{1}], s32[{1}]) fusion(x), kind=kInput, calls=f\n}}\n",
            type, rows, row, std::count(rows.begin(), rows.end(), ',') + 1);
        cases.emplace_back(fmt::format("{}_{}_{}", type, row, rows), FirstLargest(type) + fused);
      }
    }
    // Rows that do not merge, few of them side by side; numbers that are read, too.
    const std::string apart = fmt::format(
        "f {{\n  x = {0}[50,9,33] parameter(0)\n  y = {0}[50,6,33] slice(x), slice={{[0:50], [2:8], [0:33]}}\n"
        "  n = s32[50,6,33] parameter(1)\n  c = {0}[] constant(0)\n  d = s32[] constant(0)\n"
        "  ROOT r = ({0}[50,6], s32[50,6]) reduce(y, n, c, d), dimensions={{2}}, to_apply=largest\n}}\n"
        "ENTRY e {{\n  x = {0}[50,9,33] parameter(0)\n  n = s32[50,6,33] parameter(1)\n"
        "  ROOT r = ({0}[50,6], s32[50,6]) fusion(x, n), kind=kInput, calls=f\n}}\n",
        type);
    cases.emplace_back(fmt::format("{}_apart", type), FirstLargest(type) + apart);
  }
  RunCases(cases);
  const auto turns = [](int64_t row) {
    const std::string entry = fmt::format(
        "ENTRY e {{\n  x = f32[64,{0}] parameter(0)\n  n = s32[64,{0}] parameter(1)\n  c = f32[] constant(0)\n"
        "  d = s32[] constant(0)\n"
        "  ROOT r = (f32[64], s32[64]) reduce(x, n, c, d), dimensions={{1}}, to_apply=largest\n}}\n",
        row);
    return Has(SourceOf(FirstLargest("f32") + entry, SpecOf(64, 0)), "turned0");
  };
  EXPECT_TRUE(turns(21));
  EXPECT_FALSE(turns(8)) << "rows of less than a square";
  EXPECT_FALSE(turns(300)) << "lanes' rows that leave the first cache";
}

TEST(MemoryKernels, GroupsDoNotShareLinesOfResults) {
  Cases cases;
  for (const int64_t channels : {20, 120, 1000, 1024}) cases.emplace_back(std::to_string(channels), TapsLast(channels));
  RunCases(cases);
  const auto tiles = [](int64_t channels) { return Has(SourceOf(TapsLast(channels), SpecOf(64, 0)), "* 112"); };
  EXPECT_TRUE(tiles(1024)) << SourceOf(TapsLast(1024), SpecOf(64, 0));
  EXPECT_FALSE(tiles(100));
}

TEST(MemoryKernels, RowsSideBySideArePastTheCachesInWholeLines) {
  const auto streams = [](const std::string& text) { return Has(SourceOf(text, SpecOf(32, 0)), "nontemporal"); };
  EXPECT_TRUE(streams(Transpose("f32", 64, 64)));
  EXPECT_FALSE(streams(Transpose("f32", 72, 64))) << "every other row of the result begins in the middle of a line";
  EXPECT_FALSE(streams(kShortAcross)) << "lines are written in parts";
}

}  // namespace
}  // namespace hlorun::opencl
