#include "backends/opencl/tuning/tuning_files.h"

#include <filesystem>
#include <optional>
#include <set>

#include "hlo/error.h"
#include "hlo/reader.h"

namespace hlorun::opencl {

TuningRecord ReadTuning(const std::string& path, const DeviceSpec& spec) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return TuningRecord::FromJson(hlo::ReadFileOrStdin(path), spec, path);
  }
  std::set<std::string> files;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".json") files.insert(entry->path().string());
  }
  if (error) Invalid("{}: cannot be read: {}", path, error.message());
  if (files.empty()) Invalid("{}: holds no *.json that --save_tuning wrote", path);
  TuningRecord record(spec);
  for (const std::string& file : files) {
    if (const auto part = TuningRecord::OfDevice(hlo::ReadFileOrStdin(file), spec, file)) record.Merge(*part);
  }
  return record;
}

}  // namespace hlorun::opencl
