#include "backends/opencl/kernels/convolution.h"

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/bf16_parts.h"
#include "backends/opencl/kernels/constant_operand.h"
#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/depthwise.h"
#include "backends/opencl/kernels/direct_convolution.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/matrix_unit_gradient.h"
#include "backends/opencl/kernels/matrix_unit_product.h"
#include "backends/opencl/kernels/multiply.h"
#include "backends/opencl/kernels/packing.h"
#include "backends/opencl/kernels/pixel_convolution.h"
#include "backends/opencl/kernels/product_plan.h"
#include "backends/opencl/kernels/register_tile.h"
#include "backends/opencl/kernels/tiled_tasks.h"
#include "backends/opencl/kernels/tuning_record.h"
#include "backends/opencl/kernels/weight_gradient.h"
#include "backends/opencl/kernels/winograd.h"
#include "backends/opencl/kernels/word_product.h"
#include "passes/dynamic/extents.h"
#include "passes/expand/convolution.h"
#include "passes/fusion/hero.h"

namespace hlorun::opencl {
namespace {

// A convolution of an executed instruction, and which operands it multiplies.
struct Prepared {
  const hlo::Instruction* hero = nullptr;
  ArgumentRef input, weights;
};

std::optional<Prepared> Prepare(const hlo::Instruction& instruction) {
  Prepared prepared;
  prepared.hero = passes::HeroOf(instruction).instruction;
  if (prepared.hero == nullptr || !prepared.hero->Is(hlo::Opcode::kConvolution)) return std::nullopt;
  if (!Epilogue::Supports(instruction, *prepared.hero)) return std::nullopt;
  prepared.input.number = OperandNumber(instruction, *prepared.hero, 0);
  prepared.weights.number = OperandNumber(instruction, *prepared.hero, 1);
  if (prepared.input.number < 0 || prepared.weights.number < 0) return std::nullopt;
  return prepared;
}

struct GradientPlans {
  WeightGradientPlan plan;
  std::optional<MatrixUnitGradientPlan> unit;  // goes before
  int64_t ScratchBytes() const { return unit ? unit->ScratchBytes() : plan.ScratchBytes(); }
};
std::optional<GradientPlans> GradientPlan(const hlo::Instruction& convolution, const EmitContext& context) {
  const DeviceSpec& device = context.device;
  if (device.device_class != DeviceClass::kCpu || !passes::IsConvolutionOverWindow(convolution)) return std::nullopt;
  const std::optional<WeightGradientShape> shape = WeightGradientShapeOf(convolution);
  if (!shape) return std::nullopt;
  std::optional<WeightGradientPlan> plan = PlanWeightGradient(*shape, device);
  if (!plan) return std::nullopt;
  std::optional<MatrixUnitGradientPlan> unit = PlanMatrixUnitGradient(*shape, device);
  if (unit && unit->parts > 1 && !MayCutIntoParts(context.options)) unit.reset();
  return GradientPlans{*plan, unit};
}

std::optional<ConvolutionShape> ShapeOf(const hlo::Instruction& instruction, const Prepared& prepared,
                                        const CompileOptions& options) {
  std::optional<ConvolutionShape> shape = ConvolutionShapeOf(*prepared.hero);
  if (shape) shape->weights_are_constant = IsSameInEveryRun(*instruction.operand(prepared.weights.number), options);
  return shape;
}

// Squares of outputs at once, where all of the result is wanted.
std::optional<WinogradPlan> SquaresPlan(const hlo::Instruction& instruction, const ConvolutionShape& shape,
                                        const DeviceSpec& device) {
  return passes::ExtentsOf(instruction).empty() ? PlanWinograd(shape, device) : std::nullopt;
}

// Where all of the result is wanted; else loops end at its sizes.
std::optional<DepthwisePlan> ChannelsPlan(const hlo::Instruction& instruction, const hlo::Instruction& hero,
                                          const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kCpu || !passes::ExtentsOf(instruction).empty()) return std::nullopt;
  const std::optional<ConvolutionShape> shape = DepthwiseShapeOf(hero);
  return shape ? PlanDepthwise(*shape, device) : std::nullopt;
}

// Rows of pixels, where all of the result is wanted.
std::optional<PixelConvolutionPlan> PixelsPlan(const hlo::Instruction& instruction,
                                               const std::optional<ConvolutionShape>& shape, const DeviceSpec& device) {
  if (!shape || device.device_class != DeviceClass::kCpu || !passes::ExtentsOf(instruction).empty())
    return std::nullopt;
  return PlanPixelConvolution(*shape, device);
}

// CPU class: the features of a group are whole vectors.
bool FillsVectors(const ConvolutionShape& shape, const DeviceSpec& device) {
  return shape.group_features() % LanesOfGroup(shape.group_features(), shape.compute_type, device) == 0;
}

// GPU class: not too much of the narrowest tiles lies beyond a group's features, and of their blocks beyond its window
// and channels. A multiplication costs some five instructions in a loop, one and a quarter in a tile, a tenth of that
// by matrix instructions; and to find where an element of the input lies is the dearer, the fewer features read it
// (docs/gpu.md).
bool FillsTiles(const ConvolutionShape& shape, const DeviceSpec& device) {
  constexpr int64_t kSide = 16;
  constexpr double kTooMuch = 4, kTooMuchByFragments = 8;  // times what is wanted
  const auto work = [](int64_t extent) {
    return static_cast<double>(CeilDiv(extent, kSide) * kSide) / static_cast<double>(extent);
  };
  // Nothing that is loaded meets two features: as in gradients of depthwise weights.
  if (shape.group_features() == 1) return false;
  const ProductShape product = ConvolutionProblem(shape, shape.compute_type).shape;
  const ProductSchedule schedule = GpuScheduleByRule(product, true, device);
  // Few long sums, as gradients of weights have them: in parts more work-items share them than in loops.
  if (PartsOfSums(schedule, product.k) > 1) return true;
  const bool by_fragments = std::holds_alternative<FragmentSchedule>(schedule);
  return work(product.n) * work(product.k) < (by_fragments ? kTooMuchByFragments : kTooMuch);
}

// Whether rows of outputs, or of images of one column, fill vectors.
bool HasWideOutputs(const hlo::Instruction& convolution, int64_t lanes) {
  const auto& spatial = convolution.As<hlo::attr::Convolution>().dimensions.output_spatial;
  const auto size = [&](size_t from_last) {
    return from_last < spatial.size() ? convolution.shape().dimension(spatial[spatial.size() - 1 - from_last]) : 1;
  };
  return size(0) >= lanes || (size(0) == 1 && size(1) >= lanes);
}

// Groups, channels, features and types of a convolution in any form whose feature groups kernels of CPU class sum by
// vectors of features: not so few that lanes are pixels.
std::optional<ConvolutionShape> WideGroupsOf(const hlo::Instruction& convolution, const DeviceSpec& device) {
  const auto& attributes = convolution.As<hlo::attr::Convolution>();
  const hlo::Shape &input = convolution.operand(0)->shape(), &weights = convolution.operand(1)->shape();
  const std::optional<hlo::ElementType> sums =
      SumType(input.element_type(), weights.element_type(), convolution.shape().element_type());
  ConvolutionShape shape;
  shape.groups = attributes.feature_group_count;
  shape.channels = weights.dimension(attributes.dimensions.kernel_input_feature);
  shape.features = weights.dimension(attributes.dimensions.kernel_output_feature);
  if (device.device_class != DeviceClass::kCpu || shape.groups == 1 || !sums) return std::nullopt;
  shape.input_type = input.element_type();
  shape.weight_type = weights.element_type();
  shape.compute_type = *sums;
  if (HasFewChannels(shape, device) && HasWideOutputs(convolution, RegisterLanes(device, *sums))) return std::nullopt;
  return shape;
}

// Those that are not channels of their own, which lie in vectors as they are.
std::optional<ConvolutionShape> GroupsOf(const hlo::Instruction& convolution, const DeviceSpec& device) {
  std::optional<ConvolutionShape> shape = WideGroupsOf(convolution, device);
  if (shape && shape->channels == 1) shape.reset();
  return shape;
}

// Elements of the window.
int64_t TapsOf(const hlo::Instruction& convolution) {
  int64_t taps = 1;
  for (const hlo::WindowDimension& d : convolution.As<hlo::attr::Convolution>().window) taps *= d.size;
  return taps;
}

// A register of pairs of bf16 is two steps, which makes up for zeros in half of it.
bool IsByPairs(const ConvolutionShape& shape, const DeviceSpec& device) {
  constexpr int64_t kPair = 2;
  return shape.input_type == shape.weight_type &&
         WordFormOf(shape.input_type, shape.compute_type, kPair, device).kind == WordKind::kBf16Pairs;
}

// Other groups than those, and those of one channel, are left to loops.
bool HasProduct(const ConvolutionShape& shape, const DeviceSpec& device) {
  if (shape.groups == 1) return true;
  if (shape.channels == 1) return false;
  return device.device_class == DeviceClass::kGpu ? FillsTiles(shape, device) : FillsVectors(shape, device);
}

// The numbers of a schedule of this kind that the options hold; null: the rules choose.
template <typename Schedule>
const Schedule* Tuned(const hlo::Instruction& instruction, const ProductProblem& problem,
                      const CompileOptions& options) {
  if (!passes::ExtentsOf(instruction).empty()) return nullptr;
  return std::get_if<Schedule>(TunedScheduleOf(problem, options));
}

// Pixels and weights as a product.
struct Pointwise {
  ProductPlan plan;
  std::optional<MatrixUnitPlan> unit;  // goes before
  int64_t ScratchBytes() const { return unit ? unit->ScratchBytes() : plan.ScratchBytes(); }
};
Pointwise PointwiseOf(const hlo::Instruction& instruction, const hlo::Instruction& hero, const ConvolutionShape& shape,
                      const EmitContext& context) {
  const ProductProblem problem = ConvolutionProblem(shape, hero.shape().element_type());
  ProductShape product = problem.shape;
  product.ends_at_sizes = !passes::ExtentsOf(instruction).empty();
  product.multiplies_as_typed = !MayCutIntoParts(context.options);
  const int64_t weight_bytes = product.k * product.n * hlo::BytesOf(product.rhs_type);
  product.rhs_is_kept = shape.weights_are_constant && weight_bytes <= context.device.l3_bytes;
  return {PlanProduct(product, context.device, Tuned<PanelSchedule>(instruction, problem, context.options)),
          PlanMatrixUnit(product, context.device)};
}

// Rows of windows by the matrix unit, where all of the result is wanted.
std::optional<MatrixUnitPlan> WindowsPlan(const hlo::Instruction& instruction, const ConvolutionShape& shape,
                                          const DeviceSpec& device) {
  return passes::ExtentsOf(instruction).empty() ? PlanMatrixUnitOverWindows(shape, device) : std::nullopt;
}

// GPU class.
ProductSchedule GpuScheduleOf(const hlo::Instruction& instruction, const hlo::Instruction& hero,
                              const ConvolutionShape& shape, const EmitContext& context) {
  const ProductProblem problem = ConvolutionProblem(shape, hero.shape().element_type());
  const bool is_whole = passes::ExtentsOf(instruction).empty();
  const ProductSchedule* tuned = is_whole ? TunedScheduleOf(problem, context.options) : nullptr;
  return tuned != nullptr ? *tuned : GpuScheduleByRule(problem.shape, is_whole, context.device);
}

std::vector<KernelDraft> DirectKernels(const ConvolutionTask& task, const ConvolutionPlan& plan) {
  const ConvolutionShape& shape = plan.shape;
  const ArgumentRef packed = ScratchSlice(0, plan.WeightBytes(), true);
  if (plan.words) {
    // Where pairs overlap, rows of the window end with half a word each.
    const int64_t rows = plan.pairs_overlap ? shape.rows.window : 1;
    const int64_t elements = plan.pairs_overlap ? shape.Depth() : plan.words.elements * shape.Depth();
    const MatrixSource pairs{task.weights, plan.words.element, rows, elements / rows, shape.features};
    return {PackColumnWords(pairs, plan.lanes, plan.width(), FlipOfWords(plan.words.kind), packed),
            DirectConvolutionKernel(task, plan)};
  }
  const MatrixSource weights{task.weights, shape.weight_type, 1, shape.Depth(), shape.features};
  return {PackColumns(weights, shape.compute_type, plan.lanes, plan.width(), packed),
          DirectConvolutionKernel(task, plan)};
}

std::optional<std::vector<KernelDraft>> Kernels(const hlo::Instruction& instruction, const AliasPattern& aliases,
                                                const EmitContext& context) {
  const DeviceSpec& device = context.device;
  const std::optional<Prepared> prepared = Prepare(instruction);
  if (!prepared) return std::nullopt;
  if (const auto plans = GradientPlan(*prepared->hero, context)) {
    const WeightGradientTask task{instruction, *prepared->hero, aliases, prepared->input, prepared->weights};
    return plans->unit ? MatrixUnitGradientKernels(task, *plans->unit) : WeightGradientKernels(task, plans->plan);
  }
  const ConvolutionTask task{instruction, *prepared->hero, aliases, prepared->input, prepared->weights};
  const std::optional<ConvolutionShape> shape = ShapeOf(instruction, *prepared, context.options);
  if (const auto plan = PixelsPlan(instruction, shape, device))
    return std::vector<KernelDraft>{PixelConvolutionKernel(task, *plan)};
  if (const auto plan = ChannelsPlan(instruction, *prepared->hero, device))
    return std::vector<KernelDraft>{DepthwiseKernel(task, *plan)};
  if (!shape || !HasProduct(*shape, device)) return std::nullopt;
  if (device.device_class == DeviceClass::kGpu)
    return GpuProductKernels(TiledConvolution(task, *shape), GpuScheduleOf(instruction, task.hero, *shape, context),
                             device);
  const ProductTask product{instruction, task.hero, aliases, task.input, task.weights};
  if (shape->IsProduct()) {
    const Pointwise pointwise = PointwiseOf(instruction, task.hero, *shape, context);
    return pointwise.unit ? MatrixUnitKernels(product, *pointwise.unit) : ProductKernels(product, pointwise.plan);
  }
  if (const auto plan = WindowsPlan(instruction, *shape, device)) return MatrixUnitKernels(product, *plan);
  if (const auto plan = SquaresPlan(instruction, *shape, device)) return WinogradKernels(task, *plan);
  return DirectKernels(task, PlanConvolution(*shape, device));
}

}  // namespace

