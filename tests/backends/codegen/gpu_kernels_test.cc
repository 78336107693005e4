// What only GPU class has: reductions by shares of groups, transposes by tiles, elements side by side. Against the
// evaluator, on devices of several sizes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/opencl/codegen/emit.h"
#include "hlo/text/parser.h"
#include "tests/backends/codegen/kernel_runner.h"

namespace hlorun::opencl {
namespace {

DeviceSpec SmallGpu(int64_t group, int64_t local_memory) {
  DeviceSpec spec = GpuSpec();
  spec.max_work_group_size = group;
  spec.local_memory_bytes = local_memory;
  return spec;
}

struct NamedText {
  std::string name, text;
};

void RunOnGpus(const std::vector<NamedText>& cases) {
  for (const DeviceSpec& spec : {SmallGpu(1024, 48 << 10), SmallGpu(128, 16 << 10), SmallGpu(50, 512)}) {
    SCOPED_TRACE(fmt::format("groups of {}", spec.max_work_group_size));
    KernelRunner runner(spec);
    for (const NamedText& c : cases) runner.Add(c.name, c.text);
    runner.RunAll();
  }
}

std::string Reduce(const std::string& type, const std::string& from, const std::string& to, const std::string& dims,
                   const std::string& op = "add", const std::string& initial = "3") {
  return fmt::format(
      "m {{ a = {0}[] parameter(0) b = {0}[] parameter(1) ROOT c = {0}[] {4}(a, b) }}\n"
      "ENTRY e {{ x = {0}[{1}] parameter(0) z = {0}[] constant({5}) ROOT r = {0}[{2}] reduce(x, z), dimensions={{{3}}}, "
      "to_apply=m }}",
      type, from, to, dims, op, initial);
}

std::string Softmax(const std::string& wide, const std::string& kept, const std::string& reduced,
                    const std::string& kept_dims) {
  return fmt::format(
      R"(max {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }}
         add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
         f {{ x = f32[{0}] parameter(0) n = f32[] constant(-inf) h = f32[{1}] reduce(x, n), dimensions={{{2}}}, to_apply=max
           hb = f32[{0}] broadcast(h), dimensions={{{3}}} d = f32[{0}] subtract(x, hb) ex = f32[{0}] exponential(d)
           z = f32[] constant(0) s = f32[{1}] reduce(ex, z), dimensions={{{2}}}, to_apply=add
           sb = f32[{0}] broadcast(s), dimensions={{{3}}} q = f32[{0}] divide(ex, sb)
           ROOT t = (f32[{0}], f32[{1}]) tuple(q, s) }}
         ENTRY e {{ x = f32[{0}] parameter(0) ROOT r = (f32[{0}], f32[{1}]) fusion(x), kind=kInput, calls=f }})",
      wide, kept, reduced, kept_dims);
}

// The products' kernels have 32-bit indices: not what an epilogue computes in 64 bits.
TEST(GpuKernels, EpiloguesOf64Bits) {
  const auto product = [](const std::string& rest) {
    return R"(f { x = f64[9,20] parameter(0) y = f64[20,11] parameter(1) w = f64[9,11] parameter(2)
                  d = f64[9,11] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} )" +
           rest +
           R"( } ENTRY e { x = f64[9,20] parameter(0) y = f64[20,11] parameter(1) w = f64[9,11] parameter(2)
               ROOT r = f64[9,11] fusion(x, y, w), kind=kOutput, calls=f })";
  };
  RunOnGpus({
      {"total_order",
       product("c = pred[9,11] compare(d, w), direction=LT, type=TOTALORDER ROOT s = f64[9,11] select(c, d, w)")},
      {"integers", product("i = s64[9,11] iota(), iota_dimension=1 b = s64[] constant(3000000000) "
                           "bb = s64[9,11] broadcast(b), dimensions={} m = s64[9,11] multiply(i, bb) "
                           "c = f64[9,11] convert(m) ROOT s = f64[9,11] add(d, c)")},
  });
}

