#include "backends/opencl/kernels/winograd.h"

#include "backends/opencl/codegen/prefetch_lines.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/register_tile.h"
#include "backends/opencl/kernels/winograd_points.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::LoopRole;
using ir::Op;
using ir::Stmt;

constexpr int64_t kOutputs = WinogradPlan::kOutputs, kTaps = WinogradPlan::kTaps, kPoints = WinogradPlan::kPoints;

Stmt Loop(const ir::Var& var, const Expr& end, const Stmt& body, int64_t step = 1) {
  return opencl::Loop(var, Index(0), end, body, step);
}

using Transform = std::vector<Expr> (*)(const std::vector<Expr>&, std::vector<Stmt>&);
using Get = std::function<Expr(int64_t)>;
using Put = std::function<Stmt(int64_t, const Expr&)>;

// Reads `count` vectors, transforms them and writes what comes out.
Stmt Apply(Transform transform, int64_t count, const Get& get, const Put& put) {
  std::vector<Stmt> statements;
  std::vector<Expr> values;
  for (int64_t i = 0; i < count; ++i) {
    const Expr value = get(i);
    const ir::Var named = ir::MakeVar(fmt::format("in_{}", i), value->type);
    statements.push_back(ir::Let(named, value));
    values.push_back(ir::Ref(named));
  }
  const std::vector<Expr> results = transform(values, statements);
  for (size_t i = 0; i < results.size(); ++i) statements.push_back(put(static_cast<int64_t>(i), results[i]));
  return ir::Block(std::move(statements));
}

// The weights at all pairs of points, in panels of features: [product][panel][channel][feature of the panel].
KernelDraft WeightKernel(const ConvolutionTask& task, const WinogradPlan& plan) {
  const ConvolutionShape& shape = plan.shape;
  const auto lanes = static_cast<int>(plan.lanes);
  KernelParameters parameters;
  const ir::BufferRef from = parameters.Add("weights", shape.weight_type, shape.Depth() * shape.features, task.weights);
  const ir::BufferRef to =
      parameters.Add("transformed", shape.compute_type, plan.WeightBytes() / hlo::BytesOf(shape.compute_type),
                     ScratchSlice(0, plan.WeightBytes(), true));
  const ir::BufferRef by_tap = MakeStaging("by_tap", shape.compute_type, kPoints * kTaps * plan.lanes);
  const ir::Var panel = IndexVar("panel", plan.panels), channel = IndexVar("channel", shape.channels),
                piece = IndexVar("piece", plan.width());
  const ir::Var tap = IndexVar("tap", kTaps), point = IndexVar("point", kPoints);
  const auto vector = [&](const ir::BufferRef& buffer, const Expr& at) {
    return ir::Load(buffer, ir::Ramp(at, lanes));
  };

  const Expr feature = ir::Ref(panel) * plan.width() + ir::Ref(piece);
  const Expr inside = shape.features % plan.width() == 0
                          ? nullptr
                          : ir::Compare(Op::kLt, ir::Ramp(feature, lanes), Index(shape.features));
  const Stmt rows = Apply(
      WeightsAtPoints, kTaps,
      [&](int64_t i) {
        const Expr at = ((ir::Ref(tap) + i * kTaps) * shape.channels + ir::Ref(channel)) * shape.features + feature;
        return ir::Cast(ir::Load(from, ir::Ramp(at, lanes), inside), shape.compute_type);
      },
      [&](int64_t i, const Expr& x) {
        return ir::Store(by_tap, ir::Ramp((ir::Ref(tap) + i * kTaps) * plan.lanes, lanes), x);
      });
  const Expr place = (ir::Ref(panel) * shape.channels + ir::Ref(channel)) * plan.width() + ir::Ref(piece);
  const Stmt columns = Apply(
      WeightsAtPoints, kTaps, [&](int64_t i) { return vector(by_tap, (ir::Ref(point) * kTaps + i) * plan.lanes); },
      [&](int64_t i, const Expr& x) {
        const Expr product = ir::Ref(point) * kPoints + i;
        return ir::Store(to, ir::Ramp(product * (plan.panels * shape.channels * plan.width()) + place, lanes), x);
      });
  const Stmt body = Loop(piece, Index(plan.width()),
                         ir::Block({Loop(tap, Index(kTaps), rows), Loop(point, Index(kPoints), columns)}), plan.lanes);
  const Stmt nest = ParallelNest({{panel, Index(plan.panels)}, {channel, Index(shape.channels)}}, body);
  return Packing(MakeDraft("winograd_weights", parameters, ir::Block({ir::DeclareArray(by_tap), nest})));
}

