// Kernels of single ops and fusions, CPU class and GPU class, against the evaluator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <regex>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/runtime/device.h"
#include "hlo/element_type.h"
#include "hlo/text/parser.h"
#include "tests/backends/codegen/kernel_runner.h"

namespace hlorun::opencl {
namespace {

struct NamedText {
  const char* name;
  const char* text;
};

// Runs with both schedules, and in place where the model allows.
void RunCases(const std::vector<NamedText>& cases) {
  struct Mode {
    const char* name;
    DeviceSpec spec;
    bool in_place;
  };
  for (const Mode& mode :
       {Mode{"cpu", CpuSpec(), false}, Mode{"gpu", GpuSpec(), false}, Mode{"in place", CpuSpec(), true}}) {
    SCOPED_TRACE(mode.name);
    KernelRunner runner(mode.spec);
    for (const NamedText& c : cases) runner.Add(c.name, c.text);
    runner.RunAll(mode.in_place);
  }
}

// Rows of bf16 by pairs (codegen/bf16_pairs.h): whole words, words that reach back, rows too short for them, what is
// kept between sweeps, divisors that a row shares, and extremes, which have no sums.
TEST(FusionKernels, RowsOfBf16Pairs) {
  DeviceSpec spec = CpuSpec();
  spec.bf16_dot = ListDevices().at(0)->spec().bf16_dot;
  if (spec.bf16_dot.empty()) GTEST_SKIP() << "no pairs of bf16 here: not measured";
  KernelRunner runner(spec);
  for (const int64_t length : {20, 32, 64, 100, 133, 224, 384, 1024, 1100}) {
    const std::string row = fmt::format("bf16[7,{}]", length), wide = fmt::format("f32[7,{}]", length);
    const std::string head = R"(add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
        top { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] maximum(a, b) } )";
    const std::string call = fmt::format("ENTRY e {{ x = {0} parameter(0) ROOT r = ", row);
    runner.Add(
        fmt::format("sum{}", length),
        head +
            fmt::format(
                "f {{ x = {0} parameter(0) w = {1} convert(x) z = f32[] constant(0) s = f32[7] reduce(w, z), dimensions={{1}}, to_apply=add ROOT c = bf16[7] convert(s) }} ",
                row, wide) +
            call + "bf16[7] fusion(x), kind=kInput, calls=f }");
    runner.Add(
        fmt::format("softmax{}", length),
        head +
            fmt::format(
                R"(f {{ x = {0} parameter(0) n = bf16[] constant(-inf) h = bf16[7] reduce(x, n), dimensions={{1}}, to_apply=top
        hb = {0} broadcast(h), dimensions={{0}} d = {0} subtract(x, hb) ex = {0} exponential(d) w = {1} convert(ex) z = f32[] constant(0)
        s = f32[7] reduce(w, z), dimensions={{1}}, to_apply=add c = bf16[7] convert(s) sb = {0} broadcast(c), dimensions={{0}} ROOT q = {0} divide(ex, sb) }} )",
                row, wide) +
            call + row + " fusion(x), kind=kInput, calls=f }");
    runner.Add(
        fmt::format("norm{}", length),
        head +
            fmt::format(
                R"(f {{ x = {0} parameter(0) w = {1} convert(x) z = f32[] constant(0) s = f32[7] reduce(w, z), dimensions={{1}}, to_apply=add
        c = bf16[7] convert(s) l = bf16[] constant({2}) lb = bf16[7] broadcast(l), dimensions={{}} m = bf16[7] divide(c, lb) mb = {0} broadcast(m), dimensions={{0}}
        d = {0} subtract(x, mb) q = {0} multiply(d, d) v = {1} convert(q) t = f32[7] reduce(v, z), dimensions={{1}}, to_apply=add u = bf16[7] convert(t)
        r = bf16[7] sqrt(u) rb = {0} broadcast(r), dimensions={{0}} o = {0} divide(d, rb) k = {0} negate(x) ROOT y = ({0}, {0}, bf16[7]) tuple(o, k, r) }} )",
                row, wide, length) +
            call + fmt::format("({0}, {0}, bf16[7]) fusion(x), kind=kInput, calls=f }}", row));
  }
  runner.RunAll();
}

std::string Filled(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  }
  return text;
}

// Short rows of which there are many go two at a time (codegen/jam.h): extremes, what is kept, several results; whole
// vectors and not, the longest that do so, and numbers of rows that are odd, which do not.
TEST(FusionKernels, TwoRowsAtATime) {
  constexpr const char* kSoftmax = R"(add { a = TYPE[] parameter(0) b = TYPE[] parameter(1) ROOT c = TYPE[] add(a, b) }
    top { a = TYPE[] parameter(0) b = TYPE[] parameter(1) ROOT c = TYPE[] maximum(a, b) }
    f { x = TYPE[SIZES] parameter(0) n = TYPE[] constant(-inf) h = TYPE[ROWS] reduce(x, n), dimensions={1}, to_apply=top
      hb = TYPE[SIZES] broadcast(h), dimensions={0} d = TYPE[SIZES] subtract(x, hb) ex = TYPE[SIZES] exponential(d) z = TYPE[] constant(0)
      s = TYPE[ROWS] reduce(ex, z), dimensions={1}, to_apply=add sb = TYPE[SIZES] broadcast(s), dimensions={0} ROOT q = TYPE[SIZES] divide(ex, sb) }
    ENTRY e { x = TYPE[SIZES] parameter(0) ROOT r = TYPE[SIZES] fusion(x), kind=kInput, calls=f })";
  constexpr const char* kNorm = R"(add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    f { x = TYPE[SIZES] parameter(0) w = f32[SIZES] convert(x) z = f32[] constant(0) s = f32[ROWS] reduce(w, z), dimensions={1}, to_apply=add
      c = f32[] constant(LENGTH) cb = f32[ROWS] broadcast(c), dimensions={} m = f32[ROWS] divide(s, cb) mb = f32[SIZES] broadcast(m), dimensions={0} d = f32[SIZES] subtract(w, mb) q = f32[SIZES] multiply(d, d)
      t = f32[ROWS] reduce(q, z), dimensions={1}, to_apply=add u = f32[ROWS] add(t, cb) v = f32[ROWS] rsqrt(u) tb = f32[SIZES] broadcast(v), dimensions={0}
      o = f32[SIZES] multiply(d, tb)
      y = TYPE[SIZES] convert(o) ROOT out = (TYPE[SIZES], f32[ROWS]) tuple(y, t) }
    ENTRY e { x = TYPE[SIZES] parameter(0) ROOT r = (TYPE[SIZES], f32[ROWS]) fusion(x), kind=kInput, calls=f })";
  for (const bool in_place : {false, true}) {
    DeviceSpec spec = CpuSpec();
    spec.bf16_dot = ListDevices().at(0)->spec().bf16_dot;
    KernelRunner runner(spec);
    for (const char* type : {"f32", "bf16"}) {
      for (const int64_t rows : {128, 129, 134}) {
        for (const int64_t length : {32, 45, 197, 512, 1024}) {
          const std::string number = std::to_string(rows), sizes = fmt::format("{},{}", rows, length);
          for (const auto& [name, text] : {std::pair("softmax", kSoftmax), std::pair("norm", kNorm)}) {
            runner.Add(
                fmt::format("{}_{}_{}", name, type, sizes),
                Filled(text, {{"TYPE", type}, {"SIZES", sizes}, {"ROWS", number}, {"LENGTH", std::to_string(length)}}));
          }
        }
      }
    }
    runner.RunAll(in_place);
  }
}