TEST(GpuKernels, Reductions) {
  RunOnGpus({
      {"short_rows", Reduce("f32", "1000,10", "1000", "1")},
      {"rows_of_16", Reduce("f32", "600,16", "600", "1")},
      {"rows_of_3", Reduce("s32", "700,3", "700", "1")},
      {"rows_in_registers", Reduce("f32", "5,4096", "5", "1")},
      {"rows_in_a_loop", Reduce("f32", "600,9001", "600", "1", "maximum", "-inf")},
      {"rows_in_parts", Reduce("f32", "7,40009", "7", "1")},
      {"all", Reduce("f32", "400,301", "", "0,1")},
      {"one_of_two", Reduce("f32", "1,2", "1", "1")},
      {"outer_and_row", Reduce("f32", "30,7,21,23", "7", "0,2,3")},
      {"columns", Reduce("f32", "3001,130", "130", "0")},
      {"narrow_columns", Reduce("f32", "20001,10", "10", "0")},
      {"two_columns", Reduce("s32", "30000,2", "2", "0")},
      {"few_rows_of_columns", Reduce("f32", "3,1000", "1000", "0")},
      {"middle", Reduce("f32", "9,100,37", "9,37", "1")},
      {"outer_and_middle", Reduce("f32", "50,6,40,10", "6,10", "0,2")},
      {"pred", Reduce("pred", "9,3000", "9", "1", "or", "false")},
      {"bf16", Reduce("bf16", "9,300", "9", "1", "maximum", "-inf")},
      {"f64_columns", Reduce("f64", "900,50", "50", "0")},
      {"complex_rows", Reduce("c64", "9,5000", "9", "1", "add", "(1, 2)")},
      {"complex_columns", Reduce("c64", "5000,9", "9", "0", "add", "(1, 2)")},
  });
}

// The reducer prefers what comes first, so that order shows: argmax of values with many ties; and the last element.
TEST(GpuKernels, OrderedReductions) {
  const auto argmax = [](const std::string& from, const std::string& to, const char* dims, int iota) {
    return fmt::format(
        R"(m {{ a = s8[] parameter(0) i = s32[] parameter(1) b = s8[] parameter(2) j = s32[] parameter(3) p = pred[] compare(a, b), direction=GE
           v = s8[] select(p, a, b) k = s32[] select(p, i, j) ROOT t = (s8[], s32[]) tuple(v, k) }}
         ENTRY e {{ x = s8[{0}] parameter(0) n = s32[{0}] iota(), iota_dimension={3} z = s8[] constant(-128) o = s32[] constant(0)
           ROOT r = (s8[{1}], s32[{1}]) reduce(x, n, z, o), dimensions={{{2}}}, to_apply=m }})",
        from, to, dims, iota);
  };
  const char* last = R"(m { a = f32[] parameter(0) b = f32[] parameter(1) ROOT k = f32[] copy(b) }
         ENTRY e { x = f32[9,1000] parameter(0) z = f32[] constant(5) ROOT r = f32[9] reduce(x, z), dimensions={1}, to_apply=m })";
  // Initial values that are no identities.
  const char* complex =
      R"(m { a = c64[] parameter(0) s = f32[] parameter(1) b = c64[] parameter(2) t = f32[] parameter(3)
           p = c64[] add(a, b) q = f32[] maximum(s, t) ROOT r = (c64[], f32[]) tuple(p, q) }
         ENTRY e { x = c64[300,7] parameter(0) y = f32[300,7] parameter(1) z = c64[] constant((1, 2)) w = f32[] constant(-3)
           ROOT r = (c64[7], f32[7]) reduce(x, y, z, w), dimensions={0}, to_apply=m })";
  RunOnGpus({
      {"short_rows", argmax("300,40", "300", "1", 1)},
      {"ragged_rows", argmax("5,1001", "5", "1", 1)},
      {"long_row", argmax("1,70000", "1", "1", 1)},
      {"columns", argmax("1001,37", "37", "0", 0)},
      {"middle", argmax("3,129,70", "3,70", "1", 1)},
      {"last", last},
      {"complex", complex},
  });
}

