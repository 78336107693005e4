// Sorts by radix, selections and running values, against the evaluator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/opencl/codegen/sort_key.h"
#include "backends/opencl/codegen/sort_key_words.h"
#include "hlo/text/parser.h"
#include "tests/backends/codegen/kernel_runner.h"

namespace hlorun::opencl {
namespace {

// JAX's order: zeros are one value, NaNs are one value, then the total order.
std::string JaxOrder(const std::string& name, const std::string& type, const std::string& direction,
                     const std::string& more = "") {
  return fmt::format(R"({0} {{ a = {1}[] parameter(0) b = {1}[] parameter(1) {3}
    an = pred[] compare(a, a), direction=NE  bn = pred[] compare(b, b), direction=NE
    nan = {1}[] constant(nan)  zero = {1}[] constant(0)
    az = pred[] compare(a, zero), direction=EQ  bz = pred[] compare(b, zero), direction=EQ
    a0 = {1}[] select(az, zero, a)  b0 = {1}[] select(bz, zero, b)
    a1 = {1}[] select(an, nan, a0)  b1 = {1}[] select(bn, nan, b0)
    ROOT r = pred[] compare(a1, b1), direction={2}, type=TOTALORDER }}
  )",
                     name, type, direction, more);
}
std::string IntegerOrder(const std::string& type, const std::string& direction) {
  return fmt::format(
      "lt {{ a = {0}[] parameter(0) b = {0}[] parameter(1) ROOT c = pred[] compare(a, b), direction={1} }}\n", type,
      direction);
}

using Cases = std::vector<std::pair<std::string, std::string>>;

void RunOn(const DeviceSpec& device, const Cases& cases) {
  SCOPED_TRACE(device.device_class == DeviceClass::kCpu ? "cpu" : "gpu");
  KernelRunner runner(device);
  for (const auto& [name, text] : cases) runner.Add(name, text);
  runner.RunAll();
}

// Little local memory and small groups, so that small arrays take several blocks.
DeviceSpec SmallGpuSpec() {
  DeviceSpec spec = GpuSpec();
  spec.local_memory_bytes = 12 << 10;
  spec.max_work_group_size = 64;
  return spec;
}
DeviceSpec GpuOfSmallGroupsSpec() {
  DeviceSpec spec = GpuSpec();
  spec.max_work_group_size = 128;
  spec.compute_units = 100;
  return spec;
}

void RunOnBothClasses(const Cases& cases) {
  RunOn(CpuSpec(), cases);
  RunOn(GpuSpec(), cases);
}

// Rows of a length, all of them with ties, since floats are made of small integers.
std::string SortText(const std::string& type, const std::string& shape, int dimension, const std::string& direction) {
  return JaxOrder("lt", type, direction) + fmt::format(
                                               "ENTRY e {{ n = s32[{1}] parameter(0) x = {0}[{1}] convert(n) ROOT r = "
                                               "{0}[{1}] sort(x), dimensions={{{2}}}, is_stable=true, to_apply=lt }}",
                                               type, shape, dimension);
}

TEST(SortKernels, OneOperand) {
  RunOnBothClasses(
      {{"f32_short", SortText("f32", "9,17", 1, "LT")},
       {"f32", SortText("f32", "5,300", 1, "LT")},
       {"f32_descending", SortText("f32", "5,300", 1, "GT")},
       {"f32_columns", SortText("f32", "130,7", 0, "LT")},
       {"f32_middle", SortText("f32", "3,50,5", 1, "LT")},
       {"bf16", SortText("bf16", "4,1000", 1, "LT")},
       {"bf16_short", SortText("bf16", "40,5", 1, "GT")},
       {"f16", SortText("f16", "4,100", 1, "LT")},
       {"f64", SortText("f64", "4,100", 1, "LT")},
       {"f64_short", SortText("f64", "4,10", 1, "GT")},
       {"f32_long", SortText("f32", "70001", 0, "LT")},
       {"bf16_long", SortText("bf16", "2,140003", 1, "GT")},
       {"f64_long", SortText("f64", "40000", 0, "LT")},
       {"s8", IntegerOrder("s8", "LT") +
                  "ENTRY e { x = s8[3,90] parameter(0) ROOT r = s8[3,90] sort(x), dimensions={1}, to_apply=lt }"},
       {"u16", IntegerOrder("u16", "GT") +
                   "ENTRY e { x = u16[3,90] parameter(0) ROOT r = u16[3,90] sort(x), dimensions={1}, to_apply=lt }"},
       {"s64", IntegerOrder("s64", "GT") +
                   "ENTRY e { x = s64[3,90] parameter(0) ROOT r = s64[3,90] sort(x), dimensions={1}, to_apply=lt }"},
       {"s32", IntegerOrder("s32", "LT") +
                   "ENTRY e { x = s32[3,900] parameter(0) ROOT r = s32[3,900] sort(x), dimensions={1}, to_apply=lt }"},
       {"pred",
        IntegerOrder("pred", "LT") +
            "ENTRY e { x = pred[3,90] parameter(0) ROOT r = pred[3,90] sort(x), dimensions={1}, to_apply=lt }"}});
}

