#include <algorithm>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using ir::Expr;

bool Contains(const std::vector<int64_t>& list, int64_t x) {
  return std::find(list.begin(), list.end(), x) != list.end();
}

// A start as an index in [-1, limit + 1]: what lies outside stays outside, and nothing overflows.
Index UnclampedStart(Emission& e, const Value& value, int64_t limit) {
  Expr x = value.re;
  if (hlo::BitsOf(x->type.element) < 32) x = ir::Cast(x, hlo::ElementType::kS32);
  if (hlo::IsSigned(x->type.element)) x = ir::Max(x, ir::Int(-1, x->type));
  const int64_t highest = x->type.element == hlo::ElementType::kS32   ? INT32_MAX
                          : x->type.element == hlo::ElementType::kU32 ? UINT32_MAX
                                                                      : INT64_MAX;
  if (limit + 1 < highest) x = ir::Min(x, ir::Int(limit + 1, x->type));
  const ir::Var variable = ir::MakeIndex(e.body().FreshName("at"), -1, limit + 1, e.math().type());
  e.body().Add(ir::Let(variable, ir::Cast(x, e.math().type().element)));
  return e.math().Of(variable);
}

// Updates run in their order, one after another, by work-items that each own some elements of the window: the same bits
// on every run and device.
class ScatterKernel {
 public:
  explicit ScatterKernel(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        scatter_(*request.hero.instruction),
        attributes_(scatter_.As<hlo::attr::Scatter>()),
        count_((scatter_.operand_count() - 1) / 2),
        operand_shape_(scatter_.operand(0)->shape()),
        indices_shape_(scatter_.operand(count_)->shape()),
        updates_shape_(scatter_.operand(count_ + 1)->shape()) {
    for (int64_t d = 0; d < updates_shape_.rank(); ++d) {
      (Contains(attributes_.update_window_dims, d) ? window_dims_ : batch_dims_).push_back(d);
    }
    for (int64_t d = 0; d < operand_shape_.rank(); ++d) {
      const bool inserted =
          Contains(attributes_.inserted_window_dims, d) || Contains(attributes_.input_batching_dims, d);
      if (!inserted) window_operand_dims_.push_back(d);
    }
  }

  EmittedLaunch Emit() {
    IndexMath& math = e_.math();
    update_.resize(static_cast<size_t>(updates_shape_.rank()));
    // Window dimensions but the last are parallel, batches serial, the last window dimension is cut into parallel tiles
    // of vectors.
    std::vector<std::pair<ir::Var, int64_t>> parallel;
    for (size_t i = 0; i + 1 < window_dims_.size(); ++i) {
      const int64_t extent = updates_shape_.dimension(window_dims_[i]);
      parallel.emplace_back(e_.IndexVar("window" + std::to_string(i), extent), extent);
      update_[static_cast<size_t>(window_dims_[i])] = math.Of(parallel.back().first);
    }
    // Unique indices touch an element once at most: no order to keep.
    const bool independent = attributes_.unique_indices && !batch_dims_.empty();
    if (independent) {
      for (const int64_t d : batch_dims_) {
        parallel.emplace_back(e_.IndexVar("batch" + std::to_string(d), updates_shape_.dimension(d)),
                              updates_shape_.dimension(d));
        update_[static_cast<size_t>(d)] = math.Of(parallel.back().first);
      }
    }
    const int64_t minor = window_dims_.empty() ? 1 : updates_shape_.dimension(window_dims_.back());
    constexpr int64_t kTile = 256;
    const bool tiled = minor >= 2 * kTile && !independent;
    const ir::Var tile = e_.IndexVar("tile", (minor + kTile - 1) / kTile);

    e_.values().Open();
    const std::function<void(size_t)> batches = [&](size_t i) {
      if (independent || i == batch_dims_.size())
        return OneUpdate(tiled ? math.Mul(math.Of(tile), kTile) : Index(0), tiled ? kTile : minor, minor);
      e_.values().SerialLoop(updates_shape_.dimension(batch_dims_[i]), [&](const Index& b) {
        update_[static_cast<size_t>(batch_dims_[i])] = b;
        batches(i + 1);
      });
    };
    batches(0);
    ir::Stmt body = e_.values().Close();
    const int64_t work = WorkOf(body);
    if (tiled)
      body = ir::For(ir::LoopRole::kParallel, tile, e_.IndexInt(0), e_.IndexInt((minor + kTile - 1) / kTile), body);
    for (size_t i = parallel.size(); i-- > 0;) {
      body = ir::For(ir::LoopRole::kParallel, parallel[i].first, e_.IndexInt(0), e_.IndexInt(parallel[i].second), body);
    }
    return e_.Finish(body, GrainOf(work));
  }

 private:
  void OneUpdate(const Index& first, int64_t length, int64_t minor) {
    IndexMath& math = e_.math();
    Indices batch;
    for (const int64_t d : batch_dims_) batch.push_back(update_[static_cast<size_t>(d)]);
    Indices start(static_cast<size_t>(operand_shape_.rank()));
    Expr inside = ir::Pred(true);
    for (size_t i = 0; i < attributes_.scatter_dims_to_operand_dims.size(); ++i) {
      Indices at = batch;
      if (attributes_.index_vector_dim < indices_shape_.rank())
        at.insert(at.begin() + attributes_.index_vector_dim, Index(static_cast<int64_t>(i)));
      const int64_t d = attributes_.scatter_dims_to_operand_dims[i];
      const int64_t limit = operand_shape_.dimension(d) - WindowSize(d);
      const Index s = UnclampedStart(e_, e_.values().Get(e_.frame(), *scatter_.operand(count_), at), limit);
      inside = ir::And(inside, math.Within(s, 0, limit + 1));
      start[static_cast<size_t>(d)] = s;
    }
    for (size_t i = 0; i < attributes_.input_batching_dims.size(); ++i) {
      int64_t position = attributes_.scatter_indices_batching_dims[i];
      if (position > attributes_.index_vector_dim) --position;
      start[static_cast<size_t>(attributes_.input_batching_dims[i])] = batch[static_cast<size_t>(position)];
    }
    // The window along its last dimension.
    e_.values().Open();
    const ir::Var w = e_.IndexVar(e_.body().FreshName("w"), minor);
    e_.values().Open();
    if (!window_dims_.empty()) update_[static_cast<size_t>(window_dims_.back())] = math.Of(w);
    Combine(start);
    const Expr begin = math.ToExpr(first);
    const Expr end = first.IsConstant() ? e_.IndexInt(length) : ir::Min(begin + length, e_.IndexInt(minor));
    e_.body().Add(ir::For(ir::LoopRole::kVector, w, begin, end, e_.values().Close(), 1, e_.Lanes()));
    const ir::Stmt window = e_.values().Close();
    e_.body().Add(ir::If(e_.body().Name(inside, "inside"), window));
  }

  int64_t WindowSize(int64_t operand_dim) const {
    const auto found = std::find(window_operand_dims_.begin(), window_operand_dims_.end(), operand_dim);
    if (found == window_operand_dims_.end()) return 1;
    return updates_shape_.dimension(window_dims_[static_cast<size_t>(found - window_operand_dims_.begin())]);
  }

  void Combine(const Indices& start) {
    Indices place = start;
    for (size_t i = 0; i < window_operand_dims_.size(); ++i) {
      Index& at = place[static_cast<size_t>(window_operand_dims_[i])];
      at = e_.math().Add(at, update_[static_cast<size_t>(window_dims_[i])]);
    }
    const Expr linear = e_.math().ToExpr(e_.math().Linearize(place, operand_shape_.dimensions()));
    Values arguments;
    for (const auto& output : e_.outputs()) {
      const bool complex = hlo::IsComplex(output.shape.element_type());
      const Expr at = complex ? linear * 2 : linear;
      arguments.push_back({e_.body().Name(ir::Load(output.buffer, at)),
                           complex ? e_.body().Name(ir::Load(output.buffer, at + 1)) : nullptr});
    }
    for (int64_t i = 0; i < count_; ++i)
      arguments.push_back(e_.values().Get(e_.frame(), *scatter_.operand(count_ + 1 + i), update_));
    const Values results = e_.values().Apply(*scatter_.called(), std::move(arguments));
    for (size_t i = 0; i < results.size(); ++i) {
      const auto& output = e_.outputs()[i];
      StoreElement(e_.values(), output.buffer, output.shape, place, results[i]);
    }
  }

  Emission e_;
  const Instruction& scatter_;
  const hlo::attr::Scatter& attributes_;
  int64_t count_;
  const hlo::Shape &operand_shape_, &indices_shape_, &updates_shape_;
  std::vector<int64_t> window_dims_, batch_dims_, window_operand_dims_;
  Indices update_;
};

}  // namespace

