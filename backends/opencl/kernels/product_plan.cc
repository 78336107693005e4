#include "backends/opencl/kernels/product_plan.h"

#include <algorithm>
#include <numeric>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/scratch.h"
#include "backends/opencl/kernels/even_groups.h"
#include "backends/opencl/kernels/product_schedule.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

// Few rows of rhs [n][k]: dot products beat packing (docs/products.md: 1 x 4096 x 4096 and 8 x 2048 x 2048).
constexpr int64_t kDotProductRows = 8;
// Up to so many of them walk rhs row by row where it comes from memory and its rows are shorter than a page, where the
// hardware's prefetcher stops: several at once would be as many short runs.
constexpr int64_t kStrandRows = 4;
// Up to so many rows read rhs [k][n] row by row where it is larger than the second cache. Their sums, of so many bytes,
// lie in the first; so many work-groups make them, each of so many rows of rhs at least.
constexpr int64_t kStreamRows = 16, kStreamBytes = 16384, kStreamGroups = 16, kStreamDepth = 24;
constexpr int64_t kStreamColumns = 2048;
// So many where rows of rhs are crowded; and from how many on rhs in place is read by two tiles.
constexpr int64_t kStreamCrowdedRows = 24, kRowsOfTwoTiles = 10;
// Packing rhs costs k * n copies for m * k * n products; in place its rows lie far apart. They break even about here.
constexpr int64_t kPackRows = 192;
constexpr int64_t kInPlaceColumns = 64;
// Rows of lhs from which on a copy of rhs that is made once is better than rhs in place.
constexpr int64_t kFewestKeptRows = 4;
// Rows of lhs up to which panels in place are this wide.
constexpr int64_t kWideRows = 64, kWideVectors = 3;
// Rows of lhs between which a work-group copies its panels itself: fewer read wider panels in place, for which 16
// registers are too few; with more, all of lhs would pass by too often.
constexpr int64_t kFewestBlockRows = 96, kFewestBlockRowsOfNarrowTiles = 12, kMostBlockRows = 512;
// The same where the second cache would hold rhs, and rhs in place is the alternative; and the least depth for it.
constexpr int64_t kFewestNearRows = 144, kLeastNearDepth = 256;
// The same where rows of rhs are crowded (RowsOfRhsAreCrowded).
constexpr int64_t kFewestCrowdedRows = 32, kFewestNearCrowdedRows = 64;
// Depth of their blocks where few tiles meet them.
constexpr int64_t kCrowdedDepth = 128;
// Fewer tiles than these do not send for the next block: there is too much of it for each of them, and what they
// multiply waits for the same buffers of lines on their way.
constexpr int64_t kFewestTilesThatSend = 12;
// The part of the second cache that a block takes: the next one, which tiles send for, and lhs lie there too.
constexpr int64_t kBlocksOfCache = 4;
// Blocks for each unit, at least.
constexpr int64_t kBlocksOfUnit = 4;
// Blocks are made smaller where that takes more than this part from what the fullest unit has to do.
constexpr int64_t kWorthSmallerBlocks = 30;
// Storing a result from transposed tiles costs about as much as packing this many elements.
constexpr int64_t kTurnedStore = 2;
// lhs [k][m] is read in place when its rows are short: a tile touches k of them.
constexpr int64_t kInPlaceTransposedRows = 128;
// Depth of a block when both operands lie with k outermost: their blocks then stay in the second-level cache.
constexpr int64_t kTransposedBlock = kSectionSteps;
// A depth that is worth blocks of its own, where fewer panels than these fit into half the second cache; how many
// panels of a block do. Less depth is worth them where the panels that fit have fewer columns than these.
constexpr int64_t kDeepest = 2048, kFewestPanels = 3, kPanelsPerDepthBlock = 16, kFewestColumns = 48;
// Of a matrix by its transpose: with fewer panels little lies below the diagonal's, and with less depth a tile's sums
// cost no more than storing them twice.
constexpr int64_t kFewestMirroredPanels = 3, kLeastMirroredDepth = 32, kLeastFarMirroredDepth = 64;
constexpr int64_t kWordRows = 12;
constexpr int64_t kPageBytes = 4096;
// Columns of results from which on copying lhs to other distances costs little beside what it gains, where lhs comes
// from the last cache, and from memory.
constexpr int64_t kSpreadColumns = 256, kFarSpreadColumns = 2048;
// An operand of more second caches than this comes from beyond them each time that it is read.
constexpr int64_t kFarCaches = 4;
// Of dot products of short rows.
constexpr int64_t kFewestLanesAlong = 4, kShortRow = 4;
// A part of k that is worth a work-group of its own.
constexpr int64_t kPartDepth = 512;
// Work that is too little to share, and very long sums of not much more, are cut into parts: by numbers that are the
// same whatever the device, so that sums are.
constexpr int64_t kLittleWork = 8, kLongSumWork = 128, kLongSum = 64 * kPartDepth;

