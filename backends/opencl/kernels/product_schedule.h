// How a matrix product runs, as numbers with names: what rules choose for any device, and a tuner by measuring on one
// (docs/autotuning.md). Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "backends/opencl/clblast_numbers.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/product_plan.h"
#include "hlo/device_spec.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

// Of sums of k products that are cut into parts of whole blocks: how many each part has (the last may have fewer).
constexpr int64_t PartDepthOf(int64_t k, int64_t parts, int64_t block) {
  return CeilDiv(CeilDiv(k, parts), block) * block;
}

// GPU class: a work-group's tile in local memory (tiled_product.h).
struct TiledSchedule {
  int64_t items = 128;                      // work-items of a group
  int64_t items_across = 16;                // of them side by side
  int64_t item_rows = 8, item_columns = 4;  // sums of a work-item
  int64_t depth = 16;                       // of a block of both operands
  int64_t buffers = 1;                      // 2: a block is stored while others still multiply the one before
  // Work-groups that share a tile's sums, each for a part of k: the parts are added by a launch of their own.
  int64_t k_parts = 1;
  bool operator==(const TiledSchedule&) const = default;

  int64_t rows() const { return items / items_across * item_rows; }
  int64_t columns() const { return items_across * item_columns; }
  // Neighbouring rows (columns) of the tile that are one work-item's: what a vector of local memory holds.
  int64_t RowsTogether(hlo::ElementType compute_type) const;
  int64_t ColumnsTogether(hlo::ElementType compute_type) const;
  int64_t PartDepth(int64_t k) const { return PartDepthOf(k, k_parts, depth); }
  int64_t Parts(int64_t k) const { return CeilDiv(k, PartDepth(k)); }
};

// GPU class, where the device multiplies by matrix instructions (fragment_product.h): sub-groups of 32 work-items side
// by side and one above the other, each with squares of 16 x 16 sums.
struct FragmentSchedule {
  int64_t groups_down = 2, groups_across = 2;
  int64_t square_rows = 4, square_columns = 4;
  int64_t depth = 32;  // of a block of both operands
  int64_t buffers = 1;
  int64_t k_parts = 1;
  // 1: blocks are copied while others are multiplied, one less at a time than there are buffers (block_copy.h), where
  // the operands' runs allow that. With one buffer others' are: of the work-groups that a unit has at once.
  int64_t asynchronous = 0;
  // 1: four sub-groups, one above the other, multiply together (wide_fragments.h): 64 rows and all columns of the tile.
  int64_t wide = 0;
  bool operator==(const FragmentSchedule&) const = default;

  static constexpr int64_t kSquare = 16, kItemsOfGroup = 32;
  // Of k, what a matrix instruction multiplies of this type.
  static int64_t StepOf(hlo::ElementType type) { return 32 / hlo::BytesOf(type); }
  // The same bytes of a block, of this type instead of a 16-bit one.
  FragmentSchedule For(hlo::ElementType type) const {
    FragmentSchedule schedule = *this;
    schedule.depth = depth * 2 / hlo::BytesOf(type);
    return schedule;
  }
  int64_t items() const { return groups_down * groups_across * kItemsOfGroup; }
  int64_t rows() const { return groups_down * square_rows * kSquare; }
  int64_t columns() const { return groups_across * square_columns * kSquare; }
  int64_t PartDepth(int64_t k) const { return PartDepthOf(k, k_parts, depth); }
  int64_t Parts(int64_t k) const { return CeilDiv(k, PartDepth(k)); }
};

// CPU class: register tiles and blocks (product_plan.h) of the product in the roles that WithLessToPack gives it. Which
// operands are copied, and into how many parts a sum is cut, stays as the rules say.
struct PanelSchedule {
  int64_t rows = 12, vectors = 2;  // of the register tile
  int64_t tiles_per_block = 1, panels_per_block = 1;
  bool operator==(const PanelSchedule&) const = default;
};

// GPU class: CLBlast, with the numbers that it comes with for the device, or with those that its tuner found.
struct LibrarySchedule {
  ClblastNumbers numbers{};
  bool operator==(const LibrarySchedule&) const = default;
};

