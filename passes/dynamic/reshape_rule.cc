// Lowering of reshapes. Where the dynamic dimension is the slowest of those it is merged with or split into, elements
// stay where they are; else they move, because a smaller array packs them differently.
#include <algorithm>

#include "hlo/error.h"
#include "passes/dynamic/op_lowering.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// Dimensions [in_begin, in_end) of the operand hold the same elements as [out_begin, out_end) of the result.
struct Group {
  size_t in_begin, in_end, out_begin, out_end;
};

std::vector<Group> GroupsOf(const Dims& in, const Dims& out) {
  std::vector<Group> groups;
  size_t i = 0, o = 0;
  while (i < in.size() && o < out.size()) {
    Group group{i, i + 1, o, o + 1};
    int64_t x = in[i++], y = out[o++];
    while (x != y) {
      if (x < y && i < in.size())
        x *= in[i++];
      else if (y < x && o < out.size())
        y *= out[o++];
      else
        break;
    }
    group.in_end = i;
    group.out_end = o;
    groups.push_back(group);
  }
  if (groups.empty()) groups.push_back({0, 0, 0, 0});
  groups.back().in_end = in.size();  // dimensions of one element
  groups.back().out_end = out.size();
  return groups;
}

class ReshapeLowering {
 public:
  explicit ReshapeLowering(OpLowering& at)
      : at_(at), in_(at.OperandShape(0).dimensions()), out_(at.op.shape().dimensions()) {}

  // Sizes of the result where `given` is none; then the elements' places.
  SizedValue Lower(std::vector<Instruction*> given) {
    sizes_ = given.empty() ? std::vector<Instruction*>(out_.size(), nullptr) : std::move(given);
    const bool known = std::any_of(sizes_.begin(), sizes_.end(), [](const Instruction* s) { return s != nullptr; });
    bool moves = false;
    for (const Group& group : GroupsOf(in_, out_)) {
      if (!known) InferSizes(group);
      moves |= Moves(group);
    }
    hlo::Instruction* value = moves ? Pack() : at_.build.Reshape(at_.operand(0).value, out_);
    return {value, sizes_, {}};
  }

 private:
  bool InputIsSized(const Group& group) const {
    for (size_t d = group.in_begin; d < group.in_end; ++d) {
      if (at_.operand(0).sizes[d] != nullptr) return true;
    }
    return false;
  }

  // Where the module does not say it: the dimensions of the result that can only be those of the operand that have
  // sizes, since nothing but dimensions of one element comes or goes, or all are merged into one.
  std::vector<size_t> Followers(const Group& group) const {
    std::vector<size_t> from, to, followers;
    for (size_t d = group.in_begin; d < group.in_end; ++d) {
      if (in_[d] != 1 || at_.operand(0).sizes[d] != nullptr) from.push_back(d);
    }
    for (size_t d = group.out_begin; d < group.out_end; ++d) {
      if (out_[d] != 1) to.push_back(d);
    }
    if (to.size() == 1) return to;
    if (from.size() != to.size()) return {};
    for (size_t i = 0; i < from.size(); ++i) {
      if (in_[from[i]] != out_[to[i]]) return {};
      if (at_.operand(0).sizes[from[i]] != nullptr) followers.push_back(to[i]);
    }
    return followers;
  }

  void InferSizes(const Group& group) {
    if (!InputIsSized(group)) return;
    std::vector<size_t> dynamic;
    for (size_t d = group.out_begin; d < group.out_end; ++d) {
      if (at_.op.shape().is_dynamic_dimension(static_cast<int64_t>(d))) dynamic.push_back(d);
    }
    const int64_t inferred = at_.op.Is(Opcode::kReshape) ? at_.op.As<hlo::attr::Reshape>().inferred_dimension : -1;
    if (dynamic.size() > 1 && std::count(dynamic.begin(), dynamic.end(), static_cast<size_t>(inferred)) == 1) {
      dynamic = {static_cast<size_t>(inferred)};
    }
    if (dynamic.empty()) dynamic = Followers(group);
    if (dynamic.size() != 1) {
      at_.Refuse(
          fmt::format("from {} to {}: which dimension of the result takes the size cannot be told; use dynamic-reshape",
                      at_.OperandShape(0).ToString(false), at_.op.shape().ToString(false)));
    }
    Instruction* total = nullptr;
    int64_t fixed = 1, others = 1;
    for (size_t d = group.in_begin; d < group.in_end; ++d) {
      Instruction* size = at_.operand(0).sizes[d];
      if (size == nullptr)
        fixed *= in_[d];
      else
        total = total == nullptr ? size : at_.build.Binary(Opcode::kMultiply, total, size);
    }
    for (size_t d = group.out_begin; d < group.out_end; ++d) {
      if (d != dynamic[0]) others *= out_[d];
    }
    const bool whole = others > 0 && fixed % others == 0;
    sizes_[dynamic[0]] = whole ? at_.Multiply(total, fixed / others)
                               : at_.Divide(at_.Multiply(total, fixed), std::max<int64_t>(others, 1));
  }

