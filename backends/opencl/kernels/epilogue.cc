#include "backends/opencl/kernels/epilogue.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "backends/opencl/codegen/bf16_pairs.h"
#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/fused_values.h"
#include "backends/opencl/codegen/prefetch_lines.h"
#include "backends/opencl/codegen/transpose_square.h"
#include "backends/opencl/codegen/widener.h"
#include "backends/opencl/kernels/computed_operand.h"
#include "hlo/computation.h"
#include "hlo/error.h"
#include "hlo/known_starts.h"
#include "passes/fusion/stored_result.h"

namespace hlorun::opencl {

using ir::Expr;
using ir::Stmt;

namespace {

bool Contains(const std::vector<hlo::Instruction*>& instructions, const hlo::Instruction* instruction) {
  return std::find(instructions.begin(), instructions.end(), instruction) != instructions.end();
}

// A parameter of the fused computation that something besides the hero and its operands reads.
bool IsSideOperand(const hlo::Instruction& parameter, const hlo::Instruction& hero) {
  return !IsForOperandsOnly(parameter, hero);
}

bool HasKernelType(const hlo::Shape& shape) {
  return shape.IsArray() && shape.IsStatic() && !hlo::IsComplex(shape.element_type());
}

// A constant array inside a fusion would need a place in memory.
bool IsInlineConstant(const hlo::Instruction& instruction) {
  return instruction.IsConstant() && instruction.shape().IsArray() && instruction.literal().IsAllSame();
}

// Vectors that a compiler would keep for this code: constants, and those inside of elementary functions.
int64_t KeptVectors(const Expr& x) {
  constexpr int64_t kVectorsOfFunction = 8;
  static const std::set<std::string> kInstructions = {"fma", "fabs", "fmin", "fmax", "sqrt", "copysign"};
  int64_t count = x->kind == ir::ExprKind::kFloatConstant ? 1 : 0;
  if (x->kind == ir::ExprKind::kCall && !kInstructions.contains(x->function)) count += kVectorsOfFunction;
  for (const Expr& a : x->args) count += KeptVectors(a);
  return count;
}
int64_t KeptVectors(const Stmt& s) {
  int64_t count = s->value ? KeptVectors(s->value) : 0;
  for (const Stmt& b : s->body) count += KeptVectors(b);
  return count;
}
// Beside the sums, a vector of each operand and these, no register is left.
constexpr int64_t kMostKeptVectors = 2;

// Whether each of `dimensions` is a product of neighbours in `parts`.
bool SplitsDimensions(const hlo::Dims& dimensions, const hlo::Dims& parts) {
  size_t part = parts.size();
  for (size_t d = dimensions.size(); d-- > 0;) {
    int64_t product = 1;
    while (product < dimensions[d] && part > 0) product *= parts[--part];
    if (product != dimensions[d]) return false;
  }
  return true;
}

// Rows of a tile, up to whole squares.
int64_t RunLength(const RegisterTile& tile) { return (tile.rows() + tile.lanes() - 1) / tile.lanes() * tile.lanes(); }

}  // namespace

Epilogue::Epilogue(const hlo::Instruction& instruction, const hlo::Instruction& hero, const AliasPattern& aliases,
                   KernelParameters& parameters)
    : instruction_(instruction), hero_(hero) {
  for (const hlo::Shape& shape : hlo::FlattenShape(instruction.shape())) {
    const auto leaf = static_cast<int64_t>(results_.size());
    results_.push_back(parameters.Add(leaf == 0 ? "result" : fmt::format("result{}", leaf), shape.element_type(),
                                      shape.ElementCount(),
                                      {.kind = ArgumentRef::Kind::kResult, .number = leaf, .written = true}));
  }
  if (IsPlain()) return;
  const hlo::Instruction& root = *instruction.called()->root();
  const passes::StoredResult stored = passes::StoredResultOf(root);
  value_ = stored.value;
  if (!stored.way.empty()) {
    switch (root.opcode()) {
      case hlo::Opcode::kReduceWindow: reduction_ = &root; break;
      case hlo::Opcode::kDynamicUpdateSlice: update_ = &root; break;
      default: transpose_ = &root;
    }
  }
  if (update_ != nullptr) starts_ = hlo::KnownStarts(root).value_or(hlo::Dims());
  for (const hlo::Instruction* parameter : instruction.called()->parameters()) {
    const int64_t number = parameter->parameter_number();
    operands_.push_back(nullptr);
    if (!IsSideOperand(*parameter, hero) || (update_ != nullptr && parameter == update_->operand(0))) continue;
    operands_.back() = parameters.Add(fmt::format("side{}", number), parameter->shape().element_type(),
                                      parameter->shape().ElementCount(), {.number = number});
    if (parameter->shape().SameDimensions(hero.shape())) visited_.push_back(operands_.back());
    if (std::find(aliases.begin(), aliases.end(), number) == aliases.end()) continue;
    operands_.back()->restrict_ = false;
    results_[0]->restrict_ = false;
    sends_result_ = false;  // the operand, which lies there, is sent for
  }
}

bool Epilogue::Supports(const hlo::Instruction& instruction, const hlo::Instruction& hero) {
  if (&instruction == &hero) return HasKernelType(instruction.shape());
  const hlo::Computation& computation = *instruction.called();
  const std::vector<hlo::Shape> leaves = hlo::FlattenShape(computation.root()->shape());
  if (leaves.size() > 1 && passes::RowsOfGroup(*computation.root()) == 0) return false;
  if (!std::all_of(leaves.begin(), leaves.end(), HasKernelType)) return false;
  const passes::StoredResult stored = passes::StoredResultOf(*computation.root());
  if (!stored.value->shape().SameDimensions(hero.shape())) return false;
  for (const auto& owned : computation.instructions()) {
    const hlo::Instruction& op = *owned;
    if (&op == &hero || stored.IsOnTheWay(&op)) continue;
    if (!HasKernelType(op.shape())) return false;
    if (IsForOperandsOnly(op, hero)) continue;
    if (op.Is(hlo::Opcode::kParameter) || op.Is(hlo::Opcode::kBroadcast) || op.Is(hlo::Opcode::kIota) ||
        IsInlineConstant(op)) {
      continue;
    }
    if (!IsElementwise(op)) return false;
    // The hero's value is known at one place only.
    if (Contains(op.operands(), &hero) && !op.shape().SameDimensions(hero.shape())) return false;
  }
  return std::none_of(hero.users().begin(), hero.users().end(),
                      [](const hlo::Instruction* user) { return user->Is(hlo::Opcode::kBroadcast); });
}

Expr Epilogue::Linear(const RunIndex& at) const {
  const hlo::Dims strides = hero_.shape().Strides();
  Expr linear = ir::Int(0, ir::kIndex);
  for (size_t d = 0; d < at.index.size(); ++d) linear = linear + at.index[d] * strides[d];
  return linear;
}

Expr Epilogue::StoredAt(const RunIndex& at) const {
  if (transpose_ != nullptr) return RearrangedAt(at);
  if (update_ == nullptr) return Linear(at);
  const hlo::Dims strides = update_->shape().Strides();
  Expr place = ir::Int(0, ir::kIndex);
  for (size_t d = 0; d < at.index.size(); ++d) place = place + (at.index[d] + starts_[d]) * strides[d];
  return place;
}

bool Epilogue::StoresVectors(const RunIndex& at, int64_t lanes) const {
  if (IsPlain()) return true;
  if ((transpose_ == nullptr && update_ == nullptr) || value_ != &hero_) return false;
  if (at.lane_dimension + 1 != at.index.size()) return false;
  return update_ != nullptr || (transpose_->shape().dimensions().back() % lanes == 0 &&
                                KnownFactor(at.index[at.lane_dimension], lanes) == lanes);
}

void Epilogue::PassCaches(int64_t lanes) {
  for (const ir::BufferRef& result : results_)
    result->streams = result->restrict_ && lanes * hlo::BytesOf(result->storage) % kLineBytes == 0;
}

Stmt Epilogue::StorePlain(const RunIndex& at, const Expr& values) const {
  const ir::BufferRef& stored = results_[0];
  Expr result = ir::Cast(values, ir::ComputeType(stored->storage));
  if (stored->storage == hlo::ElementType::kBF16) result = RoundResult(result, stored->storage);
  const Expr place = StoredAt(at);
  const int lanes = values->type.lanes;
  return ir::Store(stored, ir::Ramp(place, lanes), result, stored->streams && KnownFactor(place, lanes) == lanes);
}

Stmt Epilogue::StorePlain(const RunIndex& at, const Expr& first, const Expr& second, bool rounds_pairs) const {
  const int lanes = first->type.lanes;
  if (rounds_pairs && results_[0]->storage == hlo::ElementType::kBF16 &&
      first->type == ir::Type{hlo::ElementType::kF32, 16}) {
    // The order in which the instruction has them is that of the run.
    const Expr words = ir::Call({hlo::ElementType::kU32, lanes}, kRoundToAnyPairs, {first, second});
    return ir::Store(results_[0], ir::Ramp(StoredAt(at), lanes), words);
  }
  RunIndex next = at;
  next.index[at.lane_dimension] = next.index[at.lane_dimension] + lanes;
  return ir::Block({StorePlain(at, first), StorePlain(next, second)});
}

Frame& Epilogue::FrameOf(FusedValues& values) const {
  Frame& frame = values.NewFrame();
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i])
      frame.Bind(instruction_.called()->parameter(static_cast<int64_t>(i)), Frame::InMemory{operands_[i]});
  }
  return frame;
}