Launches EmitScatter(const EmitRequest& request) {
  const Instruction& scatter = *request.hero.instruction;
  if (request.instruction.Is(hlo::Opcode::kFusion) && request.instruction.called()->root() != &scatter) {
    Fail(ErrorCode::kUnimplemented, "{}: a scatter with consumers in its fusion has no kernel",
         request.instruction.name());
  }
  Launches launches;
  const std::vector<hlo::Shape> leaves = hlo::FlattenShape(request.instruction.shape());
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    if (leaf < request.aliases.size() && request.aliases[leaf] >= 0) continue;
    Emission copy(request.instruction, request.aliases, request.context);
    const auto& output = copy.outputs()[leaf];
    launches.push_back(OverElements(copy, {output.shape.ElementCount()}, [&](const Indices& linear) {
      const Indices at = copy.math().Delinearize(linear[0], output.shape.dimensions());
      StoreElement(copy.values(), output.buffer, output.shape, at,
                   copy.values().Get(copy.frame(), *scatter.operand(static_cast<int64_t>(leaf)), at));
    }));
  }
  if (scatter.operand(scatter.operand_count() - 1)->shape().ElementCount() > 0)
    launches.push_back(ScatterKernel(request).Emit());
  return launches;
}

}  // namespace hlorun::opencl
