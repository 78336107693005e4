#include "backends/collectives/job.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "backends/collectives/in_process.h"
#include "backends/collectives/mpi/launcher.h"
#include "backends/collectives/mpi/mpi_world.h"
#include "backends/collectives/node_window.h"
#include "backends/collectives/timed_transport.h"
#include "backends/collectives/wait.h"
#include "hlo/custom_calls/host_call.h"
#include "hlo/error.h"

namespace hlorun::collectives {
namespace {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// Runs body(0) .. body(n - 1) at once; the first Error fails the hub, so that the others stop waiting, and is rethrown.
void RunTogether(int64_t n, InProcessHub& hub, const std::function<void(int64_t)>& body) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto guarded = [&](int64_t d) {
    try {
      body(d);
    } catch (const std::exception& e) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!first) first = std::current_exception();
      hub.Fail(e.what());
    }
  };
  std::vector<std::thread> threads;
  try {
    for (int64_t d = 1; d < n; ++d) threads.emplace_back(guarded, d);
    guarded(0);
  } catch (const std::system_error& e) {
    const std::string reason = fmt::format(
        "cannot start a thread for each of {} devices ({}): raise the limit of processes (ulimit -u)", n, e.what());
    const std::lock_guard<std::mutex> lock(mutex);
    first = std::make_exception_ptr(Error(ErrorCode::kResourceExhausted, reason));
    hub.Fail(reason);
  }
  for (std::thread& thread : threads) thread.join();
  if (first) {
    hub.Reset();
    std::rethrow_exception(first);
  }
}

// Behind a link of the speed that the user asks for, if any.
std::shared_ptr<Transport> AsWanted(std::shared_ptr<Transport> transport) {
  const std::optional<TimedLink> link = WantedTimedLink();
  return link ? MakeTimedTransport(std::move(transport), *link) : transport;
}

// The first lines in which two texts differ.
std::pair<std::string_view, std::string_view> FirstDifference(std::string_view a, std::string_view b) {
  while (true) {
    const std::string_view line_a = a.substr(0, a.find('\n')), line_b = b.substr(0, b.find('\n'));
    if (line_a != line_b || (a.size() == line_a.size() && b.size() == line_b.size())) return {line_a, line_b};
    a.remove_prefix(std::min(a.size(), line_a.size() + 1));
    b.remove_prefix(std::min(b.size(), line_b.size() + 1));
  }
}

// While it lives, a device of the hub is at work.
class Working {
 public:
  explicit Working(InProcessHub& hub) : hub_(hub) { hub_.Idle(-1); }
  ~Working() { hub_.Idle(1); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  InProcessHub& hub_;
};

// Where all devices of a job meet, none of which runs yet.
std::shared_ptr<InProcessHub> HubOfAll(int64_t devices) {
  auto hub = std::make_shared<InProcessHub>(static_cast<int>(devices));
  hub->Idle(static_cast<int>(devices));
  return hub;
}

void RunOnHub(InProcessHub& hub, const std::function<void(int64_t, const std::shared_ptr<Communicator>&)>& body) {
  RunTogether(hub.size(), hub, [&](int64_t d) {
    const Working working(hub);
    body(d, std::make_shared<Communicator>(AsWanted(hub.Endpoint(static_cast<int>(d))), d));
  });
}

class InProcessJob : public Job {
 public:
  explicit InProcessJob(int64_t devices) : Job(devices), hub_(HubOfAll(devices)) {}
  int rank() const override { return 0; }
  int rank_count() const override { return 1; }
  std::string host() const override { return HostName(); }
  std::string BroadcastFromFirst(const std::function<std::string()>& make) override { return make(); }
  void CheckSame(const std::string&, const std::string&) override {}
  void DriveDevices(int64_t devices) override {
    set_local_devices(devices);
    hub_ = HubOfAll(devices);
  }
  int Finish(int exit_code) override { return exit_code; }
  void Abort(const Error& error) override {
    std::fprintf(stderr, "hlorun: %s\n", error.what());
    if (cleanup_ != nullptr) cleanup_();
    std::_Exit(2);
  }
  void AtAbort(void (*cleanup)()) override { cleanup_ = cleanup; }

 protected:
  void RunOnDevices(const std::function<void(int64_t, const std::shared_ptr<Communicator>&)>& body) override {
    RunOnHub(*hub_, body);
  }

 private:
  std::shared_ptr<InProcessHub> hub_;
  void (*cleanup_)() = nullptr;
};

// Several devices a rank: messages within the process go through its hub, others through MPI with the pair of local
// devices in the tag. MPI's order between two ranks with one tag keeps each pair's messages in order.
class RankTransport : public Transport {
 public:
  // `window`: what all ranks share; null where they do not.
  RankTransport(MpiWorld* world, std::shared_ptr<InProcessHub> hub, NodeWindow* window, int64_t local_devices,
                int64_t local)
      : world_(world),
        hub_(std::move(hub)),
        window_(window),
        local_devices_(static_cast<int>(local_devices)),
        local_(static_cast<int>(local)) {}
  int rank() const override { return world_->rank() * local_devices_ + local_; }
  int size() const override { return world_->size() * local_devices_; }

