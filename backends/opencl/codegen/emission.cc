#include "backends/opencl/codegen/emission.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/opencl_c.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Index sums stay within twice the largest array: one bit to spare below 2^31.
constexpr int64_t kIndex32Limit = int64_t{1} << 30;
constexpr int64_t kWorkOfCall = 8;
// Of a GPU's element, that several of them may be written out side by side.
constexpr int64_t kMostWorkTogether = 200;

bool ShapeFits(const hlo::Shape& shape) {
  bool fits = true;
  hlo::ForEachLeaf(shape, [&](const hlo::ShapeIndex&, const hlo::Shape& leaf) {
    if (leaf.IsArray()) fits &= leaf.ElementCount() * (hlo::IsComplex(leaf.element_type()) ? 2 : 1) < kIndex32Limit;
  });
  return fits;
}

int64_t WorkOf(const ir::Expr& x) {
  int64_t work = x->kind == ir::ExprKind::kCall ? kWorkOfCall : 1;
  for (const ir::Expr& a : x->args) work += WorkOf(a);
  return work;
}

int64_t DivisionsIn(const ir::Expr& x) {
  const bool divides = x->kind == ir::ExprKind::kBinary && (x->op == ir::Op::kFloorDiv || x->op == ir::Op::kFloorMod);
  int64_t count = divides ? 1 : 0;
  for (const ir::Expr& a : x->args) count += DivisionsIn(a);
  return count;
}

// Of what is loaded, not of where that lies.
int64_t ValueOpsIn(const ir::Expr& x) {
  if (x->kind == ir::ExprKind::kLoad) return 0;
  const bool is_op = x->kind != ir::ExprKind::kVar && x->kind != ir::ExprKind::kCast && !x->args.empty();
  int64_t ops = x->kind == ir::ExprKind::kCall ? kWorkOfCall : is_op ? 1 : 0;
  for (const ir::Expr& a : x->args) ops += ValueOpsIn(a);
  return ops;
}
int64_t ValueOpsIn(const ir::Stmt& s) {
  int64_t ops = s->value ? ValueOpsIn(s->value) : 0;
  for (const ir::Stmt& b : s->body) ops += ValueOpsIn(b);
  return ops;
}

void CollectBuffers(const ir::Expr& x, std::set<const ir::Buffer*>& used) {
  if (x->buffer) used.insert(x->buffer.get());
  for (const ir::Expr& a : x->args) CollectBuffers(a, used);
}
void CollectBuffers(const ir::Stmt& s, std::set<const ir::Buffer*>& used) {
  if (s->buffer) used.insert(s->buffer.get());
  for (const ir::Expr* e : {&s->value, &s->index, &s->begin, &s->end}) {
    if (*e) CollectBuffers(*e, used);
  }
  for (const ir::Stmt& b : s->body) CollectBuffers(b, used);
}

}  // namespace

int64_t WorkOf(const ir::Stmt& s) {
  int64_t work = 0;
  for (const ir::Expr* e : {&s->value, &s->index}) {
    if (*e) work += WorkOf(*e);
  }
  for (const ir::Stmt& b : s->body) work += WorkOf(b);
  if (s->kind != ir::StmtKind::kFor) return work;
  const int64_t extent = ir::ConstantDifference(s->end, s->begin).value_or(16);
  int64_t product = 0;
  const int64_t iterations = std::max<int64_t>(1, extent / s->step->integer);
  return __builtin_mul_overflow(work, iterations, &product) ? INT64_MAX / 2 : product;
}

int64_t DivisionsIn(const ir::Stmt& s) {
  int64_t count = 0;
  for (const ir::Expr* e : {&s->value, &s->index}) {
    if (*e) count += DivisionsIn(*e);
  }
  for (const ir::Stmt& b : s->body) count += DivisionsIn(b);
  return count;
}

bool IsCopy(const ir::Stmt& s) {
  constexpr int64_t kMostOps = 2;
  return !HasLoop(s) && ValueOpsIn(s) <= kMostOps;
}

bool HasLoop(const ir::Stmt& s) {
  const bool is_loop = s->kind == ir::StmtKind::kFor || s->kind == ir::StmtKind::kWhile;
  return is_loop || std::any_of(s->body.begin(), s->body.end(), HasLoop);
}

