// Words of a program's text that stand for others.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hlorun {

inline std::string Replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& words) {
  for (const auto& [word, with] : words) {
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += with.size())
      text.replace(at, word.size(), with);
  }
  return text;
}

}  // namespace hlorun
