#include "backends/opencl/kernels/winograd.h"

#include <algorithm>

#include "backends/opencl/codegen/cache_line.h"
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

Stmt Loop(const ir::Var& var, const Expr& end, const Stmt& body, int64_t step = 1) {
  return opencl::Loop(var, Index(0), end, body, step);
}

using Transform = std::vector<Expr> (*)(const WinogradForm&, const std::vector<Expr>&, std::vector<Stmt>&);
using Get = std::function<Expr(int64_t)>;
using Put = std::function<Stmt(int64_t, const Expr&)>;

// Reads `count` vectors, transforms them and writes what comes out.
Stmt Apply(Transform transform, const WinogradForm& form, int64_t count, const Get& get, const Put& put) {
  std::vector<Stmt> statements;
  std::vector<Expr> values;
  for (int64_t i = 0; i < count; ++i) {
    const Expr value = get(i);
    const ir::Var named = ir::MakeVar(fmt::format("in_{}", i), value->type);
    statements.push_back(ir::Let(named, value));
    values.push_back(ir::Ref(named));
  }
  const std::vector<Expr> results = transform(form, values, statements);
  for (size_t i = 0; i < results.size(); ++i) statements.push_back(put(static_cast<int64_t>(i), results[i]));
  return ir::Block(std::move(statements));
}

// The weights at all pairs of points, in panels of features: [product][panel][channel][feature of the panel].
KernelDraft WeightKernel(const ConvolutionTask& task, const WinogradPlan& plan) {
  const ConvolutionShape& shape = plan.shape;
  const WinogradForm &of_rows = plan.rows, &of_columns = plan.columns;
  const auto lanes = static_cast<int>(plan.lanes);
  KernelParameters parameters;
  const ir::BufferRef from = parameters.Add("weights", shape.weight_type, shape.Depth() * shape.features, task.weights);
  const ir::BufferRef to =
      parameters.Add("transformed", shape.compute_type, plan.WeightBytes() / hlo::BytesOf(shape.compute_type),
                     ScratchSlice(0, plan.WeightBytes(), true));
  const ir::BufferRef by_tap =
      MakeStaging("by_tap", shape.compute_type, of_rows.points() * of_columns.taps * plan.lanes);
  const ir::Var panel = IndexVar("panel", plan.panels), channel = IndexVar("channel", shape.channels),
                piece = IndexVar("piece", plan.width());
  const ir::Var tap = IndexVar("tap", of_columns.taps), point = IndexVar("point", of_rows.points());
  const auto vector = [&](const ir::BufferRef& buffer, const Expr& at) {
    return ir::Load(buffer, ir::Ramp(at, lanes));
  };

  const Expr feature = ir::Ref(panel) * plan.width() + ir::Ref(piece);
  const Expr inside = shape.features % plan.width() == 0
                          ? nullptr
                          : ir::Compare(Op::kLt, ir::Ramp(feature, lanes), Index(shape.features));
  const Stmt rows = Apply(
      WeightsAtPoints, of_rows, of_rows.taps,
      [&](int64_t i) {
        const Expr at =
            ((ir::Ref(tap) + i * of_columns.taps) * shape.channels + ir::Ref(channel)) * shape.features + feature;
        return ir::Cast(ir::Load(from, ir::Ramp(at, lanes), inside), shape.compute_type);
      },
      [&](int64_t i, const Expr& x) {
        return ir::Store(by_tap, ir::Ramp((ir::Ref(tap) + i * of_columns.taps) * plan.lanes, lanes), x);
      });
  const Expr place = (ir::Ref(panel) * shape.channels + ir::Ref(channel)) * plan.width() + ir::Ref(piece);
  const Stmt columns = Apply(
      WeightsAtPoints, of_columns, of_columns.taps,
      [&](int64_t i) { return vector(by_tap, (ir::Ref(point) * of_columns.taps + i) * plan.lanes); },
      [&](int64_t i, const Expr& x) {
        const Expr product = ir::Ref(point) * of_columns.points() + i;
        return ir::Store(to, ir::Ramp(product * (plan.panels * shape.channels * plan.width()) + place, lanes), x);
      });
  const Stmt body = Loop(
      piece, Index(plan.width()),
      ir::Block({Loop(tap, Index(of_columns.taps), rows), Loop(point, Index(of_rows.points()), columns)}), plan.lanes);
  const Stmt nest = ParallelNest({{panel, Index(plan.panels)}, {channel, Index(shape.channels)}}, body);
  return Packing(MakeDraft("winograd_weights", parameters, ir::Block({ir::DeclareArray(by_tap), nest})));
}