bool HasKernel(hlo::ElementType type) {
  using enum hlo::ElementType;
  switch (type) {
    case kF32:
    case kF64:
    case kF16:
    case kBF16:
    case kS8:
    case kU8:
    case kS16:
    case kU16:
    case kS32:
    case kU32:
    case kS64:
    case kU64: return true;
    default: return false;
  }
}

// Work-groups of the block sizes chosen so far.
int64_t Groups(const ProductPlan& plan) {
  return plan.shape.batch * plan.k_parts * CeilDiv(plan.tiles, plan.tiles_per_block) *
         CeilDiv(plan.panels, plan.panels_per_block);
}

// Words lie along k: rows of lhs in place, rhs in panels, which few rows of lhs are not worth.
WordForm WordsFor(const ProductShape& shape, const DeviceSpec& device) {
  if (shape.depth_may_be_less || shape.lhs_transposed || shape.m < kWordRows || shape.lhs_type != shape.rhs_type)
    return {};
  return WordFormOf(shape.lhs_type, shape.compute_type, shape.k, device);
}

void TakeWords(ProductPlan& plan, const DeviceSpec& device) {
  plan.words = WordsFor(plan.shape, device);
  if (!plan.words) return;
  plan.shape.k /= plan.words.elements;
  plan.shape.lhs_type = plan.shape.rhs_type = hlo::ElementType::kU32;
}

ProductShape Exchanged(ProductShape shape) {
  std::swap(shape.m, shape.n);
  std::swap(shape.lhs_type, shape.rhs_type);
  const bool lhs_transposed = shape.lhs_transposed;
  shape.lhs_transposed = !shape.rhs_transposed;
  shape.rhs_transposed = !lhs_transposed;
  shape.swapped = !shape.swapped;
  return shape;
}

// Whether rhs is copied to panels because the copies cost nothing.
bool TakesKeptPanels(const ProductShape& shape) {
  return shape.rhs_is_kept && shape.m >= kFewestKeptRows && shape.n > kInPlaceColumns;
}

// Rows of rhs [k][n] so many lines apart that the second cache has too few sets for one column of them: tiles in place
// read them from beyond it once for each tile's height. Sets repeat with a page at most: where pages lie is chance.
bool RowsOfRhsAreCrowded(const ProductShape& shape, const DeviceSpec& device) {
  const int64_t row_bytes = shape.n * hlo::BytesOf(shape.rhs_type);
  if (shape.rhs_transposed || row_bytes % kLineBytes != 0) return false;
  const int64_t alike = std::gcd(row_bytes, kPageBytes);  // each is the place of 1 of so many bytes
  return shape.k * alike >= device.l2_bytes * 3 / 4;
}

// Whether a product of this size is worth panels that each work-group copies for itself, where there are units enough
// for them. With few rows of lhs, rhs [n][k] is read as it lies, in exchanged roles.
bool MayBeWorthOwnBlocks(const ProductShape& shape, const DeviceSpec& device) {
  const bool is_narrow = VectorRegisters(device) < 32 && !shape.rhs_transposed;
  const bool is_crowded = RowsOfRhsAreCrowded(shape, device);
  const int64_t fewest = is_narrow ? kFewestBlockRowsOfNarrowTiles : is_crowded ? kFewestCrowdedRows : kFewestBlockRows;
  if (shape.ends_at_sizes || shape.depth_may_be_less || shape.m < fewest || shape.m > kMostBlockRows ||
      shape.n <= kInPlaceColumns || TakesKeptPanels(shape))
    return false;
  const int64_t bytes = shape.k * shape.n * hlo::BytesOf(shape.compute_type);
  const int64_t fewest_near = is_crowded             ? kFewestNearCrowdedRows
                              : shape.rhs_transposed ? kFewestBlockRows
                                                     : kFewestNearRows;
  const bool is_near = shape.m >= fewest_near && shape.k >= kLeastNearDepth;
  return bytes > (is_near ? device.l2_bytes / kBlocksOfCache : device.l2_bytes);
}

