#include "hlo/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "hlo/error.h"
#include "hlo/proto/proto.h"
#include "hlo/stablehlo_conversion.h"
#include "hlo/text/parser.h"
#include "hlo/verifier.h"

namespace hlorun::hlo {

namespace {

constexpr std::string_view kZipMagic = "PK\x03\x04";
constexpr std::string_view kMlirBytecodeMagic = "ML\xEFR";

// The first word of a text, behind blanks and comments.
std::string_view FirstWord(std::string_view text) {
  while (!text.empty()) {
    const size_t blank = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    text.remove_prefix(blank);
    if (text.starts_with("//")) {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    } else if (text.starts_with("/*")) {
      text.remove_prefix(std::min(text.find("*/"), text.size() - 2) + 2);
    } else {
      break;
    }
  }
  const bool quoted = text.starts_with('"');
  return text.substr(0, std::min(text.find_first_of(" \t\r\n({@", quoted ? 1 : 0), text.size()));
}

// MLIR starts with a module, or with the aliases (#loc, !type) that its module uses.
bool LooksLikeMlir(std::string_view text) {
  const std::string_view word = FirstWord(text);
  if (word == "module" || word == "builtin.module" || word == "\"builtin.module\"") return true;
  const bool has_alias = word.starts_with('#') || word.starts_with('!');
  const bool has_function = word == "func.func" || word == "func" || word == "\"func.func\"";
  return has_function || (has_alias && text.find('=') != std::string_view::npos);
}

bool LooksLikeText(std::string_view bytes) {
  constexpr size_t kLooked = 4096;
  const std::string_view head = bytes.substr(0, kLooked);
  return std::none_of(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  });
}

// ONNX's ModelProto starts with field 1, ir_version, a small number; then producer, domain, graph or opset follow.
bool LooksLikeOnnx(std::string_view bytes) {
  if (bytes.size() < 4 || bytes[0] != '\x08' || bytes[1] < 1 || bytes[1] > 32) return false;
  const auto field = static_cast<unsigned char>(bytes[2]);
  constexpr unsigned char kLengthDelimited = 2;
  return (field & 7) == kLengthDelimited && field >> 3 >= 2 && field >> 3 <= 8;
}

std::string StrippedName(const std::string& file_name) { return file_name == "-" ? "stdin" : file_name; }

std::vector<std::unique_ptr<Module>> VerifiedText(const std::string& text, const std::string& name,
                                                  const ReadOptions& options) {
  ModuleSource source{name, {}};
  auto modules = ParseModules(text, {name, options.fill_elided, &source});
  for (const auto& module : modules) {
    if (options.verify) VerifyModule(*module, source);
  }
  return modules;
}

}  // namespace

FileKind SniffFileKind(std::string_view bytes) {
  if (bytes.starts_with(kPlanMagic)) return FileKind::kPlan;
  if (bytes.starts_with(kZipMagic)) return FileKind::kTorchExport;
  if (bytes.starts_with(kMlirBytecodeMagic)) return FileKind::kStableHloBytecode;
  if (bytes.empty()) return FileKind::kUnknown;
  if (LooksLikeText(bytes)) return LooksLikeMlir(bytes) ? FileKind::kStableHloText : FileKind::kHloText;
  if (LooksLikeHloProto(bytes)) return FileKind::kHloProto;
  if (LooksLikeOnnx(bytes)) return FileKind::kOnnx;
  return FileKind::kUnknown;
}

std::string ReadFileOrStdin(const std::string& path) {
  const bool is_stdin = path == "-";
  const int descriptor = is_stdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    Fail(missing ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument, "cannot open {}: {}", path,
         std::strerror(errno));
  }
  std::string bytes;
  struct stat status {};
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) bytes.reserve(static_cast<size_t>(status.st_size));
  constexpr size_t kChunk = size_t{1} << 20;
  std::string chunk(kChunk, '\0');
  int error = 0;
  while (true) {
    const ssize_t got = read(descriptor, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    bytes.append(chunk, 0, static_cast<size_t>(got));
  }
  if (!is_stdin) close(descriptor);
  if (error != 0) Invalid("cannot read {}: {}", StrippedName(path), std::strerror(error));
  return bytes;
}

std::vector<std::unique_ptr<Module>> ReadModules(const std::string& path, const ReadOptions& options) {
  return ReadModulesFromBytes(ReadFileOrStdin(path), path, options);
}

std::vector<std::unique_ptr<Module>> ReadModulesFromBytes(const std::string& bytes, const std::string& file_name,
                                                          const ReadOptions& options) {
  const std::string name = StrippedName(file_name);
  std::vector<std::unique_ptr<Module>> modules;
  switch (SniffFileKind(bytes)) {
    case FileKind::kHloText: return VerifiedText(bytes, name, options);
    case FileKind::kHloProto:
      modules.push_back(ModuleFromProto(bytes, name));
      if (options.verify) VerifyModule(*modules.back(), {name, {}});
      return modules;
    case FileKind::kStableHloText:
    case FileKind::kStableHloBytecode:
      return VerifiedText(ConvertStableHlo(bytes, name, options.stablehlo_converter), name + " (converted to HLO)",
                          options);
    case FileKind::kTorchExport:
      Invalid(
          "{}: this is a zip archive, as torch.export writes .pt2 files, not HLO: convert it with: python3 "
          "scripts/export_torch.py {} --output DIR, then run DIR/module.hlo",
          name, name);
    case FileKind::kOnnx:
      Invalid(
          "{}: this is an ONNX model, not HLO: export the model it was made from instead, with: python3 "
          "scripts/export_torch.py MODEL.pt2 --output DIR (PyTorch) or scripts/export_jax.py (JAX)",
          name);
    case FileKind::kPlan: Invalid("{}: this is a saved plan, not a module: run it with: hlorun {}", name, name);
    case FileKind::kUnknown: break;
  }
  if (bytes.empty()) Invalid("{}: the file is empty", name);
  Invalid("{}: this is neither HLO text, an HLO proto, nor StableHLO (it starts with the bytes {:02x})", name,
          fmt::join(std::vector<uint8_t>(bytes.begin(),
                                         bytes.begin() + static_cast<int64_t>(std::min<size_t>(bytes.size(), 8))),
                    " "));
}

}  // namespace hlorun::hlo
