#include "backends/opencl/runtime/pocl_cache.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace hlorun::opencl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGenericVariant = "0-0-0";  // local size; 0: any

std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (it->is_directory(gone)) folders.push_back(it->path());
  }
  return folders;
}

// FOLDER/VARIANT/SYMBOL.so -> FOLDER/0-0-0/SYMBOL.so
void LinkIn(const fs::path& folder, const std::string& symbol) {
  std::error_code error;
  const fs::path generic = folder / kGenericVariant / (symbol + ".so");
  if (fs::exists(generic, error)) return;
  for (const fs::path& variant : FoldersIn(folder)) {
    const fs::path code = variant / (symbol + ".so");
    if (!fs::exists(code, error)) continue;
    fs::create_directory(generic.parent_path(), error);
    fs::create_hard_link(code, generic, error);
    return;
  }
}

}  // namespace

std::string PoclCacheFolder() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
  };
  if (std::string folder = variable("POCL_CACHE_DIR"); !folder.empty()) return folder;
  if (const std::string folder = variable("XDG_CACHE_HOME"); !folder.empty()) return folder + "/pocl/kcache";
  return variable("HOME") + "/.cache/pocl/kcache";
}

void LinkGenericVariants(std::span<const std::string> symbols) {
  if (symbols.empty()) return;
  // CACHE/XX/HASH OF THE PROGRAM/SYMBOL/VARIANT/SYMBOL.so
  for (const fs::path& group : FoldersIn(PoclCacheFolder())) {
    for (const fs::path& program : FoldersIn(group)) {
      std::error_code error;
      if (!fs::exists(program / symbols[0], error)) continue;
      for (const std::string& symbol : symbols) LinkIn(program / symbol, symbol);
    }
  }
}

}  // namespace hlorun::opencl
