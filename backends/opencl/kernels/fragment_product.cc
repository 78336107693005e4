#include "backends/opencl/kernels/fragment_product.h"

#include <algorithm>

#include "backends/opencl/codegen/asynchronous_copies.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/fragments.h"
#include "backends/opencl/codegen/wide_fragments.h"
#include "backends/opencl/kernels/block_copy.h"
#include "backends/opencl/kernels/fragment_operand.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/tile_sums.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using ir::Expr;
using ir::LoopRole;
using ir::Stmt;

constexpr int64_t kSquare = FragmentSchedule::kSquare, kItems = FragmentSchedule::kItemsOfGroup;
constexpr int64_t kAlignmentOfWide = 1024;  // of swizzled blocks
constexpr ir::Type kSquareBits{ElementType::kU32, 4};

// What differs between the types of operands.
struct Elements {
  ElementType sums;
  const char *sum_function, *plain_function;
  const char* number;  // an element's bits as a number; null: they are one
};
Elements ElementsOf(ElementType storage) {
  switch (storage) {
    case ElementType::kS8: return {ElementType::kS32, kFragmentS8, kFragmentPlainS32, nullptr};
    case ElementType::kBF16: return {ElementType::kF32, kFragmentBf16, kFragmentPlain, "hl_from_bf16"};
    default: return {ElementType::kF32, kFragmentF16, kFragmentPlain, "hl_from_f16"};
  }
}

class FragmentMultiplication {
 public:
  FragmentMultiplication(const TiledProduct& product, const FragmentSchedule& schedule, const DeviceSpec& device)
      : product_(product),
        schedule_(WithCopiesFor(product, schedule)),
        is_plain_(device.matrix_fragments == kPlainFragments),
        is_wide_(schedule_.wide != 0 && !is_plain_),
        elements_(ElementsOf(product.lhs.storage)),
        sums_type_{elements_.sums, 4},
        k_of_step_(FragmentSchedule::StepOf(product.lhs.storage)),
        lhs_("lhs", product.lhs, parameters_, schedule.rows(), product.m, schedule_, CopyFunctionOf(product.lhs)),
        rhs_("rhs", product.rhs, parameters_, schedule.columns(), product.n, schedule_, CopyFunctionOf(product.rhs)),
        result_(product, schedule.Parts(product.k), parameters_),
        run_(result_.RunOfColumns(2)),
        wide_(product.lhs.storage == ElementType::kBF16, schedule.columns(), {lhs_.HasKFastest(), schedule.depth},
              {rhs_.HasKFastest(), schedule.depth}) {
    for (int64_t r = 0; r < schedule.square_rows; ++r) {
      for (int64_t c = 0; c < 2 * schedule.square_columns; ++c)
        sums_.push_back(ir::MakeVar(fmt::format("sums_{}_{}", r, c), sums_type_));
    }
    staging_ = MakeStaging("staging", elements_.sums, static_cast<int64_t>(sums_.size()) * 4);
  }

  KernelDraft Emit() {
    const ir::Var batch = IndexVar("batch", product_.batch), part = IndexVar("part", Parts());
    const ir::Var row = IndexVar("row_tile", CeilDiv(product_.m, schedule_.rows()));
    const ir::Var column = IndexVar("column_tile", CeilDiv(product_.n, schedule_.columns()));
    batch_ = ir::Ref(batch);
    part_ = ir::Ref(part);
    first_row_ = ir::Ref(row) * schedule_.rows();
    first_column_ = ir::Ref(column) * schedule_.columns();
    std::vector<Stmt> body;
    body.reserve(sums_.size() + 4);
    if (is_wide_) {
      body.insert(body.end(), {ForItems(CallOf(wide_.Begin())), SumBlocks()});
      for (size_t i = 0; i < sums_.size(); ++i)
        body.push_back(ir::Let(sums_[i], ir::Call(sums_type_, WideFragments::Sums(static_cast<int64_t>(i)), {})));
      body.push_back(StoreTile());
    } else {
      for (const ir::Var& sums : sums_) body.push_back(ir::Let(sums, ir::Zero(sums_type_)));
      body.insert(body.end(), {lhs_.Declare(), rhs_.Declare(), SumBlocks(), StoreTile()});
    }
    Stmt nest = ir::Block(std::move(body));
    for (const ir::Var& var : {column, row, part, batch})
      nest = ir::For(LoopRole::kParallel, var, Index(0), Index(var->max + 1), nest);
    std::vector<Stmt> all;
    for (const FragmentOperand* operand : {&lhs_, &rhs_}) {
      if (is_wide_) operand->block()->alignment = kAlignmentOfWide;
      all.push_back(ir::DeclareArray(operand->block()));
    }
    if (!result_.IsPlain()) all.push_back(ir::DeclareArray(staging_));
    all.push_back(nest);
    KernelDraft draft = MakeDraft("fragment_product", parameters_, ir::Block(std::move(all)), Helpers());
    draft.function.group_items = schedule_.items();
    return draft;
  }

