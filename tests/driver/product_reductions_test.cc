// Reductions of products that the products' own kernels begin: the evaluator's values, and no matrix in memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "backends/opencl/compiler.h"
#include "backends/opencl/kernels/product_candidates.h"
#include "backends/opencl/kernels/tuning_record.h"
#include "driver/api/literals.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlorun/hlorun.h"
#include "tests/passes/equivalence.h"
#include "tests/passes/replaced.h"

namespace hlorun {
namespace {

using hlo::Literal;

struct Program {
  std::string name, type;
  int64_t m = 420, n = 337, k = 19;
  std::string body;  // of d: type[m,n], u: type[m], v: type[n]; the reduction at its root
  bool has_batch = false;
};

constexpr const char* kReducers = R"(HloModule m
add { a = TYPE[] parameter(0)
      b = TYPE[] parameter(1)
      ROOT c = TYPE[] add(a, b) }
least { a = TYPE[] parameter(0)
        b = TYPE[] parameter(1)
        ROOT c = TYPE[] minimum(a, b) }
either { a = pred[] parameter(0)
         b = pred[] parameter(1)
         ROOT c = pred[] or(a, b) }
first_least { a = TYPE[] parameter(0)
              i = s32[] parameter(1)
              b = TYPE[] parameter(2)
              j = s32[] parameter(3)
              less = pred[] compare(a, b), direction=LT
              same = pred[] compare(a, b), direction=EQ
              before = pred[] compare(i, j), direction=LT
              earlier = pred[] and(same, before)
              is_nan = pred[] compare(a, a), direction=NE
              keeps = pred[] or(less, is_nan)
              takes = pred[] or(keeps, earlier)
              x = TYPE[] select(keeps, a, b)
              n = s32[] select(takes, i, j)
              ROOT t = (TYPE[], s32[]) tuple(x, n) }
)";

constexpr const char* kDistances = R"(
  us = TYPE[M,N] broadcast(u), dimensions={0}
  vs = TYPE[M,N] broadcast(v), dimensions={1}
  sums = TYPE[M,N] add(us, vs)
  e = TYPE[M,N] subtract(sums, d))";
constexpr const char* kNearest = R"(
  numbers = s32[M,N] iota(), iota_dimension=1
  far = TYPE[] constant(LARGEST)
  none = s32[] constant(0)
  ROOT r = (TYPE[M], s32[M]) reduce(e, numbers, far, none), dimensions={1}, to_apply=first_least)";

