// Scatter.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Contains;
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// What leaves every number of a type as it is: -0 for sums, since 0 would make a 0 of it. Not of types that have no
// such number (f8e4m3fn has no infinity, others no -0).
std::optional<hlo::Literal> NeutralNumber(Opcode opcode, hlo::ElementType type) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool is_float = hlo::IsFloating(type);
  if (!is_float && !hlo::IsInteger(type)) return std::nullopt;
  double number = 1;
  switch (opcode) {
    case Opcode::kAdd: number = is_float ? -0.0 : 0; break;
    case Opcode::kMultiply: break;
    case Opcode::kMaximum: number = -kInfinity; break;
    case Opcode::kMinimum: number = kInfinity; break;
    default: return std::nullopt;
  }
  if (!is_float && std::isinf(number)) return std::nullopt;
  hlo::Literal literal = hlo::Literal::Scalar(type, number);
  const double kept = literal.GetDouble(0);
  if (kept != number || std::signbit(kept) != std::signbit(number)) return std::nullopt;
  return literal;
}

// The sizes, in the operand, of the window that a scatter of one index vector writes; nullopt for other scatters.
std::optional<Dims> SizesOfOneWindow(const Instruction& scatter) {
  const auto& s = scatter.As<hlo::attr::Scatter>();
  if (scatter.operand_count() != 3 || !s.input_batching_dims.empty()) return std::nullopt;
  const hlo::Shape &operand = scatter.operand(0)->shape(), &updates = scatter.operand(2)->shape();
  if (scatter.operand(1)->shape().ElementCount() != static_cast<int64_t>(s.scatter_dims_to_operand_dims.size()))
    return std::nullopt;
  Dims sizes;
  size_t next = 0;
  for (int64_t d = 0; d < operand.rank(); ++d)
    sizes.push_back(Contains(s.inserted_window_dims, d) ? 1 : updates.dimension(s.update_window_dims[next++]));
  if (updates.ElementCount() != hlo::CheckedProduct(sizes)) return std::nullopt;
  return sizes;
}

// A scatter of one window that lies where constants say, inside: where it begins, and its sizes, in the operand.
struct Window {
  Dims starts, sizes;
};
std::optional<Window> OnlyWindow(const Instruction& scatter) {
  const std::optional<Dims> sizes = SizesOfOneWindow(scatter);
  if (!sizes) return std::nullopt;
  const auto& s = scatter.As<hlo::attr::Scatter>();
  const hlo::Shape& operand = scatter.operand(0)->shape();
  const Instruction& indices = *scatter.operand(1);
  const std::optional<hlo::Literal> splat = SplatOf(indices);
  const bool is_known = splat || (indices.IsConstant() && !indices.As<hlo::attr::Constant>().elided);
  if (!is_known) return std::nullopt;
  Window window{Dims(sizes->size(), 0), *sizes};
  for (size_t i = 0; i < s.scatter_dims_to_operand_dims.size(); ++i) {
    const int64_t d = s.scatter_dims_to_operand_dims[i];
    const int64_t start = splat ? splat->GetInt(0) : indices.literal().GetInt(static_cast<int64_t>(i));
    if (start < 0 || start > operand.dimension(d) - window.sizes[static_cast<size_t>(d)]) return std::nullopt;
    window.starts[static_cast<size_t>(d)] = start;
  }
  return window;
}

// A reducer may be of another float type than what it combines (until MatchReducerTypes has been there).
bool IsOfOneType(const Instruction& scatter) {
  const hlo::ElementType type = scatter.shape().element_type();
  return scatter.operand(2)->shape().element_type() == type && scatter.called()->root()->shape().element_type() == type;
}

// Where the window is most of the array: a scatter touches only what it changes.
bool CombinesMost(const Match& m) {
  const auto opcode = hlo::ReducerOpcode(*m.root->called());
  if (!opcode || m.root->operand_count() != 3 || !NeutralNumber(*opcode, m.shape().element_type())) return false;
  if (!IsOfOneType(*m.root)) return false;
  return m.root->operand(2)->shape().ElementCount() * 2 >= m.shape().ElementCount() && OnlyWindow(*m.root).has_value();
}

Instruction* CombinedWithPad(Match& m) {
  const Window window = *OnlyWindow(*m.root);
  const Opcode opcode = *hlo::ReducerOpcode(*m.root->called());
  const hlo::ElementType type = m.shape().element_type();
  Instruction* neutral = m.build.Constant(*NeutralNumber(opcode, type));
  std::vector<hlo::PaddingDimension> padding;
  for (size_t d = 0; d < window.sizes.size(); ++d)
    padding.push_back({window.starts[d], m.dimensions()[d] - window.starts[d] - window.sizes[d], 0});
  Instruction* padded = m.build.Pad(m.build.Reshape(m.root->operand(2), window.sizes), neutral, padding);
  return m.build.Binary(opcode, m.root->operand(0), padded);
}