// Rows [c, h, w] that are biased by some of their dimensions (codegen/written_out.h): no whole vectors of any, the last
// or all before it, two at a time and alone, several sweeps and one, and what a row must not be without: a bias that
// needs the row's own sum.
TEST(FusionKernels, RowsBiasedByPartsOfThem) {
  constexpr const char* kSoftmax = R"(add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    top { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
    f { x = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] parameter(0) y = TYPE[ROWS,CHANNELS,WIDTH] parameter(1) z = TYPE[HEIGHT] parameter(2)
      yb = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] broadcast(y), dimensions={0,1,3} zn = TYPE[HEIGHT] negate(z) zb = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] broadcast(zn), dimensions={2}
      xy = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] add(x, yb) xyz = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] add(xy, zb) w = f32[ROWS,CHANNELS,HEIGHT,WIDTH] convert(xyz) n = f32[] constant(-inf) o = f32[] constant(0)
      m = f32[ROWS] reduce(w, n), dimensions={1,2,3}, to_apply=top mb = f32[ROWS,CHANNELS,HEIGHT,WIDTH] broadcast(m), dimensions={0}
      d = f32[ROWS,CHANNELS,HEIGHT,WIDTH] subtract(w, mb) ex = f32[ROWS,CHANNELS,HEIGHT,WIDTH] exponential(d)
      s = f32[ROWS] reduce(ex, o), dimensions={1,2,3}, to_apply=add sb = f32[ROWS,CHANNELS,HEIGHT,WIDTH] broadcast(s), dimensions={0}
      sh = f32[ROWS,CHANNELS] broadcast(s), dimensions={0} st = f32[ROWS,CHANNELS,HEIGHT,WIDTH] broadcast(sh), dimensions={0,1}
      q = f32[ROWS,CHANNELS,HEIGHT,WIDTH] divide(ex, sb) t = f32[ROWS,CHANNELS,HEIGHT,WIDTH] add(q, st) ROOT r = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] convert(t) }
    ENTRY e { x = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] parameter(0) y = TYPE[ROWS,CHANNELS,WIDTH] parameter(1) z = TYPE[HEIGHT] parameter(2)
      ROOT r = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] fusion(x, y, z), kind=kInput, calls=f })";
  constexpr const char* kSum = R"(add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    f { x = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] parameter(0) y = TYPE[ROWS,CHANNELS,WIDTH] parameter(1) z = TYPE[HEIGHT] parameter(2)
      yb = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] broadcast(y), dimensions={0,1,3} zb = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] broadcast(z), dimensions={2}
      xy = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] multiply(x, yb) xyz = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] add(xy, zb) w = f32[ROWS,CHANNELS,HEIGHT,WIDTH] convert(xyz) o = f32[] constant(0)
      ROOT s = f32[ROWS] reduce(w, o), dimensions={1,2,3}, to_apply=add }
    ENTRY e { x = TYPE[ROWS,CHANNELS,HEIGHT,WIDTH] parameter(0) y = TYPE[ROWS,CHANNELS,WIDTH] parameter(1) z = TYPE[HEIGHT] parameter(2)
      ROOT r = f32[ROWS] fusion(x, y, z), kind=kInput, calls=f })";
  DeviceSpec spec = CpuSpec();
  spec.bf16_dot = ListDevices().at(0)->spec().bf16_dot;
  KernelRunner runner(spec);
  for (const char* type : {"f32", "bf16"}) {
    for (const auto& [c, h, w] :
         {std::array{1, 14, 14}, {1, 7, 7}, {3, 5, 6}, {2, 3, 32}, {2, 16, 1}, {1, 3, 29}, {5, 1, 4}}) {
      for (const int64_t rows : {5, 128}) {
        for (const auto& [name, text] : {std::pair("softmax", kSoftmax), std::pair("sum", kSum)}) {
          runner.Add(fmt::format("{}_{}_{}x{}x{}x{}", name, type, rows, c, h, w),
                     Filled(text, {{"TYPE", type},
                                   {"ROWS", std::to_string(rows)},
                                   {"CHANNELS", std::to_string(c)},
                                   {"HEIGHT", std::to_string(h)},
                                   {"WIDTH", std::to_string(w)}}));
        }
      }
    }
  }
  // Of another row than the one that is walked, a bias and what is kept between sweeps are not what was written.
  runner.Add("other_rows", R"(add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    f { x = f32[40,14,14] parameter(0) y = f32[40,14] parameter(1) b = f32[40,14,14] broadcast(y), dimensions={0,2}
      v = f32[40,14,14] reverse(b), dimensions={0} e = f32[40,14,14] exponential(x) h = f32[40,14,14] reverse(e), dimensions={0}
      t = f32[40,14,14] add(e, b) u = f32[40,14,14] multiply(t, v) w = f32[40,14,14] add(u, h) o = f32[] constant(0)
      s = f32[40] reduce(w, o), dimensions={1,2}, to_apply=add sb = f32[40,14,14] broadcast(s), dimensions={0}
      ROOT r = f32[40,14,14] divide(w, sb) }
    ENTRY e { x = f32[40,14,14] parameter(0) y = f32[40,14] parameter(1) ROOT r = f32[40,14,14] fusion(x, y), kind=kInput, calls=f })");
  runner.RunAll();
}