std::optional<std::vector<EmittedLaunch>> EmitConvolution(const hlo::Instruction& instruction,
                                                          const AliasPattern& aliases, const EmitContext& context) {
  const std::optional<std::vector<KernelDraft>> kernels = Kernels(instruction, aliases, context);
  if (!kernels) return std::nullopt;
  std::vector<EmittedLaunch> launches;
  for (const KernelDraft& kernel : *kernels) launches.push_back(MakeLaunch(kernel, context));
  return launches;
}

int64_t ConvolutionScratchBytes(const hlo::Instruction& instruction, const EmitContext& context) {
  const DeviceSpec& device = context.device;
  const std::optional<Prepared> prepared = Prepare(instruction);
  if (!prepared) return 0;
  if (device.device_class == DeviceClass::kGpu) {
    const std::optional<ConvolutionShape> shape = ShapeOf(instruction, *prepared, context.options);
    if (!shape || !HasProduct(*shape, device)) return 0;
    const ProductProblem problem = ConvolutionProblem(*shape, prepared->hero->shape().element_type());
    return PartBytes(problem.shape, GpuScheduleOf(instruction, *prepared->hero, *shape, context));
  }
  if (const auto plans = GradientPlan(*prepared->hero, context)) return plans->ScratchBytes();
  const std::optional<ConvolutionShape> shape = ShapeOf(instruction, *prepared, context.options);
  if (const auto plan = PixelsPlan(instruction, shape, device)) return plan->ScratchBytes();
  if (ChannelsPlan(instruction, *prepared->hero, device)) return 0;
  if (!shape || !HasProduct(*shape, device)) return 0;
  if (shape->IsProduct()) return PointwiseOf(instruction, *prepared->hero, *shape, context).ScratchBytes();
  if (const auto plan = WindowsPlan(instruction, *shape, device)) return plan->ScratchBytes();
  if (const auto plan = SquaresPlan(instruction, *shape, device)) return plan->ScratchBytes();
  return PlanConvolution(*shape, device).ScratchBytes();
}