TEST(SortKernels, SeveralOperands) {
  const auto text = [](const std::string& order, const std::string& shape, int dimension) {
    return order +
           fmt::format(
               R"(ENTRY e {{ n = s32[{0}] parameter(0) x = f32[{0}] convert(n) i = s32[{0}] iota(), iota_dimension={1}
      ROOT r = (f32[{0}], s32[{0}]) sort(x, i), dimensions={{{1}}}, is_stable=true, to_apply=lt }})",
               shape, dimension);
  };
  const std::string order = JaxOrder("lt", "f32", "LT", "c = s32[] parameter(2) d = s32[] parameter(3)");
  RunOnBothClasses(
      {{"argsort", text(order, "4,512", 1)},
       {"argsort_short", text(order, "40,8", 1)},
       {"argsort_columns", text(order, "100,6", 0)},
       {"argsort_long", text(order, "66000", 0)},
       {"by_the_second",
        R"(lt { a = c64[] parameter(0) b = c64[] parameter(1) c = u32[] parameter(2) d = u32[] parameter(3) e = f64[] parameter(4) f = f64[] parameter(5)
                ROOT r = pred[] compare(d, c), direction=LT }
               ENTRY e { x = c64[3,70] parameter(0) y = u32[3,70] parameter(1) z = f64[3,70] parameter(2)
                 ROOT r = (c64[3,70], u32[3,70], f64[3,70]) sort(x, y, z), dimensions={1}, is_stable=true, to_apply=lt })"}});
}

// Sorts NaNs of both signs (or what else has the bits that are given), zeros of both signs, infinities and many equal
// elements with their positions; the result's floats as bits, so that it is seen which of the equal ones lies where.
constexpr int32_t kNan = 0x7fc00001, kMinusNan = -0x3fffff, kOne = 0x3f800000, kMinusOne = -0x40800000;
std::string SpecialsText(const std::string& comparator, const std::string& shape, int dimension, int32_t twos = kNan,
                         int32_t threes = kMinusNan) {
  return comparator + fmt::format(
                          R"(ENTRY e {{ n = s32[{0}] parameter(0) i = s32[{0}] iota(), iota_dimension={1}
    x = f32[{0}] convert(n)
    c0 = s32[] constant(4) b0 = s32[{0}] broadcast(c0), dimensions={{}} is0 = pred[{0}] compare(n, b0), direction=EQ
    c1 = s32[] constant(1) b1 = s32[{0}] broadcast(c1), dimensions={{}} is1 = pred[{0}] compare(n, b1), direction=EQ
    c2 = s32[] constant(2) b2 = s32[{0}] broadcast(c2), dimensions={{}} is2 = pred[{0}] compare(n, b2), direction=EQ
    c3 = s32[] constant(3) b3 = s32[{0}] broadcast(c3), dimensions={{}} is3 = pred[{0}] compare(n, b3), direction=EQ
    nz = f32[] constant(-0) bnz = f32[{0}] broadcast(nz), dimensions={{}}
    inf = f32[] constant(-inf) binf = f32[{0}] broadcast(inf), dimensions={{}}
    q = s32[] constant({2}) bq = s32[{0}] broadcast(q), dimensions={{}} fq = f32[{0}] bitcast-convert(bq)
    m = s32[] constant({3}) bm = s32[{0}] broadcast(m), dimensions={{}} fm = f32[{0}] bitcast-convert(bm)
    x1 = f32[{0}] select(is1, bnz, x) x2 = f32[{0}] select(is2, fq, x1) x3 = f32[{0}] select(is3, fm, x2)
    x4 = f32[{0}] select(is0, binf, x3)
    s = (f32[{0}], s32[{0}]) sort(x4, i), dimensions={{{1}}}, is_stable=true, to_apply=lt
    f = f32[{0}] get-tuple-element(s), index=0 p = s32[{0}] get-tuple-element(s), index=1
    bits = s32[{0}] bitcast-convert(f) ROOT r = (s32[{0}], s32[{0}]) tuple(bits, p) }})",
                          shape, dimension, twos, threes);
}

