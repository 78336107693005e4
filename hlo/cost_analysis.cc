#include "hlo/cost_analysis.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hlo/cumulative_window.h"

namespace hlorun::hlo {
namespace {

// What an instruction computes, apart from what it moves.
struct Work {
  double flops = 0;
  double transcendentals = 0;
};

Work operator*(const Work& work, double times) { return {work.flops * times, work.transcendentals * times}; }
Work operator+(const Work& a, const Work& b) { return {a.flops + b.flops, a.transcendentals + b.transcendentals}; }

Work Total(const Computation& computation) {
  const Cost cost = CostOf(computation);
  return {cost.flops, cost.transcendentals};
}

double Elements(const Shape& shape) {
  double count = 0;
  for (const Shape& leaf : FlattenShape(shape)) count += leaf.IsArray() ? static_cast<double>(leaf.ElementCount()) : 0;
  return count;
}

double Bytes(const Shape& shape) { return static_cast<double>(shape.ByteSize()); }

// A complex product is four real ones and two sums.
double MultiplyAddFlops(ElementType type) { return IsComplex(type) ? 8 : 2; }

Work Nothing(const Instruction&) { return {}; }
Work PerElement(const Instruction& i) { return {Elements(i.shape()), 0}; }
Work TwoPerElement(const Instruction& i) { return {2 * Elements(i.shape()), 0}; }
Work Transcendental(const Instruction& i) { return {0, Elements(i.shape())}; }

Work DotWork(const Instruction& i) {
  const Shape& lhs = i.operand(0)->shape();
  double contracted = 1;
  for (int64_t d : i.As<attr::Dot>().lhs_contracting) contracted *= static_cast<double>(lhs.dimension(d));
  return {MultiplyAddFlops(i.shape().element_type()) * Elements(i.shape()) * contracted, 0};
}

Work RaggedDotWork(const Instruction& i) {
  const attr::Dot& dot = i.As<attr::Dot>();
  const bool contracted = std::find(dot.lhs_contracting.begin(), dot.lhs_contracting.end(), dot.lhs_ragged.at(0)) !=
                          dot.lhs_contracting.end();
  // A result for each group, but every element of the ragged dimension belongs to one group only.
  const Shape& groups = i.operand(2)->shape();
  const double shared = contracted ? static_cast<double>(std::max<int64_t>(1, groups.dimension(groups.rank() - 1))) : 1;
  return DotWork(i) * (1 / shared);
}

// Pairs (output position, window position) of one dimension that meet an element of the base: neither padding nor a
// hole of dilation.
double ValidPairs(int64_t base, int64_t outputs, const WindowDimension& w) {
  constexpr int64_t kExactLimit = int64_t{1} << 20;  // beyond, the few pairs lost at the edges do not matter
  if (base == 0) return 0;
  if (outputs > kExactLimit / w.size) {
    return static_cast<double>(outputs) * static_cast<double>(w.size) / static_cast<double>(w.base_dilation);
  }
  const int64_t last = (base - 1) * w.base_dilation;
  double pairs = 0;
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t k = 0; k < w.size; ++k) {
      const int64_t at = o * w.stride + k * w.window_dilation - w.padding_low;
      if (at >= 0 && at <= last && at % w.base_dilation == 0) ++pairs;
    }
  }
  return pairs;
}

Work ConvolutionWork(const Instruction& i) {
  const auto& conv = i.As<attr::Convolution>();
  const auto& n = conv.dimensions;
  const Shape& input = i.operand(0)->shape();
  const Shape& kernel = i.operand(1)->shape();
  double products = static_cast<double>(i.shape().dimension(n.output_batch)) *
                    static_cast<double>(i.shape().dimension(n.output_feature)) *
                    static_cast<double>(kernel.dimension(n.kernel_input_feature));
  for (size_t d = 0; d < conv.window.size(); ++d) {
    products *=
        ValidPairs(input.dimension(n.input_spatial[d]), i.shape().dimension(n.output_spatial[d]), conv.window[d]);
  }
  return {MultiplyAddFlops(i.shape().element_type()) * products, 0};
}

double WindowSize(const Instruction& i) {
  double size = 1;
  for (const WindowDimension& w : i.As<attr::Windowed>().window) size *= static_cast<double>(w.size);
  return size;
}

Work ReduceWork(const Instruction& i) {
  const Shape& result = i.shape().IsTuple() ? i.shape().tuple_shape(0) : i.shape();
  return Total(*i.called()) * std::max(0.0, Elements(i.operand(0)->shape()) - Elements(result));
}

Work ReduceWindowWork(const Instruction& i) {
  const Shape& result = i.shape().IsTuple() ? i.shape().tuple_shape(0) : i.shape();
  // Cumulative: each result is made from the one before.
  const double steps = CumulativeWindowOf(i) ? 1 : std::max(0.0, WindowSize(i) - 1);
  return Total(*i.called()) * (Elements(result) * steps);
}

