#include "hlo/custom_calls/named_ops.h"

#include <algorithm>
#include <array>

#include "hlo/comparator.h"
#include "hlo/computation.h"
#include "hlo/custom_calls/host_call.h"
#include "hlo/error.h"

namespace hlorun::hlo {
namespace {

struct Named {
  std::string_view name;
  Opcode opcode;
};
constexpr std::array kNamed = {
    Named{"acos", Opcode::kAcos},   Named{"acosh", Opcode::kAcosh}, Named{"asin", Opcode::kAsin},
    Named{"asinh", Opcode::kAsinh}, Named{"atanh", Opcode::kAtanh}, Named{"cosh", Opcode::kCosh},
    Named{"erf", Opcode::kErf},     Named{"sinh", Opcode::kSinh},   Named{"tan", Opcode::kTan},
};

constexpr std::array<std::string_view, 15> kMarkers = {
    "AssumeGatherIndicesInBound",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "PinToDevice",
    "PinToDeviceSram",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "Sharding",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
    "xla.sdy.PropagationBarrier",
    "xla.sdy.ShardingGroup",
};

constexpr std::array<std::string_view, 2> kTopK = {"TopK", "mhlo.topk"};
constexpr std::array<std::string_view, 2> kApproxTopK = {"ApproxTopK", "PartialReduce"};

template <size_t kCount>
bool Contains(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "mhlo.attributes" of a custom-call: {k = 3 : i64, largest = true}
bool SaysSmallest(const std::string& attributes) {
  const size_t at = attributes.find("largest");
  return at != std::string::npos && attributes.compare(attributes.find_first_not_of(" =", at + 7), 5, "false") == 0;
}

// x -> (the k first elements of each row, their places)
void CheckTopKShapes(const Instruction& instruction) {
  const Shape& shape = instruction.shape();
  bool fits = instruction.operand_count() == 1 && instruction.operand(0)->shape().IsArray() && shape.IsTuple() &&
              shape.tuple_shapes().size() == 2 && shape.tuple_shape(0).rank() > 0;
  if (fits) {
    const Shape& x = instruction.operand(0)->shape();
    const Shape &values = shape.tuple_shape(0), &places = shape.tuple_shape(1);
    Dims expected = x.dimensions();
    if (!expected.empty()) expected.back() = std::min(expected.back(), values.dimensions().back());
    fits = values.element_type() == x.element_type() && values.dimensions() == expected &&
           places.element_type() == ElementType::kS32 && places.dimensions() == expected &&
           !IsComplex(x.element_type());
  }
  if (fits) return;
  Invalid("{}: {} takes T[...,n] and gives (T[...,k], s32[...,k]) with k <= n", instruction.ToString(),
          instruction.As<attr::CustomCall>().target);
}

std::string_view TargetOf(const Instruction& instruction) {
  return instruction.Is(Opcode::kCustomCall) ? std::string_view(instruction.As<attr::CustomCall>().target) : "";
}

}  // namespace

std::optional<Opcode> OpcodeNamedBy(std::string_view target) {
  if (!target.starts_with("mhlo.") && !target.starts_with("chlo.")) return std::nullopt;
  for (const Named& named : kNamed) {
    if (named.name == target.substr(5)) return named.opcode;
  }
  return std::nullopt;
}

bool IsMarkerTarget(std::string_view target) { return Contains(kMarkers, target); }

std::optional<TopKRequest> TopKRequestOf(const Instruction& instruction) {
  if (instruction.Is(Opcode::kTopK)) {
    const auto& top = instruction.As<attr::TopK>();
    return TopKRequest{top.k, top.largest};
  }
  if (!Contains(kTopK, TargetOf(instruction))) return std::nullopt;
  CheckTopKShapes(instruction);
  TopKRequest request{instruction.shape().tuple_shape(0).dimensions().back(), true};
  if (!instruction.called_computations().empty()) {
    // The comparator says which come first.
    const std::optional<ComparisonDirection> direction = DirectionOf(*instruction.called());
    if (!direction) return std::nullopt;
    request.largest = *direction != ComparisonDirection::kLt && *direction != ComparisonDirection::kLe;
  }
  const auto attributes = instruction.frontend_attributes.find("mhlo.attributes");
  if (attributes != instruction.frontend_attributes.end() && SaysSmallest(attributes->second)) request.largest = false;
  return request;
}

std::optional<ApproxTopK> ApproxTopKOf(const Instruction& instruction) {
  if (!Contains(kApproxTopK, TargetOf(instruction))) return std::nullopt;
  const auto& call = instruction.As<attr::CustomCall>();
  ApproxTopK request{};
  request.dimension =
      ConfigInteger(instruction.backend_config.empty() ? call.opaque : instruction.backend_config, "reduction_dim");
  request.arrays = instruction.operand_count() / 2;
  const std::vector<Shape> results =
      instruction.shape().IsTuple() ? instruction.shape().tuple_shapes() : std::vector<Shape>{instruction.shape()};
  const bool counts = request.arrays > 0 && instruction.operand_count() % 2 == 0 &&
                      static_cast<int64_t>(results.size()) == request.arrays;
  if (!counts || instruction.called_computations().size() != 1) {
    Invalid("{}: {} takes n arrays, n values for padding and a comparator, and gives n arrays", instruction.name(),
            call.target);
  }
  const Shape& first = instruction.operand(0)->shape();
  if (!first.IsArray() || request.dimension < 0 || request.dimension >= first.rank()) {
    Invalid("{}: reduction_dim is {}, but operand 0 is {}", instruction.name(), request.dimension,
            first.ToString(false));
  }
  request.length =
      results[0].IsArray() && results[0].rank() == first.rank() ? results[0].dimension(request.dimension) : -1;
  Dims expected = first.dimensions();
  expected[static_cast<size_t>(request.dimension)] = request.length;
  for (int64_t i = 0; i < request.arrays; ++i) {
    const Shape& operand = instruction.operand(i)->shape();
    const Shape& padding = instruction.operand(request.arrays + i)->shape();
    const Shape& result = results[static_cast<size_t>(i)];
    const bool fits = operand.IsArray() && operand.SameDimensions(first) && padding.IsScalar() && result.IsArray() &&
                      padding.element_type() == operand.element_type() &&
                      result.element_type() == operand.element_type() && result.dimensions() == expected;
    if (!fits) {
      Invalid("{}: array {} is {}, its padding {} and its result {}, which do not fit", instruction.name(), i,
              operand.ToString(false), padding.ToString(false), result.ToString(false));
    }
  }
  return request;
}

std::vector<std::string> NamedTargets() {
  std::vector<std::string> targets;
  for (const Named& named : kNamed) {
    for (const std::string_view dialect : {"mhlo.", "chlo."})
      targets.push_back(std::string(dialect) + std::string(named.name));
  }
  targets.insert(targets.end(), kMarkers.begin(), kMarkers.end());
  targets.insert(targets.end(), kTopK.begin(), kTopK.end());
  targets.insert(targets.end(), kApproxTopK.begin(), kApproxTopK.end());
  return targets;
}

}  // namespace hlorun::hlo
