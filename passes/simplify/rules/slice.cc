// Slice, dynamic-slice, dynamic-update-slice.
#include <algorithm>

#include "hlo/known_starts.h"
#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

const hlo::attr::Slice& SliceOf(const Instruction& slice) { return slice.As<hlo::attr::Slice>(); }

Instruction* ComposeSlices(Match& m) {
  const hlo::attr::Slice &outer = SliceOf(*m.root), &inner = SliceOf(*m[A]);
  Dims starts, limits, strides;
  for (size_t i = 0; i < outer.starts.size(); ++i) {
    const int64_t count = m.dimensions()[i];
    // Where none is taken, the outer start may lie beyond the array; of one, the stride may be any.
    starts.push_back(count == 0 ? 0 : inner.starts[i] + outer.starts[i] * inner.strides[i]);
    strides.push_back(count <= 1 ? 1 : inner.strides[i] * outer.strides[i]);
    // The last element taken, and one past it.
    limits.push_back(count == 0 ? 0 : starts[i] + (count - 1) * strides[i] + 1);
  }
  return m.build.Slice(m[X], starts, limits, strides);
}

Instruction* BroadcastOfSlice(Match& m) {
  const hlo::attr::Slice& slice = SliceOf(*m.root);
  Dims starts, limits, strides;
  for (int64_t d : m[A]->dimensions()) {
    starts.push_back(slice.starts[static_cast<size_t>(d)]);
    limits.push_back(slice.limits[static_cast<size_t>(d)]);
    strides.push_back(slice.strides[static_cast<size_t>(d)]);
  }
  return m.build.Broadcast(m.build.Slice(m[X], starts, limits, strides), m.dimensions(), m[A]->dimensions());
}

// The operand of the concatenate A that holds all of the slice, and where in A it starts; null when there is none.
std::pair<Instruction*, int64_t> HolderOf(const Match& m) {
  const int64_t dimension = m[A]->dimensions().at(0);
  const auto d = static_cast<size_t>(dimension);
  int64_t start = 0;
  for (Instruction* operand : m[A]->operands()) {
    const int64_t end = start + operand->shape().dimension(dimension);
    if (SliceOf(*m.root).starts[d] >= start && SliceOf(*m.root).limits[d] <= end) return {operand, start};
    start = end;
  }
  return {nullptr, 0};
}

Instruction* SliceOfHolder(Match& m) {
  const auto [holder, offset] = HolderOf(m);
  hlo::attr::Slice slice = SliceOf(*m.root);
  const auto d = static_cast<size_t>(m[A]->dimensions().at(0));
  slice.starts[d] -= offset;
  slice.limits[d] -= offset;
  return m.build.Slice(holder, slice.starts, slice.limits, slice.strides);
}

// Whether `slice` takes whole rows of `rows`, each of the last dimension of what `rows` reshapes, and that merges its
// last two dimensions alone.
bool TakesWholeRows(const Instruction& slice, const Instruction& rows) {
  const Dims &apart = rows.operand(0)->shape().dimensions(), &together = rows.shape().dimensions();
  if (rows.shape().ElementCount() == 0 || together.empty() || apart.size() != together.size() + 1 ||
      !std::equal(apart.begin(), apart.end() - 2, together.begin())) {
    return false;
  }
  const size_t last = together.size() - 1;
  const int64_t row = apart.back();
  const hlo::attr::Slice& taken = SliceOf(slice);
  return row > 0 && taken.starts[last] % row == 0 && taken.limits[last] % row == 0 && taken.strides[last] == 1;
}

// Columns side by side, of which parts are taken: as a shuffle of channels is followed by a split of them. A few of
// each, for every part becomes slices of all columns.
bool TakesRowsOfColumns(const Match& m) {
  constexpr int64_t kMostColumns = 4;
  constexpr size_t kMostParts = 8;
  if (m[B]->operand_count() > kMostColumns || m[A]->users().size() > kMostParts) return false;
  return m[B]->dimensions()[0] + 1 == m[B]->shape().rank() && m[B]->users().size() == 1 &&
         std::all_of(m[A]->users().begin(), m[A]->users().end(),
                     [&](const Instruction* user) { return user->Is(Opcode::kSlice) && TakesWholeRows(*user, *m[A]); });
}

