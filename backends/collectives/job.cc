#include "backends/collectives/job.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "backends/collectives/in_process.h"
#include "backends/collectives/mpi/launcher.h"
#include "backends/collectives/mpi/mpi_world.h"
#include "backends/collectives/wait.h"
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
  for (int64_t d = 1; d < n; ++d) threads.emplace_back(guarded, d);
  guarded(0);
  for (std::thread& thread : threads) thread.join();
  if (first) {
    hub.Reset();
    std::rethrow_exception(first);
  }
}

class InProcessJob : public Job {
 public:
  explicit InProcessJob(int64_t devices) : Job(devices), hub_(std::make_shared<InProcessHub>(static_cast<int>(devices))) {}
  int rank() const override { return 0; }
  int rank_count() const override { return 1; }
  std::string host() const override { return HostName(); }
  std::string BroadcastFromFirst(const std::function<std::string()>& make) override { return make(); }
  void CheckSame(const std::string&, const std::string&) override {}
  int Finish(int exit_code) override { return exit_code; }
  void Abort(const std::string& message) override {
    std::fprintf(stderr, "hlorun: %s\n", message.c_str());
    std::_Exit(2);
  }

 protected:
  void RunOnDevices(const std::function<void(int64_t, const std::shared_ptr<Communicator>&)>& body) override {
    RunTogether(local_devices(), *hub_, [&](int64_t d) {
      body(d, std::make_shared<Communicator>(hub_->Endpoint(static_cast<int>(d)), d));
    });
  }

 private:
  std::shared_ptr<InProcessHub> hub_;
};

// Several devices a rank: messages within the process go through its hub, others through MPI with the pair of local
// devices in the tag. MPI's order between two ranks with one tag keeps each pair's messages in order.
class RankTransport : public Transport {
 public:
  RankTransport(MpiWorld* world, std::shared_ptr<InProcessHub> hub, int64_t local_devices, int64_t local)
      : world_(world), hub_(std::move(hub)), local_devices_(static_cast<int>(local_devices)), local_(static_cast<int>(local)) {}
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
  void Progress() override {
    hub_->CheckHealth();
    world_->CheckPeers();
  }
  void Abort(const std::string& message) override { hub_->Fail(message); }

 private:
  // MPI guarantees tags up to 32767; collectives of one pair run in the same order on both sides, so a few bits of the
  // sequence number are enough to catch a mismatch.
  int TagOf(int from_local, int to_local, int64_t tag) const {
    const int pairs = local_devices_ * local_devices_;
    const int sequences = std::max(1, 32767 / pairs);
    return (from_local * local_devices_ + to_local) * sequences + static_cast<int>(tag % sequences);
  }

  MpiWorld* world_;
  std::shared_ptr<InProcessHub> hub_;
  int local_devices_, local_;
};

class MpiJob : public Job {
 public:
  MpiJob(const std::string& mpi, int64_t devices_per_rank, double heartbeat)
      : Job(devices_per_rank), world_(mpi, heartbeat), hub_(std::make_shared<InProcessHub>(static_cast<int>(devices_per_rank))) {}

  int rank() const override { return world_.rank(); }
  int rank_count() const override { return world_.size(); }
  std::string host() const override { return HostName(); }
  MpiWorld& world() { return world_; }

  std::string BroadcastFromFirst(const std::function<std::string()>& make) override {
    std::string bytes = rank() == 0 ? make() : "";
    uint64_t size = bytes.size();
    Spread({reinterpret_cast<std::byte*>(&size), sizeof size});
    bytes.resize(size);
    Spread({reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
    return bytes;
  }

  void CheckSame(const std::string& digest, const std::string& what) override {
    const std::string first = BroadcastFromFirst([&] { return digest; });
    const auto different = static_cast<int>(first != digest ? rank() : rank_count());
    const int worst = Smallest(different);
    if (worst < rank_count()) Invalid("rank {} has {} that differs from rank 0's: all ranks need the same", worst, what);
  }

  int Finish(int exit_code) override {
    const int worst = -Smallest(-exit_code);
    world_.Finalize();
    return worst;
  }

  void Abort(const std::string& message) override {
    // Ranks that only echo another's failure stay silent for a moment, so that the cause is what the user sees.
    std::fprintf(stderr, "hlorun: rank %d on %s: %s\n", rank(), HostName().c_str(), message.c_str());
    std::fflush(stderr);
    world_.Abort();
  }

 protected:
  void RunOnDevices(const std::function<void(int64_t, const std::shared_ptr<Communicator>&)>& body) override {
    RunTogether(local_devices(), *hub_, [&](int64_t d) {
      auto transport = std::make_shared<RankTransport>(&world_, hub_, local_devices(), d);
      body(d, std::make_shared<Communicator>(std::move(transport), first_device() + d));
    });
  }

 private:
  static constexpr int kControlTag = 32767;

  void Complete(std::unique_ptr<Request> request) {
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
};

}  // namespace

std::shared_ptr<Job> Job::InProcess(int64_t devices) { return std::make_shared<InProcessJob>(devices); }

std::shared_ptr<Job> Job::Start(int64_t devices_per_rank, double heartbeat) {
  const Launcher launcher = DetectLauncher();
  if (launcher.mpi.empty()) return InProcess(devices_per_rank);
  auto job = std::make_shared<MpiJob>(launcher.mpi, devices_per_rank, heartbeat);
  if (job->rank_count() == 1 && launcher.size > 1) {
    Fail(ErrorCode::kFailedPrecondition,
         "the launcher started {} processes ({}), but {} sees one: use the mpirun of the MPI that hlorun was built with",
         launcher.size, launcher.signal, launcher.mpi);
  }
  return job;
}

}  // namespace hlorun::collectives
