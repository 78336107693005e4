// LAPACK's custom-calls: shapes are checked before anything is called, and what is computed is what XLA's layouts mean.
#include <gmock/gmock.h>

#include "hlo/custom_calls/registry.h"
#include "hlo/custom_calls/signature.h"
#include "hlo/error.h"
#include "tests/hlo/evaluation_text.h"

namespace hlorun::hlo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string MessageOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(LapackTest, LuOfEachMatrixOfABatch) {
  const Literal result = EvaluateEntry(
      "x = f32[2,2,2] parameter(0)\n ROOT r = (f32[2,2,2], s32[2,2], s32[2]) custom-call(x), "
      "custom_call_target=\"lapack_sgetrf_ffi\", backend_config={}",
      {Values(ElementType::kF32, {2, 2, 2}, {1, 2, 4, 4, 0, 1, 0, 2})});
  EXPECT_THAT(Numbers(result.elements()[0]), ElementsAre(4, 4, 0.25, 1, 0, 1, 0, 2));
  EXPECT_THAT(Numbers(result.elements()[1]), ElementsAre(2, 2, 1, 2));
  EXPECT_THAT(Numbers(result.elements()[2]), ElementsAre(0, 1));  // the second is singular
}

TEST(LapackTest, ShapesThatWouldOverrunAreRefused) {
  EXPECT_THAT(MessageOf([] {
                EvaluateEntry(
                    "x = f32[2,2] parameter(0)\n ROOT r = (f32[3,3], s32[3], s32[]) custom-call(x), "
                    "custom_call_target=\"lapack_sgetrf_ffi\", backend_config={}",
                    {Values(ElementType::kF32, {2, 2}, {1, 2, 3, 4})});
              }),
              HasSubstr("result 0 is f32[3,3], which is not T[...,m,n]: dimension 0 must be m = 2"));
  EXPECT_THAT(MessageOf([] {
                EvaluateEntry(
                    "x = f64[2,2] parameter(0)\n ROOT r = (f64[2,2], s32[2], s32[]) custom-call(x), "
                    "custom_call_target=\"lapack_sgetrf_ffi\", backend_config={}",
                    {Values(ElementType::kF64, {2, 2}, {1, 2, 3, 4})});
              }),
              HasSubstr("its type must be f32"));
}

TEST(LapackTest, AMissingOptionIsNamed) {
  EXPECT_THAT(MessageOf([] {
                EvaluateEntry(
                    "x = f32[2,2] parameter(0)\n ROOT r = (f32[2,2], f32[2], s32[]) custom-call(x), "
                    "custom_call_target=\"lapack_ssyevd_ffi\", backend_config={uplo = 76 : ui8}",
                    {Values(ElementType::kF32, {2, 2}, {1, 2, 3, 4})});
              }),
              HasSubstr("has no mode"));
}

TEST(LapackTest, NotANumberGivesInfo) {
  const Literal result = EvaluateEntry(
      "x = f32[1,1] parameter(0)\n ROOT r = (f32[1,1], f32[1], s32[]) custom-call(x), "
      "custom_call_target=\"lapack_ssyevd_ffi\", backend_config={mode = 86 : ui8, uplo = 76 : ui8}",
      {Values(ElementType::kF32, {1, 1}, {std::nan("")})});
  EXPECT_THAT(Numbers(result.elements()[2]), ElementsAre(-4));
}

TEST(SignatureTest, NamesBindAndMustAgree) {
  const Signature signature({"T[...,n]", "s32[n]"}, {"T[...,2*n+1]", "pred[min(n,4)]"});
  const std::vector<Shape> operands = {Shape(ElementType::kF32, {5, 3}), Shape(ElementType::kS32, {3})};
  const Bindings bound =
      signature.Match(operands, std::vector{Shape(ElementType::kF32, {5, 7}), Shape(ElementType::kPred, {3})});
  EXPECT_EQ(bound.sizes.find("n")->second, 3);
  EXPECT_EQ(bound.BatchCount(), 5);
  EXPECT_THAT(
      MessageOf([&] {
        signature.Match(operands, std::vector{Shape(ElementType::kF32, {4, 7}), Shape(ElementType::kPred, {3})});
      }),
      HasSubstr("result 0 is f32[4,7], which is not T[...,2*n+1]: its leading dimensions must be [5]"));
}

TEST(SignatureTest, BadPatternsAndExpressionsAreRefused) {
  for (const char* text : {"", "f32", "f99[n]", "f32[n,...]", "f32[n,]", "f32[n", "[n]"}) {
    EXPECT_NE(MessageOf([&] { Signature({text}, {}); }), "no error") << text;
  }
  Bindings bindings;
  bindings.sizes["n"] = 6;
  EXPECT_EQ(EvaluateSizeExpression("ceildiv(n + 1, 4) * (2 - 1)", bindings), 2);
  for (const char* text :
       {"", "n n", "n/0", "m", "9223372036854775807*n", "max(n)", "f(n,n)", "((n)", "99999999999999999999"}) {
    EXPECT_NE(MessageOf([&] { EvaluateSizeExpression(text, bindings); }), "no error") << text;
  }
  EXPECT_NE(MessageOf([&] { EvaluateSizeExpression(std::string(100000, '('), bindings); }), "no error");
}

TEST(CustomCallTest, UnknownTargetsNameTheNearestKnownOnes) {
  CustomCallRegistry registry;
  registry.Add({"mylib::square", Signature({"f32[n]"}, {"f32[n]"}), [](const HostCall&) {}, {}});
  EXPECT_THAT(MessageOf([&] { FailUnknownTarget(&registry, "mylib::sqare"); }),
              HasSubstr("known ones are \"mylib::square\""));
  EXPECT_THAT(MessageOf([&] { FailUnknownTarget(nullptr, "lapack_sgetrf"); }), HasSubstr("\"lapack_sgetrf_ffi\""));
  EXPECT_THAT(MessageOf([&] { FailUnknownTarget(nullptr, "xla_ffi_python_cpu_callback"); }),
              HasSubstr("calls back into the Python"));
  EXPECT_THAT(MessageOf([&] {
                registry.Add({"lapack_sgetrf_ffi", Signature({}, {}), {}, {}});
              }),
              HasSubstr("hlorun's own"));
  EXPECT_THAT(MessageOf([&] {
                registry.Add({"mylib::square", Signature({}, {}), {}, {}});
              }),
              HasSubstr("registered twice"));
}

TEST(CustomCallTest, ConfigTextTellsKeysApart) {
  const std::string config = "{trans_x = 84 : ui8, x = 5 : i32, left = true, transpose = false}";
  EXPECT_EQ(ConfigInteger(config, "x"), 5);
  EXPECT_EQ(ConfigInteger(config, "trans_x"), 84);
  EXPECT_EQ(ConfigInteger(config, "left"), 1);
  EXPECT_EQ(ConfigInteger(config, "transpose"), 0);
  EXPECT_THAT(MessageOf([&] { ConfigInteger(config, "y"); }), HasSubstr("has no y"));
}

}  // namespace
}  // namespace hlorun::hlo
