#include "tests/conformance/op_table.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>

#include "hlo/module.h"
#include "hlo/opcode.h"
#include "hlo/text/parser.h"
#include "tests/conformance/case.h"

namespace hlorun::conformance {
namespace {

using hlo::ElementType;
using hlo::Opcode;

// The columns.
constexpr std::array kTypes = {ElementType::kPred,       ElementType::kS2,
                               ElementType::kS4,         ElementType::kS8,
                               ElementType::kS16,        ElementType::kS32,
                               ElementType::kS64,        ElementType::kU2,
                               ElementType::kU4,         ElementType::kU8,
                               ElementType::kU16,        ElementType::kU32,
                               ElementType::kU64,        ElementType::kF16,
                               ElementType::kBF16,       ElementType::kF32,
                               ElementType::kF64,        ElementType::kC64,
                               ElementType::kC128,       ElementType::kF8E5M2,
                               ElementType::kF8E4M3FN,   ElementType::kF8E4M3B11FNUZ,
                               ElementType::kF8E5M2FNUZ, ElementType::kF8E4M3FNUZ,
                               ElementType::kF8E4M3,     ElementType::kF8E3M4,
                               ElementType::kF4E2M1FN,   ElementType::kF8E8M0FNU};

// Ops that involve the host.
constexpr std::array kHostOps = {Opcode::kInfeed, Opcode::kOutfeed,  Opcode::kSend,      Opcode::kSendDone,
                                 Opcode::kRecv,   Opcode::kRecvDone, Opcode::kCustomCall};

// What a packed case cannot hold is tested elsewhere, in every type.
struct Elsewhere {
  Opcode opcode;
  const char* test;
};
constexpr Elsewhere kElsewhere[] = {
    {Opcode::kInfeed, "Transfers.FeedsOfEveryType"},
    {Opcode::kOutfeed, "Transfers.FeedsOfEveryType"},
    {Opcode::kSend, "Transfers.TheHostSendsAndReceivesEveryType"},
    {Opcode::kRecv, "Transfers.TheHostSendsAndReceivesEveryType"},
    {Opcode::kSendDone, "Transfers.TheHostSendsAndReceivesEveryType"},
    {Opcode::kRecvDone, "Transfers.TheHostSendsAndReceivesEveryType"},
};

// Opcode and type -> cases, by name.
using Coverage = std::map<Opcode, std::map<ElementType, std::set<std::string>>>;

void Cover(Coverage& coverage, const Case& c) {
  const auto module = hlo::ParseModule(c.text, {.file_name = c.name});
  for (const hlo::Computation* computation : module->PostOrder()) {
    for (const auto& instruction : computation->instructions()) {
      auto& types = coverage[instruction->opcode()];
      hlo::ForEachLeaf(instruction->shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& leaf) {
        if (leaf.IsArray()) types[leaf.element_type()].insert(c.name);
      });
      for (const hlo::Instruction* operand : instruction->operands()) {
        if (operand->shape().IsArray()) types[operand->shape().element_type()].insert(c.name);
      }
    }
  }
}

bool RunsOnHost(Opcode opcode) { return std::find(kHostOps.begin(), kHostOps.end(), opcode) != kHostOps.end(); }

// The case that names the op and the type, where there is one; else the first.
const std::string& Backing(const std::set<std::string>& cases, std::string_view opcode, std::string_view type) {
  for (const char* prefix : {"", "typed-"}) {
    const auto exact = cases.find(fmt::format("{}{}/{}", prefix, opcode, type));
    if (exact != cases.end()) return *exact;
  }
  for (const std::string& name : cases) {
    if (name.starts_with(opcode)) return name;
  }
  return *cases.begin();
}

std::string Row(const hlo::OpcodeInfo& info, const Coverage& coverage) {
  const auto found = coverage.find(info.opcode);
  std::string row = fmt::format("| {} | {} |", info.name, RunsOnHost(info.opcode) ? "host" : "device");
  for (const ElementType type : kTypes) {
    const bool covered = found != coverage.end() && found->second.count(type) != 0;
    row += covered ? RunsOnHost(info.opcode) ? " h |" : " d |" : " |";
  }
  return row + "\n";
}

std::string Cases(const hlo::OpcodeInfo& info, const Coverage& coverage) {
  const auto found = coverage.find(info.opcode);
  if (found == coverage.end() || found->second.empty()) return "";
  std::string line = fmt::format("- **{}**:", info.name);
  std::string separator = " ";
  for (const ElementType type : kTypes) {
    const auto cases = found->second.find(type);
    if (cases == found->second.end()) continue;
    const std::string_view type_name = hlo::ElementTypeName(type);
    line += fmt::format("{}{} `{}`", separator, type_name, Backing(cases->second, info.name, type_name));
    separator = ", ";
  }
  return line + "\n";
}

}  // namespace

std::string OpTable() {
  Coverage coverage;
  const std::vector<Case> cases = AllCases();
  for (const Case& c : cases) Cover(coverage, c);
  for (const Elsewhere& e : kElsewhere) {
    for (const ElementType type : kTypes) coverage[e.opcode][type].insert(e.test);
  }
  for (const ElementType type : {ElementType::kF64, ElementType::kC64, ElementType::kC128}) {
    coverage[Opcode::kCustomCall][type].insert(fmt::format("linear_algebra.{}", hlo::ElementTypeName(type)));
  }
  std::string text = fmt::format(
      "# Ops\n\nGenerated by `build/tests/conformance/ops_table > docs/ops.md` from the opcode table and the {} conformance cases; a test "
      "checks that it is up to date.\nd: on the device, h: with the host, empty: no case (XLA:CPU refuses the op for the type, or it moves no "
      "data). Each entry is backed by the case named\nbelow, run by `build/tests/conformance/conformance_on_device --only NAME`; `Transfers.*` are in tests/driver/transfers_test.cc, and "
      "the LAPACK custom-calls in tests/linear_algebra.\n\n| op | runs |",
      cases.size());
  std::string rule = "|---|---|";
  for (const ElementType type : kTypes) {
    text += fmt::format(" {} |", hlo::ElementTypeName(type));
    rule += "---|";
  }
  text += "\n" + rule + "\n";
  for (const hlo::OpcodeInfo& info : hlo::AllOpcodes()) text += Row(info, coverage);
  text += "\n## The case behind each entry\n\n";
  for (const hlo::OpcodeInfo& info : hlo::AllOpcodes()) text += Cases(info, coverage);
  return text;
}

}  // namespace hlorun::conformance
