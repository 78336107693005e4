// Which dimensions of the values of a computation are the same loop, by the factor rules of partitioning
// (spmd/factor_rule.h). A dimension that a reshape merges or splits is several loops, major first:
//
//   s = f32[96,197,197] dot(q, k)   r = f32[8,12,197,197] reshape(s)   loops 8, 12, 197 and 197 of both
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "hlo/instruction.h"
#include "passes/spmd/factor_rule.h"

namespace hlorun::passes {

class SharedLoops {
 public:
  using Dimension = std::vector<int>;     // loops, major first; none where the dimension's size is 1
  using Tensor = std::vector<Dimension>;  // by dimension

  // Of the members' values. What they are given by others is asked for use by use: an array that is given twice may be
  // walked by two loops.
  explicit SharedLoops(const std::vector<const hlo::Instruction*>& members);

  Tensor Of(const hlo::Instruction& member) const { return TensorOf({&member, nullptr, 0}); }
  Tensor OfOperand(const hlo::Instruction& member, int64_t operand) const;

  int64_t SizeOf(int loop) const { return nodes_[static_cast<size_t>(loop)].size; }
  // Whether a part of a value needs the same parts of others and nothing more, wherever this loop is one of theirs.
  bool MayCut(int loop) const { return !nodes_[static_cast<size_t>(loop)].is_blocked; }

 private:
  // A loop, or what stands for others: the one that it has been found to be, or its parts.
  struct Node {
    int64_t size = 1;
    int same = -1;
    Dimension parts;
    bool is_blocked = false;
  };
  using Place = std::tuple<const hlo::Instruction*, const hlo::Instruction*, int64_t>;  // value; else user and operand

  void Join(const hlo::Instruction& member);
  void Visit(const Place& place, const hlo::Shape& shape, const spmd::FactorRule::Tensor& tensor,
             const spmd::FactorRule& rule, std::vector<Dimension>& of_factor);
  Place PlaceOf(const hlo::Instruction& user, int64_t operand) const;
  Tensor& Make(const Place& place, const hlo::Shape& shape);
  Tensor TensorOf(const Place& place) const;
  Dimension NewNode(int64_t size);
  void Split(int node, int64_t major);
  void Unify(const Dimension& a, const Dimension& b);
  void Block(const Dimension& dimension);
  Dimension Expanded(const Dimension& dimension) const;

  std::unordered_set<const hlo::Instruction*> members_;
  std::map<Place, Tensor> tensors_;
  std::vector<Node> nodes_;
};

}  // namespace hlorun::passes
