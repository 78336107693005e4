// Kernels of reduce-windows with what their taps compute and what is made of their results, against the evaluator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/backends/codegen/kernel_runner.h"

namespace hlorun::opencl {
namespace {

struct Pooled {
  std::string name, text;
};

constexpr const char* kReducers = R"(
  add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
  max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
  max16 { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT r = bf16[] maximum(a, b) }
  largest { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
    p = pred[] compare(a, b), direction=GE v = f32[] select(p, a, b) k = s32[] select(p, i, j)
    ROOT t = (f32[], s32[]) tuple(v, k) }
  ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
)";

// On both classes of device, and in place where the model allows.
void RunPooled(const std::vector<Pooled>& cases) {
  struct Mode {
    const char* name;
    DeviceSpec spec;
    bool in_place;
  };
  for (const Mode& mode :
       {Mode{"cpu", CpuSpec(), false}, Mode{"gpu", GpuSpec(), false}, Mode{"in place", CpuSpec(), true}}) {
    SCOPED_TRACE(mode.name);
    KernelRunner runner(mode.spec);
    for (const Pooled& pooled : cases) runner.Add(pooled.name, kReducers + pooled.text);
    runner.RunAll(mode.in_place);
  }
}

// Logarithms of x are numbers, -inf and NaN: scaled, pooled from `initial` on, and added to an addend of the result's
// shape and to one for each of the last dimension's.
Pooled BothEnds(const std::string& name, const std::string& from, const std::string& to, const std::string& window,
                const std::string& initial, const std::string& reducer) {
  const size_t from_rank = static_cast<size_t>(std::count(from.begin(), from.end(), ',')), last = from.rfind(','),
               to_last = to.rfind(',');
  const std::string in_minor = from.substr(last + 1), out_minor = to.substr(to_last + 1);
  return {name, fmt::format(R"(
  f {{ x = f32[{0}] parameter(0) s = f32[{1}] parameter(1) y = f32[{2}] parameter(2) b = f32[{3}] parameter(3)
      l = f32[{0}] log(x) sb = f32[{0}] broadcast(s), dimensions={{{4}}} m = f32[{0}] multiply(l, sb)
      z = f32[] constant({5}) p = f32[{2}] reduce-window(m, z), window={{{6}}}, to_apply={7}
      bb = f32[{2}] broadcast(b), dimensions={{{4}}} q = f32[{2}] add(p, bb) ROOT r = f32[{2}] add(q, y) }}
  ENTRY e {{ x = f32[{0}] parameter(0) s = f32[{1}] parameter(1) y = f32[{2}] parameter(2) b = f32[{3}] parameter(3)
      ROOT r = f32[{2}] fusion(x, s, y, b), kind=kInput, calls=f }})",
                            from, in_minor, to, out_minor, from_rank, initial, window, reducer)};
}

struct Form {
  const char *name, *from, *to, *window;
};

std::vector<Pooled> Forms(const std::vector<Form>& forms, const std::string& initial, const std::string& reducer) {
  std::vector<Pooled> cases;
  for (const Form& form : forms) {
    const std::string name = fmt::format("{}_{}", form.name, reducer);
    cases.push_back(BothEnds(name, form.from, form.to, form.window, initial, reducer));
  }
  return cases;
}

const Form kPadded = {"padded", "2,9,9,20", "2,5,5,20", "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0"};
const Form kBaseDilated = {"base_dilated", "2,5,5,20", "2,7,7,20", "size=1x3x3x1 lhs_dilate=1x2x2x1"};
const Form kRowsPadded = {"rows_padded", "2,3,9,113", "2,3,5,57", "size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1"};
const Form kRowsBaseDilated = {"rows_base_dilated", "2,3,5,20", "2,3,9,39",
                               "size=1x1x3x3 pad=0_0x0_0x1_1x1_1 lhs_dilate=1x1x2x2"};

