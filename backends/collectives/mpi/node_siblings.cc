#include "backends/collectives/mpi/node_siblings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backends/collectives/mpi/launcher.h"

namespace hlorun::collectives {
namespace {

// Who did not look for so long was stopped itself.
constexpr double kOwnPauseSeconds = 1.0;

std::string ReadProc(pid_t process, const char* file) {
  std::ifstream stream("/proc/" + std::to_string(process) + "/" + file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

// A variable of another process, as it was started; "" where it has none.
std::string VariableOf(const std::string& environment, const std::string& name) {
  const std::string key = name + "=";
  for (size_t at = 0; at < environment.size();) {
    const size_t end = std::min(environment.find('\0', at), environment.size());
    if (environment.compare(at, key.size(), key) == 0)
      return environment.substr(at + key.size(), end - at - key.size());
    at = end + 1;
  }
  return "";
}

char StateOf(pid_t process) {
  const std::string stat = ReadProc(process, "stat");
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && name_end + 2 < stat.size() ? stat[name_end + 2] : 0;
}

// Not a zombie, which has left, and not gone.
bool Lives(char state) { return state != 'Z' && state != 'X' && state != 0; }

std::vector<pid_t> ChildrenOf(pid_t process) {
  std::vector<pid_t> children;
  std::error_code error;
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  for (std::filesystem::directory_iterator it(tasks, error), end; !error && it != end; it.increment(error)) {
    std::ifstream file(it->path() / "children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace

NodeSiblings::NodeSiblings() : launcher_(getppid()), last_look_(Clock::now()) {
  const Launcher launcher = DetectLauncher();
  rank_ = launcher.rank;
  rank_variable_ = launcher.rank_variable;
  // One daemon may have the ranks of several jobs.
  job_variable_ = "PMIX_NAMESPACE";
  if (const char* job = std::getenv(job_variable_.c_str())) job_ = job;
  const char* local_size = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (local_size != nullptr && std::atoi(local_size) == launcher.size) {
    for (int rank = 0; rank < launcher.size; ++rank) {
      if (rank != rank_) expected_.insert(rank);
    }
  }
}

std::vector<NodeSiblings::Sibling> NodeSiblings::Siblings() const {
  std::vector<Sibling> siblings;
  if (rank_variable_.empty()) return siblings;
  for (const pid_t child : ChildrenOf(launcher_)) {
    if (child == getpid()) continue;
    const std::string environment = ReadProc(child, "environ");
    const std::string rank = VariableOf(environment, rank_variable_);
    if (rank.empty() || VariableOf(environment, job_variable_) != job_) continue;
    siblings.push_back({child, std::atoi(rank.c_str()), StateOf(child)});
  }
  std::sort(siblings.begin(), siblings.end(), [](const Sibling& a, const Sibling& b) { return a.rank < b.rank; });
  return siblings;
}

std::optional<NodeSiblings::Stopped> NodeSiblings::Look(double seconds) {
  const Clock::time_point now = Clock::now();
  if (std::chrono::duration<double>(now - last_look_).count() > kOwnPauseSeconds) stopped_since_.clear();
  last_look_ = now;
  std::optional<Stopped> first;
  for (const Sibling& sibling : Siblings()) {
    if (Lives(sibling.state)) expected_.insert(sibling.rank);
    if (sibling.state != 'T') {
      stopped_since_.erase(sibling.process);
      continue;
    }
    const auto since = stopped_since_.emplace(sibling.process, now).first->second;
    const double stopped = std::chrono::duration<double>(now - since).count();
    if (stopped > seconds && !first.has_value()) first = Stopped{sibling.rank, sibling.process, stopped};
  }
  return first;
}

int NodeSiblings::Missing() const {
  std::set<int> missing = expected_;
  for (const Sibling& sibling : Siblings()) {
    if (Lives(sibling.state)) missing.erase(sibling.rank);
  }
  return missing.size() == 1 ? *missing.begin() : -1;
}

bool NodeSiblings::HigherRanksLive() const {
  const std::vector<Sibling> siblings = Siblings();
  return std::any_of(siblings.begin(), siblings.end(),
                     [&](const Sibling& s) { return s.rank > rank_ && Lives(s.state); });
}

int NodeSiblings::LowerRanksRunning() const {
  const std::vector<Sibling> siblings = Siblings();
  return static_cast<int>(std::count_if(siblings.begin(), siblings.end(), [&](const Sibling& s) {
    return s.rank < rank_ && (s.state == 'R' || s.state == 'S' || s.state == 'D');
  }));
}

}  // namespace hlorun::collectives