 private:
  // Copies need operands whose vectors lie in memory as in a block: else they go through registers, and one buffer.
  static FragmentSchedule WithCopiesFor(const TiledProduct& product, FragmentSchedule schedule) {
    if (schedule.asynchronous != 0 &&
        !(FragmentOperand::HasVectors(product.lhs) && FragmentOperand::HasVectors(product.rhs))) {
      schedule.asynchronous = schedule.wide = 0;
      schedule.buffers = 1;  // lines are further apart
    }
    return schedule;
  }

  const char* CopyFunctionOf(const TiledOperand& operand) const {
    if (schedule_.asynchronous == 0) return nullptr;
    if (is_plain_) return kCopyPlainly;
    constexpr int64_t kBytesOfLine = 128;
    const int64_t line = operand.k_is_fastest        ? schedule_.depth
                         : &operand == &product_.lhs ? schedule_.rows()
                                                     : schedule_.columns();
    return line * hlo::BytesOf(operand.storage) % kBytesOfLine == 0 ? kCopyLines : kCopyPartsOfLines;
  }

  int64_t Parts() const { return schedule_.Parts(product_.k); }
  const ir::Var& SumsAt(int64_t row, int64_t half) const {
    return sums_[static_cast<size_t>(row * 2 * schedule_.square_columns + half)];
  }

  Stmt ForItems(const std::function<Stmt(const Expr& item)>& body) const {
    const ir::Var item = IndexVar("item", schedule_.items());
    return ir::For(LoopRole::kVector, item, Index(0), Index(schedule_.items()), body(ir::Ref(item)));
  }

  Stmt ForItems(const Stmt& statement) const {
    return ForItems([&](const Expr&) { return statement; });
  }
  static Stmt CallOf(const std::string& function) { return ir::CallStatement(ir::Call(ir::kIndex32, function, {})); }

  Stmt SumBlocks() const {
    const auto multiply = [&](const Expr& k) {
      return ForItems([&](const Expr& item) {
        return is_wide_ ? MultiplyWide(item, k) : is_plain_ ? MultiplyPlainly(item, k) : MultiplyBlock(item, k);
      });
    };
    const BlockWalk walk{product_.k, schedule_.depth, schedule_.buffers, schedule_.PartDepth(product_.k), Parts()};
    if (schedule_.asynchronous != 0) return SumCopiedBlocks(walk, multiply);
    const auto store = [&](const Expr& k) {
      return ForItems([&](const Expr& item) { return ir::Block({lhs_.Store(item, k), rhs_.Store(item, k)}); });
    };
    return WalkBlocks(
        walk, part_, [&](const Expr& k) { return LoadBlocks(k); }, store, multiply);
  }

  Stmt SumCopiedBlocks(const BlockWalk& walk, const OfBlock& multiply) const {
    const auto wait = [&](int64_t rounds) {
      if (is_plain_) return Stmt();
      std::vector<Stmt> waits = {CallOf(WaitForCopies(static_cast<int>(rounds)))};
      if (is_wide_) waits.push_back(CallOf(WideFragments::Wait()));
      return ForItems(ir::Block(std::move(waits)));
    };
    const Stmt blocks =
        WalkBlocksAhead(walk, part_,
                        {[&](const Expr& k) { return LoadBlocks(k); },
                         [&] { return is_plain_ ? Stmt() : ForItems(CallOf(kCloseCopies)); }, wait, multiply});
    return is_wide_ ? ir::Block({blocks, ForItems(CallOf(WideFragments::Wait()))}) : blocks;
  }

