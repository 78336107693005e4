// How a matrix product is cut into tiles, blocks and launches on a CPU-class device. A value: computed from the shapes
// and the DeviceSpec alone, so that scratch is known before code is emitted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backends/opencl/kernels/section_sums.h"
#include "backends/opencl/kernels/word_form.h"
#include "hlo/device_spec.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

// result[b][i][j] = sum over p of lhs[b][i][p] * rhs[b][p][j].
struct ProductShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool lhs_transposed = false;  // lhs is stored [batch][k][m]
  bool rhs_transposed = false;  // rhs is stored [batch][n][k]
  hlo::ElementType lhs_type = hlo::ElementType::kF32, rhs_type = hlo::ElementType::kF32;
  hlo::ElementType compute_type = hlo::ElementType::kF32;  // of products and sums
  // The roles of lhs and rhs are exchanged (result transposed): result element (i, j) is then at j * m + i of each
  // batch's part. Because n is 1, or see WithLessToPack.
  bool swapped = false;
  bool depth_may_be_less = false;    // k is a bound: how much of it is there, the kernel reads
  bool ends_at_sizes = false;        // some dimension is a bound, or the result is wanted in part
  bool multiplies_as_typed = false;  // by multiplications of compute_type itself (bf16_parts.h; or asked for)
  bool rhs_is_kept = false;          // a copy of rhs, of which all is there, serves many products (constant_operand.h)
  bool is_symmetric = false;         // rhs is lhs, both contracted along the same dimension: a matrix by its transpose
  int64_t lhs_run = 0;  // of a lhs that is gathered: so many of k lie side by side, a pixel's channels; 0: a matrix
};

// The type in which products and sums of these types are computed; nullopt when no kernel has them.
std::optional<hlo::ElementType> SumType(hlo::ElementType lhs, hlo::ElementType rhs, hlo::ElementType result);

// What `dot` computes, when it has the canonical form (rank 2, or 3 with the batch first) and a type that kernels have.
std::optional<ProductShape> ProductShapeOf(const hlo::Instruction& dot);

enum class LhsForm : uint8_t {
  kInPlace,
  kConverted,  // copied in its own order, as compute_type
  kSpread,     // the same, rows of whole pages a cache line further apart: lhs_stride() elements
  kPanels,     // copied to [batch][tile][k][tile rows]
};
enum class RhsForm : uint8_t {
  kInPlace,
  kPanels,  // copied to [batch][panel][k][tile columns], the last panel padded with zeros
  // Copied to panels by the work-group that multiplies them, a block at a time, into scratch of its own: its panels are
  // still in the caches when they are multiplied, and the next block is sent for meanwhile.
  kBlocks,
};

struct ProductPlan {
  // Where words are multiplied, k counts words and the operands are u32.
  ProductShape shape;
  WordForm words;
  bool inline_assembly = false;  // DeviceSpec::has_inline_assembly
  int64_t lanes = 16;
  int64_t rows = 12, vectors = 2;  // of the register tile; for dot products `vectors` is the columns of a tile
  // Each result element is a dot product of two rows, summed lane by lane: rhs [n][k] with few rows of lhs.
  bool dot_products = false;
  // Of a dot product: how many vectors along k are summed apart. Where rhs comes from memory in short rows one of them
  // is walked at a time, so that it is read as one run.
  int64_t strands = 1;
  // Few rows against rhs [k][n] from memory (streamed_product.h): a panel is what a work-group keeps sums of.
  bool streams = false;
  LhsForm lhs = LhsForm::kInPlace;
  RhsForm rhs = RhsForm::kInPlace;
  int64_t tiles = 1, panels = 1;                      // of the whole product
  int64_t tiles_per_block = 1, panels_per_block = 1;  // of a work-group
  // Sums over parts of k go through scratch and are combined by a launch of their own. Where the work-group of a part
  // walks it in blocks, its sums wait in scratch between them.
  int64_t k_parts = 1, k_block = 0;  // k_block 0: not in blocks
  // Steps of a section, where the depth of a part is summed by sections; k_block is then a multiple of it.
  int64_t section = kSectionSteps;
  bool lhs_is_far = false;     // it comes from beyond the caches each time that it is read
  bool result_is_far = false;  // where it is stored, and what it is finished with, is beyond the second cache
  bool rhs_stays = false;      // kInPlace: a work-group's tiles find it in the second cache, all but the first
  bool mirrors = false;        // tiles below the diagonal's are not multiplied: those above store them, too
  int64_t slots = 1;           // kBlocks: work-groups; each walks blocks of panels at this distance

  // Of copied operands.
  hlo::ElementType PackedType() const { return words ? hlo::ElementType::kU32 : shape.compute_type; }
  // Words of s8: rhs is copied as b + 128, and sums start with what takes the surplus back.
  bool HasRowStarts() const { return words.kind == WordKind::kS8Quads; }
  bool IsByRows() const { return dot_products || streams; }  // rhs is read in its own order, row by row
  bool CombinesParts() const { return k_parts > 1 || streams; }
  bool UsesPartialSums() const { return CombinesParts() || k_block > 0; }
  int64_t columns() const { return vectors * lanes; }
  int64_t lhs_stride() const;  // elements from one row of lhs [m][k] to the next, where it lies or is copied to
  int64_t row_blocks() const { return (tiles + tiles_per_block - 1) / tiles_per_block; }
  int64_t column_blocks() const { return (panels + panels_per_block - 1) / panels_per_block; }
  // Which operand stays in the caches from one work-group to the next: a block of rhs with all blocks of lhs, or the
  // other way round.
  bool ColumnsOutermost() const;
  // Whether tiles send for the block of panels that their unit copies next.
  bool SendsForBlocks() const;
  int64_t part_k() const;  // depth of a part, the last may be shorter
  bool GoesBySections() const { return opencl::GoesBySections(shape.compute_type, part_k()); }
  int64_t block_k() const { return k_block > 0 ? k_block : part_k(); }
  // Offsets into scratch, bytes.
  int64_t LhsBytes() const;
  int64_t RhsBytes() const;
  int64_t PartialBytes() const;
  int64_t RowStartBytes() const;
  int64_t RhsOffset() const { return LhsBytes(); }
  int64_t PartialOffset() const { return LhsBytes() + RhsBytes(); }
  int64_t RowStartOffset() const { return PartialOffset() + PartialBytes(); }
  int64_t ScratchBytes() const { return RowStartOffset() + RowStartBytes(); }
};

// With the roles exchanged where rhs [n][k] is larger than lhs [m][k]: one of them has to be copied into panels, the
// other is read as it lies; and where lhs is [k][m] and rhs [n][k]. Not where tiles of exchanged roles would multiply
// more in vain than that spares. For CPU-class kernels.
ProductShape WithLessToPack(const ProductShape& shape, const DeviceSpec& device);

struct PanelSchedule;
// By rules, and with the numbers of `schedule` where given.
ProductPlan PlanProduct(const ProductShape& shape, const DeviceSpec& device, const PanelSchedule* schedule = nullptr);

}  // namespace hlorun::opencl
