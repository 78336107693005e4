// libFuzzer's mutator for HLO text: it changes tokens, for a change of bytes seldom gets past the parser.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/opcode.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) __attribute__((weak));

namespace {

using Random = std::mt19937_64;

constexpr std::array<std::string_view, 24> kNumbers = {"0",
                                                       "1",
                                                       "2",
                                                       "3",
                                                       "4",
                                                       "5",
                                                       "7",
                                                       "8",
                                                       "15",
                                                       "16",
                                                       "64",
                                                       "-1",
                                                       "-2",
                                                       "2147483647",
                                                       "-2147483648",
                                                       "4294967296",
                                                       "9223372036854775807",
                                                       "-9223372036854775808",
                                                       "nan",
                                                       "-inf",
                                                       "0.5",
                                                       "1e30",
                                                       "true",
                                                       "false"};
constexpr std::array<std::string_view, 20> kTypes = {"pred", "s2",  "s4",       "s8",  "s16", "s32", "s64",
                                                     "u2",   "u4",  "u8",       "u16", "u32", "u64", "bf16",
                                                     "f16",  "f32", "f8e4m3fn", "f64", "c64", "c128"};
constexpr std::array<std::string_view, 12> kMarks = {"{", "}", "[", "]", "(", ")", ",", "=", "x", "_", "<=", ":"};

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-'; }

std::vector<std::string_view> Tokens(std::string_view text) {
  std::vector<std::string_view> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (IsWord(text[at]) && end < text.size() && IsWord(text[end])) ++end;
    tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

template <size_t kCount>
std::string_view Pick(const std::array<std::string_view, kCount>& list, Random& random) {
  return list[random() % kCount];
}

// Another token of the kind of `token`.
std::string_view Replacement(std::string_view token, const std::vector<std::string_view>& tokens, Random& random) {
  static const std::vector<std::string_view> opcodes = [] {
    std::vector<std::string_view> names;
    for (const hlorun::hlo::OpcodeInfo& info : hlorun::hlo::AllOpcodes()) names.push_back(info.name);
    return names;
  }();
  const bool is_number = std::isdigit(static_cast<unsigned char>(token.front())) != 0 || token.front() == '-';
  if (random() % 4 == 0) return tokens[random() % tokens.size()];
  if (is_number) return Pick(kNumbers, random);
  if (!IsWord(token.front())) return Pick(kMarks, random);
  if (std::find(kTypes.begin(), kTypes.end(), token) != kTypes.end()) return Pick(kTypes, random);
  if (std::find(opcodes.begin(), opcodes.end(), token) != opcodes.end()) return opcodes[random() % opcodes.size()];
  return tokens[random() % tokens.size()];
}

std::string Mutated(std::string_view text, Random& random) {
  std::vector<std::string_view> tokens = Tokens(text);
  if (tokens.empty()) return std::string(text);
  const auto any = [&] { return random() % tokens.size(); };
  for (uint64_t i = 1 + random() % 3; i > 0; --i) {
    const size_t at = any();
    switch (random() % 8) {
      case 0: {  // drop a few
        const size_t end = std::min(tokens.size(), at + 1 + random() % 4);
        if (end - at < tokens.size())
          tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(at), tokens.begin() + static_cast<ptrdiff_t>(end));
        break;
      }
      case 1: {  // repeat a few elsewhere
        const std::vector<std::string_view> some(
            tokens.begin() + static_cast<ptrdiff_t>(at),
            tokens.begin() + static_cast<ptrdiff_t>(std::min(tokens.size(), at + 1 + random() % 30)));
        tokens.insert(tokens.begin() + static_cast<ptrdiff_t>(any()), some.begin(), some.end());
        break;
      }
      default: {  // replace one that is not white space
        size_t k = at;
        while (k + 1 < tokens.size() && std::isspace(static_cast<unsigned char>(tokens[k].front())) != 0) ++k;
        tokens[k] = Replacement(tokens[k], tokens, random);
      }
    }
  }
  std::string result;
  for (const std::string_view token : tokens) result += token;
  return result;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  Random random(seed);
  if (random() % 10 == 0 && LLVMFuzzerMutate != nullptr) return LLVMFuzzerMutate(data, size, max_size);
  const std::string text = Mutated({reinterpret_cast<const char*>(data), size}, random);
  const size_t bytes = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), bytes);
  return bytes;
}
