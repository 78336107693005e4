#include "backends/collectives/mpi/mpi_world.h"

#include <dlfcn.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include "backends/collectives/mpi/launcher.h"
#include "backends/collectives/mpi/node_siblings.h"
#include "backends/collectives/mpi/watchdog.h"
#include "hlo/error.h"

namespace hlorun::collectives {
namespace {

constexpr int kMessages = 0;  // channels of the plugin
constexpr int kWatch = 1;
constexpr int kBeatTag = 0, kReportTag = 1;  // of the second channel

constexpr int64_t kPollMs = 50;
constexpr int64_t kBeatMs = 250;
// One failure shows on several ranks within moments: so long the reports are collected before the first cause is
// printed.
constexpr int64_t kCollectMs = 400;
// A rank that has reported waits so long to be ended, and then ends the job itself.
constexpr double kGraceSeconds = 1.5;
// This process was stopped itself, if it did not look for so long: what it missed is nobody's silence.
constexpr int64_t kOwnPauseMs = 1000;
// The slowest network that a large message may cross without looking like a standstill.
constexpr double kSlowestBytesPerSecond = 10e6;

// Ranks that would all say the same do so one after another, so that the first ends the others before they speak.
double TurnOf(int rank) { return 0.2 * rank; }

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
  // Of the shared library that holds this code.
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&PluginPaths), &here) != 0 && here.dli_fname != nullptr) {
    paths.push_back((std::filesystem::path(here.dli_fname).parent_path() / "hlorun" / name).string());
  }
  paths.push_back(name);
  return paths;
}

// A launcher that hears of the abort may close its ends of the pipes before it has read them: the message would be
// lost.
void AwaitReaderOfStderr() {
  struct stat file;
  if (fstat(STDERR_FILENO, &file) != 0 || !S_ISFIFO(file.st_mode)) return;
  int unread = 0;
  for (int i = 0; i < 1000 && ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

// What goes over the second channel: plain bytes of a fixed size.
struct MpiWorld::Beat {
  uint64_t progress = 0;
  uint64_t outstanding_bytes = 0;
  int32_t waiting = 0;
};

struct MpiWorld::Report {
  // Of several reports the weightiest is printed: a rank's own failure, then what the watch saw, then what waits ended
  // with.
  enum Weight : int32_t { kEcho, kSeen, kCause };
  int32_t rank = 0;
  int32_t weight = kEcho;
  char text[2040] = "";

  Report() = default;
  Report(int of, Weight of_weight, const std::string& message) : rank(of), weight(of_weight) {
    message.copy(text, sizeof(text) - 1);
  }
};

// What is known of a rank, and the traffic with it: receives that are always posted, and what was last sent. It
// outlives MPI_Finalize, in which late beats may still arrive.
struct MpiWorld::Peer {
  std::atomic<int64_t> heard_ms{0}, moved_ms{0};
  std::atomic<uint64_t> progress{0}, outstanding_bytes{0};
  std::atomic<bool> waiting{false};
  std::array<char, 64> host{};

  Beat in, out;
  Report report_in, report_out;
  void *receive = nullptr, *send = nullptr, *report_receive = nullptr, *report_send = nullptr;
};

class MpiWorld::MpiRequest : public Request {
 public:
  MpiRequest(MpiWorld* world, void* request, size_t bytes) : world_(world), request_(request), bytes_(bytes) {
    world_->outstanding_bytes_ += bytes_;
  }
  ~MpiRequest() override { world_->outstanding_bytes_ -= bytes_; }
  bool Test() override {
    if (request_ == nullptr) return true;
    const std::lock_guard<std::mutex> lock(world_->mutex_);
    int done = 0;
    world_->Check(world_->plugin_->test(&request_, &done), "a message");
    if (done != 0) ++world_->progress_;
    return done != 0;
  }

 private:
  MpiWorld* world_;
  void* request_;
  size_t bytes_;
};

MpiWorld::MpiWorld(const std::string& mpi, double heartbeat, const void* communicator) : heartbeat_(heartbeat) {
  Load(mpi);
  {
    // A rank that was stopped before it came here is heard of by nobody.
    const Watchdog watchdog({heartbeat_, heartbeat_ * 4 + TurnOf(DetectLauncher().rank), true}, "MPI does not start");
    Check(plugin_->init(communicator, &rank_, &size_),
          communicator == nullptr ? "starting MPI"
                                  : "duplicating the communicator (MPI_Init_thread must ask for MPI_THREAD_MULTIPLE)");
  }
  peers_ = std::make_unique<Peer[]>(static_cast<size_t>(size_));
  for (int peer = 0; peer < size_; ++peer) {
    peers_[static_cast<size_t>(peer)].heard_ms = NowMs();
    peers_[static_cast<size_t>(peer)].moved_ms = NowMs();
    std::snprintf(peers_[static_cast<size_t>(peer)].host.data(), sizeof(Peer::host), "%s", plugin_->host(peer));
  }
  last_exchange_ms_ = NowMs();
  if (size_ > 1) beater_ = std::thread([this] { BeatUntilStopped(); });
}

void MpiWorld::Load(const std::string& mpi) {
  std::string tried;
  for (const std::string& path : PluginPaths(mpi)) {
    // Open MPI's own plugins resolve symbols of libmpi globally.
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library_ != nullptr) break;
    tried += fmt::format("; {}", dlerror());
  }
  if (library_ == nullptr) {
    Fail(ErrorCode::kFailedPrecondition,
         "the launcher is {}'s, but hlorun was built without it: install its development package and rebuild{}", mpi,
         tried);
  }
  const auto entry = reinterpret_cast<const HlorunMpiPlugin* (*)()>(dlsym(library_, HLORUN_MPI_PLUGIN_SYMBOL));
  plugin_ = entry == nullptr ? nullptr : entry();
  if (plugin_ == nullptr || plugin_->version != HLORUN_MPI_PLUGIN_VERSION) {
    Fail(ErrorCode::kFailedPrecondition, "the MPI plugin for {} is of another version of hlorun: rebuild both", mpi);
  }
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
  return std::make_unique<MpiRequest>(this, request, data.size());
}

std::unique_ptr<Request> MpiWorld::Receive(std::span<std::byte> data, int from, int tag) {
  const std::lock_guard<std::mutex> lock(mutex_);
  void* request = nullptr;
  Check(plugin_->receive(kMessages, data.data(), data.size(), from, tag, &request), "a receive");
  return std::make_unique<MpiRequest>(this, request, data.size());
}

void MpiWorld::BeatUntilStopped() {
  int64_t next_beat_ms = 0;
  while (!stop_) {
    const int64_t now = NowMs();
    if (now - last_exchange_ms_ > kOwnPauseMs) {
      for (int peer = 0; peer < size_; ++peer) peers_[static_cast<size_t>(peer)].heard_ms = now;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ExchangeBeats(now >= next_beat_ms);
      ReceiveReports();
    }
    if (now >= next_beat_ms) next_beat_ms = now + kBeatMs;
    last_exchange_ms_ = now;
    if (cleanup_.load() != nullptr) ReportTrouble();
    if (first_report_ms_ > 0 && now - first_report_ms_ > kCollectMs) PrintAndLeave();
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));
  }
  // Requests that are still open are abandoned on purpose: the job ends, and a silent peer would never complete them.
}

