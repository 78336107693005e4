#include "hlo/lapack/lapack.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "hlo/error.h"
#include "hlo/lapack/factorizations.h"
#include "hlo/lapack/spectra.h"

namespace hlorun::hlo {
namespace {

using lapack::Arrays;
using Function = void (*)(const Arrays& arrays);
using Patterns = std::vector<std::string>;

// The four types of LAPACK, in the order of Routine::functions.
struct Letter {
  char letter;
  ElementType type, real, complex;
};
constexpr std::array kLetters = {
    Letter{'s', ElementType::kF32, ElementType::kF32, ElementType::kC64},
    Letter{'d', ElementType::kF64, ElementType::kF64, ElementType::kC128},
    Letter{'c', ElementType::kC64, ElementType::kF32, ElementType::kC64},
    Letter{'z', ElementType::kC128, ElementType::kF64, ElementType::kC128},
};

// T is the type of the matrix, R that of its absolute values, C the complex one.
struct Routine {
  std::string name;          // of real matrices
  std::string complex_name;  // orthogonal is unitary, symmetric is Hermitian there
  Patterns operands, results, complex_results;
  std::array<Function, 4> functions;
};

#define HLORUN_FOR_ALL_TYPES(F) \
  { lapack::F<float>, lapack::F<double>, lapack::F<std::complex<float>>, lapack::F<std::complex<double>> }

const std::vector<Routine>& Routines() {
  static const Patterns matrix = {"T[...,m,n]"}, square = {"T[...,n,n]"};
  static const Patterns svd = {"T[...,m,n]", "R[...,min(m,n)]", "T[...,m,p]", "T[...,q,n]", "s32[...]"};
  static const std::vector<Routine> routines = {
      {"getrf", "getrf", matrix, {"T[...,m,n]", "s32[...,min(m,n)]", "s32[...]"}, {}, HLORUN_FOR_ALL_TYPES(Getrf)},
      {"geqrf", "geqrf", matrix, {"T[...,m,n]", "T[...,min(m,n)]"}, {}, HLORUN_FOR_ALL_TYPES(Geqrf)},
      {"geqp3",
       "geqp3",
       {"T[...,m,n]", "s32[...,n]"},
       {"T[...,m,n]", "s32[...,n]", "T[...,min(m,n)]"},
       {},
       HLORUN_FOR_ALL_TYPES(Geqp3)},
      {"orgqr", "ungqr", {"T[...,m,n]", "T[...,k]"}, matrix, {}, HLORUN_FOR_ALL_TYPES(Orgqr)},
      {"ormqr", "unmqr", {"T[...,p,k]", "T[...,k]", "T[...,m,n]"}, matrix, {}, HLORUN_FOR_ALL_TYPES(Ormqr)},
      {"potrf", "potrf", square, {"T[...,n,n]", "s32[...]"}, {}, HLORUN_FOR_ALL_TYPES(Potrf)},
      {"trsm", "trsm", {"T[...,k,k]", "T[...,m,n]"}, matrix, {}, HLORUN_FOR_ALL_TYPES(SolveTriangular)},
      {"gtsv",
       "gtsv",
       {"T[...,n]", "T[...,n]", "T[...,n]", "T[...,n,k]"},
       {"T[...,n]", "T[...,n]", "T[...,n]", "T[...,n,k]", "s32[...]"},
       {},
       HLORUN_FOR_ALL_TYPES(Gtsv)},
      {"gesdd", "gesdd", matrix, svd, {}, HLORUN_FOR_ALL_TYPES(Gesdd)},
      {"gesvd", "gesvd", matrix, svd, {}, HLORUN_FOR_ALL_TYPES(Gesvd)},
      {"syevd", "heevd", square, {"T[...,n,n]", "R[...,n]", "s32[...]"}, {}, HLORUN_FOR_ALL_TYPES(Syevd)},
      {"sytrd",
       "hetrd",
       square,
       {"T[...,n,n]", "R[...,n]", "R[...,max(n-1,0)]", "T[...,max(n-1,0)]", "s32[...]"},
       {},
       HLORUN_FOR_ALL_TYPES(Sytrd)},
      {"geev",
       "geev",
       square,
       {"T[...,n]", "T[...,n]", "C[...,n,n]", "C[...,n,n]", "s32[...]"},
       {"T[...,n]", "T[...,n,n]", "T[...,n,n]", "s32[...]"},
       HLORUN_FOR_ALL_TYPES(Geev)},
      {"gees",
       "gees",
       square,
       {"T[...,n,n]", "T[...,n,n]", "T[...,n]", "T[...,n]", "s32[...]", "s32[...]"},
       {"T[...,n,n]", "T[...,n,n]", "T[...,n]", "s32[...]", "s32[...]"},
       HLORUN_FOR_ALL_TYPES(Gees)},
      {"gehrd", "gehrd", square, {"T[...,n,n]", "T[...,max(n-1,0)]", "s32[...]"}, {}, HLORUN_FOR_ALL_TYPES(Gehrd)},
  };
  return routines;
}

#undef HLORUN_FOR_ALL_TYPES

HostFunction MakeFunction(const Routine& routine, size_t letter) {
  const bool is_complex = letter >= 2;
  const Patterns& results = is_complex && !routine.complex_results.empty() ? routine.complex_results : routine.results;
  Bindings types;
  types.types = {{"T", kLetters[letter].type}, {"R", kLetters[letter].real}, {"C", kLetters[letter].complex}};
  return [signature = Signature(routine.operands, results), types,
          function = routine.functions[letter]](const HostCall& call) {
    const auto shapes = [](std::span<const HostArray> arrays) {
      std::vector<Shape> list;
      for (const HostArray& array : arrays) list.push_back(array.shape);
      return list;
    };
    Bindings bindings = signature.Match(shapes(call.operands), shapes(call.results), types);
    for (const auto& [name, size] : bindings.sizes) {
      if (size > INT32_MAX) Fail(ErrorCode::kUnimplemented, "LAPACK takes no matrix with a side of {}", size);
    }
    function(Arrays(call, std::move(bindings)));
  };
}

const std::map<std::string, HostFunction>& Table() {
  static const std::map<std::string, HostFunction> table = [] {
    std::map<std::string, HostFunction> functions;
    for (const Routine& routine : Routines()) {
      for (size_t i = 0; i < kLetters.size(); ++i) {
        const std::string& name = i < 2 ? routine.name : routine.complex_name;
        functions[fmt::format("lapack_{}{}_ffi", kLetters[i].letter, name)] = MakeFunction(routine, i);
      }
    }
    return functions;
  }();
  return table;
}

}  // namespace

HostFunction FindLapackRoutine(const std::string& target) {
  const auto found = Table().find(target);
  return found == Table().end() ? HostFunction() : found->second;
}

bool HasLapackRoutine(const std::string& target) { return Table().contains(target); }

std::vector<std::string> LapackTargets() {
  std::vector<std::string> targets;
  for (const auto& [target, function] : Table()) targets.push_back(target);
  return targets;
}

}  // namespace hlorun::hlo
