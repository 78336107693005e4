#include "passes/expand/lapack.h"

#include "hlo/builder.h"
#include "hlo/custom_calls/host_call.h"
#include "hlo/error.h"
#include "hlo/module.h"

namespace hlorun::passes {

using hlo::ComparisonDirection;
using hlo::Dims;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

// "lapack_spotrf_ffi" is "potrf"; empty for what is no LAPACK call.
std::string RoutineOf(const Instruction& call) {
  const std::string& target = call.As<hlo::attr::CustomCall>().target;
  constexpr std::string_view kPrefix = "lapack_", kSuffix = "_ffi";
  if (!target.starts_with(kPrefix) || !target.ends_with(kSuffix)) return "";
  return target.substr(kPrefix.size() + 1, target.size() - kPrefix.size() - kSuffix.size() - 1);
}

// The character that LAPACK takes for an option: `uplo = 76 : ui8` is 'L'.
char Option(const Instruction& call, std::string_view name) {
  const std::string& config =
      call.backend_config.empty() ? call.As<hlo::attr::CustomCall>().opaque : call.backend_config;
  try {
    return static_cast<char>(hlo::ConfigInteger(config, name));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", call.ToString(), error.message()));
  }
}

// True at [..., i, j] where j <= i.
Instruction* LowerTriangle(hlo::Builder& build, const Dims& dimensions) {
  const Shape index(ElementType::kS32, dimensions);
  const auto rank = static_cast<int64_t>(dimensions.size());
  return build.Compare(build.Iota(index, rank - 2), build.Iota(index, rank - 1), ComparisonDirection::kGe);
}

// True at [..., i, i].
Instruction* Diagonal(hlo::Builder& build, const Dims& dimensions) {
  const Shape index(ElementType::kS32, dimensions);
  const auto rank = static_cast<int64_t>(dimensions.size());
  return build.Compare(build.Iota(index, rank - 2), build.Iota(index, rank - 1), ComparisonDirection::kEq);
}

Instruction* Transposed(hlo::Builder& build, Instruction* x) {
  std::vector<int64_t> permutation(static_cast<size_t>(x->shape().rank()));
  for (size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<int64_t>(i);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return build.Transpose(x, permutation);
}

// (factor, info): the triangle that is not asked for keeps the operand's values; info is not zero where the matrix is
// not positive definite.
Instruction* Potrf(Instruction* call) {
  hlo::Builder build(call->parent(), call);
  build.before = call;
  Instruction* a = call->operand(0);
  const Dims& dimensions = a->shape().dimensions();
  const bool lower = Option(*call, "uplo") == 'L';
  Instruction* factor = build.Make(Opcode::kCholesky, {a}, hlo::attr::Cholesky{lower});
  Instruction* triangle = LowerTriangle(build, dimensions);
  if (!lower) triangle = Transposed(build, triangle);
  Instruction* result = build.Select(triangle, factor, a);

  Instruction* real = hlo::IsComplex(a->shape().element_type()) ? build.Unary(Opcode::kReal, factor) : factor;
  Instruction* is_nan = build.Compare(real, real, ComparisonDirection::kNe);
  // The square root of a negative pivot is imaginary, where LAPACK's is no number.
  if (hlo::IsComplex(a->shape().element_type())) {
    Instruction* imaginary = build.Unary(Opcode::kAbs, build.Unary(Opcode::kImag, factor));
    Instruction* is_imaginary = build.Compare(imaginary, real, ComparisonDirection::kGt);
    is_nan = build.Binary(Opcode::kOr, is_nan, build.Binary(Opcode::kAnd, is_imaginary, Diagonal(build, dimensions)));
  }
  hlo::Computation* any = hlo::MakeScalarComputation(call->module(), Opcode::kOr, ElementType::kPred);
  const auto rank = static_cast<int64_t>(dimensions.size());
  Instruction* no = build.ScalarConstant(ElementType::kPred, int64_t{0});
  Instruction* failed = build.Reduce({is_nan}, {no}, {rank - 2, rank - 1}, any);
  return build.Tuple({result, build.Convert(failed, ElementType::kS32)});
}

Instruction* Trsm(Instruction* call) {
  hlo::Builder build(call->parent(), call);
  build.before = call;
  hlo::attr::TriangularSolve solve;
  solve.left_side = Option(*call, "side") == 'L';
  solve.lower = Option(*call, "uplo") == 'L';
  solve.unit_diagonal = Option(*call, "diag") == 'U';
  switch (Option(*call, "trans_x")) {
    case 'T': solve.transpose_a = hlo::TransposeKind::kTranspose; break;
    case 'C': solve.transpose_a = hlo::TransposeKind::kAdjoint; break;
    default: solve.transpose_a = hlo::TransposeKind::kNoTranspose;
  }
  return build.Make(Opcode::kTriangularSolve, {call->operand(0), call->operand(1)}, solve);
}

Instruction* Expanded(Instruction* call) {
  const std::string routine = RoutineOf(*call);
  if (routine == "potrf" && call->operand_count() == 1) return Potrf(call);
  if (routine == "trsm" && call->operand_count() == 2) return Trsm(call);
  return nullptr;
}

}  // namespace

bool ExpandLapack::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kCustomCall)) continue;
      Instruction* result = Expanded(instruction);
      if (result == nullptr || !result->shape().SameAs(instruction->shape())) continue;
      computation->Replace(instruction, result);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