// No key says these: NaNs last whatever they are, positive elements before negative ones; two keys.
constexpr const char* kNanLast = R"(lt { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2)
    d = s32[] parameter(3) less = pred[] compare(a, b), direction=GT an = pred[] compare(a, a), direction=EQ
    bn = pred[] compare(b, b), direction=NE m = pred[] and(an, bn) ROOT r = pred[] or(less, m) }
  )";
constexpr const char* kTwoKeys = R"(lt { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2)
    d = s32[] parameter(3) z = s32[] constant(3) cz = s32[] and(c, z) dz = s32[] and(d, z)
    same = pred[] compare(cz, dz), direction=EQ first = pred[] compare(cz, dz), direction=GT
    less = pred[] compare(a, b), direction=LT, type=TOTALORDER ROOT r = pred[] select(same, less, first) }
  )";

TEST(SortKernels, AnyLengthOnGpus) {
  const std::string order = JaxOrder("lt", "f32", "GT", "c = s32[] parameter(2) d = s32[] parameter(3)");
  const std::vector<std::string> comparators = {order, kNanLast, kTwoKeys};
  const auto cases_of = [&](const std::vector<int>& lengths) {
    Cases cases;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto rows = fmt::format("3,{}", lengths[i]), columns = fmt::format("{},5", lengths[i]);
      cases.emplace_back("rows_" + rows, SpecialsText(comparators[i % 3], rows, 1));
      cases.emplace_back("columns_" + columns, SpecialsText(comparators[(i + 1) % 3], columns, 0));
    }
    return cases;
  };
  RunOn(GpuSpec(), cases_of({7, 1000, 2049}));
  RunOn(SmallGpuSpec(), cases_of({1, 2, 3, 9, 129, 512, 513, 2500}));
}

// Nothing may depend on where NaNs go, but without them zeros of both signs are equal and keep their order.
constexpr const char* kPartial = R"(lt { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2)
    d = s32[] parameter(3) ROOT less = pred[] compare(b, a), direction=LT }
  )";

TEST(SortKernels, PartialOrderOnGpus) {
  // All of the elements are there, NaNs too.
  std::string positions =
      "up { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }\n" +
      SpecialsText(kPartial, "2,1500", 1);
  positions.replace(positions.find("ROOT r = (s32[2,1500]"), std::string::npos,
                    "ROOT r = s32[2,1500] sort(p), dimensions={1}, to_apply=up }");
  RunOn(SmallGpuSpec(), {{"positions", positions},
                         {"rows", SpecialsText(kPartial, "4,700", 1, kOne, kMinusOne)},
                         {"columns", SpecialsText(kPartial, "30,50", 0, kOne, kMinusOne)}});
}

TEST(SortKernels, ManyRowsOfAGroupOnGpus) {
  const Cases cases = {{"rows", SpecialsText(kTwoKeys, "301,6", 1)},
                       {"columns", SpecialsText(kNanLast, "2,6,150", 1)},
                       {"long", SpecialsText(kTwoKeys, "2,70001", 1)},
                       {"f16", SortText("f16", "700,3", 1, "LT")},
                       {"f64_columns", SortText("f64", "9,301", 0, "GT")}};
  RunOn(GpuSpec(), cases);
  RunOn(SmallGpuSpec(), cases);
}

