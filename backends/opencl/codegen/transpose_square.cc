#include "backends/opencl/codegen/transpose_square.h"

#include <algorithm>
#include <bit>

#include "backends/opencl/codegen/opencl_helpers.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

constexpr int64_t kRegisterBytes = 16;  // of the narrowest vector register

// Elements of a row that are loaded at once.
int64_t PieceOf(ir::Type vector, bool whole_rows) {
  const int64_t lanes = vector.lanes, piece = kRegisterBytes / hlo::BytesOf(vector.element);
  return whole_rows || piece < 2 ? lanes : std::min(lanes, piece);
}

// Helpers of all kernels of a program share their names.
std::string InterleaveName(ir::Type vector, int64_t piece, bool high) {
  return fmt::format("interleave_{}_{}{}_{}", high ? "high" : "low", CarrierName(vector.element), vector.lanes, piece);
}
std::string JoinName(ir::Type vector) { return fmt::format("join_{}{}", CarrierName(vector.element), vector.lanes); }

// A function whose value the compiler may not take apart where `inline_assembly` can say so: LLVM makes one shuffle of
// several, and then many instructions of it (0.9 ns an element instead of 0.2). Vectors of less than a register have no
// operand of their own: LLVM gives the assembly another value than it takes back.
std::string KeptFunction(ir::Type vector, const std::string& name, const std::string& parameters,
                         const std::string& value, bool inline_assembly) {
  const bool is_kept = inline_assembly && vector.lanes * hlo::BytesOf(vector.element) >= kRegisterBytes;
  return fmt::format("static inline {0}{1} {2}({3}) {{\n  {0}{1} value = {4};\n{5}  return value;\n}}\n",
                     CarrierName(vector.element), vector.lanes, name, parameters, value,
                     is_kept ? "  __asm__(\"\" : \"+v\"(value));\n" : "");
}

// low(a, b) = a0 b0 a1 b1 ..., and high of the upper halves, in each piece. (PoCL's shuffle2 goes element by element
// where these are integers of 8 or 16 bits.)
ir::Helper InterleaveHelper(ir::Type vector, int64_t piece, bool high, bool inline_assembly) {
  const std::string name = CarrierName(vector.element);
  std::string lanes;
  for (int64_t i = 0; i < vector.lanes; ++i) {
    const int64_t place = i % piece, first = i - place + (high ? piece / 2 : 0);
    lanes += fmt::format("{}{}.s{:x}", i == 0 ? "" : ", ", place % 2 == 0 ? "a" : "b", first + place / 2);
  }
  ir::Helper helper;
  helper.name = InterleaveName(vector, piece, high);
  const std::string value = fmt::format("({}{})({})", name, vector.lanes, lanes);
  helper.source =
      KeptFunction(vector, helper.name, fmt::format("{0}{1} a, {0}{1} b", name, vector.lanes), value, inline_assembly);
  return helper;
}

// A vector of its pieces; through memory where the platform wants halves there (Quirks::doubts_upper_halves).
ir::Helper JoinHelper(ir::Type vector, int64_t piece, bool inline_assembly) {
  const std::string value = CarrierName(vector.element);
  std::string parameters, values;
  for (int64_t i = 0; i < vector.lanes / piece; ++i) {
    parameters += fmt::format("{}{}{} p{}", i == 0 ? "" : ", ", value, piece, i);
    values += fmt::format("{}p{}", i == 0 ? "" : ", ", i);
  }
  ir::Helper helper;
  helper.name = JoinName(vector);
  helper.source = fmt::format(
      "#ifdef HLORUN_HALVES_IN_MEMORY\nstatic inline {0}{1} {2}({3}) {{\n  {0}{4} pieces[] = {{{5}}};\n"
      "  return vload{1}(0, (const {0}*)(pieces));\n}}\n#else\n{6}#endif\n",
      value, vector.lanes, helper.name, parameters, piece, values,
      KeptFunction(vector, helper.name, parameters, fmt::format("({}{})({})", value, vector.lanes, values),
                   inline_assembly));
  return helper;
}

}  // namespace

// A column of pieces at a time: rows that are a piece's length apart are loaded into one vector; what is left are
// squares of a piece's length in each part of the vectors: log2 rounds, each a perfect shuffle of rows i and i + half.
Stmt TransposeSquare(ir::Type vector, bool whole_rows, const SquareReader& read,
                     const std::function<Stmt(int64_t, const Expr&)>& write) {
  const int64_t piece = PieceOf(vector, whole_rows), pieces = vector.lanes / piece;
  std::vector<Stmt> statements;
  const auto name = [&](const std::string& round, int64_t i, const Expr& value) {
    const ir::Var row = ir::MakeVar(fmt::format("{}_{}", round, i), vector);
    statements.push_back(ir::Let(row, value));
    return ir::Ref(row);
  };
  for (int64_t first = 0; first < vector.lanes; first += piece) {
    std::vector<Expr> current;
    for (int64_t i = 0; i < piece; ++i) {
      std::vector<Expr> parts;
      for (int64_t part = 0; part < pieces; ++part) parts.push_back(read(i + part * piece, first, piece));
      current.push_back(name("row", first + i, pieces == 1 ? parts[0] : ir::Call(vector, JoinName(vector), parts)));
    }
    for (int round = 0; round < std::countr_zero(static_cast<uint64_t>(piece)); ++round) {
      std::vector<Expr> next;
      for (int64_t i = 0; i < piece; ++i) {
        const auto half = static_cast<size_t>(i / 2);
        next.push_back(name(fmt::format("round_{}", round), first + i,
                            ir::Call(vector, InterleaveName(vector, piece, i % 2 != 0),
                                     {current[half], current[half + static_cast<size_t>(piece / 2)]})));
      }
      current = std::move(next);
    }
    for (int64_t i = 0; i < piece; ++i) statements.push_back(write(first + i, current[static_cast<size_t>(i)]));
  }
  return ir::Block(std::move(statements));
}

std::vector<ir::Helper> TransposeHelpers(ir::Type vector, bool whole_rows, bool inline_assembly) {
  const int64_t piece = PieceOf(vector, whole_rows);
  std::vector<ir::Helper> helpers = {InterleaveHelper(vector, piece, false, inline_assembly),
                                     InterleaveHelper(vector, piece, true, inline_assembly)};
  if (piece < vector.lanes) helpers.push_back(JoinHelper(vector, piece, inline_assembly));
  return helpers;
}

}  // namespace hlorun::opencl
