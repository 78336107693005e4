#include "passes/expand/scan_function.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_set>

#include "hlo/error.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/module.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;
using hlo::Shape;
using Instructions = std::vector<Instruction*>;

Instructions Combined(const SliceScan& scan, const Instructions& left, const Instructions& right, hlo::Builder& build) {
  const Dims& dimensions = left[0]->shape().dimensions();
  hlo::InstructionMap image;
  const std::function<Instruction*(const Instruction*)> image_of = [&](const Instruction* op) {
    if (const auto known = image.find(op); known != image.end()) return known->second;
    Instruction* made = nullptr;
    if (const auto argument = scan.arguments.find(op); argument != scan.arguments.end()) {
      made = (argument->second.is_right ? right : left)[argument->second.array];
    } else if (std::optional<Literal> value = UniformValue(*op)) {
      made = build.Constant(*std::move(value));
      if (!dimensions.empty()) made = build.Broadcast(made, dimensions, {});
    } else {
      Instructions operands;
      for (const Instruction* operand : op->operands()) operands.push_back(image_of(operand));
      made = build.computation()->Add(
          op->CloneWithOperands(Shape(op->shape().element_type(), dimensions), std::move(operands)), build.before);
    }
    return image[op] = made;
  };
  Instructions results;
  for (const Instruction* result : scan.function) results.push_back(image_of(result));
  return results;
}

std::optional<Opcode> ScanOpcode(const SliceScan& scan) {
  const Instruction& function = *scan.function[0];
  if (scan.elements.size() != 1 || function.operand_count() != 2) return std::nullopt;
  const auto left = scan.arguments.find(function.operand(0)), right = scan.arguments.find(function.operand(1));
  if (left == scan.arguments.end() || right == scan.arguments.end()) return std::nullopt;
  if (left->second.is_right == right->second.is_right) return std::nullopt;
  switch (function.opcode()) {
    case Opcode::kAdd:
    case Opcode::kMultiply:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor: return function.opcode();
    default: return std::nullopt;
  }
}

bool IsExpensive(const SliceScan& scan) {
  std::vector<const Instruction*> open(scan.function.begin(), scan.function.end());
  std::unordered_set<const Instruction*> seen;
  while (!open.empty()) {
    const Instruction* op = open.back();
    open.pop_back();
    if (scan.arguments.contains(op) || !seen.insert(op).second) continue;
    if (op->Has(hlo::kExpensive)) return true;
    open.insert(open.end(), op->operands().begin(), op->operands().end());
  }
  return false;
}

namespace {

constexpr int64_t kSamples = 128;
// Of the results, some must be numbers.
constexpr int64_t kFewestFinite = kSamples / 4;

// Quarters between -2 and 2, and small integers: most functions of them round little.
Literal Samples(ElementType type, uint64_t& state) {
  Literal samples{Shape(type, {kSamples})};
  const auto next = [&state](int64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(below));
  };
  const auto quarters = [&next] { return static_cast<double>(next(17) - 8) / 4; };
  for (int64_t i = 0; i < kSamples; ++i) {
    if (hlo::IsComplex(type)) {
      const double re = quarters();
      samples.SetComplex(i, {re, quarters()});
    } else if (hlo::IsFloating(type)) {
      samples.SetDouble(i, quarters());
    } else {
      samples.SetInt(i, type == ElementType::kPred ? next(2) : next(7) - (hlo::IsSigned(type) ? 3 : 0));
    }
  }
  return samples;
}

double Allowance(ElementType type) {
  if (!hlo::IsComplex(type) && !hlo::IsFloating(type)) return 0;
  const int64_t bits = hlo::BitsOf(type) / (hlo::IsComplex(type) ? 2 : 1);
  if (bits < 32) return 0.1;
  return bits == 32 ? 1e-4 : 1e-8;
}

bool Agree(const Literal& a, const Literal& b, double allowance) {
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
  hlo::Module module("samples");
  hlo::Computation* computation = module.AddComputation("associativity");
  hlo::Builder build(computation);
  std::vector<Literal> arguments;
  uint64_t state = 1;
  std::vector<Instructions> given(3);  // a, b, c
  for (Instructions& values : given) {
    for (const Instruction* elements : scan.elements) {
      arguments.push_back(Samples(elements->shape().element_type(), state));
      const auto number = static_cast<int64_t>(arguments.size()) - 1;
      values.push_back(computation->AddParameter(number, arguments.back().shape(), "p"));
    }
  }
  const auto f = [&](const Instructions& left, const Instructions& right) {
    return Combined(scan, left, right, build);
  };
  Instructions results = f(f(given[0], given[1]), given[2]);
  const Instructions others = f(given[0], f(given[1], given[2]));
  results.insert(results.end(), others.begin(), others.end());
  computation->set_root(build.Tuple(results));
  const Literal values = hlo::EvaluateComputation(*computation, arguments);
  const size_t arrays = scan.elements.size();
  for (size_t k = 0; k < arrays; ++k) {
    const Literal& one = values.elements()[k];
    if (!Agree(one, values.elements()[arrays + k], Allowance(one.element_type()))) return false;
  }
  return true;
}

}  // namespace hlorun::passes
