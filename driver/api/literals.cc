#include "driver/api/literals.h"

namespace hlorun {

std::vector<Array> ToDevice(Client& client, const std::vector<hlo::Literal>& literals) {
  std::vector<Array> arrays;
  arrays.reserve(literals.size());
  for (const hlo::Literal& literal : literals) arrays.push_back(client.FromHost(literal.shape(), literal.data()));
  return arrays;
}

hlo::Literal ToLiteral(const Array& array) {
  hlo::Literal literal(array.shape().WithoutLayout());
  array.ToHost(literal.mutable_data());
  return literal;
}

std::vector<hlo::Literal> ToLiterals(const std::vector<Array>& arrays) {
  std::vector<hlo::Literal> literals;
  literals.reserve(arrays.size());
  for (const Array& array : arrays) literals.push_back(ToLiteral(array));
  return literals;
}

}  // namespace hlorun
