// Each expander keeps the value of what it expands, and leaves nothing of it.
#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"
#include "passes/expand/approx_top_k.h"
#include "passes/expand/batch_norm.h"
#include "passes/expand/complex_dot.h"
#include "passes/expand/custom_calls.h"
#include "passes/expand/fft.h"
#include "passes/expand/fft_stages.h"
#include "passes/expand/lapack.h"
#include "passes/expand/linear_algebra.h"
#include "passes/expand/map.h"
#include "passes/expand/reduce_major_first.h"
#include "passes/expand/rng.h"
#include "passes/expand/split_reductions.h"
#include "passes/expand/top_k.h"
#include "passes/generic_context.h"
#include "passes/layout/sort_along_minor.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

TEST(ExpandBatchNorm, Training) {
  constexpr const char* kText = R"(
    x = f32[4,3,5] parameter(0)
    s = f32[3] parameter(1)
    o = f32[3] parameter(2)
    ROOT r = (f32[4,3,5], f32[3], f32[3]) batch-norm-training(x, s, o), epsilon=0.001, feature_index=1)";
  ExpandBatchNorm pass;
  RunAndCompare(kText, pass, kRounding);
  EXPECT_EQ(Count(*RunPass(kText, pass), Opcode::kBatchNormTraining), 0);
}

TEST(ExpandBatchNorm, InferenceAndGradient) {
  constexpr const char* kText = R"(
    x = bf16[4,5,3] parameter(0)
    s = bf16[3] parameter(1)
    o = bf16[3] parameter(2)
    m = bf16[3] parameter(3)
    q = bf16[3] parameter(4)
    v = bf16[3] multiply(q, q)
    g = bf16[4,5,3] parameter(5)
    i = bf16[4,5,3] batch-norm-inference(x, s, o, m, v), epsilon=0.5, feature_index=2
    d = (bf16[4,5,3], bf16[3], bf16[3]) batch-norm-grad(x, s, m, v, g), epsilon=0.5, feature_index=2
    ROOT r = (bf16[4,5,3], (bf16[4,5,3], bf16[3], bf16[3])) tuple(i, d))";
  ExpandBatchNorm pass;
  RunAndCompare(kText, pass, kRounding);
}

TEST(ExpandCholesky, OfPositiveDefiniteMatrices) {
  for (const char* options : {"", ", lower=true", ", lower=false"}) {
    for (const char* type : {"f32", "c64"}) {
      // x x^T + 4 I; the imaginary part of the diagonal is zero because the operands of the product are the same reals.
      const std::string text = fmt::format(R"(
        p = f32[2,4,4] parameter(0)
        d = f32[2,4,4] dot(p, p), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
        i = s32[2,4,4] iota(), iota_dimension=1
        j = s32[2,4,4] iota(), iota_dimension=2
        e = pred[2,4,4] compare(i, j), direction=EQ
        f = f32[2,4,4] convert(e)
        c = f32[] constant(4)
        b = f32[2,4,4] broadcast(c), dimensions={{}}
        u = f32[2,4,4] multiply(f, b)
        a = f32[2,4,4] add(d, u)
        t = {0}[2,4,4] convert(a)
        ROOT r = {0}[2,4,4] cholesky(t){1})",
                                           type, options);
      ExpandCholesky pass;
      RunAndCompare(text, pass, {false, 1e-4});
      EXPECT_EQ(Count(*RunPass(text, pass), Opcode::kWhile), 1);
    }
  }
}

TEST(ExpandTriangularSolve, EverySide) {
  for (const char* left : {"true", "false"}) {
    for (const char* lower : {"true", "false"}) {
      for (const char* unit : {"true", "false"}) {
        for (const char* transpose : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}) {
          // Strong diagonals keep the systems well conditioned.
          const std::string text = fmt::format(R"(
            p = f32[2,3,3] parameter(0)
            x = c64[2,3,3] parameter(1)
            i = s32[2,3,3] iota(), iota_dimension=1
            j = s32[2,3,3] iota(), iota_dimension=2
            e = pred[2,3,3] compare(i, j), direction=EQ
            f = f32[2,3,3] convert(e)
            c = f32[] constant(6)
            b = f32[2,3,3] broadcast(c), dimensions={{}}
            u = f32[2,3,3] multiply(f, b)
            s = f32[2,3,3] add(p, u)
            a = c64[2,3,3] convert(s)
            ROOT r = c64[2,3,3] triangular-solve(a, x), left_side={}, lower={}, unit_diagonal={}, transpose_a={})",
                                               left, lower, unit, transpose);
          ExpandTriangularSolve pass;
          RunAndCompare(text, pass, {false, 1e-4});
        }
      }
    }
  }
}

