// hlorun: the command line.
#include <cstdio>

#include "backends/collectives/job.h"
#include "backends/topology/placement.h"
#include "driver/arrays/atomic_file.h"
#include "driver/cli/flags.h"
#include "driver/cli/session.h"
#include "hlo/error.h"
#include "hlorun/hlorun.h"

namespace hlorun::cli {
namespace {

int ListDevices(const collectives::Job& job) {
  std::string text;
  for (const DeviceDescription& device : Client::ListDevices()) {
    const DeviceSpec& spec = device.spec;
    text += fmt::format("{}  {} compute units, {} bytes a vector, {} GiB; {}{}{}\n", device.label, spec.compute_units,
                        spec.vector_bytes, spec.global_memory_bytes >> 30, spec.isa, spec.has_f64 ? "" : ", no f64",
                        spec.has_f16 ? ", f16" : "");
  }
  if (job.rank_count() > 1) text = fmt::format("rank {} of {} on {}, cores {}:\n{}", job.rank(), job.rank_count(), job.host(), topology::AllowedCores(), text);
  std::fputs(text.c_str(), stdout);
  return kExitEqual;
}

int Main(int argc, char** argv) {
  std::shared_ptr<collectives::Job> job;
  try {
    const std::optional<Flags> flags = ParseFlags(argc, argv);
    if (!flags.has_value()) return kExitEqual;
    InstallInterruptCleanup();
    // Before the OpenCL loader: the runtimes count cores when they are loaded.
    topology::PlaceProcess();
    job = collectives::Job::Start(flags->devices_per_rank, flags->heartbeat);
    const int exit_code = flags->list_devices ? ListDevices(*job) : RunSession(*flags, job);
    return job->Finish(exit_code);
  } catch (const Error& e) {
    if (job != nullptr && job->rank_count() > 1) job->Abort(e.what());
    std::fprintf(stderr, "hlorun: %s\n", e.what());
    return kExitTrouble;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "hlorun: out of host memory\n");
    return kExitTrouble;
  }
}

}  // namespace
}  // namespace hlorun::cli

int main(int argc, char** argv) { return hlorun::cli::Main(argc, argv); }
