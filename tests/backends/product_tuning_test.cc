// Candidate schedules of matrix products: which there are, that each is right, and how choices are written down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/kernels/convolution.h"
#include "backends/opencl/kernels/dot.h"
#include "backends/opencl/kernels/product_candidates.h"
#include "backends/opencl/kernels/tuning_record.h"
#include "backends/opencl/runtime/clblast_override.h"
#include "backends/opencl/tuning/clblast_tuner.h"
#include "backends/opencl/tuning/product_contest.h"
#include "backends/opencl/tuning/tuner.h"
#include "hlo/atomic_file.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"
#include "tests/backends/launch_runner.h"
#include "tests/backends/runtime_plans.h"

namespace hlorun::opencl {
namespace {

using ::testing::HasSubstr;
using enum hlo::ElementType;

ProductProblem Problem(int64_t batch, int64_t m, int64_t n, int64_t k, hlo::ElementType type = kF32, int form = 0) {
  ProductProblem problem;
  ProductShape& s = problem.shape;
  s.batch = batch;
  s.m = m;
  s.n = n;
  s.k = k;
  s.lhs_type = s.rhs_type = problem.result_type = type;
  s.lhs_transposed = (form & 1) != 0;
  s.rhs_transposed = (form & 2) != 0;
  s.compute_type = *SumType(type, type, type);
  return problem;
}

// Of s8, summed in s32.
ProductProblem S8Problem(int64_t batch, int64_t m, int64_t n, int64_t k, int form = 0) {
  ProductProblem problem = Problem(batch, m, n, k, kS8, form);
  problem.result_type = problem.shape.compute_type = kS32;
  return problem;
}

const std::vector<ProductProblem>& Problems() {
  static const std::vector<ProductProblem> problems = {
      Problem(1, 512, 512, 512),         Problem(1, 7, 2000, 300),         Problem(8, 130, 64, 196, kBF16, 2),
      Problem(1, 300, 5, 4000, kF64, 1), Problem(2, 33, 70, 65, kS32, 3),  Problem(1, 1, 1, 1),
      Problem(1, 128, 4096, 64, kF16),   Problem(2, 20, 200, 130, kF32, 2)};
  return problems;
}

DeviceSpec Device(DeviceClass device_class, int64_t local_memory = 32 << 10, int64_t group = 4096,
                  int64_t vector = 64) {
  DeviceSpec device;
  device.device_class = device_class;
  device.local_memory_bytes = local_memory;
  device.max_work_group_size = group;
  device.vector_bytes = vector;
  return device;
}

std::vector<DeviceSpec> Devices() {
  return {Device(DeviceClass::kGpu),
          Device(DeviceClass::kGpu, 16 << 10, 128),
          Device(DeviceClass::kGpu, 1 << 10, 7),
          Device(DeviceClass::kGpu, 256, 1),
          Device(DeviceClass::kCpu),
          Device(DeviceClass::kCpu, 0, 1, 16),
          Device(DeviceClass::kCpu, 0, 1, 32)};
}

TEST(ProductCandidates, AreWithinTheDevicesLimits) {
  for (const DeviceSpec& device : Devices()) {
    for (const ProductProblem& problem : Problems()) {
      for (const bool few : {true, false}) {
        const auto candidates = ProductCandidates(problem, device, few, /*other_orders=*/true);
        ASSERT_FALSE(candidates.empty()) << problem.ToString();
        EXPECT_EQ(candidates[0], ScheduleByRule(problem, device));
        EXPECT_LE(candidates.size(), few ? 12u : 400u);
        std::set<std::string> texts;
        for (const ProductSchedule& candidate : candidates) {
          EXPECT_TRUE(texts.insert(ToString(candidate)).second) << ToString(candidate);
          EXPECT_EQ(WhyNot(candidate, problem, device), "") << ToString(candidate);
          if (const auto* tiled = std::get_if<TiledSchedule>(&candidate)) {
            EXPECT_LE(tiled->items, device.max_work_group_size);
            EXPECT_LE((tiled->rows() + tiled->columns()) * tiled->depth * hlo::BytesOf(problem.shape.compute_type),
                      device.local_memory_bytes);
          }
        }
      }
    }
  }
}

TEST(ProductCandidates, LibrariesAndOtherOrdersOnlyWhereAsked) {
  const ProductProblem problem = Problem(1, 512, 512, 512);
  const auto has_library = [](const std::vector<ProductSchedule>& all) {
    return std::any_of(all.begin(), all.end(),
                       [](const auto& s) { return std::holds_alternative<LibrarySchedule>(s); });
  };
  const auto has_other_order = [&](const std::vector<ProductSchedule>& all) {
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& s) { return !AddInTheSameOrder(s, all[0], problem.shape.k); });
  };
  const auto all = ProductCandidates(problem, Device(DeviceClass::kGpu), false, true);
  EXPECT_TRUE(has_library(all) && has_other_order(all));
  EXPECT_FALSE(has_library(ProductCandidates(problem, Device(DeviceClass::kGpu), true, true)));
  for (const bool few : {true, false}) {
    EXPECT_FALSE(has_other_order(ProductCandidates(problem, Device(DeviceClass::kGpu), few, false)));
    EXPECT_FALSE(has_other_order(ProductCandidates(problem, Device(DeviceClass::kCpu), few, true)));
  }
}