std::vector<Program> Programs() {
  const std::string distances = kDistances, nearest = distances + kNearest;
  const std::string sum_rows = R"(
  ROOT r = TYPE[N] reduce(d, start), dimensions={0}, to_apply=add)";
  const std::string sum_columns = R"(
  f = TYPE[M,N] abs(d)
  ROOT r = TYPE[M] reduce(f, start), dimensions={1}, to_apply=add)";
  return {
      {.name = "rows", .type = "f32", .body = sum_rows},
      {.name = "columns", .type = "f32", .body = sum_columns},
      {.name = "rows_by_deep", .type = "f32", .k = 100, .body = sum_rows},
      {.name = "columns_of_few_rows", .type = "f32", .m = 1680, .n = 130, .body = sum_columns},
      {.name = "all", .type = "f32", .body = R"(
  f = TYPE[M,N] multiply(d, d)
  ROOT r = TYPE[] reduce(f, start), dimensions={0,1}, to_apply=add)"},
      {.name = "least", .type = "f32", .body = distances + R"(
  ROOT r = TYPE[M] reduce(e, start), dimensions={1}, to_apply=least)"},
      {.name = "nearest", .type = "f32", .body = nearest},
      {.name = "nearest_f64", .type = "f64", .body = nearest},
      {.name = "rows_s32", .type = "s32", .body = sum_rows},
      {.name = "rows_f16", .type = "f16", .m = 525, .n = 600, .body = R"(
  ROOT r = TYPE[N] reduce(d, start), dimensions={0}, to_apply=least)"},
      {.name = "nearest_bf16", .type = "bf16", .m = 525, .n = 1200, .k = 64, .body = nearest},
      {.name = "columns_bf16", .type = "bf16", .m = 1050, .n = 1200, .k = 128, .body = sum_columns},
      {.name = "start_given", .type = "f32", .body = R"(
  given = TYPE[1] slice(u), slice={[7:8]}
  number = TYPE[] reshape(given)
  ROOT r = TYPE[M] reduce(d, number), dimensions={1}, to_apply=least)"},
      {.name = "any", .type = "f32", .body = R"(
  vs = TYPE[M,N] broadcast(v), dimensions={1}
  above = pred[M,N] compare(d, vs), direction=GT
  no = pred[] constant(false)
  ROOT r = pred[M] reduce(above, no), dimensions={1}, to_apply=either)"},
      // Two values of the product at once.
      {.name = "nearest_of_squares", .type = "f32", .body = R"(
  numbers = s32[M,N] iota(), iota_dimension=1
  squares = TYPE[M,N] multiply(d, d)
  whole = s32[M,N] convert(d)
  places = s32[M,N] add(whole, numbers)
  far = TYPE[] constant(LARGEST)
  none = s32[] constant(0)
  ROOT r = (TYPE[M], s32[M]) reduce(squares, places, far, none), dimensions={1}, to_apply=first_least)"},
      {.name = "batches",
       .type = "f32",
       .m = 170,
       .n = 337,
       .body = R"(
  f = TYPE[3,M,N] negate(d)
  ROOT r = TYPE[3,M] reduce(f, start), dimensions={2}, to_apply=add)",
       .has_batch = true},
      {.name = "over_batches",
       .type = "f32",
       .m = 170,
       .n = 337,
       .body = R"(
  ROOT r = TYPE[N] reduce(d, start), dimensions={0,1}, to_apply=add)",
       .has_batch = true},
  };
}

std::string TextOf(const Program& p) {
  const std::string batch = p.has_batch ? "3," : "",
                    attributes = p.has_batch ? "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
                                               "rhs_contracting_dims={2}"
                                             : "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
  const std::string text = fmt::format(R"({}
ENTRY e {{
  x = TYPE[{}M,K] parameter(0)
  y = TYPE[{}N,K] parameter(1)
  u = TYPE[M] parameter(2)
  v = TYPE[N] parameter(3)
  start = TYPE[] constant(3)
  d = TYPE[{}M,N] dot(x, y), {}{}
}})",
                                       kReducers, batch, batch, batch, attributes, p.body);
  return Replaced(text, {{"TYPE", p.type},
                         {"M,", std::to_string(p.m) + ","},
                         {"M]", std::to_string(p.m) + "]"},
                         {"N,", std::to_string(p.n) + ","},
                         {"N]", std::to_string(p.n) + "]"},
                         {"K]", std::to_string(p.k) + "]"},
                         {"LARGEST", p.type == "s32" ? "2147483647" : "inf"}});
}

class ProductReductionsTest : public ::testing::TestWithParam<std::tuple<Program, std::string>> {};

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

TEST_P(ProductReductionsTest, EqualsTheEvaluatorAndStoresNoMatrix) {
  const auto& [program, device_class] = GetParam();
  const std::string text = TextOf(program);
  ClientOptions options;
  options.device_class = device_class;
  options.device_spec = R"({"l2_bytes": 262144})";  // products of half a megabyte are large
  const auto client = Client::Create(options);
  const auto executable = client->Compile(Module::FromText(text), {});
  const auto module = passes::Parse(text);
  const std::vector<Literal> arguments = passes::RandomArguments(*module, passes::Inputs::kMild, 1);
  const std::vector<Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*module, arguments));
  const std::vector<Literal> results = ToLiterals(executable->Run(ToDevice(*client, arguments)));
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(passes::Difference(expected[i], results[i], passes::kRounding), "") << "result " << i;
  const auto is_product = [](const auto& op) { return op->Is(hlo::Opcode::kDot); };
  const auto& all = module->entry()->instructions();
  const int64_t matrix = (*std::find_if(all.begin(), all.end(), is_product))->shape().ByteSize();
  EXPECT_LT(executable->memory().arena_bytes, matrix);
}

