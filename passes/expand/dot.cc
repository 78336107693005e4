#include "passes/expand/dot.h"

#include <algorithm>

#include "hlo/builder.h"
#include "passes/dynamic/extents.h"
#include "passes/expand/dot_form.h"

namespace hlorun::passes {

using hlo::Contains;
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// One operand of a dot: its dimensions by role, in the order in which the form wants them.
struct Side {
  Instruction* value;
  std::vector<int64_t> batch;        // as the dot lists them, or what they are merged from
  std::vector<int64_t> contracting;  // as the dot lists them
  std::vector<int64_t> free;         // in the order of the result, units of the operand's alone last
  Dims result_sizes;                 // of the free dimensions in the dot's result

  Dims SizesOf(const std::vector<int64_t>& dimensions) const {
    Dims sizes;
    for (int64_t d : dimensions) sizes.push_back(value->shape().dimension(d));
    return sizes;
  }
  int64_t CountOf(const std::vector<int64_t>& dimensions) const { return hlo::CheckedProduct(SizesOf(dimensions)); }
};

Side MakeSide(Instruction* value, const std::vector<int64_t>& batch, const std::vector<int64_t>& contracting) {
  Side side{value, batch, contracting, {}, {}};
  for (int64_t d = 0; d < value->shape().rank(); ++d) {
    if (!Contains(batch, d) && !Contains(contracting, d)) side.free.push_back(d);
  }
  side.result_sizes = side.SizesOf(side.free);
  return side;
}

std::vector<int64_t> WideDimensions(const hlo::Shape& shape) {
  std::vector<int64_t> wide;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dimension(d) != 1) wide.push_back(d);
  }
  return wide;
}

// For each dimension of `to` those of `from`, units aside, that a reshape merges into it; nothing where it cuts one.
std::optional<std::vector<std::vector<int64_t>>> MergedDimensions(const hlo::Shape& from, const hlo::Shape& to) {
  const std::vector<int64_t> wide = WideDimensions(from);
  std::vector<std::vector<int64_t>> merged(static_cast<size_t>(to.rank()));
  size_t next = 0;
  for (int64_t d = 0; d < to.rank(); ++d) {
    int64_t elements = 1;
    while (elements < to.dimension(d) && next < wide.size()) {
      merged[static_cast<size_t>(d)].push_back(wide[next]);
      elements *= from.dimension(wide[next++]);
    }
    if (elements != to.dimension(d)) return std::nullopt;
  }
  return merged;
}

// A reshape that merges dimensions (a batch's heads), adds or drops those of 1, with a transpose behind it.
bool HidesTranspose(const Instruction& value) {
  return value.Is(Opcode::kReshape) && value.operand(0)->Is(Opcode::kTranspose) && value.shape().ElementCount() > 0 &&
         MergedDimensions(value.operand(0)->shape(), value.shape()).has_value();
}

// Reads through such a reshape, where it tells nothing of dimensions that are paired with the other side's.
bool AbsorbReshape(Side& side) {
  if (!HidesTranspose(*side.value)) return false;
  const hlo::Shape &from = side.value->operand(0)->shape(), &to = side.value->shape();
  const auto merged = *MergedDimensions(from, to);
  const auto are = [&](const std::vector<int64_t>& dimensions, auto&& fits) {
    return std::all_of(dimensions.begin(), dimensions.end(),
                       [&](int64_t d) { return fits(merged[static_cast<size_t>(d)].size()); });
  };
  if (!are(side.batch, [](size_t count) { return count > 0; })) return false;
  if (!are(side.contracting, [](size_t count) { return count == 1; })) return false;
  for (std::vector<int64_t>* role : {&side.batch, &side.contracting, &side.free}) {
    std::vector<int64_t> names;
    for (int64_t d : *role) {
      const std::vector<int64_t>& own = merged[static_cast<size_t>(d)];
      names.insert(names.end(), own.begin(), own.end());
    }
    *role = std::move(names);
  }
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (from.dimension(d) == 1) side.free.push_back(d);
  }
  side.value = side.value->operand(0);
  return true;
}

