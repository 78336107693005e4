#include "backends/opencl/kernels/matrix_unit_product.h"

#include <algorithm>
#include <iterator>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/matrix_unit.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/matrix_unit_helpers.h"
#include "backends/opencl/kernels/matrix_unit_packing.h"
#include "backends/opencl/kernels/product_result.h"
#include "backends/opencl/kernels/window_rows.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Op;
using ir::Stmt;

constexpr int64_t kSide = MatrixUnitPlan::kSide, kBlock = MatrixUnitPlan::kBlock;
constexpr int kLanes = static_cast<int>(kSide);
constexpr int64_t kSums = MatrixUnitPlan::kSumsOfBlock;

class UnitMultiplication {
 public:
  UnitMultiplication(const ProductTask& task, const MatrixUnitPlan& plan)
      : task_(task), plan_(plan), shape_(plan.shape) {
    if (plan.has_windows) {
      const hlo::ElementType moved = WindowRows::MovedType(plan.windows);
      lhs_ = parameters_.Add("windows", moved, plan.LhsBytes() / hlo::BytesOf(moved),
                             ScratchSlice(plan.LhsOffset(), plan.LhsBytes(), true));
      windows_.emplace(plan.windows, task.lhs, lhs_, plan.WindowPitch(), parameters_);
    } else {
      lhs_ = LhsParameter();
    }
    rhs_ = parameters_.Add("rhs", hlo::ElementType::kU32, plan.RhsBytes() / 4,
                           ScratchSlice(0, plan.RhsBytes(), plan.CopiesColumns()));
    if (plan.CopiesColumns()) own_columns_.emplace(task, plan, rhs_, parameters_);
    epilogue_.emplace(task.instruction, task.hero, task.aliases, parameters_);
    if (plan.HasSections()) {
      sums_ = parameters_.Add("sums", shape_.compute_type, plan.SumsBytes() / 4,
                              ScratchSlice(plan.SumsOffset(), plan.SumsBytes(), true));
    } else {
      sums_ = MakeStaging("sums", shape_.compute_type, kSums * (plan.SumsInParts() ? plan.columns_per_group : 1));
    }
    first_sums_ = MakeStaging("first_sums", shape_.compute_type, kSums);
    turned_ = MakeStaging("turned", shape_.compute_type, kSums);
  }

  KernelDraft Emit() {
    const Stmt nest = plan_.CopiesColumns() ? OwnColumns() : plan_.by_lines ? Lines() : Groups();
    std::vector<Stmt> body;
    if (own_columns_) body.push_back(own_columns_->Declare());
    if (!plan_.HasSections()) body.push_back(ir::DeclareArray(sums_));
    if (plan_.parts > 1) body.push_back(ir::DeclareArray(first_sums_));
    if (plan_.mirrors) body.push_back(ir::DeclareArray(turned_));
    body.push_back(nest);
    std::vector<ir::Helper> helpers =
        UnitHelpers({kUnitBegin, kUnitEnd, kUnitZero, kUnitLoad, kUnitStore, StepsFunction()});
    const auto add = [&](std::vector<ir::Helper> more) {
      std::move(more.begin(), more.end(), std::back_inserter(helpers));
    };
    if (plan_.parts > 1) add(UnitHelpers({kUnitFirstParts, kUnitHasNan, kUnitReplaceNan}));
    if (own_columns_) add(own_columns_->Helpers());
    if (plan_.mirrors) add(TurnHelpers(shape_.compute_type, plan_.inline_assembly));
    return MakeDraft("multiply_tiles", parameters_, ir::Block(std::move(body)), std::move(helpers));
  }

 private:
  ir::BufferRef LhsParameter() {
    if (plan_.lhs_in_place)
      return parameters_.Add("lhs", shape_.lhs_type, shape_.batch * shape_.m * shape_.k, task_.lhs);
    return parameters_.Add("lhs", hlo::ElementType::kU32, plan_.LhsBytes() / 4,
                           ScratchSlice(plan_.LhsOffset(), plan_.LhsBytes(), false));
  }

  const char* StepsFunction() const {
    if (plan_.parts > 1) return kUnitF32;
    return shape_.lhs_type == hlo::ElementType::kS8 ? kUnitS8 : kUnitBf16;
  }