Instruction* ColumnsOfRows(Match& m) {
  hlo::attr::Slice slice = SliceOf(*m.root);
  const int64_t row = m[B]->shape().dimensions().back();
  slice.starts.back() /= row;
  slice.limits.back() /= row;
  slice.starts.push_back(0);
  slice.limits.push_back(0);
  slice.strides.push_back(1);
  std::vector<Instruction*> columns;
  for (Instruction* column : m[B]->operands()) {
    slice.limits.back() = column->shape().dimensions().back();
    columns.push_back(m.build.Slice(column, slice.starts, slice.limits, slice.strides));
  }
  return m.build.Reshape(m.build.Concatenate(columns, m[B]->dimensions()[0]), m.dimensions());
}

bool InsideOfPad(const Match& m) {
  const auto& padding = m[A]->As<hlo::attr::Pad>().padding;
  for (size_t i = 0; i < padding.size(); ++i) {
    const int64_t size = m[X]->shape().dimensions()[i];
    if (padding[i].interior != 0 || SliceOf(*m.root).starts[i] < padding[i].low ||
        SliceOf(*m.root).limits[i] > padding[i].low + size) {
      return false;
    }
  }
  return true;
}

Instruction* SliceOfPadded(Match& m) {
  hlo::attr::Slice slice = SliceOf(*m.root);
  const auto& padding = m[A]->As<hlo::attr::Pad>().padding;
  for (size_t i = 0; i < padding.size(); ++i) {
    slice.starts[i] -= padding[i].low;
    slice.limits[i] -= padding[i].low;
  }
  return m.build.Slice(m[X], slice.starts, slice.limits, slice.strides);
}

// Slices of a padded array, as stencils take them, each become a shifted read of their own: the padded array need not
// be. Where they are many it is read often enough to be made, and vectors have few places where they meet its ends.
bool IsShiftOfFew(const Match& m) {
  constexpr size_t kMostShifts = 9;
  constexpr int64_t kMostPlaces = 4;
  const auto is_shift = [](const Instruction* user) {
    return user->Is(Opcode::kSlice) && std::all_of(SliceOf(*user).strides.begin(), SliceOf(*user).strides.end(),
                                                   [](int64_t stride) { return stride == 1; });
  };
  const auto& padding = m[A]->As<hlo::attr::Pad>().padding;
  const auto is_plain = [](const hlo::PaddingDimension& p) { return p.low >= 0 && p.high >= 0 && p.interior == 0; };
  return !padding.empty() && std::all_of(padding.begin(), padding.end(), is_plain) &&
         padding.back().low + padding.back().high <= kMostPlaces && m[A]->users().size() <= kMostShifts &&
         std::all_of(m[A]->users().begin(), m[A]->users().end(), is_shift) && m.shape().ElementCount() > 0;
}

Instruction* ShiftedPad(Match& m) {
  const hlo::attr::Slice& slice = SliceOf(*m.root);
  std::vector<hlo::PaddingDimension> padding = m[A]->As<hlo::attr::Pad>().padding;
  for (size_t i = 0; i < padding.size(); ++i) {
    padding[i].low -= slice.starts[i];
    padding[i].high -= m[A]->shape().dimensions()[i] - slice.limits[i];
  }
  return m.build.Pad(m[X], m[Y], padding);
}

Instruction* StaticSlice(Match& m) {
  const Dims starts = *hlo::KnownStarts(*m.root);
  Dims limits;
  for (size_t i = 0; i < starts.size(); ++i) limits.push_back(starts[i] + m.dimensions()[i]);
  return m.build.Slice(m.root->operand(0), starts, limits, Dims(starts.size(), 1));
}

// Whether `updated` is `x`, some windows of which have been updated for nobody else.
bool IsUpdateOf(const Instruction* updated, const Instruction* x) {
  while (updated->Is(Opcode::kDynamicUpdateSlice) && updated->users().size() == 1) updated = updated->operand(0);
  return updated == x;
}

// What is selected from an array and an update of it differs in the updated window only.
Instruction* UpdateOfSelected(Match& m, bool updates_on_true) {
  Instruction *mask = m.root->operand(0), *update = m[A];
  const std::vector<Instruction*> starts(update->operands().begin() + 2, update->operands().end());
  const Dims& sizes = update->operand(1)->shape().dimensions();
  const auto select = [&](Instruction* where, Instruction* old, Instruction* updated) {
    return updates_on_true ? m.build.Select(where, updated, old) : m.build.Select(where, old, updated);
  };
  Instruction* before = update->operand(0);
  if (before != m[X]) before = select(mask, m[X], before);
  const bool is_splat = mask->Is(Opcode::kBroadcast) && mask->operand(0)->shape().IsScalar();
  Instruction* part = mask;  // a scalar one selects all
  if (is_splat) {
    part = m.build.Broadcast(mask->operand(0), sizes, {});
  } else if (!mask->shape().IsScalar()) {
    part = m.build.DynamicSlice(mask, starts, sizes);
  }
  Instruction* old = m.build.DynamicSlice(before, starts, sizes);
  return m.build.DynamicUpdateSlice(before, select(part, old, update->operand(1)), starts);
}

