#include "passes/dynamic/signature.h"

#include <fmt/format.h>

#include <sstream>

#include "hlo/error.h"

namespace hlorun::passes {
namespace {

constexpr const char* kParameters = "hlorun.size_parameters";
constexpr const char* kResults = "hlorun.size_results";
constexpr const char* kEqual = "hlorun.equal_sizes";
constexpr const char* kWholeResults = "hlorun.whole_size_results";

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Pairs ReadPairs(const hlo::Module& module, const char* name, char separator) {
  Pairs pairs;
  const auto found = module.frontend_attributes.find(name);
  if (found == module.frontend_attributes.end()) return pairs;
  std::stringstream list(found->second);
  for (std::string item; std::getline(list, item, ',');) {
    std::stringstream text(item);
    int64_t first = 0, second = 0;
    char between = 0;
    if (!(text >> first >> between >> second) || between != separator) {
      Invalid("the module's attribute {} is \"{}\": \"{}\" is no pair of numbers", name, found->second, item);
    }
    pairs.emplace_back(first, second);
  }
  return pairs;
}

void WritePairs(hlo::Module& module, const char* name, char separator, const Pairs& pairs) {
  module.frontend_attributes.erase(name);
  std::string text;
  for (const auto& [first, second] : pairs)
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ",", first, separator, second);
  if (!text.empty()) module.frontend_attributes[name] = text;
}

std::vector<DimensionOfLeaf> ToDimensions(const Pairs& pairs) {
  std::vector<DimensionOfLeaf> dimensions;
  for (const auto& [leaf, dimension] : pairs) dimensions.push_back({leaf, dimension});
  return dimensions;
}

Pairs ToPairs(const std::vector<DimensionOfLeaf>& dimensions) {
  Pairs pairs;
  for (const DimensionOfLeaf& d : dimensions) pairs.emplace_back(d.leaf, d.dimension);
  return pairs;
}

}  // namespace

SizeSignature SignatureOf(const hlo::Module& module) {
  return {ToDimensions(ReadPairs(module, kParameters, ':')), ToDimensions(ReadPairs(module, kResults, ':')),
          ReadPairs(module, kEqual, '='), ToDimensions(ReadPairs(module, kWholeResults, ':'))};
}

void SetSignature(hlo::Module& module, const SizeSignature& signature) {
  WritePairs(module, kParameters, ':', ToPairs(signature.parameters));
  WritePairs(module, kResults, ':', ToPairs(signature.results));
  WritePairs(module, kEqual, '=', signature.equal);
  WritePairs(module, kWholeResults, ':', ToPairs(signature.whole_results));
}

std::vector<DimensionOfLeaf> DynamicDimensions(const std::vector<hlo::Shape>& shapes) {
  std::vector<DimensionOfLeaf> dimensions;
  int64_t leaf = 0;
  for (const hlo::Shape& shape : shapes) {
    hlo::ForEachLeaf(shape, [&](const hlo::ShapeIndex&, const hlo::Shape& array) {
      for (int64_t d = 0; d < array.rank(); ++d) {
        if (array.is_dynamic_dimension(d)) dimensions.push_back({leaf, d});
      }
      ++leaf;
    });
  }
  return dimensions;
}

}  // namespace hlorun::passes