// Blocks of squares and features, a part of the features after the other: at the points, multiplied, and back.
class Winograd {
 public:
  Winograd(const ConvolutionTask& task, const WinogradPlan& plan)
      : task_(task),
        plan_(plan),
        rows_(plan.rows),
        columns_(plan.columns),
        shape_(plan.shape),
        lanes_(static_cast<int>(plan.lanes)) {
    const int64_t element = hlo::BytesOf(shape_.compute_type);
    input_ = parameters_.Add("input", shape_.input_type,
                             shape_.batch * shape_.rows.in * shape_.columns.in * shape_.channels, task.input);
    weights_ = parameters_.Add("weights", shape_.compute_type, plan.WeightBytes() / element,
                               ScratchSlice(0, plan.WeightBytes(), false));
    buffer_ = parameters_.Add("buffer", shape_.compute_type, plan.BufferBytes() / element,
                              ScratchSlice(plan.WeightBytes(), plan.BufferBytes(), true));
    epilogue_.emplace(task.instruction, task.hero, task.aliases, parameters_);
    patch_ = MakeStaging("patch", shape_.compute_type, plan.products() * plan.lanes);
    outputs_ = MakeStaging("outputs", shape_.compute_type, rows_.outputs * columns_.outputs * plan.width());
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
    next_first_ = Remainder(ir::Ref(block) + plan_.groups, plan_.chunks()) * plan_.chunk;
    const Stmt body =
        ir::Block({ir::Let(part_panel, Quotient(ir::Ref(block), plan_.chunks()) * plan_.panels_per_part),
                   ir::Let(first, Remainder(ir::Ref(block), plan_.chunks()) * plan_.chunk),
                   ir::Let(count, ir::Min(Index(plan_.chunk), Index(plan_.squares()) - ir::Ref(first))),
                   ForSquares([&](const Expr& square, const Place& at) { return Inputs(square, at); }), Products(),
                   ForSquares([&](const Expr& square, const Place& at) { return Outputs(square, at); })});
    const Stmt walk = ir::For(LoopRole::kSerial, block, ir::Ref(group), Index(plan_.blocks()), body, plan_.groups);
    const Stmt nest = ir::For(LoopRole::kParallel, group, Index(0), Index(plan_.groups), walk);
    return MakeDraft("winograd", parameters_, ir::Block({ir::DeclareArray(patch_), ir::DeclareArray(outputs_), nest}));
  }

 private:
  Expr Vector(const ir::BufferRef& buffer, const Expr& at) const { return ir::Load(buffer, ir::Ramp(at, lanes_)); }
  Stmt Write(const ir::BufferRef& buffer, const Expr& at, const Expr& x) const {
    return ir::Store(buffer, ir::Ramp(at, lanes_), x);
  }

  // Where a square of the whole result has its first output.
  struct Place {
    Expr image, top, left;
  };
  Place PlaceOf(const Expr& square) const {
    const auto first = [](const Expr& number, const WinogradForm& form, int64_t dilation) {
      return Quotient(number, dilation) * (form.outputs * dilation) + Remainder(number, dilation);
    };
    const Expr down = Remainder(Quotient(square, plan_.squares_wide), plan_.squares_high);
    return {Quotient(square, plan_.squares_high * plan_.squares_wide), first(down, rows_, shape_.rows.dilation),
            first(Remainder(square, plan_.squares_wide), columns_, shape_.columns.dilation)};
  }

  // body(number within the chunk, its place)
  template <typename Body>
  Stmt ForSquares(const Body& body) {
    const ir::Var square = IndexVar("square", plan_.chunk), image = IndexVar("image", shape_.batch);
    const ir::Var top = IndexVar("top", plan_.squares_high * rows_.outputs),
                  left = IndexVar("left", plan_.squares_wide * columns_.outputs);
    const Place at = PlaceOf(first_ + ir::Ref(square));
    const Stmt inner = body(ir::Ref(square), Place{ir::Ref(image), ir::Ref(top), ir::Ref(left)});
    return Loop(square, count_,
                ir::Block({ir::Let(image, at.image), ir::Let(top, at.top), ir::Let(left, at.left), inner}));
  }

