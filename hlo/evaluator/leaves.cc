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

Literal Packed(const Shape& shape, const std::vector<Literal>& leaves, size_t& next) {
  if (!shape.IsTuple()) return leaves[next++];
  std::vector<Literal> elements;
  for (const Shape& element : shape.tuple_shapes()) elements.push_back(Packed(element, leaves, next));
  return Literal::Tuple(std::move(elements));
}

void AppendLeaves(const Literal& literal, std::vector<Literal>& leaves) {
  if (!literal.shape().IsTuple()) return leaves.push_back(literal);
  for (const Literal& element : literal.elements()) AppendLeaves(element, leaves);
}

}  // namespace

std::vector<Literal> FlattenLiteral(const Literal& literal) {
  std::vector<Literal> leaves;
  AppendLeaves(literal, leaves);
  return leaves;
}

std::vector<Literal> PackArguments(const Module& module, const std::vector<Literal>& leaves) {
  std::vector<Literal> arguments;
  size_t next = 0;
  for (const Instruction* parameter : module.entry()->parameters()) {
    arguments.push_back(Packed(parameter->shape(), leaves, next));
  }
  return arguments;
}

std::vector<Shape> ArrayLeaves(const Shape& shape) {
  std::vector<Shape> leaves = FlattenShape(shape);
  std::erase_if(leaves, [](const Shape& leaf) { return !leaf.IsArray(); });
  return leaves;
}

std::vector<Literal> ArrayLeaves(const Literal& literal) {
  std::vector<Literal> leaves = FlattenLiteral(literal);
  std::erase_if(leaves, [](const Literal& leaf) { return !leaf.shape().IsArray(); });
  return leaves;
}

Literal AssembleLeaves(const Shape& shape, std::vector<Literal>& leaves) {
  size_t next = 0;
  return Assembled(shape, leaves, next);
}

}  // namespace hlorun::hlo