Work SelectAndScatterWork(const Instruction& i) {
  const double windows = Elements(i.operand(1)->shape());
  return Total(*i.called(0)) * (windows * std::max(0.0, WindowSize(i) - 1)) + Total(*i.called(1)) * windows;
}

Work ScatterWork(const Instruction& i) {
  return Total(*i.called()) * Elements(i.operand(i.operand_count() - 1)->shape());
}

Work MapWork(const Instruction& i) { return Total(*i.called()) * Elements(i.shape()); }

Work SortWork(const Instruction& i) {
  const Shape& keys = i.operand(0)->shape();
  const auto length = static_cast<double>(keys.dimension(i.As<attr::Sort>().dimension));
  const double comparisons = Elements(keys) * std::max(1.0, std::log2(std::max(1.0, length)));
  return Total(*i.called()) * comparisons;
}

Work TopKWork(const Instruction& i) {
  const double k = std::max<double>(2, static_cast<double>(i.As<attr::TopK>().k));
  return {Elements(i.operand(0)->shape()) * std::log2(k), 0};
}

Work ScanWork(const Instruction& i) {
  return Total(*i.called()) * static_cast<double>(i.operand(0)->shape().dimension(i.As<attr::Scan>().scan_dimension));
}

Work AllReduceWork(const Instruction& i) {
  double elements = 0;
  for (const Instruction* operand : i.operands()) elements += Elements(operand->shape());
  return Total(*i.called()) * elements;
}

Work BatchNormWork(const Instruction& i) {
  // Two passes for the moments, and one multiply and add to normalise; the gradient is about twice that.
  const double per_element = i.Is(Opcode::kBatchNormInference) ? 2 : i.Is(Opcode::kBatchNormTraining) ? 6 : 12;
  const Shape& features = i.operand(1)->shape();
  return {per_element * Elements(i.operand(0)->shape()), Elements(features)};
}

Work FftWork(const Instruction& i) {
  double points = 1;
  for (int64_t length : i.As<attr::Fft>().length) points *= static_cast<double>(length);
  const double elements = std::max(Elements(i.shape()), Elements(i.operand(0)->shape()));
  return {5 * elements * std::log2(std::max(2.0, points)), 0};  // radix 2: 5 n log2 n
}

Work CholeskyWork(const Instruction& i) {
  const auto n = static_cast<double>(i.shape().dimensions().back());
  return {Elements(i.shape()) * n / 3 * MultiplyAddFlops(i.shape().element_type()) / 2, 0};
}

Work TriangularSolveWork(const Instruction& i) {
  const auto n = static_cast<double>(i.operand(0)->shape().dimensions().back());
  return {Elements(i.shape()) * n * MultiplyAddFlops(i.shape().element_type()) / 2, 0};
}

Work CalledWork(const Instruction& i) { return Total(*i.called()); }

using WorkRule = Work (*)(const Instruction&);

struct Row {
  Opcode opcode;
  WorkRule rule;
};

// Opcodes that are neither listed here nor elementwise compute nothing: they move data, or name it.
constexpr Row kRows[] = {
    {Opcode::kAllReduce, AllReduceWork},
    {Opcode::kAllReduceStart, AllReduceWork},
    {Opcode::kAsyncStart, CalledWork},
    {Opcode::kBatchNormGrad, BatchNormWork},
    {Opcode::kBatchNormInference, BatchNormWork},
    {Opcode::kBatchNormTraining, BatchNormWork},
    {Opcode::kCholesky, CholeskyWork},
    {Opcode::kClamp, TwoPerElement},
    {Opcode::kConvolution, ConvolutionWork},
    {Opcode::kCopy, Nothing},
    {Opcode::kDot, DotWork},
    {Opcode::kFft, FftWork},
    {Opcode::kFusion, CalledWork},
    {Opcode::kMap, MapWork},
    {Opcode::kRaggedDot, RaggedDotWork},
    {Opcode::kScaledDot, DotWork},
    {Opcode::kReduce, ReduceWork},
    {Opcode::kReduceScatter, AllReduceWork},
    {Opcode::kReduceWindow, ReduceWindowWork},
    {Opcode::kRng, Transcendental},
    {Opcode::kRngBitGenerator, Transcendental},
    {Opcode::kRsqrt, Transcendental},
    {Opcode::kScan, ScanWork},
    {Opcode::kScatter, ScatterWork},
    {Opcode::kSelectAndScatter, SelectAndScatterWork},
    {Opcode::kSort, SortWork},
    {Opcode::kSqrt, Transcendental},
    {Opcode::kTopK, TopKWork},
    {Opcode::kTriangularSolve, TriangularSolveWork},
};

WorkRule RuleOf(const Instruction& i) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return i.Is(r.opcode); });
  if (row != std::end(kRows)) return row->rule;
  if (!i.Has(kElementwise)) return Nothing;
  return i.Has(kExpensive) ? Transcendental : PerElement;
}