// Blocks of squares and features, a part of the features after the other: at the points, multiplied, and back.
class Winograd {
 public:
  Winograd(const ConvolutionTask& task, const WinogradPlan& plan)
      : task_(task), plan_(plan), shape_(plan.shape), lanes_(static_cast<int>(plan.lanes)) {
    const int64_t element = hlo::BytesOf(shape_.compute_type);
    input_ = parameters_.Add("input", shape_.input_type,
                             shape_.batch * shape_.rows.in * shape_.columns.in * shape_.channels, task.input);
    weights_ = parameters_.Add("weights", shape_.compute_type, plan.WeightBytes() / element,
                               ScratchSlice(0, plan.WeightBytes(), false));
    buffer_ = parameters_.Add("buffer", shape_.compute_type, plan.BufferBytes() / element,
                              ScratchSlice(plan.WeightBytes(), plan.BufferBytes(), true));
    epilogue_.emplace(task.instruction, task.hero, task.aliases, parameters_);
    patch_ = MakeStaging("patch", shape_.compute_type, WinogradPlan::kProducts * plan.lanes);
    outputs_ = MakeStaging("outputs", shape_.compute_type, kOutputs * kOutputs * plan.width());
  }

  KernelDraft Emit() {
    const ir::Var group = IndexVar("group", plan_.groups), block = IndexVar("block", plan_.blocks());
    const ir::Var part_panel = IndexVar("part_panel", plan_.panels), first = IndexVar("first", plan_.squares()),
                  count = ir::MakeIndex("count", 1, plan_.chunk, kIndex);
    first_ = ir::Ref(first);
    count_ = ir::Ref(count);
    first_panel_ = ir::Ref(part_panel);
    end_panel_ = plan_.panels % plan_.panels_per_part == 0
                     ? first_panel_ + plan_.panels_per_part
                     : ir::Min(first_panel_ + plan_.panels_per_part, Index(plan_.panels));
    inputs_at_ = ir::Ref(group) * (plan_.InputElements() + plan_.OutputElements());
    products_at_ = inputs_at_ + plan_.InputElements();
    const Stmt body = ir::Block({ir::Let(part_panel, Quotient(ir::Ref(block), plan_.chunks()) * plan_.panels_per_part),
                                 ir::Let(first, Remainder(ir::Ref(block), plan_.chunks()) * plan_.chunk),
                                 ir::Let(count, ir::Min(Index(plan_.chunk), Index(plan_.squares()) - ir::Ref(first))),
                                 ForSquares([&](const Expr& square) { return Inputs(square); }), Products(),
                                 ForSquares([&](const Expr& square) { return Outputs(square); })});
    const Stmt walk = ir::For(LoopRole::kSerial, block, ir::Ref(group), Index(plan_.blocks()), body, plan_.groups);
    const Stmt nest = ir::For(LoopRole::kParallel, group, Index(0), Index(plan_.groups), walk);
    return MakeDraft("winograd", parameters_, ir::Block({ir::DeclareArray(patch_), ir::DeclareArray(outputs_), nest}));
  }

 private:
  Expr Vector(const ir::BufferRef& buffer, const Expr& at) const { return ir::Load(buffer, ir::Ramp(at, lanes_)); }
  Stmt Write(const ir::BufferRef& buffer, const Expr& at, const Expr& x) const {
    return ir::Store(buffer, ir::Ramp(at, lanes_), x);
  }

  // body(number within the chunk), with image_, top_ and left_ as the square's first output.
  template <typename Body>
  Stmt ForSquares(const Body& body) {
    const ir::Var square = IndexVar("square", plan_.chunk), image = IndexVar("image", shape_.batch);
    const ir::Var top = IndexVar("top", shape_.rows.out), left = IndexVar("left", shape_.columns.out);
    const Expr at = first_ + ir::Ref(square);
    image_ = ir::Ref(image);
    top_ = ir::Ref(top);
    left_ = ir::Ref(left);
    const Stmt inner = body(ir::Ref(square));
    return Loop(square, count_,
                ir::Block({ir::Let(image, Quotient(at, plan_.squares_high * plan_.squares_wide)),
                           ir::Let(top, Remainder(Quotient(at, plan_.squares_wide), plan_.squares_high) * kOutputs),
                           ir::Let(left, Remainder(at, plan_.squares_wide) * kOutputs), inner}));
  }