void MpiWorld::ExchangeBeats(bool send) {
  const int64_t now = NowMs();
  Peer& own = peers_[static_cast<size_t>(rank_)];
  const auto moved = [now](Peer& peer, uint64_t progress, bool waiting, uint64_t outstanding) {
    if (progress != peer.progress || !waiting) peer.moved_ms = now;
    peer.progress = progress;
    peer.waiting = waiting;
    peer.outstanding_bytes = outstanding;
  };
  moved(own, progress_, busy_ <= 0, outstanding_bytes_);
  for (int p = 0; p < size_; ++p) {
    if (p == rank_) continue;
    Peer& peer = peers_[static_cast<size_t>(p)];
    int done = 0;
    if (peer.send != nullptr) plugin_->test(&peer.send, &done);
    if (send && peer.send == nullptr) {
      peer.out.progress = own.progress;
      peer.out.outstanding_bytes = own.outstanding_bytes;
      peer.out.waiting = own.waiting ? 1 : 0;
      plugin_->send(kWatch, &peer.out, sizeof(Beat), p, kBeatTag, &peer.send);
    }
    // Several beats may have arrived.
    do {
      done = 0;
      if (peer.receive == nullptr) plugin_->receive(kWatch, &peer.in, sizeof(Beat), p, kBeatTag, &peer.receive);
      plugin_->test(&peer.receive, &done);
      if (done == 0) break;
      peer.heard_ms = now;
      moved(peer, peer.in.progress, peer.in.waiting != 0, peer.in.outstanding_bytes);
    } while (true);
  }
}

void MpiWorld::ReceiveReports() {
  for (int p = 0; p < size_; ++p) {
    if (p == rank_) continue;
    Peer& peer = peers_[static_cast<size_t>(p)];
    int done = 0;
    if (peer.report_receive == nullptr) {
      plugin_->receive(kWatch, &peer.report_in, sizeof(Report), p, kReportTag, &peer.report_receive);
    }
    plugin_->test(&peer.report_receive, &done);
    if (done != 0) Collect(peer.report_in);
    if (peer.report_send != nullptr) plugin_->test(&peer.report_send, &done);
  }
}

double MpiWorld::SilenceOf(int peer) const {
  return static_cast<double>(last_exchange_ms_ - peers_[static_cast<size_t>(peer)].heard_ms) / 1000;
}

// Seconds for which every rank has waited without any message arriving anywhere, less what large messages may take.
double MpiWorld::Standstill() const {
  double least = std::numeric_limits<double>::infinity();
  uint64_t outstanding = 0;
  for (int p = 0; p < size_; ++p) {
    const Peer& peer = peers_[static_cast<size_t>(p)];
    if (!peer.waiting) return 0;
    least = std::min(least, static_cast<double>(last_exchange_ms_ - peer.moved_ms) / 1000);
    outstanding = std::max(outstanding, peer.outstanding_bytes.load());
  }
  return least - static_cast<double>(outstanding) / kSlowestBytesPerSecond;
}