bool IsWorthOwnBlocks(const ProductShape& shape, const DeviceSpec& device) {
  const int64_t panels = shape.batch * CeilDiv(shape.n, 2 * RegisterLanes(device, shape.compute_type));
  return panels >= kBlocksOfUnit * device.compute_units && MayBeWorthOwnBlocks(shape, device);
}

// A few tiles' rows with rhs in place that comes from far: rows of wider panels are read in longer runs. The number of
// units has no say: parts of k, and sums of what is made of results, go by tiles.
bool ReadsWideRows(const ProductShape& shape, const DeviceSpec& device) {
  const int64_t lanes = RegisterLanes(device, shape.compute_type);
  return !shape.rhs_transposed && shape.rhs_type == shape.compute_type && VectorRegisters(device) == 32 &&
         shape.m > 7 && shape.m <= kWideRows && shape.n >= 2 * kWideVectors * lanes &&
         shape.k * shape.n * hlo::BytesOf(shape.rhs_type) > device.l2_bytes && !MayBeWorthOwnBlocks(shape, device);
}

// Rows of lhs a multiple of a page apart fall into the same sets of the caches.
bool RowsArePagesApart(const ProductShape& shape) {
  return !shape.lhs_transposed && shape.k * hlo::BytesOf(shape.compute_type) % kPageBytes == 0;
}

// Whether the tiles above the diagonal may store what lies below it. (A part of k is summed by a kernel of its own.)
bool MayMirror(const ProductPlan& plan) {
  const ProductShape& shape = plan.shape;
  return shape.is_symmetric && plan.lanes > 1 && !shape.ends_at_sizes && !shape.depth_may_be_less &&
         CeilDiv(shape.n, plan.columns()) >= kFewestMirroredPanels &&
         shape.k >= (plan.result_is_far ? kLeastFarMirroredDepth : kLeastMirroredDepth);
}

// Of tiles that lie in one panel's rows each.
int64_t RowsOfMirroredTile(const ProductPlan& plan, int64_t limit) {
  int64_t rows = std::min(limit, plan.columns());
  while (plan.columns() % rows != 0) --rows;
  return rows;
}

void ChooseTile(ProductPlan& plan, const DeviceSpec& device) {
  const ProductShape& shape = plan.shape;
  const int64_t registers = VectorRegisters(device);
  plan.vectors = shape.n <= plan.lanes ? 1 : 2;
  // Few rows leave registers for more columns, and a row of rhs is then read in longer runs.
  if (shape.m * 4 <= registers - 4) {
    plan.vectors = std::clamp<int64_t>((registers - 8) / shape.m, 1, 16);
    // One tile has all rows (MostTileRows), or rhs would be read again for the next.
    while (shape.m > 1 && plan.vectors > 1 && MostTileRows(device, plan.vectors) < shape.m) --plan.vectors;
    plan.vectors = std::min(plan.vectors, CeilDiv(shape.n, plan.lanes));
  }
  if (ReadsWideRows(shape, device)) plan.vectors = kWideVectors;
  int64_t limit = MostTileRows(device, plan.vectors);
  // A set of the first cache has this many ways.
  if (RowsArePagesApart(shape)) limit = std::min(limit, std::max<int64_t>(device.l1_bytes / kPageBytes, 4));
  plan.rows = MayMirror(plan) ? RowsOfMirroredTile(plan, limit) : EvenTileRows(shape.m, limit);
}