  Stmt Groups() {
    const ir::Var batch = IndexVar("batch", shape_.batch);
    const ir::Var rows = IndexVar("row_group", plan_.RowGroups());
    const ir::Var columns = IndexVar("column_group", plan_.ColumnGroups());
    batch_ = ir::Ref(batch);
    const Stmt group = plan_.mirrors ? Group(FromBothEnds(ir::Ref(rows), plan_.RowGroups()),
                                             FromBothEnds(ir::Ref(columns), plan_.ColumnGroups()))
                                     : Group(ir::Ref(rows), ir::Ref(columns));
    const Stmt nest = ir::Block({CallUnit(kUnitBegin), group, CallUnit(kUnitEnd)});
    // Neighbours share columns: their rhs is then in the caches of all.
    return ParallelNest(
        {{batch, Index(shape_.batch)}, {columns, Index(plan_.ColumnGroups())}, {rows, Index(plan_.RowGroups())}}, nest);
  }

  // Groups of columns with all rows, each copied by the work-group that multiplies it.
  Stmt OwnColumns() {
    const int64_t groups = shape_.batch * plan_.ColumnGroups();
    const ir::Var slot = IndexVar("slot", plan_.slots), number = IndexVar("group", groups);
    const ir::Var batch = IndexVar("batch", shape_.batch), columns = IndexVar("column_group", plan_.ColumnGroups());
    batch_ = ir::Ref(batch);
    slot_ = ir::Ref(slot);
    const Stmt group = Group(Index(0), ir::Ref(columns));
    const Stmt walk =
        Loop(number, slot_, Index(groups),
             ir::Block({ir::Let(batch, Quotient(ir::Ref(number), plan_.ColumnGroups())),
                        ir::Let(columns, Remainder(ir::Ref(number), plan_.ColumnGroups())), CopyColumns(), group}),
             plan_.slots);
    return ParallelNest({{slot, Index(plan_.slots)}}, ir::Block({CallUnit(kUnitBegin), walk, CallUnit(kUnitEnd)}));
  }

  // Along what lies side by side.
  Stmt CopyColumns() {
    HLORUN_CHECK(own_columns_.has_value());
    const ir::Var column = IndexVar("copied_block", plan_.column_blocks), step = IndexVar("copied_step", plan_.steps);
    const Expr to = (OwnBlock(ir::Ref(column)) * plan_.steps + ir::Ref(step)) * plan_.StepWords();
    const Stmt copy = own_columns_->Step(batch_, ir::Ref(column), ir::Ref(step), to);
    const Expr end = EndOfRun(first_column_, plan_.columns_per_group, plan_.column_blocks);
    const auto for_columns = [&](const Stmt& body) { return Loop(column, first_column_, end, body); };
    const auto for_steps = [&](const Stmt& body) { return Loop(step, Index(0), Index(plan_.steps), body); };
    return shape_.rhs_transposed ? for_columns(for_steps(copy)) : for_steps(for_columns(copy));
  }
  // Which of its own blocks a column of blocks is.
  Expr OwnBlock(const Expr& column) const { return slot_ * plan_.columns_per_group + (column - first_column_); }

  // Blocks of rows, each with all columns of the group: a block of lhs stays in the first cache, the group's rhs in the
  // second, all of its depth or a section at a time.
  Stmt Group(const Expr& row_group, const Expr& column_group) {
    const ir::Var row = IndexVar("row_block", plan_.row_blocks), section = IndexVar("section", plan_.steps);
    row_ = ir::Ref(row);
    const Expr first_row = row_group * plan_.rows_per_group;
    const Expr end_row = EndOfRun(first_row, plan_.rows_per_group, plan_.row_blocks);
    first_column_ = column_group * plan_.columns_per_group;
    if (windows_) {
      panel_ = (row_group * plan_.ColumnGroups() + column_group) *
               (kBlock * plan_.WindowPitch() / hlo::BytesOf(lhs_->storage));
      const Stmt copy = windows_->Copy(row_ * kBlock, Inside(row_, shape_.m), panel_);
      const Stmt columns = Columns(Index(0), Index(plan_.steps));
      return ir::Block(
          {windows_->ClearTails(kBlock, panel_), Loop(row, first_row, end_row, ir::Block({copy, columns}))});
    }
    if (!plan_.HasSections()) return Loop(row, first_row, end_row, Columns(Index(0), Index(plan_.steps)));
    const Expr end = EndOfRun(ir::Ref(section), plan_.steps_per_section, plan_.steps);
    return Loop(section, Index(0), Index(plan_.steps), Loop(row, first_row, end_row, Columns(ir::Ref(section), end)),
                plan_.steps_per_section);
  }

