// Reductions of GPU class whose lanes join by exchanges within sub-groups: the bits of those that join in local memory,
// whatever the sub-groups' size; and which kernels do so.
#include "backends/opencl/codegen/sub_groups.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <span>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/runtime/device.h"
#include "hlo/text/parser.h"
#include "tests/backends/launch_runner.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Literal;

LaunchRunner& Runner() {
  static LaunchRunner runner;
  return runner;
}

DeviceSpec Gpu(std::string_view moves, int64_t size) {
  DeviceSpec spec = Runner().spec();
  spec.device_class = DeviceClass::kGpu;
  spec.vector_bytes = 4;
  spec.local_memory_bytes = 48 << 10;
  spec.max_work_group_size = 1024;
  spec.sub_group_moves = moves;
  spec.sub_group_size = size;
  return spec;
}

// With sub-groups of several sizes that any device plays, and those of this one if it has any.
std::vector<DeviceSpec> WithSubGroups() {
  std::vector<DeviceSpec> specs;
  for (const int64_t size : {4, 32}) specs.push_back(Gpu(kPlainExchange, size));
  const DeviceSpec here = FindDevice("")->spec();
  if (!here.sub_group_moves.empty()) specs.push_back(Gpu(here.sub_group_moves, here.sub_group_size));
  return specs;
}

// Ordinary values, and zeros of both signs. Where `with_nans`, a few NaNs too, all of them different.
Literal ArgumentOf(const hlo::Shape& shape, bool with_nans) {
  Literal literal(shape);
  const ElementType type = shape.element_type();
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < shape.ElementCount(); ++i) {
    if (type == ElementType::kPred) {
      literal.SetInt(i, random() % 200 == 0 ? 1 : 0);
    } else if (hlo::IsInteger(type)) {
      literal.SetInt(i, static_cast<int64_t>((uint64_t{random()} << 32U) + random()));
    } else if (hlo::IsComplex(type)) {
      literal.SetComplex(i, {normal(random), normal(random)});
    } else {
      literal.SetDouble(i, random() % 3 == 0 ? std::copysign(0.0, normal(random)) : normal(random));
    }
  }
  if (with_nans) {
    const std::span<float> values = literal.mutable_values<float>();
    for (size_t i = 5; i < values.size(); i += 97)
      values[i] = std::bit_cast<float>(0x7fc00000U + static_cast<uint32_t>(i));
  }
  return literal;
}

using Bytes = std::vector<std::byte>;

// Of each leaf of what the entry's root computes from the entry's parameters.
std::vector<Bytes> ResultsOf(const std::string& text, bool with_nans, const DeviceSpec& spec) {
  const auto module = hlo::ParseModule(text);
  const hlo::Instruction& root = *module->entry()->root();
  std::vector<Literal> literals;
  for (const hlo::Instruction* operand : root.operands()) {
    literals.push_back(operand->IsConstant() ? operand->literal() : ArgumentOf(operand->shape(), with_nans));
  }
  std::vector<void*> operands, results;
  for (Literal& literal : literals) operands.push_back(literal.mutable_data());
  std::vector<Bytes> leaves;
  for (const hlo::Shape& leaf : hlo::FlattenShape(root.shape()))
    leaves.emplace_back(static_cast<size_t>(leaf.ByteSize()));
  for (Bytes& leaf : leaves) results.push_back(leaf.data());
  const CompileOptions options;
  const OpenClKernelModel model(spec, options);
  Bytes scratch(static_cast<size_t>(model.ScratchBytes(root)));
  Runner().Run(EmitInstruction(root, AliasPattern(leaves.size(), -1), {spec, options}), operands, results,
               scratch.data());
  return leaves;
}

void ExpectSameBits(const std::string& text, bool with_nans = false) {
  const std::vector<Bytes> want = ResultsOf(text, with_nans, Gpu("", 0));
  for (const DeviceSpec& spec : WithSubGroups()) {
    EXPECT_EQ(ResultsOf(text, with_nans, spec), want) << spec.sub_group_moves << " of " << spec.sub_group_size << ":\n"
                                                      << text;
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

std::string Softmax(int64_t rows, int64_t columns) {
  return fmt::format(
      R"(max {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }}
         add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
         f {{ x = f32[{0},{1}] parameter(0) n = f32[] constant(-inf) h = f32[{0}] reduce(x, n), dimensions={{1}}, to_apply=max
           hb = f32[{0},{1}] broadcast(h), dimensions={{0}} d = f32[{0},{1}] subtract(x, hb) ex = f32[{0},{1}] exponential(d)
           z = f32[] constant(0) s = f32[{0}] reduce(ex, z), dimensions={{1}}, to_apply=add
           sb = f32[{0},{1}] broadcast(s), dimensions={{0}} ROOT q = f32[{0},{1}] divide(ex, sb) }}
         ENTRY e {{ x = f32[{0},{1}] parameter(0) ROOT r = f32[{0},{1}] fusion(x), kind=kLoop, calls=f }})",
      rows, columns);
}

std::string Argmax(int64_t rows, int64_t columns) {
  return fmt::format(
      R"(m {{ a = f64[] parameter(0) i = s32[] parameter(1) b = f64[] parameter(2) j = s32[] parameter(3) p = pred[] compare(a, b), direction=GE
           v = f64[] select(p, a, b) k = s32[] select(p, i, j) ROOT t = (f64[], s32[]) tuple(v, k) }}
         ENTRY e {{ x = f64[{0},{1}] parameter(0) n = s32[{0},{1}] parameter(1) z = f64[] constant(-inf) o = s32[] constant(0)
           ROOT r = (f64[{0}], s32[{0}]) reduce(x, n, z, o), dimensions={{1}}, to_apply=m }})",
      rows, columns);
}