TEST(ExpandLapack, CholeskyKeepsTheOtherTriangle) {
  ExpandLapack pass;
  for (const char* uplo : {"76", "85"}) {
    const auto module = RunPass(fmt::format(R"(
        a = f32[2,2]{{0,1}} constant({{{{4, 2}}, {{2, 10}}}})
        ROOT r = (f32[2,2]{{0,1}}, s32[]) custom-call(a), custom_call_target="lapack_spotrf_ffi",
          operand_layout_constraints={{f32[2,2]{{0,1}}}}, api_version=API_VERSION_TYPED_FFI,
          backend_config={{uplo = {} : ui8}})",
                                            uplo),
                                pass);
    const hlo::Literal result = hlo::Evaluate(*module, {});
    const auto factor = result.elements()[0].values<float>();
    const bool lower = std::string_view(uplo) == "76";
    EXPECT_EQ(factor[0], 2);
    EXPECT_EQ(factor[lower ? 2 : 1], 1);
    EXPECT_EQ(factor[lower ? 1 : 2], 2) << "as in the operand";
    EXPECT_EQ(factor[3], 3);
    EXPECT_EQ(result.elements()[1].GetInt(0), 0);
  }
}

TEST(ExpandLapack, CholeskyReportsFailure) {
  ExpandLapack pass;
  const auto module = RunPass(R"(
        a = f32[2,2] constant({{1, 2}, {2, 1}})
        ROOT r = (f32[2,2], s32[]) custom-call(a), custom_call_target="lapack_spotrf_ffi",
          api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8})",
                              pass);
  EXPECT_NE(hlo::Evaluate(*module, {}).elements()[1].GetInt(0), 0);
}

TEST(ExpandLapack, TriangularSolve) {
  ExpandLapack pass;
  const auto module = RunPass(R"(
        a = f32[2,2] constant({{2, 9}, {4, 5}})
        b = f32[2,1] constant({{6}, {27}})
        ROOT r = f32[2,1] custom-call(a, b), custom_call_target="lapack_strsm_ffi",
          api_version=API_VERSION_TYPED_FFI,
          backend_config={diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8})",
                              pass);
  const hlo::Literal x = hlo::Evaluate(*module, {});
  EXPECT_EQ(x.values<float>()[0], 3);
  EXPECT_EQ(x.values<float>()[1], 3);
}