// Keys of `types`, each of which decides where those before it are equal, of the first operands; another one travels.
std::string SeveralKeysText(const std::vector<std::string>& types, int64_t length) {
  std::string comparator = "lt {", operands, shapes, entry = "ENTRY e {";
  const auto add = [&](const std::string& type) {
    const size_t i = static_cast<size_t>(std::count(operands.begin(), operands.end(), 'x'));
    comparator += fmt::format("\n a{0} = {1}[] parameter({2}) b{0} = {1}[] parameter({3})", i, type, 2 * i, 2 * i + 1);
    entry += fmt::format("\n n{0} = s32[3,{2}] parameter({0}) x{0} = {1}[3,{2}] convert(n{0})", i, type, length);
    operands += fmt::format("{}x{}", i == 0 ? "" : ", ", i);
    shapes += fmt::format("{}{}[3,{}]", i == 0 ? "" : ", ", type, length);
  };
  for (const std::string& type : types) add(type);
  add("f32");
  std::string next;
  for (size_t i = types.size(); i-- > 0;) {
    const std::string order = types[i][0] == 'f' || types[i][0] == 'b' ? ", type=TOTALORDER" : "";
    comparator +=
        fmt::format("\n less{0} = pred[] compare(a{0}, b{0}), direction={1}{2}", i, i % 2 ? "GT" : "LT", order);
    comparator += fmt::format("\n same{0} = pred[] compare(a{0}, b{0}), direction=EQ{1}", i, order);
    if (!next.empty()) comparator += fmt::format("\n next{0} = pred[] select(same{0}, {1}, less{0})", i, next);
    next = fmt::format("{}{}", next.empty() ? "less" : "next", i);
  }
  comparator.insert(comparator.rfind(next + " ="), "ROOT ");
  return comparator + " }\n" + entry +
         fmt::format("\n ROOT s = ({}) sort({}), dimensions={{1}}, is_stable=true, to_apply=lt }}", shapes, operands);
}

TEST(SortKernels, SeveralKeysOnGpus) {
  const auto words = [](const std::vector<std::string>& keys) {
    const auto module = hlo::ParseModule("HloModule m\n" + SeveralKeysText(keys, 20));
    const auto form = SortKeyWords::Of(*module->entry()->root());
    std::string text;
    for (const hlo::ElementType type : form ? form->types() : std::vector<hlo::ElementType>())
      text += (text.empty() ? "" : " ") + std::string(hlo::ElementTypeName(type));
    return text;
  };
  // The position goes below the last key where there is room.
  EXPECT_EQ(words({"bf16", "s16"}), "u64");
  EXPECT_EQ(words({"s32", "f32"}), "u64 u32");
  EXPECT_EQ(words({"u8", "f32"}), "u64 u32");
  EXPECT_EQ(words({"s32", "f64"}), "u32 u64 u32");
  EXPECT_EQ(words({"f64", "u16", "pred"}), "u64 u64");
  Cases cases;
  for (const std::vector<std::string>& keys :
       {std::vector<std::string>{"bf16", "s16"}, {"s32", "f32"}, {"s8", "f64"}, {"f64", "u16", "pred"}}) {
    for (const int64_t length : {6, 2500})
      cases.emplace_back(fmt::format("{}_{}", fmt::join(keys, "_"), length), SeveralKeysText(keys, length));
  }
  RunOn(SmallGpuSpec(), cases);
}

TEST(SortKernels, RecognisedComparators) {
  const auto is_key = [](const std::string& comparator) {
    const auto module = hlo::ParseModule("HloModule m\n" + comparator + "ENTRY e { ROOT x = f32[] parameter(0) }");
    for (const auto& computation : module->computations()) {
      if (computation->name() != "e") return SortKey::Of(*computation->root()).has_value();
    }
    return false;
  };
  EXPECT_TRUE(is_key(JaxOrder("lt", "f32", "LT")));
  EXPECT_TRUE(is_key(IntegerOrder("s32", "GT")));
  // NaN has no place in a partial order.
  EXPECT_FALSE(
      is_key("lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }\n"));
  // Not strict.
  EXPECT_FALSE(is_key(IntegerOrder("s32", "LE")));
  // Two functions, two operands.
  EXPECT_FALSE(
      is_key("lt { a = s32[] parameter(0) b = s32[] parameter(1) n = s32[] negate(b) ROOT c = pred[] compare(a, n), "
             "direction=LT }\n"));
  EXPECT_FALSE(
      is_key("lt { a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) ROOT r "
             "= pred[] compare(a, d), direction=LT }\n"));
}

