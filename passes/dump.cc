#include "passes/dump.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>

#include "hlo/error.h"
#include "hlo/text/printer.h"

namespace hlorun::passes {

void DumpText(const CompileOptions& options, std::string_view module_name, int64_t module_number, std::string_view file,
              std::string_view text) {
  if (options.dump_to.empty()) return;
  std::error_code code;
  std::filesystem::create_directories(options.dump_to, code);
  if (code) Invalid("cannot make the dump folder {}: {}", options.dump_to, code.message());
  std::string name(module_name);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-' && c != '_') c = '_';
  }
  const std::string path = fmt::format("{}/module_{:04}.{}.{}", options.dump_to, module_number, name, file);
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) Fail(ErrorCode::kResourceExhausted, "cannot write the dump {}", path);
}

void DumpModule(const CompileOptions& options, const hlo::Module& module, int64_t module_number,
                std::string_view stage) {
  if (options.dump_to.empty()) return;
  DumpText(options, module.name(), module_number, fmt::format("{}.txt", stage), hlo::PrintModule(module));
}

Pipeline::Observer DumpingObserver(const CompileOptions& options, int64_t module_number) {
  if (options.dump_to.empty() || options.dump_pass_re.empty()) return {};
  auto expression = std::make_shared<std::regex>();
  try {
    *expression = std::regex(options.dump_pass_re);
  } catch (const std::regex_error& error) {
    Invalid("--dump_pass_re={}: {}", options.dump_pass_re, error.what());
  }
  auto count = std::make_shared<int>(0);
  return [options, module_number, expression, count](const hlo::Module& module, std::string_view pass, bool changed,
                                                     double) {
    ++*count;
    if (!changed || !std::regex_search(std::string(pass), *expression)) return;
    DumpModule(options, module, module_number, fmt::format("{:04}.{}", *count, pass));
  };
}

}  // namespace hlorun::passes