  std::unique_ptr<Request> Send(std::span<const std::byte> data, int to, int64_t tag) override {
    if (to / local_devices_ == world_->rank()) return hub_->Send(data, local_, to % local_devices_, tag);
    return world_->Send(data, to / local_devices_, TagOf(local_, to % local_devices_, tag));
  }
  std::unique_ptr<Request> Receive(std::span<std::byte> data, int from, int64_t tag) override {
    if (from / local_devices_ == world_->rank()) return hub_->Receive(data, from % local_devices_, local_, tag);
    return world_->Receive(data, from / local_devices_, TagOf(from % local_devices_, local_, tag));
  }
  // In a window a rank is one device.
  NodeWindow* window() override { return local_devices_ == 1 ? window_ : nullptr; }
  bool is_network() const override { return window_ == nullptr; }
  void Progress() override {
    hub_->CheckHealth();
    world_->CheckPeers();
  }
  void WaitBegins() override { world_->WaitBegins(); }
  void WaitEnds() override { world_->WaitEnds(); }
  void Abort(const std::string& message) override { hub_->Fail(message); }

 private:
  // MPI guarantees tags up to 32767; collectives of one pair run in the same order on both sides, so a few bits of the
  // sequence number are enough to catch a mismatch. Negative tags, of transfers on channels, have the first quarter.
  int TagOf(int from_local, int to_local, int64_t tag) const {
    const int pairs = local_devices_ * local_devices_;
    const int sequences = std::max(4, 32767 / pairs), channels = sequences / 4;
    const int64_t slot = tag >= 0 ? channels + tag % (sequences - channels) : -(tag + 1) % channels;
    return (from_local * local_devices_ + to_local) * sequences + static_cast<int>(slot);
  }