TEST(TopKKernels, Selections) {
  const auto text = [](const std::string& type, const std::string& outer, int length, int k, const char* largest) {
    return fmt::format(
        "ENTRY e {{ n = s32[{1}{2}] parameter(0) x = {0}[{1}{2}] convert(n) ROOT t = ({0}[{1}{3}], s32[{1}{3}]) "
        "topk(x), k={3}, largest={4} }}",
        type, outer, length, k, largest);
  };
  RunOnBothClasses({{"f32", text("f32", "5,", 1000, 8, "true")},
                    {"f32_smallest", text("f32", "5,", 1000, 60, "false")},
                    {"f32_all", text("f32", "3,", 20, 20, "true")},
                    {"f32_vector", text("f32", "", 515, 3, "true")},
                    {"bf16", text("bf16", "2,3,", 260, 5, "true")},
                    {"bf16_smallest", text("bf16", "2,3,", 260, 5, "false")},
                    {"s8", text("s8", "4,", 130, 4, "false")},
                    {"u32", text("u32", "4,", 127, 1, "true")}});
}

// Pieces of rows and the best of them, k of every size; ties lie in several pieces, since elements are small integers.
TEST(TopKKernels, PiecesOnGpus) {
  const auto text = [](const std::string& type, const std::string& outer, int length, int k, const char* largest) {
    return fmt::format(
        R"(ENTRY e {{ n = s32[{1}{2}] parameter(0) x = {0}[{1}{2}] convert(n)
        c = s32[] constant(3) bc = s32[{1}{2}] broadcast(c), dimensions={{}} is = pred[{1}{2}] compare(n, bc), direction=EQ
        q = {0}[] constant(nan) bq = {0}[{1}{2}] broadcast(q), dimensions={{}} y = {0}[{1}{2}] select(is, bq, x)
        ROOT t = ({0}[{1}{3}], s32[{1}{3}]) topk(y), k={3}, largest={4} }})",
        type, outer, length, k, largest);
  };
  const Cases cases = {{"one", text("f32", "3,", 2500, 1, "true")},
                       {"seven", text("f32", "2,", 1025, 7, "false")},
                       {"eight", text("f32", "2,", 20001, 8, "true")},
                       {"nine", text("f32", "2,", 1500, 9, "true")},
                       {"sixty_four", text("bf16", "2,2,", 9000, 64, "false")},
                       {"most", text("f32", "2,", 5003, 256, "true")},
                       {"most_of_few", text("f32", "5,", 257, 256, "false")},
                       {"all_of_two", text("f32", "50,", 2, 2, "true")},
                       {"long", text("f16", "", 300000, 20, "true")}};
  RunOn(GpuSpec(), cases);
  RunOn(GpuOfSmallGroupsSpec(), cases);
}

