#include "passes/expand/scan_function.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_set>

#include "hlo/error.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/module.h"
#include "hlo/reducing_opcode.h"
#include "passes/simplify/pattern.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;
using hlo::Shape;
using Instructions = std::vector<Instruction*>;

namespace {

using TypeMap = ElementType (*)(ElementType);

ElementType Same(ElementType type) { return type; }
ElementType Widest(ElementType type) {
  if (hlo::IsComplex(type)) return ElementType::kC128;
  return hlo::IsFloating(type) ? ElementType::kF64 : type;
}

Literal As(const Literal& value, ElementType type) {
  if (value.element_type() == type) return value;
  Literal wide{Shape::Scalar(type)};
  if (hlo::IsComplex(type))
    wide.SetComplex(0, value.GetComplex(0));
  else
    wide.SetDouble(0, value.GetDouble(0));
  return wide;
}

// The function's results with each type mapped.
Instructions Applied(const SliceScan& scan, const Instructions& left, const Instructions& right, hlo::Builder& build,
                     TypeMap mapped) {
  const Dims& dimensions = left[0]->shape().dimensions();
  hlo::InstructionMap image;
  const std::function<Instruction*(const Instruction*)> image_of = [&](const Instruction* op) {
    if (const auto known = image.find(op); known != image.end()) return known->second;
    const ElementType type = mapped(op->shape().element_type());
    Instruction* made = nullptr;
    if (const auto argument = scan.arguments.find(op); argument != scan.arguments.end()) {
      made = (argument->second.is_right ? right : left)[argument->second.array];
    } else if (const std::optional<Literal> value = SplatOf(*op)) {
      made = build.Constant(As(*value, type));
      if (!dimensions.empty()) made = build.Broadcast(made, dimensions, {});
    } else {
      Instructions operands;
      for (const Instruction* operand : op->operands()) operands.push_back(image_of(operand));
      made =
          build.computation()->Add(op->CloneWithOperands(Shape(type, dimensions), std::move(operands)), build.before);
    }
    return image[op] = made;
  };
  Instructions results;
  for (const Instruction* result : scan.function) results.push_back(image_of(result));
  return results;
}

// All that the function is made of, without its arguments.
std::vector<const Instruction*> OpsOf(const SliceScan& scan) {
  std::vector<const Instruction*> open(scan.function.begin(), scan.function.end()), ops;
  std::unordered_set<const Instruction*> seen;
  while (!open.empty()) {
    const Instruction* op = open.back();
    open.pop_back();
    if (scan.arguments.contains(op) || !seen.insert(op).second) continue;
    ops.push_back(op);
    open.insert(open.end(), op->operands().begin(), op->operands().end());
  }
  return ops;
}

bool IsNarrow(const Shape& shape) {
  return hlo::IsFloating(shape.element_type()) && hlo::BitsOf(shape.element_type()) < 32;
}

}  // namespace

Instructions Combined(const SliceScan& scan, const Instructions& left, const Instructions& right, hlo::Builder& build) {
  return Applied(scan, left, right, build, Same);
}

std::optional<Opcode> ScanOpcode(const SliceScan& scan) {
  const Instruction& function = *scan.function[0];
  if (scan.elements.size() != 1 || function.operand_count() != 2) return std::nullopt;
  const auto left = scan.arguments.find(function.operand(0)), right = scan.arguments.find(function.operand(1));
  if (left == scan.arguments.end() || right == scan.arguments.end()) return std::nullopt;
  if (left->second.is_right == right->second.is_right) return std::nullopt;
  return hlo::IsReducing(function.opcode()) ? std::optional(function.opcode()) : std::nullopt;
}

bool IsExpensive(const SliceScan& scan) {
  const auto ops = OpsOf(scan);
  return std::any_of(ops.begin(), ops.end(), [](const Instruction* op) { return op->Has(hlo::kExpensive); });
}

bool RoundsAtEachStep(const SliceScan& scan) {
  const auto ops = OpsOf(scan);
  return std::any_of(ops.begin(), ops.end(), [](const Instruction* op) {
    const bool converts = op->Is(Opcode::kConvert) && (IsNarrow(op->shape()) || IsNarrow(op->operand(0)->shape()));
    return converts || op->Is(Opcode::kReducePrecision);
  });
}