  MpiWorld* world_;
  std::shared_ptr<InProcessHub> hub_;
  NodeWindow* window_;
  int local_devices_, local_;
};

// While it lives, the calling thread only waits.
class Waiting {
 public:
  explicit Waiting(MpiWorld& world) : world_(world) { world_.WaitBegins(); }
  ~Waiting() { world_.WaitEnds(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  MpiWorld& world_;
};

// While it lives, a thread computes that did not before.
class Computing {
 public:
  explicit Computing(MpiWorld& world) : world_(world) { world_.WaitEnds(); }
  ~Computing() { world_.WaitBegins(); }
  Computing(const Computing&) = delete;
  Computing& operator=(const Computing&) = delete;

 private:
  MpiWorld& world_;
};

class MpiJob final : public Job {
 public:
  MpiJob(const std::string& mpi, int64_t devices_per_rank, double heartbeat, const void* communicator = nullptr)
      : Job(devices_per_rank), world_(mpi, heartbeat, communicator), hub_(HubOf(devices_per_rank)) {
    if (rank_count() == 1) return;
    try {
      OpenWindow();
    } catch (const Error& error) {
      // Nobody has the job yet whose Abort() would speak for all ranks.
      if (communicator == nullptr) MpiJob::Abort(error);
      throw;
    }
  }

  int rank() const override { return world_.rank(); }
  int rank_count() const override { return world_.size(); }
  std::string host() const override { return HostName(); }
  MpiWorld& world() { return world_; }
  void DriveDevices(int64_t devices) override {
    set_local_devices(devices);
    hub_ = HubOf(devices);
  }

  std::string BroadcastFromFirst(const std::function<std::string()>& make) override {
    std::string bytes = rank() == 0 ? make() : "";
    uint64_t size = bytes.size();
    Spread({reinterpret_cast<std::byte*>(&size), sizeof size});
    bytes.resize(size);
    Spread({reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
    return bytes;
  }

  void CheckSame(const std::string& text, const std::string& what) override {
    const std::string first = BroadcastFromFirst([&] { return text; });
    const auto different = static_cast<int>(first != text ? rank() : rank_count());
    const int worst = Smallest(different);
    if (worst == rank()) {
      const auto [here, there] = FirstDifference(text, first);
      Invalid("{} differs from rank 0's: here \"{}\", there \"{}\"; all ranks need the same", what, here, there);
    }
    if (worst < rank_count()) Fail(ErrorCode::kAborted, "{} of rank {} differs from rank 0's", what, worst);
  }

  int Finish(int exit_code) override {
    const int worst = -Smallest(-exit_code);
    world_.Finalize();
    return worst;
  }

  std::shared_ptr<SharedHeap> shared_heap() override {
    return window_ != nullptr && local_devices() == 1 ? window_->heap() : nullptr;
  }
  void Abort(const Error& error) override { world_.EndJob(error.what(), error.code() != ErrorCode::kAborted); }
  void AtAbort(void (*cleanup)()) override { world_.set_cleanup(cleanup); }

 protected:
  void RunOnDevices(const std::function<void(int64_t, const std::shared_ptr<Communicator>&)>& body) override {
    if (rank_count() == 1) return RunOnHub(*hub_, body);
    const Waiting for_all_devices(world_);
    RunTogether(local_devices(), *hub_, [&](int64_t d) {
      const Computing computing(world_);
      auto transport = std::make_shared<RankTransport>(&world_, hub_, window_.get(), local_devices(), d);
      body(d, std::make_shared<Communicator>(AsWanted(std::move(transport)), first_device() + d));
    });
  }

 private:
  static constexpr int kControlTag = 32767;

  // Of several ranks none knows by itself that nothing can come any more: the world's beats tell.
  std::shared_ptr<InProcessHub> HubOf(int64_t devices) const {
    return rank_count() == 1 ? HubOfAll(devices) : std::make_shared<InProcessHub>(static_cast<int>(devices));
  }

  // Ranks that are all on one node share a window: rank 0 makes it. HLORUN_NODE_WINDOW=0 keeps to messages.
  void OpenWindow() {
    const char* wanted = std::getenv("HLORUN_NODE_WINDOW");
    NodeWindow::Address address;
    if (rank() == 0 && (wanted == nullptr || std::string_view(wanted) != "0")) {
      window_ = NodeWindow::Create(rank(), rank_count());
      if (window_ != nullptr) address = window_->address();
    }
    Spread({reinterpret_cast<std::byte*>(&address), sizeof address});
    if (rank() != 0 && std::strcmp(address.node, NodeWindow::Here().node) == 0) {
      window_ = NodeWindow::Open(address, rank(), rank_count());
    }
    if (Smallest(window_ != nullptr ? 1 : 0) == 0) window_ = nullptr;
    if (window_ != nullptr) OpenHeaps();
  }

  // Each rank maps the others' heaps; one that cannot keeps all from using them.
  void OpenHeaps() {
    std::shared_ptr<SharedHeap> heap = SharedHeap::Create();
    if (heap != nullptr) window_->heap_addresses()[static_cast<size_t>(rank())] = heap->address();
    if (Smallest(heap != nullptr ? 1 : 0) == 0) return;
    if (Smallest(heap->Join(window_->heap_addresses(), rank()) ? 1 : 0) == 1) window_->set_heap(std::move(heap));
  }

  void Complete(std::unique_ptr<Request> request) {
    const Waiting waiting(world_);
    WaitUntil([&] {
      if (request->Test()) return true;
      world_.CheckPeers();
      return false;
    });
  }

  // Rank 0's bytes reach all.
  void Spread(std::span<std::byte> bytes) {
    if (rank() != 0) {
      Complete(world_.Receive(bytes, 0, kControlTag));
      return;
    }
    for (int peer = 1; peer < rank_count(); ++peer) Complete(world_.Send(bytes, peer, kControlTag));
  }

  // The smallest of the ranks' values, on all ranks.
  int Smallest(int value) {
    std::span<std::byte> bytes(reinterpret_cast<std::byte*>(&value), sizeof value);
    if (rank() != 0) {
      Complete(world_.Send(bytes, 0, kControlTag));
    } else {
      for (int peer = 1; peer < rank_count(); ++peer) {
        int theirs = 0;
        Complete(world_.Receive({reinterpret_cast<std::byte*>(&theirs), sizeof theirs}, peer, kControlTag));
        value = std::min(value, theirs);
      }
    }
    Spread(bytes);
    return value;
  }

  MpiWorld world_;
  std::shared_ptr<InProcessHub> hub_;
  std::unique_ptr<NodeWindow> window_;
};

}  // namespace

std::unique_lock<std::recursive_mutex> Job::Begin() {
  if (!hlo::IsInHostFunction()) return std::unique_lock(running_);
  std::unique_lock lock(running_, std::try_to_lock);
  if (!lock.owns_lock()) {
    Fail(ErrorCode::kFailedPrecondition,
         "a host function starts what runs on several devices while such a run waits for it: start it from another "
         "thread, and do not wait for it here");
  }
  return lock;
}

std::shared_ptr<Job> Job::InProcess(int64_t devices) { return std::make_shared<InProcessJob>(devices); }

std::shared_ptr<Job> Job::OverCommunicator(const void* communicator, size_t bytes, int64_t devices_per_rank,
                                           double heartbeat) {
  return std::make_shared<MpiJob>(bytes == sizeof(void*) ? "openmpi" : "mpich", devices_per_rank, heartbeat,
                                  communicator);
}

std::shared_ptr<Job> Job::Start(int64_t devices_per_rank, double heartbeat) {
  const Launcher launcher = DetectLauncher();
  if (launcher.mpi.empty()) return InProcess(devices_per_rank);
  auto job = std::make_shared<MpiJob>(launcher.mpi, devices_per_rank, heartbeat);
  if (job->rank_count() == 1 && launcher.size > 1) {
    Fail(
        ErrorCode::kFailedPrecondition,
        "the launcher started {} processes ({}), but {} sees one: use the mpirun of the MPI that hlorun was built with",
        launcher.size, launcher.signal, launcher.mpi);
  }
  return job;
}

}  // namespace hlorun::collectives
