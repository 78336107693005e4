#include "backends/opencl/kernels/dot_products.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/product_extents.h"
#include "backends/opencl/kernels/product_result.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

// Columns that are finished together.
constexpr int64_t kFinishedColumns = 64;

class DotProducts {
 public:
  DotProducts(const ProductTask& task, const ProductPlan& plan)
      : task_(task),
        plan_(plan),
        shape_(plan.shape),
        columns_(plan.vectors),
        is_even_(plan.shape.n % plan.vectors == 0),
        sizes_(ProductSizesOf(task, plan.shape)),
        lhs_(parameters_.Add("lhs", shape_.lhs_type, shape_.batch * shape_.m * shape_.k, task.lhs)),
        rhs_(parameters_.Add("rhs", shape_.rhs_type, shape_.batch * shape_.n * shape_.k, task.rhs)),
        epilogue_(task.instruction, task.hero, task.aliases, parameters_) {
    for (int64_t s = 0; s < plan.strands; ++s) {
      strands_.emplace_back(s == 0 ? "sum" : fmt::format("sum{}", s), shape_.m, columns_,
                            ir::Type{shape_.compute_type, Lanes()});
    }
    // Runs along the columns must be runs of the result.
    if (is_even_ && !StoresTurned(shape_))
      together_ = std::clamp<int64_t>(kFinishedColumns / columns_, 1, plan.panels_per_block);
    staging_ = MakeStaging("staging", shape_.compute_type, shape_.m * together_ * columns_);
  }

  KernelDraft Emit() {
    const int64_t blocks = CeilDiv(plan_.panels, plan_.panels_per_block);
    const ir::Var block = IndexVar("block", blocks);
    const Expr batch_end = ends_.End(sizes_.batch, "batch_end");
    const Expr panels_end = ends_.Pieces(sizes_.n, columns_, "columns_end");
    k_end_ = ends_.End(sizes_.k, "depth_end");
    const Expr share = sizes_.n.extent ? ir::Binary(ir::Op::kFloorDiv, panels_end + (blocks - 1), Index(blocks))
                                       : Index(plan_.panels_per_block);
    const Expr first_panel = ir::Ref(block) * share, end_panel = ir::Min(first_panel + share, panels_end);
    const Expr end_of_group = ir::Min(ir::Ref(group_) + together_, end_panel);
    const Expr nominal = ir::Ref(panel_) * columns_;
    std::vector<Stmt> body = {ir::Let(first_, is_even_ ? nominal : ir::Min(nominal, Index(shape_.n - columns_))),
                              Sums(), Stage()};
    Stmt finish;
    if (together_ > 1) {
      finish = FinishGroup((end_of_group - ir::Ref(group_)) * columns_);
    } else {
      // Columns that the panel before has stored are left alone.
      body.push_back(FinishEach(is_even_ ? Index(0) : nominal - ir::Ref(first_), Index(columns_)));
    }
    const Stmt panels = Loop(panel_, ir::Ref(group_), end_of_group, ir::Block(std::move(body)));
    const Stmt nest = ParallelNest({{batch_, batch_end}, {block, Index(blocks)}},
                                   Loop(group_, first_panel, end_panel, ir::Block({panels, finish}), together_));
    return MakeDraft("dot_products", parameters_, ends_.Before(ir::Block({ir::DeclareArray(staging_), nest})));
  }

 private:
  // Of all rows of lhs with the panel's of rhs, along all of k.
  Stmt Sums() const {
    std::vector<Stmt> statements;
    statements.reserve(strands_.size() + 3);
    for (const RegisterTile& sums : strands_) statements.push_back(sums.Declare());
    const Expr in_strands = WholeSteps(plan_.strands * Lanes()), in_vectors = WholeSteps(Lanes());
    statements.push_back(Steps(Index(0), in_strands, plan_.strands, false));
    if (plan_.strands > 1 && (sizes_.k.extent || shape_.k % (plan_.strands * Lanes()) >= Lanes()))
      statements.push_back(Steps(in_strands, in_vectors, 1, false));
    if (sizes_.k.extent || shape_.k % Lanes() != 0) statements.push_back(Steps(in_vectors, k_end_, 1, true));
    return ir::Block(std::move(statements));
  }

  Expr WholeSteps(int64_t elements) const {
    return sizes_.k.extent ? ir::Binary(ir::Op::kFloorDiv, k_end_, Index(elements)) * elements
                           : Index(shape_.k / elements * elements);
  }

