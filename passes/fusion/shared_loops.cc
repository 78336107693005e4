#include "passes/fusion/shared_loops.h"

#include <algorithm>

namespace hlorun::passes {

using hlo::Instruction;

SharedLoops::SharedLoops(const std::vector<const Instruction*>& members) : members_(members.begin(), members.end()) {
  for (const Instruction* member : members) Join(*member);
}

SharedLoops::Tensor SharedLoops::OfOperand(const Instruction& member, int64_t operand) const {
  return TensorOf(PlaceOf(member, operand));
}

SharedLoops::Place SharedLoops::PlaceOf(const Instruction& user, int64_t operand) const {
  const Instruction* value = user.operand(operand);
  if (members_.contains(value)) return {value, nullptr, 0};
  return {value, &user, operand};
}

SharedLoops::Dimension SharedLoops::NewNode(int64_t size) {
  if (size == 1) return {};
  nodes_.push_back({size, -1, {}, false});
  return {static_cast<int>(nodes_.size()) - 1};
}

SharedLoops::Tensor& SharedLoops::Make(const Place& place, const hlo::Shape& shape) {
  const auto [found, is_new] = tensors_.try_emplace(place);
  if (is_new) {
    for (const int64_t size : shape.dimensions()) found->second.push_back(NewNode(size));
  }
  return found->second;
}

SharedLoops::Tensor SharedLoops::TensorOf(const Place& place) const {
  Tensor tensor = tensors_.at(place);
  for (Dimension& dimension : tensor) dimension = Expanded(dimension);
  return tensor;
}

SharedLoops::Dimension SharedLoops::Expanded(const Dimension& dimension) const {
  Dimension loops, work(dimension.rbegin(), dimension.rend());
  while (!work.empty()) {
    const int number = work.back();
    const Node& node = nodes_[static_cast<size_t>(number)];
    work.pop_back();
    if (node.same >= 0) {
      work.push_back(node.same);
    } else if (!node.parts.empty()) {
      work.insert(work.end(), node.parts.rbegin(), node.parts.rend());
    } else {
      loops.push_back(number);
    }
  }
  return loops;
}

void SharedLoops::Split(int node, int64_t major) {
  const Node whole = nodes_[static_cast<size_t>(node)];
  Dimension parts = NewNode(major);
  for (const int minor : NewNode(whole.size / major)) parts.push_back(minor);
  for (const int part : parts) nodes_[static_cast<size_t>(part)].is_blocked = whole.is_blocked;
  nodes_[static_cast<size_t>(node)].parts = std::move(parts);
}

void SharedLoops::Block(const Dimension& dimension) {
  for (const int loop : Expanded(dimension)) nodes_[static_cast<size_t>(loop)].is_blocked = true;
}

void SharedLoops::Unify(const Dimension& a, const Dimension& b) {
  while (true) {
    // Again from the start after each step: it may have changed what lies further on.
    const Dimension of_a = Expanded(a), of_b = Expanded(b);
    const auto [at_a, at_b] = std::mismatch(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
    if (at_a == of_a.end() && at_b == of_b.end()) return;
    if (at_a == of_a.end() || at_b == of_b.end()) break;
    Node &x = nodes_[static_cast<size_t>(*at_a)], &y = nodes_[static_cast<size_t>(*at_b)];
    if (x.size == y.size) {
      y.is_blocked = y.is_blocked || x.is_blocked;
      x.same = *at_b;
    } else if (x.size % y.size == 0) {
      Split(*at_a, y.size);
    } else if (y.size % x.size == 0) {
      Split(*at_b, x.size);
    } else {
      break;
    }
  }
  Block(a);
  Block(b);
}

void SharedLoops::Visit(const Place& place, const hlo::Shape& shape, const spmd::FactorRule::Tensor& tensor,
                        const spmd::FactorRule& rule, std::vector<Dimension>& of_factor) {
  const Tensor loops = Make(place, shape);
  for (size_t d = 0; d < loops.size(); ++d) {
    if (!rule.is_known || tensor[d].empty()) {
      Block(loops[d]);
      continue;
    }
    Dimension factors;
    bool may_cut = true;
    for (const int factor : tensor[d]) {
      Dimension& of_this = of_factor[static_cast<size_t>(factor)];
      const spmd::FactorRule::Factor& described = rule.factors[static_cast<size_t>(factor)];
      if (of_this.empty()) of_this = NewNode(described.size);
      factors.insert(factors.end(), of_this.begin(), of_this.end());
      may_cut = may_cut && described.kind == spmd::FactorKind::kParallel;
    }
    Unify(loops[d], factors);
    if (!may_cut) Block(loops[d]);
  }
}

void SharedLoops::Join(const Instruction& member) {
  if (member.Is(hlo::Opcode::kConstant)) return static_cast<void>(Make({&member, nullptr, 0}, member.shape()));
  const spmd::FactorRule rule = spmd::FactorRuleOf(member);
  std::vector<Dimension> of_factor(rule.factors.size());
  for (int64_t i = 0; i < member.operand_count(); ++i)
    Visit(PlaceOf(member, i), member.operand(i)->shape(), rule.operands[static_cast<size_t>(i)], rule, of_factor);
  Visit({&member, nullptr, 0}, member.shape(), rule.results[0], rule, of_factor);
}

}  // namespace hlorun::passes