TEST(PoolingKernels, BothEndsOfMax) {
  RunPooled(Forms({{"apart", "2,8,8,20", "2,4,4,20", "size=1x2x2x1 stride=1x2x2x1"},
                   kPadded,
                   kBaseDilated,
                   {"window_dilated", "2,9,9,20", "2,7,7,20", "size=1x3x3x1 pad=0_0x1_1x1_1x0_0 rhs_dilate=1x2x2x1"},
                   {"cropped", "2,9,9,20", "2,6,6,20", "size=1x2x2x1 pad=0_0x-1_-1x-1_-1x0_0"}},
                  "-inf", "max"));
}

// Vectors along the windows' own dimension.
TEST(PoolingKernels, BothEndsOfMaxAlongRows) {
  RunPooled(Forms({{"apart", "2,3,8,40", "2,3,4,20", "size=1x1x2x2 stride=1x1x2x2"},
                   kRowsPadded,
                   kRowsBaseDilated,
                   {"one_apart", "2,3,6,80", "2,3,6,80", "size=1x1x3x3 pad=0_0x0_0x1_1x1_1"},
                   {"short", "2,3,6,20", "2,3,6,20", "size=1x1x5x5 pad=0_0x0_0x2_2x2_2"},
                   {"three_apart", "1,2,9,100", "1,2,3,34", "size=1x1x4x4 stride=1x1x3x3 pad=0_0x0_0x2_1x2_1"},
                   {"window_dilated", "2,3,9,100", "2,3,7,98", "size=1x1x3x3 pad=0_0x0_0x1_1x1_1 rhs_dilate=1x1x2x2"},
                   {"far_out", "1,2,5,40", "1,2,9,47", "size=1x1x2x2 pad=0_0x0_0x3_2x5_3"}},
                  "-inf", "max"));
}

TEST(PoolingKernels, BothEndsOfSum) {
  RunPooled(Forms({kPadded, kBaseDilated, kRowsPadded, kRowsBaseDilated}, "0", "add"));
}

TEST(PoolingKernels, InitialValuesCount) { RunPooled(Forms({kPadded, kRowsPadded}, "0.5", "max")); }

