// Programs of dynamic size with an oracle: the same text at static sizes, run on arrays without padding.
//
// In the text ${N} stands for a size, ${3N+2} for 3 N + 2. The bounded program has <=B there, the oracle the number
// itself.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace hlorun::testing_support {

struct SizedCase {
  std::string name;
  std::string text;
  std::map<std::string, int64_t> bounds;  // of the sizes that the text names: one letter each
  bool exact = true;                      // results are the same bits (else up to rounding)
};

inline void PrintTo(const SizedCase& c, std::ostream* out) { *out << c.name; }

const std::vector<SizedCase>& SizedCases();

// Each ${...} as its number, with "<=" before it where `bounded`.
std::string AtSizes(const std::string& text, const std::map<std::string, int64_t>& sizes, bool bounded);
// All combinations of sizes from 0 to the bounds; beyond `most` a seeded sample that holds 0, 1 and the bounds.
std::vector<std::map<std::string, int64_t>> AllSizes(const SizedCase& sized, size_t most);

}  // namespace hlorun::testing_support