TEST(GpuKernels, RowsOfSeveralSweeps) {
  RunOnGpus({
      {"short", Softmax("300,10", "300", "1", "0")},
      {"registers", Softmax("3,5,1000", "3,5", "2", "0,1")},
      {"loop", Softmax("3,9001", "3", "1", "0")},
      {"columns", Softmax("100,37", "37", "0", "1")},
      {"long_columns", Softmax("3000,5", "5", "0", "1")},
      {"middle", Softmax("5,50,37", "5,37", "1", "0,2")},
  });
}

TEST(GpuKernels, Transposes) {
  const auto transpose = [](const char* type, const char* from, const char* to, const char* dims) {
    return fmt::format("ENTRY e {{ x = {0}[{1}] parameter(0) ROOT r = {0}[{2}] transpose(x), dimensions={{{3}}} }}",
                       type, from, to, dims);
  };
  RunOnGpus({
      {"whole", transpose("f32", "64,96", "96,64", "1,0")},
      {"ragged", transpose("f32", "70,45", "45,70", "1,0")},
      {"short", transpose("f32", "17,16", "16,17", "1,0")},
      {"bf16", transpose("bf16", "40,33", "33,40", "1,0")},
      {"s8", transpose("s8", "40,33", "33,40", "1,0")},
      {"pred", transpose("pred", "40,33", "33,40", "1,0")},
      {"c64", transpose("c64", "40,33", "33,40", "1,0")},
      {"images", transpose("f32", "2,7,9,40", "2,40,7,9", "0,3,1,2")},
      {"reversed", transpose("f32", "20,3,40", "40,3,20", "2,1,0")},
      {"fused",
       R"(f { x = f32[40,50] parameter(0) y = f32[50,40] parameter(1) w = f32[40,50] parameter(2) n = f32[40,50] exponential(x)
          t = f32[50,40] transpose(n), dimensions={1,0} u = f32[50,40] transpose(w), dimensions={1,0} a = f32[50,40] add(t, y) ROOT m = f32[50,40] multiply(a, u) }
         ENTRY e { x = f32[40,50] parameter(0) y = f32[50,40] parameter(1) w = f32[40,50] parameter(2) ROOT r = f32[50,40] fusion(x, y, w), kind=kLoop, calls=f })"},
  });
}

TEST(GpuKernels, ElementsSideBySide) {
  RunOnGpus({
      {"whole", "ENTRY e { x = f32[4,512] parameter(0) ROOT r = f32[4,512] negate(x) }"},
      {"rest", "ENTRY e { x = f32[1500] parameter(0) y = f32[1500] parameter(1) ROOT r = f32[1500] add(x, y) }"},
      {"broadcast",
       R"(f { a = f32[30,70] parameter(0) b = f32[70] parameter(1) c = f32[30,70] broadcast(b), dimensions={1} ROOT d = f32[30,70] add(a, c) }
         ENTRY e { x = f32[30,70] parameter(0) y = f32[70] parameter(1) ROOT r = f32[30,70] fusion(x, y), kind=kLoop, calls=f })"},
      {"pad",
       "ENTRY e { x = f32[900] parameter(0) c = f32[] constant(2) ROOT r = f32[1100] pad(x, c), padding=57_143 }"},
      {"divide", "ENTRY e { x = f32[8,33] parameter(0) ROOT r = f32[33,5,8] broadcast(x), dimensions={2,0} }"},
  });
}