bool GoesTogether(const ir::Stmt& element) { return !HasLoop(element) && WorkOf(element) <= kMostWorkTogether; }

// Places between the elements of a dilated array, in front of it and behind it.
bool WindowFits(const hlo::WindowDimension& window, int64_t size) {
  const auto product = [](int64_t a, int64_t b) {
    return static_cast<double>(std::max<int64_t>(a, 1)) * static_cast<double>(b);
  };
  const double padding =
      std::abs(static_cast<double>(window.padding_low)) + std::abs(static_cast<double>(window.padding_high));
  return product(size, window.base_dilation) + padding + product(window.size, window.window_dilation) < kIndex32Limit &&
         window.stride < kIndex32Limit;
}

bool WindowsFit(const Instruction& instruction) {
  if (instruction.operand_count() == 0) return true;
  const hlo::Dims& sizes = instruction.operand(0)->shape().dimensions();
  const hlo::Attributes& attributes = instruction.attributes();
  if (const auto* pad = std::get_if<hlo::attr::Pad>(&attributes)) {
    for (size_t d = 0; d < pad->padding.size(); ++d) {
      const auto& [low, high, interior] = pad->padding[d];
      hlo::WindowDimension window{.padding_low = low, .padding_high = high};
      window.base_dilation = std::min(interior, kIndex32Limit) + 1;
      if (!WindowFits(window, sizes[d])) return false;
    }
  } else if (const auto* windowed = std::get_if<hlo::attr::Windowed>(&attributes)) {
    for (size_t d = 0; d < windowed->window.size(); ++d) {
      if (!WindowFits(windowed->window[d], sizes[d])) return false;
    }
  } else if (const auto* convolution = std::get_if<hlo::attr::Convolution>(&attributes)) {
    for (size_t i = 0; i < convolution->window.size(); ++i) {
      const auto d = static_cast<size_t>(convolution->dimensions.input_spatial[i]);
      if (!WindowFits(convolution->window[i], sizes[d])) return false;
    }
  }
  return true;
}

bool FitsIndex32(const Instruction& instruction) {
  bool fits = ShapeFits(instruction.shape()) && WindowsFit(instruction);
  for (const Instruction* operand : instruction.operands()) fits &= ShapeFits(operand->shape());
  for (const hlo::Computation* called : instruction.called_computations()) {
    for (const auto& inner : called->instructions()) fits = fits && FitsIndex32(*inner);
  }
  return fits;
}

Emission::Emission(const Instruction& instruction, const AliasPattern& aliases, const EmitContext& context)
    : instruction_(instruction),
      context_(context),
      math_(FitsIndex32(instruction) ? ir::kIndex32 : ir::kIndex),
      values_(math_, body_) {
  extents_ = passes::ExtentsOf(instruction);
  BindOperands(aliases);
  if (instruction.Is(Opcode::kFusion)) inner_ = &values_.Enter(*inner_, instruction);
  std::vector<std::pair<hlo::Shape, ir::BufferRef>> leaves;
  hlo::ForEachLeaf(instruction.shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& shape) {
    const size_t leaf = leaves.size();
    const bool complex = hlo::IsComplex(shape.element_type());
    ir::BufferRef buffer =
        ir::MakeBuffer(fmt::format("out{}", leaf), hlo::RealOf(shape.element_type()),
                       shape.ElementCount() * (complex ? 2 : 1), ir::Buffer::Space::kGlobal, /*written=*/true);
    const int64_t shared = leaf < aliases.size() ? aliases[leaf] : -1;
    if (shared >= 0) {
      buffer->restrict_ = false;
      in_place_ = true;
    }
    buffer->streams = shared < 0 && !IsGpu() && shape.ByteSize() > context.device.l3_bytes;
    parameters_.emplace_back(
        buffer, ArgumentRef{.kind = ArgumentRef::Kind::kResult, .number = static_cast<int64_t>(leaf), .written = true});
    leaves.emplace_back(shape, buffer);
  });
  for (ResultPart& part : ResultPartsOf(instruction)) {
    const auto& [whole, buffer] = leaves[static_cast<size_t>(part.leaf)];
    outputs_.push_back({std::move(part), inner_, whole, buffer});
  }
  int64_t widest = 4;
  for (const auto& [buffer, argument] : parameters_) widest = std::max<int64_t>(widest, hlo::BytesOf(buffer->storage));
  lanes_ = VectorLanes(context.device, widest);
}

