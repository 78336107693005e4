#include "backends/opencl/foreign_kernel.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "hlo/error.h"

namespace hlorun::opencl {

using hlo::ElementType;
using hlo::Instruction;

namespace {

// How OpenCL C spells the element of an array in memory.
struct Spelling {
  ElementType type;
  const char* name;
};
constexpr std::array kSpellings = {
    Spelling{ElementType::kPred, "uchar"},   Spelling{ElementType::kS8, "char"},
    Spelling{ElementType::kU8, "uchar"},     Spelling{ElementType::kS16, "short"},
    Spelling{ElementType::kU16, "ushort"},   Spelling{ElementType::kS32, "int"},
    Spelling{ElementType::kU32, "uint"},     Spelling{ElementType::kS64, "long"},
    Spelling{ElementType::kU64, "ulong"},    Spelling{ElementType::kF16, "half"},
    Spelling{ElementType::kBF16, "ushort"},  Spelling{ElementType::kF32, "float"},
    Spelling{ElementType::kF64, "double"},   Spelling{ElementType::kC64, "float2"},
    Spelling{ElementType::kC128, "double2"},
};

std::string SpellingOf(ElementType type) {
  const auto found =
      std::find_if(kSpellings.begin(), kSpellings.end(), [&](const Spelling& s) { return s.type == type; });
  return found == kSpellings.end() ? "uchar" : found->name;
}

void AppendLeaves(const Instruction& instruction, const passes::BufferAssignment& buffers, std::vector<Slice>& slices,
                  std::vector<hlo::Shape>& shapes) {
  int64_t leaf = 0;
  hlo::ForEachLeaf(instruction.shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& shape) {
    const int64_t number = leaf++;
    if (!shape.IsArray()) return;
    slices.push_back(buffers.SliceOf(&instruction, number));
    shapes.push_back(shape);
  });
}

// The number of leaf `index` of `shape` among the leaves that are arrays.
size_t ArrayNumber(const hlo::Shape& shape, const hlo::ShapeIndex& index) {
  const auto leaves = hlo::FlattenShape(shape);
  const int64_t leaf = hlo::LeafNumber(shape, index);
  return static_cast<size_t>(
      std::count_if(leaves.begin(), leaves.begin() + leaf, [](const auto& s) { return s.IsArray(); }));
}

void CheckLayouts(const Instruction& call) {
  for (const hlo::Shape& shape : call.As<hlo::attr::CustomCall>().operand_layouts) {
    if (shape.has_layout() && !shape.layout()->IsRowMajor()) {
      Fail(ErrorCode::kUnimplemented, "%{}: it wants an operand as {}; hlorun gives custom-calls row-major arrays",
           call.name(), shape.ToString());
    }
  }
}

// Work-items in each dimension, as expressions, evaluated.
std::array<int64_t, 3> Extents(const std::vector<std::string>& expressions, const hlo::Bindings& bindings) {
  std::array<int64_t, 3> extents = {1, 1, 1};
  for (size_t d = 0; d < expressions.size(); ++d) {
    extents[d] = hlo::EvaluateSizeExpression(expressions[d], bindings);
    if (extents[d] < 0 || extents[d] > INT32_MAX) Invalid("\"{}\" is {} work-items", expressions[d], extents[d]);
  }
  return extents;
}

Grid GridOf(const hlo::OpenClCall& call, const hlo::Bindings& bindings) {
  const auto global = Extents(call.global, bindings);
  Grid grid;
  grid.local = Extents(call.local, bindings);
  for (size_t d = 0; d < 3; ++d) {
    if (grid.local[d] == 0) Invalid("a work-group has no work-items in dimension {}", d);
    if (global[d] % grid.local[d] != 0) {
      Invalid("{} work-items in dimension {} are no whole work-groups of {}", global[d], d, grid.local[d]);
    }
    grid.groups[d] = global[d] / grid.local[d];
  }
  return grid;
}

// Whether `word` stands in `text` as a word of its own.
bool HasWord(std::string_view text, std::string_view word) {
  const auto in_name = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (!in_name(at - 1) && !in_name(at + word.size())) return true;  // at - 1 wraps past the end
  }
  return false;
}

std::string Definitions(const hlo::OpenClCall& call, const hlo::Bindings& bindings) {
  std::string text;
  for (const auto& [macro, value] : call.definitions) {
    const auto type = bindings.types.find(value);
    text += type != bindings.types.end()
                ? fmt::format("#define {} {}\n", macro, SpellingOf(type->second))
                : fmt::format("#define {} {}\n", macro, hlo::EvaluateSizeExpression(value, bindings));
  }
  return text;
}

}  // namespace

CallArrays ArraysOf(const Instruction& call, const passes::BufferAssignment& buffers) {
  CallArrays arrays;
  std::vector<size_t> first;
  for (const Instruction* operand : call.operands()) {
    first.push_back(arrays.operands.size());
    AppendLeaves(*operand, buffers, arrays.operands, arrays.operand_shapes);
  }
  AppendLeaves(call, buffers, arrays.results, arrays.result_shapes);
  if (!call.Is(hlo::Opcode::kCustomCall)) return arrays;
  for (const auto& [output, input] : call.As<hlo::attr::CustomCall>().output_operand_aliasing) {
    const auto number = static_cast<size_t>(input.first);
    Slice& operand = arrays.operands[first[number] + ArrayNumber(call.operand(input.first)->shape(), input.second)];
    const Slice& result = arrays.results[ArrayNumber(call.shape(), output)];
    if (operand != result) arrays.copies.emplace_back(operand, result);
    operand = result;
  }
  return arrays;
}

const hlo::CustomCallDefinition* DefinitionOf(const Instruction& call, const CallArrays& arrays,
                                              const hlo::CustomCallRegistry* registry) {
  const std::string& target = call.As<hlo::attr::CustomCall>().target;
  const hlo::CustomCallDefinition* definition = registry == nullptr ? nullptr : registry->Find(target);
  try {
    if (definition == nullptr) {
      if (!hlo::FindHostFunction(registry, target)) hlo::FailUnknownTarget(registry, target);
      return nullptr;
    }
    definition->signature.Match(arrays.operand_shapes, arrays.result_shapes);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", call.ToString(), error.message()));
  }
  CheckLayouts(call);
  return definition;
}

ForeignKernel MakeForeignKernel(const hlo::CustomCallDefinition& definition, const CallArrays& arrays) {
  const hlo::OpenClCall& call = *definition.kernel;
  ForeignKernel kernel;
  try {
    if (!HasWord(call.source, call.kernel)) Invalid("{} has no kernel {}", call.file, call.kernel);
    const hlo::Bindings bindings = definition.signature.Match(arrays.operand_shapes, arrays.result_shapes);
    kernel.source = Definitions(call, bindings) + fmt::format("#line 1 \"{}\"\n", call.file) + call.source;
    kernel.grid = GridOf(call, bindings);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("custom-call target {}: {}", definition.target, error.message()));
  }
  for (const hlo::OpenClCall::Argument& argument : call.arguments) {
    const auto number = static_cast<size_t>(argument.number);
    kernel.arguments.push_back(argument.is_operand ? arrays.operands[number] : arrays.results[number]);
    // An operand that lies where a result does may be written.
    const Slice& slice = kernel.arguments.back();
    kernel.written.push_back(std::find(arrays.results.begin(), arrays.results.end(), slice) != arrays.results.end());
  }
  return kernel;
}

}  // namespace hlorun::opencl
