#include "passes/expand/dot.h"

#include <algorithm>

#include "hlo/builder.h"
#include "passes/expand/dot_form.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

bool Contains(const std::vector<int64_t>& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// One operand of a dot: its dimensions by role, in the order in which the form wants them.
struct Side {
  Instruction* value;
  std::vector<int64_t> batch;        // as the dot lists them
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

// A reshape that only adds or drops dimensions of 1, with a transpose behind it.
bool HidesTranspose(const Instruction& value) {
  if (!value.Is(Opcode::kReshape) || !value.operand(0)->Is(Opcode::kTranspose)) return false;
  const hlo::Shape &from = value.operand(0)->shape(), &to = value.shape();
  Dims before, after;
  for (int64_t d : WideDimensions(from)) before.push_back(from.dimension(d));
  for (int64_t d : WideDimensions(to)) after.push_back(to.dimension(d));
  return before == after;
}

// Reads through such a reshape, where it tells nothing of dimensions that are paired with the other side's.
bool AbsorbUnits(Side& side) {
  if (!HidesTranspose(*side.value)) return false;
  const hlo::Shape &from = side.value->operand(0)->shape(), &to = side.value->shape();
  for (const std::vector<int64_t>* paired : {&side.batch, &side.contracting}) {
    for (int64_t d : *paired) {
      if (to.dimension(d) == 1) return false;
    }
  }
  const std::vector<int64_t> wide_from = WideDimensions(from), wide_to = WideDimensions(to);
  const auto renamed = [&](const std::vector<int64_t>& dimensions) {
    std::vector<int64_t> names;
    for (int64_t d : dimensions) {
      const auto at = std::find(wide_to.begin(), wide_to.end(), d);
      if (at != wide_to.end()) names.push_back(wide_from[static_cast<size_t>(at - wide_to.begin())]);
    }
    return names;
  };
  side.batch = renamed(side.batch);
  side.contracting = renamed(side.contracting);
  side.free = renamed(side.free);
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (from.dimension(d) == 1) side.free.push_back(d);
  }
  side.value = side.value->operand(0);
  return true;
}

// Reads through transposes: their dimensions are only renamed.
void AbsorbTransposes(Side& side) {
  while (AbsorbUnits(side) || side.value->Is(Opcode::kTranspose)) {
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

// [B,K,F] or [B,F,K], without B when there is no batch; transposed only when it lies in neither order.
Merged Merge(const Side& side, bool with_batch, hlo::Builder& build) {
  const std::vector<int64_t> free_first = Joined({&side.batch, &side.free, &side.contracting});
  const std::vector<int64_t> contracting_first = Joined({&side.batch, &side.contracting, &side.free});
  Merged merged{side.value, false};
  if (!LiesAs(side, free_first)) {
    // The minor dimension stays minor, so that the transpose copies runs.
    const int64_t minor = side.value->shape().rank() - 1;
    merged.contracting_first = LiesAs(side, contracting_first) || !Contains(side.contracting, minor);
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
  const auto first_rhs = static_cast<int64_t>(lhs.batch.size() + lhs.result_sizes.size());
  const int64_t minor = dot.users()[0]->dimensions().back();
  return minor >= static_cast<int64_t>(lhs.batch.size()) && minor < first_rhs;
}

void Canonicalize(Instruction* dot) {
  const auto& attributes = dot->As<hlo::attr::Dot>();
  Side lhs = MakeSide(dot->operand(0), attributes.lhs_batch, attributes.lhs_contracting);
  Side rhs = MakeSide(dot->operand(1), attributes.rhs_batch, attributes.rhs_contracting);
  AbsorbTransposes(lhs);
  AbsorbTransposes(rhs);
  const bool exchange = WantsExchange(*dot, lhs, rhs);
  if (exchange) std::swap(lhs, rhs);
  OrderContracting(lhs, rhs);

  hlo::Builder build(dot->parent(), dot);
  build.before = dot;
  const Dims batch = lhs.SizesOf(lhs.batch);
  const bool with_batch = hlo::CheckedProduct(batch) != 1;
  const Merged left = Merge(lhs, with_batch, build);
  const Merged right = Merge(rhs, with_batch, build);

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

bool MayImprove(const Instruction& dot) {
  const auto& attributes = dot.As<hlo::attr::Dot>();
  const auto is_static = [](const Instruction* operand) { return operand->shape().IsStatic(); };
  if (dot.operand_count() != 2 || !std::all_of(dot.operands().begin(), dot.operands().end(), is_static)) return false;
  if (!DotFormOf(dot)) return true;
  const auto has_transpose = [](const Instruction* operand) {
    return operand->Is(Opcode::kTranspose) || HidesTranspose(*operand);
  };
  return std::any_of(dot.operands().begin(), dot.operands().end(), has_transpose) ||
         WantsExchange(dot, MakeSide(dot.operand(0), attributes.lhs_batch, attributes.lhs_contracting),
                       MakeSide(dot.operand(1), attributes.rhs_batch, attributes.rhs_contracting));
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

bool CanonicalizeDots::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kDot) || !MayImprove(*instruction)) continue;
      Canonicalize(instruction);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