// What an instruction reads of operand `index`: the elements that it selects, where it selects.
double BytesReadOf(const Instruction& i, int64_t index) {
  const double whole = Bytes(i.operand(index)->shape());
  switch (i.opcode()) {
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kGather: return index == 0 ? std::min(whole, Bytes(i.shape())) : whole;
    case Opcode::kDynamicUpdateSlice: return index == 0 ? 0 : whole;  // the rest of the operand stays where it is
    case Opcode::kScatter:
      return index < i.operand_count() / 2
                 ? std::min(whole, Bytes(i.operand(i.operand_count() / 2 + 1 + index)->shape()))
                 : whole;
    case Opcode::kGetDimensionSize: return 0;
    default: return whole;
  }
}

double BytesWritten(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kDynamicUpdateSlice: return Bytes(i.operand(1)->shape());
    case Opcode::kScatter: {
      double bytes = 0;
      for (int64_t n = i.operand_count() / 2 + 1; n < i.operand_count(); ++n) bytes += Bytes(i.operand(n)->shape());
      return std::min(bytes, Bytes(i.shape()));
    }
    default: return Bytes(i.shape());
  }
}

// A fusion reads of a parameter what the parameter's users read.
double FusionBytesRead(const Instruction& fusion) {
  double bytes = 0;
  for (int64_t p = 0; p < fusion.operand_count(); ++p) {
    const Instruction* parameter = fusion.called()->parameter(p);
    double read = 0;
    for (const Instruction* user : parameter->users()) {
      for (int64_t n = 0; n < user->operand_count(); ++n) {
        if (user->operand(n) == parameter)
          read += user->Has(kTransparent) ? Bytes(parameter->shape()) : BytesReadOf(*user, n);
      }
    }
    bytes += std::min(read, Bytes(parameter->shape()));
  }
  return bytes;
}

double FusionBytesWritten(const Instruction& fusion) {
  const Instruction& root = *fusion.called()->root();
  if (!root.Is(Opcode::kTuple)) return BytesWritten(root);
  double bytes = 0;
  for (const Instruction* element : root.operands()) bytes += BytesWritten(*element);
  return bytes;
}

Cost Times(Cost cost, double times) {
  cost.flops *= times;
  cost.transcendentals *= times;
  cost.bytes_read *= times;
  cost.bytes_written *= times;
  return cost;
}

Cost ControlCost(const Instruction& i) {
  Cost cost;
  if (i.Is(Opcode::kConditional)) {
    for (const Computation* branch : i.called_computations()) {
      const Cost other = CostOf(*branch);
      if (other.flops + other.transcendentals + other.bytes_read + other.bytes_written >
          cost.flops + cost.transcendentals + cost.bytes_read + cost.bytes_written) {
        cost = other;
      }
    }
    return cost;
  }
  for (const Computation* callee : i.called_computations()) cost += CostOf(*callee);
  return i.Is(Opcode::kWhile) ? Times(cost, static_cast<double>(KnownTripCount(i).value_or(1))) : cost;
}

bool MovesNothing(const Instruction& i) {
  return i.Has(kTransparent) || i.Is(Opcode::kParameter) || i.Is(Opcode::kConstant);
}

}  // namespace

double ElementsInWindows(const Instruction& windowed) {
  const Shape& base = windowed.operand(0)->shape();
  const bool selects = windowed.Is(Opcode::kSelectAndScatter);
  const Shape result = selects ? windowed.operand(1)->shape() : FlattenShape(windowed.shape())[0];
  const Window& window = windowed.As<attr::Windowed>().window;
  double elements = 1;
  for (size_t d = 0; d < window.size(); ++d)
    elements *= ValidPairs(base.dimensions()[d], result.dimensions()[d], window[d]);
  return elements;
}

std::optional<int64_t> KnownTripCount(const Instruction& loop) {
  const std::string& config = loop.backend_config;
  size_t at = config.find("\"known_trip_count\"");
  if (at != std::string::npos) at = config.find("\"n\"", at);
  if (at != std::string::npos) at = config.find_first_of("0123456789", at);
  int64_t count = -1;
  if (at != std::string::npos) std::from_chars(config.data() + at, config.data() + config.size(), count);
  return count < 0 ? std::nullopt : std::optional<int64_t>(count);
}

Cost& Cost::operator+=(const Cost& other) {
  flops += other.flops;
  transcendentals += other.transcendentals;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  return *this;
}

Cost CostOf(const Instruction& instruction) {
  if (instruction.Has(kControl)) return ControlCost(instruction);
  if (MovesNothing(instruction)) return {};
  const Work work = RuleOf(instruction)(instruction);
  Cost cost{work.flops, work.transcendentals, 0, 0};
  if (instruction.Is(Opcode::kFusion)) {
    cost.bytes_read = FusionBytesRead(instruction);
    cost.bytes_written = FusionBytesWritten(instruction);
    return cost;
  }
  for (int64_t n = 0; n < instruction.operand_count(); ++n) cost.bytes_read += BytesReadOf(instruction, n);
  cost.bytes_written = BytesWritten(instruction);
  return cost;
}

Cost CostOf(const Computation& computation) {
  Cost total;
  for (const auto& instruction : computation.instructions()) total += CostOf(*instruction);
  return total;
}

}  // namespace hlorun::hlo