// Whatever else is kept from run to run, the rows of a group are the same when fusions are formed and when kernels are:
// kernels of products keep a copy of what does not change, a loop of sums would not.
TEST(ProductReductions, OfConstantParameters) {
  DeviceSpec device;
  device.has_bf16_tiles = device.has_s8_tiles = true;  // which pay for more products where a copy is kept
  const auto arena = [&](int64_t m, const std::vector<int64_t>& constant_parameters) {
    const std::string text = Replaced(kReducers, {{"TYPE", "f32"}}) + fmt::format(R"(
ENTRY e {{
  x = f32[{0},64] parameter(0)
  y = f32[4096,64] parameter(1)
  half = f32[] constant(0.5)
  halves = f32[4096,64] broadcast(half), dimensions={{}}
  z = f32[4096,64] multiply(y, halves)
  d = f32[{0},4096] dot(x, z), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  start = f32[] constant(0)
  ROOT r = f32[4096] reduce(d, start), dimensions={{0}}, to_apply=add
}})",
                                                                                  m);
    CompileOptions options;
    options.constant_parameters = constant_parameters;
    return opencl::CompileModule(*passes::Parse(text), device, options).plan.memory.arena_bytes;
  };
  for (const int64_t m : {192, 256, 320, 384, 512}) EXPECT_GT(arena(m, {1}), arena(m, {})) << m;
}

// Tiles of other rows would add in another order: what was measured for the product by itself is not for its
// reductions.
class TunedProductReductions : public ::testing::TestWithParam<DeviceClass> {};

TEST_P(TunedProductReductions, AreAsTheRulesHaveThem) {
  const auto sources = [](const DeviceSpec& device, const std::string& root, const CompileOptions& options) {
    const std::string text = Replaced(kReducers, {{"TYPE", "f32"}}) + R"(
ENTRY e {
  x = f32[512,64] parameter(0)
  y = f32[4096,64] parameter(1)
  start = f32[] constant(0)
  d = f32[512,4096] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
)" + root + "}";
    auto compiled = opencl::CompileModule(*passes::Parse(text), device, options);
    std::vector<std::string> found;
    for (const opencl::Kernel& kernel : compiled.plan.kernels) found.push_back(kernel.source);
    return std::tuple(found, compiled.products, compiled.plan.memory.arena_bytes);
  };
  constexpr const char* kReduced = "ROOT r = f32[4096] reduce(d, start), dimensions={0}, to_apply=add\n";
  constexpr const char* kAlone = "ROOT r = f32[512,4096] negate(d)\n";
  DeviceSpec device;
  device.device_class = GetParam();
  const auto [rules, none, arena] = sources(device, kReduced, {});
  EXPECT_TRUE(none.empty());         // nothing is measured for it
  EXPECT_LT(arena, 512 * 4096 * 4);  // it is reduced where it is made
  const auto [alone, products, of_alone] = sources(device, kAlone, {});
  ASSERT_EQ(products.size(), 1u);
  int64_t others = 0;
  for (const opencl::ProductSchedule& schedule : opencl::ProductCandidates(products[0].problem, device, false, false)) {
    auto record = std::make_shared<opencl::TuningRecord>(device);
    record->Set(products[0].problem, {.schedule = schedule});
    CompileOptions options;
    options.tuned = record;
    EXPECT_EQ(std::get<0>(sources(device, kReduced, options)), rules) << opencl::ToString(schedule);
    others += std::get<0>(sources(device, kAlone, options)) != alone ? 1 : 0;
  }
  EXPECT_GT(others, 0);
}

INSTANTIATE_TEST_SUITE_P(Classes, TunedProductReductions, ::testing::Values(DeviceClass::kCpu, DeviceClass::kGpu),
                         [](const auto& info) { return info.param == DeviceClass::kCpu ? "cpu" : "gpu"; });
INSTANTIATE_TEST_SUITE_P(Programs, ProductReductionsTest,
                         ::testing::Combine(::testing::ValuesIn(Programs()), ::testing::Values("cpu", "gpu")),
                         [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

}  // namespace
}  // namespace hlorun
