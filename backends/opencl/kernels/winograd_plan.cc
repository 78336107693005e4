#include "backends/opencl/kernels/winograd_plan.h"

#include <algorithm>

#include "backends/opencl/codegen/scratch.h"
#include "backends/opencl/kernels/even_groups.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

constexpr int64_t kGroupsPerUnit = 4;
// Divisions of the squares that are looked at: so many to a doubling.
constexpr int64_t kDivisionsPerOctave = 16;
// Costs in multiply-adds (docs/convolutions.md). Transforming one input or output value of a square, beside the
// products that it spares; a weight, written to memory.
constexpr int64_t kTransformCost = 4, kWeightCost = 12;
// Of a block: transforming a value and putting it where products find it, and what is added when all blocks' values
// come from the last cache; a weight from a cache, and from memory.
constexpr int64_t kValueCost = 12, kFarValueCost = 50, kCachedWeightCost = 5, kFarWeightCost = 20;
// Of the last cache, what all groups' arrays may take: beyond it, each finds the one before in its place.
constexpr int64_t kShareOfArrays = 8;
// Of what a unit has to do, what may be lost where it has no second block that another could take over.
constexpr int64_t kRiskOfOneBlock = 8;
// Of what computing directly costs, in hundredths, what this way may cost: where direct kernels multiply pairs of bf16
// they take little more than half.
constexpr int64_t kMostOfDirect = 80, kMostOfPairs = 45;
// Below this there are too few chunks to share.
constexpr int64_t kFewestSquares = 64;
// Weights that are transformed once are still read by every core, from the last cache; with less than a register tile
// of squares that takes longer than the products.
constexpr int64_t kKeptWeightCost = 4, kFewestSquaresOfKept = 14;

bool IsPlain(const ConvolutionDimension& d) { return d.stride == 1 && d.base_dilation == 1; }

bool HasForm(const ConvolutionShape& shape, int64_t lanes) {
  return shape.groups == 1 && shape.compute_type == hlo::ElementType::kF32 && IsPlain(shape.rows) &&
         IsPlain(shape.columns) && shape.channels % lanes == 0 && shape.features >= lanes;
}

int64_t Cost(const WinogradPlan& plan) {
  const ConvolutionShape& shape = plan.shape;
  const int64_t channels = shape.channels, features = plan.panels * plan.width();
  const int64_t square = channels * features + kTransformCost * (channels + features);
  const int64_t weights = channels * features * (shape.weights_are_constant ? kKeptWeightCost : kWeightCost);
  return plan.products() * (plan.squares() * square + weights);
}

// Where a window is dilated, of each of the interleaved images that it sees.
int64_t SquaresAlong(const ConvolutionDimension& d, const WinogradForm& form) {
  return d.dilation * CeilDiv(CeilDiv(d.out, d.dilation), form.outputs);
}

// The least of the forms that have enough squares; leaves one point a dimension where there is none.
void ChooseForm(WinogradPlan& plan) {
  const ConvolutionShape& shape = plan.shape;
  const int64_t fewest = shape.weights_are_constant ? kFewestSquaresOfKept : kFewestSquares;
  WinogradPlan tried = plan;
  for (const WinogradForm& rows : WinogradFormsOf(shape.rows.window)) {
    for (const WinogradForm& columns : WinogradFormsOf(shape.columns.window)) {
      tried.rows = rows;
      tried.columns = columns;
      tried.squares_high = SquaresAlong(shape.rows, rows);
      tried.squares_wide = SquaresAlong(shape.columns, columns);
      if (tried.squares() < fewest) continue;
      if (plan.products() == 1 || Cost(tried) < Cost(plan)) plan = tried;
    }
  }
}

bool Pays(const WinogradPlan& plan, const DeviceSpec& device) {
  const ConvolutionShape& shape = plan.shape;
  const int64_t features = plan.panels * plan.width();
  const int64_t direct = shape.batch * shape.rows.out * shape.columns.out * shape.Depth() * features;
  const bool by_pairs = static_cast<bool>(PairsOf(shape, device));
  return plan.products() > 1 && Cost(plan) < direct / 100 * (by_pairs ? kMostOfPairs : kMostOfDirect);
}