void Emission::BindOperands(const AliasPattern& aliases) {
  Frame& frame = values_.NewFrame();
  inner_ = &frame;
  for (int64_t i = 0; i < instruction_.operand_count(); ++i) {
    const Instruction* operand = instruction_.operand(i);
    const auto first = instruction_.OperandIndex(operand);
    if (first < i) {  // the same array twice is one parameter
      operand_buffers_.push_back(operand_buffers_[static_cast<size_t>(first)]);
      continue;
    }
    if (!operand->shape().IsArray() || (operand->IsConstant() && operand->shape().ElementCount() == 1)) {
      operand_buffers_.push_back(nullptr);
      continue;
    }
    const bool complex = hlo::IsComplex(operand->shape().element_type());
    ir::BufferRef buffer = ir::MakeBuffer(fmt::format("in{}", i), hlo::RealOf(operand->shape().element_type()),
                                          operand->shape().ElementCount() * (complex ? 2 : 1));
    for (const int64_t shared : aliases) {
      if (shared >= 0 && instruction_.operand(shared) == operand) buffer->restrict_ = false;
    }
    frame.Bind(operand, Frame::InMemory{buffer});
    operand_buffers_.push_back(buffer);
    parameters_.emplace_back(buffer, ArgumentRef{.kind = ArgumentRef::Kind::kOperand, .number = i});
  }
}

ir::BufferRef Emission::Scratch(const std::string& name, hlo::ElementType type, int64_t elements, int64_t offset,
                                bool written) {
  const int64_t count = elements * (hlo::IsComplex(type) ? 2 : 1);
  const hlo::ElementType real = hlo::RealOf(type);
  ir::BufferRef buffer = ir::MakeBuffer(name, real, count, ir::Buffer::Space::kGlobal, written);
  parameters_.emplace_back(buffer, ArgumentRef{.kind = ArgumentRef::Kind::kScratch,
                                               .offset = offset,
                                               .bytes = count * hlo::BytesOf(real),
                                               .written = written});
  return buffer;
}

std::optional<passes::OperandExtent> Emission::SharedExtent(
    const std::function<int64_t(const Output&)>& dimension_of) const {
  std::optional<passes::OperandExtent> shared;
  bool first = true;
  for (const Output& output : outputs_) {
    const int64_t dimension = dimension_of(output);
    if (dimension == kNotAsked) continue;
    const bool is_known = dimension != kUnknown && output.IsWhole();
    const auto extent = is_known ? extents_.Of(output.leaf, dimension) : std::nullopt;
    if (!extent || (!first && extent != shared)) return std::nullopt;
    shared = extent;
    first = false;
  }
  return shared;
}

ir::Expr Emission::ValueOf(const passes::OperandExtent& extent, int64_t bound) {
  for (const auto& [key, value] : extent_values_) {
    if (key.first == extent && key.second == bound) return value;
  }
  const Instruction* operand = instruction_.operand(extent.operand);
  const ir::BufferRef buffer = OperandBuffer(extent.operand);
  const ir::Expr size =
      buffer ? ir::Cast(ir::Load(buffer, ir::Int(0)), math_.type().element) : IndexInt(operand->literal().GetInt(0));
  const ir::Var value = ir::MakeIndex(fmt::format("extent{}", extent_values_.size()), 0, bound, math_.type());
  preamble_.push_back(ir::Let(value, ExtentExpr(size, extent, bound)));
  extent_values_.push_back({{extent, bound}, ir::Ref(value)});
  return ir::Ref(value);
}

ir::BufferRef Emission::LocalArray(const std::string& name, hlo::ElementType type, int64_t elements) {
  ir::BufferRef buffer =
      ir::MakeBuffer(body_.FreshName(name), type, elements, ir::Buffer::Space::kLocal, /*written=*/true);
  preamble_.push_back(ir::DeclareArray(buffer));
  return buffer;
}