// Of an array X and an update A of it, which is on one side or the other.
Rule SelectWithUpdate(std::string_view name, bool updates_on_true, std::string_view positive,
                      std::string_view negative) {
  const Pattern update = Op(Opcode::kDynamicUpdateSlice).As(A).OneUse();
  const Pattern select =
      updates_on_true ? Op(Opcode::kSelect, Any(), update, X) : Op(Opcode::kSelect, Any(), X, update);
  const auto when = [](const Match& m) {
    const bool has_start_for_each = m[A]->operand_count() == 2 + m[A]->shape().rank();
    return has_start_for_each && IsUpdateOf(m[A], m[X]);
  };
  const auto replacement = [updates_on_true](Match& m) { return UpdateOfSelected(m, updates_on_true); };
  return {name, Exactness::kExact, select, when, replacement, positive, negative};
}

}  // namespace

std::vector<Rule> SliceRules() {
  return {
      {"slice_of_all", Exactness::kExact, Op(Opcode::kSlice, X),
       [](const Match& m) { return m[X]->shape().SameAs(m.shape()); }, [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          ROOT r = f32[4] slice(x), slice={[0:4]})",
       R"(x = f32[4] parameter(0)
          ROOT r = f32[3] slice(x), slice={[0:3]})"},
      {"slice_of_slice",
       Exactness::kExact,
       Op(Opcode::kSlice, Op(Opcode::kSlice, X).As(A)),
       {},
       ComposeSlices,
       R"(x = f32[20] parameter(0)
          y = f32[6] slice(x), slice={[3:20:3]}
          ROOT r = f32[2] slice(y), slice={[1:5:2]})",
       R"(x = f32[20] parameter(0)
          y = f32[20] negate(x)
          ROOT r = f32[2] slice(y), slice={[1:3]})"},
      {"slice_of_broadcast",
       Exactness::kExact,
       Op(Opcode::kSlice, Op(Opcode::kBroadcast, X).As(A)),
       {},
       BroadcastOfSlice,
       R"(x = f32[6] parameter(0)
          y = f32[4,6] broadcast(x), dimensions={1}
          ROOT r = f32[2,3] slice(y), slice={[1:3], [0:6:2]})",
       R"(x = f32[4,6] parameter(0)
          ROOT r = f32[2,3] slice(x), slice={[1:3], [0:6:2]})"},
      {"slice_of_concatenate", Exactness::kExact, Op(Opcode::kSlice, Op(Opcode::kConcatenate).As(A)),
       [](const Match& m) { return m.shape().ElementCount() > 0 && HolderOf(m).first != nullptr; }, SliceOfHolder,
       R"(x = f32[4] parameter(0)
          y = f32[5] parameter(1)
          c = f32[9] concatenate(x, y), dimensions={0}
          ROOT r = f32[3] slice(c), slice={[5:8]})",
       R"(x = f32[4] parameter(0)
          y = f32[5] parameter(1)
          c = f32[9] concatenate(x, y), dimensions={0}
          ROOT r = f32[3] slice(c), slice={[3:6]})"},
      {"slice_of_columns", Exactness::kExact,
       Op(Opcode::kSlice, Op(Opcode::kReshape, Op(Opcode::kConcatenate).As(B)).As(A)), TakesRowsOfColumns,
       ColumnsOfRows,
       R"(x = f32[3,8,1] parameter(0)
          y = f32[3,8,2] parameter(1)
          c = f32[3,8,3] concatenate(x, y), dimensions={2}
          r = f32[3,24] reshape(c)
          s = f32[2,12] slice(r), slice={[0:3:2], [0:12]}
          t = f32[3,9] slice(r), slice={[0:3], [12:21]}
          ROOT p = (f32[2,12], f32[3,9]) tuple(s, t))",
       R"(x = f32[3,8,1] parameter(0)
          y = f32[3,8,2] parameter(1)
          c = f32[3,8,3] concatenate(x, y), dimensions={2}
          r = f32[3,24] reshape(c)
          s = f32[3,12] slice(r), slice={[0:3], [0:12]}
          t = f32[3,9] slice(r), slice={[0:3], [11:20]}
          ROOT p = (f32[3,12], f32[3,9]) tuple(s, t))"},
      {"slice_inside_of_pad", Exactness::kExact, Op(Opcode::kSlice, Op(Opcode::kPad, X, Y).As(A)), InsideOfPad,
       SliceOfPadded,
       R"(x = f32[4] parameter(0)
          z = f32[] parameter(1)
          p = f32[7] pad(x, z), padding=1_2
          ROOT r = f32[3] slice(p), slice={[2:5]})",
       R"(x = f32[4] parameter(0)
          z = f32[] parameter(1)
          p = f32[7] pad(x, z), padding=1_2
          ROOT r = f32[3] slice(p), slice={[0:3]})"},
      {"slice_of_pad_for_slices", Exactness::kExact, Op(Opcode::kSlice, Op(Opcode::kPad, X, Y).As(A)), IsShiftOfFew,
       ShiftedPad,
       R"(x = f32[6,4] parameter(0)
          z = f32[] parameter(1)
          p = f32[8,7] pad(x, z), padding=1_1x1_2
          ROOT r = f32[6,4] slice(p), slice={[0:6], [2:6]})",
       R"(x = f32[6,4] parameter(0)
          z = f32[] parameter(1)
          p = f32[8,7] pad(x, z), padding=1_1x1_2
          s = f32[6,4] slice(p), slice={[0:6], [2:6]}
          n = f32[8,7] negate(p)
          ROOT r = (f32[6,4], f32[8,7]) tuple(s, n))"},
      {"dynamic_slice_of_all", Exactness::kExact, Op(Opcode::kDynamicSlice),
       [](const Match& m) { return m.root->operand(0)->shape().SameAs(m.shape()); },
       [](Match& m) { return m.root->operand(0); },
       R"(x = f32[4] parameter(0)
          i = s32[] parameter(1)
          ROOT r = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4})",
       R"(x = f32[4] parameter(0)
          i = s32[] parameter(1)
          ROOT r = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3})"},
      {"dynamic_slice_at_constants", Exactness::kExact, Op(Opcode::kDynamicSlice),
       [](const Match& m) { return hlo::KnownStarts(*m.root).has_value(); }, StaticSlice,
       R"(x = f32[4] parameter(0)
          i = s32[] constant(2)
          ROOT r = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3})",
       R"(x = f32[4] parameter(0)
          i = s32[] parameter(1)
          ROOT r = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3})"},
      {"dynamic_update_of_all", Exactness::kExact, Op(Opcode::kDynamicUpdateSlice),
       [](const Match& m) { return m.root->operand(1)->shape().SameAs(m.shape()); },
       [](Match& m) { return m.root->operand(1); },
       R"(x = f32[4] parameter(0)
          u = f32[4] parameter(1)
          i = s32[] parameter(2)
          ROOT r = f32[4] dynamic-update-slice(x, u, i))",
       R"(x = f32[4] parameter(0)
          u = f32[3] parameter(1)
          i = s32[] parameter(2)
          ROOT r = f32[4] dynamic-update-slice(x, u, i))"},
      SelectWithUpdate("select_of_update", false,
                       R"(x = f32[4] parameter(0)
          u = f32[2] parameter(1)
          i = s32[] parameter(2)
          p = pred[] parameter(3)
          a = f32[4] dynamic-update-slice(x, u, i)
          ROOT r = f32[4] select(p, x, a))",
                       R"(x = f32[4] parameter(0)
          u = f32[2] parameter(1)
          i = s32[] parameter(2)
          b = pred[4] parameter(3)
          y = f32[4] negate(x)
          a = f32[4] dynamic-update-slice(x, u, i)
          ROOT r = f32[4] select(b, y, a))"),
      SelectWithUpdate("select_update_of", true,
                       R"(x = f32[4] parameter(0)
          u = f32[2] parameter(1)
          i = s32[] parameter(2)
          j = s32[] parameter(3)
          b = pred[4] parameter(4)
          a = f32[4] dynamic-update-slice(x, u, i)
          c = f32[4] dynamic-update-slice(a, u, j)
          ROOT r = f32[4] select(b, c, x))",
                       R"(x = f32[4] parameter(0)
          u = f32[2] parameter(1)
          i = s32[] parameter(2)
          b = pred[4] parameter(3)
          a = f32[4] dynamic-update-slice(x, u, i)
          y = f32[4] select(b, a, x)
          ROOT r = (f32[4], f32[4]) tuple(y, a))"),
  };
}

}  // namespace hlorun::passes
