// Registrations of custom-calls as JSON; examples/custom_call/README.md describes the format.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "driver/custom_calls/shared_library.h"
#include "hlo/error.h"
#include "hlo/reader.h"
#include "hlorun/hlorun.h"

namespace hlorun {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kKeys[] = {"target", "operands",  "results", "library", "function", "source",
                                 "kernel", "arguments", "global",  "local",   "define"};

// Files are named relative to the registration's own folder.
std::string Beside(const fs::path& folder, const std::string& name) {
  return fs::path(name).is_absolute() ? name : (folder / name).string();
}

// "operand 0", "result 1"
hlo::OpenClCall::Argument ParseArgument(const std::string& text, size_t operands, size_t results) {
  hlo::OpenClCall::Argument argument;
  const size_t space = text.find(' ');
  const std::string kind = text.substr(0, space);
  argument.is_operand = kind == "operand";
  const size_t limit = argument.is_operand ? operands : results;
  const std::string number = space == std::string::npos ? "" : text.substr(space + 1);
  const bool is_number =
      !number.empty() && number.size() < 6 && number.find_first_not_of("0123456789") == std::string::npos;
  if ((kind != "operand" && kind != "result") || !is_number || std::stoul(number) >= limit) {
    Invalid("\"{}\" is no argument; there are \"operand I\" with I < {} and \"result I\" with I < {}", text, operands,
            results);
  }
  argument.number = std::stol(number);
  return argument;
}

hlo::OpenClCall ParseKernel(const Json& entry, const fs::path& folder) {
  hlo::OpenClCall call;
  call.file = Beside(folder, entry.at("source").get<std::string>());
  call.source = hlo::ReadFileOrStdin(call.file);
  call.kernel = entry.at("kernel").get<std::string>();
  const size_t operands = entry.at("operands").size(), results = entry.at("results").size();
  for (const auto& text : entry.at("arguments").get<std::vector<std::string>>()) {
    call.arguments.push_back(ParseArgument(text, operands, results));
  }
  call.global = entry.at("global").get<std::vector<std::string>>();
  call.local = entry.value("local", std::vector<std::string>{});
  if (call.global.empty() || call.global.size() > 3 || call.local.size() > 3) Invalid("a grid has 1 to 3 dimensions");
  call.definitions = entry.value("define", std::map<std::string, std::string>{});
  return call;
}

hlo::CustomCallDefinition ParseEntry(const Json& entry, const fs::path& folder) {
  for (const auto& [key, value] : entry.items()) {
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) {
      Invalid("\"{}\" is no key; there are {}", key, fmt::join(kKeys, ", "));
    }
  }
  hlo::CustomCallDefinition definition{entry.at("target").get<std::string>(),
                                       hlo::Signature(entry.at("operands").get<std::vector<std::string>>(),
                                                      entry.at("results").get<std::vector<std::string>>()),
                                       {},
                                       {}};
  if (entry.contains("library")) {
    const auto library = SharedLibrary::Open(Beside(folder, entry.at("library").get<std::string>()));
    definition.host = library->Function(entry.at("function").get<std::string>());
  }
  if (entry.contains("source")) definition.kernel = ParseKernel(entry, folder);
  if (!definition.host && !definition.kernel) Invalid("it has neither a \"library\" nor a \"source\"");
  return definition;
}

}  // namespace

std::shared_ptr<CustomCallRegistry> LoadCustomCalls(const std::string& path) {
  const auto registry = std::make_shared<CustomCallRegistry>();
  std::string target;
  try {
    const Json file = Json::parse(hlo::ReadFileOrStdin(path));
    for (const Json& entry : file.at("custom_calls")) {
      target = entry.value("target", "?") + ": ";
      registry->Add(ParseEntry(entry, fs::path(path).parent_path()));
    }
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}{}", path, target, error.message()));
  } catch (const Json::exception& error) {
    Invalid("{}: {}{}", path, target, error.what());
  }
  return registry;
}

}  // namespace hlorun