// Tiles of many registers are lower where rows are pages apart (ChooseTile); low ones, of which all rows just fit into
// a set, still wait for them (docs/products.md).
bool SpreadsRows(const ProductPlan& plan, const DeviceSpec& device) {
  const ProductShape& shape = plan.shape;
  const bool in_memory = shape.batch * shape.m * shape.k * hlo::BytesOf(shape.compute_type) > device.l3_bytes / 4;
  return VectorRegisters(device) == 16 && RowsArePagesApart(shape) && shape.m > plan.rows &&
         shape.n >= (in_memory ? kFarSpreadColumns : kSpreadColumns);
}

void ChooseForms(ProductPlan& plan, const DeviceSpec& device) {
  const ProductShape& shape = plan.shape;
  const bool native_lhs = shape.lhs_type == plan.PackedType(), native_rhs = shape.rhs_type == shape.compute_type;
  if (shape.lhs_transposed) {
    const bool in_place = native_lhs && shape.m <= kInPlaceTransposedRows;
    plan.lhs = in_place || shape.m == 1 ? LhsForm::kInPlace : LhsForm::kPanels;
  } else {
    const bool in_place = native_lhs || shape.m == 1;
    plan.lhs = SpreadsRows(plan, device) ? LhsForm::kSpread : in_place ? LhsForm::kInPlace : LhsForm::kConverted;
  }
  const bool short_rows = shape.n <= kInPlaceColumns && native_rhs;
  const bool few_uses = shape.m <= (native_rhs ? kPackRows : 2 * plan.rows);
  if (plan.words || TakesKeptPanels(shape)) {
    plan.rhs = RhsForm::kPanels;
    return;
  }
  plan.rhs = !shape.rhs_transposed && (short_rows || few_uses) ? RhsForm::kInPlace : RhsForm::kPanels;
}

// A depth of blocks that sums by sections and others may have.
int64_t WholeSections(int64_t depth) { return std::max<int64_t>(depth / kSectionSteps, 1) * kSectionSteps; }

// 0, or the depth of blocks where k is so deep that few panels fit into the second cache: all of lhs would be read
// again for each few of them.
int64_t DepthBlock(const ProductPlan& plan, const DeviceSpec& device) {
  const int64_t row_bytes = plan.columns() * hlo::BytesOf(plan.shape.compute_type), room = device.l2_bytes / 2;
  const int64_t panels_in_room = room / (plan.part_k() * row_bytes);
  if (plan.panels <= kFewestPanels || panels_in_room >= kFewestPanels) return 0;
  if (plan.part_k() <= kDeepest && panels_in_room * plan.columns() >= kFewestColumns) return 0;
  return WholeSections(room / (kPanelsPerDepthBlock * row_bytes));
}

void ChooseBlocks(ProductPlan& plan, const DeviceSpec& device) {
  const int64_t element = hlo::BytesOf(plan.shape.compute_type);
  const int64_t panel_bytes = plan.block_k() * plan.columns() * element;
  // The next block of an operand in place is on its way while this one is multiplied.
  const int64_t room = plan.rhs == RhsForm::kInPlace ? device.l2_bytes * 3 / 8 : device.l2_bytes / 2;
  plan.panels_per_block = std::clamp<int64_t>(room / panel_bytes, 1, plan.panels);
  plan.tiles_per_block = std::min<int64_t>(plan.tiles, 8);
  const int64_t wanted = 4 * device.compute_units;
  while (Groups(plan) < wanted && (plan.tiles_per_block > 1 || plan.panels_per_block > 1)) {
    if (plan.panels_per_block >= plan.tiles_per_block) {
      plan.panels_per_block = CeilDiv(plan.panels_per_block, 2);
    } else {
      plan.tiles_per_block = CeilDiv(plan.tiles_per_block, 2);
    }
  }
  // Equal blocks.
  plan.panels_per_block = CeilDiv(plan.panels, CeilDiv(plan.panels, plan.panels_per_block));
  plan.tiles_per_block = CeilDiv(plan.tiles, CeilDiv(plan.tiles, plan.tiles_per_block));
}