Values Epilogue::Finished(FusedValues& values, const Indices& index, const Expr& raw) const {
  const hlo::ElementType hero_type = hero_.shape().element_type();
  Body& body = values.body();
  const Expr product = body.Name(ir::Cast(raw, ir::ComputeType(hero_type)), "product");
  if (IsPlain()) return {{product, nullptr}};
  Frame& frame = FrameOf(values);
  frame.Bind(&hero_, Values{{body.Name(RoundResult(product, hero_type), "rounded"), nullptr}});
  Values finished = {values.Get(frame, *value_, index)};
  for (size_t i = 1; i < results_.size(); ++i)
    finished.push_back(values.Get(frame, *reduction_->operand(static_cast<int64_t>(i)), index));
  return finished;
}

void Epilogue::StoreFinished(FusedValues& values, const Indices& index, const Values& finished) const {
  Indices there = index;
  for (size_t d = 0; d < starts_.size(); ++d) there[d] = values.math().Add(there[d], starts_[d]);
  StoreElement(values, results_[0], instruction_.shape(), there, finished[0]);
}

Stmt Epilogue::StoreSideBySide(const std::vector<RunIndex>& runs, int64_t count, int64_t lanes,
                               const std::function<Expr(size_t run, const Expr& place)>& value) const {
  HLORUN_CHECK(transpose_ == nullptr && reduction_ == nullptr);
  IndexMath math(ir::kIndex);
  Body body;
  FusedValues values(math, body);
  const ir::Var place = ir::MakeIndex("place", 0, count - 1, ir::kIndex);
  const hlo::Dims& dimensions = hero_.shape().dimensions();
  std::vector<Stmt> statements;
  Indices first;
  for (size_t d = 0; d < dimensions.size(); ++d) {
    const ir::Var base = ir::MakeIndex(fmt::format("at{}", d), 0, dimensions[d] - 1, ir::kIndex);
    statements.push_back(ir::Let(base, runs[0].index[d]));
    first.push_back(math.Of(base));
    if (d == runs[0].lane_dimension) first.back() = math.Add(first.back(), math.Of(place));
  }
  std::vector<std::pair<Indices, Values>> finished;
  for (size_t r = 0; r < runs.size(); ++r) {
    Indices index = first;
    index.back() = math.Add(index.back(), static_cast<int64_t>(r));
    Values of_run = Finished(values, index, value(r, ir::Ref(place)));
    finished.emplace_back(std::move(index), std::move(of_run));
  }
  for (const auto& [index, of_run] : finished) StoreFinished(values, index, of_run);
  statements.push_back(ir::For(ir::LoopRole::kVector, place, ir::Int(0, ir::kIndex), ir::Int(count, ir::kIndex),
                               body.Close(), 1, static_cast<int>(lanes)));
  const Stmt stores = ir::Block(std::move(statements));
  return KeptVectors(stores) > kMostKeptVectors ? ir::Outline(stores) : stores;
}