// Steps that go through one block after another (passes/fusion/blocks.h): columns that are no whole vectors and rows
// that are no multiple of what is added together, two dimensions that stay, steps that are results too, and in place.
TEST(FusionKernels, Blocks) {
  const auto norm = [](const std::string& type, int64_t rows, int64_t columns, const std::string& opcode,
                       bool keeps_sums) {
    const std::string x = fmt::format("{}[5,{},{}]", type, rows, columns),
                      small = fmt::format("{}[5,{}]", type, columns);
    const std::string result = keeps_sums ? fmt::format("({0}, {1}, {1})", x, small) : x;
    return fmt::format(R"(f {{ a = {0}[] parameter(0) b = {0}[] parameter(1) ROOT c = {0}[] {3}(a, b) }}
        first {{ x = {1} parameter(0) z = {0}[] constant(0.5) ROOT s = {2} reduce(x, z), dimensions={{1}}, to_apply=f }}
        second {{ s = {2} parameter(0) x = {1} parameter(1) w = {1} broadcast(s), dimensions={{0,2}} d = {1} subtract(x, w)
          q = {1} abs(d) z = {0}[] constant(0) r = {2} reduce(q, z), dimensions={{1}}, to_apply=f ROOT n = {2} negate(r) }}
        third {{ x = {1} parameter(0) s = {2} parameter(1) r = {2} parameter(2) w = {1} broadcast(s), dimensions={{0,2}}
          v = {1} broadcast(r), dimensions={{0,2}} d = {1} subtract(x, w) ROOT y = {1} add(d, v) }}
        steps {{ x = {1} parameter(0) s = {2} fusion(x), kind=kInput, calls=first
          h = {2} abs(s) t = {2} fusion(h, x), kind=kInput, calls=second
          {4}y = {1} fusion(x, h, t), kind=kLoop, calls=third {5} }}
        ENTRY e {{ x = {1} parameter(0) ROOT r = {6} fusion(x), kind=kCustom, calls=steps, backend_config={{"region":"blocks"}} }})",
                       type, x, small, opcode, keeps_sums ? "" : "ROOT ",
                       keeps_sums ? fmt::format("ROOT o = {} tuple(y, s, t)", result) : "", result);
  };
  std::vector<NamedText> cases;
  std::vector<std::string> texts;
  texts.reserve(16);
  for (const bool keeps_sums : {false, true}) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{8, 32}, {7, 19}, {3, 2}, {18, 100}}) {
      texts.push_back(norm("f32", rows, columns, "add", keeps_sums));
      cases.push_back({"sums", texts.back().c_str()});
    }
    texts.push_back(norm("bf16", 9, 40, "maximum", keeps_sums));
    cases.push_back({"largest of bf16", texts.back().c_str()});
  }
  cases.push_back({"groups", R"(f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
        total { x = f32[4,9,3,20] parameter(0) z = f32[] constant(0) ROOT s = f32[4,3,20] reduce(x, z), dimensions={1}, to_apply=f }
        group { s = f32[4,3,20] parameter(0) z = f32[] constant(0) ROOT g = f32[4,3] reduce(s, z), dimensions={2}, to_apply=f }
        last { x = f32[4,3,3,3,20] parameter(0) g = f32[4,3] parameter(1) k = f32[3,20] parameter(2)
          w = f32[4,3,3,3,20] broadcast(g), dimensions={0,3} v = f32[4,3,3,3,20] broadcast(k), dimensions={3,4}
          p = f32[4,3,3,3,20] multiply(x, v) ROOT y = f32[4,3,3,3,20] subtract(p, w) }
        steps { x = f32[4,9,3,20] parameter(0) u = f32[4,3,3,3,20] parameter(1) k = f32[3,20] parameter(2)
          s = f32[4,3,20] fusion(x), kind=kInput, calls=total b = f32[4,60] bitcast(s) c = f32[4,3,20] bitcast(b)
          g = f32[4,3] fusion(c), kind=kInput, calls=group
          ROOT y = f32[4,3,3,3,20] fusion(u, g, k), kind=kLoop, calls=last }
        ENTRY e { x = f32[4,9,3,20] parameter(0) u = f32[4,3,3,3,20] bitcast(x) k = f32[3,20] parameter(1)
          ROOT r = f32[4,3,3,3,20] fusion(x, u, k), kind=kCustom, calls=steps, backend_config={"region":"blocks"} })"});
  // A number for each block, and results that are other views of what steps have made.
  cases.push_back({"numbers", R"(f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
        total { x = f32[6,5,20] parameter(0) z = f32[] constant(0) ROOT s = f32[6,20] reduce(x, z), dimensions={1}, to_apply=f }
        one { s = f32[6,20] parameter(0) z = f32[] constant(0) g = f32[6] reduce(s, z), dimensions={1}, to_apply=f ROOT n = f32[6] abs(g) }
        last { x = f32[6,5,20] parameter(0) n = f32[6] parameter(1) w = f32[6,5,20] broadcast(n), dimensions={0} ROOT y = f32[6,5,20] subtract(x, w) }
        steps { x = f32[6,5,20] parameter(0) s = f32[6,20] fusion(x), kind=kInput, calls=total v = f32[6,4,5] bitcast(s)
          c = f32[6,20] bitcast(v) n = f32[6] fusion(c), kind=kInput, calls=one m = f32[6] negate(n)
          y = f32[6,5,20] fusion(x, n), kind=kLoop, calls=last ROOT t = (f32[6,5,20], f32[6,4,5], f32[6]) tuple(y, v, m) }
        ENTRY e { x = f32[6,5,20] parameter(0)
          ROOT r = (f32[6,5,20], f32[6,4,5], f32[6]) fusion(x), kind=kCustom, calls=steps, backend_config={"region":"blocks"} })"});
  // Kernels of GPU class are not made of blocks.
  for (const bool in_place : {false, true}) {
    KernelRunner runner(CpuSpec());
    for (const NamedText& c : cases) runner.Add(c.name, c.text);
    runner.RunAll(in_place);
  }
}

TEST(FusionKernels, LoopsAndIndexOps) {
  RunCases({
      {"add", "ENTRY e { x = f32[37,19] parameter(0) y = f32[37,19] parameter(1) ROOT r = f32[37,19] add(x, y) }"},
      {"transpose", "ENTRY e { x = f32[33,20] parameter(0) ROOT r = f32[20,33] transpose(x), dimensions={1,0} }"},
      {"transpose3",
       "ENTRY e { x = f32[3,17,40] parameter(0) ROOT r = f32[40,3,17] transpose(x), dimensions={2,0,1} }"},
      {"broadcast", "ENTRY e { x = f32[19] parameter(0) ROOT r = f32[5,19,7] broadcast(x), dimensions={1} }"},
      {"slice", "ENTRY e { x = f32[40,50] parameter(0) ROOT r = f32[10,24] slice(x), slice={[3:23:2], [1:49:2]} }"},
      {"reverse", "ENTRY e { x = s32[7,33] parameter(0) ROOT r = s32[7,33] reverse(x), dimensions={0,1} }"},
      {"pad",
       "ENTRY e { x = f32[5,21] parameter(0) c = f32[] constant(2.5) ROOT r = f32[10,45] pad(x, c), padding=2_3x1_3_1 }"},
      {"pad_negative",
       "ENTRY e { x = f32[5,21] parameter(0) c = f32[] constant(2.5) ROOT r = f32[4,20] pad(x, c), padding=-1_0x2_-3 }"},
      {"concatenate",
       "ENTRY e { x = f32[5,21] parameter(0) y = f32[5,3] parameter(1) z = f32[5,40] parameter(2) ROOT r = f32[5,64] concatenate(x, y, z), dimensions={1} }"},
      {"concatenate_runs",
       R"(f { x = f32[6,9,9,3] parameter(0) a = f32[6,4,4,3] slice(x), slice={[0:6],[0:7:2],[0:7:2],[0:3]} b = f32[6,4,4,3] slice(x), slice={[0:6],[1:8:2],[2:9:2],[0:3]}
           c = f32[6,4,4,3] negate(a) ROOT r = f32[6,4,4,9] concatenate(a, b, c), dimensions={3} }
         ENTRY e { x = f32[6,9,9,3] parameter(0) ROOT r = f32[6,4,4,9] fusion(x), kind=kLoop, calls=f })"},
      {"concatenate_vectors",
       "ENTRY e { x = f32[5,32] parameter(0) y = f32[5,16] parameter(1) z = f32[5,16] parameter(2) w = f32[5,7] parameter(3) ROOT r = f32[5,71] concatenate(x, y, z, w), dimensions={1} }"},
      {"concatenate_vectors_alone",
       "ENTRY e { x = f32[5,64] parameter(0) y = f32[5,16] parameter(1) z = f32[5,48] parameter(2) ROOT r = f32[5,128] concatenate(x, y, z), dimensions={1} }"},
      // Short rows of functions go across places, in tiles of which the last reaches back.
      {"concatenate_functions",
       R"(f { x = f32[4,90,3] parameter(0) y = f32[4,90,20] parameter(1) s = f32[4,90,3] sine(x) c = f32[4,90,3] cosine(x)
           ROOT r = f32[4,90,29] concatenate(s, y, c, x), dimensions={2} }
         ENTRY e { x = f32[4,90,3] parameter(0) y = f32[4,90,20] parameter(1) ROOT r = f32[4,90,29] fusion(x, y), kind=kLoop, calls=f })"},
      {"concatenate_functions_middle",
       R"(f { x = f32[70,3,4] parameter(0) y = f32[70,2,4] parameter(1) h = f32[70,3,4] tanh(x) n = f32[70,3,4] negate(h)
           ROOT r = f32[70,5,4] concatenate(n, y), dimensions={1} }
         ENTRY e { x = f32[70,3,4] parameter(0) y = f32[70,2,4] parameter(1) ROOT r = f32[70,5,4] fusion(x, y), kind=kLoop, calls=f })"},
      {"concatenate_functions_of_few_places",
       R"(f { x = f32[40,7,3] parameter(0) e = f32[40,7,3] exponential(x) ROOT r = f32[40,7,6] concatenate(e, x), dimensions={2} }
         ENTRY e { x = f32[40,7,3] parameter(0) ROOT r = f32[40,7,6] fusion(x), kind=kLoop, calls=f })"},
      {"concatenate_middle",
       "ENTRY e { x = f32[20,3,17] parameter(0) y = f32[20,2,17] parameter(1) ROOT r = f32[20,5,17] concatenate(x, y), dimensions={1} }"},
      {"concatenate_transposed",
       R"(f { x = f32[3,20,17] parameter(0) y = f32[20,17,2] parameter(1) a = f32[20,17,3] transpose(x), dimensions={1,2,0} ROOT r = f32[20,17,5] concatenate(a, y), dimensions={2} }
         ENTRY e { x = f32[3,20,17] parameter(0) y = f32[20,17,2] parameter(1) ROOT r = f32[20,17,5] fusion(x, y), kind=kLoop, calls=f })"},
      {"iota", "ENTRY e { ROOT r = bf16[3,50] iota(), iota_dimension=1 }"},
      {"dynamic_slice",
       "ENTRY e { x = f32[9,50] parameter(0) i = s32[] parameter(1) j = s64[] parameter(2) ROOT r = f32[4,33] dynamic-slice(x, i, j), dynamic_slice_sizes={4,33} }"},
      {"dynamic_update_slice",
       "ENTRY e { x = f32[9,50] parameter(0) u = f32[4,33] parameter(1) i = s32[] parameter(2) j = u8[] parameter(3) ROOT r = f32[9,50] dynamic-update-slice(x, u, i, j) }"},
      {"gather",
       "ENTRY e { x = f32[20,35] parameter(0) i = s32[6] parameter(1) ROOT r = f32[6,35] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,35} }"},
      {"gather2",
       "ENTRY e { x = f32[20,35,4] parameter(0) i = s32[2,6] parameter(1) ROOT r = f32[6,3,4] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={1,0}, index_vector_dim=0, slice_sizes={1,3,4} }"},
      {"reshape",
       "ENTRY e { x = f32[6,35] parameter(0) y = f32[6,35] parameter(1) t = f32[35,6] transpose(x), dimensions={1,0} u = f32[10,21] reshape(t) ROOT r = f32[10,21] negate(u) }"},
      {"bitcast_convert", "ENTRY e { x = f32[70] parameter(0) ROOT r = u32[70] bitcast-convert(x) }"},
      {"bitcast_convert_narrow", "ENTRY e { x = u32[70] parameter(0) ROOT r = u8[70,4] bitcast-convert(x) }"},
      {"bitcast_convert_wide", "ENTRY e { x = u8[70,4] parameter(0) ROOT r = s32[70] bitcast-convert(x) }"},
      {"bitcast_convert_bf16", "ENTRY e { x = bf16[70] parameter(0) ROOT r = u16[70] bitcast-convert(x) }"},
      {"scalar", "ENTRY e { x = f32[] parameter(0) ROOT r = f32[] exponential(x) }"},
      {"clamp",
       "ENTRY e { l = f32[] parameter(0) x = f32[99] parameter(1) h = f32[] constant(0.5) ROOT r = f32[99] clamp(l, x, h) }"},
      {"select_scalar",
       "ENTRY e { p = pred[] parameter(0) x = f32[99] parameter(1) y = f32[99] parameter(2) ROOT r = f32[99] select(p, x, y) }"},
      {"map",
       R"(f { a = f32[] parameter(0) b = f32[] parameter(1) s = f32[] subtract(a, b) ROOT m = f32[] multiply(s, a) }
         ENTRY e { x = f32[77] parameter(0) y = f32[77] parameter(1) ROOT r = f32[77] map(x, y), dimensions={0}, to_apply=f })"},
      {"fusion",
       R"(f { a = f32[8,128] parameter(0) b = f32[128] parameter(1) c = f32[8,128] broadcast(b), dimensions={1} d = f32[8,128] multiply(a, c)
           e = f32[8,128] tanh(d) k = f32[] constant(1) l = f32[8,128] broadcast(k), dimensions={} ROOT g = f32[8,128] add(e, l) }
         ENTRY e { x = f32[8,128] parameter(0) y = f32[128] parameter(1) ROOT r = f32[8,128] fusion(x, y), kind=kLoop, calls=f })"},
      {"fusion_two_outputs",
       R"(f { a = f32[9,31] parameter(0) b = bf16[9,31] convert(a) c = f32[279] reshape(a) d = f32[279] negate(c) ROOT t = (bf16[9,31], f32[279]) tuple(b, d) }
         ENTRY e { x = f32[9,31] parameter(0) ROOT r = (bf16[9,31], f32[279]) fusion(x), kind=kLoop, calls=f })"},
      {"concat_of_expressions",
       R"(f { a = f32[4,30] parameter(0) n = f32[4,30] negate(a) s = f32[4,10] slice(a), slice={[0:4],[5:15]} q = f32[4,10] multiply(s, s) ROOT c = f32[4,40] concatenate(n, q), dimensions={1} }
         ENTRY e { x = f32[4,30] parameter(0) ROOT r = f32[4,40] fusion(x), kind=kLoop, calls=f })"},
      {"large",
       "ENTRY e { x = f32[1000,333] parameter(0) y = f32[1000,333] parameter(1) ROOT r = f32[1000,333] multiply(x, y) }"},
      {"large_ragged", "ENTRY e { x = f32[333337] parameter(0) ROOT r = f32[333337] negate(x) }"},
  });
}