// What exchanged roles multiply in vain, in elements packed: their columns are rows of lhs, of which tiles take whole
// vectors. Only where rhs would go by blocks instead, and sums are not so long that they might be cut into other parts
// (ChooseParts): their order must not depend on the device's units.
int64_t WastedByExchange(const ProductShape& shape, const DeviceSpec& device) {
  const bool may_go_by_blocks = !shape.lhs_transposed && shape.k < kLongSum && !WordsFor(shape, device);
  if (!may_go_by_blocks || !IsWorthOwnBlocks(shape, device)) return 0;
  const int64_t lanes = RegisterLanes(device, shape.compute_type);
  const auto up_to = [&](int64_t multiple) { return CeilDiv(shape.m, multiple) * multiple; };
  const int64_t more_rows = up_to(lanes) - up_to(EvenTileRows(shape.m, MostTileRows(device, 2)));
  return std::max<int64_t>(more_rows, 0) * shape.n * shape.k / std::max<int64_t>(lanes / 4, 1);
}

// Few tiles over crowded rows of rhs: the fewer of those a block has, the longer, and within a page the hardware's
// prefetcher follows them.
bool IsLowOverCrowdedRows(const ProductPlan& plan, const DeviceSpec& device) {
  return plan.tiles < kFewestTilesThatSend && RowsOfRhsAreCrowded(plan.shape, device);
}

// Panels that each work-group copies for itself, where all rows of lhs meet them at once.
void ChooseOwnBlocks(ProductPlan& plan, const DeviceSpec& device) {
  const ProductShape& shape = plan.shape;
  const int64_t element = hlo::BytesOf(shape.compute_type);
  const int64_t depth_block = IsLowOverCrowdedRows(plan, device) ? kCrowdedDepth : DepthBlock(plan, device);
  const int64_t panel_bytes = (depth_block > 0 ? depth_block : shape.k) * plan.columns() * element;
  if (plan.words || plan.vectors != 2 || plan.CombinesParts() || !IsWorthOwnBlocks(shape, device)) return;
  const int64_t wanted = kBlocksOfUnit * device.compute_units;
  const auto blocks = [&](int64_t panels) { return shape.batch * CeilDiv(plan.panels, panels); };
  int64_t panels = std::clamp<int64_t>(device.l2_bytes / kBlocksOfCache / panel_bytes, 1, plan.panels);
  while (panels > 1 && blocks(panels) < wanted) --panels;
  if (blocks(panels) < wanted) return;
  // Smaller blocks that share out better; but lhs passes by more often.
  const auto fullest = [&](int64_t of_block) {
    const int64_t slots = EvenGroups(blocks(of_block), wanted, device.compute_units);
    return of_block * FullestUnit(blocks(of_block), slots, device.compute_units);
  };
  const int64_t fewest = CeilDiv(panels, 2);
  for (int64_t fewer = panels; fewer >= fewest; --fewer) {
    if (fullest(fewer) * kWorthSmallerBlocks < fullest(panels) * (kWorthSmallerBlocks - 1)) panels = fewer;
  }
  plan.rhs = RhsForm::kBlocks;
  plan.k_block = depth_block;
  plan.panels_per_block = panels;
  plan.tiles_per_block = plan.tiles;
  plan.slots = EvenGroups(blocks(panels), wanted, device.compute_units);
}

void ChooseParts(ProductPlan& plan, const DeviceSpec& device) {
  const ProductShape& shape = plan.shape;
  const int64_t work = shape.batch * plan.tiles * plan.panels;
  // Results that are large beside their operands gain nothing from being summed twice.
  if (work < kLittleWork && shape.k >= 2 * kPartDepth) {
    plan.k_parts = std::min(CeilDiv(kLittleWork * 2, work), shape.k / kPartDepth);
  } else if (work < kLongSumWork && shape.k >= kLongSum) {
    plan.k_parts = std::min<int64_t>(kLittleWork, shape.k / kPartDepth);
  }
  plan.k_parts = CeilDiv(shape.k, plan.part_k());
  const bool k_outermost = shape.lhs_transposed && plan.lhs == LhsForm::kInPlace;
  const int64_t element = hlo::BytesOf(shape.compute_type);
  const int64_t largest = device.l2_bytes * 3 / 4 / ((plan.rows + plan.columns()) * element);
  if (plan.tiles == 1) return;  // nothing is read twice
  if (k_outermost && plan.part_k() > 2 * kTransposedBlock) {
    plan.k_block = kTransposedBlock;
  } else if (plan.part_k() > largest) {
    plan.k_block = WholeSections(largest / 2);
  } else if (plan.rhs == RhsForm::kPanels) {
    plan.k_block = DepthBlock(plan, device);
  }
}