Stmt Epilogue::FinishPlaces(const RunIndex& at, const ir::Var& place, const Expr& begin, const Expr& end, int64_t lanes,
                            const std::function<Expr(const Expr&)>& value, const Sink& sink) const {
  IndexMath math(ir::kIndex);
  Body body;
  FusedValues values(math, body);
  const hlo::Dims& dimensions = hero_.shape().dimensions();
  const bool streams =
      std::any_of(results_.begin(), results_.end(), [](const auto& result) { return result->streams; });
  std::vector<Stmt> statements;
  Indices index;
  for (size_t d = 0; d < at.index.size(); ++d) {
    const ir::Var base = ir::MakeIndex(fmt::format("at{}", d), 0, dimensions[d] - 1, ir::kIndex);
    if (streams) base->factor = KnownFactor(at.index[d], lanes);
    statements.push_back(ir::Let(base, at.index[d]));
    index.push_back(math.Of(base));
    if (d == at.lane_dimension) index.back() = math.Add(index.back(), math.Of(place));
  }
  sink(values, index, Finished(values, index, value(ir::Ref(place))));
  statements.push_back(ir::For(ir::LoopRole::kVector, place, begin, end, body.Close(), 1, static_cast<int>(lanes)));
  return ir::Block(std::move(statements));
}

