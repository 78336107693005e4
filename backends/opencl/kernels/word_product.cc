#include "backends/opencl/kernels/word_product.h"

#include <span>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/word_dot.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/product_extents.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::LoopRole;
using ir::Op;
using ir::Stmt;

struct WordForms {
  const char* function;
  std::span<const WordDotForm> forms;
};
WordForms FormsOf(WordKind words) {
  if (words == WordKind::kBf16Pairs) return {kBf16DotFunction, kBf16DotForms};
  return {kS8DotFunction, kS8DotForms};
}

}  // namespace

Expr DotWords(WordKind words, const Expr& sum, const Expr& row, const Expr& column) {
  return ir::Call(sum->type, FormsOf(words).function, {sum, row, column});
}

std::vector<ir::Helper> WordHelpers(const WordForm& words) {
  std::vector<ir::Helper> helpers;
  if (!words) return helpers;
  const WordForms forms = FormsOf(words.kind);
  if (const char* source = SourceOf(forms.forms, words.dot)) helpers.push_back({forms.function, source});
  return helpers;
}

uint32_t FlipOfWords(WordKind words) {
  constexpr uint32_t kSignsOfBytes = 0x80808080;
  return words == WordKind::kS8Quads ? kSignsOfBytes : 0;
}

KernelDraft RowStartKernel(const ProductTask& task, const ProductPlan& plan) {
  constexpr int64_t kRowsOfGroup = 32;
  constexpr int64_t kSurplus = 128;
  constexpr int64_t kOnes = 0x01010101;
  const ProductShape& shape = plan.shape;
  const auto lanes = static_cast<int>(plan.lanes);
  const ir::Type sums{shape.compute_type, lanes};
  KernelParameters parameters;
  const ir::BufferRef lhs = parameters.Add("lhs", shape.lhs_type, shape.batch * shape.m * shape.k, task.lhs);
  const ir::BufferRef starts = parameters.Add("starts", shape.compute_type, shape.batch * shape.m,
                                              ScratchSlice(plan.RowStartOffset(), plan.RowStartBytes(), true));
  const int64_t groups = CeilDiv(shape.m, kRowsOfGroup), whole = shape.k / plan.lanes * plan.lanes;
  const ir::Var batch = IndexVar("batch", shape.batch), group = IndexVar("group", groups);
  const ir::Var row = IndexVar("row", shape.m), k = IndexVar("k", shape.k), sum = ir::MakeVar("sum", sums);
  const Expr at = ir::Ref(batch) * shape.m + ir::Ref(row);
  const Expr ones = ir::Splat(ir::Int(kOnes, ir::Type{hlo::ElementType::kU32}), lanes);
  const auto add = [&](const Expr& begin, const Expr& end, bool careful) {
    const Expr place = ir::Ramp(ir::Ref(k), lanes);
    const Expr words = ir::Load(lhs, ir::Ramp(at * shape.k + ir::Ref(k), lanes),
                                careful ? ir::Compare(Op::kLt, place, Index(shape.k)) : nullptr);
    const Stmt step = ir::Assign(sum, DotWords(plan.words.kind, ir::Ref(sum), words, ones));
    return ir::For(LoopRole::kSerial, k, begin, end, step, lanes);
  };
  std::vector<Stmt> body = {ir::Let(sum, ir::Zero(sums)), add(Index(0), Index(whole), false)};
  if (whole < shape.k) body.push_back(add(Index(whole), Index(shape.k), true));
  body.push_back(ir::Store(starts, at, ir::ReduceLanes(Op::kAdd, ir::Ref(sum)) * -kSurplus));
  const Expr first = ir::Ref(group) * kRowsOfGroup;
  const Stmt rows =
      ir::For(LoopRole::kSerial, row, first, ir::Min(first + kRowsOfGroup, Index(shape.m)), ir::Block(std::move(body)));
  const ProductSizes sizes = ProductSizesOf(task, shape);
  LoopEnds ends(parameters);
  const Expr batch_end = ends.End(sizes.batch, "batch_end"),
             groups_end = ends.Pieces(sizes.m, kRowsOfGroup, "rows_end");
  const Stmt nest = ParallelNest({{batch, batch_end}, {group, groups_end}}, rows);
  return Packing(MakeDraft("row_starts", parameters, ends.Before(nest), WordHelpers(plan.words)));
}

}  // namespace hlorun::opencl