constexpr const char* kSum = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n";

TEST(FusionKernels, Reductions) {
  const std::string sum = kSum;
  const auto with_sum = [&](const char* text) { return sum + text; };
  std::vector<std::pair<std::string, std::string>> cases = {
      {"row",
       with_sum(
           "ENTRY e { x = f32[7,100] parameter(0) z = f32[] constant(3) ROOT r = f32[7] reduce(x, z), dimensions={1}, to_apply=add }")},
      {"long_row",
       with_sum(
           "ENTRY e { x = f32[3,2049] parameter(0) z = f32[] constant(3) ROOT r = f32[3] reduce(x, z), dimensions={1}, to_apply=add }")},
      {"column",
       with_sum(
           "ENTRY e { x = f32[70,33] parameter(0) z = f32[] parameter(1) ROOT r = f32[33] reduce(x, z), dimensions={0}, to_apply=add }")},
      {"middle",
       with_sum(
           "ENTRY e { x = f32[5,30,33] parameter(0) z = f32[] parameter(1) ROOT r = f32[5,33] reduce(x, z), dimensions={1}, to_apply=add }")},
      {"outer_and_minor",
       with_sum(
           "ENTRY e { x = f32[6,5,40] parameter(0) z = f32[] parameter(1) ROOT r = f32[5] reduce(x, z), dimensions={0,2}, to_apply=add }")},
      {"all",
       with_sum(
           "ENTRY e { x = f32[31,5,40] parameter(0) z = f32[] parameter(1) ROOT r = f32[] reduce(x, z), dimensions={0,1,2}, to_apply=add }")},
      {"all_large",
       with_sum(
           "ENTRY e { x = f32[300,777] parameter(0) z = f32[] parameter(1) ROOT r = f32[] reduce(x, z), dimensions={0,1}, to_apply=add }")},
      {"rows_split_outer",
       with_sum(
           "ENTRY e { x = f32[64,3,1000] parameter(0) z = f32[] parameter(1) ROOT r = f32[3] reduce(x, z), dimensions={0,2}, to_apply=add }")},
      {"tiny_rows",
       with_sum(
           "ENTRY e { x = f32[50,3] parameter(0) z = f32[] parameter(1) ROOT r = f32[50] reduce(x, z), dimensions={1}, to_apply=add }")},
      {"max_s8", R"(m { a = s8[] parameter(0) b = s8[] parameter(1) ROOT c = s8[] maximum(a, b) }
         ENTRY e { x = s8[9,77] parameter(0) z = s8[] constant(-128) ROOT r = s8[9] reduce(x, z), dimensions={1}, to_apply=m })"},
      {"max_with_nan", R"(m { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
         f { x = f32[30,70] parameter(0) o = f32[] constant(2) ob = f32[30,70] broadcast(o), dimensions={} y = f32[30,70] add(x, ob) l = f32[30,70] log(y)
           z = f32[] constant(-inf) ROOT r = f32[30] reduce(l, z), dimensions={1}, to_apply=m }
         ENTRY e { x = f32[30,70] parameter(0) ROOT r = f32[30] fusion(x), kind=kInput, calls=f })"},
      // 1 / min is -inf where a row has a -0.
      {"min_of_zeros", R"(m { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] minimum(a, b) }
         f { x = f32[30,600] parameter(0) o = f32[] constant(3) ob = f32[30,600] broadcast(o), dimensions={} y = f32[30,600] add(x, ob)
           n = f32[] constant(0) nb = f32[30,600] broadcast(n), dimensions={} zeros = f32[30,600] multiply(y, nb)
           z = f32[] constant(inf) s = f32[30] reduce(zeros, z), dimensions={1}, to_apply=m u = f32[] constant(1) ub = f32[30] broadcast(u), dimensions={}
           ROOT r = f32[30] divide(ub, s) }
         ENTRY e { x = f32[30,600] parameter(0) ROOT r = f32[30] fusion(x), kind=kInput, calls=f })"},
      {"and_pred", R"(m { a = pred[] parameter(0) b = pred[] parameter(1) ROOT c = pred[] and(a, b) }
         ENTRY e { x = pred[9,77] parameter(0) z = pred[] constant(true) ROOT r = pred[9] reduce(x, z), dimensions={1}, to_apply=m })"},
      {"sum_c64", R"(m { a = c64[] parameter(0) b = c64[] parameter(1) ROOT c = c64[] add(a, b) }
         ENTRY e { x = c64[9,77] parameter(0) z = c64[] constant((1, 2)) ROOT r = c64[9] reduce(x, z), dimensions={1}, to_apply=m })"},
      {"sum_f64", R"(m { a = f64[] parameter(0) b = f64[] parameter(1) ROOT c = f64[] add(a, b) }
         ENTRY e { x = f64[9,77] parameter(0) z = f64[] constant(0) ROOT r = f64[9] reduce(x, z), dimensions={1}, to_apply=m })"},
      {"argmax",
       R"(m { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3) p = pred[] compare(a, b), direction=GE
           v = f32[] select(p, a, b) k = s32[] select(p, i, j) ROOT t = (f32[], s32[]) tuple(v, k) }
         ENTRY e { x = f32[9,77] parameter(0) n = s32[9,77] iota(), iota_dimension=1 z = f32[] constant(-inf) o = s32[] constant(0)
           ROOT r = (f32[9], s32[9]) reduce(x, n, z, o), dimensions={1}, to_apply=m })"},
      {"softmax", with_sum(R"(m { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
         f { x = f32[2,6,100] parameter(0) n = f32[] constant(-inf) h = f32[2,6] reduce(x, n), dimensions={2}, to_apply=m
           hb = f32[2,6,100] broadcast(h), dimensions={0,1} d = f32[2,6,100] subtract(x, hb) ex = f32[2,6,100] exponential(d) z = f32[] constant(0)
           s = f32[2,6] reduce(ex, z), dimensions={2}, to_apply=add sb = f32[2,6,100] broadcast(s), dimensions={0,1} ROOT q = f32[2,6,100] divide(ex, sb) }
         ENTRY e { x = f32[2,6,100] parameter(0) ROOT r = f32[2,6,100] fusion(x), kind=kInput, calls=f })")},
      // exp is needed by two sweeps and kept; rows are no multiple of a vector.
      {"softmax_bf16", with_sum(R"(m { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] maximum(a, b) }
         f { x = bf16[3,5,133] parameter(0) n = bf16[] constant(-inf) h = bf16[3,5] reduce(x, n), dimensions={2}, to_apply=m
           hb = bf16[3,5,133] broadcast(h), dimensions={0,1} d = bf16[3,5,133] subtract(x, hb) ex = bf16[3,5,133] exponential(d)
           w = f32[3,5,133] convert(ex) z = f32[] constant(0) s = f32[3,5] reduce(w, z), dimensions={2}, to_apply=add c = bf16[3,5] convert(s)
           sb = bf16[3,5,133] broadcast(c), dimensions={0,1} ROOT q = bf16[3,5,133] divide(ex, sb) }
         ENTRY e { x = bf16[3,5,133] parameter(0) ROOT r = bf16[3,5,133] fusion(x), kind=kInput, calls=f })")},
      {"two_kept",
       with_sum(
           R"(f { x = f32[6,75] parameter(0) z = f32[] constant(0) t = f32[6,75] tanh(x) e1 = f32[6,75] exponential(t)
           s = f32[6] reduce(e1, z), dimensions={1}, to_apply=add sb = f32[6,75] broadcast(s), dimensions={0} d = f32[6,75] divide(t, sb)
           e2 = f32[6,75] exponential(d) u = f32[6] reduce(e2, z), dimensions={1}, to_apply=add ub = f32[6,75] broadcast(u), dimensions={0}
           v = f32[6,75] multiply(e2, ub) ROOT q = f32[6,75] add(v, e1) }
         ENTRY e { x = f32[6,75] parameter(0) ROOT r = f32[6,75] fusion(x), kind=kInput, calls=f })")},
      {"mean_and_square",
       with_sum(
           R"(f { x = f32[12,200] parameter(0) z = f32[] constant(0) s = f32[12] reduce(x, z), dimensions={1}, to_apply=add
           q = f32[12,200] multiply(x, x) t = f32[12] reduce(q, z), dimensions={1}, to_apply=add k = f32[] constant(0.005) kb = f32[12] broadcast(k), dimensions={}
           m = f32[12] multiply(s, kb) ROOT o = (f32[12], f32[12], f32[12]) tuple(m, t, s) }
         ENTRY e { x = f32[12,200] parameter(0) ROOT r = (f32[12], f32[12], f32[12]) fusion(x), kind=kInput, calls=f })")},
      {"columns_split",
       with_sum(
           "ENTRY e { x = f32[3001,40] parameter(0) z = f32[] parameter(1) ROOT r = f32[40] reduce(x, z), dimensions={0}, to_apply=add }")},
      {"columns_of_images",
       with_sum(
           R"(f { x = f32[4,30,31,33] parameter(0) z = f32[] constant(1) q = f32[4,30,31,33] multiply(x, x) s = f32[33] reduce(x, z), dimensions={0,1,2}, to_apply=add
           t = f32[33] reduce(q, z), dimensions={0,1,2}, to_apply=add ROOT o = (f32[33], f32[33]) tuple(s, t) }
         ENTRY e { x = f32[4,30,31,33] parameter(0) ROOT r = (f32[33], f32[33]) fusion(x), kind=kInput, calls=f })")},
      {"columns_wide",
       with_sum(
           "ENTRY e { x = f32[70,3,1100] parameter(0) z = f32[] parameter(1) ROOT r = f32[3,1100] reduce(x, z), dimensions={0}, to_apply=add }")},
      {"columns_c64", R"(m { a = c64[] parameter(0) b = c64[] parameter(1) ROOT c = c64[] multiply(a, b) }
         ENTRY e { x = c64[9,37] parameter(0) z = c64[] constant((1, 2)) ROOT r = c64[37] reduce(x, z), dimensions={0}, to_apply=m })"},
      {"column_fusion",
       with_sum(
           R"(f { x = f32[50,40] parameter(0) z = f32[] constant(0) y = f32[50,40] multiply(x, x) s = f32[40] reduce(y, z), dimensions={0}, to_apply=add ROOT n = f32[40] sqrt(s) }
         ENTRY e { x = f32[50,40] parameter(0) ROOT r = f32[40] fusion(x), kind=kInput, calls=f })")},
  };
  std::vector<NamedText> named;
  for (const auto& [name, text] : cases) named.push_back({name.c_str(), text.c_str()});
  RunCases(named);
}

// Vectors across rows that are reduced by any computation (codegen/turned_rows.h): short rows and long ones, whole
// squares and not, of one vector of rows, of two and of more, the last of which reach back.
TEST(FusionKernels, TurnedRows) {
  KernelRunner runner(CpuSpec());
  for (const int64_t rows : {17, 20, 32, 33, 50, 100}) {
    for (const int64_t length : {21, 32, 48, 50, 160}) {
      runner.Add(fmt::format("argmax{}x{}", rows, length), fmt::format(R"(
  largest {{ a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
    p = pred[] compare(a, b), direction=GT e = pred[] compare(a, b), direction=EQ n = pred[] compare(a, a), direction=NE
    l = pred[] compare(i, j), direction=LT q = pred[] and(e, l) o = pred[] or(p, n) w = pred[] or(o, q)
    v = f32[] select(o, a, b) k = s32[] select(w, i, j) ROOT t = (f32[], s32[]) tuple(v, k) }}
  f {{ x = f32[3,{0},{1}] parameter(0) h = f32[3,{0},{1}] tanh(x) low = f32[] constant(-inf) z = s32[] constant(0)
      i = s32[3,{0},{1}] iota(), iota_dimension=2
      ROOT r = (f32[3,{0}], s32[3,{0}]) reduce(h, i, low, z), dimensions={{2}}, to_apply=largest }}
  ENTRY e {{ x = f32[3,{0},{1}] parameter(0) ROOT r = (f32[3,{0}], s32[3,{0}]) fusion(x), kind=kInput, calls=f }})",
                                                                       rows, length));
    }
  }
  runner.RunAll();
}

// Results that lie in parts of one array: rows, rows that work-groups share, columns, columns in parts, loops, two
// levels of rows, complex numbers, a reducer of its own, the same result twice.
TEST(FusionKernels, ConcatenatedReductions) {
  const std::string head = R"(add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
        top { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
        far { a = f32[] parameter(0) b = f32[] parameter(1) d = f32[] multiply(a, a) e = f32[] multiply(b, b)
              g = pred[] compare(d, e), direction=GE ROOT c = f32[] select(g, a, b) }
        both { a = c64[] parameter(0) b = c64[] parameter(1) ROOT c = c64[] add(a, b) } )";
  const auto reduced = [&](int64_t rows, int64_t columns, int64_t dimension, const char* reducer) {
    const int64_t kept = dimension == 1 ? rows : columns;
    const std::string part = dimension == 1 ? fmt::format("{},1", kept) : fmt::format("1,{}", kept);
    const std::string whole = dimension == 1 ? fmt::format("{},3", kept) : fmt::format("3,{}", kept);
    return head + fmt::format(R"(f {{ x = f32[{0},{1}] parameter(0) p = f32[{2}] parameter(1) z = f32[] constant(0)
        r = f32[{2}] reduce(x, z), dimensions={{{3}}}, to_apply={4}  y = f32[{0},{1}] cosine(x)
        s = f32[{2}] reduce(y, z), dimensions={{{3}}}, to_apply={4}  q = f32[{2}] multiply(s, p)
        a = f32[{5}] reshape(r)  b = f32[{5}] reshape(q)
        ROOT c = f32[{6}] concatenate(a, b, a), dimensions={{{3}}} }}
        ENTRY e {{ x = f32[{0},{1}] parameter(0) p = f32[{2}] parameter(1)
        ROOT c = f32[{6}] fusion(x, p), kind=kInput, calls=f }})",
                              rows, columns, kept, dimension, reducer, part, whole);
  };
  const std::string of_rows = reduced(133, 300, 1, "add"), of_few_rows = reduced(3, 70'000, 1, "add"),
                    of_short_rows = reduced(700, 5, 1, "top"), of_columns = reduced(9, 600, 0, "add"),
                    of_long_columns = reduced(5'000, 40, 0, "top"), of_own = reduced(40, 800, 1, "far"),
                    of_levels = head + R"(f { x = f32[64,256] parameter(0) z = f32[] constant(0)
        s = f32[64] reduce(x, z), dimensions={1}, to_apply=add  w = f32[64,256] broadcast(s), dimensions={0}
        d = f32[64,256] subtract(x, w)  m = f32[64] reduce(d, z), dimensions={1}, to_apply=top
        ROOT c = f32[128] concatenate(m, s), dimensions={0} }
        ENTRY e { x = f32[64,256] parameter(0) ROOT c = f32[128] fusion(x), kind=kInput, calls=f })",
                    of_complex = head + R"(f { x = c64[32,64] parameter(0) z = c64[] constant((0, 0))
        s = c64[32] reduce(x, z), dimensions={1}, to_apply=both  n = c64[32] negate(s)
        ROOT c = c64[64] concatenate(s, n), dimensions={0} }
        ENTRY e { x = c64[32,64] parameter(0) ROOT c = c64[64] fusion(x), kind=kInput, calls=f })";
  RunCases({{"rows", of_rows.c_str()},
            {"few rows", of_few_rows.c_str()},
            {"short rows", of_short_rows.c_str()},
            {"columns", of_columns.c_str()},
            {"long columns", of_long_columns.c_str()},
            {"a reducer of its own", of_own.c_str()},
            {"two levels", of_levels.c_str()},
            {"complex numbers", of_complex.c_str()}});
  // The forms are known: what a loop over the whole would compute has no parts that are joined.
  for (const std::string& text : {of_few_rows, of_long_columns}) {
    const auto module = hlo::ParseModule("HloModule m\n" + text);
    EXPECT_GT(OpenClKernelModel(CpuSpec(), {}).ScratchBytes(*module->entry()->root()), 0);
  }
}

