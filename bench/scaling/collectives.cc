// Collectives by size, beside the same in raw MPI, alternating in one run.
//
//   mpirun -n 2 build/bin/collectives_bench [--kinds=all-reduce,all-gather] [--largest=BYTES] [--private]
//
// Sizes are of one rank's operand; memory is the runtime's arena: the ranks' shared heap. --private: memory of each
// rank's own. Rank 0 prints microseconds (the median of rounds of the slowest rank's mean), the ratio, and each kind's
// geometric mean.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "backends/collectives/job.h"
#include "backends/topology/placement.h"

namespace {

using hlorun::collectives::Communicator;
using Bytes = std::span<std::byte>;

constexpr int kRounds = 7;
constexpr double kRoundSeconds = 0.02;

Bytes ArenaLike(size_t bytes, hlorun::collectives::SharedHeap* heap) {
  void* memory = heap != nullptr ? heap->Allocate(bytes) : nullptr;
  if (memory == nullptr) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, bytes, MADV_HUGEPAGE);
  }
  auto* values = static_cast<float*>(memory);
  for (size_t i = 0; i < bytes / sizeof(float); ++i) values[i] = static_cast<float>(i % 7);
  return {static_cast<std::byte*>(memory), bytes};
}

struct Arena {
  Bytes in, out;
};

struct Kind {
  std::string name;
  std::function<void(Communicator&, std::span<const int64_t>, const Arena&, size_t)> own;
  std::function<void(const Arena&, size_t, int)> raw;
};

int Floats(size_t bytes) { return static_cast<int>(bytes / sizeof(float)); }

std::vector<Kind> Kinds() {
  static const hlorun::collectives::Reduction kSum{};
  return {
      {"all-reduce",
       [](Communicator& c, auto group, const Arena& a, size_t n) {
         c.AllReduce(group, a.in.first(n), a.out.first(n), kSum, 1);
       },
       [](const Arena& a, size_t n, int) {
         MPI_Allreduce(a.in.data(), a.out.data(), Floats(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
       }},
      {"all-gather",
       [](Communicator& c, auto group, const Arena& a, size_t n) {
         c.AllGather(group, a.in.first(n), a.out.first(n * group.size()), 2);
       },
       [](const Arena& a, size_t n, int) {
         MPI_Allgather(a.in.data(), Floats(n), MPI_FLOAT, a.out.data(), Floats(n), MPI_FLOAT, MPI_COMM_WORLD);
       }},
      {"reduce-scatter",
       [](Communicator& c, auto group, const Arena& a, size_t n) {
         c.ReduceScatter(group, a.in.first(n), a.out.first(n / group.size()), kSum, 3);
       },
       [](const Arena& a, size_t n, int ranks) {
         MPI_Reduce_scatter_block(a.in.data(), a.out.data(), Floats(n) / ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
       }},
      {"all-to-all",
       [](Communicator& c, auto group, const Arena& a, size_t n) {
         c.AllToAll(group, a.in.first(n), a.out.first(n), 4);
       },
       [](const Arena& a, size_t n, int ranks) {
         MPI_Alltoall(a.in.data(), Floats(n) / ranks, MPI_FLOAT, a.out.data(), Floats(n) / ranks, MPI_FLOAT,
                      MPI_COMM_WORLD);
       }},
  };
}

// Seconds a call on the slowest rank.
double Seconds(int times, const std::function<void()>& call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < times; ++i) call();
  double mean = (MPI_Wtime() - start) / times;
  MPI_Allreduce(MPI_IN_PLACE, &mean, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return mean;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double Measure(const Kind& kind, size_t bytes, Communicator& communicator, std::span<const int64_t> group,
               const Arena& arena, bool print) {
  const auto own = [&] { kind.own(communicator, group, arena, bytes); };
  const auto raw = [&] { kind.raw(arena, bytes, static_cast<int>(group.size())); };
  const double once = std::max(Seconds(3, own), Seconds(3, raw));
  const int times = std::clamp(static_cast<int>(kRoundSeconds / once), 3, 2000);
  std::vector<double> own_s, raw_s;
  for (int round = 0; round < kRounds; ++round) {
    own_s.push_back(Seconds(times, own));
    raw_s.push_back(Seconds(times, raw));
  }
  const double ratio = Median(raw_s) / Median(own_s);
  if (print)
    std::printf("| %s | %zu | %.1f | %.1f | %.2f |\n", kind.name.c_str(), bytes, Median(own_s) * 1e6,
                Median(raw_s) * 1e6, ratio);
  std::fflush(stdout);
  return ratio;
}

}  // namespace

int main(int argc, char** argv) {
  hlorun::topology::PlaceProcess();
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  std::string kinds;
  size_t largest = size_t{64} << 20;
  bool is_private = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--private") is_private = true;
    if (argument.starts_with("--kinds=")) kinds = argument.substr(8);
    if (argument.starts_with("--largest=")) largest = std::stoul(argument.substr(10));
  }
  {
    MPI_Comm world = MPI_COMM_WORLD;
    const auto job = hlorun::collectives::Job::OverCommunicator(&world, sizeof world, 1, 10);
    const bool print = job->rank() == 0;
    std::vector<int64_t> group(static_cast<size_t>(job->device_count()));
    std::iota(group.begin(), group.end(), 0);
    const auto heap = is_private ? nullptr : job->shared_heap();
    const Arena arena{ArenaLike(largest, heap.get()), ArenaLike(largest * group.size(), heap.get())};
    if (print) std::printf("| collective | bytes | hlorun us | MPI us | times as fast |\n|---|---|---|---|---|\n");
    std::string means;
    job->OnEachLocalDevice<int>([&](int64_t, const auto& communicator) {
      for (const Kind& kind : Kinds()) {
        if (!kinds.empty() && ("," + kinds + ",").find("," + kind.name + ",") == std::string::npos) continue;
        double logs = 0, worst = 1e9;
        int count = 0;
        for (size_t bytes = 1 << 10; bytes <= largest; bytes *= 4, ++count) {
          const double ratio = Measure(kind, bytes, *communicator, group, arena, print);
          logs += std::log(ratio);
          worst = std::min(worst, ratio);
        }
        char line[128];
        std::snprintf(line, sizeof line, "%s: geometric mean %.2f, worst %.2f\n", kind.name.c_str(),
                      std::exp(logs / count), worst);
        means += line;
      }
      return 0;
    });
    if (print) std::printf("\n%s", means.c_str());
    job->Finish(0);
  }
  MPI_Finalize();
  return 0;
}
