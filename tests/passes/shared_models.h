// The real modules beside the repository: tests over them skip where the folder is absent.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace hlorun::passes {

// Paths of all .hlo files under shared/models, sorted; empty when there are none.
inline std::vector<std::string> SharedModels() {
  const char* shared = std::getenv("HLORUN_SHARED");
  const std::filesystem::path folder =
      (shared != nullptr ? std::filesystem::path(shared) : std::filesystem::path(HLORUN_SOURCE_DIR) / "../shared") /
      "models";
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (entry.path().extension() == ".hlo") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace hlorun::passes