TEST(ProductCandidates, KeepTheRulesPartsOfASum) {
  for (const DeviceSpec& device : {Device(DeviceClass::kCpu), Device(DeviceClass::kCpu, 0, 1, 32)}) {
    for (const ProductProblem& problem : Problems()) {
      const ProductPlan rule = PlanProduct(problem.shape, device);
      for (const ProductSchedule& candidate : ProductCandidates(problem, device, false, true)) {
        const ProductPlan plan = PlanProduct(problem.shape, device, &std::get<PanelSchedule>(candidate));
        EXPECT_EQ(plan.k_parts, rule.k_parts);
        EXPECT_EQ(plan.dot_products, rule.dot_products);
      }
    }
  }
}

// Two images, padded by a row and a column before.
ProductProblem ConvolutionOf(int64_t size, int64_t window, int64_t stride, int64_t channels, int64_t features,
                             hlo::ElementType type = kF32, std::optional<hlo::ElementType> result = std::nullopt,
                             int64_t groups = 1) {
  ConvolutionShape shape;
  shape.groups = groups;
  const int64_t low = window > 1 ? 1 : 0;
  shape.batch = 2;
  shape.channels = channels;
  shape.features = features;
  shape.rows = shape.columns = {size, (size + low - window) / stride + 1, window, stride, low, 1, 1};
  shape.input_type = shape.weight_type = type;
  shape.compute_type = *SumType(type, type, result.value_or(type));
  return ConvolutionProblem(shape, result.value_or(type));
}

std::string ProductText(const ProductProblem& p) {
  if (p.convolution) {
    const ConvolutionShape& c = *p.convolution;
    const ConvolutionDimension& d = c.rows;
    return fmt::format(
        "HloModule m\nENTRY e {{\n  a = {0}[{1},{2},{2},{11}] parameter(0)\n  b = {0}[{4},{4},{3},{5}] parameter(1)\n"
        "  ROOT d = {10}[{1},{6},{6},{5}] convolution(a, b), window={{size={4}x{4} stride={7}x{7} pad={8}_{9}x{8}_{9}}}, "
        "dim_labels=b01f_01io->b01f, feature_group_count={12}\n}}\n",
        hlo::ElementTypeName(c.input_type), c.batch, d.in, c.channels, d.window, c.features, d.out, d.stride, d.low,
        (d.out - 1) * d.stride + d.window - d.in - d.low, hlo::ElementTypeName(p.result_type), c.groups * c.channels,
        c.groups);
  }
  const ProductShape& s = p.shape;
  const bool batched = s.batch > 1;
  const auto matrix = [&](hlo::ElementType type, int64_t rows, int64_t columns, bool transposed) {
    if (transposed) std::swap(rows, columns);
    return fmt::format("{}[{}{},{}]", hlo::ElementTypeName(type), batched ? fmt::format("{},", s.batch) : "", rows,
                       columns);
  };
  const int first = batched ? 1 : 0;
  return fmt::format(
      "HloModule m\nENTRY e {{\n  a = {} parameter(0)\n  b = {} parameter(1)\n  ROOT d = {} dot(a, b), {}"
      "lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}\n}}\n",
      matrix(s.lhs_type, s.m, s.k, s.lhs_transposed), matrix(s.rhs_type, s.k, s.n, s.rhs_transposed),
      matrix(p.result_type, s.m, s.n, false), batched ? "lhs_batch_dims={0}, rhs_batch_dims={0}, " : "",
      first + (s.lhs_transposed ? 0 : 1), first + (s.rhs_transposed ? 1 : 0));
}