TEST(SplitComplexDots, LargeOnesOfEveryForm) {
  constexpr const char* kForms[][3] = {
      {"33,40", "40,35", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
      {"40,33", "35,40", "lhs_contracting_dims={0}, rhs_contracting_dims={1}"},
      {"3,33,40", "3,35,40",
       "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}"},
  };
  for (const char* type : {"c64", "c128"}) {
    for (const auto& [x, y, dimensions] : kForms) {
      const std::string result = std::string_view(x).starts_with("3,") ? "3,33,35" : "33,35";
      const std::string text =
          fmt::format("x = {0}[{1}] parameter(0)\n y = {0}[{2}] parameter(1)\n ROOT r = {0}[{3}] dot(x, y), {4}", type,
                      x, y, result, dimensions);
      SplitComplexDots pass;
      RunAndCompare(text, pass, kRounding);
      const auto split = RunPass(text, pass);
      EXPECT_EQ(Count(*split, Opcode::kDot), 4);
      EXPECT_EQ(Count(*split, Opcode::kComplex), 1);
    }
  }
}

TEST(SplitComplexDots, NotByAVectorNorSmallOnes) {
  for (const auto& [m, n, k] : {std::array{1, 512, 512}, {512, 512, 4}, {16, 16, 16}}) {
    const std::string text = fmt::format(
        "x = c64[{0},{2}] parameter(0)\n y = c64[{2},{1}] parameter(1)\n"
        "ROOT r = c64[{0},{1}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        m, n, k);
    SplitComplexDots pass;
    EXPECT_EQ(Count(*RunPass(text, pass), Opcode::kComplex), 0);
  }
}

TEST(ExpandFft, EveryKindOverOneDimension) {
  ExpandFft pass;
  for (int n : {1, 2, 3, 4, 12, 31, 37, 64, 111, 128}) {
    for (const char* type : {"FFT", "IFFT"}) {
      RunAndCompare(fmt::format(R"(x = c64[3,{0}] parameter(0)
          ROOT r = c64[3,{0}] fft(x), fft_type={1}, fft_length={{{0}}})",
                                n, type),
                    pass, {false, 1e-5});
    }
    RunAndCompare(fmt::format(R"(x = f32[3,{0}] parameter(0)
        ROOT r = c64[3,{1}] fft(x), fft_type=RFFT, fft_length={{{0}}})",
                              n, n / 2 + 1),
                  pass, {false, 1e-5});
    RunAndCompare(fmt::format(R"(x = c64[3,{1}] parameter(0)
        ROOT r = f32[3,{0}] fft(x), fft_type=IRFFT, fft_length={{{0}}})",
                              n, n / 2 + 1),
                  pass, {false, 1e-5});
  }
}

// Transforms of up to `most` points, where they have stages, are a kernel's.
class TransformsByStages : public GenericKernelModel {
 public:
  explicit TransformsByStages(int64_t most = 200) : most_(most) {}
  bool HasFftKernel(hlo::ElementType, int64_t points, int64_t columns) const override {
    return points <= most_ && (columns == 1 || columns >= 16) && !FftStagesOf(points).empty();
  }

 private:
  int64_t most_;
};

TEST(ExpandFft, KernelsOfStages) {
  ExpandFft pass;
  const TransformsByStages kernels;
  // A kernel; two of half the points for real arrays; one of each factor beyond what one kernel takes.
  for (int n : {36, 64, 110, 121, 143, 36 * 40}) {
    for (const auto& [x, r, type] :
         {std::tuple("c64", "c64", "FFT"), {"c64", "c64", "IFFT"}, {"f32", "c64", "RFFT"}, {"c64", "f32", "IRFFT"}}) {
      const int half = n / 2 + 1;
      const std::string text = fmt::format(R"(x = {0}[3,{1}] parameter(0)
          ROOT r = {2}[3,{3}] fft(x), fft_type={4}, fft_length={{{5}}})",
                                           x, std::string_view(type) == "IRFFT" ? half : n, r,
                                           std::string_view(type) == "RFFT" ? half : n, type, n);
      RunAndCompare(text, pass, {false, 1e-5}, kernels);
      EXPECT_GT(Count(*RunPass(text, pass, kernels), Opcode::kCustomCall), 0) << text;
    }
  }
  RunAndCompare(R"(x = f32[2,40,66] parameter(0)
      ROOT r = c64[2,40,34] fft(x), fft_type=RFFT, fft_length={40,66})",
                pass, {false, 1e-5}, kernels);
}

// No product of a large prime's points: transforms of other lengths, of each part of a real array too.
TEST(ExpandFft, LargePrimesByOtherLengths) {
  ExpandFft pass;
  const TransformsByStages kernels(4096);
  for (int n : {67, 2 * 67, 3 * 71, 211, 1031}) {
    for (const auto& [x, r, type] :
         {std::tuple("c64", "c64", "FFT"), {"c64", "c64", "IFFT"}, {"f32", "c64", "RFFT"}, {"c64", "f32", "IRFFT"}}) {
      const int half = n / 2 + 1;
      const std::string text = fmt::format(R"(x = {0}[2,{1}] parameter(0)
          ROOT r = {2}[2,{3}] fft(x), fft_type={4}, fft_length={{{5}}})",
                                           x, std::string_view(type) == "IRFFT" ? half : n, r,
                                           std::string_view(type) == "RFFT" ? half : n, type, n);
      RunAndCompare(text, pass, {false, 1e-5}, kernels);
      const auto module = RunPass(text, pass, kernels);
      EXPECT_EQ(Count(*module, Opcode::kDot), 0) << text;
      EXPECT_EQ(Count(*module, Opcode::kFft), 0) << text;
    }
  }
  RunAndCompare(R"(x = c128[67,3] parameter(0)
      ROOT r = c128[67,3] fft(x), fft_type=FFT, fft_length={67,3})",
                pass, {false, 1e-12});
}