  // By `count` vectors at a time. `careful`: the last one may reach beyond the rows' end.
  Stmt Steps(const Expr& begin, const Expr& end, int64_t count, bool careful) const {
    const ir::Var k = IndexVar("k", shape_.k);
    const Expr inside =
        careful ? ir::Compare(ir::Op::kLt, ir::Ramp(ir::Ref(k), Lanes()), ir::Splat(k_end_, Lanes())) : nullptr;
    std::vector<Stmt> body;
    for (int64_t s = 0; s < count; ++s) {
      const auto read = [&](const ir::BufferRef& buffer, const Expr& row) {
        const Expr at = ir::Ramp(row * shape_.k + ir::Ref(k) + s * Lanes(), Lanes());
        return ir::Cast(ir::Load(buffer, at, inside), shape_.compute_type);
      };
      body.push_back(strands_[static_cast<size_t>(s)].Step(
          [&](int64_t r) { return read(lhs_, ir::Ref(batch_) * shape_.m + r); },
          [&](int64_t c) { return read(rhs_, ir::Ref(batch_) * shape_.n + ir::Ref(first_) + c); }));
    }
    return ir::For(ir::LoopRole::kSerial, k, begin, end, ir::Block(std::move(body)), count * Lanes());
  }

  Stmt Stage() const {
    const Expr place = (ir::Ref(panel_) - ir::Ref(group_)) * columns_;
    std::vector<Stmt> stores;
    for (int64_t r = 0; r < shape_.m; ++r) {
      for (int64_t c = 0; c < columns_; ++c) {
        Expr sum = strands_[0].At(r, c);
        for (size_t s = 1; s < strands_.size(); ++s) sum = sum + strands_[s].At(r, c);
        stores.push_back(
            ir::Store(staging_, place + (r * together_ * columns_ + c), ir::ReduceLanes(ir::Op::kAdd, sum)));
      }
    }
    return ir::Block(std::move(stores));
  }

  // A whole group's columns as vectors, the last panels of a block one by one.
  Stmt FinishGroup(const Expr& count) const {
    const int64_t all = together_ * columns_;
    const Stmt finish =
        ir::If(ir::Compare(ir::Op::kEq, count, Index(all)),
               Loop(row_, Index(0), Index(shape_.m), Finish(Index(0), all)), FinishEach(Index(0), count));
    return ir::Block({ir::Let(first_, ir::Ref(group_) * columns_), finish});
  }

  Stmt FinishEach(const Expr& begin, const Expr& end) const {
    const ir::Var column = IndexVar("column", together_ * columns_);
    return Loop(row_, Index(0), Index(shape_.m), Loop(column, begin, end, Finish(ir::Ref(column), 1)));
  }

  // `count` of the row's staged columns, `from` behind the first.
  Stmt Finish(const Expr& from, int64_t count) const {
    const RunIndex at = ResultIndex(task_, shape_, ir::Ref(batch_), ir::Ref(row_), ir::Ref(first_) + from);
    const Expr staged = ir::Ref(row_) * (together_ * columns_) + from;
    return epilogue_.StoreRun(at, count, count > 1 ? plan_.lanes : 1,
                              [&](const Expr& i) { return ir::Load(staging_, staged + i); });
  }

  int Lanes() const { return static_cast<int>(plan_.lanes); }

  const ProductTask& task_;
  const ProductPlan& plan_;
  const ProductShape& shape_;
  const int64_t columns_;  // of a panel
  const bool is_even_;     // all panels are whole
  const ProductSizes sizes_;
  KernelParameters parameters_;
  ir::BufferRef lhs_, rhs_, staging_;
  Epilogue epilogue_;
  std::vector<RegisterTile> strands_;
  int64_t together_ = 1;  // panels of a group, which are finished together
  LoopEnds ends_{parameters_};
  Expr k_end_;
  const ir::Var batch_ = IndexVar("batch", shape_.batch), group_ = IndexVar("group", plan_.panels),
                panel_ = IndexVar("panel", plan_.panels), first_ = IndexVar("first_column", shape_.n),
                row_ = IndexVar("row", shape_.m);
};

}  // namespace

KernelDraft DotProductKernel(const ProductTask& task, const ProductPlan& plan) {
  return DotProducts(task, plan).Emit();
}

}  // namespace hlorun::opencl