  Stmt LoadBlocks(const Expr& k) const {
    return ForItems([&](const Expr& item) {
      return ir::Block(
          {lhs_.Load(item, batch_, first_row_, k, product_.k), rhs_.Load(item, batch_, first_column_, k, product_.k)});
    });
  }

  // Where a work-item's sub-group begins in the tile.
  Expr RowOfGroup(const Expr& item) const {
    return Quotient(item, kItems * schedule_.groups_across) * (schedule_.square_rows * kSquare);
  }
  Expr ColumnOfGroup(const Expr& item) const {
    return Remainder(Quotient(item, kItems), schedule_.groups_across) * (schedule_.square_columns * kSquare);
  }

  std::vector<ir::Helper> Helpers() const {
    std::vector<ir::Helper> helpers;
    if (!is_wide_) helpers = HelpersNamed(kFragmentFunctions, Functions());
    if (schedule_.asynchronous != 0) {
      std::vector<std::string_view> names = {CopyFunctionOf(product_.lhs), CopyFunctionOf(product_.rhs)};
      if (!is_plain_) names.emplace_back(kCloseCopies);
      const std::vector<ir::Helper> copies = HelpersNamed(kCopyFunctions, names);
      helpers.insert(helpers.end(), copies.begin(), copies.end());
      const auto rounds = static_cast<int>(std::max<int64_t>(0, schedule_.buffers - 2));
      if (!is_plain_) helpers.push_back({WaitForCopies(rounds), WaitForCopiesSource(rounds)});
    }
    if (!is_wide_) return helpers;
    for (auto& [name, source] : wide_.functions()) helpers.push_back({name, source});
    return helpers;
  }

  std::vector<std::string_view> Functions() const {
    std::vector<std::string_view> functions = {is_plain_ ? elements_.plain_function : elements_.sum_function};
    for (const FragmentOperand* operand : {&lhs_, &rhs_}) {
      if (!is_plain_) functions.emplace_back(LoadFunction(*operand));
      if (operand->IsTurned()) functions.emplace_back(kFragmentTurn);
    }
    return functions;
  }

  static const char* LoadFunction(const FragmentOperand& operand) {
    return operand.HasKFastest() ? kFragmentLoad : kFragmentLoadTurned;
  }

  // 16 of outer x 32 bytes of k: four squares, of lhs those of the first k first, of rhs those of the first columns.
  // Where the line begins that a work-item names.
  Expr LoadSquares(const FragmentOperand& operand, const Expr& item, const Expr& block_k, const Expr& outer,
                   const Expr& k, bool is_lhs) const {
    const Expr line = Remainder(item, 8), second = Remainder(Quotient(item, 8), 2),
               third = Quotient(Remainder(item, kItems), 16);
    const Expr of_outer = (is_lhs ? second : third) * 8, of_k = (is_lhs ? third : second) * (k_of_step_ / 2);
    const Expr at = operand.HasKFastest() ? operand.Place(block_k, outer + of_outer + line, k + of_k)
                                          : operand.Place(block_k, outer + of_outer, k + of_k + line);
    return ir::Call(kSquareBits, LoadFunction(operand), {ir::Address(operand.block(), at)});
  }

  Stmt MultiplyBlock(const Expr& item, const Expr& block_k) const {
    const ir::Var k = IndexVar("step", schedule_.depth);
    std::vector<Stmt> step;
    std::vector<Expr> rows, columns;
    const auto load = [&](const FragmentOperand& operand, const std::string& name, const Expr& outer, bool is_lhs) {
      const ir::Var squares = ir::MakeVar(name, kSquareBits);
      step.push_back(ir::Let(squares, LoadSquares(operand, item, block_k, outer, ir::Ref(k), is_lhs)));
      return ir::Ref(squares);
    };
    for (int64_t r = 0; r < schedule_.square_rows; ++r)
      rows.push_back(load(lhs_, fmt::format("rows_{}", r), RowOfGroup(item) + r * kSquare, true));
    for (int64_t c = 0; c < schedule_.square_columns; ++c)
      columns.push_back(load(rhs_, fmt::format("columns_{}", c), ColumnOfGroup(item) + c * kSquare, false));
    for (int64_t r = 0; r < schedule_.square_rows; ++r) {
      for (int64_t h = 0; h < 2 * schedule_.square_columns; ++h) {
        const Expr& squares = columns[static_cast<size_t>(h / 2)];
        const Expr upper = ir::Lane(squares, h % 2 * 2), lower = ir::Lane(squares, h % 2 * 2 + 1);
        const ir::Var& sums = SumsAt(r, h);
        step.push_back(ir::Assign(sums, ir::Call(sums_type_, elements_.sum_function,
                                                 {ir::Ref(sums), rows[static_cast<size_t>(r)], upper, lower})));
      }
    }
    return ir::Unrolled(
        ir::For(LoopRole::kSerial, k, Index(0), Index(schedule_.depth), ir::Block(std::move(step)), k_of_step_),
        static_cast<int>(schedule_.depth / k_of_step_));
  }

