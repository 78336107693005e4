// Attention tile by tile on devices: the evaluator's values, without the scores in memory, and the same bits whatever
// the number of units.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/opencl/compiler.h"
#include "tests/driver/evaluator_results.h"
#include "tests/passes/attention_programs.h"

namespace hlorun {
namespace {

using hlo::Literal;

class TilesOnDevicesTest : public ::testing::TestWithParam<AttentionProgram> {};

bool GoesByTiles(const hlo::Module& module, DeviceSpec device = {}) {
  device.l2_bytes = kAttentionCache;
  device.l3_bytes = 8 * kAttentionCache;
  const auto kernels = opencl::CompileModule(module, device, {}).plan.kernels;
  return std::any_of(kernels.begin(), kernels.end(),
                     [](const opencl::Kernel& kernel) { return kernel.source.find("hl_tile") != std::string::npos; });
}

// The first device with caches as small, and what else `more` says.
ClientOptions SmallCaches(const std::string& more) {
  ClientOptions options;
  options.device_spec =
      fmt::format(R"({{"l2_bytes": {}, "l3_bytes": {}, {}}})", kAttentionCache, 8 * kAttentionCache, more);
  return options;
}

// Whatever multiplies: the kernels of a tile's products are of many kinds.
TEST_P(TilesOnDevicesTest, GoByTilesOnAnyCpu) {
  const auto module = passes::Parse(GetParam().text);
  std::vector<DeviceSpec> devices(5);
  devices[1].vector_bytes = 32;
  devices[2].has_inline_assembly = true;
  devices[2].bf16_dot = devices[2].s8_dot = "assembly";
  devices[3].has_inline_assembly = devices[3].has_bf16_tiles = devices[3].has_s8_tiles = true;
  devices[4].compute_units = 64;
  for (const DeviceSpec& device : devices)
    EXPECT_EQ(GoesByTiles(*module, device), GetParam().goes_by_tiles) << device.ToJson();
}

TEST_P(TilesOnDevicesTest, EqualTheEvaluatorWhateverTheUnits) {
  const auto module = passes::Parse(GetParam().text);
  const std::vector<Literal> arguments = passes::RandomArguments(*module, passes::Inputs::kMild, 1);
  const std::vector<Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*module, arguments));
  std::vector<std::vector<Literal>> results;
  for (const char* spec : {R"("compute_units": 2)", R"("compute_units": 5, "raw_pointers": false)"}) {
    const auto client = Client::Create(SmallCaches(spec));
    const auto executable = client->Compile(Module::FromText(GetParam().text), {});
    results.push_back(ToLiterals(executable->Run(ToDevice(*client, arguments))));
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(passes::Difference(expected[i], results.back()[i], passes::kRounding), "") << spec << ": " << i;
  }
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(passes::Difference(results[0][i], results[1][i], passes::kBitwise), "") << i;
}

// A loop whose trips each go by tiles.
TEST(TilesOnDevices, InALoop) {
  const std::string text = R"(HloModule m
most {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
body {
  state = (s32[], f32[8,128,16], f32[8,128,16]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  q = f32[8,128,16] get-tuple-element(state), index=1
  k = f32[8,128,16] get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  s = f32[8,128,128] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  zero = f32[] constant(0)
  m = f32[8,128] reduce(s, zero), dimensions={2}, to_apply=most
  ms = f32[8,128,128] broadcast(m), dimensions={0,1}
  t = f32[8,128,128] subtract(s, ms)
  o = f32[8,128,16] dot(t, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  small = f32[] constant(0.01)
  smalls = f32[8,128,16] broadcast(small), dimensions={}
  scaled = f32[8,128,16] multiply(o, smalls)
  ROOT r = (s32[], f32[8,128,16], f32[8,128,16]) tuple(next, scaled, k)
}
condition {
  state = (s32[], f32[8,128,16], f32[8,128,16]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  end = s32[] constant(3)
  ROOT c = pred[] compare(i, end), direction=LT
}
ENTRY e {
  q = f32[8,128,16] parameter(0)
  k = f32[8,128,16] parameter(1)
  zero = s32[] constant(0)
  state = (s32[], f32[8,128,16], f32[8,128,16]) tuple(zero, q, k)
  loop = (s32[], f32[8,128,16], f32[8,128,16]) while(state), condition=condition, body=body
  ROOT r = f32[8,128,16] get-tuple-element(loop), index=1
})";
  EXPECT_TRUE(GoesByTiles(*passes::Parse(text)));
  ExpectEvaluatorsResult(text, SmallCaches(R"("compute_units": 2)"));
}

INSTANTIATE_TEST_SUITE_P(Programs, TilesOnDevicesTest, ::testing::ValuesIn(AttentionPrograms()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hlorun