TEST(FusionKernels, ProductsAndWindows) {
  const std::string sum = kSum;
  std::vector<std::pair<std::string, std::string>> cases = {
      {"dot",
       "ENTRY e { x = f32[9,20] parameter(0) y = f32[20,33] parameter(1) ROOT r = f32[9,33] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      {"dot_batch",
       "ENTRY e { x = f32[3,9,20] parameter(0) y = f32[3,33,20] parameter(1) ROOT r = f32[3,9,33] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2} }"},
      {"dot_bf16",
       "ENTRY e { x = bf16[9,20] parameter(0) y = bf16[20,33] parameter(1) ROOT r = bf16[9,33] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      {"dot_s8",
       "ENTRY e { x = s8[9,20] parameter(0) y = s8[20,33] parameter(1) ROOT r = s32[9,33] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      {"dot_c64",
       "ENTRY e { x = c64[9,20] parameter(0) y = c64[20,33] parameter(1) ROOT r = c64[9,33] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      {"dot_vector",
       "ENTRY e { x = f64[20] parameter(0) y = f64[20] parameter(1) ROOT r = f64[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }"},
      {"dot_fused",
       R"(f { x = f32[9,20] parameter(0) y = f32[20,33] parameter(1) b = f32[33] parameter(2) d = f32[9,33] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
           c = f32[9,33] broadcast(b), dimensions={1} s = f32[9,33] add(d, c) ROOT t = f32[9,33] tanh(s) }
         ENTRY e { x = f32[9,20] parameter(0) y = f32[20,33] parameter(1) b = f32[33] parameter(2) ROOT r = f32[9,33] fusion(x, y, b), kind=kOutput, calls=f })"},
      {"conv",
       "ENTRY e { x = f32[2,8,9,3] parameter(0) w = f32[3,3,3,20] parameter(1) ROOT r = f32[2,4,5,20] convolution(x, w), window={size=3x3 stride=2x2 pad=1_0x1_1}, dim_labels=b01f_01io->b01f }"},
      {"conv_nchw",
       "ENTRY e { x = f32[2,4,8,9] parameter(0) w = f32[6,4,3,3] parameter(1) ROOT r = f32[2,6,8,9] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01 }"},
      {"conv_dilated",
       "ENTRY e { x = f32[2,8,9,3] parameter(0) w = f32[3,3,3,5] parameter(1) ROOT r = f32[2,13,13,5] convolution(x, w), window={size=3x3 pad=1_1x0_0 lhs_dilate=2x2 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f }"},
      {"conv_grouped",
       "ENTRY e { x = f32[2,8,9,4] parameter(0) w = f32[3,3,2,6] parameter(1) ROOT r = f32[2,6,7,6] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=2 }"},
      {"conv_reversed",
       "ENTRY e { x = f32[2,8,9,4] parameter(0) w = f32[3,3,4,6] parameter(1) ROOT r = f32[2,6,7,6] convolution(x, w), window={size=3x3 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f }"},
      {"conv_batch_group",
       "ENTRY e { x = f32[4,8,9,3] parameter(0) w = f32[3,3,3,6] parameter(1) ROOT r = f32[2,6,7,6] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f, batch_group_count=2 }"},
      {"reduce_window",
       sum +
           "ENTRY e { x = f32[2,9,10,5] parameter(0) z = f32[] constant(0) ROOT r = f32[2,5,5,5] reduce-window(x, z), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_0x0_0}, to_apply=add }"},
      {"cumsum",
       sum +
           "ENTRY e { x = f32[70] parameter(0) z = f32[] constant(0) ROOT r = f32[70] reduce-window(x, z), window={size=70 pad=69_0}, to_apply=add }"},
      {"select_and_scatter",
       sum + R"(ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=GE }
         ENTRY e { x = f32[2,8,9,5] parameter(0) s = f32[2,4,5,5] parameter(1) z = f32[] constant(0)
           ROOT r = f32[2,8,9,5] select-and-scatter(x, s, z), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_1x1_1x0_0}, select=ge, scatter=add })"},
  };
  std::vector<NamedText> named;
  for (const auto& [name, text] : cases) named.push_back({name.c_str(), text.c_str()});
  RunCases(named);
}