// Reads through transposes: their dimensions are only renamed.
void AbsorbTransposes(Side& side) {
  while (AbsorbReshape(side) || side.value->Is(Opcode::kTranspose)) {
    const std::vector<int64_t>& permutation = side.value->dimensions();
    for (std::vector<int64_t>* role : {&side.batch, &side.contracting, &side.free}) {
      for (int64_t& d : *role) d = permutation[static_cast<size_t>(d)];
    }
    side.value = side.value->operand(0);
  }
}

std::vector<int64_t> Joined(std::initializer_list<const std::vector<int64_t>*> parts) {
  std::vector<int64_t> all;
  for (const std::vector<int64_t>* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

// Whether the operand's dimensions, units aside, come in this order already.
bool LiesAs(const Side& side, const std::vector<int64_t>& order) {
  std::vector<int64_t> wide;
  for (int64_t d : order) {
    if (side.value->shape().dimension(d) != 1) wide.push_back(d);
  }
  return std::is_sorted(wide.begin(), wide.end());
}

bool FitsSomeForm(const Side& side) {
  return LiesAs(side, Joined({&side.batch, &side.free, &side.contracting})) ||
         LiesAs(side, Joined({&side.batch, &side.contracting, &side.free}));
}

// The order of the contracting pairs is free: take one that spares transposes.
void OrderContracting(Side& lhs, Side& rhs) {
  const auto sort_by = [&](const std::vector<int64_t> key) {
    std::vector<size_t> order(key.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key[a] < key[b]; });
    const std::vector<int64_t> left = lhs.contracting, right = rhs.contracting;
    for (size_t i = 0; i < order.size(); ++i) {
      lhs.contracting[i] = left[order[i]];
      rhs.contracting[i] = right[order[i]];
    }
  };
  sort_by(rhs.contracting);
  if (FitsSomeForm(lhs) && FitsSomeForm(rhs)) return;
  // The left side is most often the activations, the larger one.
  sort_by(lhs.contracting);
}

struct Merged {
  Instruction* value;
  bool contracting_first;
};

// [B,K,F] or [B,F,K], without B when there is no batch; transposed only when it lies in neither order, or when it must
// be the latter.
Merged Merge(const Side& side, bool with_batch, bool free_first_only, hlo::Builder& build) {
  const std::vector<int64_t> free_first = Joined({&side.batch, &side.free, &side.contracting});
  const std::vector<int64_t> contracting_first = Joined({&side.batch, &side.contracting, &side.free});
  Merged merged{side.value, false};
  if (!LiesAs(side, free_first)) {
    // The minor dimension stays minor, so that the transpose copies runs.
    const int64_t minor = side.value->shape().rank() - 1;
    merged.contracting_first =
        !free_first_only && (LiesAs(side, contracting_first) || !Contains(side.contracting, minor));
    if (!LiesAs(side, merged.contracting_first ? contracting_first : free_first)) {
      merged.value = build.Transpose(side.value, merged.contracting_first ? contracting_first : free_first);
    }
  }
  Dims sizes;
  if (with_batch) sizes.push_back(side.CountOf(side.batch));
  sizes.push_back(side.CountOf(merged.contracting_first ? side.contracting : side.free));
  sizes.push_back(side.CountOf(merged.contracting_first ? side.free : side.contracting));
  if (merged.value->shape().dimensions() != sizes) merged.value = build.Reshape(merged.value, sizes);
  return merged;
}

// The only user is a transpose that makes the left side's dimensions the minor ones: then the sides may be exchanged,
// and the transpose that is left keeps the minor dimension.
bool WantsExchange(const Instruction& dot, const Side& lhs, const Side& rhs) {
  if (dot.users().size() != 1 || dot.IsRoot() || !dot.users()[0]->Is(Opcode::kTranspose)) return false;
  if (lhs.result_sizes.empty() || rhs.result_sizes.empty()) return false;
  const size_t batches = dot.As<hlo::attr::Dot>().lhs_batch.size();
  const auto first_rhs = static_cast<int64_t>(batches + lhs.result_sizes.size());
  const int64_t minor = dot.users()[0]->dimensions().back();
  return minor >= static_cast<int64_t>(batches) && minor < first_rhs;
}

// Many rows that lie along what is contracted, by two to four columns: exchanged, the rows are read as they lie, once,
// where lanes would hold four columns at most; the columns and what has to be turned back are little.
bool HasFewColumns(const Instruction& dot, const Side& lhs, const Side& rhs) {
  constexpr int64_t kMostColumns = 4, kFewestRows = 1024, kShortestSum = 16;
  const int64_t columns = rhs.CountOf(rhs.free);
  return dot.As<hlo::attr::Dot>().lhs_batch.empty() && columns >= 2 && columns <= kMostColumns &&
         lhs.CountOf(lhs.free) >= kFewestRows && lhs.CountOf(lhs.contracting) >= kShortestSum &&
         LiesAs(lhs, Joined({&lhs.free, &lhs.contracting}));
}

void Canonicalize(Instruction* dot, bool is_cpu) {
  const auto& attributes = dot->As<hlo::attr::Dot>();
  Side lhs = MakeSide(dot->operand(0), attributes.lhs_batch, attributes.lhs_contracting);
  Side rhs = MakeSide(dot->operand(1), attributes.rhs_batch, attributes.rhs_contracting);
  AbsorbTransposes(lhs);
  AbsorbTransposes(rhs);
  const bool has_few_columns = is_cpu && HasFewColumns(*dot, lhs, rhs);
  const bool exchange = has_few_columns || WantsExchange(*dot, lhs, rhs);
  if (exchange) std::swap(lhs, rhs);
  OrderContracting(lhs, rhs);

  hlo::Builder build(dot->parent(), dot);
  build.before = dot;
  const auto& sizes = dot->shape().dimensions();
  const Dims batch(sizes.begin(), sizes.begin() + static_cast<int64_t>(attributes.lhs_batch.size()));
  const bool with_batch = hlo::CheckedProduct(batch) != 1;
  const Merged left = Merge(lhs, with_batch, has_few_columns, build);
  const Merged right = Merge(rhs, with_batch, false, build);

  hlo::attr::Dot form;
  form.precision = attributes.precision;
  if (exchange && form.precision.size() == 2) std::swap(form.precision[0], form.precision[1]);
  form.algorithm = attributes.algorithm;
  const int64_t first = with_batch ? 1 : 0;
  if (with_batch) form.lhs_batch = form.rhs_batch = {0};
  form.lhs_contracting = {first + (left.contracting_first ? 0 : 1)};
  form.rhs_contracting = {first + (right.contracting_first ? 0 : 1)};
  Instruction* result = build.Dot(left.value, right.value, form, dot->shape().element_type());
  result->frontend_attributes = dot->frontend_attributes;
  result->backend_config = dot->backend_config;

  Dims dimensions = batch;
  for (const Side* side : {&lhs, &rhs}) {
    for (int64_t size : side->result_sizes) dimensions.push_back(size);
  }
  if (result->shape().dimensions() != dimensions) result = build.Reshape(result, dimensions);
  if (exchange) {
    std::vector<int64_t> back(batch.size());
    for (size_t i = 0; i < back.size(); ++i) back[i] = static_cast<int64_t>(i);
    const auto first_left = static_cast<int64_t>(batch.size());
    const auto first_right = first_left + static_cast<int64_t>(lhs.result_sizes.size());
    for (size_t i = 0; i < rhs.result_sizes.size(); ++i) back.push_back(first_right + static_cast<int64_t>(i));
    for (size_t i = 0; i < lhs.result_sizes.size(); ++i) back.push_back(first_left + static_cast<int64_t>(i));
    result = build.Transpose(result, back);
  }
  dot->parent()->Replace(dot, result);
}

// A few rows against each matrix of a batch that lies otherwise than products want it (the keys and values that a
// decoder has kept, [tokens, heads, width]): transposing it would cost more than the product.
constexpr int64_t kFewRows = 4;
constexpr int64_t kLargeMatrix = 1024;

bool IsSumWhereItLies(const Side& few, const Side& matrices) {
  const auto is_masked = [](const Side& side) {
    return std::any_of(side.contracting.begin(), side.contracting.end(), [&](int64_t d) {
      return FilledFrom(*side.value, d, hlo::Literal::Scalar(side.value->shape().element_type(), 0.0)) != nullptr;
    });
  };
  const auto is_float = [](const Side& side) {
    const hlo::ElementType type = side.value->shape().element_type();
    return hlo::IsFloating(type) && hlo::BitsOf(type) >= 16;
  };
  return few.CountOf(few.batch) > 1 && few.CountOf(few.free) <= kFewRows && is_float(few) && is_float(matrices) &&
         matrices.CountOf(matrices.free) * matrices.CountOf(matrices.contracting) >= kLargeMatrix &&
         !FitsSomeForm(matrices) && !is_masked(few) && !is_masked(matrices);
}

// The dot as a sum of products over the matrices as they lie; the rows' free dimensions come before the minor one.
Instruction* SumWhereItLies(Instruction* dot, const Side& few, const Side& matrices, bool few_is_lhs) {
  hlo::Builder build(dot->parent(), dot);
  build.before = dot;
  const hlo::ElementType from = matrices.value->shape().element_type(), result = dot->shape().element_type();
  const bool is_double = from == hlo::ElementType::kF64 || result == hlo::ElementType::kF64;
  const hlo::ElementType type = is_double ? hlo::ElementType::kF64 : hlo::ElementType::kF32;

  const int64_t rank = matrices.value->shape().rank();
  Dims sizes;
  std::vector<int64_t> place_of_matrices, place_of_few(static_cast<size_t>(few.value->shape().rank()), -1);
  for (int64_t d = 0; d < rank; ++d) {
    for (size_t i = 0; d == rank - 1 && i < few.free.size(); ++i) {
      place_of_few[static_cast<size_t>(few.free[i])] = static_cast<int64_t>(sizes.size());
      sizes.push_back(few.value->shape().dimension(few.free[i]));
    }
    place_of_matrices.push_back(static_cast<int64_t>(sizes.size()));
    sizes.push_back(matrices.value->shape().dimension(d));
  }
  const auto pair = [&](const std::vector<int64_t>& own, const std::vector<int64_t>& other) {
    for (size_t i = 0; i < own.size(); ++i)
      place_of_few[static_cast<size_t>(own[i])] = place_of_matrices[static_cast<size_t>(other[i])];
  };
  pair(few.batch, matrices.batch);
  pair(few.contracting, matrices.contracting);

  std::vector<int64_t> order(place_of_few.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return place_of_few[static_cast<size_t>(a)] < place_of_few[static_cast<size_t>(b)];
  });
  std::vector<int64_t> places;
  for (int64_t d : order) places.push_back(place_of_few[static_cast<size_t>(d)]);
  Instruction* rows = std::is_sorted(order.begin(), order.end()) ? few.value : build.Transpose(few.value, order);
  const auto as_sum = [&](Instruction* x) { return x->shape().element_type() == type ? x : build.Convert(x, type); };
  Instruction* matrix = as_sum(matrices.value);
  if (sizes != matrix->shape().dimensions()) matrix = build.Broadcast(matrix, sizes, place_of_matrices);
  Instruction* product = build.Binary(Opcode::kMultiply, build.Broadcast(as_sum(rows), sizes, places), matrix);

  std::vector<int64_t> summed;
  for (int64_t d : matrices.contracting) summed.push_back(place_of_matrices[static_cast<size_t>(d)]);
  std::sort(summed.begin(), summed.end());
  Instruction* sum = build.Reduce({product}, {build.ScalarConstant(type, 0.0)}, summed,
                                  hlo::MakeScalarComputation(dot->module(), Opcode::kAdd, type));
  // Batch, then what is free of the left side, then of the right.
  std::vector<int64_t> wanted;
  const auto add = [&](const std::vector<int64_t>& dimensions, const std::vector<int64_t>& place) {
    for (int64_t d : dimensions) {
      const int64_t at = place[static_cast<size_t>(d)];
      wanted.push_back(at - (std::lower_bound(summed.begin(), summed.end(), at) - summed.begin()));
    }
  };
  add(matrices.batch, place_of_matrices);
  if (few_is_lhs) add(few.free, place_of_few);
  add(matrices.free, place_of_matrices);
  if (!few_is_lhs) add(few.free, place_of_few);
  if (!std::is_sorted(wanted.begin(), wanted.end())) sum = build.Transpose(sum, wanted);
  if (type != result) sum = build.Convert(sum, result);
  return sum->shape().dimensions() == dot->shape().dimensions() ? sum : build.Reshape(sum, dot->shape().dimensions());
}