TEST(CumulativeKernels, BothWaysAlongAnyDimension) {
  const std::string computations =
      "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
      "max { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] maximum(a, b) }\n"
      "mul { a = c64[] parameter(0) b = c64[] parameter(1) ROOT r = c64[] multiply(a, b) }\n"
      "add64 { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] add(a, b) }\n"
      "xor { a = u8[] parameter(0) b = u8[] parameter(1) ROOT r = u8[] xor(a, b) }\n"
      "fmax { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"
      "smul { a = s64[] parameter(0) b = s64[] parameter(1) ROOT r = s64[] multiply(a, b) }\n";
  const auto text = [&](const std::string& type, const std::string& shape, const std::string& window,
                        const std::string& apply) {
    const std::string initial = type == "c64" ? "(1, 0)" : "2";
    return computations + fmt::format(
                              "ENTRY e {{ x = {0}[{1}] parameter(0) z = {0}[] constant({4}) ROOT r = {0}[{1}] "
                              "reduce-window(x, z), window={{{2}}}, to_apply={3} }}",
                              type, shape, window, apply, initial);
  };
  RunOnBothClasses({{"rows", text("f32", "7,50", "size=1x50 pad=0_0x49_0", "add")},
                    {"rows_reverse", text("f32", "7,50", "size=1x50 pad=0_0x0_49", "add")},
                    {"vector", text("f32", "90", "size=90 pad=89_0", "add")},
                    {"columns", text("f32", "40,70", "size=40x1 pad=39_0x0_0", "add")},
                    {"columns_reverse", text("f32", "40,3", "size=40x1 pad=0_39x0_0", "add")},
                    {"middle", text("f32", "3,20,4,9", "size=1x20x1x1 pad=0_0x19_0x0_0x0_0", "add")},
                    {"longer_window", text("s32", "5,20", "size=1x33 pad=0_0x32_0", "max")},
                    {"whole_vectors", text("f32", "6,64", "size=1x64 pad=0_0x63_0", "add")},
                    {"whole_vectors_reverse", text("f32", "2,3,64", "size=1x1x64 pad=0_0x0_0x0_63", "add")},
                    {"vectors_f64", text("f64", "7,50", "size=1x50 pad=0_0x49_0", "add64")},
                    {"vectors_u8", text("u8", "5,70", "size=1x70 pad=0_0x69_0", "xor")},
                    {"vectors_s64_reverse", text("s64", "5,70", "size=1x70 pad=0_0x0_69", "smul")},
                    {"vectors_extreme", text("s32", "3,50", "size=1x50 pad=0_0x49_0", "max")},
                    {"extreme_f32", text("f32", "3,50", "size=1x50 pad=0_0x49_0", "fmax")},
                    {"complex", text("c64", "5,6", "size=1x6 pad=0_0x5_0", "mul")},
                    {"complex_columns", text("c64", "5,6", "size=5x1 pad=4_0x0_0", "mul")},
                    {"not_whole", text("f32", "7,50", "size=1x20 pad=0_0x19_0", "add")}});
}

// Of two arrays by a reducer that does not commute: x -> a x + b, then x -> c x + d.
TEST(CumulativeKernels, ReducersOfTheirOwn) {
  const std::string computations =
      "after { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)\n"
      " e = f32[] multiply(a, c) f = f32[] multiply(c, b) g = f32[] add(f, d) ROOT r = (f32[], f32[]) tuple(e, g) }\n"
      "logsumexp { a = f32[] parameter(0) b = f32[] parameter(1) d = f32[] subtract(a, b) e = f32[] abs(d)\n"
      " n = f32[] negate(e) x = f32[] exponential(n) l = f32[] log-plus-one(x) m = f32[] maximum(a, b)\n"
      " ROOT r = f32[] add(m, l) }\n"
      "largest { a = s32[] parameter(0) p = c64[] parameter(1) b = s32[] parameter(2) q = c64[] parameter(3)\n"
      " g = pred[] compare(a, b), direction=GE s = s32[] select(g, a, b) t = c64[] select(g, p, q)\n"
      " ROOT r = (s32[], c64[]) tuple(s, t) }\n";
  const auto lines = [&](const std::string& shape, const std::string& window) {
    return computations + fmt::format(
                              "ENTRY e {{ x = f32[{0}] parameter(0) y = f32[{0}] parameter(1) one = f32[] constant(1) "
                              "zero = f32[] constant(0) ROOT r = (f32[{0}], f32[{0}]) reduce-window(x, y, one, zero), "
                              "window={{{1}}}, to_apply=after }}",
                              shape, window);
  };
  const auto one = [&](const std::string& shape, const std::string& window) {
    return computations + fmt::format(
                              "ENTRY e {{ x = f32[{0}] parameter(0) z = f32[] constant(-1000) ROOT r = f32[{0}] "
                              "reduce-window(x, z), window={{{1}}}, to_apply=logsumexp }}",
                              shape, window);
  };
  RunOnBothClasses(
      {{"lines_rows", lines("7,50", "size=1x50 pad=0_0x49_0")},
       {"lines_rows_reverse", lines("7,50", "size=1x50 pad=0_0x0_49")},
       {"lines_columns", lines("20,70", "size=20x1 pad=19_0x0_0")},
       {"lines_columns_reverse", lines("20,70", "size=20x1 pad=0_19x0_0")},
       {"lines_in_parts", lines("5,300", "size=1x300 pad=0_0x299_0")},
       {"lines_in_parts_reverse", lines("300,18", "size=300x1 pad=0_299x0_0")},
       {"logsumexp_in_parts", one("9,700", "size=1x700 pad=0_0x0_699")},
       {"logsumexp", one("90", "size=90 pad=89_0")},
       {"logsumexp_reverse", one("40,21", "size=40x1 pad=0_39x0_0")},
       {"largest", computations +
                       "ENTRY e { x = s32[5,30] parameter(0) y = c64[5,30] parameter(1) l = s32[] constant(-100) "
                       "z = c64[] constant((0, 0)) ROOT r = (s32[5,30], c64[5,30]) reduce-window(x, y, l, z), "
                       "window={size=1x30 pad=0_0x29_0}, to_apply=largest }"},
       {"largest_columns",
        computations + "ENTRY e { x = s32[30,9] parameter(0) y = c64[30,9] parameter(1) l = s32[] constant(-100) "
                       "z = c64[] constant((0, 0)) ROOT r = (s32[30,9], c64[30,9]) reduce-window(x, y, l, z), "
                       "window={size=30x1 pad=0_29x0_0}, to_apply=largest }"}});
}