  // Whether only the slowest dimension (ones aside) has a size.
  template <typename IsSized>
  static bool OnlySlowest(const Dims& dims, size_t begin, size_t end, IsSized is_sized) {
    bool slowest = true;
    for (size_t d = begin; d < end; ++d) {
      if (is_sized(d) && !slowest) return false;
      if (dims[d] != 1 || is_sized(d)) slowest = false;
    }
    return true;
  }

  bool Moves(const Group& group) const {
    if (group.in_end - group.in_begin == 1 && group.out_end - group.out_begin == 1) return false;
    return !OnlySlowest(in_, group.in_begin, group.in_end, [&](size_t d) {
      return at_.operand(0).sizes[d] != nullptr;
    }) || !OnlySlowest(out_, group.out_begin, group.out_end, [&](size_t d) { return sizes_[d] != nullptr; });
  }

  Instruction* Spread(Instruction* size, int64_t bound) {
    return at_.build.Broadcast(size != nullptr ? at_.AtLeast(size, 1) : at_.Int(bound), out_, {});
  }

  // Each element of the result: its number among the actual elements, and the place of that one in the operand.
  Instruction* Pack() {
    auto& build = at_.build;
    const hlo::Shape index_shape(hlo::ElementType::kS32, out_);
    Instruction* number = nullptr;
    for (size_t d = 0; d < out_.size(); ++d) {
      Instruction* here = build.Iota(index_shape, static_cast<int64_t>(d));
      if (number != nullptr) here = at_.Add(build.Binary(Opcode::kMultiply, number, Spread(sizes_[d], out_[d])), here);
      number = here;
    }
    if (number == nullptr) number = at_.Int(0);
    Instruction* place = nullptr;
    int64_t stride = 1;
    for (size_t d = in_.size(); d-- > 0;) {
      Instruction* size = Spread(at_.operand(0).sizes[d], std::max<int64_t>(in_[d], 1));
      Instruction* coordinate = d == 0 ? number : build.Binary(Opcode::kRemainder, number, size);
      number = d == 0 ? number : build.Binary(Opcode::kDivide, number, size);
      Instruction* offset =
          stride == 1 ? coordinate
                      : build.Binary(Opcode::kMultiply, coordinate, build.Broadcast(at_.Int(stride), out_, {}));
      place = place == nullptr ? offset : at_.Add(place, offset);
      stride *= in_[d];
    }
    Instruction* flat = build.Reshape(at_.operand(0).value, {hlo::CheckedProduct(in_)});
    hlo::attr::Gather gather;
    gather.collapsed_slice_dims = gather.start_index_map = {0};
    gather.slice_sizes = {1};
    gather.index_vector_dim = static_cast<int64_t>(out_.size());
    return build.Make(Opcode::kGather, {flat, place}, gather);
  }

  OpLowering& at_;
  const Dims in_, out_;
  std::vector<Instruction*> sizes_;
};

}  // namespace

SizedValue LowerReshape(OpLowering& at) { return ReshapeLowering(at).Lower({}); }

SizedValue LowerDynamicReshape(OpLowering& at) {
  std::vector<Instruction*> sizes;
  for (int64_t d = 0; d < at.op.shape().rank(); ++d) {
    const bool dynamic = at.op.shape().is_dynamic_dimension(d);
    sizes.push_back(dynamic ? at.Clamp(at.operand(d + 1).value, 0, at.op.shape().dimension(d)) : nullptr);
  }
  return ReshapeLowering(at).Lower(std::move(sizes));
}

}  // namespace hlorun::passes