int MpiWorld::SilentPeer() const {
  for (int peer = 0; heartbeat_ > 0 && peer < size_; ++peer) {
    if (peer != rank_ && SilenceOf(peer) > heartbeat_) return peer;
  }
  return -1;
}

std::string MpiWorld::Trouble() const {
  if (const int peer = SilentPeer(); peer >= 0) {
    return fmt::format(
        "rank {} on {} has been silent for {:.1f} s: it was killed or stopped (--heartbeat=0 waits for ever)", peer,
        HostOf(peer), SilenceOf(peer));
  }
  if (heartbeat_ > 0 && Standstill() > heartbeat_) {
    return fmt::format(
        "all {} ranks wait for each other: they do not run the same collectives (does a branch or a loop around one "
        "differ between ranks?)",
        size_);
  }
  return "";
}

// By the lowest rank that is alive, from the thread that hears the beats: the others may compute for long, or wait for
// a lock that the silent one holds.
void MpiWorld::ReportTrouble() {
  if (trouble_reported_ || LowestAlive() != rank_) return;
  const std::string trouble = Trouble();
  if (trouble.empty()) return;
  trouble_reported_ = true;
  Collect(Report(rank_, Report::kSeen, trouble));
}

void MpiWorld::CheckPeers() {
  if (!beater_.joinable()) return;
  if (const std::string trouble = Trouble(); !trouble.empty()) throw Error(ErrorCode::kAborted, trouble);
}

int MpiWorld::LowestAlive() const {
  for (int peer = 0; peer < rank_; ++peer) {
    if (heartbeat_ <= 0 || SilenceOf(peer) <= heartbeat_) return peer;
  }
  return rank_;
}

std::string MpiWorld::HostOf(int rank) const { return peers_[static_cast<size_t>(rank)].host.data(); }

void MpiWorld::Finalize() {
  stop_ = true;
  if (beater_.joinable()) beater_.join();
  constexpr double kSlack = 3;
  const Watchdog watchdog({heartbeat_, heartbeat_ + kSlack + TurnOf(rank_), false}, "MPI does not end", cleanup_);
  const std::lock_guard<std::mutex> lock(mutex_);
  plugin_->finalize();
  if (cleanup_.load() != nullptr && DetectLauncher().local_rank == 0) OutliveTheOthers();
}

// The launcher waits for ever for a process that is stopped on its way out: one of the node's watches the others leave.
void MpiWorld::OutliveTheOthers() const {
  const NodeSiblings siblings;
  const double start = static_cast<double>(NowMs());
  while (siblings.HigherRanksLive() && (static_cast<double>(NowMs()) - start) / 1000 < heartbeat_ * 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void MpiWorld::Collect(const Report& report) {
  const std::lock_guard<std::mutex> lock(report_mutex_);
  reports_.push_back(report);
  if (first_report_ms_ == 0) first_report_ms_ = NowMs();
}

void MpiWorld::EndJob(const std::string& message, bool is_cause) {
  const Report report(rank_, is_cause ? Report::kCause : Report::kEcho, message);
  const int coordinator = LowestAlive();
  if (!beater_.joinable() || stop_) {
    Collect(report);
    PrintAndLeave();
  }
  if (coordinator == rank_) {
    Collect(report);
  } else {
    Peer& peer = peers_[static_cast<size_t>(coordinator)];
    const std::lock_guard<std::mutex> lock(mutex_);
    peer.report_out = report;
    plugin_->send(kWatch, &peer.report_out, sizeof(Report), coordinator, kReportTag, &peer.report_send);
  }
  // The coordinator ends the job; if it cannot, this rank does.
  std::this_thread::sleep_for(std::chrono::duration<double>(kGraceSeconds + TurnOf(rank_ - coordinator)));
  Collect(report);
  PrintAndLeave();
}

void MpiWorld::PrintAndLeave() {
  if (leaving_.exchange(true)) {
    while (true) std::this_thread::sleep_for(std::chrono::seconds(1));  // another thread is at it
  }
  const Report* first = nullptr;
  {
    const std::lock_guard<std::mutex> lock(report_mutex_);
    for (const Report& report : reports_) {
      const bool better = first == nullptr || (report.weight > first->weight);
      const bool same_of_lower_rank = first != nullptr && report.weight == first->weight && report.rank < first->rank &&
                                      std::strcmp(report.text, first->text) == 0;
      if (better || same_of_lower_rank) first = &report;
    }
  }
  std::fprintf(stderr, "hlorun: rank %d on %s: %s\n", first->rank, HostOf(first->rank).c_str(), first->text);
  std::fflush(stderr);
  AwaitReaderOfStderr();
  if (void (*cleanup)() = cleanup_) cleanup();
  // A thread that is stuck inside MPI must not keep this one from leaving.
  for (int i = 0; i < 100; ++i) {
    if (mutex_.try_lock()) {
      plugin_->abort(2);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  _exit(2);
}

}  // namespace hlorun::collectives
