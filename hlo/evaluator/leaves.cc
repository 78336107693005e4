#include "hlo/evaluator/leaves.h"

namespace hlorun::hlo {
namespace {

Literal Assembled(const Shape& shape, std::vector<Literal>& leaves, size_t& next) {
  if (shape.IsArray()) return std::move(leaves[next++]);
  if (!shape.IsTuple()) return Literal(shape);
  std::vector<Literal> elements;
  for (const Shape& element : shape.tuple_shapes()) elements.push_back(Assembled(element, leaves, next));
  return Literal::Tuple(std::move(elements));
}

}  // namespace

std::vector<Shape> ArrayLeaves(const Shape& shape) {
  std::vector<Shape> leaves = FlattenShape(shape);
  std::erase_if(leaves, [](const Shape& leaf) { return !leaf.IsArray(); });
  return leaves;
}

void AppendArrayLeaves(const Literal& literal, std::vector<Literal>& leaves) {
  if (literal.shape().IsArray()) leaves.push_back(literal);
  for (const Literal& element : literal.elements()) AppendArrayLeaves(element, leaves);
}

Literal AssembleLeaves(const Shape& shape, std::vector<Literal>& leaves) {
  size_t next = 0;
  return Assembled(shape, leaves, next);
}

}  // namespace hlorun::hlo