// Whether rhs [k][n] is better read row by row: where it is from memory, however much more rows do beside reading;
// where tiles in place would read it twice, or find their few columns of each row in sets that are full
// (docs/products.md).
bool IsWorthStreaming(const ProductShape& shape, const DeviceSpec& device) {
  const int64_t bytes = shape.batch * shape.k * shape.n * hlo::BytesOf(shape.rhs_type);
  if (shape.m <= kStreamRows && bytes > shape.m * device.l2_bytes) return true;
  // With 16 registers blocks that are copied are better than either.
  if (VectorRegisters(device) < 32) return false;
  if (shape.m >= kRowsOfTwoTiles && shape.m <= kStreamRows && bytes > 2 * device.l2_bytes) return true;
  return shape.m > 1 && shape.m <= kStreamCrowdedRows && 2 * bytes > 3 * device.l2_bytes &&
         RowsOfRhsAreCrowded(shape, device);
}

// Sums that lie in private memory while whole rows of rhs pass by; the same whatever the device has of cores.
bool TakeStreams(ProductPlan& plan, const DeviceSpec& device) {
  const ProductShape& shape = plan.shape;
  const bool fits = !shape.rhs_transposed && shape.n >= kInPlaceColumns && shape.k >= 2 * kStreamDepth &&
                    !shape.ends_at_sizes && !shape.depth_may_be_less && !WordsFor(shape, device) &&
                    !TakesKeptPanels(shape);
  if (!fits || !IsWorthStreaming(shape, device)) return false;
  plan.streams = true;
  plan.rows = shape.m;
  const int64_t element = hlo::BytesOf(shape.compute_type);
  const int64_t most = std::min(kStreamBytes / (shape.m * element), kStreamColumns) / plan.lanes;
  const int64_t vectors = CeilDiv(shape.n, plan.lanes);
  // Two are walked side by side.
  plan.vectors = CeilDiv(CeilDiv(vectors, CeilDiv(vectors, most)), 2) * 2;
  plan.panels = CeilDiv(shape.n, plan.columns());
  plan.k_parts = std::clamp<int64_t>(CeilDiv(kStreamGroups, shape.batch * plan.panels), 1, shape.k / kStreamDepth);
  plan.k_parts = CeilDiv(shape.k, plan.part_k());
  return true;
}

// Parts of k stay as they are: they say in which order sums are added. (Measured in other roles, where rhs was not
// kept, a tile may have more rows than there are.)
void Apply(const PanelSchedule& schedule, const DeviceSpec& device, ProductPlan& plan) {
  plan.rows = std::min(schedule.rows, plan.shape.m);
  plan.vectors = schedule.vectors;
  plan.tiles = CeilDiv(plan.shape.m, plan.rows);
  plan.panels = CeilDiv(plan.shape.n, plan.columns());
  plan.tiles_per_block = std::min(schedule.tiles_per_block, plan.tiles);
  plan.panels_per_block = std::min(schedule.panels_per_block, plan.panels);
  if (plan.rhs != RhsForm::kBlocks) return;
  plan.tiles_per_block = plan.tiles;
  plan.slots = EvenGroups(plan.shape.batch * plan.column_blocks(), 4 * device.compute_units, device.compute_units);
}

// Of vectors along short rows, which would end in one of which a part is there.
int64_t LanesAlong(int64_t k, int64_t lanes) {
  while (lanes > kFewestLanesAlong && k < kShortRow * lanes && k % lanes != 0) lanes /= 2;
  return lanes;
}