TEST(FusionKernels, ScatterAndSort) {
  const std::string sum = kSum;
  std::vector<std::pair<std::string, std::string>> cases = {
      {"scatter_rows",
       sum +
           "ENTRY e { x = f32[20,35] parameter(0) i = s32[6,1] parameter(1) u = f32[6,35] parameter(2) ROOT r = f32[20,35] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }"},
      {"scatter_scalars",
       sum +
           "ENTRY e { x = f32[12] parameter(0) i = s64[60] parameter(1) u = f32[60] parameter(2) ROOT r = f32[12] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }"},
      {"scatter_wide",
       sum +
           "ENTRY e { x = f32[9,700] parameter(0) i = s32[6] parameter(1) u = f32[6,700] parameter(2) ROOT r = f32[9,700] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }"},
      {"scatter_halves",
       R"(m { a = s32[] parameter(0) b = s32[] parameter(1) t = s32[] constant(3) p = s32[] multiply(a, t) ROOT c = s32[] add(p, b) }
         ENTRY e { x = s32[9,101] parameter(0) i = s32[60] parameter(1) u = s32[60,101] parameter(2) ROOT r = s32[9,101] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=m })"},
      {"scatter_parts",
       sum +
           "ENTRY e { x = f32[13] parameter(0) i = s32[9001] parameter(1) u = f32[9001] parameter(2) ROOT r = f32[13] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }"},
      {"scatter_windows",
       sum +
           "ENTRY e { x = f32[20,35] parameter(0) i = s32[6,2] parameter(1) u = f32[6,3,4] parameter(2) ROOT r = f32[20,35] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=add }"},
      {"scatter_overlapping_windows",
       R"(m { a = s32[] parameter(0) b = s32[] parameter(1) t = s32[] constant(3) p = s32[] multiply(a, t) ROOT c = s32[] add(p, b) }
         ENTRY e { x = s32[12,700] parameter(0) i = s32[80,2] parameter(1) u = s32[80,3,600] parameter(2) ROOT r = s32[12,700] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=m })"},
      {"sort", R"(lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         ENTRY e { x = f32[5,100] parameter(0) ROOT r = f32[5,100] sort(x), dimensions={1}, is_stable=true, to_apply=lt })"},
      {"sort_pairs",
       R"(lt { a = s32[] parameter(0) b = s32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) ROOT c = pred[] compare(a, b), direction=GT }
         ENTRY e { x = s32[33,4] parameter(0) n = s32[33,4] iota(), iota_dimension=0 ROOT r = (s32[33,4], s32[33,4]) sort(x, n), dimensions={0}, is_stable=true, to_apply=lt })"},
      {"sort_one", R"(lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         ENTRY e { x = f32[5,1] parameter(0) ROOT r = f32[5,1] sort(x), dimensions={1}, to_apply=lt })"},
  };
  std::vector<NamedText> named;
  for (const auto& [name, text] : cases) named.push_back({name.c_str(), text.c_str()});
  RunCases(named);
}