// Along other dimensions than the last, columns are transformed where they lie.
TEST(ExpandFft, KernelsOfColumns) {
  ExpandFft pass;
  const TransformsByStages kernels;
  for (const auto& [x, r, type, length, calls] : {std::tuple("c64[2,9,40,36]", "c64[2,9,40,36]", "FFT", "9,40,36", 3),
                                                  {"c64[3,40,36]", "c64[3,40,36]", "IFFT", "40,36", 2},
                                                  {"f32[5,36,64]", "c64[5,36,33]", "RFFT", "36,64", 2},
                                                  {"c64[5,36,33]", "f32[5,36,64]", "IRFFT", "36,64", 2}}) {
    const std::string text = fmt::format(R"(x = {} parameter(0)
          ROOT r = {} fft(x), fft_type={}, fft_length={{{}}})",
                                         x, r, type, length);
    RunAndCompare(text, pass, {false, 1e-5}, kernels);
    const auto module = RunPass(text, pass, kernels);
    EXPECT_EQ(Count(*module, Opcode::kCustomCall), calls) << text;
    EXPECT_EQ(Count(*module, Opcode::kTranspose), 0) << text;
  }
}

TEST(ExpandFft, SeveralDimensions) {
  ExpandFft pass;
  RunAndCompare(R"(x = c64[2,4,6,5] parameter(0)
      ROOT r = c64[2,4,6,5] fft(x), fft_type=FFT, fft_length={4,6,5})",
                pass, {false, 1e-5});
  RunAndCompare(R"(x = f32[4,6,5] parameter(0)
      ROOT r = c64[4,6,3] fft(x), fft_type=RFFT, fft_length={4,6,5})",
                pass, {false, 1e-5});
  RunAndCompare(R"(x = c64[4,6,5] parameter(0)
      ROOT r = f32[4,6,8] fft(x), fft_type=IRFFT, fft_length={6,8})",
                pass, {false, 1e-5});
  EXPECT_EQ(Count(*RunPass(R"(x = c64[2,4] parameter(0)
      ROOT r = c64[2,4] fft(x), fft_type=FFT, fft_length={2,4})",
                           pass),
                  Opcode::kFft),
            0);
}

// The statistics of a group norm, and the same of other opcodes and orders.
TEST(ReduceMajorFirst, GroupNormStatistics) {
  ReduceMajorFirst pass;
  for (const char* op : {"add", "maximum", "minimum"}) {
    const std::string text = fmt::format(R"(HloModule m
      f {{ a = f32[] parameter(0)
           b = f32[] parameter(1)
           ROOT r = f32[] {}(a, b) }}
      ENTRY e {{ c = f32[4,20,20,16] parameter(0)
                 m = f32[4,8] parameter(1)
                 s = f32[8,2] parameter(2)
                 x = f32[4,20,20,8,2] reshape(c)
                 u = f32[4,20,20,8,2] broadcast(m), dimensions={{0,3}}
                 v = f32[4,20,20,8,2] broadcast(s), dimensions={{3,4}}
                 d = f32[4,20,20,8,2] subtract(x, u)
                 e = f32[4,20,20,8,2] multiply(d, v)
                 z = f32[] constant(0.5)
                 ROOT r = f32[4,8] reduce(e, z), dimensions={{1,2,4}}, to_apply=f }})",
                                         op);
    RunAndCompare(text, pass, kRounding);
    const auto module = RunPass(text, pass);
    EXPECT_EQ(Count(*module, Opcode::kReduce), 2);
  }
}