  // [product][square][channel]
  Stmt Inputs(const Expr& square, const Place& at) const {
    const ir::Var channel = IndexVar("channel", shape_.channels), row = IndexVar("row", rows_.points()),
                  column = IndexVar("column", columns_.points());
    const auto place = [](const char* name, const ConvolutionDimension& d, int64_t squares, const WinogradForm& form) {
      return ir::MakeIndex(name, -d.low, squares * form.outputs + form.points() * d.dilation - d.low, kIndex);
    };
    const ir::Var y = place("y", shape_.rows, plan_.squares_high, rows_),
                  x = place("x", shape_.columns, plan_.squares_wide, columns_);
    const auto within = [](const ir::Var& at, int64_t end) {
      return ir::And(ir::Compare(Op::kGe, ir::Ref(at), Index(0)), ir::Ref(at) < Index(end));
    };
    const Expr pixel = (at.image * shape_.rows.in + ir::Ref(y)) * shape_.columns.in + ir::Ref(x);
    const Expr value = ir::Cast(Vector(input_, pixel * shape_.channels + ir::Ref(channel)), shape_.compute_type);
    const Expr in_patch = (ir::Ref(row) * columns_.points() + ir::Ref(column)) * plan_.lanes;
    const Stmt gather = Loop(
        row, Index(rows_.points()),
        ir::Block({ir::Let(y, at.top + ir::Ref(row) * shape_.rows.dilation - shape_.rows.low),
                   Loop(column, Index(columns_.points()),
                        ir::Block({ir::Let(x, at.left + ir::Ref(column) * shape_.columns.dilation - shape_.columns.low),
                                   ir::If(ir::And(within(y, shape_.rows.in), within(x, shape_.columns.in)),
                                          Write(patch_, in_patch, value),
                                          Write(patch_, in_patch, ir::Zero({shape_.compute_type, lanes_})))}))}));
    const auto at_row = [&](int64_t i) { return (ir::Ref(row) * columns_.points() + i) * plan_.lanes; };
    const Stmt rows = Apply(
        InputAtPoints, columns_, columns_.points(), [&](int64_t i) { return Vector(patch_, at_row(i)); },
        [&](int64_t i, const Expr& v) { return Write(patch_, at_row(i), v); });
    const int64_t of_product = plan_.chunk * plan_.InputPitch();
    const Expr to = inputs_at_ + ir::Ref(column) * of_product + square * plan_.InputPitch() + ir::Ref(channel);
    const Stmt columns = Apply(
        InputAtPoints, rows_, rows_.points(),
        [&](int64_t i) { return Vector(patch_, (ir::Ref(column) + i * columns_.points()) * plan_.lanes); },
        [&](int64_t i, const Expr& v) { return Write(buffer_, to + i * columns_.points() * of_product, v); });
    const Stmt body =
        ir::Block({gather, Loop(row, Index(rows_.points()), rows), Loop(column, Index(columns_.points()), columns)});
    return Loop(channel, Index(shape_.channels), body, plan_.lanes);
  }

  // [product][square][feature]; the last tile of a chunk multiplies what an earlier chunk left behind its squares.
  Stmt Products() const {
    const ir::Var product = IndexVar("product", plan_.products()), panel = IndexVar("panel", plan_.panels);
    const ir::Var square = IndexVar("tile", plan_.chunk), k = IndexVar("k", shape_.channels);
    const ir::Var lhs = ir::MakeVar("lhs_at", kIndex), rhs = ir::MakeVar("rhs_at", kIndex);
    const RegisterTile tile("acc", plan_.tile_rows, plan_.vectors, {shape_.compute_type, lanes_});
    const int64_t width = plan_.width(), pitch = plan_.InputPitch();
    const Expr row = ir::Ref(product) * plan_.chunk + ir::Ref(square);
    const Stmt step =
        tile.Step([&](int64_t r) { return ir::Load(buffer_, ir::Ref(lhs) + ir::Ref(k) + r * pitch); },
                  [&](int64_t v) { return Vector(weights_, ir::Ref(rhs) + ir::Ref(k) * width + v * plan_.lanes); });
    const Expr to = products_at_ + row * plan_.OutputPitch() + (ir::Ref(panel) - first_panel_) * width;
    const Sending sending = SendingOf(ir::Ref(product), ir::Ref(square), ir::Ref(panel), ir::Ref(k));
    const Stmt body = ir::Block(
        {ir::Let(lhs, inputs_at_ + row * pitch),
         ir::Let(rhs, (ir::Ref(product) * plan_.panels + ir::Ref(panel)) * (shape_.channels * width)), sending.before,
         tile.Declare(),
         Loop(k, Index(shape_.channels),
              ir::Block({SendForNextPanel(ir::Ref(rhs) + ir::Ref(k) * width), sending.step, step})),
         tile.Store(buffer_, [&](int64_t r, int64_t v) { return to + (r * plan_.OutputPitch() + v * plan_.lanes); })});
    return Loop(product, Index(plan_.products()),
                opencl::Loop(panel, first_panel_, end_panel_, Loop(square, count_, body, plan_.tile_rows)));
  }

