// hlorun's public C++ API: everything the command line does is a call of it.
//
//   auto client = hlorun::Client::Create({});
//   auto module = hlorun::Module::FromFile("graph.hlo");
//   auto executable = client->Compile(module, {});
//   std::vector<hlorun::Array> results = executable->Run(inputs);
//   results[0].ToHost(pointer);              // waits
//
// RAII, no globals. Every class is thread-safe unless it says otherwise. Errors are hlorun::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "hlo/custom_calls/registry.h"
#include "hlo/device_spec.h"
#include "hlo/element_type.h"
#include "hlo/error.h"
#include "hlo/host_channels.h"
#include "hlo/shape.h"
#include "passes/options.h"
#include "passes/remark.h"

namespace hlorun::collectives {
class Job;
}

namespace hlorun {

using hlo::CustomCallRegistry;
using hlo::ElementType;
using hlo::HostChannels;
using hlo::Literal;
using hlo::Shape;
using passes::OneLine;
using passes::Remark;

// A module as read from a file or text. Copies share it; immutable.
class Module {
 public:
  // Any kind of file hlorun reads; "-" is stdin. A file of several modules gives the first (see AllFromFile).
  static Module FromFile(const std::string& path, bool fill_elided = false);
  static std::vector<Module> AllFromFile(const std::string& path, bool fill_elided = false);
  static Module FromText(const std::string& text, const std::string& file_name = "<text>");

  const std::string& name() const;
  std::vector<Shape> parameter_shapes() const;  // flattened leaves
  std::vector<std::string> parameter_names() const;
  Shape result_shape() const;
  int64_t replica_count() const;
  int64_t num_partitions() const;
  std::string ToText() const;
  // The module with dimensions of its parameters bounded, and all that follows from them: "PARAM:DIM=N", where PARAM is
  // a parameter's number, name or op_name, or "NAME=N" for a name that the exporter gave. (--bound)
  Module WithBounds(const std::vector<std::string>& bounds) const;
  // The module with other shardings of its parameters and results, as passes/spmd/overrides.h says them: a mesh
  // ("data:2,model:2"), and for each array the axes that cut its dimensions ("[data,None];[None,model]") or HloSharding
  // text.
  // (--mesh, --in_shardings, --out_shardings)
  Module WithShardings(const std::string& mesh, const std::string& in_shardings,
                       const std::string& out_shardings) const;

