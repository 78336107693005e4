// How a matrix product is cut for the CPU's matrix unit (codegen/matrix_unit.h). A value: computed from the shapes and
// the DeviceSpec alone.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/product_plan.h"

namespace hlorun::opencl {

// Operands are copied into tiles, the last ones of rows, columns and depth padded with zeros, so that products are
// one variant of code: [batch][block of 32 rows or columns][step][part][2][tile]. Rows of lhs that need no padding are
// read as they lie; rows that are windows of a convolution are copied by the work-group that multiplies them, a block
// at a time; far columns of rhs, too, a group of them: [slot][block of the group][step]...
//
// Where a pixel's channels are whole steps and windows meet neighbouring pixels, the group copies what it meets of the
// input's lines instead, with zeros around them, and a tile is 16 pixels as they lie there, at one tap. So that taps
// are as far apart for all of them, outputs are counted by such lines, too, which are as long as the input's: those
// behind the end of the result's rows are multiplied and not stored.
//
// An element of f32 is the sum of three bf16: what rounding leaves is exact, and has eight bits less each time. Six of
// the nine products of parts are summed; the other three are each below 2^-25 of the product (XLA's name for it:
// BF16_BF16_F32_X6). Sums of infinite operands are mended (matrix_unit_helpers.h). Parts of numbers below 2^-103 may be
// denormal, which the unit takes for zeros; sums within 0.8 % of the largest number may be infinite, since first parts
// are rounded up too.
struct MatrixUnitPlan {
  static constexpr int64_t kSide = 16, kBlock = 2 * kSide;       // rows of a tile; of a block, or its columns
  static constexpr int64_t kStepBytes = 64;                      // of depth: a tile's row
  static constexpr int64_t kTileWords = kSide * kStepBytes / 4;  // of 32 bits
  static constexpr int64_t kPartWords = 2 * kTileWords;          // of a step of a block
  static constexpr int64_t kSumsOfBlock = kBlock * kBlock;
  static constexpr int64_t kPartsOfF32 = 3;
  static constexpr int64_t kStepsOfBlock = 8;

  ProductShape shape;
  bool inline_assembly = false;                          // DeviceSpec::has_inline_assembly
  bool rounds_pairs = false;                             // the CPU's own way to bf16 is at hand
  int64_t parts = 1;                                     // of bf16 that an element is cut into
  int64_t row_blocks = 1, column_blocks = 1, steps = 1;  // of the whole product
  int64_t rows_per_group = 1, columns_per_group = 1;     // blocks of a work-group
  // Depth that a work-group multiplies with all of its rows and columns before the next: so much of its rhs stays in
  // the second cache.
  int64_t steps_per_section = 1;

  // Work-groups that copy the columns of rhs that they multiply with all rows, a group of columns at a time, where rhs
  // comes from memory: its copy stays in the caches. 0: a launch before copies all of rhs.
  int64_t slots = 0;

  bool lhs_in_place = false;
  // Of a matrix by its own transpose: blocks below the diagonal are not multiplied, those above store them, too.
  bool mirrors = false;
  bool has_windows = false;  // lhs has rows that are windows of a convolution
  ConvolutionShape windows;  // of that one
  bool by_lines = false;     // ... where tiles lie in lines of the input
  int64_t tap_rows = 1;      // rows of the window whose products are summed at once, by lines
  int64_t panels = 1;        // work-groups by lines: each has a copy, and takes groups in turns

  bool PacksLhs() const { return !lhs_in_place && !has_windows; }
  bool CopiesColumns() const { return slots > 0; }
  // By lines: pixels of a line, blocks and groups of an image; pixels of the input's lines, and bytes, that a group
  // copies.
  int64_t LinePixels() const { return windows.columns.Reach(windows.columns.out); }
  int64_t BlocksOfImage() const;
  int64_t GroupsOfImage() const;
  int64_t CopiedPixels() const;
  int64_t PanelBytes() const { return CopiedPixels() * PixelBytes(); }
  int64_t PixelBytes() const { return windows.channels * hlo::BytesOf(windows.input_type); }
  int64_t StepsOfTap() const { return PixelBytes() / kStepBytes; }
  int64_t RowGroups() const;
  int64_t ColumnGroups() const;
  // From one row of windows to the next, bytes: not at the same sets of the first cache.
  int64_t WindowPitch() const { return steps * kStepBytes + (steps % BlockSteps() == 0 ? kStepBytes : 0); }
  int64_t StepWords() const { return parts * kPartWords; }  // of a block, 32 bits each
  // Depth of a block, in steps: what lhs then needs of the first cache leaves room for rhs, which passes by. Parts are
  // multiplied often enough for both to pass by.
  int64_t BlockSteps() const {
    if (by_lines) return tap_rows * windows.columns.window * StepsOfTap();
    return parts == 1 ? kStepsOfBlock : steps_per_section;
  }
  int64_t ElementsOfWord() const;
  int64_t ElementsOfStep() const { return kSide * ElementsOfWord(); }
  bool SumsInParts() const { return steps > BlockSteps(); }  // sums wait in memory between blocks of depth
  bool HasSections() const { return steps_per_section < steps; }
  // Offsets into scratch, bytes.
  int64_t LhsBytes() const;
  int64_t RhsBytes() const;
  // Rhs first: it may be kept from run to run, and what is kept is written by whoever has the place next before
  // anything else of it is used (kept_work.h).
  int64_t LhsOffset() const { return RhsBytes(); }
  // Sums that wait for the next section: [batch][block of rows][block of columns][row][column].
  int64_t SumsOffset() const { return LhsOffset() + LhsBytes(); }
  int64_t SumsBytes() const;
  int64_t ScratchBytes() const { return LhsBytes() + RhsBytes() + SumsBytes(); }
};

// nullopt: the device has no such unit, or register tiles are worth more.
std::optional<MatrixUnitPlan> PlanMatrixUnit(const ProductShape& shape, const DeviceSpec& device);
// The same of a convolution's windows and weights.
std::optional<MatrixUnitPlan> PlanMatrixUnitOverWindows(const ConvolutionShape& shape, const DeviceSpec& device);

}  // namespace hlorun::opencl