  // While the tiles of a panel find it in the second cache, the one behind it comes from the last.
  Stmt SendForNextPanel(const Expr& at) const {
    return PrefetchLines(weights_, at + shape_.channels * plan_.width(), plan_.width(), ir::CacheLevel::kSecond);
  }

  // What products do beside, so that memory works while they multiply: the tiles of the last ones send for where their
  // squares' outputs will be stored, and for the inputs of as many squares of the group's next block, a line each step.
  struct Sending {
    Stmt before, step;
  };
  Sending SendingOf(const Expr& product, const Expr& tile, const Expr& panel, const Expr& k) const {
    if (!plan_.is_far) return {};
    const int64_t products = std::min(plan_.tile_rows, plan_.products());
    const Expr of_tile = product - (plan_.products() - products), square = tile + of_tile;
    const Expr sends = ir::And(ir::Compare(Op::kGe, of_tile, Index(0)), square < count_);
    std::vector<Stmt> before, steps;
    const auto named = [&](const std::string& name, const Expr& value) {
      const ir::Var var = ir::MakeVar(name, kIndex);
      before.push_back(ir::Let(var, value));
      return ir::Ref(var);
    };
    const auto send = [&](const std::string& name, const Expr& number, const Expr& is_there, int64_t lines, auto line) {
      const Expr end = named(name + "_lines", ir::Select(is_there, Index(std::min(lines, shape_.channels)), Index(0)));
      const Place at = PlaceOf(number);
      const Place place{named(name + "_image", at.image), named(name + "_top", at.top), named(name + "_left", at.left)};
      steps.push_back(ir::If(k < end, line(place)));
    };
    const int64_t outputs = rows_.outputs * columns_.outputs;

    const int64_t result_line = kLineBytes / hlo::BytesOf(shape_.compute_type);
    const int64_t of_panel = CeilDiv(plan_.width(), result_line);
    send("result", first_ + square, sends, outputs * of_panel, [&](const Place& at) {
      const Expr pixel = Quotient(k, of_panel), feature = panel * plan_.width() + Remainder(k, of_panel) * result_line;
      return epilogue_->SendForRun(
          OutputAt(at, Quotient(pixel, columns_.outputs), Remainder(pixel, columns_.outputs), feature), result_line);
    });

    // The pixels of a row of a square lie side by side.
    const int64_t line = kLineBytes / hlo::BytesOf(shape_.input_type);
    const int64_t of_row = CeilDiv(columns_.outputs * shape_.channels, line);
    const int64_t lines = CeilDiv(rows_.outputs * of_row, plan_.panels_per_part);
    const Expr next = next_first_ + square;
    send("next", next, ir::And(sends, next < Index(plan_.squares())), lines, [&](const Place& at) {
      const Expr number = (panel - first_panel_) * lines + k;
      const Expr pixel = (at.image * shape_.rows.in + at.top + Quotient(number, of_row)) * shape_.columns.in + at.left;
      return ir::Prefetch(input_, pixel * shape_.channels + Remainder(number, of_row) * line, ir::CacheLevel::kSecond);
    });
    return {ir::Block(std::move(before)), ir::Block(std::move(steps))};
  }