  struct Impl;
  explicit Module(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

class Client;

// An array on a device (or wrapped host memory), possibly not ready yet. Copies share it; contents never change, except
// that donating it to a run ends it.
class Array {
 public:
  Array() = default;
  const Shape& shape() const;
  int64_t byte_size() const;
  bool IsReady() const;
  void Wait() const;  // throws the Error of the run that makes it
  // Calls at once where the array is there, else from a thread of the runtime's, which may run and wait for others.
  void OnReady(std::function<void()> callback) const;
  // Waits, then copies row-major elements out.
  void ToHost(void* destination) const;
  // Throws Error where the elements' bytes are not a whole number of T.
  template <typename T>
  std::vector<T> ToVector() const {
    std::vector<T> values(CountOf(sizeof(T)));
    ToHost(values.data());
    return values;
  }
  // Waits; the host address where the device shares memory with the host, else null.
  const void* HostPointer() const;

  // A whole array of which each device of the client's job has a part: `shards` are those of this process's devices, in
  // device order, as `sharding` (HloSharding text: "{devices=[2,1]<=[2]}") cuts `shape`. It is an argument for
  // Executable::Run, which returns such arrays, too. Throws Error when a part has another shape.
  //
  // Where dimensions are bounded (f32[<=8,4]), `bound` has the bounds, and it is what is cut: the parts of 5 rows of at
  // most 8 on two devices have 4 and 1, those of 3 rows 3 and 0.
  static Array FromShards(const Client& client, const Shape& shape, const std::string& sharding,
                          std::vector<Array> shards, const Shape* bound = nullptr);
  const std::vector<Array>& shards() const;  // empty for an array on one device
  const std::string& sharding() const;
  // Collective over the job, for an array in shards: waits, then every rank gets all of its elements. ToHost does the
  // same. With several ranks not from a host function, whose program has the ranks' messages for itself.
  void Gather(void* destination) const;

  struct Impl;
  explicit Array(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  // How many values of so many bytes all elements take.
  size_t CountOf(size_t value_bytes) const;

  std::shared_ptr<Impl> impl_;
};

struct DeviceDescription {
  int platform = 0, device = 0;
  std::string name;  // "pthread-..."
  std::string platform_name;
  std::string label;  // what --list_devices prints
  DeviceSpec spec;
};

struct MemoryUse {
  int64_t arena_bytes = 0, argument_bytes = 0, constant_bytes = 0, result_bytes = 0, largest_live_bytes = 0,
          peak_bytes = 0;
};

struct CompileReport {
  double compile_s = 0;
  int64_t kernels = 0, kernels_compiled = 0, passes_run = 0, host_thunks = 0;
  int64_t schedules_measured = 0;  // run by the autotuner, in this process
};

// How long one launched kernel (or other step) took in a profiled run.
struct StepTime {
  std::string label, op_name, kind;
  double start_us = 0, end_us = 0;             // by std::chrono::steady_clock
  double flops = 0, bytes = 0;                 // 0: unknown, or counted at another step of the same label
  double bytes_written = 0;                    // of `bytes`
  ElementType arithmetic = ElementType::kF32;  // what is multiplied, or what the result is of
  bool packs = false;  // only brings an operand of a product or convolution into the order in which it is multiplied
  bool multiplies = false;  // a product or convolution: may go by a unit for matrices
  bool by_team = false;     // run by the calling thread and its helpers, not through the device's queue
};

struct RunFlags {
  std::vector<bool> donate;                  // by flattened argument; empty: none
  std::vector<StepTime>* profile = nullptr;  // waits after each step when set
  // For RunSharded, where dimensions that are cut are bounded: the shapes of the whole arguments.
  std::vector<Shape> whole_shapes;
  // Where infeed, outfeed and the host's send and recv exchange values; devices are numbered over the whole job.
  std::shared_ptr<HostChannels> channels;
};

class Executable {
 public:
  virtual ~Executable() = default;
  // One array for each flattened parameter leaf; returns one for each flattened result leaf, ready later.
  // For a module that was cut (by its shardings, or by those that were chosen for it) arguments and results are whole
  // arrays in shards; an array on one device is a part that every device holds alike. Otherwise, with several devices
  // in this process: see RunSharded. Runs of several devices go one after another in a process, whichever thread asks
  // (a host function may not, kFailedPrecondition); on several ranks all ask for the same ones in the same order.
  // Where there is no result, Run waits and throws what went wrong; with channels it does not, for they may have yet to
  // be given what the program takes.
  virtual std::vector<Array> Run(const std::vector<Array>& arguments, const RunFlags& flags = {}) = 0;
  // arguments[d], results[d] for each of this process's devices.
  virtual std::vector<std::vector<Array>> RunSharded(const std::vector<std::vector<Array>>& arguments,
                                                     const RunFlags& flags = {}) = 0;
  virtual std::vector<Shape> parameter_shapes() const = 0;
  virtual std::vector<std::string> parameter_names() const = 0;     // HLO names
  virtual std::vector<std::string> parameter_op_names() const = 0;  // metadata op_name, may be empty
  // HloSharding text by leaf, empty for none. Shapes are those of one device's part; whole_parameter_shapes has those
  // of the whole arrays, where the executable is one device's part of a module of whole arrays, else the same.
  virtual std::vector<Shape> whole_parameter_shapes() const = 0;
  virtual std::vector<std::string> parameter_shardings() const = 0;
  virtual std::vector<Shape> result_shapes() const = 0;
  virtual std::vector<std::string> result_shardings() const = 0;
  virtual MemoryUse memory() const = 0;
  virtual CompileReport report() const = 0;
  // What was decided of conditionals, loops, dynamic dimensions and host calls, and why (--explain).
  virtual std::vector<Remark> remarks() const = 0;
  virtual double flops() const = 0;
  virtual int64_t device_count() const = 0;  // replica_count x num_partitions
  virtual void Save(const std::string& path) = 0;
  virtual std::string module_text() const = 0;
  // The schedules that were chosen by measuring, as JSON for a file that CompileOptions::tuning_file names; empty:
  // none.
  virtual std::string tuning() const = 0;
  // Buffer creations, allocations and kernel builds so far; a steady state adds none.
  virtual int64_t resource_creations() const = 0;
};

// Custom-calls of one's own, for CompileOptions::custom_calls. A file registers OpenCL C kernels and functions of
// shared libraries (examples/custom_call/README.md); a C++ function is registered by CustomCallRegistry::Add. Throws
// Error naming the file and what is wrong with it.
std::shared_ptr<CustomCallRegistry> LoadCustomCalls(const std::string& path);

// An MPI_Comm of the caller's, by value, so that this header needs no mpi.h: options.communicator = MPI_COMM_WORLD;
class CommunicatorHandle {
 public:
  CommunicatorHandle() = default;
  template <typename Comm>
  requires(std::is_trivially_copyable_v<Comm> && sizeof(Comm) <= sizeof(uint64_t)) CommunicatorHandle(Comm communicator)
      : bytes_(sizeof communicator) {  // NOLINT: converts on purpose
    std::memcpy(&bits_, &communicator, sizeof communicator);
  }
  const void* get() const { return &bits_; }
  size_t bytes() const { return bytes_; }  // 0: none

 private:
  uint64_t bits_ = 0;
  size_t bytes_ = 0;
};

struct ClientOptions {
  std::string device;        // "" first, "P:D", or part of a name
  std::string device_class;  // "", "cpu" or "gpu": forces a class of schedules
  std::string device_spec;   // JSON that replaces what the device reports; "" for none
  int64_t devices = 1;       // devices of this process (partitions run in process), when `job` is null
  // The processes this one works with, from collectives::Job (mpirun); null: this process alone.
  std::shared_ptr<collectives::Job> job;
  // The same, from MPI_Comm: Create and the end of the client and all that it made are collective over it, MPI must
  // have been initialised for MPI_THREAD_MULTIPLE, and MPI_Finalize comes last. `job` must be null.
  CommunicatorHandle communicator;
  double heartbeat = 5.5;  // seconds of silence that make a rank of the communicator dead; 0: none
};

// How sizes without a bound are rounded up to those that executables are compiled for.
struct BucketOptions {
  int64_t multiple = 0;  // 0: to powers of two
  size_t capacity = 16;  // executables kept; the least recently used goes first
  // As of Module::WithBounds: dimensions that vary besides those that the exporter named, or how large one gets at
  // most.
  std::vector<std::string> bounds = {};
};
struct BucketUse {
  int64_t compiled = 0, reused = 0, evicted = 0;
};
// Compiles for each bucket of sizes when it is first met. What it says of shapes holds for all sizes; memory(),
// remarks() and report() are those of the executable that ran last.
class BucketedExecutable : public Executable {
 public:
  virtual BucketUse bucket_use() const = 0;
};

class Client {
 public:
  static std::shared_ptr<Client> Create(const ClientOptions& options);
  static std::vector<DeviceDescription> ListDevices();
  virtual ~Client() = default;

  virtual const DeviceDescription& device() const = 0;
  virtual const std::shared_ptr<collectives::Job>& job() const = 0;
  // With several devices in the job, collective where the module has no shardings: they are chosen as Shard() says; and
  // for a module of several devices where schedules are tuned (options.autotune, options.tuning_file): the first rank's
  // choices hold on all.
  virtual std::shared_ptr<Executable> Compile(const Module& module, const CompileOptions& options) = 0;
  // A module without shardings comes back with those that cost least on the job's devices (options.num_partitions,
  // where that is given); any other, and every one when options.auto_shard is off, as it is. Collective: the first rank
  // chooses. `remarks`, when not null, gets the first rank's reasons.
  virtual Module Shard(const Module& module, const CompileOptions& options, std::vector<Remark>* remarks = nullptr) = 0;
  // For a module whose exporter named sizes that vary, or with bounds: any size of theirs is accepted. (--bucket)
  virtual std::shared_ptr<BucketedExecutable> CompileBuckets(const Module& module, const BucketOptions& buckets,
                                                             const CompileOptions& options) = 0;
  virtual std::shared_ptr<Executable> Load(const std::string& plan_path, const CompileOptions& options,
                                           bool recompile = false) = 0;
  // What is known of the device, with its cost table as bench/roofline measures it: that of ClientOptions::device_spec
  // where it has one, else the one that is kept in the cache's folder (options.cache_dir, use_disk_cache), else
  // measured now, which takes seconds and keeps all cores busy, and kept. What is compiled does not depend on it.
  virtual DeviceSpec Measured(const CompileOptions& options) = 0;
  // Copies row-major elements to the device.
  virtual Array FromHost(const Shape& shape, const void* data) = 0;
  // The same for an array in shards: `data` is all of it, of which each device of this process takes its part. `bound`:
  // see Array::FromShards.
  Array FromHost(const Shape& shape, const void* data, const std::string& sharding, const Shape* bound = nullptr);
  // Uses the caller's memory where the device can, else copies; `owner` keeps it alive and unchanged meanwhile.
  virtual Array Wrap(const Shape& shape, const void* data, std::shared_ptr<const void> owner) = 0;
};

}  // namespace hlorun
