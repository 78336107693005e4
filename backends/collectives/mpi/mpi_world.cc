#include "backends/collectives/mpi/mpi_world.h"

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "hlo/error.h"

namespace hlorun::collectives {
namespace {

constexpr int kMessages = 0;    // channels of the plugin
constexpr int kHeartbeats = 1;
constexpr int kBeatMs = 250;

int64_t NowMs() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

// Plugins lie beside the binary in the build tree, or in lib/hlorun of the installation.
std::vector<std::string> PluginPaths(const std::string& mpi) {
  const std::string name = "libhlorun_mpi_" + mpi + ".so";
  std::vector<std::string> paths;
  if (const char* folder = std::getenv("HLORUN_PLUGIN_DIR")) paths.push_back(std::string(folder) + "/" + name);
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    paths.push_back((self.parent_path() / name).string());
    paths.push_back((self.parent_path() / "../lib/hlorun" / name).lexically_normal().string());
  }
  paths.push_back(name);
  return paths;
}

}  // namespace

class MpiWorld::MpiRequest : public Request {
 public:
  MpiRequest(MpiWorld* world, void* request) : world_(world), request_(request) {}
  bool Test() override {
    if (request_ == nullptr) return true;
    const std::lock_guard<std::mutex> lock(world_->mutex_);
    int done = 0;
    world_->Check(world_->plugin_->test(&request_, &done), "a message");
    return done != 0;
  }

 private:
  MpiWorld* world_;
  void* request_;
};

MpiWorld::MpiWorld(const std::string& mpi, double heartbeat) : heartbeat_(heartbeat) {
  std::string tried;
  for (const std::string& path : PluginPaths(mpi)) {
    // Open MPI's own plugins resolve symbols of libmpi globally.
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library_ != nullptr) break;
    tried += fmt::format("; {}", dlerror());
  }
  if (library_ == nullptr) {
    Fail(ErrorCode::kFailedPrecondition,
         "the launcher is {}'s, but hlorun was built without it: install its development package and rebuild{}", mpi, tried);
  }
  const auto entry = reinterpret_cast<const HlorunMpiPlugin* (*)()>(dlsym(library_, HLORUN_MPI_PLUGIN_SYMBOL));
  plugin_ = entry == nullptr ? nullptr : entry();
  if (plugin_ == nullptr || plugin_->version != HLORUN_MPI_PLUGIN_VERSION) {
    Fail(ErrorCode::kFailedPrecondition, "the MPI plugin for {} is of another version of hlorun: rebuild both", mpi);
  }
  Check(plugin_->init(&rank_, &size_), "starting MPI");
  last_heard_ms_ = std::vector<std::atomic<int64_t>>(static_cast<size_t>(size_));
  for (auto& heard : last_heard_ms_) heard = NowMs();
  if (size_ > 1 && heartbeat_ > 0) beater_ = std::thread([this] { BeatUntilStopped(); });
}

MpiWorld::~MpiWorld() {
  stop_ = true;
  if (beater_.joinable()) beater_.join();
}

void MpiWorld::Check(int code, const char* what) const {
  if (code == 0) return;
  char text[256] = "";
  plugin_->error_text(code, text, sizeof text);
  Fail(ErrorCode::kAborted, "MPI: {} failed: {}", what, text);
}

std::unique_ptr<Request> MpiWorld::Send(std::span<const std::byte> data, int to, int tag) {
  const std::lock_guard<std::mutex> lock(mutex_);
  void* request = nullptr;
  Check(plugin_->send(kMessages, data.data(), data.size(), to, tag, &request), "a send");
  return std::make_unique<MpiRequest>(this, request);
}

std::unique_ptr<Request> MpiWorld::Receive(std::span<std::byte> data, int from, int tag) {
  const std::lock_guard<std::mutex> lock(mutex_);
  void* request = nullptr;
  Check(plugin_->receive(kMessages, data.data(), data.size(), from, tag, &request), "a receive");
  return std::make_unique<MpiRequest>(this, request);
}

// One peer's heartbeat traffic: a receive that is always posted, and the last beat sent.
struct MpiWorld::Pulse {
  int peer = 0;
  char in = 0, out = 0;
  void* receive = nullptr;
  void* send = nullptr;
};

void MpiWorld::BeatUntilStopped() {
  std::vector<Pulse> pulses(static_cast<size_t>(size_ - 1));
  for (int peer = 0, i = 0; peer < size_; ++peer) {
    if (peer != rank_) pulses[static_cast<size_t>(i++)].peer = peer;
  }
  while (!stop_) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (Pulse& pulse : pulses) {
        int done = 0;
        if (pulse.send != nullptr) plugin_->test(&pulse.send, &done);
        if (pulse.send == nullptr) plugin_->send(kHeartbeats, &pulse.out, 1, pulse.peer, 0, &pulse.send);
        // Drain: several beats may have arrived.
        do {
          done = 0;
          if (pulse.receive == nullptr) plugin_->receive(kHeartbeats, &pulse.in, 1, pulse.peer, 0, &pulse.receive);
          plugin_->test(&pulse.receive, &done);
          if (done != 0) last_heard_ms_[static_cast<size_t>(pulse.peer)] = NowMs();
        } while (done != 0);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kBeatMs));
  }
  // Requests that are still open are abandoned on purpose: the job ends, and a silent peer would never complete them.
}

void MpiWorld::CheckPeers() {
  if (heartbeat_ <= 0 || !beater_.joinable()) return;
  const int64_t now = NowMs();
  for (int peer = 0; peer < size_; ++peer) {
    const auto silent = static_cast<double>(now - last_heard_ms_[static_cast<size_t>(peer)]) / 1000;
    if (peer != rank_ && silent > heartbeat_) {
      Fail(ErrorCode::kAborted, "rank {} has been silent for {:.1f} s: it was killed or stopped (--heartbeat=0 waits for ever)",
           peer, silent);
    }
  }
}

void MpiWorld::Finalize() {
  stop_ = true;
  if (beater_.joinable()) beater_.join();
  const std::lock_guard<std::mutex> lock(mutex_);
  plugin_->finalize();
}

void MpiWorld::Abort() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    plugin_->abort(2);
  }
  _exit(2);
}

}  // namespace hlorun::collectives