TEST(SubGroups, RowsOfAnyLengthHaveTheSameBits) {
  // Lanes that are part of a sub-group, one, several, and so many that memory joins some of them first; a group that is
  // less than a sub-group.
  for (const char* shape : {"600,10", "600,300", "9,4096", "5,9001", "7,40009", "1,16"}) {
    const std::string from = shape;
    ExpectSameBits(Reduce("f32", from, from.substr(0, from.find(',')), "1"));
  }
  ExpectSameBits(Reduce("f32", "400,301", "", "0,1"));
}

TEST(SubGroups, AllTypesHaveTheSameBits) {
  for (const char* type : {"s8", "u16", "s32", "u64", "bf16", "f64"}) ExpectSameBits(Reduce(type, "9,1000", "9", "1"));
  ExpectSameBits(Reduce("s64", "9,1000", "9", "1", "maximum", "-7"));
  ExpectSameBits(Reduce("pred", "9,1000", "9", "1", "or", "false"));
  ExpectSameBits(Reduce("c64", "9,1000", "9", "1", "add", "(1, 2)"));
  ExpectSameBits(Reduce("c128", "9,300", "9", "1", "multiply", "(1, 2)"));
  ExpectSameBits(Reduce("f32", "9,50", "9", "1", "multiply", "2"));
}

TEST(SubGroups, ZerosAndNansAreTheSame) {
  for (const char* op : {"maximum", "minimum"}) {
    ExpectSameBits(Reduce("f32", "9,1000", "9", "1", op, "-0"));
    ExpectSameBits(Reduce("f32", "50,300", "50", "1", op, "-0"), /*with_nans=*/true);
    ExpectSameBits(Reduce("bf16", "9,1000", "9", "1", op, "0"));
  }
}

TEST(SubGroups, SweepsThatFollowHaveTheSameBits) {
  for (const int64_t columns : {200, 9001}) ExpectSameBits(Softmax(300, columns));
}

TEST(SubGroups, LanesInTheirOrderHaveTheSameBits) {
  for (const int64_t columns : {200, 1001}) ExpectSameBits(Argmax(30, columns));
}

// Only where a runtime's extensions say that there are exchanges (Intel's) can what the probe says of them be held
// against something.
TEST(SubGroups, TheProbeAgreesWithTheExtensions) {
  const std::shared_ptr<Device> here = FindDevice("");
  const std::string extensions = here->device().getInfo<CL_DEVICE_EXTENSIONS>();
  if (extensions.find("cl_khr_subgroup_shuffle") == std::string::npos) GTEST_SKIP() << "no exchanges here";
  EXPECT_EQ(here->spec().sub_group_moves, "khr");
  EXPECT_GE(here->spec().sub_group_size, 4);
}

// The first kernel of the root.
std::string SourceOf(const std::string& text, const DeviceSpec& spec) {
  const auto module = hlo::ParseModule(text);
  const CompileOptions options;
  return EmitInstruction(*module->entry()->root(), {-1}, {spec, options}).front().source;
}
int CountOf(const std::string& what, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(SubGroups, ATeamInOneNeedsNoLocalMemory) {
  const std::string source = SourceOf(Reduce("f32", "6000,100", "6000", "1"), Gpu("ptx", 32));
  EXPECT_EQ(CountOf("__local", source), 0) << source;
  EXPECT_EQ(CountOf("barrier(", source), 0) << source;
  EXPECT_GT(CountOf(" = as_float(hl_exchange(", source), 2) << source;
  EXPECT_EQ(CountOf("shfl.sync.bfly", source), 1) << source;
}

TEST(SubGroups, ATeamOfSeveralMeetsOnce) {
  const std::string text = Reduce("f32", "6000,4096", "6000", "1");
  EXPECT_EQ(CountOf("barrier(", SourceOf(text, Gpu("ptx", 32))), 1);
  EXPECT_EQ(CountOf("barrier(", SourceOf(text, Gpu("", 32))), 2);
}

TEST(SubGroups, KernelsAskForTheSizeWhereTheyCan) {
  const std::string text = Reduce("f64", "6000,100", "6000", "1"),
                    attribute = "__attribute__((intel_reqd_sub_group_size(16)))";
  const std::string khr = SourceOf(text, Gpu("khr", 16));
  EXPECT_EQ(CountOf(attribute, khr), 1) << khr;
  EXPECT_EQ(CountOf("sub_group_shuffle_xor(x, distance)", khr), 1) << khr;
  EXPECT_EQ(CountOf("sub_group", SourceOf(text, Gpu("ptx", 16))), 0);
  EXPECT_EQ(CountOf("sub_group", SourceOf(text, Gpu("", 16))), 0);
}

TEST(SubGroups, OthersAreWhatTheyAreWithoutThem) {
  const auto expect_same = [](const std::string& text, const DeviceSpec& a, const DeviceSpec& b) {
    EXPECT_EQ(SourceOf(text, a), SourceOf(text, b));
  };
  const std::string columns = Reduce("f32", "3001,130", "130", "0"), rows = Reduce("f32", "6000,100", "6000", "1");
  expect_same(columns, Gpu("khr", 16), Gpu("", 0));
  expect_same(Reduce("f32", "1,16", "1", "1"), Gpu("khr", 32), Gpu("", 0));  // fewer work-items than a sub-group has
  expect_same(rows, Gpu("", 32), Gpu("", 0));
  expect_same(rows, Gpu("khr", 48), Gpu("", 0));
  DeviceSpec cpu = Gpu("khr", 16), poorer_cpu = Gpu("", 0);
  cpu.device_class = poorer_cpu.device_class = DeviceClass::kCpu;
  expect_same(rows, cpu, poorer_cpu);
}

}  // namespace
}  // namespace hlorun::opencl
