// Random bits, transforms, linear algebra, normalisation.
#include "tests/conformance/template_cases.h"

// Tables, one case a row.
// clang-format off

namespace hlorun::conformance {
namespace {

Template RandomBits(const std::string& algorithm, const std::string& types, const std::string& words,
                    const std::string& shape) {
  return {"random-" + algorithm + "-u64x" + words + "-" + (shape.empty() ? "scalar" : shape), types,
          "ENTRY e { s = u64[" + words + "] parameter(0)\n ROOT r = (u64[" + words + "], $T[" + shape +
              "]) rng-bit-generator(s), algorithm=rng_" + algorithm + " }",
          0, 0, {{0, {81985529216486895.0, 9007199254740993.0, 12345}}}};
}

void AddTriangularSolves(std::vector<Template>& templates) {
  for (const char* left : {"true", "false"}) {
    for (const char* lower : {"true", "false"}) {
      for (const char* unit : {"true", "false"}) {
        for (const char* transpose : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}) {
          const std::string b = left[0] == 't' ? "2,4,3" : "2,3,4";
          templates.push_back({std::string("triangular-solve-left-") + left + "-lower-" + lower + "-unit-" + unit + "-" + transpose,
                               "f32 f64 c64",
                               "ENTRY e { a = $T[2,4,4] parameter(0)\n b = $T[" + b + "] parameter(1)\n ROOT r = $T[" + b +
                                   "] triangular-solve(a, b), left_side=" + left + ", lower=" + lower +
                                   ", unit_diagonal=" + unit + ", transpose_a=" + transpose + " }",
                               4, 1e-5, {{0, {2, 0.5, -0.25, 0.75, 1, 3, 0.5, 0.125, -1, 0.25, 2.5, 0.5, 0.75, 1, -0.5, 4}}}});
        }
      }
    }
  }
}

}  // namespace