ProductPlan PlanByRules(const ProductShape& shape, const DeviceSpec& device) {
  ProductPlan plan;
  plan.shape = shape;
  plan.inline_assembly = device.has_inline_assembly;
  plan.lanes = RegisterLanes(device, shape.compute_type);
  plan.dot_products =
      shape.rhs_transposed && shape.m <= kDotProductRows && !shape.lhs_transposed && !TakesKeptPanels(shape);
  if (shape.m == 1 && shape.rhs_transposed) plan.dot_products = true;
  if (plan.dot_products) {
    plan.rows = shape.m;
    plan.lanes = LanesAlong(shape.k, plan.lanes);
    const int64_t sums = std::clamp<int64_t>((VectorRegisters(device) - 8) / shape.m, 1, 4);
    const int64_t row_bytes = shape.k * hlo::BytesOf(shape.rhs_type);
    const bool one_by_one =
        shape.m <= kStrandRows && row_bytes < kPageBytes && shape.batch * shape.n * row_bytes > device.l2_bytes;
    plan.strands = one_by_one ? std::clamp<int64_t>(shape.k / plan.lanes, 1, sums) : 1;
    plan.vectors = one_by_one ? 1 : CeilDiv(shape.n, CeilDiv(shape.n, sums));
    plan.panels = CeilDiv(shape.n, plan.vectors);
    plan.panels_per_block = std::max<int64_t>(1, plan.panels * shape.batch / (16 * device.compute_units));
    return plan;
  }
  if (TakeStreams(plan, device)) return plan;
  TakeWords(plan, device);
  plan.lhs_is_far = plan.shape.m * plan.shape.k * hlo::BytesOf(plan.shape.compute_type) > kFarCaches * device.l2_bytes;
  plan.result_is_far = shape.batch * shape.m * shape.n * hlo::BytesOf(shape.compute_type) > device.l2_bytes;
  ChooseTile(plan, device);
  plan.tiles = CeilDiv(shape.m, plan.rows);
  plan.panels = CeilDiv(shape.n, plan.columns());
  if (IsLowOverCrowdedRows(plan, device)) plan.section = kCrowdedDepth;
  ChooseForms(plan, device);
  ChooseParts(plan, device);
  ChooseBlocks(plan, device);
  ChooseOwnBlocks(plan, device);
  plan.rhs_stays = plan.rhs == RhsForm::kInPlace && plan.tiles_per_block > 1 &&
                   shape.k * shape.n * hlo::BytesOf(shape.rhs_type) <= device.l2_bytes / 2;
  plan.mirrors = MayMirror(plan) && plan.columns() % plan.rows == 0 && !plan.CombinesParts();
  return plan;
}

}  // namespace

std::optional<hlo::ElementType> SumType(hlo::ElementType lhs, hlo::ElementType rhs, hlo::ElementType result) {
  if (!HasKernel(lhs) || !HasKernel(rhs) || !HasKernel(result)) return std::nullopt;
  return result == hlo::ElementType::kF16 || result == hlo::ElementType::kBF16 ? hlo::ElementType::kF32 : result;
}

std::optional<ProductShape> ProductShapeOf(const hlo::Instruction& dot) {
  const auto& attributes = dot.As<hlo::attr::Dot>();
  const hlo::Shape &lhs = dot.operand(0)->shape(), &rhs = dot.operand(1)->shape(), &result = dot.shape();
  const auto batch = static_cast<int64_t>(attributes.lhs_batch.size());
  const bool canonical = batch <= 1 && lhs.rank() == 2 + batch && rhs.rank() == 2 + batch &&
                         result.rank() == 2 + batch && attributes.lhs_contracting.size() == 1 &&
                         attributes.rhs_contracting.size() == 1 && attributes.lhs_ragged.empty() &&
                         attributes.rhs_group.empty() &&
                         (batch == 0 || (attributes.lhs_batch[0] == 0 && attributes.rhs_batch[0] == 0));
  if (!canonical || !lhs.IsStatic() || !rhs.IsStatic()) return std::nullopt;
  ProductShape shape;
  shape.batch = batch == 1 ? result.dimension(0) : 1;
  shape.m = result.dimension(batch);
  shape.n = result.dimension(batch + 1);
  shape.lhs_transposed = attributes.lhs_contracting[0] == batch;
  shape.rhs_transposed = attributes.rhs_contracting[0] == batch + 1;
  shape.k = lhs.dimension(attributes.lhs_contracting[0]);
  shape.lhs_type = lhs.element_type();
  shape.rhs_type = rhs.element_type();
  const std::optional<hlo::ElementType> sums = SumType(shape.lhs_type, shape.rhs_type, result.element_type());
  if (!sums) return std::nullopt;
  shape.compute_type = *sums;
  shape.is_symmetric = dot.operand(0) == dot.operand(1) && attributes.lhs_contracting == attributes.rhs_contracting;
  shape.multiplies_as_typed = attributes.algorithm == "dot_f32_f32_f32";
  if (shape.batch * shape.m * shape.n * shape.k == 0) return std::nullopt;
  return shape.n == 1 && shape.m > 1 ? Exchanged(shape) : shape;
}

