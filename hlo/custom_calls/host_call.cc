#include "hlo/custom_calls/host_call.h"

#include <cctype>
#include <charconv>

#include "hlo/error.h"

namespace hlorun::hlo {
namespace {

thread_local int host_functions_here = 0;

class InHostFunction {
 public:
  InHostFunction() { ++host_functions_here; }
  ~InHostFunction() { --host_functions_here; }
  InHostFunction(const InHostFunction&) = delete;
  InHostFunction& operator=(const InHostFunction&) = delete;
};

}  // namespace

bool IsInHostFunction() { return host_functions_here > 0; }

void CallHostFunction(const HostFunction& function, const HostCall& call) {
  const InHostFunction inside;
  try {
    function(call);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    Fail(ErrorCode::kAborted, "custom-call target \"{}\" failed: {}", call.target, error.what());
  } catch (...) {
    Fail(ErrorCode::kAborted, "custom-call target \"{}\" failed with an exception that is no std::exception",
         call.target);
  }
}

std::optional<std::string> ConfigText(std::string_view config, std::string_view key) {
  for (const std::string& pattern : {fmt::format("{} = ", key), fmt::format("\"{}\": ", key)}) {
    for (size_t at = config.find(pattern); at != std::string_view::npos; at = config.find(pattern, at + 1)) {
      // "k = 1" is no answer to a question for the end of another key.
      const char before = at == 0 ? '{' : config[at - 1];
      if (std::isalnum(static_cast<unsigned char>(before)) != 0 || before == '_' || before == '.') continue;
      const size_t begin = at + pattern.size();
      return std::string(config.substr(begin, config.find_first_of(" ,}", begin) - begin));
    }
  }
  return std::nullopt;
}

int64_t ConfigInteger(std::string_view config, std::string_view key) {
  const std::optional<std::string> text = ConfigText(config, key);
  if (!text) Invalid("its backend_config {} has no {}", config, key);
  if (*text == "true" || *text == "false") return *text == "true" ? 1 : 0;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) {
    Invalid("its backend_config gives {} the value {}, which is no number", key, *text);
  }
  return value;
}

}  // namespace hlorun::hlo
