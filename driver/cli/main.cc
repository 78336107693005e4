// hlorun: the command line.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "backends/collectives/job.h"
#include "backends/collectives/mpi/launcher.h"
#include "backends/topology/placement.h"
#include "driver/cli/agreement.h"
#include "driver/cli/flags.h"
#include "driver/cli/rank_faults.h"
#include "driver/cli/report.h"
#include "driver/cli/session.h"
#include "hlo/atomic_file.h"
#include "hlo/error.h"
#include "hlo/fault.h"
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
  if (job.rank_count() > 1)
    text = fmt::format("rank {} of {} on {}, cores {}:\n{}", job.rank(), job.rank_count(), job.host(),
                       topology::AllowedCores(), text);
  std::fputs(text.c_str(), stdout);
  FlushOutput();
  return kExitEqual;
}

// What keeps a process from joining its job (a plugin or a platform that is missing) is its host's: the host's first
// process says it, and its exit ends the others.
int FailAlone(const std::string& message, const collectives::Launcher& launcher) {
  if (launcher.local_rank > 0) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
  } else {
    std::fprintf(stderr, "hlorun: %s\n", message.c_str());
  }
  return kExitTrouble;
}

int FailTogether(const Error& error, const std::shared_ptr<collectives::Job>& job,
                 const collectives::Launcher& launcher) {
  if (job != nullptr && job->rank_count() > 1) job->Abort(error);
  return FailAlone(error.what(), launcher);
}

// Of several ranks each leaves the moment that the job is over: nobody watches one that is stopped while it tidies up.
int LeaveTogether(collectives::Job& job, int exit_code) {
  const int worst = job.Finish(exit_code);
  if (job.rank_count() == 1) return worst;
  std::fflush(nullptr);
  _exit(worst);
}

// Ends in one message and one exit code, whatever happens.
int Main(int argc, char** argv) {
  const collectives::Launcher launcher = collectives::DetectLauncher();
  std::shared_ptr<collectives::Job> job;
  try {
    std::optional<Flags> flags;
    std::optional<Error> bad_flags;
    try {
      const char* faults = std::getenv("HLORUN_FAULT");
      ArmFaults(faults != nullptr ? faults : "", launcher.rank);
      flags = ParseFlags(argc, argv);
      if (!flags.has_value()) {
        FlushOutput();
        return kExitEqual;
      }
    } catch (const Error& e) {
      // The other ranks' flags may be good: they wait for this one in the job.
      if (launcher.size == 1) throw;
      bad_flags = e;
      flags.emplace();
    }
    InstallInterruptCleanup();
    StartFaults();
    // Before the OpenCL loader: the runtimes count cores when they are loaded.
    topology::PlaceProcess();
    job = collectives::Job::Start(flags->devices_per_rank, flags->heartbeat);
    job->AtAbort(RemoveTemporaries);
    if (bad_flags.has_value()) throw *bad_flags;
    CheckSameFlags(*flags, *job);
    const int exit_code = flags->list_devices ? ListDevices(*job) : RunSession(*flags, job);
    FinishFaults();
    return LeaveTogether(*job, exit_code);
  } catch (const Error& e) {
    return FailTogether(e, job, launcher);
  } catch (const std::bad_alloc&) {
    return FailTogether(Error(ErrorCode::kResourceExhausted, "out of host memory"), job, launcher);
  } catch (const std::exception& e) {
    return FailTogether(
        Error(ErrorCode::kInternal, fmt::format("internal error: {}; please report this with the module", e.what())),
        job, launcher);
  }
}

}  // namespace
}  // namespace hlorun::cli

int main(int argc, char** argv) { return hlorun::cli::Main(argc, argv); }