std::vector<Template> NumericTemplates() {
  const std::string fft_types = "f32 f64";
  const std::vector<double> positive = {4, 1, 0.5, 0.25, 1, 5, 0.75, 0.5, 0.5, 0.75, 6, 1, 0.25, 0.5, 1, 7};
  std::vector<Template> templates = {
      RandomBits("default", "u32", "3", "8"),
      RandomBits("default", "u32 u64", "2", "9"),
      RandomBits("philox", "u8 u16 u32 u64 s32 s8", "3", "13"),
      RandomBits("philox", "u32 u64", "2", "2,3"),
      RandomBits("philox", "u32", "3", ""),
      RandomBits("three_fry", "u8 u16 u32 u64 s32", "2", "8"),
      RandomBits("three_fry", "u32 u64", "2", "5"),
      RandomBits("three_fry", "u32 u64 u8", "2", "3,5"),
      RandomBits("three_fry", "u32", "2", "4,2,3"),
      RandomBits("three_fry", "u32", "2", "3,4,2"),
      RandomBits("three_fry", "u32", "2", "7,6,10"),
      RandomBits("three_fry", "u32 u64", "2", ""),
      {"fft", "c64 c128", "ENTRY e { x = $T[3,8] parameter(0)\n ROOT r = $T[3,8] fft(x), fft_type=FFT, fft_length={8} }", 4, 1e-6},
      {"fft-odd", "c64 c128", "ENTRY e { x = $T[3,15] parameter(0)\n ROOT r = $T[3,15] fft(x), fft_type=FFT, fft_length={15} }", 4, 1e-6},
      {"fft-2d", "c64", "ENTRY e { x = $T[2,6,8] parameter(0)\n ROOT r = $T[2,6,8] fft(x), fft_type=FFT, fft_length={6,8} }", 4, 1e-6},
      {"fft-3d", "c64", "ENTRY e { x = $T[4,6,8] parameter(0)\n ROOT r = $T[4,6,8] fft(x), fft_type=FFT, fft_length={4,6,8} }", 4, 1e-6},
      {"ifft", "c64 c128", "ENTRY e { x = $T[3,12] parameter(0)\n ROOT r = $T[3,12] fft(x), fft_type=IFFT, fft_length={12} }", 4, 1e-6},
      {"rfft", "f32", "ENTRY e { x = f32[3,12] parameter(0)\n ROOT r = c64[3,7] fft(x), fft_type=RFFT, fft_length={12} }", 4, 1e-6},
      {"rfft-odd-2d", "f32", "ENTRY e { x = f32[5,9] parameter(0)\n ROOT r = c64[5,5] fft(x), fft_type=RFFT, fft_length={5,9} }", 4, 1e-6},
      {"rfft-f64", "f64", "ENTRY e { x = f64[3,12] parameter(0)\n ROOT r = c128[3,7] fft(x), fft_type=RFFT, fft_length={12} }", 4, 1e-14},
      {"irfft", "f32", "ENTRY e { x = c64[3,7] parameter(0)\n ROOT r = f32[3,12] fft(x), fft_type=IRFFT, fft_length={12} }", 4, 1e-6},
      {"irfft-odd", "f32", "ENTRY e { x = c64[3,5] parameter(0)\n ROOT r = f32[3,9] fft(x), fft_type=IRFFT, fft_length={9} }", 4, 1e-6},
      {"irfft-2d", "f32", "ENTRY e { x = c64[4,4] parameter(0)\n ROOT r = f32[4,6] fft(x), fft_type=IRFFT, fft_length={4,6} }", 4, 1e-6},
      {"cholesky-lower", "f32 f64 c64", "ENTRY e { a = $T[2,4,4] parameter(0)\n ROOT r = $T[2,4,4] cholesky(a), lower=true }", 4, 1e-6, {{0, positive}}},
      {"cholesky-upper", "f32 f64 c64", "ENTRY e { a = $T[2,4,4] parameter(0)\n ROOT r = $T[2,4,4] cholesky(a), lower=false }", 4, 1e-6, {{0, positive}}},
      {"cholesky-not-positive", "f32", "ENTRY e { a = $T[2,2] parameter(0)\n ROOT r = $T[2,2] cholesky(a), lower=true }", 4, 1e-6, {{0, {1, 2, 2, 1}}}},
      {"batch-norm-training", "f32 f64", "ENTRY e { x = $T[4,5,3] parameter(0)\n s = $T[3] parameter(1)\n o = $T[3] parameter(2)\n ROOT r = ($T[4,5,3], $T[3], $T[3]) batch-norm-training(x, s, o), epsilon=0.001, feature_index=2 }", 8, 1e-5, {{1, {0.5, 2, 1}}}},
      {"batch-norm-inference", "f32 f64", "ENTRY e { x = $T[4,3,5] parameter(0)\n s = $T[3] parameter(1)\n o = $T[3] parameter(2)\n m = $T[3] parameter(3)\n v = $T[3] parameter(4)\n ROOT r = $T[4,3,5] batch-norm-inference(x, s, o, m, v), epsilon=0.001, feature_index=1 }", 8, 1e-5, {{4, {0.5, 2, 1}}}},
      {"batch-norm-grad", "f32 f64", "ENTRY e { x = $T[4,3,5] parameter(0)\n s = $T[3] parameter(1)\n m = $T[3] parameter(2)\n v = $T[3] parameter(3)\n g = $T[4,3,5] parameter(4)\n ROOT r = ($T[4,3,5], $T[3], $T[3]) batch-norm-grad(x, s, m, v, g), epsilon=0.001, feature_index=1 }", 8, 1e-5, {{1, {1, 2, 0.5}}, {3, {0.5, 2, 1}}}},
      {"stochastic-convert", "f32", "ENTRY e { x = f32[8] parameter(0)\n n = u32[8] parameter(1)\n ROOT r = s8[8] stochastic-convert(x, n) }", 0, 0, {{0, {1.5, -1.5, 0.25, 200, -3.75}}, {1, {2147483648.0, 1, 4294967295.0}}}},
  };
  AddTriangularSolves(templates);
  return templates;
}

}  // namespace hlorun::conformance