LaunchRunner& Runner() {
  static LaunchRunner runner;
  return runner;
}

// Those that our kernels run.
std::vector<ProductSchedule> Own(std::vector<ProductSchedule> candidates) {
  std::erase_if(candidates, [](const ProductSchedule& s) { return std::holds_alternative<LibrarySchedule>(s); });
  return candidates;
}

// Every candidate's result (or one in `every`) is near the evaluator's, and has the bits of the first's where it adds
// in the same order.
void ExpectAllCandidatesAgree(const ProductProblem& problem, const DeviceSpec& device, size_t every = 1) {
  SCOPED_TRACE(problem.ToString());
  const auto module = hlo::ParseModule(ProductText(problem));
  const hlo::Instruction& dot = *module->entry()->root();
  const CompileOptions no_options;
  const auto found =
      problem.convolution ? TunableConvolutionOf(dot, {device, no_options}) : TunableProductOf(dot, device);
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->ToString(), problem.ToString());
  std::vector<hlo::Literal> inputs;
  for (const hlo::Instruction* operand : dot.operands()) {
    hlo::Literal& input = inputs.emplace_back(operand->shape());
    const bool exact = hlo::IsInteger(operand->shape().element_type());
    for (int64_t i = 0; i < input.ElementCount(); ++i) {
      const auto value = static_cast<double>((i * 37 + static_cast<int64_t>(inputs.size()) * 11) % 23 - 11);
      input.SetDouble(i, exact ? value : value / 7);
    }
  }
  const hlo::Literal expected = hlo::Evaluate(*module, inputs);
  std::vector<std::byte> first;
  const std::vector<ProductSchedule> candidates = Own(ProductCandidates(problem, device, false, true));
  for (size_t i = 0; i < candidates.size(); i += every) {
    const ProductSchedule& candidate = candidates[i];
    SCOPED_TRACE(ToString(candidate));
    auto record = std::make_shared<TuningRecord>(device);
    record->Set(problem, {.schedule = candidate});
    CompileOptions options;
    options.tuned = record;
    const EmitContext context{device, options};
    const auto launches = problem.convolution ? EmitConvolution(dot, {-1}, context) : EmitDot(dot, {-1}, context);
    ASSERT_TRUE(launches.has_value());
    hlo::Literal result(dot.shape());
    std::vector<std::byte> scratch(static_cast<size_t>(OpenClKernelModel(device, options).ScratchBytes(dot) + 128));
    void* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64);
    Runner().Run(*launches, {inputs[0].mutable_data(), inputs[1].mutable_data()}, {result.mutable_data()}, aligned);
    const std::vector<std::byte> bytes(result.data(), result.data() + result.ByteSize());
    if (first.empty()) first = bytes;
    EXPECT_TRUE(!AddInTheSameOrder(candidate, candidates[0], problem.shape.k) || bytes == first);
    double largest = 0, error = 0;
    for (int64_t at = 0; at < result.ElementCount(); ++at) {
      const double wanted = expected.GetDouble(at), difference = std::abs(wanted - result.GetDouble(at));
      largest = std::max(largest, std::abs(wanted));
      error = std::isnan(difference) ? INFINITY : std::max(error, difference);
    }
    // Half a unit in the last place of the 16-bit types, twice.
    const std::map<hlo::ElementType, double> bounds = {{kBF16, 8e-3}, {kF16, 1e-3}, {kS32, 0}};
    const auto bound = bounds.find(problem.result_type);
    EXPECT_LE(error, largest * (bound == bounds.end() ? 1e-5 : bound->second));
  }
}

DeviceSpec OfClass(DeviceClass device_class) {
  DeviceSpec spec = Runner().spec();
  spec.device_class = device_class;
  return spec;
}

TEST(ProductCandidates, AllGiveTheSameBitsOnGpuClass) {
  DeviceSpec poor = OfClass(DeviceClass::kGpu);
  poor.local_memory_bytes = 4 << 10;
  poor.max_work_group_size = 64;
  ExpectAllCandidatesAgree(Problem(1, 37, 70, 45), poor);
  ExpectAllCandidatesAgree(Problem(2, 20, 19, 33, kBF16, 3), poor, 3);
  ExpectAllCandidatesAgree(Problem(1, 65, 9, 20, kS32, 1), poor, 3);
}