ProductShape WithLessToPack(const ProductShape& shape, const DeviceSpec& device) {
  if (shape.swapped || shape.rhs_is_kept || !shape.rhs_transposed || shape.m <= kDotProductRows) return shape;
  // Of lhs [k][m] and rhs [n][k] both are copied as they are; exchanged, rhs alone.
  const int64_t spared = shape.lhs_transposed ? shape.k * shape.n : shape.k * (shape.n - shape.m);
  if (spared < kTurnedStore * shape.m * shape.n + WastedByExchange(shape, device)) return shape;
  if (RegisterLanes(device, shape.compute_type) < 2) return shape;  // no squares to transpose
  const ProductShape exchanged = Exchanged(shape);
  return exchanged.lhs_type == exchanged.compute_type || WordsFor(exchanged, device) ? exchanged : shape;
}

bool ProductPlan::SendsForBlocks() const { return rhs == RhsForm::kBlocks && tiles >= kFewestTilesThatSend; }

int64_t ProductPlan::part_k() const { return CeilDiv(shape.k, k_parts); }

bool ProductPlan::ColumnsOutermost() const {
  // In place, the rows of the next block of columns are read ahead.
  if (rhs != RhsForm::kPanels) return false;
  const int64_t lhs_again = shape.m * (column_blocks() - 1), rhs_again = shape.n * (row_blocks() - 1);
  return lhs_again < rhs_again;
}

int64_t ProductPlan::lhs_stride() const {
  return lhs == LhsForm::kSpread ? shape.k + kLineBytes / hlo::BytesOf(shape.compute_type) : shape.k;
}

int64_t ProductPlan::LhsBytes() const {
  const int64_t element = hlo::BytesOf(shape.compute_type);
  if (lhs == LhsForm::kConverted || lhs == LhsForm::kSpread)
    return AlignScratch(shape.batch * shape.m * lhs_stride() * element);
  if (lhs == LhsForm::kPanels) return AlignScratch(shape.batch * tiles * shape.k * rows * element);
  return 0;
}

int64_t ProductPlan::RhsBytes() const {
  if (rhs == RhsForm::kInPlace) return 0;
  const int64_t copied = rhs == RhsForm::kBlocks ? slots * panels_per_block : shape.batch * panels;
  const int64_t depth = rhs == RhsForm::kBlocks ? block_k() : shape.k;
  return AlignScratch(copied * depth * columns() * hlo::BytesOf(shape.compute_type));
}

int64_t ProductPlan::PartialBytes() const {
  if (!UsesPartialSums()) return 0;
  return AlignScratch(k_parts * shape.batch * shape.m * shape.n * hlo::BytesOf(shape.compute_type));
}

int64_t ProductPlan::RowStartBytes() const {
  return HasRowStarts() ? AlignScratch(shape.batch * shape.m * hlo::BytesOf(shape.compute_type)) : 0;
}

ProductPlan PlanProduct(const ProductShape& shape, const DeviceSpec& device, const PanelSchedule* schedule) {
  ProductPlan plan = PlanByRules(shape, device);
  if (shape.is_symmetric && !plan.mirrors) {
    ProductShape whole = shape;
    whole.is_symmetric = false;
    plan = PlanByRules(whole, device);
  }
  // Schedules are measured of two matrices, of which nothing is mirrored.
  if (schedule != nullptr && !plan.mirrors && !plan.IsByRows()) Apply(*schedule, device, plan);
  return plan;
}

}  // namespace hlorun::opencl
