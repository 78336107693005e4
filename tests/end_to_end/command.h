// Runs a command and keeps what it printed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hlorun::testing_support {

struct CommandResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out, err;
  double seconds = 0;
};
// `command` goes to /bin/sh.
CommandResult RunCommand(const std::string& command);

// Exit code 2, nothing on stdout, and a message that holds each of `texts`.
void ExpectTrouble(const CommandResult& result, const std::vector<std::string>& texts);
inline constexpr double kAtOnceSeconds = 10;  // for what is refused before it runs

// Whether a process lives whose command line holds `text`.
bool ProcessLives(const std::string& text);

// A folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& contents) const;

 private:
  std::string path_;
};

std::string ReadAll(const std::string& path);
// The paths of all files in a folder, a line each; none where there is no folder.
std::string FilesUnder(const std::string& folder);

}  // namespace hlorun::testing_support
