#include "backends/opencl/runtime/compiler_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "backends/opencl/runtime/cache_directory.h"
#include "backends/opencl/runtime/companion.h"
#include "hlo/atomic_file.h"

namespace hlorun::opencl {
namespace {

constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::milliseconds kPoll{1};

std::string FileOf(const std::string& folder, size_t request, const char* what) {
  return fmt::format("{}/{}.{}", folder, request, what);
}

bool ClaimIn(const std::string& folder, size_t request) {
  const int file = open(FileOf(folder, request, "claim").c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return errno != EEXIST;
  close(file);
  return true;
}

cl::Device DeviceCalled(const std::string& name, size_t platform) {
  std::vector<cl::Platform> platforms;
  cl::Platform::get(&platforms);
  std::vector<cl::Device> devices;
  platforms.at(platform).getDevices(CL_DEVICE_TYPE_ALL, &devices);
  for (const cl::Device& device : devices) {
    if (device.getInfo<CL_DEVICE_NAME>() == name) return device;
  }
  Fail(ErrorCode::kNotFound, "platform {} has no device {}", platform, name);
}

}  // namespace

CompilerProcesses::CompilerProcesses(const std::vector<ProgramRequest>& requests, const Device& device, size_t count,
                                     const std::string& folder) {
  const std::string program = CompanionProgram("hlorun-compiler", "HLORUN_COMPILER");
  if (count == 0 || program.empty()) return;
  folder_ = MakeTemporaryFolder(folder, "compile");
  if (folder_.empty()) return;
  try {
    for (size_t r = 0; r < requests.size(); ++r)
      WriteFileAtomically(FileOf(folder_, r, "request"), requests[r].ToJson());
  } catch (const std::exception&) {
    return;  // what could not be written (a full disk, a source that is no UTF-8) nobody claims but the owner
  }
  const std::vector<std::string> command = {program, std::to_string(device.platform_index()),
                                            device.device().getInfo<CL_DEVICE_NAME>(), folder_,
                                            std::to_string(requests.size())};
  for (size_t i = 0; i < count; ++i) {
    const pid_t process = Start(command);
    if (process > 0) processes_.push_back(process);
  }
}

CompilerProcesses::~CompilerProcesses() {
  AllEnded();  // the number of one that somebody else waited for may be another's by now
  for (pid_t process : processes_) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  std::error_code error;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
}

bool CompilerProcesses::Claim(size_t request) const { return folder_.empty() || ClaimIn(folder_, request); }

bool CompilerProcesses::AllEnded() {
  std::erase_if(processes_, [](pid_t process) { return waitpid(process, nullptr, WNOHANG) != 0; });
  return processes_.empty();
}

std::optional<std::string> CompilerProcesses::Take(size_t request) {
  const std::string path = FileOf(folder_, request, "binary");
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::string binary;
  for (;;) {
    const bool ended = AllEnded() || std::chrono::steady_clock::now() > deadline;
    if (ReadWholeFile(path, binary)) return binary;
    if (ended) return std::nullopt;
    std::this_thread::sleep_for(kPoll);
  }
}

int CompilerProcesses::Main(int argc, char** argv) {
  if (argc != 5) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody wants the programs of a process that was killed
  const std::string folder = argv[3];
  const size_t count = std::strtoul(argv[4], nullptr, 10);
  const cl::Device device = DeviceCalled(argv[2], std::strtoul(argv[1], nullptr, 10));
  for (size_t r = 0; r < count; ++r) {
    if (!ClaimIn(folder, r)) continue;
    std::string request;
    if (!ReadWholeFile(FileOf(folder, r, "request"), request)) continue;
    WriteFileAtomically(FileOf(folder, r, "binary"), CompileProgram(ProgramRequest::FromJson(request), device));
  }
  return 0;
}

}  // namespace hlorun::opencl