Stmt Epilogue::StoreRun(const RunIndex& at, int64_t count, int64_t lanes,
                        const std::function<Expr(const Expr&)>& value) const {
  HLORUN_CHECK(reduction_ == nullptr);
  if (transpose_ != nullptr) return StoreRearranged(at, count, lanes, value);
  const ir::Var place = ir::MakeIndex("place", 0, count - 1, ir::kIndex);
  const auto store = [&](FusedValues& values, const Indices& index, const Values& finished) {
    StoreFinished(values, index, finished);
  };
  return FinishPlaces(at, place, ir::Int(0, ir::kIndex), ir::Int(count, ir::kIndex), lanes, value, store);
}

Stmt Epilogue::StoreRows(const ir::Var& row, const Expr& first, const Expr& end, const OfRow& at, int64_t count,
                         int64_t lanes, const std::function<Expr(const Expr&)>& value) const {
  if (reduction_ != nullptr) return ReduceRows(row, first, end, at, count, lanes, value);
  return ir::For(ir::LoopRole::kSerial, row, first, end, StoreRun(at(ir::Ref(row)), count, lanes, value));
}

// Columns are lanes: each is reduced by itself, row by row, in private arrays.
Stmt Epilogue::ReduceRows(const ir::Var& row, const Expr& first, const Expr& end, const OfRow& at, int64_t count,
                          int64_t lanes, const std::function<Expr(const Expr&)>& value) const {
  const RunIndex first_run = at(first);
  const size_t of_rows = first_run.index.size() - 2;
  HLORUN_CHECK(first_run.lane_dimension == of_rows + 1);
  const ir::Var place = ir::MakeIndex("place", 0, count - 1, ir::kIndex);
  const Expr none = ir::Int(0, ir::kIndex), all = ir::Int(count, ir::kIndex);
  std::vector<Stmt> statements;
  std::vector<ir::BufferRef> reduced;
  for (size_t i = 0; i < results_.size(); ++i) {
    const hlo::ElementType type = ir::ComputeType(results_[i]->storage);
    reduced.push_back(MakeStaging(fmt::format("reduced{}", i), type, count));
    statements.push_back(ir::DeclareArray(reduced.back()));
  }
  const auto for_places = [&](const std::function<void(FusedValues&, size_t)>& body_of) {
    IndexMath math(ir::kIndex);
    Body body;
    FusedValues values(math, body);
    for (size_t i = 0; i < results_.size(); ++i) body_of(values, i);
    statements.push_back(ir::For(ir::LoopRole::kVector, place, none, all, body.Close(), 1, static_cast<int>(lanes)));
  };
  for_places([&](FusedValues& values, size_t i) {
    const hlo::Instruction& initial = *reduction_->operand(static_cast<int64_t>(results_.size() + i));
    values.body().Add(ir::Store(reduced[i], ir::Ref(place), values.Get(FrameOf(values), initial, {}).re));
  });
  const auto reduce = [&](FusedValues& values, const Indices&, const Values& finished) {
    Values arguments;
    for (const ir::BufferRef& array : reduced)
      arguments.push_back({values.body().Name(ir::Load(array, ir::Ref(place))), nullptr});
    arguments.insert(arguments.end(), finished.begin(), finished.end());
    const Values both = values.Apply(*reduction_->called(), std::move(arguments));
    for (size_t i = 0; i < reduced.size(); ++i) values.body().Add(ir::Store(reduced[i], ir::Ref(place), both[i].re));
  };
  statements.push_back(ir::For(ir::LoopRole::kSerial, row, first, end,
                               FinishPlaces(at(ir::Ref(row)), place, none, all, lanes, value, reduce)));
  hlo::Dims groups = hero_.shape().dimensions();
  const int64_t of_group = passes::RowsOfGroup(*reduction_);
  groups[of_rows] = (groups[of_rows] + of_group - 1) / of_group;
  Expr group = none;
  for (size_t d = 0; d < groups.size(); ++d) {
    const Expr& index = first_run.index[d];
    group = group * groups[d] +
            (d == of_rows ? ir::Binary(ir::Op::kFloorDiv, index, ir::Int(of_group, ir::kIndex)) : index);
  }
  for_places([&](FusedValues& values, size_t i) {
    values.body().Add(ir::Store(results_[i], group + ir::Ref(place), ir::Load(reduced[i], ir::Ref(place))));
  });
  return ir::Scope(ir::Block(std::move(statements)));
}