ir::BufferRef Emission::PrivateArray(const std::string& name, hlo::ElementType type, int64_t elements) {
  ir::BufferRef buffer =
      ir::MakeBuffer(body_.FreshName(name), type, elements, ir::Buffer::Space::kPrivate, /*written=*/true);
  body_.Add(ir::DeclareArray(buffer));
  return buffer;
}

void Emission::Store(const Output& output, const Indices& index, const Value& value) {
  Indices place = index;
  for (size_t d = 0; d < output.starts.size(); ++d) place[d] = math_.Add(place[d], output.starts[d]);
  StoreElement(values_, output.buffer, output.whole, place, value);
}

void Emission::StreamRowsOf(int64_t length, int64_t together) {
  for (const Output& output : outputs_) {
    const int64_t bytes = hlo::BytesOf(output.buffer->storage);
    output.buffer->streams &= length * bytes % kLineBytes == 0 && together * bytes % kLineBytes == 0;
  }
}

EmittedLaunch Emission::Finish(const ir::Stmt& loops, int64_t grain, std::vector<ir::Helper> helpers) {
  std::vector<ir::Stmt> statements = preamble_;
  if (loops->kind == ir::StmtKind::kBlock)
    statements.insert(statements.end(), loops->body.begin(), loops->body.end());
  else
    statements.push_back(loops);
  const ir::Stmt body = preamble_.empty() ? loops : ir::Block(std::move(statements));
  std::set<const ir::Buffer*> used;
  CollectBuffers(body, used);
  helpers.insert(helpers.end(), helpers_.begin(), helpers_.end());
  ir::Function function{.name = kKernelName,
                        .parameters = {},
                        .body = body,
                        .helpers = std::move(helpers),
                        .grain = grain,
                        .group_items = group_items_,
                        .sub_group_items = sub_group_items_};
  EmittedLaunch launch;
  for (const auto& [buffer, argument] : parameters_) {
    if (used.count(buffer.get()) == 0) continue;
    function.parameters.push_back(buffer);
    launch.arguments.push_back(argument);
  }
  launch.overwritten = ir::OverwrittenParameters(function);
  ScheduledKernel scheduled = Schedule(function, context_.device);
  launch.source = ToOpenClC(scheduled, context_.device);
  launch.kernel_ir = ir::ToString(function);
  launch.grid = scheduled.grid;
  launch.kernel = std::make_shared<const ScheduledKernel>(std::move(scheduled));
  return launch;
}

ir::Stmt TileOfElements(Emission& e, const ir::Var& tile, int64_t size, int64_t total,
                        const std::function<void(const Index&)>& body) {
  IndexMath& math = e.math();
  const int64_t lanes = GroupLanes(e.device());
  const auto body_at = [&](const std::vector<Index>& places) {
    e.values().Open();
    for (const Index& place : places) body(place);
    return e.values().Close();
  };
  const ir::Var begin = ir::MakeVar(e.body().FreshName("begin"), math.type());
  const auto loop = [&](const ir::Var& variable, const ir::Expr& end, const ir::Stmt& s) {
    return ir::For(ir::LoopRole::kVector, variable, ir::Ref(begin), end, s, 1, e.Lanes());
  };
  const ir::Var element = e.IndexVar("element", total);
  const ir::Stmt one = body_at({math.Of(element)});
  const ir::Expr end = ir::Ref(begin) + size;
  ir::Stmt elements = loop(element, total % size == 0 ? end : ir::Min(end, e.IndexInt(total)), one);
  if (size == lanes * kTogether && total >= size && GoesTogether(one)) {
    const ir::Var lane = e.IndexVar("lane", total - (size - lanes));
    std::vector<Index> places;
    for (int64_t i = 0; i < kTogether; ++i) places.push_back(math.Add(math.Of(lane), i * lanes));
    const ir::Stmt whole = loop(lane, ir::Ref(begin) + lanes, body_at(places));
    const ir::Expr is_whole = ir::Compare(ir::Op::kLe, ir::Ref(begin), e.IndexInt(total - size));
    elements = total % size == 0 ? whole : ir::If(is_whole, whole, elements);
  }
  return ir::Block({ir::Let(begin, ir::Ref(tile) * size), elements});
}

