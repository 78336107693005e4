// The only file that includes mpi.h; built once for each MPI.
#include "backends/collectives/mpi/plugin.h"

// The deprecated C++ bindings would need libraries of their own.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

constexpr size_t kLargestMessage = size_t{1} << 30;  // MPI counts are int: larger messages are split

MPI_Comm g_channels[2];
bool g_initialised_here = false;
char g_library[MPI_MAX_LIBRARY_VERSION_STRING];

// Every rank's host, so that one which stops before its first beat has a name.
constexpr int kHostBytes = 64;
std::vector<char> g_hosts;

int GatherHosts(int size) {
  char own[MPI_MAX_PROCESSOR_NAME] = "";
  gethostname(own, kHostBytes - 1);
  own[kHostBytes - 1] = '\0';
  g_hosts.resize(static_cast<size_t>(size) * kHostBytes);
  return MPI_Allgather(own, kHostBytes, MPI_CHAR, g_hosts.data(), kHostBytes, MPI_CHAR, g_channels[1]);
}

const char* Host(int rank) { return g_hosts.data() + static_cast<size_t>(rank) * kHostBytes; }

struct Pending {
  std::vector<MPI_Request> requests;
};

int Init(const void* communicator, int* rank, int* size) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised == 0) {
    int provided = 0;
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    if (code != MPI_SUCCESS) return code;
    if (provided < MPI_THREAD_SERIALIZED) return MPI_ERR_OTHER;
    g_initialised_here = true;
  } else {
    int provided = 0;
    MPI_Query_thread(&provided);
    if (provided < MPI_THREAD_MULTIPLE) return MPI_ERR_OTHER;
  }
  const MPI_Comm whole = communicator == nullptr ? MPI_COMM_WORLD : *static_cast<const MPI_Comm*>(communicator);
  for (MPI_Comm& channel : g_channels) {
    const int code = MPI_Comm_dup(whole, &channel);
    if (code != MPI_SUCCESS) return code;
    MPI_Comm_set_errhandler(channel, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(g_channels[0], rank);
  const int code = MPI_Comm_size(g_channels[0], size);
  return code == MPI_SUCCESS ? GatherHosts(*size) : code;
}

// Posts one MPI call for each piece of at most kLargestMessage bytes; an empty message is one empty piece.
template <typename Post>
int InPieces(size_t bytes, void** request, Post&& post) {
  auto* pending = new Pending;
  size_t at = 0;
  do {
    const size_t piece = std::min(bytes - at, kLargestMessage);
    pending->requests.push_back(MPI_REQUEST_NULL);
    const int code = post(at, static_cast<int>(piece), &pending->requests.back());
    if (code != MPI_SUCCESS) {
      delete pending;
      return code;
    }
    at += piece;
  } while (at < bytes);
  *request = pending;
  return MPI_SUCCESS;
}

int Send(int channel, const void* data, size_t bytes, int to, int tag, void** request) {
  return InPieces(bytes, request, [&](size_t at, int piece, MPI_Request* r) {
    return MPI_Isend(static_cast<const char*>(data) + at, piece, MPI_BYTE, to, tag, g_channels[channel], r);
  });
}

int Receive(int channel, void* data, size_t bytes, int from, int tag, void** request) {
  return InPieces(bytes, request, [&](size_t at, int piece, MPI_Request* r) {
    return MPI_Irecv(static_cast<char*>(data) + at, piece, MPI_BYTE, from, tag, g_channels[channel], r);
  });
}

int Test(void** request, int* done) {
  auto* pending = static_cast<Pending*>(*request);
  const int code =
      MPI_Testall(static_cast<int>(pending->requests.size()), pending->requests.data(), done, MPI_STATUSES_IGNORE);
  if (*done != 0 || code != MPI_SUCCESS) {
    delete pending;
    *request = nullptr;
  }
  return code;
}

void Abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

int Finalize() {
  for (MPI_Comm& channel : g_channels) MPI_Comm_free(&channel);
  return g_initialised_here ? MPI_Finalize() : MPI_SUCCESS;
}

void ErrorText(int code, char* text, size_t capacity) {
  char full[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, full, &length) != MPI_SUCCESS) length = 0;
  std::snprintf(text, capacity, "%.*s", length, full);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const struct HlorunMpiPlugin* HlorunMpiPluginEntry() {
  int length = 0;
  MPI_Get_library_version(g_library, &length);
  static const struct HlorunMpiPlugin kPlugin = {
      HLORUN_MPI_PLUGIN_VERSION, g_library, Init, Host, Send, Receive, Test, Abort, Finalize, ErrorText};
  return &kPlugin;
}
