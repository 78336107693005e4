// Cases made by the cross product of what an op can vary in: sizes around the lengths of vectors, window parameters,
// reduced dimensions, lengths of sorts and transforms.
#include <fmt/format.h>

#include "hlo/shape_inference.h"
#include "tests/conformance/template_cases.h"

// Tables, one case a row.
// clang-format off

namespace hlorun::conformance {
namespace {

constexpr const char* kNumbers = "s8 s16 s32 s64 u8 u16 u32 u64 f16 bf16 f32 f64";

// Short, odd and long arrays: whole vectors, tails, several groups.
void AddSizes(std::vector<Template>& templates) {
  const char* chain =
      "ENTRY e {{ x = $T[{0}] parameter(0)\n y = $T[{0}] parameter(1)\n z = $T[{0}] add(x, y)\n w = $T[{0}] multiply(z, x)\n "
      "p = pred[{0}] compare(w, y), direction=GT\n m = $T[{0}] maximum(z, w)\n ROOT r = $T[{0}] select(p, m, y) }}";
  for (const int n : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 1000, 5000}) {
    templates.push_back({fmt::format("size-{}", n), std::string(kNumbers) + " s4 u4 s2 u2 f8e5m2 f8e4m3fn", fmt::format(fmt::runtime(chain), n)});
  }
  const char* mixed =
      "ENTRY e {{ x = $T[3,{0}] parameter(0)\n y = $T[{0},3] parameter(1)\n b = $T[{0}] parameter(2)\n t = $T[3,{0}] transpose(y), "
      "dimensions={{1,0}}\n c = $T[3,{0}] broadcast(b), dimensions={{1}}\n s = $T[3,{0}] add(x, t)\n ROOT r = $T[3,{0}] multiply(s, c) }}";
  for (const int n : {1, 5, 16, 40}) {
    templates.push_back({fmt::format("mixed-shapes-{}", n), std::string(kNumbers) + " s4 u4 f8e5m2 c64", fmt::format(fmt::runtime(mixed), n)});
  }
}

void AddReductions(std::vector<Template>& templates) {
  constexpr struct {
    const char *name, *hole, *initial;
  } kReducers[] = {{"add", "$ADD", "0"}, {"mul", "$MUL", "1"}, {"max", "$MAX", "0"}, {"min", "$MIN", "1"}};
  const int sizes[] = {3, 17, 5};
  for (const auto& reducer : kReducers) {
    for (int mask = 1; mask < 8; ++mask) {
      std::string reduced, kept;
      for (int d = 0; d < 3; ++d) {
        std::string& list = (mask >> d & 1) != 0 ? reduced : kept;
        list += (list.empty() ? "" : ",") + std::to_string((mask >> d & 1) != 0 ? d : sizes[d]);
      }
      templates.push_back({fmt::format("reduce-{}-dimensions-{}", reducer.name, reduced), "f32 bf16 f16 s32 u8 f64",
                           fmt::format("{}ENTRY e {{ x = $T[3,17,5] parameter(0)\n z = $T[] constant({})\n ROOT r = $T[{}] reduce(x, z), "
                                       "dimensions={{{}}}, to_apply={} }}",
                                       reducer.hole, reducer.initial, kept, reduced, reducer.name)});
    }
  }
}

hlo::WindowDimension WindowOf(int size, int stride, int low, int high, int base_dilation, int window_dilation) {
  hlo::WindowDimension window;
  window.size = size;
  window.stride = stride;
  window.padding_low = low;
  window.padding_high = high;
  window.base_dilation = base_dilation;
  window.window_dilation = window_dilation;
  return window;
}

std::string TextOf(const hlo::WindowDimension& w) {
  return fmt::format("window={{size={} stride={} pad={}_{} lhs_dilate={} rhs_dilate={}{}}}", w.size, w.stride, w.padding_low,
                     w.padding_high, w.base_dilation, w.window_dilation, w.window_reversal ? " rhs_reversal=1" : "");
}

template <typename Visit>
void ForWindows(Visit&& visit) {
  constexpr int kPads[][2] = {{0, 0}, {1, 1}, {2, 0}};
  for (const int size : {2, 3}) {
    for (const int stride : {1, 2}) {
      for (const auto& pad : kPads) {
        for (const int base : {1, 2}) {
          for (const int window : {1, 2}) visit(WindowOf(size, stride, pad[0], pad[1], base, window));
        }
      }
    }
  }
}

std::string NameOf(const hlo::WindowDimension& w) {
  return fmt::format("{}-stride-{}-pad-{}-{}-dilate-{}-{}", w.size, w.stride, w.padding_low, w.padding_high, w.base_dilation,
                     w.window_dilation);
}

void AddWindows(std::vector<Template>& templates) {
  constexpr int64_t kSize = 11;
  ForWindows([&](hlo::WindowDimension w) {
    const int64_t out = hlo::WindowedSize(kSize, w);
    for (const char* reducer : {"add", "max"}) {
      templates.push_back({fmt::format("reduce-window-{}-{}", reducer, NameOf(w)), "f32 bf16 s32",
                           fmt::format("{}ENTRY e {{ x = $T[{}] parameter(0)\n z = $T[] constant({})\n ROOT r = $T[{}] reduce-window(x, z), "
                                       "{}, to_apply={} }}",
                                       reducer[0] == 'a' ? "$ADD" : "$MAX", kSize, reducer[0] == 'a' ? 0 : -9, out, TextOf(w), reducer)});
    }
    for (const bool reversed : {false, true}) {
      w.window_reversal = reversed;
      templates.push_back({fmt::format("convolution-1d-{}{}", NameOf(w), reversed ? "-reversed" : ""), "f32 bf16",
                           fmt::format("ENTRY e {{ x = $T[2,{},3] parameter(0)\n k = $T[{},3,5] parameter(1)\n ROOT r = $T[2,{},5] "
                                       "convolution(x, k), {}, dim_labels=b0f_0io->b0f }}",
                                       kSize, w.size, out, TextOf(w))});
    }
  });
}

void AddProducts(std::vector<Template>& templates) {
  for (const int m : {1, 2, 7, 32}) {
    for (const int n : {1, 5, 64}) {
      for (const int k : {1, 6, 65}) {
        templates.push_back({fmt::format("dot-{}x{}x{}", m, n, k), "f32 bf16 f16 f64 s32 c64",
                             fmt::format("ENTRY e {{ a = $T[{0},{2}] parameter(0)\n b = $T[{2},{1}] parameter(1)\n ROOT r = $T[{0},{1}] dot(a, b), "
                                         "lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}",
                                         m, n, k)});
      }
    }
  }
}

void AddSorts(std::vector<Template>& templates) {
  for (const int n : {1, 2, 33, 100}) {
    for (const char* direction : {"LT", "GT"}) {
      templates.push_back({fmt::format("sort-{}-{}", direction, n), kNumbers,
                           fmt::format("f {{ a = $T[] parameter(0)\n b = $T[] parameter(1)\n ROOT c = pred[] compare(a, b), direction={} }}\n"
                                       "ENTRY e {{ x = $T[2,{}] parameter(0)\n ROOT r = $T[2,{}] sort(x), dimensions={{1}}, to_apply=f }}",
                                       direction, n, n)});
    }
  }
  for (const int k : {1, 5, 12}) {
    for (const char* largest : {"true", "false"}) {
      templates.push_back({fmt::format("topk-{}-{}", k, largest[0] == 't' ? "largest" : "smallest"), "f16 bf16 f32 f64 s8 s32 u32",
                           fmt::format("ENTRY e {{ x = $T[3,12] parameter(0)\n ROOT r = ($T[3,{0}], s32[3,{0}]) topk(x), k={0}, largest={1} }}",
                                       k, largest)});
    }
  }
}

void AddTransforms(std::vector<Template>& templates) {
  for (const int n : {1, 2, 3, 4, 5, 7, 9, 16, 30, 61, 64, 67, 143, 146, 180, 486, 1031}) {
    for (const char* kind : {"FFT", "IFFT"}) {
      templates.push_back({fmt::format("fft-{}-{}", kind, n), "c64 c128",
                           fmt::format("ENTRY e {{ x = $T[2,{0}] parameter(0)\n ROOT r = $T[2,{0}] fft(x), fft_type={1}, fft_length={{{0}}} }}", n, kind),
                           4, 1e-6});
    }
    for (const char* real : {"f32", "f64"}) {
      const char* complex = real[1] == '3' ? "c64" : "c128";
      templates.push_back({fmt::format("fft-RFFT-{}", n), real,
                           fmt::format("ENTRY e {{ x = $T[2,{0}] parameter(0)\n ROOT r = {2}[2,{1}] fft(x), fft_type=RFFT, fft_length={{{0}}} }}", n,
                                       n / 2 + 1, complex),
                           4, 1e-6});
      templates.push_back({fmt::format("fft-IRFFT-{}", n), real,
                           fmt::format("ENTRY e {{ x = {2}[2,{1}] parameter(0)\n ROOT r = $T[2,{0}] fft(x), fft_type=IRFFT, fft_length={{{0}}} }}", n,
                                       n / 2 + 1, complex),
                           4, 1e-6});
    }
  }
}

// Columns side by side, whose last tile reaches back over the one before.
void AddTransformsOfColumns(std::vector<Template>& templates) {
  for (const int n : {2, 7, 24, 73, 143}) {
    for (const char* kind : {"FFT", "IFFT"}) {
      templates.push_back({fmt::format("fft-columns-{}-{}", kind, n), "c64 c128",
                           fmt::format("ENTRY e {{ x = $T[2,{0},18] parameter(0)\n ROOT r = $T[2,{0},18] fft(x), fft_type={1}, fft_length={{{0},18}} }}", n, kind),
                           4, 1e-6});
    }
    for (const auto& [real, complex] : {std::pair("f32", "c64"), {"f64", "c128"}}) {
      templates.push_back({fmt::format("fft-columns-RFFT-{}", n), real,
                           fmt::format("ENTRY e {{ x = $T[{0},70] parameter(0)\n ROOT r = {1}[{0},36] fft(x), fft_type=RFFT, fft_length={{{0},70}} }}", n,
                                       complex),
                           4, 1e-6});
      templates.push_back({fmt::format("fft-columns-IRFFT-{}", n), real,
                           fmt::format("ENTRY e {{ x = {1}[{0},36] parameter(0)\n ROOT r = $T[{0},70] fft(x), fft_type=IRFFT, fft_length={{{0},70}} }}", n,
                                       complex),
                           4, 1e-6});
    }
  }
}

// Running sums along each dimension, both ways, in the form that JAX lowers them to.
void AddRunningSums(std::vector<Template>& templates) {
  constexpr struct {
    const char *name, *window;
  } kForms[] = {{"first", "size=6x1 pad=5_0x0_0"}, {"last", "size=1x9 pad=0_0x8_0"}, {"last-reversed", "size=1x9 pad=0_0x0_8"}};
  for (const auto& form : kForms) {
    for (const char* reducer : {"add", "max", "mul"}) {
      const std::string hole = reducer[0] == 'a' ? "$ADD" : reducer[1] == 'a' ? "$MAX" : "$MUL";
      templates.push_back({fmt::format("running-{}-{}", reducer, form.name), "s32 f32 f64 bf16",
                           fmt::format("{}ENTRY e {{ x = $T[6,9] parameter(0)\n z = $T[] constant({})\n ROOT r = $T[6,9] reduce-window(x, z), "
                                       "window={{{}}}, to_apply={} }}",
                                       hole, reducer[1] == 'u' ? 1 : reducer[0] == 'a' ? 0 : -9, form.window, reducer)});
    }
  }
}

// So long that they go part by part, with what begins once and not with each: vectors of rows with a tail, single
// elements, columns; reducers of an op and of several.
void AddLongRunningSums(std::vector<Template>& templates) {
  constexpr struct {
    const char *name, *types, *shape, *window;
  } kForms[] = {{"rows", "f32 f64 f16", "3,16500", "size=1x16500 pad=0_0x16499_0"},
                {"rows-reversed", "f32 f64 bf16", "2,16500", "size=1x16500 pad=0_0x0_16499"},
                {"whole-rows-reversed", "f32", "5,16384", "size=1x16384 pad=0_0x0_16383"},
                {"columns", "f32 f16", "4200,70", "size=4200x1 pad=4199_0x0_0"},
                {"columns-reversed", "f32 f64", "4200,35", "size=4200x1 pad=0_4199x0_0"}};
  for (const auto& form : kForms) {
    templates.push_back({fmt::format("running-long-{}", form.name), form.types,
                         fmt::format("$ADDENTRY e {{ x = $T[{0}] parameter(0)\n z = $T[] constant(7)\n ROOT r = $T[{0}] reduce-window(x, z), "
                                     "window={{{1}}}, to_apply=add }}",
                                     form.shape, form.window)});
    templates.push_back({fmt::format("running-long-logarithms-{}", form.name), "f64",
                         fmt::format("f {{ a = $T[] parameter(0)\n b = $T[] parameter(1)\n m = $T[] maximum(a, b)\n d = $T[] subtract(a, b)\n"
                                     " p = $T[] abs(d)\n n = $T[] negate(p)\n e = $T[] exponential(n)\n l = $T[] log-plus-one(e)\n"
                                     " ROOT r = $T[] add(m, l) }}\n"
                                     "ENTRY e {{ x = $T[{0}] parameter(0)\n z = $T[] constant(9)\n ROOT r = $T[{0}] reduce-window(x, z), "
                                     "window={{{1}}}, to_apply=f }}",
                                     form.shape, form.window),
                         4, 1e-10});
  }
}

}  // namespace

std::vector<Template> GridTemplates() {
  std::vector<Template> templates;
  AddSizes(templates);
  AddReductions(templates);
  AddWindows(templates);
  AddProducts(templates);
  AddSorts(templates);
  AddTransforms(templates);
  AddTransformsOfColumns(templates);
  AddRunningSums(templates);
  AddLongRunningSums(templates);
  return templates;
}

}  // namespace hlorun::conformance