  // [product][square][channel]
  Stmt Inputs(const Expr& square) const {
    const ir::Var channel = IndexVar("channel", shape_.channels), row = IndexVar("row", kPoints),
                  column = IndexVar("column", kPoints);
    const ir::Var y = ir::MakeIndex("y", -shape_.rows.low, shape_.rows.in + kPoints, kIndex);
    const ir::Var x = ir::MakeIndex("x", -shape_.columns.low, shape_.columns.in + kPoints, kIndex);
    const auto within = [](const ir::Var& at, int64_t end) {
      return ir::And(ir::Compare(Op::kGe, ir::Ref(at), Index(0)), ir::Ref(at) < Index(end));
    };
    const Expr pixel = (image_ * shape_.rows.in + ir::Ref(y)) * shape_.columns.in + ir::Ref(x);
    const Expr value = ir::Cast(Vector(input_, pixel * shape_.channels + ir::Ref(channel)), shape_.compute_type);
    const Expr in_patch = (ir::Ref(row) * kPoints + ir::Ref(column)) * plan_.lanes;
    const Stmt gather =
        Loop(row, Index(kPoints),
             ir::Block({ir::Let(y, top_ + ir::Ref(row) - shape_.rows.low),
                        Loop(column, Index(kPoints),
                             ir::Block({ir::Let(x, left_ + ir::Ref(column) - shape_.columns.low),
                                        ir::If(ir::And(within(y, shape_.rows.in), within(x, shape_.columns.in)),
                                               Write(patch_, in_patch, value),
                                               Write(patch_, in_patch, ir::Zero({shape_.compute_type, lanes_})))}))}));
    const auto at_row = [&](int64_t i) { return (ir::Ref(row) * kPoints + i) * plan_.lanes; };
    const Stmt rows = Apply(
        InputAtPoints, kPoints, [&](int64_t i) { return Vector(patch_, at_row(i)); },
        [&](int64_t i, const Expr& v) { return Write(patch_, at_row(i), v); });
    const int64_t of_product = plan_.chunk * plan_.InputPitch();
    const Expr to = inputs_at_ + ir::Ref(column) * of_product + square * plan_.InputPitch() + ir::Ref(channel);
    const Stmt columns = Apply(
        InputAtPoints, kPoints,
        [&](int64_t i) { return Vector(patch_, (ir::Ref(column) + i * kPoints) * plan_.lanes); },
        [&](int64_t i, const Expr& v) { return Write(buffer_, to + i * kPoints * of_product, v); });
    const Stmt body = ir::Block({gather, Loop(row, Index(kPoints), rows), Loop(column, Index(kPoints), columns)});
    return Loop(channel, Index(shape_.channels), body, plan_.lanes);
  }

  // [product][square][feature]; the last tile of a chunk multiplies what an earlier chunk left behind its squares.
  Stmt Products() const {
    const ir::Var product = IndexVar("product", WinogradPlan::kProducts), panel = IndexVar("panel", plan_.panels);
    const ir::Var square = IndexVar("tile", plan_.chunk), k = IndexVar("k", shape_.channels);
    const ir::Var lhs = ir::MakeVar("lhs_at", kIndex), rhs = ir::MakeVar("rhs_at", kIndex);
    const RegisterTile tile("acc", plan_.tile_rows, plan_.vectors, {shape_.compute_type, lanes_});
    const int64_t width = plan_.width(), pitch = plan_.InputPitch();
    const Expr row = ir::Ref(product) * plan_.chunk + ir::Ref(square);
    const Stmt step =
        tile.Step([&](int64_t r) { return ir::Load(buffer_, ir::Ref(lhs) + ir::Ref(k) + r * pitch); },
                  [&](int64_t v) { return Vector(weights_, ir::Ref(rhs) + ir::Ref(k) * width + v * plan_.lanes); });
    const Expr to = products_at_ + row * plan_.OutputPitch() + (ir::Ref(panel) - first_panel_) * width;
    const Stmt body = ir::Block(
        {ir::Let(lhs, inputs_at_ + row * pitch),
         ir::Let(rhs, (ir::Ref(product) * plan_.panels + ir::Ref(panel)) * (shape_.channels * width)), tile.Declare(),
         Loop(k, Index(shape_.channels), ir::Block({SendForNextPanel(ir::Ref(rhs) + ir::Ref(k) * width), step})),
         tile.Store(buffer_, [&](int64_t r, int64_t v) { return to + (r * plan_.OutputPitch() + v * plan_.lanes); })});
    return Loop(product, Index(WinogradPlan::kProducts),
                opencl::Loop(panel, first_panel_, end_panel_, Loop(square, count_, body, plan_.tile_rows)));
  }