namespace {

constexpr int64_t kSamples = 128;
// Of the results, some must be numbers.
constexpr int64_t kFewestFinite = kSamples / 4;

// Of f64: what rounds, and what is not the same, are far from it.
constexpr double kAllowance = 1e-9;

uint64_t Next(uint64_t& state, uint64_t below) {
  state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
  return (state >> 33) % below;
}

// What samples are multiples of: small and large numbers, and the function's own.
std::vector<double> Scales(const SliceScan& scan) {
  std::vector<double> scales = {1, 1, 8, 64};
  for (const Instruction* op : OpsOf(scan)) {
    const std::optional<Literal> value = SplatOf(*op);
    const double scale = value ? std::abs(value->GetComplex(0)) : 0;
    if (scale > 0 && scale < 1e6) scales.push_back(scale);
  }
  return scales;
}

// Quarters between -2 and 2, or integers between -3 and 3, of a scale; integers that their type does not hold wrap.
Literal Samples(ElementType type, const std::vector<double>& scales, uint64_t& state) {
  Literal samples{Shape(type, {kSamples})};
  const auto scaled = [&](uint64_t numbers, double unit) {
    const double scale = scales[Next(state, scales.size())];
    return scale * unit * (static_cast<double>(Next(state, numbers)) - static_cast<double>(numbers / 2));
  };
  for (int64_t i = 0; i < kSamples; ++i) {
    if (hlo::IsComplex(type)) {
      const double re = scaled(17, 0.25);
      samples.SetComplex(i, {re, scaled(17, 0.25)});
    } else if (hlo::IsFloating(type)) {
      samples.SetDouble(i, scaled(17, 0.25));
    } else if (type == ElementType::kPred) {
      samples.SetInt(i, static_cast<int64_t>(Next(state, 2)));
    } else {
      const auto number = static_cast<int64_t>(scaled(7, 1));
      samples.SetInt(i, hlo::IsSigned(type) ? number : std::abs(number));
    }
  }
  return samples;
}

bool Agree(const Literal& a, const Literal& b) {
  const double allowance = hlo::IsFloating(a.element_type()) || hlo::IsComplex(a.element_type()) ? kAllowance : 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    const std::complex<double> x = a.GetComplex(i), y = b.GetComplex(i);
    if (!std::isfinite(std::abs(x)) || !std::isfinite(std::abs(y))) continue;
    ++finite;
    if (std::abs(x - y) > allowance * (1 + std::max(std::abs(x), std::abs(y)))) return false;
  }
  return finite >= kFewestFinite;
}

}  // namespace

bool SeemsAssociative(const SliceScan& scan) {
  const auto ops = OpsOf(scan);
  // Bits are of a type.
  if (std::any_of(ops.begin(), ops.end(), [](const Instruction* op) { return op->Is(Opcode::kBitcastConvert); }))
    return false;
  hlo::Module module("samples");
  hlo::Computation* computation = module.AddComputation("associativity");
  hlo::Builder build(computation);
  std::vector<Literal> arguments;
  const std::vector<double> scales = Scales(scan);
  uint64_t state = 1;
  std::vector<Instructions> given(3);  // a, b, c
  for (Instructions& values : given) {
    for (const Instruction* elements : scan.elements) {
      arguments.push_back(Samples(Widest(elements->shape().element_type()), scales, state));
      const auto number = static_cast<int64_t>(arguments.size()) - 1;
      values.push_back(computation->AddParameter(number, arguments.back().shape(), "p"));
    }
  }
  const auto f = [&](const Instructions& left, const Instructions& right) {
    return Applied(scan, left, right, build, Widest);
  };
  Instructions results = f(f(given[0], given[1]), given[2]);
  const Instructions others = f(given[0], f(given[1], given[2]));
  results.insert(results.end(), others.begin(), others.end());
  computation->set_root(build.Tuple(results));
  const Literal values = hlo::EvaluateComputation(*computation, arguments);
  const size_t arrays = scan.elements.size();
  for (size_t k = 0; k < arrays; ++k) {
    if (!Agree(values.elements()[k], values.elements()[arrays + k])) return false;
  }
  return true;
}

}  // namespace hlorun::passes