TEST(ProductCandidates, ConvolutionsGiveTheSameBits) {
  ExpectAllCandidatesAgree(ConvolutionOf(9, 3, 2, 5, 21), OfClass(DeviceClass::kGpu), 11);
  ExpectAllCandidatesAgree(ConvolutionOf(7, 1, 1, 19, 33, kBF16), OfClass(DeviceClass::kGpu), 13);
  ExpectAllCandidatesAgree(ConvolutionOf(14, 1, 1, 64, 96), OfClass(DeviceClass::kCpu));
  ExpectAllCandidatesAgree(ConvolutionOf(9, 3, 2, 16, 54, kF32, kF32, 3), OfClass(DeviceClass::kGpu), 17);
  ExpectAllCandidatesAgree(ConvolutionOf(9, 3, 1, 8, 32, kF32, kF32, 4), OfClass(DeviceClass::kGpu), 5);
}

// Of groups of a few features few tiles are not mostly empty: there is more than the rule's to choose from.
TEST(ProductCandidates, NarrowOnesForSmallGroups) {
  const auto candidates = ProductCandidates(ConvolutionOf(28, 3, 1, 8, 256, kF32, kF32, 32), Device(DeviceClass::kGpu),
                                            /*few=*/true, /*other_orders=*/true);
  EXPECT_GE(candidates.size(), 4u);
}

TEST(ProductCandidates, PartsOfLongSumsOnGpuClass) {
  const DeviceSpec device = OfClass(DeviceClass::kGpu);
  DeviceSpec small = device;  // the groups that add the parts are no larger than others
  small.max_work_group_size = 8;
  for (const DeviceSpec& spec : {device, small}) {
    for (const ProductProblem& problem : {Problem(1, 30, 70, 777), Problem(3, 20, 19, 1030, kBF16, 1)}) {
      const auto candidates = ProductCandidates(problem, spec, true, true);
      EXPECT_TRUE(std::any_of(candidates.begin(), candidates.end(), [](const ProductSchedule& s) {
        return std::get<TiledSchedule>(s).k_parts > 1;
      })) << problem.ToString();
      ExpectAllCandidatesAgree(problem, spec, 17);
    }
  }
}

// By plain multiplications in the places of matrix instructions: operands in either order, with and without whole
// words, parts of sums, convolutions.
TEST(ProductCandidates, FragmentsGiveTheSameBits) {
  DeviceSpec device = OfClass(DeviceClass::kGpu);
  device.matrix_fragments = "plain";
  device.has_wide_fragments = true;
  device.local_memory_bytes = 48 << 10;
  for (int transposed = 0; transposed < 4; ++transposed) {
    ExpectAllCandidatesAgree(Problem(1, 70, 72, 48, kBF16, transposed), device, 37);
    ExpectAllCandidatesAgree(Problem(2, 72, 136, 208, kF16, transposed), device, 101);
    ExpectAllCandidatesAgree(Problem(2, 33, 21, 37, kF16, transposed), device, 61);
  }
  ExpectAllCandidatesAgree(Problem(1, 17, 40, 2100, kBF16), device, 47);
  ExpectAllCandidatesAgree(ConvolutionOf(9, 3, 2, 16, 24, kBF16), device, 47);
  ExpectAllCandidatesAgree(ConvolutionOf(9, 3, 1, 5, 21, kBF16), device, 61);
  ExpectAllCandidatesAgree(ConvolutionOf(9, 3, 2, 16, 48, kBF16, kBF16, 2), device, 47);
}

// Of s8: words of four k as they are in memory, turned on the way there, and element by element.
TEST(ProductCandidates, FragmentsOfS8GiveTheSameBits) {
  DeviceSpec device = OfClass(DeviceClass::kGpu);
  device.matrix_fragments = "plain";
  device.has_s8_fragments = true;
  device.local_memory_bytes = 48 << 10;
  for (int transposed = 0; transposed < 4; ++transposed) {
    ExpectAllCandidatesAgree(S8Problem(1, 80, 112, 96, transposed), device, 37);
    ExpectAllCandidatesAgree(S8Problem(2, 36, 28, 44, transposed), device, 61);
    ExpectAllCandidatesAgree(S8Problem(2, 33, 22, 37, transposed), device, 61);
  }
  ExpectAllCandidatesAgree(S8Problem(1, 17, 40, 4200), device, 47);
  ExpectAllCandidatesAgree(ConvolutionOf(9, 3, 2, 16, 24, kS8, kS32), device, 47);
  ExpectAllCandidatesAgree(ConvolutionOf(9, 3, 1, 5, 21, kS8, kS32), device, 61);
}