  // Groups of blocks of one image, in turns: what is copied for the last one makes room for the next.
  Stmt Lines() {
    const ir::Var panel = IndexVar("panel", plan_.panels);
    const ir::Var number = IndexVar("number", plan_.RowGroups() * plan_.ColumnGroups());
    const ir::Var image = IndexVar("image", plan_.windows.batch), row = IndexVar("row_block", plan_.row_blocks);
    const ir::Var first = IndexVar("first_block", plan_.row_blocks);
    const ir::Var columns = IndexVar("column_group", plan_.ColumnGroups());
    HLORUN_CHECK(windows_.has_value());
    batch_ = Index(0);
    row_ = ir::Ref(row);
    image_ = ir::Ref(image);
    first_block_ = ir::Ref(first);
    first_column_ = ir::Ref(columns) * plan_.columns_per_group;
    panel_ = ir::Ref(panel) * (plan_.PanelBytes() / hlo::BytesOf(lhs_->storage));
    const Expr row_group = Remainder(ir::Ref(number), plan_.RowGroups());
    const Stmt group =
        ir::Block({ir::Let(columns, Quotient(ir::Ref(number), plan_.RowGroups())),
                   ir::Let(image, Quotient(row_group, plan_.GroupsOfImage())),
                   ir::Let(first, Remainder(row_group, plan_.GroupsOfImage()) * plan_.rows_per_group),
                   windows_->CopyLines(image_, first_block_ * kBlock, plan_.CopiedPixels(), panel_),
                   Loop(row, first_block_, EndOfRun(first_block_, plan_.rows_per_group, plan_.row_blocks),
                        Columns(Index(0), Index(plan_.steps)))});
    const Stmt walk =
        Loop(number, ir::Ref(panel), Index(plan_.RowGroups() * plan_.ColumnGroups()), group, plan_.panels);
    return ParallelNest({{panel, Index(plan_.panels)}}, ir::Block({CallUnit(kUnitBegin), walk, CallUnit(kUnitEnd)}));
  }

  // Steps `first` to `end` of a block of rows with all columns of the group.
  Stmt Columns(const Expr& first, const Expr& end) {
    const ir::Var column = IndexVar("column_block", plan_.column_blocks), depth = IndexVar("depth", plan_.steps);
    column_ = ir::Ref(column);
    const Expr last_column = EndOfRun(first_column_, plan_.columns_per_group, plan_.column_blocks);
    const Expr begin = plan_.mirrors ? ir::Max(first_column_, row_) : first_column_;
    if (!plan_.SumsInParts()) {
      return Loop(column, begin, last_column,
                  ir::Block({CallUnit(kUnitZero), Steps(first, Index(plan_.steps)), Save(Index(0)), Mend(Index(0)),
                             Finish(Index(0))}));
    }
    const Expr sums = plan_.HasSections() ? ((batch_ * plan_.row_blocks + row_) * plan_.column_blocks + column_) * kSums
                                          : (column_ - first_column_) * kSums;
    return Loop(depth, first, end, Loop(column, begin, last_column, PartOfBlock(ir::Ref(depth), end, sums)),
                plan_.BlockSteps());
  }

  // Some of the depth of a block, with what went before in memory.
  Stmt PartOfBlock(const Expr& depth, const Expr& end, const Expr& sums) {
    const int64_t steps = plan_.BlockSteps();
    const bool is_even = plan_.steps % steps == 0 && plan_.steps_per_section % steps == 0;
    const Expr count = is_even ? Index(steps) : ir::Min(Index(steps), end - depth);
    const Stmt begin =
        ir::If(ir::Compare(Op::kEq, depth, Index(0)), CallUnit(kUnitZero), CallUnit(kUnitLoad, {At(sums_, sums)}));
    const Stmt finish =
        ir::If(ir::Compare(Op::kGe, depth + steps, Index(plan_.steps)), ir::Block({Mend(sums), Finish(sums)}));
    return ir::Block({begin, Steps(depth, count), Save(sums), finish});
  }

  Stmt Mend(const Expr& sums) const {
    if (plan_.parts == 1) return nullptr;
    const LhsTiles lhs = PackedLhs(Index(0));
    return MendSums(At(sums_, sums), At(first_sums_, Index(0)),
                    CallUnit(kUnitFirstParts, {At(lhs_, lhs.first), Index(lhs.row), Index(lhs.step),
                                               At(rhs_, Rhs(Index(0))), Index(plan_.steps)}));
  }

  static Expr At(const ir::BufferRef& buffer, const Expr& index) { return ir::Address(buffer, index); }
  Stmt Save(const Expr& sums) const { return CallUnit(kUnitStore, {At(sums_, sums)}); }