// Each of the hero's dimensions is several of the reshape's, as a rule, and its digits depend on its index alone: those
// of the columns are the same for all rows of a tile.
Expr Epilogue::RearrangedAt(const RunIndex& at) const {
  const hlo::Dims &from = transpose_->operand(0)->shape().dimensions(), &dimensions = hero_.shape().dimensions();
  const hlo::Dims strides = transpose_->shape().Strides();
  const auto& order = transpose_->dimensions();
  Expr place = ir::Int(0, ir::kIndex), rest = Linear(at);
  int64_t left = hero_.shape().ElementCount();  // of what `rest` counts
  size_t next = dimensions.size();
  if (SplitsDimensions(dimensions, from)) left = 1;
  for (size_t d = from.size(); d-- > 0;) {
    if (from[d] == 1) continue;
    if (left == 1) {
      while (dimensions[--next] == 1) {
      }
      rest = at.index[next];
      left = dimensions[next];
    }
    const Expr size = ir::Int(from[d], ir::kIndex);
    const Expr digit = left == from[d] ? rest : ir::Binary(ir::Op::kFloorMod, rest, size);
    const auto to = std::find(order.begin(), order.end(), static_cast<int64_t>(d)) - order.begin();
    place = place + digit * strides[static_cast<size_t>(to)];
    rest = ir::Binary(ir::Op::kFloorDiv, rest, size);
    left /= from[d];
  }
  return place;
}