TEST(ProductSchedule, FragmentsOfS8AreASecondQuestion) {
  DeviceSpec device = Device(DeviceClass::kGpu, 48 << 10);
  device.matrix_fragments = "plain";
  const ProductProblem problem = S8Problem(1, 512, 512, 512);
  EXPECT_TRUE(std::holds_alternative<TiledSchedule>(ScheduleByRule(problem, device)));
  device.has_s8_fragments = true;
  const auto rule = std::get<FragmentSchedule>(ScheduleByRule(problem, device));
  const auto of_bf16 = std::get<FragmentSchedule>(ScheduleByRule(Problem(1, 512, 512, 512, kBF16), device));
  EXPECT_EQ(rule.depth, 2 * of_bf16.depth);  // as many bytes
  EXPECT_THAT(WhyNot(FragmentSchedule{2, 2, 2, 2, 16}, problem, device), HasSubstr("depth=16"));
  // A result of s8 wraps in s8.
  EXPECT_TRUE(std::holds_alternative<TiledSchedule>(ScheduleByRule(Problem(1, 512, 512, 512, kS8), device)));
}

// Only operands whose vectors lie in memory as in a block are copied asynchronously, and only such blocks multiplied by
// four sub-groups together, which is a third question.
TEST(ProductSchedule, WideFragmentsNeedCopiesAhead) {
  DeviceSpec device = Device(DeviceClass::kGpu, 48 << 10);
  device.max_work_group_size = 1024;
  device.matrix_fragments = "plain";
  device.has_s8_fragments = true;
  const FragmentSchedule ahead{2, 2, 4, 4, 32, 3, 1, 1}, wide{4, 1, 1, 8, 64, 2, 1, 1, 1};
  const ProductProblem large = Problem(1, 512, 512, 512, kBF16), odd = Problem(1, 512, 508, 512, kBF16);
  EXPECT_EQ(WhyNot(ahead, large, device), "");
  EXPECT_THAT(WhyNot(ahead, odd, device), HasSubstr("no vectors of 16 bytes"));
  EXPECT_EQ(WhyNot(ahead, Problem(1, 512, 508, 512, kBF16, 2), device), "");  // the other way round k is fastest
  EXPECT_THAT(WhyNot(FragmentSchedule{2, 2, 4, 4, 32, 3}, large, device), HasSubstr("buffers=3"));
  EXPECT_THAT(WhyNot(FragmentSchedule{2, 2, 3, 4, 32, 2, 1, 1}, large, device), HasSubstr("powers of two"));
  EXPECT_THAT(WhyNot(wide, large, device), HasSubstr("wide=1"));
  EXPECT_EQ(std::get<FragmentSchedule>(ScheduleByRule(large, device)).wide, 0);
  device.has_wide_fragments = true;
  EXPECT_EQ(WhyNot(wide, large, device), "");
  EXPECT_EQ(std::get<FragmentSchedule>(ScheduleByRule(large, device)).wide, 1);
  EXPECT_EQ(std::get<FragmentSchedule>(ScheduleByRule(odd, device)).wide, 0);
  EXPECT_THAT(WhyNot(wide, S8Problem(1, 512, 512, 512, 2), device), HasSubstr("wide=1"));
  EXPECT_THAT(WhyNot(FragmentSchedule{2, 2, 1, 8, 64, 2, 1, 1, 1}, large, device), HasSubstr("fours"));
  EXPECT_FALSE(AddInTheSameOrder(wide, FragmentSchedule{4, 1, 1, 8, 64, 2}, 512));
}