  Stmt Outputs(const Expr& square, const Place& at) const {
    const ir::Var panel = IndexVar("panel", plan_.panels);
    const int64_t tail = shape_.features % plan_.width(), whole = shape_.features / plan_.width();
    const Stmt back = Back(square, ir::Ref(panel));
    Stmt store;
    if (tail == 0)
      store = StorePanel(at, ir::Ref(panel), plan_.width());
    else if (whole == 0)
      store = StorePanel(at, ir::Ref(panel), tail);
    else
      store = ir::If(ir::Ref(panel) < Index(whole), StorePanel(at, ir::Ref(panel), plan_.width()),
                     StorePanel(at, ir::Ref(panel), tail));
    return opencl::Loop(panel, first_panel_, end_panel_, ir::Block({back, store}));
  }

  // One panel's outputs of a square: [row][column][feature of the panel].
  Stmt Back(const Expr& square, const Expr& panel) const {
    const ir::Var piece = IndexVar("piece", plan_.width()), row = IndexVar("row", rows_.points()),
                  column = IndexVar("column", columns_.outputs);
    const int64_t of_product = plan_.chunk * plan_.OutputPitch();
    const Expr from = products_at_ + ir::Ref(row) * (columns_.points() * of_product) + square * plan_.OutputPitch() +
                      (panel - first_panel_) * plan_.width() + ir::Ref(piece);
    const Stmt rows = Apply(
        OutputsFromPoints, columns_, columns_.points(),
        [&](int64_t i) { return Vector(buffer_, from + i * of_product); },
        [&](int64_t i, const Expr& v) {
          return Write(patch_, (ir::Ref(row) * columns_.outputs + i) * plan_.lanes, v);
        });
    const Stmt columns = Apply(
        OutputsFromPoints, rows_, rows_.points(),
        [&](int64_t i) { return Vector(patch_, (ir::Ref(column) + i * columns_.outputs) * plan_.lanes); },
        [&](int64_t i, const Expr& v) {
          return Write(outputs_, (ir::Ref(column) + i * columns_.outputs) * plan_.width() + ir::Ref(piece), v);
        });
    return Loop(piece, Index(plan_.width()),
                ir::Block({Loop(row, Index(rows_.points()), rows), Loop(column, Index(columns_.outputs), columns)}),
                plan_.lanes);
  }

  RunIndex OutputAt(const Place& square, const Expr& row, const Expr& column, const Expr& feature) const {
    RunIndex at{{square.image}, static_cast<size_t>(shape_.spatial_rank) + 1};
    if (shape_.spatial_rank == 2) at.index.push_back(square.top + row * shape_.rows.dilation);
    at.index.push_back(square.left + column * shape_.columns.dilation);
    at.index.push_back(feature);
    return at;
  }

  // Outputs that the image has.
  Stmt StorePanel(const Place& square, const Expr& panel, int64_t features) const {
    const ir::Var row = IndexVar("row", rows_.outputs), column = IndexVar("column", columns_.outputs);
    const RunIndex at = OutputAt(square, ir::Ref(row), ir::Ref(column), panel * plan_.width());
    const Expr staged = (ir::Ref(row) * columns_.outputs + ir::Ref(column)) * plan_.width();
    const Stmt run = epilogue_->StoreRun(at, features, plan_.lanes,
                                         [&](const Expr& place) { return ir::Load(outputs_, staged + place); });
    const auto end = [](const ConvolutionDimension& d, const WinogradForm& form, const Expr& first) {
      if (d.out % (form.outputs * d.dilation) == 0) return Index(form.outputs);
      return ir::Min(Index(form.outputs), Quotient(Index(d.out + d.dilation - 1) - first, d.dilation));
    };
    return Loop(row, end(shape_.rows, rows_, square.top),
                Loop(column, end(shape_.columns, columns_, square.left), run));
  }

  const ConvolutionTask& task_;
  const WinogradPlan& plan_;
  const WinogradForm &rows_, &columns_;
  const ConvolutionShape& shape_;
  const int lanes_;
  KernelParameters parameters_;
  ir::BufferRef input_, weights_, buffer_, patch_, outputs_;
  std::optional<Epilogue> epilogue_;
  Expr first_, count_, first_panel_, end_panel_, inputs_at_, products_at_, next_first_;
};

}  // namespace

std::vector<KernelDraft> WinogradKernels(const ConvolutionTask& task, const WinogradPlan& plan) {
  return {WeightKernel(task, plan), Winograd(task, plan).Emit()};
}

}  // namespace hlorun::opencl