bool SumInPlaceOfDot(Instruction* dot) {
  const auto& attributes = dot->As<hlo::attr::Dot>();
  if (!attributes.algorithm.empty() || !dot->frontend_attributes.empty()) return false;
  Side lhs = MakeSide(dot->operand(0), attributes.lhs_batch, attributes.lhs_contracting);
  Side rhs = MakeSide(dot->operand(1), attributes.rhs_batch, attributes.rhs_contracting);
  AbsorbTransposes(lhs);
  AbsorbTransposes(rhs);
  if (lhs.SizesOf(lhs.batch) != rhs.SizesOf(rhs.batch)) return false;
  const bool few_is_lhs = IsSumWhereItLies(lhs, rhs);
  if (!few_is_lhs && !IsSumWhereItLies(rhs, lhs)) return false;
  const Side &few = few_is_lhs ? lhs : rhs, &matrices = few_is_lhs ? rhs : lhs;
  dot->parent()->Replace(dot, SumWhereItLies(dot, few, matrices, few_is_lhs));
  return true;
}

bool MayImprove(const Instruction& dot, bool is_cpu) {
  const auto& attributes = dot.As<hlo::attr::Dot>();
  const auto is_static = [](const Instruction* operand) { return operand->shape().IsStatic(); };
  if (dot.operand_count() != 2 || !std::all_of(dot.operands().begin(), dot.operands().end(), is_static)) return false;
  if (!DotFormOf(dot)) return true;
  const auto has_transpose = [](const Instruction* operand) {
    return operand->Is(Opcode::kTranspose) || HidesTranspose(*operand);
  };
  const Side lhs = MakeSide(dot.operand(0), attributes.lhs_batch, attributes.lhs_contracting),
             rhs = MakeSide(dot.operand(1), attributes.rhs_batch, attributes.rhs_contracting);
  return std::any_of(dot.operands().begin(), dot.operands().end(), has_transpose) || WantsExchange(dot, lhs, rhs) ||
         (is_cpu && HasFewColumns(dot, lhs, rhs));
}

}  // namespace