  Expr Rhs(const Expr& first) const {
    const Expr block = plan_.CopiesColumns() ? OwnBlock(column_) : batch_ * plan_.column_blocks + column_;
    return (block * plan_.steps + first) * plan_.StepWords();
  }

  // Steps of a block from `first` on.
  Stmt Steps(const Expr& first, const Expr& count) const {
    if (plan_.by_lines) return StepsOfTaps(first, count);
    const Expr rhs = Rhs(first);
    const LhsTiles lhs = windows_ ? LhsOfWindows(first) : plan_.lhs_in_place ? LhsInPlace(first) : PackedLhs(first);
    // What comes after this block of lhs. All columns of the group together bring it; where mirrored ones are left out,
    // what is theirs stays behind.
    const int64_t lines = CeilDiv(lhs.lines_of_step, plan_.columns_per_group);
    const Expr ahead = lhs.next + (column_ - first_column_) * count * (lines * lhs.elements_of_line);
    return CallUnit(StepsFunction(), {At(lhs_, lhs.first), Index(lhs.row), Index(lhs.step), At(rhs_, rhs), count,
                                      At(lhs_, ahead), Index(lines)});
  }

  // Whole taps, one after another.
  Stmt StepsOfTaps(const Expr& first, const Expr& count) const {
    const ConvolutionShape& windows = plan_.windows;
    const int64_t steps = plan_.StepsOfTap(), pixels = plan_.LinePixels();
    const ir::Var tap = IndexVar("tap", plan_.steps / steps);
    const Expr pixel = (row_ - first_block_) * kBlock +
                       Quotient(ir::Ref(tap), windows.columns.window) * (windows.rows.dilation * pixels) +
                       Remainder(ir::Ref(tap), windows.columns.window) * windows.columns.dilation;
    const Expr lhs = At(lhs_, panel_ + pixel * (plan_.PixelBytes() / hlo::BytesOf(lhs_->storage)));
    const Stmt multiply = CallUnit(StepsFunction(), {lhs, Index(plan_.PixelBytes()), Index(MatrixUnitPlan::kStepBytes),
                                                     At(rhs_, Rhs(ir::Ref(tap) * steps)), Index(steps), lhs, Index(0)});
    return Loop(tap, Quotient(first, steps), Quotient(first + count, steps), multiply);
  }

  // Where a block's tiles of lhs are, in elements; distances in bytes.
  struct LhsTiles {
    Expr first, next;
    int64_t row, step, lines_of_step, elements_of_line;
  };
  int64_t LinesOfStep() const { return plan_.StepWords() * 4 / kLineBytes; }
  LhsTiles PackedLhs(const Expr& first) const {
    const Expr at = ((batch_ * plan_.row_blocks + row_) * plan_.steps + first) * plan_.StepWords();
    return {at,
            at + (plan_.parts > 1 ? plan_.steps : plan_.BlockSteps()) * plan_.StepWords(),
            MatrixUnitPlan::kStepBytes,
            plan_.StepWords() * 4,
            LinesOfStep(),
            kLineBytes / 4};
  }
  // The next block of rows lies behind this one; of rows that are not taken whole, nothing is read ahead.
  LhsTiles LhsInPlace(const Expr& first) const {
    const int64_t bytes = hlo::BytesOf(shape_.lhs_type);
    const Expr at = (batch_ * shape_.m + row_ * kBlock) * shape_.k + first * plan_.ElementsOfStep();
    return {at,
            at + kBlock * shape_.k,
            shape_.k * bytes,
            MatrixUnitPlan::kStepBytes,
            plan_.SumsInParts() ? 0 : LinesOfStep(),
            kLineBytes / bytes};
  }

  // The next block of rows takes the place of this one.
  LhsTiles LhsOfWindows(const Expr& first) const {
    const int64_t bytes = hlo::BytesOf(lhs_->storage);
    const Expr at = panel_ + first * (MatrixUnitPlan::kStepBytes / bytes);
    return {at, at, plan_.WindowPitch(), MatrixUnitPlan::kStepBytes, 0, kLineBytes / bytes};
  }

  // A block of sums, and the one opposite.
  Stmt Finish(const Expr& sums) const {
    Stmt straight = FinishStraight(sums);
    if (!plan_.mirrors) return straight;
    return ir::Block({straight, ir::If(row_ < column_, ir::Block({Turn(sums), FinishTurned()}))});
  }