using ProductSchedule = std::variant<TiledSchedule, PanelSchedule, LibrarySchedule, FragmentSchedule>;

// Calls visit(name, number, least, most) for each number of a schedule.
template <typename Visit>
void ForEachNumber(ProductSchedule& schedule, Visit&& visit) {
  constexpr int64_t kMost = 1 << 20;
  if (auto* tiled = std::get_if<TiledSchedule>(&schedule)) {
    visit("items", tiled->items, 1, 1024);
    visit("items_across", tiled->items_across, 1, 1024);
    visit("item_rows", tiled->item_rows, 1, 32);
    visit("item_columns", tiled->item_columns, 1, 32);
    visit("depth", tiled->depth, 1, 128);
    visit("buffers", tiled->buffers, 1, 2);
    visit("k_parts", tiled->k_parts, 1, 64);
  } else if (auto* panels = std::get_if<PanelSchedule>(&schedule)) {
    visit("rows", panels->rows, 1, 32);
    visit("vectors", panels->vectors, 1, 32);
    visit("tiles_per_block", panels->tiles_per_block, 1, kMost);
    visit("panels_per_block", panels->panels_per_block, 1, kMost);
  } else if (auto* fragments = std::get_if<FragmentSchedule>(&schedule)) {
    visit("groups_down", fragments->groups_down, 1, 8);
    visit("groups_across", fragments->groups_across, 1, 8);
    visit("square_rows", fragments->square_rows, 1, 8);
    visit("square_columns", fragments->square_columns, 1, 16);
    visit("depth", fragments->depth, 16, 128);
    visit("buffers", fragments->buffers, 1, 4);
    visit("k_parts", fragments->k_parts, 1, 64);
    visit("asynchronous", fragments->asynchronous, 0, 1);
    visit("wide", fragments->wide, 0, 1);
  } else if (auto* library = std::get_if<LibrarySchedule>(&schedule)) {
    for (size_t i = 0; i < library->numbers.size(); ++i) visit(kClblastNumbers[i].name, library->numbers[i], 0, 1024);
  }
}

const char* KindOf(const ProductSchedule& schedule);                     // "tiled", "panels", "clblast", "fragments"
std::optional<ProductSchedule> ScheduleOfKind(const std::string& kind);  // with any numbers
std::string ToString(const ProductSchedule& schedule);                   // "tiled items=128 items_across=16 ..."

// Whether two schedules add each of a product's sums of k terms in the same order, so that either makes the same bits.
bool AddInTheSameOrder(const ProductSchedule& a, const ProductSchedule& b, int64_t k);

// What is chosen for: all that a product's kernel depends on but its epilogue. Exchanged operands
// (ProductShape::swapped) make no difference here, and shapes with sizes that vary are no problems: the rules plan
// those.
struct ProductProblem {
  ProductShape shape;
  hlo::ElementType result_type = hlo::ElementType::kF32;
  // The product is one of pixels and weights (tiled_tasks.h; on CPU class those of 1 x 1 windows).
  std::optional<ConvolutionShape> convolution = std::nullopt;

  double flops() const;
  std::string ToString() const;  // "f32[2,512,64] x f32[2,64,512] transposed -> f32": equal text, equal problem
};
std::optional<ProductProblem> ProductProblemOf(const hlo::Instruction& dot);
ProductProblem ConvolutionProblem(const ConvolutionShape& shape, hlo::ElementType result_type);

// What the rules choose.
ProductSchedule ScheduleByRule(const ProductProblem& problem, const DeviceSpec& device);
// The same of GPU class. `may_have_parts`: sums may be cut into parts (not those of products whose sizes vary).
ProductSchedule GpuScheduleByRule(const ProductShape& shape, bool may_have_parts, const DeviceSpec& device);
// Into how many parts a schedule of GPU class cuts sums of k products.
int64_t PartsOfSums(const ProductSchedule& schedule, int64_t k);

// Why `schedule` cannot run `problem` on `device`: "items=256: the device's work-groups have 128 at most". Empty when
// it can.
std::string WhyNot(const ProductSchedule& schedule, const ProductProblem& problem, const DeviceSpec& device);

}  // namespace hlorun::opencl