TEST(PoolingKernels, Bf16) {
  RunPooled({{"sum", R"(
  f { x = bf16[2,8,8,20] parameter(0) w = f32[2,8,8,20] convert(x) z = f32[] constant(0)
      p = f32[2,4,4,20] reduce-window(w, z), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0}, to_apply=add
      n = bf16[2,4,4,20] convert(p) c = bf16[] constant(0.125) cs = bf16[2,4,4,20] broadcast(c), dimensions={}
      ROOT r = bf16[2,4,4,20] multiply(n, cs) }
  ENTRY e { x = bf16[2,8,8,20] parameter(0) ROOT r = bf16[2,4,4,20] fusion(x), kind=kInput, calls=f })"},
             {"rows", R"(
  f { x = bf16[2,3,8,113] parameter(0) w = f32[2,3,8,113] convert(x) z = f32[] constant(0)
      p = f32[2,3,4,57] reduce-window(w, z), window={size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_0x1_1}, to_apply=add
      ROOT n = bf16[2,3,4,57] convert(p) }
  ENTRY e { x = bf16[2,3,8,113] parameter(0) ROOT r = bf16[2,3,4,57] fusion(x), kind=kInput, calls=f })"},
             {"max", R"(
  f { x = bf16[2,8,8,20] parameter(0) y = bf16[2,4,4,20] parameter(1) l = bf16[] constant(-inf)
      n = bf16[2,8,8,20] negate(x)
      p = bf16[2,4,4,20] reduce-window(n, l), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=max16
      ROOT r = bf16[2,4,4,20] add(p, y) }
  ENTRY e { x = bf16[2,8,8,20] parameter(0) y = bf16[2,4,4,20] parameter(1)
      ROOT r = bf16[2,4,4,20] fusion(x, y), kind=kInput, calls=f })"}});
}

TEST(PoolingKernels, SeveralResults) {
  RunPooled({{"with_what_is_made_of_it", R"(
  f { x = f32[2,8,8,20] parameter(0) l = f32[] constant(-inf)
      p = f32[2,4,4,20] reduce-window(x, l), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=max
      n = f32[2,4,4,20] negate(p) ROOT t = (f32[2,4,4,20], f32[2,4,4,20]) tuple(n, p) }
  ENTRY e { x = f32[2,8,8,20] parameter(0)
      ROOT r = (f32[2,4,4,20], f32[2,4,4,20]) fusion(x), kind=kInput, calls=f })"},
             {"two_windows", R"(
  f { x = f32[2,8,8,20] parameter(0) l = f32[] constant(-inf) z = f32[] constant(0)
      p = f32[2,4,4,20] reduce-window(x, l), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=max
      q = f32[2,4,4,20] reduce-window(x, z), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0}, to_apply=add
      s = f32[2,4,4,20] add(p, q) ROOT t = (f32[2,4,4,20], f32[2,4,4,20]) tuple(s, p) }
  ENTRY e { x = f32[2,8,8,20] parameter(0) ROOT r = (f32[2,4,4,20], f32[2,4,4,20]) fusion(x), kind=kInput, calls=f })"},
             {"places_of_the_largest", R"(
  f { x = f32[2,6,40] parameter(0) l = f32[] constant(-inf) m = s32[] constant(-1)
      i = s32[2,6,40] iota(), iota_dimension=2
      ROOT r = (f32[2,3,20], s32[2,3,20]) reduce-window(x, i, l, m),
        window={size=1x3x3 stride=1x2x2 pad=0_0x1_0x1_0}, to_apply=largest }
  ENTRY e { x = f32[2,6,40] parameter(0) ROOT r = (f32[2,3,20], s32[2,3,20]) fusion(x), kind=kInput, calls=f })"}});
}

// Max pooling's gradient of what is padded as it is read, of logarithms (-inf and NaN are selected from as well), and
// the part of it that is no padding, masked, scaled and padded again; windows that overlap, leave gaps and do not.
TEST(PoolingKernels, Gradients) {
  struct Gradient {
    const char *name, *windows, *window;
  };
  std::vector<Pooled> cases;
  for (const Gradient& g : {Gradient{"apart", "2,4,5", "size=1x2x2x1 stride=1x2x2x1"},
                            Gradient{"overlapping", "2,4,5", "size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_1x0_1x0_0"},
                            Gradient{"everywhere", "2,6,8", "size=1x3x3x1"},
                            Gradient{"gaps", "2,3,3", "size=1x2x3x1 stride=1x3x4x1 pad=0_0x0_0x1_0x0_0"}}) {
    for (const int64_t channels : {20, 32}) {
      cases.push_back({fmt::format("{}_{}", g.name, channels), fmt::format(R"(
  f {{ x = f32[2,7,8,{0}] parameter(0) s = f32[{1},{0}] parameter(1) y = f32[2,7,8,{0}] parameter(2) c = f32[{0}] parameter(3)
      low = f32[] constant(-inf) z = f32[] constant(0) zeros = f32[2,7,8,{0}] broadcast(z), dimensions={{}}
      l = f32[2,7,8,{0}] log(x) p = f32[2,8,10,{0}] pad(l, low), padding=0_0x0_1x1_1x0_0
      g = f32[2,8,10,{0}] select-and-scatter(p, s, z), window={{{2}}}, select=ge, scatter=add
      part = f32[2,7,8,{0}] slice(g), slice={{[0:2], [0:7], [1:9], [0:{0}]}} m = pred[2,7,8,{0}] compare(y, zeros), direction=GT
      k = f32[2,7,8,{0}] select(m, part, zeros) cs = f32[2,7,8,{0}] broadcast(c), dimensions={{3}} q = f32[2,7,8,{0}] multiply(k, cs)
      ROOT r = f32[2,9,8,{0}] pad(q, z), padding=0_0x1_1x0_0x0_0 }}
  ENTRY e {{ x = f32[2,7,8,{0}] parameter(0) s = f32[{1},{0}] parameter(1) y = f32[2,7,8,{0}] parameter(2) c = f32[{0}] parameter(3)
      ROOT r = f32[2,9,8,{0}] fusion(x, s, y, c), kind=kInput, calls=f }})",
                                                                           channels, g.windows, g.window)});
    }
  }
  RunPooled(cases);
}

}  // namespace
}  // namespace hlorun::opencl