std::optional<ProductProblem> TunableConvolutionOf(const hlo::Instruction& instruction, const EmitContext& context) {
  const DeviceSpec& device = context.device;
  const std::optional<Prepared> prepared = Prepare(instruction);
  if (!prepared || !passes::ExtentsOf(instruction).empty()) return std::nullopt;
  const std::optional<ConvolutionShape> shape = ShapeOf(instruction, *prepared, context.options);
  if (!shape || !HasProduct(*shape, device)) return std::nullopt;
  const ProductProblem problem = ConvolutionProblem(*shape, prepared->hero->shape().element_type());
  if (device.device_class == DeviceClass::kGpu) return problem;
  const bool is_other = GradientPlan(*prepared->hero, context) || ChannelsPlan(instruction, *prepared->hero, device);
  if (is_other || !shape->IsProduct() || PlanProduct(problem.shape, device).IsByRows()) return std::nullopt;
  if (PlanMatrixUnit(problem.shape, device)) return std::nullopt;
  return problem;
}

int64_t FeatureGroupsTogether(const hlo::Instruction& convolution, const DeviceSpec& device) {
  // Beyond, most products would be with zeros.
  constexpr int64_t kMostTogether = 8;
  const std::optional<ConvolutionShape> shape = GroupsOf(convolution, device);
  if (!shape) return 1;
  const int64_t whole = RegisterLanes(device, shape->compute_type);
  const auto fewest = [&](const auto& lanes_of) -> std::optional<int64_t> {
    for (int64_t together = 1; together <= kMostTogether; ++together) {
      const int64_t merged = shape->group_features() * together;
      if (shape->groups % together == 0 && merged % lanes_of(merged) == 0) return together;
    }
    return std::nullopt;
  };
  // One group has more kernels than several: squares of outputs, a matrix unit's.
  std::optional<int64_t> together;
  if (IsByPairs(*shape, device) || shape->groups == 2) together = fewest([&](int64_t) { return whole; });
  if (!together) together = fewest([&](int64_t merged) { return LanesOfGroup(merged, shape->compute_type, device); });
  return together.value_or(1);
}