TEST(FusionKernels, RandomBits) {
  RunCases({
      {"philox",
       "ENTRY e { s = u64[2] parameter(0) ROOT r = (u64[2], u32[37]) rng-bit-generator(s), algorithm=rng_philox }"},
      {"philox_three_words",
       "ENTRY e { s = u64[3] parameter(0) ROOT r = (u64[3], u32[5,9]) rng-bit-generator(s), algorithm=rng_philox }"},
      {"philox_wide",
       "ENTRY e { s = u64[3] parameter(0) ROOT r = (u64[3], u64[33]) rng-bit-generator(s), algorithm=rng_default }"},
      {"philox_narrow",
       "ENTRY e { s = u32[4] parameter(0) ROOT r = (u32[4], u8[34]) rng-bit-generator(s), algorithm=rng_default }"},
      {"threefry",
       "ENTRY e { s = u64[2] parameter(0) ROOT r = (u64[2], u32[6,35]) rng-bit-generator(s), algorithm=rng_three_fry }"},
      {"threefry_odd",
       "ENTRY e { s = u64[2] parameter(0) ROOT r = (u64[2], u32[5,37]) rng-bit-generator(s), algorithm=rng_three_fry }"},
      {"threefry_wide",
       "ENTRY e { s = u64[2] parameter(0) ROOT r = (u64[2], u64[5,37]) rng-bit-generator(s), algorithm=rng_three_fry }"},
      {"threefry_u16",
       "ENTRY e { s = u64[2] parameter(0) ROOT r = (u64[2], u16[3,4,7]) rng-bit-generator(s), algorithm=rng_three_fry }"},
  });
}

