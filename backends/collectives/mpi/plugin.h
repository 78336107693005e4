/* The C interface between hlorun and an MPI plugin: one shared library for each MPI found at build time
 * (libhlorun_mpi_openmpi.so, libhlorun_mpi_mpich.so), loaded only under a launcher, because starting MPI alone costs
 * 0.3 s and because two MPIs must never meet in one process.
 *
 * One thread at a time may be inside the plugin (MPI_THREAD_SERIALIZED): the caller locks. No call blocks, but init and
 * finalize. Functions return 0 or an MPI error code, whose text `error_text` gives.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HLORUN_MPI_PLUGIN_VERSION 3
#define HLORUN_MPI_PLUGIN_SYMBOL "HlorunMpiPluginEntry"

#ifdef __cplusplus
extern "C" {
#endif

struct HlorunMpiPlugin {
  int version;
  const char* library; /* "Open MPI v4.1.4 ..." */
  /* Duplicates `communicator` (an MPI_Comm; null: the world, after initialising MPI unless the caller has). A second
   * channel keeps heartbeats apart. Where the caller has initialised MPI it must be for several threads at once:
   * heartbeats have a thread of their own, and the caller's calls do not wait for it. */
  int (*init)(const void* communicator, int* rank, int* size);
  const char* (*host)(int rank); /* where a rank runs; after init, which all ranks must have entered */
  int (*send)(int channel, const void* data, size_t bytes, int to, int tag, void** request);
  int (*receive)(int channel, void* data, size_t bytes, int from, int tag, void** request);
  int (*test)(void** request, int* done); /* frees the request once done */
  void (*abort)(int code);
  int (*finalize)(void);
  void (*error_text)(int code, char* text, size_t capacity);
};

#ifdef __cplusplus
}
#endif
