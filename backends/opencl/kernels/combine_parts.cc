#include "backends/opencl/kernels/combine_parts.h"

#include <fmt/format.h>

#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/gradient_pixels.h"
#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::Stmt;

class Combination {
 public:
  Combination(const WeightGradientTask& task, const WeightGradientShape& shape, const GradientSums& sums)
      : shape_(shape),
        sums_(sums),
        vector_{shape.compute_type, static_cast<int>(sums.lanes)},
        array_(parameters_.Add("sums", shape.compute_type, sums.parts * sums.of_part, sums.argument)),
        epilogue_(task.instruction, task.hero, task.aliases, parameters_),
        staging_(MakeStaging("staging", shape.compute_type, sums.width())) {}

  KernelDraft Emit() const {
    const ir::Var tap = IndexVar("tap", shape_.taps()), channel = IndexVar("channel", shape_.channels),
                  panel = IndexVar("panel", sums_.panels);
    const Stmt panels =
        Loop(panel, Index(0), Index(sums_.panels), Finish(ir::Ref(tap), ir::Ref(channel), ir::Ref(panel)));
    const Stmt nest = ParallelNest({{tap, Index(shape_.taps())}, {channel, Index(shape_.channels)}}, panels);
    return MakeDraft("combine_parts", parameters_, ir::Block({ir::DeclareArray(staging_), nest}));
  }

 private:
  // One panel of a row of the result.
  Stmt Finish(const Expr& tap, const Expr& channel, const Expr& panel) const {
    const ir::Var part = IndexVar("part", sums_.parts), from = ir::MakeVar("from", kIndex);
    std::vector<Stmt> body = {ir::Let(from, sums_.place(tap, channel, panel))}, add, save;
    for (int64_t v = 0; v < sums_.vectors; ++v) {
      const ir::Var total = ir::MakeVar(fmt::format("total_{}", v), vector_);
      const Expr place = ir::Ref(from) + ir::Ref(part) * sums_.of_part + v * sums_.lanes;
      body.push_back(ir::Let(total, ir::Zero(vector_)));
      add.push_back(ir::Assign(total, ir::Ref(total) + ir::Load(array_, ir::Ramp(place, vector_.lanes))));
      save.push_back(ir::Store(staging_, ir::Ramp(Index(v * sums_.lanes), vector_.lanes), ir::Ref(total)));
    }
    body.push_back(Loop(part, Index(0), Index(sums_.parts), ir::Block(std::move(add))));
    body.insert(body.end(), save.begin(), save.end());
    body.push_back(Store(tap, channel, panel));
    return ir::Block(std::move(body));
  }

  Stmt Store(const Expr& tap, const Expr& channel, const Expr& panel) const {
    const Expr group = GroupOfPanel(panel, sums_.panels, sums_.panels_together);
    const Expr of_group = PanelInGroup(panel, sums_.panels, sums_.panels_together);
    RunIndex result;
    if (shape_.spatial_rank == 2) result.index.push_back(Quotient(tap, shape_.columns.out));
    result.index.push_back(Remainder(tap, shape_.columns.out));
    result.index.push_back(channel);
    result.index.push_back(group * sums_.features_together + of_group * sums_.width());
    result.lane_dimension = result.index.size() - 1;
    // What two panels have is stored once, since the epilogue may update in place.
    const int64_t tail = sums_.features_together % sums_.width(), whole = sums_.features_together / sums_.width();
    const auto store = [&](int64_t count) {
      const int64_t first = sums_.last_overlaps ? sums_.width() - count : 0;
      return epilogue_.StoreRun(result, count, sums_.lanes,
                                [&, first](const Expr& place) { return ir::Load(staging_, place + first); });
    };
    if (tail == 0) return store(sums_.width());
    return ir::If(of_group < Index(whole), store(sums_.width()), store(tail));
  }

  const WeightGradientShape& shape_;
  const GradientSums& sums_;
  ir::Type vector_;
  KernelParameters parameters_;
  ir::BufferRef array_;
  Epilogue epilogue_;
  ir::BufferRef staging_;
};

}  // namespace

KernelDraft CombineParts(const WeightGradientTask& task, const WeightGradientShape& shape, const GradientSums& sums) {
  return Combination(task, shape, sums).Emit();
}

}  // namespace hlorun::opencl