// Chunks, parts and what is left over of them; values are small integers, so that sums are exact in any order.
TEST(CumulativeKernels, ChunksAndPartsOnGpus) {
  const auto sum = [](const std::string& type, const std::string& shape, const std::string& window) {
    return fmt::format(
        "add {{ a = {0}[] parameter(0) b = {0}[] parameter(1) ROOT r = {0}[] add(a, b) }}\n"
        "ENTRY e {{ n = s32[{1}] parameter(0) x = {0}[{1}] convert(n) z = {0}[] constant(2) ROOT r = {0}[{1}] "
        "reduce-window(x, z), window={{{2}}}, to_apply=add }}",
        type, shape, window);
  };
  // The last element that is not 5, and how many elements there were: does not commute.
  const auto last = [](const std::string& shape, const std::string& window) {
    return fmt::format(
        R"(last {{ a = s32[] parameter(0) p = s16[] parameter(1) b = s32[] parameter(2) q = s16[] parameter(3)
          five = s32[] constant(5) is = pred[] compare(b, five), direction=EQ s = s32[] select(is, a, b)
          c = s16[] add(p, q) ROOT r = (s32[], s16[]) tuple(s, c) }}
        ENTRY e {{ x = s32[{0}] parameter(0) y = s16[{0}] parameter(1) five = s32[] constant(5) zero = s16[] constant(0)
          ROOT r = (s32[{0}], s16[{0}]) reduce-window(x, y, five, zero), window={{{1}}}, to_apply=last }})",
        shape, window);
  };
  Cases cases;
  for (const int length : {1, 2, 63, 65, 127, 129, 1023, 1024, 1025, 2700}) {
    for (const bool reverse : {false, true}) {
      const std::string pad = reverse ? fmt::format("0_{}", length - 1) : fmt::format("{}_0", length - 1);
      const auto add = [&](const std::string& name, const std::string& text) {
        cases.emplace_back(fmt::format("{}_{}{}", name, length, reverse ? "_reverse" : ""), text);
      };
      add("rows", sum("f32", fmt::format("3,{}", length), fmt::format("size=1x{} pad=0_0x{}", length, pad)));
      add("columns", sum("f32", fmt::format("{},7", length), fmt::format("size={}x1 pad={}x0_0", length, pad)));
      add("last", last(fmt::format("2,{}", length), fmt::format("size=1x{} pad=0_0x{}", length, pad)));
      if (length < 1000)
        add("last_middle", last(fmt::format("2,{},5", length), fmt::format("size=1x{}x1 pad=0_0x{}x0_0", length, pad)));
    }
  }
  cases.emplace_back("many_rows", sum("f64", "1100,70", "size=1x70 pad=0_0x69_0"));
  cases.emplace_back("many_short_rows", sum("bf16", "700,9", "size=1x9 pad=0_0x0_8"));
  cases.emplace_back("rows_of_ones", sum("f32", "3,1200,1,1", "size=1x1200x1x1 pad=0_0x1199_0x0_0x0_0"));
  cases.emplace_back("many_columns", sum("s32", "40,3000", "size=40x1 pad=39_0x0_0"));
  RunOn(GpuSpec(), cases);
}

}  // namespace
}  // namespace hlorun::opencl