int64_t FeaturesToFillVectors(const hlo::Instruction& convolution, const DeviceSpec& device) {
  // Of what is stored, and multiplications of an output that are worth storing as much, and reading it again.
  constexpr int64_t kMostTimes = 4, kFewestSteps = 16;
  const std::optional<ConvolutionShape> shape = GroupsOf(convolution, device);
  if (!shape || FeatureGroupsTogether(convolution, device) > 1) return 0;
  const int64_t features = shape->group_features();
  if (features % LanesOfGroup(features, shape->compute_type, device) == 0) return 0;
  const int64_t steps = shape->channels * TapsOf(convolution);
  const int64_t whole = RegisterLanes(device, shape->compute_type), half = std::max<int64_t>(1, whole / 2);
  const bool by_pairs = IsByPairs(*shape, device);
  const int64_t lanes = by_pairs ? whole : half;
  const int64_t filled = CeilDiv(features, lanes) * lanes;
  const bool is_too_much = filled > (by_pairs ? 2 : 1) * kMostTimes * features;
  return steps < kFewestSteps || is_too_much ? 0 : filled - features;
}

int64_t ChannelCopies(const hlo::Instruction& convolution, const DeviceSpec& device) {
  // Of the output's size: strides of two leave out that many. Multiplications that are worth a copy.
  constexpr int64_t kMostTimes = 4, kFewestTaps = 4;
  const std::optional<ConvolutionShape> shape = WideGroupsOf(convolution, device);
  if (!shape || shape->channels != 1 || shape->features == 0) return 1;
  const int64_t copies = shape->group_features(), input = convolution.operand(0)->shape().ElementCount();
  const bool is_too_much = copies * input > kMostTimes * convolution.shape().ElementCount();
  return TapsOf(convolution) < kFewestTaps || is_too_much ? 1 : copies;
}

bool HasWeightGradientKernel(const hlo::Instruction& convolution, const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kCpu) return false;
  const std::optional<WeightGradientShape> shape = WeightGradientShapeOf(convolution);
  return shape && PlanWeightGradient(*shape, device);
}

}  // namespace hlorun::opencl