  // Four sub-groups, one above the other.
  Stmt MultiplyWide(const Expr& item, const Expr& block_k) const {
    constexpr int64_t kRowsOfWide = 4 * kSquare;
    const Expr row = Quotient(item, 4 * kItems) * kRowsOfWide;
    std::vector<Stmt> steps = {CallOf(WideFragments::Open())};
    for (int64_t k = 0; k < schedule_.depth; k += k_of_step_) {
      const auto at = [&](const FragmentOperand& operand, const Expr& outer) {
        return ir::Address(operand.block(), operand.PlaceInOrder(block_k, outer, Index(k)));
      };
      steps.push_back(ir::CallStatement(ir::Call(ir::kIndex32, wide_.Multiply(), {at(lhs_, row), at(rhs_, Index(0))})));
    }
    steps.push_back(CallOf(WideFragments::Close()));
    return ir::Block(std::move(steps));
  }

  // Within a square, the first of a work-item's rows, and of its columns in each half.
  static Expr RowInSquare(const Expr& item) { return Quotient(Remainder(item, kItems), 4); }
  static Expr ColumnInHalf(const Expr& item) { return Remainder(item, 4) * 2; }

  Stmt MultiplyPlainly(const Expr& item, const Expr& block_k) const {
    const ir::Var k = IndexVar("step", schedule_.depth);
    std::vector<Stmt> step;
    const auto value = [&](const FragmentOperand& operand, const Expr& outer) {
      const Expr bits = operand.Bits(block_k, outer, ir::Ref(k));
      const ir::Var number = ir::MakeVar(fmt::format("x{}", step.size()), {elements_.sums, 1});
      step.push_back(ir::Let(number, elements_.number != nullptr
                                         ? ir::Call(number->type, elements_.number, {bits})
                                         : ir::Cast(ir::BitCast(bits, ElementType::kS8), elements_.sums)));
      return ir::Ref(number);
    };
    std::vector<Expr> rows, columns;
    for (int64_t r = 0; r < 2 * schedule_.square_rows; ++r)
      rows.push_back(value(lhs_, RowOfGroup(item) + RowInSquare(item) + r * 8));
    for (int64_t c = 0; c < 4 * schedule_.square_columns; ++c)
      columns.push_back(value(rhs_, ColumnOfGroup(item) + ColumnInHalf(item) + (c / 2 * 8 + c % 2)));
    for (int64_t r = 0; r < schedule_.square_rows; ++r) {
      for (int64_t h = 0; h < 2 * schedule_.square_columns; ++h) {
        const auto row = static_cast<size_t>(2 * r), column = static_cast<size_t>(2 * h);
        const ir::Var& sums = SumsAt(r, h);
        step.push_back(ir::Assign(
            sums, ir::Call(sums_type_, elements_.plain_function,
                           {ir::Ref(sums), rows[row], rows[row + 1], columns[column], columns[column + 1]})));
      }
    }
    return ir::For(LoopRole::kSerial, k, Index(0), Index(schedule_.depth), ir::Block(std::move(step)));
  }

