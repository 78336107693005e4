#include "backends/opencl/kernels/convolution_plan.h"

#include <algorithm>
#include <functional>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/scratch.h"
#include "backends/opencl/kernels/even_groups.h"
#include "backends/opencl/kernels/product_plan.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

constexpr int64_t kGroupsPerUnit = 8, kBlocksOfUnit = 4, kPanelBlocksOfUnit = 2;
// So few rows of a tile load an element for each three multiplications and still keep the multipliers busy.
constexpr int64_t kRowsOfThreeVectors = 6;
// Each element is copied as two: fewer features do not pay for it.
constexpr int64_t kFeaturesOfOverlap = 16;

// Pixels along a row, and rows where one is short.
void ChooseTile(ConvolutionPlan& plan, const DeviceSpec& device) {
  const ConvolutionShape& shape = plan.shape;
  const auto divide_group = [&](int64_t vectors) { return shape.group_features() % (vectors * plan.lanes) == 0; };
  plan.vectors = shape.features <= plan.lanes || (shape.groups > 1 && !divide_group(2)) ? 1 : 2;
  if (shape.groups > 1 && plan.vectors == 1 && divide_group(3) && MostTileRows(device, 3) >= kRowsOfThreeVectors)
    plan.vectors = 3;
  const int64_t limit = MostTileRows(device, plan.vectors);
  plan.tile_columns = EvenTileRows(shape.columns.out, limit);
  int64_t best = -1;
  for (int64_t rows = 1; rows * plan.tile_columns <= limit && rows <= shape.rows.out; ++rows) {
    if (rows > 1 && plan.tile_columns < shape.columns.out) break;
    // A step costs about two pixels' worth of loads.
    const int64_t cost = CeilDiv(shape.rows.out, rows) * (rows * plan.tile_columns + 2);
    if (best < 0 || cost < best) {
      best = cost;
      plan.tile_rows = rows;
    }
  }
}

// A work-group's rows lie in the input as a copy would have them, and a tile leaves out what is beyond a row's ends at
// one tap each: more would be as many loops of a tile's code.
bool MayReadInPlace(const ConvolutionPlan& plan) {
  const ConvolutionDimension &rows = plan.shape.rows, &columns = plan.shape.columns;
  const bool is_as_copied = plan.shape.groups == 1 && !plan.pairs_overlap && plan.shape.input_type == plan.CopiedType();
  const bool is_dense = rows.base_dilation == 1 && columns.base_dilation == 1 && columns.dilation == 1;
  // Rows outside are skipped one by one, for all pixels of a tile.
  const bool skips_rows = plan.tile_rows == 1 && rows.dilation == 1;
  if (!is_as_copied || !is_dense || (rows.MayLeave() && !skips_rows)) return false;
  // The inner taps, of which the second and the one before the last reach furthest.
  const bool reaches_by_one = columns.low <= 1 && columns.Reach(columns.out) - 1 - columns.low <= columns.in;
  if (columns.window > 2 && !reaches_by_one) return false;
  int64_t at_first = 0, at_last = 0;
  for (const EdgeTap& edge : EdgeTaps(plan)) ++(edge.tap == 0 ? at_first : at_last);
  return at_first <= 1 && at_last <= 1;
}

// Weights that are read again from beyond the second cache by each block of rows, and the rows, copied again for each
// run of panels.
int64_t BytesMoved(const ConvolutionPlan& plan) {
  constexpr int64_t kReadAndWritten = 2;
  const int64_t copied = plan.BufferElements() * hlo::BytesOf(plan.shape.compute_type);
  return plan.shape.batch * plan.row_blocks() * plan.WeightBytes() + kReadAndWritten * plan.blocks() * copied;
}

// How near so many blocks are to enough: four a unit. Each run of panels copies the rows again, so two or three are as
// good where each unit has as many: one that is disturbed has something to leave to the others.
int64_t Enough(int64_t blocks, const DeviceSpec& device) {
  const int64_t units = device.compute_units, wanted = kBlocksOfUnit * units;
  const bool is_even = blocks >= kPanelBlocksOfUnit * units && blocks % units == 0;
  return is_even ? wanted : std::min(blocks, wanted);
}

// Of all panels and few rows, or of more rows and fewer panels: enough blocks, and then the fewest bytes.
void ShareFarWeights(ConvolutionPlan& plan, const DeviceSpec& device, const std::function<bool(int64_t)>& fits) {
  ConvolutionPlan tried = plan;
  const int64_t all = plan.shape.rows.out;
  for (int64_t rows = plan.tile_rows;;) {
    tried.rows_per_block = rows;
    for (int64_t panels = plan.panels; panels >= 1; panels = panels == 1 ? 0 : CeilDiv(panels, 2)) {
      tried.panels_per_block = panels;
      const int64_t enough = Enough(tried.blocks(), device), before = Enough(plan.blocks(), device);
      if (enough > before || (enough == before && BytesMoved(tried) < BytesMoved(plan))) plan = tried;
    }
    const int64_t more = std::min(rows + plan.tile_rows, all);
    if (more == rows || !fits(more)) return;
    rows = more;
  }
}