  // A block within the result, or one that its end cuts.
  Stmt FinishStraight(const Expr& sums) const {
    const int64_t whole = shape_.n / kBlock, rest = shape_.n % kBlock;
    const auto finish = [&](int64_t columns) {
      const SumsOfBlock block = {sums_, sums, column_};
      return plan_.by_lines ? FinishLines(block, columns) : FinishRows(block, RowsOfBlock(row_, shape_.m), columns);
    };
    if (rest == 0) return finish(kBlock);
    if (whole == 0) return finish(rest);
    return ir::If(column_ < Index(whole), finish(kBlock), finish(rest));
  }

  Stmt Turn(const Expr& sums) const {
    const ir::Var low = IndexVar("turn_row", 2), left = IndexVar("turn_column", 2);
    const Expr row = ir::Ref(low) * kSide, column = ir::Ref(left) * kSide;
    const Stmt square =
        TurnSquare({sums_, sums + row * kBlock + column, kBlock}, {turned_, column * kBlock + row, kBlock});
    return Loop(low, Index(0), Index(2), Loop(left, Index(0), Index(2), square));
  }

  // Rows above the diagonal are not the last ones: all columns of what they are turned to are there.
  Stmt FinishTurned() const { return FinishRows({turned_, Index(0), row_}, RowsOfBlock(column_, shape_.n), kBlock); }

  // How much of a block of `extent` there is.
  static Expr Inside(const Expr& block, int64_t extent) {
    return extent % kBlock == 0 ? Index(kBlock) : ir::Min(Index(kBlock), Index(extent) - block * kBlock);
  }

  // Where 32 x 32 sums are, and the columns of the result that they are.
  struct SumsOfBlock {
    ir::BufferRef buffer;
    Expr first, column;
  };
  // Rows begin .. end of a block, and the row of the result that the block's first one is, or would be.
  struct StoredRows {
    Expr begin, end, first;
  };
  static StoredRows RowsOfBlock(const Expr& block, int64_t extent) {
    return {Index(0), Inside(block, extent), block * kBlock};
  }

  // What a block has of each line of the result.
  Stmt FinishLines(const SumsOfBlock& block, int64_t columns) const {
    HLORUN_CHECK(epilogue_.has_value() && !epilogue_->ReducesRows());  // which are those of whole blocks
    const int64_t height = plan_.windows.rows.out, width = plan_.windows.columns.out, pixels = plan_.LinePixels();
    const ir::Var y = IndexVar("y", height);
    const Expr first = row_ * kBlock, line = ir::Ref(y) * pixels - first;
    const StoredRows rows = {ir::Max(line, Index(0)), ir::Min(line + width, Index(kBlock)),
                             (image_ * height + ir::Ref(y)) * width - line};
    const Expr end = ir::Min(Quotient(first + (kBlock - 1), pixels) + 1, Index(height));
    return Loop(y, Quotient(first, pixels), end, FinishRows(block, rows, columns));
  }

  // `columns` of the block.
  Stmt FinishRows(const SumsOfBlock& block, const StoredRows& rows, int64_t columns) const {
    HLORUN_CHECK(epilogue_.has_value());
    const ir::Var row = IndexVar("row", kBlock);
    const Expr from = block.first + ir::Ref(row) * kBlock;
    const auto at = [&](const Expr& of_row) {
      return ResultIndex(task_, shape_, batch_, rows.first + of_row, block.column * kBlock);
    };
    if (epilogue_->IsPlain() && columns == kBlock) {
      const auto half = [&](int64_t c) { return ir::Load(block.buffer, ir::Ramp(from + c, kLanes)); };
      return Loop(row, rows.begin, rows.end,
                  epilogue_->StorePlain(at(ir::Ref(row)), half(0), half(kSide), plan_.rounds_pairs));
    }
    return epilogue_->StoreRows(row, rows.begin, rows.end, at, columns, kSide,
                                [&](const Expr& place) { return ir::Load(block.buffer, from + place); });
  }

  const ProductTask& task_;
  const MatrixUnitPlan& plan_;
  const ProductShape& shape_;
  KernelParameters parameters_;
  ir::BufferRef lhs_, rhs_, sums_, first_sums_, turned_;
  std::optional<Epilogue> epilogue_;
  std::optional<WindowRows> windows_;
  std::optional<ColumnCopy> own_columns_;
  Expr batch_, slot_, row_, column_, first_column_, panel_;
  Expr image_, first_block_;  // by lines: of the group
};

}  // namespace

std::vector<KernelDraft> MatrixUnitKernels(const ProductTask& task, const MatrixUnitPlan& plan) {
  std::vector<KernelDraft> kernels = PackTilesOfUnit(task, plan);
  kernels.push_back(UnitMultiplication(task, plan).Emit());
  return kernels;
}

}  // namespace hlorun::opencl
