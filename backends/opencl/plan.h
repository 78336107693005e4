// Plan: what a compiled module is. A tree of sequences of thunks over slices of allocations, the kernels' sources, and
// the descriptions of parameters and results. A value: can be saved, loaded and compared; holds no OpenCL object.
// Running a plan looks nothing up: thunks name slices and kernels by index.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "backends/opencl/clblast_numbers.h"
#include "hlo/attributes.h"
#include "hlo/device_spec.h"
#include "hlo/literal.h"
#include "hlo/shape.h"
#include "passes/dynamic/signature.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/options.h"
#include "passes/remark.h"

namespace hlorun::opencl {

using passes::Slice;

struct Sequence;

// Work-groups in each dimension and their size. GPU class uses more than one work-item a group.
struct Grid {
  std::array<int64_t, 3> groups = {1, 1, 1};
  std::array<int64_t, 3> local = {1, 1, 1};
  bool operator==(const Grid&) const = default;
};

struct LaunchThunk {
  int32_t kernel = 0;  // into Plan::kernels
  Grid grid;
  std::vector<Slice> arguments;  // one pointer each, in the kernel's parameter order
  std::vector<bool> written;     // which of them the kernel writes
  bool has_effect = false;       // of a custom-call that says so: everything keeps its order with it
};
struct CopyThunk {
  Slice from, to;
};
// A few bytes known at compile time (or when the plan is instantiated on a device) written to memory.
struct WriteThunk {
  enum class Value : uint8_t { kBytes, kPartitionId, kReplicaId };
  Value value = Value::kBytes;
  std::string bytes;
  Slice to;
};
enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kCollectivePermute,
  kCollectiveBroadcast,
  kRaggedAllToAll,
};
struct CollectiveThunk {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // Of global device numbers (replica * num_partitions + partition), expanded.
  std::vector<std::vector<int64_t>> groups;
  std::vector<std::pair<int64_t, int64_t>> pairs;  // collective-permute, global device numbers
  // Operands and results, pairwise, with their shapes; results[i] may equal operands[i].
  std::vector<Slice> operands, results;
  std::vector<hlo::Shape> operand_shapes, result_shapes;
  int64_t dimension = -1;  // gather, scatter, all-to-all dimension
  hlo::Opcode reduction = hlo::Opcode::kAdd;
  // A reducer that is no single opcode: its computation as HLO text, evaluated elementwise by kernels of the plan
  // (reduction_kernel: out = f(a, b), three pointers); empty and -1 otherwise.
  int32_t reduction_kernel = -1;
  // Runs while the device computes, until the AwaitThunk with the same ticket; -1: the device waits for it.
  int32_t ticket = -1;

  // Elements that one launch of reduction_kernel reduces: as many as are wanted at once.
  int64_t ReducedAtOnce() const {
    constexpr int64_t kMost = 4096;  // a tree's block (tree_reduce.cc)
    int64_t largest = 1;
    for (const hlo::Shape& shape : operand_shapes) largest = std::max(largest, shape.ElementCount());
    return std::min(largest, kMost);
  }
};
struct WhileThunk {
  std::shared_ptr<Sequence> condition, body;  // both never null
  Slice predicate;                            // pred[] that `condition` computes
  int64_t trip_count = -1;                    // known: the predicate is never read; -1: unknown
  // Where kernels of the body read the predicate themselves: iterations to enqueue between two reads of it by the host
  // (0: it waits for each), and the end of a loop that the host need not ask about (-1: none).
  int64_t ahead = 0;
  int64_t at_most = -1;
};
struct ConditionalThunk {
  Slice selector;            // pred[] or s32[]
  bool is_predicate = true;  // branches[0] is taken when true
  std::vector<std::shared_ptr<Sequence>> branches;
};
// out[b] = lhs[b] * rhs[b], multiplied by CLBlast. Arrays of one type, row-major.
struct LibraryThunk {
  hlo::ElementType type = hlo::ElementType::kF32;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool lhs_transposed = false;  // lhs is stored [batch][k][m]
  bool rhs_transposed = false;  // rhs is stored [batch][n][k]
  Slice lhs, rhs, out;
  ClblastNumbers numbers{};
};
// The target of steps that the evaluator computes; `config` is then a module (codegen/host_evaluation.h).
inline constexpr const char* kEvaluateTarget = "hlorun.evaluate";
struct HostCallThunk {
  std::string target;
  std::string config;  // backend_config as written
  std::vector<Slice> operands, results;
  std::vector<hlo::Shape> operand_shapes, result_shapes;
};
// infeed, outfeed, send and recv: what leaves or enters the program between kernels.
struct TransferThunk {
  bool to_program = false;  // infeed, recv
  int64_t channel = 0;      // hlo::HostChannels::kFeed, or the channel_id
  // Between devices: global device numbers, source and target; empty: the host is the other end.
  std::vector<std::pair<int64_t, int64_t>> pairs;
  std::vector<Slice> arrays;
  std::vector<hlo::Shape> shapes;
};