void ChooseBlocks(ConvolutionPlan& plan, const DeviceSpec& device) {
  const ConvolutionShape& shape = plan.shape;
  const int64_t row_bytes = plan.BufferColumns() * shape.channels * hlo::BytesOf(shape.compute_type);
  const int64_t wanted = kBlocksOfUnit * device.compute_units;
  const auto fits = [&](int64_t rows) { return shape.rows.Span(rows) * row_bytes <= device.l2_bytes / 4; };
  // The last tile of a block may overlap the one above only where all rows are one block.
  const bool is_one_block = shape.rows.out % plan.tile_rows != 0 && fits(shape.rows.out);
  plan.rows_per_block = is_one_block ? shape.rows.out : plan.tile_rows;
  while (plan.rows_per_block < shape.rows.out && fits(plan.rows_per_block + plan.tile_rows) &&
         shape.batch * shape.groups * CeilDiv(shape.rows.out, plan.rows_per_block + plan.tile_rows) >= wanted) {
    plan.rows_per_block += plan.tile_rows;
  }
  const int64_t even = CeilDiv(shape.rows.out, CeilDiv(shape.rows.out, plan.rows_per_block));
  plan.rows_per_block = std::min(shape.rows.out, CeilDiv(even, plan.tile_rows) * plan.tile_rows);
  // A block's rows hold the channels of one group.
  plan.panels_per_block = plan.panels / shape.groups;
  while (shape.groups == 1 && Enough(plan.blocks(), device) < wanted && plan.panels_per_block > 1)
    plan.panels_per_block = CeilDiv(plan.panels_per_block, 2);
  const int64_t kept = device.l2_bytes / 2, of_panel = plan.WeightBytes() / plan.panels;
  // Blocks of more rows, as long as there are enough of them: fewer blocks read the weights.
  const auto fits_beside_panel = [&](int64_t rows) {
    return fits(rows) || (shape.rows.Span(rows) * row_bytes + of_panel <= device.l2_bytes / 4 * 3 &&
                          shape.batch * CeilDiv(shape.rows.out, rows) >= kPanelBlocksOfUnit * device.compute_units);
  };
  if (shape.groups == 1 && plan.WeightBytes() > kept && of_panel <= kept)
    ShareFarWeights(plan, device, fits_beside_panel);
  plan.groups = EvenGroups(plan.blocks(), kGroupsPerUnit * device.compute_units, device.compute_units);
}

}  // namespace

ConvolutionDimension DimensionOf(const hlo::WindowDimension& window, int64_t in, int64_t out) {
  return {in, out, window.size, window.stride, window.padding_low, window.window_dilation, window.base_dilation};
}

bool ConvolutionShape::IsProduct() const {
  const auto pointwise = [](const ConvolutionDimension& d) {
    return d.window == 1 && d.stride == 1 && d.low == 0 && d.base_dilation == 1 && d.in == d.out;
  };
  return groups == 1 && pointwise(rows) && pointwise(columns);
}

std::optional<ConvolutionShape> ConvolutionShapeOf(const hlo::Instruction& convolution) {
  const auto& attributes = convolution.As<hlo::attr::Convolution>();
  const hlo::attr::ConvolutionDimensions& labels = attributes.dimensions;
  const hlo::Shape &input = convolution.operand(0)->shape(), &weights = convolution.operand(1)->shape();
  const hlo::Shape& output = convolution.shape();
  const auto spatial = static_cast<int64_t>(attributes.window.size());
  if (spatial < 1 || spatial > 2 || attributes.batch_group_count != 1) return std::nullopt;
  bool canonical = labels.input_batch == 0 && labels.input_feature == spatial + 1 &&
                   labels.kernel_input_feature == spatial && labels.kernel_output_feature == spatial + 1 &&
                   labels.output_batch == 0 && labels.output_feature == spatial + 1 && input.IsStatic() &&
                   weights.IsStatic();
  for (int64_t d = 0; d < spatial; ++d) {
    const auto i = static_cast<size_t>(d);
    canonical = canonical && labels.input_spatial[i] == d + 1 && labels.kernel_spatial[i] == d &&
                labels.output_spatial[i] == d + 1 && !attributes.window[i].window_reversal;
  }
  if (!canonical) return std::nullopt;
  ConvolutionShape shape;
  shape.spatial_rank = spatial;
  shape.batch = input.dimension(0);
  shape.groups = attributes.feature_group_count;
  shape.channels = weights.dimension(spatial);
  shape.features = output.dimension(spatial + 1);
  for (int64_t d = 0; d < spatial; ++d) {
    const hlo::WindowDimension& window = attributes.window[static_cast<size_t>(d)];
    ConvolutionDimension& to = d + 1 == spatial ? shape.columns : shape.rows;
    to = DimensionOf(window, input.dimension(d + 1), output.dimension(d + 1));
  }
  shape.input_type = input.element_type();
  shape.weight_type = weights.element_type();
  const std::optional<hlo::ElementType> sums = SumType(shape.input_type, shape.weight_type, output.element_type());
  if (!sums || output.ElementCount() == 0 || shape.Depth() == 0) return std::nullopt;
  shape.compute_type = *sums;
  return shape;
}