// Arrays that are read turned round, so that items read what others have written; counters and start indices besides.
TEST(GpuKernels, RegionsOfOneGroup) {
  const char* region = R"(
    steps { a = f32[200] parameter(0) b = f32[7] parameter(1) i = s32[] parameter(2) t = f32[6,40] parameter(3)
      c = f32[5] constant({1,2,3,4,5}) one = s32[] constant(1) z = s32[] constant(0) i1 = s32[] add(i, one)
      r = f32[200] reverse(a), dimensions={0} r1 = f32[200] tanh(r)
      q = f32[200] reverse(r1), dimensions={0} q1 = f32[200] add(q, r)
      k = f32[7] slice(q1), slice={[3:10]} b1 = f32[7] add(b, k) b2 = f32[7] reverse(b1), dimensions={0}
      k5 = f32[5] slice(b2), slice={[1:6]} c1 = f32[5] subtract(k5, c) c2 = f32[5] reverse(c1), dimensions={0}
      s0 = f32[1] slice(c2), slice={[0:1]} s1 = f32[] reshape(s0) sb = f32[40] broadcast(s1), dimensions={}
      k2 = f32[40] slice(q1), slice={[100:140]} k3 = f32[40] multiply(k2, sb) u = f32[1,40] reshape(k3)
      t1 = f32[6,40] dynamic-update-slice(t, u, i1, z) tt = f32[40,6] transpose(t1), dimensions={1,0}
      ROOT o = (s32[], f32[200], f32[7], f32[5], f32[6,40], f32[40,6]) tuple(i1, q1, b2, c2, t1, tt) }
    ENTRY e { a = f32[200] parameter(0) b = f32[7] parameter(1) i = s32[] parameter(2) t = f32[6,40] parameter(3)
      ROOT r = (s32[], f32[200], f32[7], f32[5], f32[6,40], f32[40,6]) fusion(a, b, i, t), kind=kCustom, calls=steps,
        backend_config={"region":"sequential"} })";
  RunOnGpus({{"straight", region}});
}

TEST(GpuKernels, Concatenations) {
  RunOnGpus({
      {"columns",
       "ENTRY e { x = f32[900,1] parameter(0) y = f32[900,3] parameter(1) ROOT r = f32[900,5] concatenate(x, y, x), "
       "dimensions={1} }"},
      {"middle",
       "ENTRY e { x = s8[40,2,33] parameter(0) y = s8[40,1,33] parameter(1) ROOT r = s8[40,3,33] concatenate(x, y), "
       "dimensions={1} }"},
  });
}

// The source of `text`'s root for a GPU.
std::string SourceOf(const std::string& text, int64_t local_memory = 48 << 10) {
  const auto module = hlo::ParseModule(text);
  const CompileOptions options;
  return EmitInstruction(*module->entry()->root(), {-1}, {SmallGpu(1024, local_memory), options}).front().source;
}

TEST(GpuKernels, RowsAreReadOnceWhereRegistersHoldThem) {
  const auto loads = [](const std::string& source) {
    int count = 0;
    for (size_t at = source.find("in0["); at != std::string::npos; at = source.find("in0[", at + 1)) ++count;
    return count;
  };
  // Of [64, 512]: 16 elements an item.
  EXPECT_EQ(loads(SourceOf(Softmax("2048,512", "2048", "1", "0"))), 16);
}

TEST(GpuKernels, EpiloguesThatReachFarHaveLongIndices) {
  const auto has_long = [](int64_t columns) {
    const std::string source = SourceOf(fmt::format(
        R"(f {{ x = f32[9,20] parameter(0) y = f32[20,11] parameter(1) w = f32[9,{0}] parameter(2)
              d = f32[9,11] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
              s = f32[9,11] slice(w), slice={{[0:9], [5:16]}} ROOT a = f32[9,11] add(d, s) }}
           ENTRY e {{ x = f32[9,20] parameter(0) y = f32[20,11] parameter(1) w = f32[9,{0}] parameter(2)
              ROOT r = f32[9,11] fusion(x, y, w), kind=kOutput, calls=f }})",
        columns));
    return source.find("long") != std::string::npos;
  };
  EXPECT_FALSE(has_long(2000));
  EXPECT_TRUE(has_long(300000000));
}

TEST(GpuKernels, TransposesGoThroughLocalMemory) {
  const std::string text = "ENTRY e { x = f32[64,96] parameter(0) ROOT r = f32[96,64] transpose(x), dimensions={1,0} }";
  EXPECT_NE(SourceOf(text).find("__local"), std::string::npos);
  EXPECT_EQ(SourceOf(text, 1 << 10).find("__local"), std::string::npos) << "no room";
}

}  // namespace
}  // namespace hlorun::opencl