// The end of a collective that was started with this ticket.
struct AwaitThunk {
  int32_t ticket = 0;
};

// What a step is for, seen from the instruction that it belongs to.
enum class StepRole : uint8_t {
  kWork,
  kPacking,  // brings an operand of a product or convolution into the order in which it is multiplied
  kProduct,  // the last of a product or convolution
};

struct Thunk {
  std::variant<LaunchThunk, CopyThunk, WriteThunk, CollectiveThunk, WhileThunk, ConditionalThunk, HostCallThunk,
               LibraryThunk, TransferThunk, AwaitThunk>
      work;
  std::string label;            // the HLO instruction's name, for profiles and messages
  std::string op_name;          // its metadata, likewise
  double flops = 0, bytes = 0;  // of the whole instruction, at the last of its launches; 0 elsewhere
  // For profiles alone.
  double bytes_written = 0;                              // of `bytes`
  hlo::ElementType arithmetic = hlo::ElementType::kF32;  // what is multiplied: whose peak bounds the step
  StepRole role = StepRole::kWork;
};

struct Sequence {
  std::vector<Thunk> thunks;
};

// One distinct kernel. `source` holds exactly one __kernel function called `name` and the helpers it needs; the
// runtime joins several into one program.
struct Kernel {
  std::string name;
  std::string source;
  std::vector<Grid> grids;  // with which it is launched: variants are warmed up for these
  int64_t parameter_count = 0;
  bool foreign = false;   // the user's own source: a program of its own, launched on nothing but real arguments
  std::string kernel_ir;  // printed kernel IR, for --dump_to; not saved
};

struct ArrayInfo {
  std::string name;       // parameter: the HLO name; result: its path ("0", "1.2")
  std::string op_name;    // parameter: metadata op_name ("params['w']"), may be empty
  hlo::Shape shape;       // of this leaf
  int64_t parameter = 0;  // parameter number the leaf belongs to
  hlo::ShapeIndex index;  // path within the parameter or the result
  bool donated = false;   // input_output_alias or buffer_donor names it
  std::string sharding;   // as text; empty for none
};

struct Plan {
  std::string module_name;
  DeviceSpec device;
  std::vector<passes::Allocation> allocations;  // constant pointers are null here: see `constants`
  std::vector<hlo::Literal> constants;          // by allocation index of kind kConstant, in order of appearance
  std::vector<Kernel> kernels;
  // What is the same in every run, and stays in the arena. Of constants alone: runs when an arena is made, that
  // of a program of one device with the executable. Of these parameters too (leaves, ascending): before the entry's
  // first run with their memory.
  Sequence of_constants, once;
  std::vector<int64_t> constant_parameters;
  Sequence entry;
  std::vector<ArrayInfo> parameters;  // flattened leaves; sizes of dynamic dimensions last
  std::vector<ArrayInfo> results;     // flattened leaves; sizes of dynamic dimensions last
  passes::SizeSignature sizes;        // which those are: the shapes of the others are bounded there
  std::vector<Slice> result_slices;
  passes::MemoryStatistics memory;
  int64_t replica_count = 1, num_partitions = 1;
  int64_t host_thunks = 0;
  std::string module_text;              // the module as read, for --recompile and --reference
  std::string tuning;                   // choices of schedules that were measured (TuningRecord); empty: none
  std::vector<passes::Remark> remarks;  // what was decided of control flow, and why

  std::string ToString() const;  // for dumps and diffs
};

}  // namespace hlorun::opencl
