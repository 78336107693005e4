// conformance_dump DIR [SUBSTRING]: writes every case (whose name contains SUBSTRING) with its inputs and the
// evaluator's results: DIR/cases.json, and DIR/arrays.bin with all arrays one after another, row-major.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"
#include "hlo/verifier.h"
#include "tests/conformance/case.h"

namespace hlorun::conformance {
namespace {

class ArrayFile {
 public:
  explicit ArrayFile(const std::string& path) : stream_(path, std::ios::binary) {}

  // Flattened leaves, as [{"type", "dimensions", "offset"}].
  nlohmann::json Add(const hlo::Literal& literal) {
    nlohmann::json leaves = nlohmann::json::array();
    Append(literal, leaves);
    return leaves;
  }

 private:
  void Append(const hlo::Literal& literal, nlohmann::json& leaves) {
    for (const hlo::Literal& element : literal.elements()) Append(element, leaves);
    if (literal.shape().IsTuple()) return;
    leaves.push_back({{"type", std::string(hlo::ElementTypeName(literal.element_type()))},
                      {"dimensions", literal.shape().dimensions()},
                      {"offset", offset_}});
    stream_.write(reinterpret_cast<const char*>(literal.data()), literal.ByteSize());
    offset_ += literal.ByteSize();
  }

  std::ofstream stream_;
  int64_t offset_ = 0;
};

int Dump(const std::string& directory, const std::string& filter) {
  ArrayFile arrays(directory + "/arrays.bin");
  nlohmann::json cases = nlohmann::json::array();
  for (const Case& c : Candidates()) {
    if (c.name.find(filter) == std::string::npos) continue;
    nlohmann::json entry = {{"name", c.name},         {"text", c.text}, {"ulps", c.ulps},
                            {"relative", c.relative}, {"sums", c.sums}, {"oracle_fault", c.oracle_fault}};
    entry["inputs"] = nlohmann::json::array();
    for (const hlo::Literal& input : c.inputs) entry["inputs"].push_back(arrays.Add(input)[0]);
    try {
      const auto module = hlo::ParseModule(c.text, {.file_name = c.name});
      hlo::VerifyModule(*module);
      entry["outputs"] = arrays.Add(hlo::Evaluate(*module, c.inputs));
    } catch (const Error& error) {
      entry["error"] = error.what();
    }
    cases.push_back(std::move(entry));
  }
  std::ofstream(directory + "/cases.json") << cases.dump(1);
  std::cout << cases.size() << " cases in " << directory << "\n";
  return 0;
}

}  // namespace
}  // namespace hlorun::conformance

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: conformance_dump DIR [SUBSTRING]\n";
    return 2;
  }
  try {
    return hlorun::conformance::Dump(argv[1], argc == 3 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