TEST(ProductCandidates, AllGiveTheSameBitsOnCpuClass) {
  ExpectAllCandidatesAgree(Problem(1, 37, 70, 45), OfClass(DeviceClass::kCpu));
  ExpectAllCandidatesAgree(Problem(1, 203, 131, 100, kF32, 3), OfClass(DeviceClass::kCpu));
  ExpectAllCandidatesAgree(Problem(2, 30, 50, 46, kBF16, 2), OfClass(DeviceClass::kCpu));
  ExpectAllCandidatesAgree(Problem(1, 20, 40, 5000), OfClass(DeviceClass::kCpu));
  ExpectAllCandidatesAgree(Problem(2, 20, 200, 130, kF32, 2), OfClass(DeviceClass::kCpu));  // roles exchanged
  DeviceSpec small = OfClass(DeviceClass::kCpu);
  small.l2_bytes = 64 << 10;
  ExpectAllCandidatesAgree(Problem(1, 100, 300, 70), small);  // panels copied by the group that multiplies them
}

TuningRecord SampleRecord(const DeviceSpec& device) {
  TuningRecord record(device);
  record.Set(Problem(1, 512, 512, 512), {TiledSchedule{64, 8, 4, 4, 16}, true, 12.5, 20});
  LibrarySchedule library;
  library.numbers.fill(8);
  record.Set(Problem(2, 64, 64, 64, kF32, 2), {library, false, 1, 2});
  record.Set(ConvolutionOf(56, 3, 2, 64, 128), {TiledSchedule{256, 16, 4, 4, 8}, false, 3, 4});
  record.Set(ConvolutionOf(56, 3, 2, 16, 128, kF32, kF32, 4), {TiledSchedule{128, 16, 4, 4, 8}, false, 3, 4});
  return record;
}

TEST(TuningRecord, JsonAndBack) {
  const DeviceSpec device = Device(DeviceClass::kGpu);
  const std::string text = SampleRecord(device).ToJson();
  const TuningRecord read = TuningRecord::FromJson(text, device, "f.json");
  EXPECT_EQ(read.ToJson(), text);
  const TunedProduct* product = read.Find(Problem(1, 512, 512, 512));
  ASSERT_NE(product, nullptr);
  EXPECT_EQ(product->schedule, ProductSchedule(TiledSchedule{64, 8, 4, 4, 16}));
  EXPECT_TRUE(product->measured_all);
  EXPECT_EQ(read.Find(Problem(1, 512, 512, 513)), nullptr);
  EXPECT_NE(read.Find(ConvolutionOf(56, 3, 2, 64, 128)), nullptr);
  EXPECT_EQ(read.Find(ConvolutionOf(56, 3, 1, 64, 128)), nullptr);
  EXPECT_NE(read.Find(ConvolutionOf(56, 3, 2, 16, 128, kF32, kF32, 4)), nullptr);
  EXPECT_EQ(read.Find(ConvolutionOf(56, 3, 2, 16, 128)), nullptr);
}

TEST(TuningRecord, EveryKindOfScheduleComesBack) {
  for (const ProductSchedule& schedule : {ProductSchedule(TiledSchedule{}), ProductSchedule(PanelSchedule{}),
                                          ProductSchedule(LibrarySchedule{}), ProductSchedule(FragmentSchedule{})}) {
    const auto read = ScheduleOfKind(KindOf(schedule));
    ASSERT_TRUE(read.has_value()) << KindOf(schedule);
    EXPECT_EQ(read->index(), schedule.index());
  }
  DeviceSpec device = Device(DeviceClass::kGpu);
  device.matrix_fragments = "plain";
  TuningRecord record(device);
  const FragmentSchedule fragments{2, 2, 2, 4, 32, 2};
  record.Set(Problem(1, 512, 512, 512, kBF16), {fragments, true, 1, 2});
  const TuningRecord read = TuningRecord::FromJson(record.ToJson(), device, "f.json");
  EXPECT_EQ(read.Find(Problem(1, 512, 512, 512, kBF16))->schedule, ProductSchedule(fragments));
}