TEST(ReduceMajorFirst, LeavesLongRunsAndWholeBlocks) {
  ReduceMajorFirst pass;
  const auto reductions = [&](const char* operand, const char* result, const char* dimensions) {
    return Count(*RunPass(fmt::format(R"(HloModule m
      f {{ a = f32[] parameter(0)
           b = f32[] parameter(1)
           ROOT r = f32[] add(a, b) }}
      ENTRY e {{ x = {} parameter(0)
                 z = f32[] constant(0)
                 ROOT r = {} reduce(x, z), dimensions={{{}}}, to_apply=f }})",
                                      operand, result, dimensions),
                          pass),
                 Opcode::kReduce);
  };
  EXPECT_EQ(reductions("f32[4,64,8,64]", "f32[4,8]", "1,3"), 2);
  EXPECT_EQ(reductions("f32[4,64,8,256]", "f32[4,8]", "1,3"), 1);
  EXPECT_EQ(reductions("f32[8,256,32]", "f32[8]", "1,2"), 1);
}

TEST(SplitReductions, KeepsSums) {
  SplitReductions pass;
  constexpr const char* kText = R"(HloModule m
      f { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT r = f32[] add(a, b) }
      ENTRY e { x = f32[4,64,30,16] parameter(0)
                z = f32[] constant(0.5)
                p = f32[16] reduce(x, z), dimensions={0,1,2}, to_apply=f
                q = f32[4] reduce(x, z), dimensions={1,2,3}, to_apply=f
                s = f32[30] reduce(x, z), dimensions={0,1,3}, to_apply=f
                ROOT t = (f32[16], f32[4], f32[30]) tuple(p, q, s) })";
  RunAndCompare(kText, pass, kRounding);
  EXPECT_EQ(Count(*RunPass(kText, pass), Opcode::kReduce), 6);
  DeviceSpec gpu;
  gpu.device_class = DeviceClass::kGpu;
  GenericContext context({}, gpu);
  EXPECT_FALSE(pass.Run(*hlo::ParseModule(kText), context)) << "kernels cut them";
}

TEST(ExpandMap, OfElementwiseComputation) {
  constexpr const char* kText = R"(HloModule m
    f { a = f32[] parameter(0)
        b = f32[] parameter(1)
        c = f32[] constant(3)
        s = f32[] multiply(a, c)
        k = pred[] compare(s, b), direction=LT
        ROOT r = f32[] select(k, s, b) }
    ENTRY e { x = f32[4,3] parameter(0)
              y = f32[4,3] parameter(1)
              ROOT m = f32[4,3] map(x, y), dimensions={0,1}, to_apply=f })";
  ExpandMap pass;
  RunAndCompare(kText, pass);
  EXPECT_EQ(Count(*RunPass(kText, pass), Opcode::kMap), 0);
}

TEST(ExpandTopK, OpcodeAndCustomCall) {
  constexpr const char* kText = R"(HloModule m
    f { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT r = pred[] compare(a, b), direction=GT }
    ENTRY e { x = f32[4,9] parameter(0)
              t = (f32[4,3], s32[4,3]) topk(x), k=3, largest=true
              s = (f32[4,2], s32[4,2]) topk(x), k=2, largest=false
              ROOT r = ((f32[4,3], s32[4,3]), (f32[4,2], s32[4,2])) tuple(t, s) })";
  ExpandTopK pass;
  RunAndCompare(kText, pass);
  EXPECT_EQ(Count(*RunPass(kText, pass), Opcode::kTopK), 0);
}

