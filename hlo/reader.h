// Reads a module from a file of any kind that hlorun understands, found by content, not by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/module.h"

namespace hlorun::hlo {

enum class FileKind {
  kHloText,
  kHloProto,  // HloModuleProto, HloProto or HloSnapshot
  kStableHloText,
  kStableHloBytecode,
  kTorchExport,  // .pt2 (zip)
  kOnnx,
  kPlan,  // saved by --save_plan
  kUnknown,
};
FileKind SniffFileKind(std::string_view bytes);

// A saved plan starts with these eight bytes.
inline constexpr std::string_view kPlanMagic = "hlorplan";

struct ReadOptions {
  bool fill_elided = false;
  bool verify = true;  // so that errors name the file and, in text, the line
  // Path of scripts/stablehlo_to_hlo.py; empty: looked up around the running binary (scripts/, ../scripts/,
  // ../share/hlorun/scripts/ and so on). It runs under $HLORUN_PYTHON, or else the python3 on PATH, which must have
  // jaxlib.
  std::string stablehlo_converter;
};

// `path` "-" is stdin. Throws Error: kNotFound for a missing file; for formats that need an exporter, the message is
// the exact command to run.
std::string ReadFileOrStdin(const std::string& path);
std::vector<std::unique_ptr<Module>> ReadModules(const std::string& path, const ReadOptions& options = {});
std::vector<std::unique_ptr<Module>> ReadModulesFromBytes(const std::string& bytes, const std::string& file_name,
                                                          const ReadOptions& options = {});

}  // namespace hlorun::hlo