  // While the tiles of a panel find it in the second cache, the one behind it comes from the last.
  Stmt SendForNextPanel(const Expr& at) const {
    return PrefetchLines(weights_, at + shape_.channels * plan_.width(), plan_.width(), ir::CacheLevel::kSecond);
  }

  Stmt Outputs(const Expr& square) {
    const ir::Var panel = IndexVar("panel", plan_.panels);
    const int64_t tail = shape_.features % plan_.width(), whole = shape_.features / plan_.width();
    const Stmt back = Back(square, ir::Ref(panel));
    Stmt store;
    if (tail == 0)
      store = StorePanel(ir::Ref(panel), plan_.width());
    else if (whole == 0)
      store = StorePanel(ir::Ref(panel), tail);
    else
      store = ir::If(ir::Ref(panel) < Index(whole), StorePanel(ir::Ref(panel), plan_.width()),
                     StorePanel(ir::Ref(panel), tail));
    return opencl::Loop(panel, first_panel_, end_panel_, ir::Block({SendForPanel(ir::Ref(panel)), back, store}));
  }

  // One panel's outputs of a square: [row][column][feature of the panel].
  Stmt Back(const Expr& square, const Expr& panel) const {
    const ir::Var piece = IndexVar("piece", plan_.width()), row = IndexVar("row", kPoints),
                  column = IndexVar("column", kOutputs);
    const int64_t of_product = plan_.chunk * plan_.OutputPitch();
    const Expr from = products_at_ + ir::Ref(row) * (kPoints * of_product) + square * plan_.OutputPitch() +
                      (panel - first_panel_) * plan_.width() + ir::Ref(piece);
    const Stmt rows = Apply(
        OutputsFromPoints, kPoints, [&](int64_t i) { return Vector(buffer_, from + i * of_product); },
        [&](int64_t i, const Expr& v) { return Write(patch_, (ir::Ref(row) * kOutputs + i) * plan_.lanes, v); });
    const Stmt columns = Apply(
        OutputsFromPoints, kPoints,
        [&](int64_t i) { return Vector(patch_, (ir::Ref(column) + i * kOutputs) * plan_.lanes); },
        [&](int64_t i, const Expr& v) {
          return Write(outputs_, (ir::Ref(column) + i * kOutputs) * plan_.width() + ir::Ref(piece), v);
        });
    return Loop(piece, Index(plan_.width()),
                ir::Block({Loop(row, Index(kPoints), rows), Loop(column, Index(kOutputs), columns)}), plan_.lanes);
  }

  RunIndex OutputAt(const ir::Var& row, const ir::Var& column, const Expr& panel) const {
    return {{image_, top_ + ir::Ref(row), left_ + ir::Ref(column), panel * plan_.width()}, 3};
  }

  Stmt SendForPanel(const Expr& panel) const {
    const ir::Var row = IndexVar("row", kOutputs), column = IndexVar("column", kOutputs);
    const Stmt send = epilogue_->SendForRun(OutputAt(row, column, panel), plan_.width());
    return Loop(row, Index(kOutputs), Loop(column, Index(kOutputs), send));
  }

  // Outputs that the image has.
  Stmt StorePanel(const Expr& panel, int64_t features) const {
    const ir::Var row = IndexVar("row", kOutputs), column = IndexVar("column", kOutputs);
    const RunIndex at = OutputAt(row, column, panel);
    const Expr staged = (ir::Ref(row) * kOutputs + ir::Ref(column)) * plan_.width();
    const Stmt run = epilogue_->StoreRun(at, features, plan_.lanes,
                                         [&](const Expr& place) { return ir::Load(outputs_, staged + place); });
    const auto end = [](int64_t size, const Expr& first) {
      return size % kOutputs == 0 ? Index(kOutputs) : ir::Min(Index(kOutputs), Index(size) - first);
    };
    return Loop(row, end(shape_.rows.out, top_), Loop(column, end(shape_.columns.out, left_), run));
  }

  const ConvolutionTask& task_;
  const WinogradPlan& plan_;
  const ConvolutionShape& shape_;
  const int lanes_;
  KernelParameters parameters_;
  ir::BufferRef input_, weights_, buffer_, patch_, outputs_;
  std::optional<Epilogue> epilogue_;
  Expr first_, count_, first_panel_, end_panel_, inputs_at_, products_at_, image_, top_, left_;
};

}  // namespace

std::vector<KernelDraft> WinogradKernels(const ConvolutionTask& task, const WinogradPlan& plan) {
  return {WeightKernel(task, plan), Winograd(task, plan).Emit()};
}

}  // namespace hlorun::opencl