// In pieces that stay together: the run starts at a multiple of them, as far as is plain. Where these are short, most
// runs still cross no multiple of what is together, and go as one.
Stmt Epilogue::StoreRearranged(const RunIndex& at, int64_t count, int64_t lanes,
                               const std::function<Expr(const Expr&)>& value) const {
  const bool is_along = at.lane_dimension + 1 == at.index.size();
  const int64_t together = transpose_->shape().dimensions().back();
  const int64_t piece = is_along ? std::gcd(count, KnownFactor(at.index[at.lane_dimension], together)) : 1;
  const ir::Var begin = ir::MakeIndex("piece", 0, count - 1, ir::kIndex);
  begin->factor = piece;
  const auto store = [&](const Expr& first, int64_t length) {
    const ir::Var place = ir::MakeIndex("place", 0, count - 1, ir::kIndex),
                  stored_at = ir::MakeVar("stored_at", ir::kIndex);
    RunIndex start = at;
    start.index[at.lane_dimension] = start.index[at.lane_dimension] + first;
    const auto store_there = [&](FusedValues& values, const Indices&, const Values& finished) {
      values.body().Add(ir::Store(results_[0], ir::Ref(stored_at) + (ir::Ref(place) - first), finished[0].re));
    };
    return ir::Block({ir::Let(stored_at, RearrangedAt(start)),
                      FinishPlaces(at, place, first, first + length, length == count ? lanes : std::gcd(length, lanes),
                                   value, store_there)});
  };
  const Expr none = ir::Int(0, ir::kIndex), end = ir::Int(count, ir::kIndex);
  Stmt pieces = ir::For(ir::LoopRole::kSerial, begin, none, end, store(ir::Ref(begin), piece), piece);
  if (!is_along || piece >= std::min(count, lanes) || count > together) return pieces;
  const Expr left = ir::Int(together, ir::kIndex) -
                    ir::Binary(ir::Op::kFloorMod, at.index[at.lane_dimension], ir::Int(together, ir::kIndex));
  return ir::If(ir::Compare(ir::Op::kGe, left, end), store(none, count), pieces);
}

Stmt Epilogue::SendForRun(const RunIndex& at, int64_t count) const {
  std::vector<Stmt> lines;
  if (sends_result_ && transpose_ == nullptr && reduction_ == nullptr)
    lines.push_back(PrefetchLines(results_[0], StoredAt(at), count));
  for (const ir::BufferRef& buffer : visited_) lines.push_back(PrefetchLines(buffer, Linear(at), count));
  return ir::Block(std::move(lines));
}

int64_t OperandNumber(const hlo::Instruction& instruction, const hlo::Instruction& hero, int64_t operand) {
  if (&instruction == &hero) return operand;
  const hlo::Instruction* source = hero.operand(operand);
  return source->Is(hlo::Opcode::kParameter) ? source->parameter_number() : -1;
}

ir::BufferRef MakeStaging(const std::string& name, hlo::ElementType type, int64_t elements) {
  ir::BufferRef staging = ir::MakeBuffer(name, type, elements, ir::Buffer::Space::kPrivate, true);
  staging->alignment = 64;
  return staging;
}

Stmt TileStore::EmitDirect(const RegisterTile& tile, const Index& index) const {
  std::vector<Stmt> statements;
  for (int64_t row = 0; row < tile.rows(); ++row) {
    for (int64_t vector = 0; vector < tile.vectors(); ++vector) {
      const RunIndex at = index(ir::Int(row, ir::kIndex), ir::Int(vector * tile.lanes(), ir::kIndex));
      statements.push_back(epilogue_.StorePlain(at, tile.At(row, vector)));
    }
  }
  return ir::Block(std::move(statements));
}

Stmt TileStore::Save(const RegisterTile& tile, const ir::BufferRef& staging) {
  return tile.Store(staging, tile.RowByRow());
}

int64_t TileStore::TurnedElements(const RegisterTile& tile) { return tile.lanes() * RunLength(tile); }

