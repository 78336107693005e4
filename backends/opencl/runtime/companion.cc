#include "backends/opencl/runtime/companion.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

extern char** environ;

namespace hlorun::opencl {

std::string CompanionProgram(const std::string& name, const char* variable) {
  std::vector<std::string> candidates;
  if (const char* path = std::getenv(variable)) candidates.push_back(path);
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&CompanionProgram), &info) != 0 && info.dli_fname != nullptr) {
    // A program that was found along PATH is known by its bare name.
    std::filesystem::path file = info.dli_fname;
    std::error_code ignored;
    if (!file.has_parent_path()) file = std::filesystem::read_symlink("/proc/self/exe", ignored);
    const std::string folder = file.parent_path().string();
    candidates.push_back(folder + "/" + name);
    candidates.push_back(folder + "/../libexec/hlorun/" + name);
  }
  candidates.push_back(HLORUN_COMPANIONS_BUILT "/" + name);
  candidates.push_back(HLORUN_COMPANIONS_INSTALLED "/" + name);
  for (const std::string& path : candidates) {
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

pid_t Start(std::vector<std::string> command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  }
  pid_t child = -1;
  const int spawned = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return spawned == 0 ? child : -1;
}

}  // namespace hlorun::opencl
