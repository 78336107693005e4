#include "tests/end_to_end/command.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace hlorun::testing_support {

TemporaryFolder::TemporaryFolder() {
  char name[] = "/tmp/hlorun_test_XXXXXX";
  path_ = mkdtemp(name);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code still_used;  // by a process that was killed and has not gone yet
  std::filesystem::remove_all(path_, still_used);
}

std::string TemporaryFolder::Write(const std::string& name, const std::string& contents) const {
  std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
  std::ofstream(*this / name, std::ios::binary) << contents;
  return *this / name;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string FilesUnder(const std::string& folder) { return RunCommand("find " + folder + " -type f 2>/dev/null").out; }

CommandResult RunCommand(const std::string& command) {
  const TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  // Of several mpirun in one temporary folder, one that ends may take away what another has just made.
  std::filesystem::create_directory(folder / "tmp");
  const int status = std::system(("(export TMPDIR=" + (folder / "tmp") + "; " + command + ") >" + (folder / "out") +
                                  " 2>" + (folder / "err") + " </dev/null")
                                     .c_str());
  CommandResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.out = ReadAll(folder / "out");
  result.err = ReadAll(folder / "err");
  return result;
}

void ExpectTrouble(const CommandResult& result, const std::vector<std::string>& texts) {
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  for (const std::string& text : texts) EXPECT_THAT(result.err, ::testing::HasSubstr(text));
}

bool ProcessLives(const std::string& text) {
  std::error_code gone;
  for (std::filesystem::directory_iterator it("/proc", gone), end; it != end; it.increment(gone)) {
    const std::string name = it->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (ReadAll(it->path() / "cmdline").find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace hlorun::testing_support
