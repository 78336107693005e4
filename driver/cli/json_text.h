// JSON as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hlorun::cli {

// Names come from the user's module, which need not be UTF-8: what is not becomes U+FFFD.
inline std::string TextOf(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace hlorun::cli