// A square's values at all points, in a block's arrays.
int64_t BytesOfSquare(const WinogradPlan& plan) {
  return plan.products() * (plan.InputPitch() + plan.OutputPitch()) * hlo::BytesOf(plan.shape.compute_type);
}

// Squares of a block that leave the last cache to others too.
int64_t MostSquares(const WinogradPlan& plan, const DeviceSpec& device) {
  const int64_t room = std::max(2 * device.l2_bytes, device.l3_bytes / (2 * device.compute_units));
  return std::clamp<int64_t>(room / BytesOfSquare(plan), 1, plan.squares());
}

// Of a block: its squares times its features.
int64_t BlockCost(const WinogradPlan& plan, const DeviceSpec& device) {
  const int64_t channels = plan.shape.channels, features = plan.panels_per_part * plan.width();
  // A step of a tile costs its rows and about one row's worth of loads.
  const int64_t rows = plan.chunk / plan.tile_rows * (plan.tile_rows + 1);
  const int64_t of_weight = plan.WeightBytes() > device.l3_bytes / 2 ? kFarWeightCost : kCachedWeightCost;
  const int64_t bytes = plan.chunk * BytesOfSquare(plan), beyond = std::max<int64_t>(0, bytes - 2 * device.l2_bytes);
  const int64_t of_value = kValueCost + kFarValueCost * beyond / bytes;
  return (rows + of_weight) * channels * features + of_value * plan.chunk * (channels + features);
}

// Each chunk of squares reads all weights, and each part of the features transforms all inputs again; both are shared
// out so that the fullest unit has the least to do. Sums are the same however that is.
void Divide(WinogradPlan& plan, const DeviceSpec& device) {
  const int64_t limit = MostTileRows(device, plan.vectors);
  const int64_t units = device.compute_units;
  int64_t least = -1;
  WinogradPlan divided = plan;
  for (int64_t parts = 1; parts <= plan.panels; parts *= 2) {
    divided.panels_per_part = CeilDiv(plan.panels, parts);
    const int64_t fewest = CeilDiv(plan.squares(), MostSquares(divided, device));
    for (int64_t chunks = fewest;; chunks += CeilDiv(chunks, kDivisionsPerOctave)) {
      const int64_t squares = CeilDiv(plan.squares(), chunks);
      divided.tile_rows = EvenTileRows(squares, limit);
      divided.chunk = CeilDiv(squares, divided.tile_rows) * divided.tile_rows;
      const int64_t cached = device.l3_bytes / kShareOfArrays / (divided.chunk * BytesOfSquare(divided));
      divided.groups = EvenGroups(divided.blocks(), std::clamp(cached, units, kGroupsPerUnit * units), units);
      int64_t cost = FullestUnit(divided.blocks(), divided.groups, units) * BlockCost(divided, device);
      if (divided.groups < 2 * units) cost += cost / kRiskOfOneBlock;
      if (least < 0 || cost < least) {
        least = cost;
        plan = divided;
      }
      if (squares <= limit) break;
    }
  }
}

}  // namespace

int64_t WinogradPlan::WeightBytes() const {
  return AlignScratch(products() * panels * shape.channels * width() * hlo::BytesOf(shape.compute_type));
}
int64_t WinogradPlan::BufferBytes() const {
  return AlignScratch(groups * (InputElements() + OutputElements()) * hlo::BytesOf(shape.compute_type));
}

std::optional<WinogradPlan> PlanWinograd(const ConvolutionShape& shape, const DeviceSpec& device) {
  WinogradPlan plan;
  plan.shape = shape;
  plan.lanes = RegisterLanes(device, shape.compute_type);
  if (!HasForm(shape, plan.lanes)) return std::nullopt;
  plan.vectors = shape.features <= plan.lanes ? 1 : 2;
  plan.panels = CeilDiv(shape.features, plan.width());
  ChooseForm(plan);
  if (!Pays(plan, device)) return std::nullopt;
  Divide(plan, device);
  const int64_t input = shape.batch * shape.rows.in * shape.columns.in * shape.channels;
  const int64_t result = shape.batch * shape.rows.out * shape.columns.out * shape.features;
  plan.is_far = (input + result) * hlo::BytesOf(shape.compute_type) > 2 * device.l2_bytes;
  return plan;
}

}  // namespace hlorun::opencl