// Rows of `length` elements end at `n` where the sum reads what is selected; all of each row where it reads `e`.
std::string SourceOfRowSum(int64_t length, const std::string& read, const DeviceSpec& device) {
  const std::unique_ptr<hlo::Module> module = hlo::ParseModule(fmt::format(R"(HloModule rows
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
f {{ x = f32[64,{0}] parameter(0)  n = s32[] parameter(1)  zero = f32[] constant(0)
  e = f32[64,{0}] exponential(x)
  i = s32[64,{0}] iota(), iota_dimension=1
  m = s32[64,{0}] broadcast(n), dimensions={{}}
  live = pred[64,{0}] compare(i, m), direction=LT
  zeros = f32[64,{0}] broadcast(zero), dimensions={{}}
  selected = f32[64,{0}] select(live, e, zeros)
  ROOT r = f32[64] reduce({1}, zero), dimensions={{1}}, to_apply=sum }}
ENTRY main {{ x = f32[64,{0}] parameter(0)  n = s32[] parameter(1)
  ROOT r = f32[64] fusion(x, n), kind=kInput, calls=f }}
)",
                                                                           length, read));
  const CompileOptions options;
  return EmitInstruction(*module->entry()->root(), {-1}, {device, options}).front().source;
}

TEST(FusionKernels, RowsAskForTheNextOne) {
  const auto asks = [](int64_t length, const char* read, const DeviceSpec& device) {
    return SourceOfRowSum(length, read, device).find("hl_prefetch(in0") != std::string::npos;
  };
  EXPECT_TRUE(asks(4096, "e", CpuSpec()));
  EXPECT_FALSE(asks(1024, "e", CpuSpec())) << "the hardware finds rows of a page by itself";
  EXPECT_TRUE(asks(1024, "selected", CpuSpec())) << "but not where they end early";
  EXPECT_FALSE(asks(1 << 20, "e", CpuSpec())) << "the second cache has no room for it";
  EXPECT_FALSE(asks(4096, "selected", GpuSpec()));
}

TEST(FusionKernels, PairsOfShortRowsOfBf16AskForTheNextPair) {
  const auto source = [](const char* type, int64_t rows) {
    const auto module = hlo::ParseModule(fmt::format(R"(HloModule rows
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
f {{ x = {0}[{1},768] parameter(0)  zero = f32[] constant(0)
  squares = {0}[{1},768] multiply(x, x)
  wide = f32[{1},768] convert(squares)
  ROOT r = f32[{1}] reduce(wide, zero), dimensions={{1}}, to_apply=sum }}
ENTRY main {{ x = {0}[{1},768] parameter(0)  ROOT r = f32[{1}] fusion(x), kind=kInput, calls=f }}
)",
                                                     type, rows));
    DeviceSpec device = CpuSpec();
    device.vector_bytes = 64;
    device.bf16_dot = "assembly";
    const CompileOptions options;
    return EmitInstruction(*module->entry()->root(), {-1}, {device, options}).front().source;
  };
  const std::string pairs = source("bf16", 512);
  // Two rows of 768 on, of each of the two.
  EXPECT_TRUE(
      std::regex_search(pairs, std::regex(R"(hl_prefetch\(in0 \+ \(+rows \* 2\) \* 768\) \+ .*\+ 1536\), 2\))")))
      << pairs;
  EXPECT_TRUE(
      std::regex_search(pairs, std::regex(R"(hl_prefetch\(in0 \+ \(+rows \* 2\) \+ 1\) \* 768\) \+ .*\+ 1536\), 2\))")))
      << pairs;
  EXPECT_EQ(source("bf16", 8).find("hl_prefetch(in0"), std::string::npos) << "so few rows go one by one";
  EXPECT_EQ(source("f32", 512).find("hl_prefetch(in0"), std::string::npos) << "those arrive in time";
}

// OpenCL C knows no kernel without a parameter that it would write to.
TEST(FusionKernels, ARegionThatPassesOnInPlaceDoesNothing) {
  const auto module = hlo::ParseModule(R"(HloModule m
body { t = (s32[], f32[24675]) parameter(0)  i = s32[] get-tuple-element(t), index=0  one = s32[] constant(1)
  n = s32[] add(i, one)  x = f32[24675] get-tuple-element(t), index=1  ROOT r = (s32[], f32[24675]) tuple(n, x) }
condition { t = (s32[], f32[24675]) parameter(0)  i = s32[] get-tuple-element(t), index=0  five = s32[] constant(5)
  ROOT go = pred[] compare(i, five), direction=LT }
steps { x = f32[24675] parameter(0)  zero = s32[] constant(0)  t = (s32[], f32[24675]) tuple(zero, x)
  loop = (s32[], f32[24675]) while(t), condition=condition, body=body, backend_config={"known_trip_count":{"n":"5"}}
  ROOT r = f32[24675] get-tuple-element(loop), index=1 }
ENTRY e { x = f32[24675] parameter(0)
  ROOT r = f32[24675] fusion(x), kind=kCustom, calls=steps, backend_config={"region":"sequential"} }
)");
  const CompileOptions options;
  const DeviceSpec device = CpuSpec();
  EXPECT_TRUE(EmitInstruction(*module->entry()->root(), {0}, {device, options}).empty());
  EXPECT_EQ(EmitInstruction(*module->entry()->root(), {-1}, {device, options}).size(), 1u);
}

}  // namespace
}  // namespace hlorun::opencl