// A vector's columns at a time: transposed square by square, then each is a run.
Stmt TileStore::EmitTurned(const RegisterTile& tile, const ir::BufferRef& staging, const ir::BufferRef& turned,
                           const Expr& first, int64_t columns, const Index& index) const {
  const int64_t lanes = tile.lanes(), length = RunLength(tile);
  const ir::Var vector = ir::MakeIndex("vector", 0, tile.vectors() - 1, ir::kIndex),
                lane = ir::MakeIndex("lane", 0, lanes - 1, ir::kIndex),
                square = ir::MakeIndex("square", 0, tile.rows() - 1, ir::kIndex),
                row = ir::MakeIndex("row", 0, tile.rows() - 1, ir::kIndex);
  std::vector<Stmt> body;
  const bool one = tile.rows() <= lanes;
  const Expr none = ir::Int(0, ir::kIndex), top = one ? none : ir::Ref(square);
  const Stmt transpose = TransposeSquare(
      tile.vector_type(), false,
      [&](int64_t r, int64_t place, int64_t count) {
        // Rows beyond the last repeat it.
        const int64_t last = tile.rows() - 1;
        const Expr row_of_square =
            one ? ir::Int(std::min(r, last), ir::kIndex) : ir::Min(ir::Ref(square) + r, ir::Int(last, ir::kIndex));
        const Expr at = row_of_square * tile.columns() + ir::Ref(vector) * lanes + place;
        return ir::Load(staging, ir::Ramp(at, static_cast<int>(count)));
      },
      [&](int64_t i, const Expr& values) {
        return ir::Store(turned, ir::Ramp(top + i * length, static_cast<int>(lanes)), values);
      });
  body.push_back(
      one ? transpose
          : ir::For(ir::LoopRole::kSerial, square, none, ir::Int(tile.rows(), ir::kIndex), transpose, lanes));
  const Expr column = ir::Ref(vector) * lanes + ir::Ref(lane);
  const auto finished = [&](const Expr& begin, int64_t count, int64_t at_once) {
    return epilogue_.StoreRun(index(begin, column), count, at_once, [&](const Expr& place) {
      return ir::Load(turned, ir::Ref(lane) * length + begin + place);
    });
  };
  Stmt run = finished(none, tile.rows(), lanes);
  if (!ir::IsIntConstant(first, 0)) {
    // Few tiles leave rows out: the last of a column of tiles.
    const Stmt some =
        ir::For(ir::LoopRole::kSerial, row, first, ir::Int(tile.rows(), ir::kIndex), finished(ir::Ref(row), 1, 1));
    run = ir::If(ir::Compare(ir::Op::kEq, first, ir::Int(0, first->type)), run, some);
  }
  const Expr end = columns == tile.columns()
                       ? ir::Int(lanes, ir::kIndex)
                       : ir::Min(ir::Int(lanes, ir::kIndex), ir::Int(columns, ir::kIndex) - ir::Ref(vector) * lanes);
  body.push_back(ir::For(ir::LoopRole::kSerial, lane, none, end, run));
  const Stmt walk =
      ir::For(ir::LoopRole::kSerial, vector, none, ir::Int(tile.vectors(), ir::kIndex), ir::Block(std::move(body)));
  return ir::Block({Save(tile, staging), KeptVectors(run) > kMostKeptVectors ? ir::Outline(walk) : walk});
}

Stmt TileStore::Emit(const RegisterTile& tile, const ir::BufferRef& staging, const Expr& first, const Expr& end,
                     int64_t columns, const Index& index) const {
  return EmitFrom(0, tile, staging, first, end, columns, index);
}

Stmt TileStore::EmitFrom(int64_t begin, const RegisterTile& tile, const ir::BufferRef& staging, const Expr& first,
                         const Expr& end, int64_t columns, const Index& index) const {
  const bool all_rows = ir::IsIntConstant(first, 0) && ir::IsIntConstant(end, tile.rows());
  const bool is_direct = epilogue_.StoresVectors(index(ir::Int(0, ir::kIndex), ir::Int(0, ir::kIndex)), tile.lanes());
  if (is_direct && all_rows && columns == tile.columns()) return EmitDirect(tile, index);
  const ir::Var row = ir::MakeIndex("row", 0, tile.rows() - 1, ir::kIndex);
  const Stmt save = Save(tile, staging);
  const Expr staged = ir::Ref(row) * tile.columns() + begin;
  const auto at = [&](const Expr& of_row) { return index(of_row, ir::Int(begin, ir::kIndex)); };
  const Stmt rows = epilogue_.StoreRows(row, first, end, at, columns - begin, tile.lanes(),
                                        [&](const Expr& place) { return ir::Load(staging, staged + place); });
  const Stmt general = KeptVectors(rows) > kMostKeptVectors ? ir::Outline(rows) : rows;
  if (!is_direct || all_rows || columns != tile.columns()) return ir::Block({save, general});
  // Most tiles are whole: only the last one of a column of tiles recomputes rows of the one before.
  const Expr whole = ir::And(ir::Compare(ir::Op::kEq, first, ir::Int(0, first->type)),
                             ir::Compare(ir::Op::kEq, end, ir::Int(tile.rows(), end->type)));
  return ir::If(whole, EmitDirect(tile, index), ir::Block({save, general}));
}

}  // namespace hlorun::opencl
