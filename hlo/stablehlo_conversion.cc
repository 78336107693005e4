#include "hlo/stablehlo_conversion.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "hlo/error.h"

extern char** environ;

namespace hlorun::hlo {
namespace {

constexpr std::string_view kScript = "stablehlo_to_hlo.py";

// An anonymous file: a child reads and writes it without pipes, so neither side can block the other.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : descriptor_(memfd_create(name, MFD_CLOEXEC)) {
    if (descriptor_ < 0) Fail(ErrorCode::kResourceExhausted, "cannot make a temporary file: {}", std::strerror(errno));
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }

  void Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) Fail(ErrorCode::kResourceExhausted, "cannot write a temporary file: {}", std::strerror(errno));
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    lseek(descriptor_, 0, SEEK_SET);
  }

  std::string ReadAll() {
    std::string bytes(static_cast<size_t>(lseek(descriptor_, 0, SEEK_END)), '\0');
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = pread(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  }

 private:
  int descriptor_;
};

// The script beside the running binary: in the source tree, in a build tree below it, or installed.
std::string FindScript() {
  std::error_code error;
  const std::filesystem::path binary = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  std::filesystem::path folder = binary.parent_path();
  for (int up = 0; up < 5; ++up) {
    for (const char* place : {"scripts", "share/hlorun/scripts"}) {
      const std::filesystem::path candidate = folder / place / kScript;
      if (std::filesystem::exists(candidate, error)) return candidate.string();
    }
    folder = folder.parent_path();
  }
  return {};
}

struct ChildResult {
  int status = 0;  // as of waitpid
  std::string output;
  std::string errors;
};

ChildResult Run(const std::array<std::string, 3>& arguments, const std::string& input) {
  MemoryFile in("hlorun-stablehlo"), out("hlorun-hlo"), err("hlorun-errors");
  in.Write(input);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.descriptor(), STDERR_FILENO);
  std::array<char*, 4> argv{};
  for (size_t i = 0; i < arguments.size(); ++i) argv[i] = const_cast<char*>(arguments[i].c_str());
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ChildResult result;
  if (failed != 0) {
    result.status = -1;
    result.errors = std::strerror(failed);
    return result;
  }
  while (waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
  }
  result.output = out.ReadAll();
  result.errors = err.ReadAll();
  return result;
}

// The last line that says something: where Python puts its error.
std::string LastLine(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const size_t newline = text.rfind('\n');
  return std::string(newline == std::string_view::npos ? text : text.substr(newline + 1));
}

}  // namespace

std::string ConvertStableHlo(const std::string& bytes, const std::string& file_name, const std::string& converter) {
  const std::string script = converter.empty() ? FindScript() : converter;
  const std::string by_hand = fmt::format("python3 scripts/{} {} -o graph.hlo", kScript, file_name);
  if (script.empty()) {
    Fail(ErrorCode::kFailedPrecondition,
         "{}: this is StableHLO, and {} is not installed beside this program: convert it with: {}", file_name, kScript,
         by_hand);
  }
  const char* python = std::getenv("HLORUN_PYTHON");
  const std::string interpreter = python != nullptr && *python != '\0' ? python : "python3";
  ChildResult result = Run({interpreter, script, "-"}, bytes);
  const bool succeeded = result.status != -1 && WIFEXITED(result.status) && WEXITSTATUS(result.status) == 0;
  if (!succeeded) {
    Fail(ErrorCode::kFailedPrecondition,
         "{}: this is StableHLO, and converting it to HLO failed ({}): it takes a python3 with jax (pip install "
         "jax==0.10.2; HLORUN_PYTHON names another interpreter): {}",
         file_name, LastLine(result.errors), by_hand);
  }
  return std::move(result.output);
}

}  // namespace hlorun::hlo