TEST(ExpandApproxTopK, AlongAnyDimensionCutOrPadded) {
  constexpr const char* kText = R"(HloModule m
    f { a = f32[] parameter(0)
        b = f32[] parameter(1)
        i = s32[] parameter(2)
        j = s32[] parameter(3)
        ROOT r = pred[] compare(a, b), direction=GT }
    g { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT r = pred[] compare(a, b), direction=LT }
    ENTRY e { x = f32[9,4] parameter(0)
              i = s32[9,4] iota(), iota_dimension=0
              v = f32[] constant(-inf)
              j = s32[] constant(-1)
              t = (f32[3,4], s32[3,4]) custom-call(x, i, v, j), custom_call_target="ApproxTopK", called_computations={f},
                backend_config={aggregate_to_topk = true, recall_target = 0.95 : f32, reduction_dim = 0 : i64, top_k = 3 : i64}
              s = f32[9,6] custom-call(x, v), custom_call_target="PartialReduce", called_computations={g},
                backend_config={"log2_reduction": 1, "reduction_dim": 1}
              ROOT r = ((f32[3,4], s32[3,4]), f32[9,6]) tuple(t, s) })";
  ExpandApproxTopK pass;
  RunAndCompare(kText, pass);
  EXPECT_EQ(Count(*RunPass(kText, pass), Opcode::kCustomCall), 0);
}

TEST(SortAlongMinor, ColumnsBecomeRows) {
  constexpr const char* kText = R"(HloModule m
    lt { a = s32[] parameter(0)
         b = s32[] parameter(1)
         c = s32[] parameter(2)
         d = s32[] parameter(3)
         ROOT r = pred[] compare(a, b), direction=LT }
    ENTRY e { x = s32[2,400,90] parameter(0)
              i = s32[2,400,90] iota(), iota_dimension=1
              ROOT s = (s32[2,400,90], s32[2,400,90]) sort(x, i), dimensions={1}, is_stable=true, to_apply=lt })";
  SortAlongMinor pass;
  RunAndCompare(kText, pass);
  EXPECT_EQ(Count(*RunPass(kText, pass), Opcode::kTranspose), 4);
}

TEST(SortAlongMinor, RowsAndSmallSortsStay) {
  constexpr const char* kText = R"(HloModule m
    lt { a = s32[] parameter(0)
         b = s32[] parameter(1)
         ROOT r = pred[] compare(a, b), direction=LT }
    ENTRY e { x = s32[40,9] parameter(0)
              y = s32[66000,1] parameter(1)
              s = s32[40,9] sort(x), dimensions={0}, to_apply=lt
              t = s32[66000,1] sort(y), dimensions={0}, to_apply=lt
              ROOT r = (s32[40,9], s32[66000,1]) tuple(s, t) })";
  SortAlongMinor pass;
  EXPECT_EQ(Count(*RunPass(kText, pass), Opcode::kTranspose), 0);
}

TEST(ExpandCustomCalls, NamedFunctions) {
  ExpandCustomCalls pass;
  const auto module = RunPass(R"(x = f32[4] parameter(0)
      ROOT r = f32[4] custom-call(x), custom_call_target="mhlo.erf")",
                              pass);
  EXPECT_TRUE(module->entry()->root()->Is(Opcode::kErf));
}

TEST(ExpandRng, StaysInItsRangeAndSpreads) {
  ExpandRng pass;
  const auto module = RunPass(R"(
      a = f32[] constant(2)
      b = f32[] constant(3)
      ROOT r = f32[1000] rng(a, b), distribution=rng_uniform)",
                              pass);
  EXPECT_EQ(Count(*module, Opcode::kRng), 0);
  const hlo::Literal numbers = hlo::Evaluate(*module, {});
  double sum = 0;
  for (const float x : numbers.values<float>()) {
    EXPECT_GE(x, 2);
    EXPECT_LT(x, 3);
    sum += static_cast<double>(x);
  }
  EXPECT_NEAR(sum / 1000, 2.5, 0.05);
}

TEST(ExpandRng, NormalHasItsMoments) {
  ExpandRng pass;
  const auto module = RunPass(R"(
      a = f32[] constant(1)
      b = f32[] constant(2)
      ROOT r = f32[4000] rng(a, b), distribution=rng_normal)",
                              pass);
  const hlo::Literal numbers = hlo::Evaluate(*module, {});
  double sum = 0, squares = 0;
  for (const float x : numbers.values<float>()) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x - 1) * static_cast<double>(x - 1);
  }
  EXPECT_NEAR(sum / 4000, 1, 0.15);
  EXPECT_NEAR(squares / 4000, 4, 0.4);
}

}  // namespace
}  // namespace hlorun::passes