  // `row`, `column`: within the sub-group's part of the tile.
  Stmt StoreAt(const Expr& item, const Expr& row, const Expr& column, const std::string& name,
               const std::function<Stmt(const Expr& row, const Expr& column)>& store) const {
    const ir::Var at_row = ir::MakeVar("row" + name, ir::kIndex), at_column = ir::MakeVar("column" + name, ir::kIndex);
    at_column->factor = run_;
    const Expr inside = ir::And(ir::Ref(at_row) < Index(product_.m), ir::Ref(at_column) < Index(product_.n));
    return ir::Block({ir::Let(at_row, first_row_ + RowOfGroup(item) + RowInSquare(item) + row),
                      ir::Let(at_column, first_column_ + ColumnOfGroup(item) + ColumnInHalf(item) + column),
                      ir::If(inside, store(ir::Ref(at_row), ir::Ref(at_column)))});
  }

  Stmt StoreTile() const {
    return ForItems([&](const Expr& item) { return result_.IsPlain() ? StoreSums(item) : FinishSums(item); });
  }

  Stmt StoreSums(const Expr& item) const {
    std::vector<Stmt> stores;
    for (int64_t r = 0; r < 2 * schedule_.square_rows; ++r) {
      for (int64_t h = 0; h < 2 * schedule_.square_columns; ++h) {
        const Expr sums = ir::Ref(SumsAt(r / 2, h));
        for (int64_t c = 0; c < 2; c += run_) {
          const Expr values =
              run_ == 2 ? ir::Half(sums, r % 2 == 0 ? ir::kLowerHalf : ir::kUpperHalf) : ir::Lane(sums, r % 2 * 2 + c);
          stores.push_back(StoreAt(
              item, Index(r * 8), Index(h * 8 + c), fmt::format("_{}_{}_{}", r, h, c),
              [&](const Expr& row, const Expr& column) { return result_.Store(part_, batch_, row, column, values); }));
        }
      }
    }
    return ir::Block(std::move(stores));
  }

  // Where the epilogue is more than a store, sums pass through a private array, so that its code is there once.
  Stmt FinishSums(const Expr& item) const {
    const int64_t halves = 2 * schedule_.square_columns;
    std::vector<Stmt> body;
    for (size_t i = 0; i < sums_.size(); ++i)
      body.push_back(ir::Store(staging_, ir::Ramp(Index(static_cast<int64_t>(i) * 4), 4), ir::Ref(sums_[i])));
    const ir::Var r = IndexVar("r", 2 * schedule_.square_rows), h = IndexVar("h", halves), c = IndexVar("c", 2);
    c->factor = run_;
    const Expr first = (Quotient(ir::Ref(r), 2) * halves + ir::Ref(h)) * 4 + Remainder(ir::Ref(r), 2) * 2 + ir::Ref(c);
    Stmt finish =
        StoreAt(item, ir::Ref(r) * 8, ir::Ref(h) * 8 + ir::Ref(c), "_stored", [&](const Expr& row, const Expr& column) {
          return result_.epilogue().StoreRun(product_.result(batch_, row, column), run_, run_,
                                             [&](const Expr& place) { return ir::Load(staging_, first + place); });
        });
    finish = ir::For(LoopRole::kSerial, c, Index(0), Index(2), finish, run_);
    finish = ir::For(LoopRole::kSerial, h, Index(0), Index(halves), finish);
    body.push_back(ir::For(LoopRole::kSerial, r, Index(0), Index(r->max + 1), finish));
    return ir::Block(std::move(body));
  }

  const TiledProduct& product_;
  const FragmentSchedule schedule_;
  const bool is_plain_, is_wide_;
  const Elements elements_;
  const ir::Type sums_type_;
  const int64_t k_of_step_;  // of a matrix instruction
  KernelParameters parameters_;
  FragmentOperand lhs_, rhs_;
  SumResult result_;
  const int64_t run_;  // of columns that are stored together: both of a work-item, or one
  const WideFragments wide_;
  std::vector<ir::Var> sums_;  // of each row of squares, two halves of each square
  ir::BufferRef staging_;
  Expr batch_, part_, first_row_, first_column_;
};

}  // namespace

KernelDraft FragmentProductKernel(const TiledProduct& product, const FragmentSchedule& schedule,
                                  const DeviceSpec& device) {
  const TileExtents tile{schedule.rows(), schedule.columns(), schedule.k_parts * schedule.depth, schedule.k_parts};
  return WithNarrowIndices(FragmentMultiplication(product, schedule, device).Emit(), product, tile);
}

}  // namespace hlorun::opencl