// Whether `reducer`, of an old value and a new one, is the new one.
bool Stores(const hlo::Computation& reducer) {
  return reducer.root()->Is(Opcode::kParameter) && reducer.root()->parameter_number() == 1;
}

bool UpdatesOneWindow(const Match& m) {
  const std::optional<Dims> sizes = SizesOfOneWindow(*m.root);
  if (!sizes || m.shape().ElementCount() == 0 || m.root->operand(2)->shape().ElementCount() == 0) return false;
  const hlo::Computation& reducer = *m.root->called();
  return (Stores(reducer) || hlo::ReducerOpcode(reducer)) && IsOfOneType(*m.root);
}

// Whether a window of `size` that begins at `start` lies inside of `extent`; null where it always does.
Instruction* IsInside(Match& m, Instruction* start, int64_t size, int64_t extent) {
  const hlo::ElementType type = start->shape().element_type();
  Instruction* inside = nullptr;
  if (hlo::IsSigned(type))
    inside = m.build.Compare(start, m.build.ScalarConstant(type, int64_t{0}), hlo::ComparisonDirection::kGe);
  const hlo::Literal last = hlo::Literal::Scalar(type, extent - size);
  if (last.GetInt(0) != extent - size) return inside;  // a type whose numbers all lie before it
  Instruction* ends = m.build.Compare(start, m.build.Constant(last), hlo::ComparisonDirection::kLe);
  return inside == nullptr ? ends : m.build.Binary(Opcode::kAnd, inside, ends);
}

// dynamic-update-slice, of what lies there combined with the updates; unchanged where the window leaves the array.
Instruction* UpdatedSlice(Match& m) {
  const auto& s = m.root->As<hlo::attr::Scatter>();
  Instruction *operand = m.root->operand(0), *indices = m.root->operand(1);
  const Dims sizes = *SizesOfOneWindow(*m.root);
  const auto count = static_cast<int64_t>(s.scatter_dims_to_operand_dims.size());
  Instruction* vector = m.build.Reshape(indices, {count});
  Instruction* zero = m.build.ScalarConstant(indices->shape().element_type(), int64_t{0});
  std::vector<Instruction*> starts(sizes.size(), zero);
  Instruction* inside = nullptr;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t d = s.scatter_dims_to_operand_dims[static_cast<size_t>(i)];
    const auto at = static_cast<size_t>(d);
    starts[at] = m.build.Reshape(m.build.Slice(vector, {i}, {i + 1}, {1}), {});
    Instruction* here = IsInside(m, starts[at], sizes[at], m.dimensions()[at]);
    if (here != nullptr) inside = inside == nullptr ? here : m.build.Binary(Opcode::kAnd, inside, here);
  }
  Instruction* updates = m.build.Reshape(m.root->operand(2), sizes);
  Instruction* old = m.build.DynamicSlice(operand, starts, sizes);
  const auto opcode = hlo::ReducerOpcode(*m.root->called());
  Instruction* next = opcode ? m.build.Binary(*opcode, old, updates) : updates;
  if (inside != nullptr) next = m.build.Select(m.build.Broadcast(inside, sizes, {}), next, old);
  return m.build.DynamicUpdateSlice(operand, next, starts);
}

// A scatter of one element, or whole lines, to each line of an array of one number: where it lies along the only
// dimension that it is scattered along. What the gradient of a choice by index is: of a cross entropy's logits, say.
struct OneOfEach {
  int64_t dimension = 0;          // that the index is of
  Dims lines, of_lines;           // sizes that the indices run over, and those dimensions of the operand
  Dims update_sizes, of_updates;  // of the updates without sizes of 1, and their dimensions of the operand
};

// The sizes and operand dimensions of the lines; false where the indices are anything else.
bool FindLines(const Instruction& scatter, OneOfEach& found) {
  const auto& s = scatter.As<hlo::attr::Scatter>();
  const hlo::Shape& indices = scatter.operand(1)->shape();
  for (int64_t d = 0; d < indices.rank(); ++d) {
    const auto at = std::find(s.scatter_indices_batching_dims.begin(), s.scatter_indices_batching_dims.end(), d);
    if (at == s.scatter_indices_batching_dims.end()) {
      if (indices.dimension(d) != 1) return false;
      continue;
    }
    found.lines.push_back(indices.dimension(d));
    found.of_lines.push_back(s.input_batching_dims[static_cast<size_t>(at - s.scatter_indices_batching_dims.begin())]);
  }
  return std::is_sorted(found.of_lines.begin(), found.of_lines.end());
}

// Those of the updates, all of which are whole in what is no line.
bool FindUpdates(const Instruction& scatter, OneOfEach& found) {
  const auto& s = scatter.As<hlo::attr::Scatter>();
  const hlo::Shape &operand = scatter.operand(0)->shape(), &updates = scatter.operand(2)->shape();
  Dims windows;  // dimensions of the operand
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (d != found.dimension && !Contains(found.of_lines, d)) windows.push_back(d);
  }
  size_t window = 0, line = 0;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    const bool is_window = Contains(s.update_window_dims, d);
    const int64_t size = updates.dimension(d);
    if (!is_window && (line == found.lines.size() || size != found.lines[line])) {
      if (size != 1) return false;
      continue;
    }
    const int64_t of_operand = is_window ? windows[window++] : found.of_lines[line++];
    if (size != operand.dimension(of_operand)) return false;
    found.update_sizes.push_back(size);
    found.of_updates.push_back(of_operand);
  }
  return line == found.lines.size() && std::is_sorted(found.of_updates.begin(), found.of_updates.end());
}