int64_t ConvolutionPlan::row_blocks() const { return CeilDiv(shape.rows.out, rows_per_block); }
int64_t ConvolutionPlan::panel_blocks() const { return CeilDiv(panels, panels_per_block); }
int64_t ConvolutionPlan::BufferElements() const {
  if (reads_in_place) return 0;
  const int64_t line = kLineBytes / hlo::BytesOf(shape.compute_type);
  return CeilDiv(BufferRows() * BufferColumns() * shape.channels, line) * line;
}
int64_t ConvolutionPlan::WeightBytes() const {
  return AlignScratch(panels * shape.rows.window * RowDepth() * width() * hlo::BytesOf(shape.compute_type));
}
int64_t ConvolutionPlan::BufferBytes() const {
  return AlignScratch(groups * BufferElements() * hlo::BytesOf(shape.compute_type));
}

std::vector<EdgeTap> EdgeTaps(const ConvolutionPlan& plan) {
  const ConvolutionDimension& d = plan.shape.columns;
  const int64_t width = plan.tile_columns;
  std::vector<EdgeTap> edges;
  for (int64_t tap = 0; tap < d.window; tap += std::max<int64_t>(1, d.window - 1)) {
    // Outputs `begin` .. `end` have the tap inside.
    const int64_t place = tap * d.dilation - d.low;
    const auto output_of = [&](int64_t x) { return CeilDiv(std::max<int64_t>(0, x), d.stride); };
    const int64_t begin = output_of(-place), end = output_of(d.in - place);
    for (int64_t column = 0; column < d.out; column += width) {
      const int64_t at = std::min(column, d.out - width);
      const int64_t first = std::clamp<int64_t>(begin - at, 0, width);
      const int64_t last = std::clamp<int64_t>(end - at, first, width);
      if (first > 0 || last < width) edges.push_back({tap, at, first, last});
    }
  }
  return edges;
}

int64_t LanesOfGroup(int64_t group_features, hlo::ElementType compute_type, const DeviceSpec& device) {
  const int64_t lanes = RegisterLanes(device, compute_type), half = std::max<int64_t>(1, lanes / 2);
  return group_features % lanes != 0 && group_features % half == 0 ? half : lanes;
}

// Words of s8 would want borders that are not zero. Pairs that overlap lie along a row that is copied as it is.
WordForm PairsOf(const ConvolutionShape& shape, const DeviceSpec& device) {
  constexpr int64_t kPair = 2;
  if (shape.input_type != shape.weight_type) return {};
  // Words fill registers.
  if (shape.groups > 1 && shape.group_features() % RegisterLanes(device, shape.compute_type) != 0) return {};
  const ConvolutionDimension& columns = shape.columns;
  const bool may_overlap = shape.groups == 1 && columns.dilation == 1 && columns.base_dilation == 1 &&
                           columns.window > 1 && shape.features >= kFeaturesOfOverlap;
  const int64_t depth = may_overlap ? kPair * shape.channels : shape.channels;
  const WordForm words = WordFormOf(shape.input_type, shape.compute_type, depth, device);
  return words.kind == WordKind::kBf16Pairs ? words : WordForm{};
}

ConvolutionPlan PlanConvolution(const ConvolutionShape& shape, const DeviceSpec& device) {
  ConvolutionPlan plan;
  plan.shape = shape;
  plan.lanes = shape.groups == 1 ? RegisterLanes(device, shape.compute_type)
                                 : LanesOfGroup(shape.group_features(), shape.compute_type, device);
  plan.words = PairsOf(shape, device);
  plan.pairs_overlap = plan.words && shape.channels % plan.words.elements != 0;
  if (plan.pairs_overlap) {
    plan.shape.input_type = plan.shape.weight_type = plan.words.element;
  } else if (plan.words) {
    plan.shape.channels /= plan.words.elements;
    plan.shape.input_type = plan.shape.weight_type = hlo::ElementType::kU32;
  }
  const int64_t elements = shape.batch * shape.rows.out * shape.columns.out * shape.features;
  plan.result_is_far = elements * hlo::BytesOf(shape.compute_type) > device.l2_bytes;
  ChooseTile(plan, device);
  plan.reads_in_place = MayReadInPlace(plan);
  plan.panels = CeilDiv(shape.features, plan.width());
  ChooseBlocks(plan, device);
  return plan;
}

}  // namespace hlorun::opencl