namespace {

EmittedLaunch OverElementsOnGpu(Emission& e, const hlo::Dims& dims, const std::function<void(const Indices&)>& body) {
  IndexMath& math = e.math();
  const int64_t total = hlo::CheckedProduct(dims), lanes = GroupLanes(e.device());
  const auto body_at = [&](const Index& linear) { body(math.Delinearize(linear, dims)); };
  e.values().Open();
  body_at(math.Of(e.IndexVar("element", total)));
  const int64_t size = GoesTogether(e.values().Close()) ? lanes * kTogether : lanes;
  const ir::Var tile = e.IndexVar("tile", CeilDiv(total, size));
  const ir::Stmt elements = TileOfElements(e, tile, size, total, body_at);
  return e.Finish(ir::For(ir::LoopRole::kParallel, tile, e.IndexInt(0), e.IndexInt(tile->max + 1), elements), 1);
}

// CPU class: a single dimension longer than this is cut for several work-groups.
constexpr int64_t kMostOfTile = 1 << 12, kFewestOfTile = 1 << 8;
// A divisor of `count`, so that loops have a fixed length, unless the only ones are small.
int64_t TileOf(int64_t count) {
  for (int64_t tile = kMostOfTile; tile >= kFewestOfTile; --tile) {
    if (count % tile == 0) return tile;
  }
  return kMostOfTile;
}
EmittedLaunch OverTiles(Emission& e, int64_t count, const std::function<void(const Indices&)>& body) {
  const int64_t size = TileOf(count);
  const bool divides = count % size == 0;
  const ir::Var tile = e.IndexVar("tile", CeilDiv(count, size));
  const ir::Var i = e.IndexVar("i0", divides ? size : count);
  IndexMath& math = e.math();
  e.values().Open();
  body({divides ? math.Add(math.Mul(math.Of(tile), size), math.Of(i)) : math.Of(i)});
  const ir::Expr begin = divides ? e.IndexInt(0) : ir::Ref(tile) * size;
  const ir::Expr end = divides ? e.IndexInt(size) : ir::Min(begin + size, e.IndexInt(count));
  const ir::Stmt elements = ir::For(ir::LoopRole::kVector, i, begin, end, e.values().Close(), 1, e.Lanes());
  const int64_t work = opencl::WorkOf(elements);
  return e.Finish(ir::For(ir::LoopRole::kParallel, tile, e.IndexInt(0), e.IndexInt(tile->max + 1), elements),
                  GrainOf(work));
}

}  // namespace

EmittedLaunch OverElements(Emission& e, const hlo::Dims& dims, const std::function<void(const Indices&)>& body) {
  if (e.IsGpu()) return OverElementsOnGpu(e, dims, body);
  if (dims.size() == 1 && dims[0] > kMostOfTile) return OverTiles(e, dims[0], body);
  std::vector<ir::Var> variables;
  Indices at;
  for (size_t d = 0; d < dims.size(); ++d) {
    variables.push_back(e.IndexVar("i" + std::to_string(d), dims[d]));
    at.push_back(e.math().Of(variables.back()));
  }
  e.values().Open();
  body(at);
  ir::Stmt loops = e.values().Close();
  int64_t work = WorkOf(loops);
  for (size_t d = dims.size(); d-- > 0;) {
    const bool minor = d + 1 == dims.size();
    loops = ir::For(minor ? ir::LoopRole::kVector : ir::LoopRole::kParallel, variables[d], e.IndexInt(0),
                    e.IndexInt(dims[d]), loops, 1, minor ? e.Lanes() : 1);
    if (minor) work = WorkOf(loops);
  }
  return e.Finish(loops, GrainOf(work));
}

EmittedLaunch CopyInto(Emission& e, size_t output, const Frame& frame, const hlo::Instruction& from) {
  const Emission::Output& to = e.outputs()[output];
  return OverElements(e, {to.shape.ElementCount()}, [&](const Indices& linear) {
    const Indices at = e.math().Delinearize(linear[0], to.shape.dimensions());
    e.Store(to, at, e.values().Get(frame, from, at));
  });
}

}  // namespace hlorun::opencl