std::optional<OneOfEach> OneOfEachLine(const Instruction& scatter) {
  const auto& s = scatter.As<hlo::attr::Scatter>();
  const hlo::ElementType index = scatter.operand(1)->shape().element_type();
  const bool is_plain = scatter.operand_count() == 3 && s.scatter_dims_to_operand_dims.size() == 1 &&
                        s.inserted_window_dims == s.scatter_dims_to_operand_dims && !s.input_batching_dims.empty() &&
                        hlo::BitsOf(index) >= 32;
  if (!is_plain || scatter.shape().ElementCount() == 0) return std::nullopt;
  OneOfEach found;
  found.dimension = s.scatter_dims_to_operand_dims[0];
  if (!FindLines(scatter, found) || !FindUpdates(scatter, found)) return std::nullopt;
  return found;
}

bool IsOneOfEachLine(const Match& m) {
  const hlo::Computation& reducer = *m.root->called();
  return SplatOf(*m.root->operand(0)) && (Stores(reducer) || hlo::ReducerOpcode(reducer)) && IsOfOneType(*m.root) &&
         OneOfEachLine(*m.root).has_value();
}

Instruction* SelectedByIndex(Match& m) {
  const OneOfEach found = *OneOfEachLine(*m.root);
  Instruction *indices = m.root->operand(1), *old = m.root->operand(0);
  const hlo::Shape places(indices->shape().element_type(), m.dimensions());
  Instruction* index = m.build.Broadcast(m.build.Reshape(indices, found.lines), m.dimensions(), found.of_lines);
  Instruction* is_here = m.build.Compare(m.build.Iota(places, found.dimension), index, hlo::ComparisonDirection::kEq);
  Instruction* updates = m.build.Reshape(m.root->operand(2), found.update_sizes);
  Instruction* next = m.build.Broadcast(updates, m.dimensions(), found.of_updates);
  if (const auto opcode = hlo::ReducerOpcode(*m.root->called())) next = m.build.Binary(*opcode, old, next);
  return m.build.Select(is_here, next, old);
}

}  // namespace

std::vector<Rule> ScatterRules() {
  return {
      {"scatter_of_one_to_each_line", Exactness::kExact, Op(Opcode::kScatter), IsOneOfEachLine, SelectedByIndex,
       R"(HloModule m
          f { a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT c = f32[] add(a, b) }
          ENTRY e { zero = f32[] constant(0)
              x = f32[6,5,3] broadcast(zero), dimensions={}
              i = s32[6,1,1] parameter(0)
              u = f32[6,1,3] parameter(1)
              ROOT r = f32[6,5,3] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={1},
                scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0},
                index_vector_dim=2, to_apply=f })",
       R"(HloModule m
          f { a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT c = f32[] add(a, b) }
          ENTRY e { zero = f32[] constant(0)
              x = f32[6,5,3] broadcast(zero), dimensions={}
              i = s32[6,2,1] parameter(0)
              u = f32[6,2,3] parameter(1)
              ROOT r = f32[6,5,3] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={1},
                scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0},
                index_vector_dim=2, to_apply=f })"},
      {"scatter_of_one_window", Exactness::kExact, Op(Opcode::kScatter), CombinesMost, CombinedWithPad,
       R"(HloModule m
          f { a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT c = f32[] add(a, b) }
          ENTRY e { x = f32[6,5] parameter(0)
              i = s32[2] constant({1, 0})
              u = f32[4,5] parameter(1)
              ROOT r = f32[6,5] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={},
                scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=f })",
       R"(HloModule m
          f { a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT c = f32[] add(a, b) }
          ENTRY e { x = f32[6,5] parameter(0)
              i = s32[2] constant({3, 0})
              u = f32[4,5] parameter(1)
              ROOT r = f32[6,5] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={},
                scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=f })"},
      {"scatter_at_one_index", Exactness::kExact, Op(Opcode::kScatter), UpdatesOneWindow, UpdatedSlice,
       R"(HloModule m
          f { a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT c = f32[] add(a, b) }
          ENTRY e { x = f32[6,5] parameter(0)
              i = s32[1] parameter(1)
              u = f32[5] parameter(2)
              ROOT r = f32[6,5] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={0},
                scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=f })",
       R"(HloModule m
          f { a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT c = f32[] add(a, b) }
          ENTRY e { x = f32[6,5] parameter(0)
              i = s32[2,1] parameter(1)
              u = f32[2,5] parameter(2)
              ROOT r = f32[6,5] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
                scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f })"},
  };
}

}  // namespace hlorun::passes
