#include "backends/opencl/kernels/streamed_product.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

// What is multiplied between asking for a row of rhs and reading it: it comes from memory, and the hardware's
// prefetcher stops at each page.
constexpr int64_t kBytesAhead = 8192;
constexpr int64_t kMostRowsAtOnce = 8;

class Streams {
 public:
  Streams(const ProductTask& task, const ProductPlan& plan)
      : plan_(plan), shape_(plan.shape), sums_(MakeStaging("sums", shape_.compute_type, shape_.m * plan.columns())) {
    lhs_ = parameters_.Add("lhs", shape_.lhs_type, shape_.batch * shape_.m * shape_.k, task.lhs);
    rhs_ = parameters_.Add("rhs", shape_.rhs_type, shape_.batch * shape_.n * shape_.k, task.rhs);
    partial_ = parameters_.Add("partial", shape_.compute_type, plan.k_parts * shape_.batch * shape_.m * shape_.n,
                               ScratchSlice(plan.PartialOffset(), plan.PartialBytes(), true));
  }

  KernelDraft Emit() {
    const ir::Var batch = IndexVar("batch", shape_.batch), part = IndexVar("part", plan_.k_parts),
                  panel = IndexVar("panel", plan_.panels), k = IndexVar("k", shape_.k);
    batch_ = ir::Ref(batch);
    first_ = ir::Ref(panel) * plan_.columns();
    columns_ = shape_.n % plan_.columns() == 0 ? Index(plan_.columns())
                                               : ir::Min(Index(plan_.columns()), Index(shape_.n) - first_);
    const Expr begin = ir::Ref(part) * plan_.part_k();
    const Expr end =
        shape_.k % plan_.part_k() == 0 ? begin + plan_.part_k() : ir::Min(begin + plan_.part_k(), Index(shape_.k));
    const int64_t at_once = RowsAtOnce();
    std::vector<Stmt> body = {Zero()};
    const Expr whole = begin + Quotient(end - begin, at_once) * at_once;
    body.push_back(Loop(k, begin, whole, AddRows(ir::Ref(k), at_once), at_once));
    if (at_once > 1) body.push_back(Loop(k, whole, end, AddRows(ir::Ref(k), 1)));
    body.push_back(Store(ir::Ref(part)));
    const Stmt nest =
        ParallelNest({{batch, Index(shape_.batch)}, {part, Index(plan_.k_parts)}, {panel, Index(plan_.panels)}},
                     ir::Block(std::move(body)));
    return MakeDraft("stream", parameters_, ir::Block({ir::DeclareArray(sums_), nest}));
  }

 private:
  Stmt Zero() const {
    const ir::Var place = IndexVar("place", shape_.m * plan_.columns());
    const Expr zero = ir::Zero({shape_.compute_type, Lanes()});
    return Loop(place, Index(0), Index(shape_.m * plan_.columns()),
                ir::Store(sums_, ir::Ramp(ir::Ref(place), Lanes()), zero), plan_.lanes);
  }

  using Elements = std::vector<std::vector<Expr>>;  // of lhs: [row of rhs][row of lhs]