TEST(TuningRecord, ComplaintsAreOneLineThatSaysWhere) {
  const DeviceSpec device = Device(DeviceClass::kGpu);
  const std::string text = SampleRecord(device).ToJson();
  const auto complaint = [&](const std::string& from, const std::string& to, const DeviceSpec& spec) -> std::string {
    std::string changed = text;
    EXPECT_NE(changed.find(from), std::string::npos) << from;
    changed.replace(changed.find(from), from.size(), to);
    try {
      TuningRecord::FromJson(changed, spec, "f.json");
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(complaint("{", "[", device), HasSubstr("f.json: not JSON"));
  EXPECT_THAT(complaint("\"version\": 5", "\"version\": 9", device), HasSubstr("\"version\" is 9"));
  EXPECT_THAT(complaint("\"generic\"", "\"H\"", device),
              HasSubstr("f.json: was measured on another device: name is H, here generic"));
  EXPECT_THAT(complaint("\"class\":\"gpu\"", "\"class\":\"cpu\"", device), HasSubstr("another device"));
  EXPECT_THAT(complaint("\"class\":\"gpu\"", "\"class\":\"tpu\"", device), HasSubstr("\"class\" must be"));
  EXPECT_THAT(complaint("\"depth\":16", "\"deep\":16", device), HasSubstr("product 2: \"depth\" is missing"));
  EXPECT_THAT(complaint("\"depth\":16", "\"depth\":16,\"split\":2", device), HasSubstr("unknown field \"split\""));
  EXPECT_THAT(complaint("\"depth\":16", "\"depth\":4096", device), HasSubstr("depth=4096: must be 1 to 128"));
  EXPECT_THAT(complaint("\"depth\":16", "\"depth\":-1", device), HasSubstr("depth=-1: must be"));
  EXPECT_THAT(complaint("\"depth\":16", "\"depth\":1.5", device), HasSubstr("\"depth\" has the wrong type"));
  EXPECT_THAT(complaint("\"MWG\":8", "\"MWG\":4096", device), HasSubstr("MWG=4096: must be 0 to 1024"));
  EXPECT_THAT(complaint("\"items\":64", "\"items\":1000000", device), HasSubstr("items=1000000: must be"));
  EXPECT_THAT(complaint("\"item_rows\":4", "\"item_rows\":32", device), HasSubstr("a work-item has 64 sums at most"));
  EXPECT_THAT(complaint("\"kind\":\"tiled\"", "\"kind\":\"fast\"", device), HasSubstr("\"kind\" is \"fast\""));
  EXPECT_THAT(complaint("\"op\":\"dot\"", "\"op\":\"sort\"", device), HasSubstr("\"op\" is \"sort\""));
  EXPECT_THAT(complaint("\"m\":512", "\"m\":0", device), HasSubstr("\"m\" is no size"));
  EXPECT_THAT(complaint("\"lhs\":\"f32\"", "\"lhs\":\"f31\"", device), HasSubstr("no element type: f31"));
  EXPECT_THAT(complaint("\"measured\":\"all\"", "\"measured\":\"some\"", device), HasSubstr("\"measured\" must be"));
  EXPECT_THAT(complaint("\"stride\":2", "\"stride\":0", device), HasSubstr("\"stride\" is no size: 0"));
  EXPECT_THAT(complaint("\"rows\":", "\"lines\":", device), HasSubstr("\"rows\" is missing"));
  // Of another spec's limits.
  const DeviceSpec poor = Device(DeviceClass::kGpu, 16 << 10, 32);
  EXPECT_THAT(complaint("\"max_work_group_size\":4096", "\"max_work_group_size\":32", poor),
              HasSubstr("another device"));
}

class TunerTest : public ::testing::Test {
 protected:
  TunerTest() {
    const auto device = FindDevice("");
    DeviceSpec spec = device->spec();
    spec.device_class = DeviceClass::kGpu;
    context_ = OpenDevice(device, spec);
    spec_ = spec;
    build_.cache_dir = folder_.path();
  }
  const ScratchFolder folder_;
  std::shared_ptr<DeviceContext> context_;
  DeviceSpec spec_;
  BuildOptions build_;
  const std::vector<ProductUse> products_ = {{Problem(1, 160, 160, 160), 2}, {Problem(1, 8, 8, 8), 1}};
};

TEST_F(TunerTest, MeasuresOnceAndKeepsTheChoice) {
  const Tuner tuner(context_, build_);
  TuningRecord record = tuner.Kept();
  EXPECT_TRUE(record.empty());
  EXPECT_FALSE(tuner.IsWanted(products_, Autotune::kOff, record));
  ASSERT_TRUE(tuner.IsWanted(products_, Autotune::kQuick, record));
  EXPECT_GT(tuner.Tune(products_, Autotune::kQuick, record), 1);
  EXPECT_EQ(record.size(), 1u);  // the tiny one is not worth it
  EXPECT_FALSE(tuner.IsWanted(products_, Autotune::kQuick, record));
  EXPECT_TRUE(tuner.IsWanted(products_, Autotune::kFull, record));
  const TunedProduct* choice = record.Find(products_[0].problem);
  EXPECT_GT(choice->us, 0);
  EXPECT_LE(choice->us, choice->rule_us);

  const Tuner later(context_, build_);
  TuningRecord kept = later.Kept();
  EXPECT_EQ(kept.ToJson(), record.ToJson());
  TuningRecord none(spec_);  // asked by one who has not read it: still nothing is measured twice
  EXPECT_EQ(later.Tune(products_, Autotune::kQuick, none), 0);
  EXPECT_EQ(none.ToJson(), record.ToJson());
}

TEST_F(TunerTest, MeasuresConvolutions) {
  const std::vector<ProductUse> products = {{ConvolutionOf(28, 3, 2, 32, 48), 1}};
  const Tuner tuner(context_, build_);
  TuningRecord record = tuner.Kept();
  EXPECT_GT(tuner.Tune(products, Autotune::kQuick, record), 1);
  EXPECT_GT(record.Find(products[0].problem)->us, 0);
  EXPECT_EQ(tuner.Kept().ToJson(), record.ToJson());
}

TEST_F(TunerTest, DamagedFilesAreMeasuredAnew) {
  const std::string path = Tuner::PathIn(folder_.path(), spec_);
  DeviceSpec foreign = spec_;
  foreign.driver_version = "other";
  for (const std::string& contents : {std::string("{\"version\": 3"), std::string(), SampleRecord(foreign).ToJson()}) {
    WriteFileAtomically(path, contents);
    const Tuner tuner(context_, build_);
    TuningRecord record = tuner.Kept();
    EXPECT_TRUE(record.empty());
    EXPECT_GT(tuner.Tune(products_, Autotune::kQuick, record), 1);
    EXPECT_EQ(Tuner(context_, build_).Kept().size(), 1u);
  }
}

// CLBlast as its own tuner makes it, as it comes, and back again: all sums are exact, so all give the same bits. With a
// quarter of what is tried without being told: which numbers are the fastest is not asked here.
TEST_F(TunerTest, ClblastRunsByTheNumbersThatItsTunerFinds) {
  const ProductProblem problem = Problem(1, 160, 160, 160);
  const std::optional<ClblastNumbers> numbers = TuneClblast(problem.shape, context_, 1.0 / 8192);
  ASSERT_TRUE(numbers.has_value());
  EXPECT_NE(*numbers, ClblastNumbers{});
  const ProductSchedule rule = ScheduleByRule(problem, spec_);
  for (const ClblastNumbers& of_run : {*numbers, ClblastNumbers{}, *numbers}) {
    const std::vector<double> us =
        TimeCandidates(problem, {rule, LibrarySchedule{of_run}}, context_, build_, {0.01, 1, 1});
    EXPECT_TRUE(std::isfinite(us[1]));
    const ClblastNumbers in_use = ClblastNumbersInUse(context_->device().device()(), kF32);
    EXPECT_EQ(in_use == *numbers, of_run == *numbers);
  }
  EXPECT_EQ(TuneClblast(Problem(1, 160, 160, 160, kBF16).shape, context_), std::nullopt);
}

TEST_F(TunerTest, WithoutADiskNothingIsKept) {
  build_.use_disk_cache = false;
  const Tuner tuner(context_, build_);
  TuningRecord record = tuner.Kept();
  EXPECT_GT(tuner.Tune(products_, Autotune::kQuick, record), 1);
  EXPECT_TRUE(Tuner(context_, build_).Kept().empty());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/tuning"));
}

TEST_F(TunerTest, ACandidateThatCannotRunIsNeverChosen) {
  const ProductProblem problem = Problem(1, 160, 160, 160);
  // More work-items than PoCL's groups have.
  const TiledSchedule huge{1 << 16, 256, 4, 4, 1};
  const std::vector<double> us =
      TimeCandidates(problem, {ScheduleByRule(problem, spec_), huge}, context_, build_, {0.1, 3});
  EXPECT_TRUE(std::isfinite(us[0]));
  EXPECT_TRUE(std::isinf(us[1]));
}

}  // namespace
}  // namespace hlorun::opencl