std::optional<DotForm> DotFormOf(const Instruction& dot) {
  if (!dot.Is(Opcode::kDot) || dot.operand_count() != 2) return std::nullopt;
  const auto& attributes = dot.As<hlo::attr::Dot>();
  const hlo::Shape &lhs = dot.operand(0)->shape(), &rhs = dot.operand(1)->shape();
  const auto first = static_cast<int64_t>(attributes.lhs_batch.size());
  if (first > 1 || lhs.rank() != first + 2 || rhs.rank() != first + 2) return std::nullopt;
  if (attributes.lhs_contracting.size() != 1 || attributes.rhs_contracting.size() != 1) return std::nullopt;
  if (first == 1 && (attributes.lhs_batch[0] != 0 || attributes.rhs_batch[0] != 0)) return std::nullopt;
  DotForm form;
  form.has_batch_dimension = first == 1;
  form.batch = first == 1 ? lhs.dimension(0) : 1;
  form.lhs_transposed = attributes.lhs_contracting[0] == first;
  form.rhs_transposed = attributes.rhs_contracting[0] == first + 1;
  form.m = lhs.dimension(first + (form.lhs_transposed ? 1 : 0));
  form.k = lhs.dimension(attributes.lhs_contracting[0]);
  form.n = rhs.dimension(first + (form.rhs_transposed ? 0 : 1));
  return form;
}

bool CanonicalizeDots::Run(hlo::Module& module, PassContext& context) {
  const bool is_cpu = context.device.device_class == DeviceClass::kCpu;
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kDot) || !MayImprove(*instruction, is_cpu)) continue;
      if (!SumInPlaceOfDot(instruction)) Canonicalize(instruction, is_cpu);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