  // sums[r] += lhs[r][k + i] * rhs[k + i] for `rows` values of i; what the last vector has beyond rhs's row is left
  // out.
  Stmt AddRows(const Expr& k, int64_t rows) const {
    std::vector<Stmt> body;
    Elements elements(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t r = 0; r < shape_.m; ++r) {
        const ir::Var element = ir::MakeVar(fmt::format("element_{}_{}", i, r), {shape_.compute_type, 1});
        body.push_back(ir::Let(element, ir::Cast(ir::Load(lhs_, LhsAt(r, k + i)), shape_.compute_type)));
        elements[static_cast<size_t>(i)].push_back(ir::Ref(element));
      }
    }
    const bool by_two = shape_.n % (2 * plan_.lanes) == 0;
    const ir::Var column = IndexVar("column", plan_.columns() - (by_two ? 2 : 1) * plan_.lanes + 1);
    const Expr row = (batch_ * shape_.k + k) * shape_.n + first_;
    const auto walk = [&](const Expr& begin, const Expr& end, int64_t vectors, const Expr& inside) {
      body.push_back(
          Loop(column, begin, end, AddVectors(elements, row, ir::Ref(column), vectors, inside), vectors * plan_.lanes));
    };
    if (by_two) {
      walk(Index(0), columns_, 2, nullptr);
      return ir::Block(std::move(body));
    }
    walk(Index(0), WholeVectors(), 1, nullptr);
    if (shape_.n % plan_.lanes != 0) {
      const Expr lanes = ir::Ramp(ir::Ref(column), Lanes());
      walk(WholeVectors(), columns_, 1, ir::Compare(ir::Op::kLt, lanes, ir::Splat(columns_, Lanes())));
    }
    return ir::Block(std::move(body));
  }

  // The same for `vectors` of columns, side by side from `column` on; `row` is where the first row of rhs begins.
  Stmt AddVectors(const Elements& elements, const Expr& row, const Expr& column, int64_t vectors,
                  const Expr& inside) const {
    std::vector<Stmt> steps;
    std::vector<Expr> values;
    for (size_t i = 0; i < elements.size(); ++i) {
      for (int64_t v = 0; v < vectors; ++v) {
        const Expr at = row + column + (static_cast<int64_t>(i) * shape_.n + v * plan_.lanes);
        steps.push_back(ir::Prefetch(rhs_, at + RowsAhead() * shape_.n, ir::CacheLevel::kSecond));
        const ir::Var value = ir::MakeVar(fmt::format("row_{}_{}", i, v), {shape_.compute_type, Lanes()});
        steps.push_back(ir::Let(value, ir::Cast(ir::Load(rhs_, ir::Ramp(at, Lanes()), inside), shape_.compute_type)));
        values.push_back(ir::Ref(value));
      }
    }
    for (int64_t r = 0; r < shape_.m; ++r) {
      std::vector<Expr> places, sums;
      for (int64_t v = 0; v < vectors; ++v) {
        places.push_back(ir::Ramp(column + (r * plan_.columns() + v * plan_.lanes), Lanes()));
        sums.push_back(ir::Load(sums_, places.back()));
      }
      for (size_t i = 0; i < elements.size(); ++i) {
        const Expr element = ir::Splat(elements[i][static_cast<size_t>(r)], Lanes());
        for (size_t v = 0; v < sums.size(); ++v) sums[v] = AddProduct(sums[v], element, values[i * sums.size() + v]);
      }
      for (size_t v = 0; v < sums.size(); ++v) steps.push_back(ir::Store(sums_, places[v], sums[v]));
    }
    return ir::Block(std::move(steps));
  }

  Expr LhsAt(int64_t row, const Expr& k) const {
    const Expr batch = batch_ * (shape_.m * shape_.k);
    return shape_.lhs_transposed ? batch + k * shape_.m + row : batch + k + row * shape_.k;
  }

  Expr WholeVectors() const {
    return shape_.n % plan_.lanes == 0 ? columns_ : Quotient(columns_, plan_.lanes) * plan_.lanes;
  }

  // Rows that are multiplied at once: as many as there are sums to fetch and put back for a vector of each.
  int64_t RowsAtOnce() const { return std::min(shape_.m, kMostRowsAtOnce); }
  int64_t RowsAhead() const {
    const int64_t row_bytes = plan_.columns() * hlo::BytesOf(shape_.rhs_type);
    return std::max(RowsAtOnce(), CeilDiv(kBytesAhead, row_bytes));
  }

  Stmt Store(const Expr& part) const {
    std::vector<Stmt> rows;
    const ir::Var column = IndexVar("column", plan_.columns());
    for (int64_t r = 0; r < shape_.m; ++r) {
      const Expr to = ((part * shape_.batch + batch_) * shape_.m + r) * shape_.n + first_;
      const auto copy = [&](int lanes) {
        const auto at = [&](const Expr& first) { return lanes == 1 ? first : ir::Ramp(first, lanes); };
        return ir::Store(partial_, at(to + ir::Ref(column)),
                         ir::Load(sums_, at(ir::Ref(column) + r * plan_.columns())));
      };
      rows.push_back(Loop(column, Index(0), WholeVectors(), copy(Lanes()), plan_.lanes));
      if (shape_.n % plan_.lanes != 0) rows.push_back(Loop(column, WholeVectors(), columns_, copy(1)));
    }
    return ir::Block(std::move(rows));
  }

  int Lanes() const { return static_cast<int>(plan_.lanes); }

  const ProductPlan& plan_;
  const ProductShape& shape_;
  KernelParameters parameters_;
  ir::BufferRef lhs_, rhs_, partial_, sums_;
  Expr batch_, first_, columns_;  // of this work-group: the batch, its first column and how many it has
};

}  // namespace

KernelDraft StreamKernel(const ProductTask& task, const ProductPlan& plan) { return Streams(task, plan).Emit(); }

}  // namespace hlorun::opencl
