#include "backends/opencl/runtime/collective_run.h"

#include <algorithm>
#include <csignal>
#include <numeric>

#include "backends/opencl/runtime/thunk_runner.h"
#include "hlo/error.h"
#include "hlo/fault.h"

namespace hlorun::opencl {
namespace {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

// The others are in the exchange already, or will be.
void ExchangeFaults() {
  FaultPause(Fault::kExchangeSlow);
  if (FaultHits(Fault::kExchangeFail)) Fail(ErrorCode::kInternal, "HLORUN_FAULT=exchange_fail: this exchange fails");
  if (FaultHits(Fault::kExchangeKill)) raise(SIGKILL);
  if (FaultHits(Fault::kExchangeStop)) raise(SIGSTOP);
}

// An array seen as [outer, parts, chunk]: dimension `dimension` divided into `parts`, everything after it contiguous.
struct Partition {
  int64_t outer = 1, parts = 1, chunk = 0;

  Partition(const hlo::Shape& whole, int64_t dimension, int64_t parts_in) : parts(parts_in) {
    for (int64_t d = 0; d < dimension; ++d) outer *= whole.dimension(d);
    chunk = outer == 0 || parts == 0 ? 0 : whole.ByteSize() / (outer * parts);
  }

  int64_t part_bytes() const { return outer * chunk; }

  // [outer, parts, chunk] -> [parts, outer, chunk], so that each part is one message. Parts begin `stride` bytes apart.
  void Gather(ConstBytes whole, Bytes blocks, int64_t stride) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t p = 0; p < parts; ++p) Move(whole, (o * parts + p) * chunk, blocks, p * stride + o * chunk);
    }
  }
  void Scatter(ConstBytes blocks, Bytes whole, int64_t stride) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t p = 0; p < parts; ++p) Move(blocks, p * stride + o * chunk, whole, (o * parts + p) * chunk);
    }
  }

 private:
  void Move(ConstBytes from, int64_t at, Bytes to, int64_t position) const {
    std::memcpy(to.data() + position, from.data() + at, static_cast<size_t>(chunk));
  }
};

class Collective {
 public:
  Collective(const CollectiveThunk& thunk, ThunkRunner& runner, cl_command_queue queue)
      : thunk_(thunk),
        runner_(runner),
        queue_(queue),
        communicator_(*runner.options().communicator),
        staging_(runner.context().staging) {
    FindGroup();
  }

  void Run() {
    if (IsPacked()) return RunPacked();
    switch (thunk_.kind) {
      case CollectiveKind::kAllReduce:
        return ForEach([&](size_t i, ConstBytes in, Bytes out) {
          communicator_.AllReduce(group_, in, out, ReductionOf(i), Number());
        });
      case CollectiveKind::kCollectivePermute:
        return ForEach(
            [&](size_t, ConstBytes in, Bytes out) { communicator_.Permute(thunk_.pairs, in, out, NumberOfPairs()); });
      case CollectiveKind::kCollectiveBroadcast:
        return ForEach([&](size_t, ConstBytes in, Bytes out) { Broadcast(in, out); });
      case CollectiveKind::kAllGather:
        return ForEach([&](size_t i, ConstBytes in, Bytes out) { AllGather(i, in, out); });
      case CollectiveKind::kReduceScatter:
        return ForEach([&](size_t i, ConstBytes in, Bytes out) { ReduceScatter(i, in, out); });
      case CollectiveKind::kAllToAll:
        if (thunk_.dimension < 0) return TupleAllToAll();
        return ForEach([&](size_t i, ConstBytes in, Bytes out) { AllToAll(i, in, out); });
      case CollectiveKind::kRaggedAllToAll: return RaggedAllToAll();
    }
  }

 private:
  void FindGroup() {
    const int64_t device = communicator_.device();
    if (thunk_.groups.empty()) {
      group_.resize(static_cast<size_t>(runner_.plan().replica_count * runner_.plan().num_partitions));
      std::iota(group_.begin(), group_.end(), 0);
      return;
    }
    for (const auto& group : thunk_.groups) {
      if (std::find(group.begin(), group.end(), device) != group.end()) group_ = group;
    }
    const bool may_be_left_out =
        thunk_.kind == CollectiveKind::kCollectivePermute || thunk_.kind == CollectiveKind::kCollectiveBroadcast;
    if (group_.empty() && !may_be_left_out) Invalid("device {} is in no replica group", device);
  }

  int64_t Number() { return runner_.NextCollective(group_); }
  int64_t NumberOfPairs() {
    std::vector<int64_t> ends = {-1};  // no group's first
    for (const auto& [source, target] : thunk_.pairs) ends.insert(ends.end(), {source, target});
    return runner_.NextCollective(ends);
  }
  int64_t Size() const { return static_cast<int64_t>(group_.size()); }

  // Devices in no group get zeros.
  void Broadcast(ConstBytes in, Bytes out) {
    if (!group_.empty()) return communicator_.Broadcast(group_, in, out, Number());
    std::fill(out.begin(), out.end(), std::byte{0});
  }

  // A block that is kept from run to run.
  Bytes Stage(int64_t bytes) {
    if (staged_ == staging_.size()) staging_.emplace_back();
    std::vector<std::byte>& block = staging_[staged_++];
    if (block.size() < static_cast<size_t>(bytes)) block.resize(static_cast<size_t>(bytes));
    return {block.data(), static_cast<size_t>(bytes)};
  }

  // The slice's bytes where the host can read them.
  ConstBytes Input(const Slice& slice) {
    const DeviceMemory memory = runner_.At(slice);
    if (memory.host() != nullptr) return {memory.host(), static_cast<size_t>(slice.bytes)};
    const Bytes staged = Stage(slice.bytes);
    if (slice.bytes > 0) runner_.Read(memory, staged.data(), slice.bytes, queue_);
    return staged;
  }
  // Where to write a result; Publish() puts it on the device.
  Bytes Output(const Slice& slice) {
    const DeviceMemory memory = runner_.At(slice);
    if (memory.host() != nullptr) return {memory.host(), static_cast<size_t>(slice.bytes)};
    return Stage(slice.bytes);
  }
  void Publish(const Slice& slice, ConstBytes bytes) {
    const DeviceMemory memory = runner_.At(slice);
    if (memory.host() == nullptr && slice.bytes > 0) runner_.Write(bytes.data(), memory, slice.bytes, queue_);
  }

  template <typename Body>
  void ForEach(Body&& body) {
    for (size_t i = 0; i < thunk_.operands.size(); ++i) {
      staged_ = 0;
      const ConstBytes in = Input(thunk_.operands[i]);
      const Bytes out = Output(thunk_.results[i]);
      body(i, in, out);
      Publish(thunk_.results[i], out);
    }
  }

  // Several short operands travel as one message. Ranks of one node read longer ones where they lie.
  bool IsPacked() const {
    constexpr int64_t kInNode = 4 << 10, kByMessages = 256 << 10;
    const bool joins = thunk_.kind == CollectiveKind::kAllReduce || thunk_.kind == CollectiveKind::kAllGather ||
                       thunk_.kind == CollectiveKind::kReduceScatter;
    if (!joins || thunk_.operands.size() < 2 || thunk_.reduction_kernel >= 0) return false;
    const int64_t longest = communicator_.transport().window() != nullptr ? kInNode : kByMessages;
    for (size_t i = 0; i < thunk_.operands.size(); ++i) {
      if (thunk_.operand_shapes[i].element_type() != thunk_.operand_shapes[0].element_type()) return false;
      if (std::max(thunk_.operands[i].bytes, thunk_.results[i].bytes) > longest) return false;
    }
    return true;
  }

  // Each member's block holds its parts of all arrays, one after the other. A reduction associates by position alone:
  // the bits are those of one array after the other.
  void RunPacked() {
    staged_ = 0;
    const bool scatters = thunk_.kind == CollectiveKind::kReduceScatter;
    const Bytes sent = Stage(BytesOf(thunk_.operands)), received = Stage(BytesOf(thunk_.results));
    ForEachBlock(thunk_.operands, scatters, [&](const Partition& partition, size_t i, int64_t at, int64_t stride) {
      partition.Gather(Input(thunk_.operands[i]), sent.subspan(static_cast<size_t>(at)), stride);
    });
    switch (thunk_.kind) {
      case CollectiveKind::kAllReduce: communicator_.AllReduce(group_, sent, received, ReductionOf(0), Number()); break;
      case CollectiveKind::kReduceScatter:
        communicator_.ReduceScatter(group_, sent, received, ReductionOf(0), Number());
        break;
      default: communicator_.AllGather(group_, sent, received, Number());
    }
    const bool gathers = thunk_.kind == CollectiveKind::kAllGather;
    ForEachBlock(thunk_.results, gathers, [&](const Partition& partition, size_t i, int64_t at, int64_t stride) {
      const Bytes out = Output(thunk_.results[i]);
      partition.Scatter(received.subspan(static_cast<size_t>(at)), out, stride);
      Publish(thunk_.results[i], out);
    });
  }

  static int64_t BytesOf(const std::vector<Slice>& slices) {
    int64_t bytes = 0;
    for (const Slice& slice : slices) bytes += slice.bytes;
    return bytes;
  }

  // Where each array lies in a packed message: (its parts, its number, where its first part begins, bytes between its
  // parts). `in_parts`: one for each member of the group; else the array is one part.
  template <typename Body>
  void ForEachBlock(const std::vector<Slice>& slices, bool in_parts, Body&& body) {
    const auto& shapes = &slices == &thunk_.operands ? thunk_.operand_shapes : thunk_.result_shapes;
    const int64_t stride = BytesOf(slices) / (in_parts ? Size() : 1);
    int64_t at = 0;
    for (size_t i = 0; i < slices.size(); ++i) {
      const Partition partition =
          in_parts ? Partition(shapes[i], thunk_.dimension, Size()) : Partition(shapes[i], 0, 1);
      body(partition, i, at, stride);
      at += partition.part_bytes();
    }
  }

  collectives::Reduction ReductionOf(size_t i) {
    collectives::Reduction reduction;
    reduction.opcode = thunk_.reduction;
    reduction.type = thunk_.operand_shapes[i].element_type();
    if (thunk_.reduction_kernel >= 0) reduction.custom = CustomReducer(reduction.type);
    return reduction;
  }

  // The reducer's kernel is made for thunk_.ReducedAtOnce() elements; messages may be shorter.
  collectives::ElementwiseReducer CustomReducer(hlo::ElementType type) {
    const int64_t element = hlo::Shape::Scalar(type).ByteSize(), bytes = thunk_.ReducedAtOnce() * element;
    const DeviceMemory x = runner_.Allocate(bytes), y = runner_.Allocate(bytes), out = runner_.Allocate(bytes);
    return [this, bytes, x, y, out, element](std::byte* a, const std::byte* b, int64_t count) {
      for (int64_t at = 0; at < count * element; at += bytes) {
        const int64_t piece = std::min(bytes, count * element - at);
        runner_.Write(a + at, x, piece, queue_);
        runner_.Write(b + at, y, piece, queue_);
        runner_.LaunchReducer(thunk_.reduction_kernel, x, y, out);
        runner_.Read(out, a + at, piece, queue_);
      }
    };
  }

  void AllGather(size_t i, ConstBytes in, Bytes out) {
    const Partition partition(thunk_.result_shapes[i], thunk_.dimension, Size());
    if (partition.outer == 1) return communicator_.AllGather(group_, in, out, Number());
    const Bytes blocks = Stage(static_cast<int64_t>(out.size()));
    communicator_.AllGather(group_, in, blocks, Number());
    partition.Scatter(blocks, out, partition.part_bytes());
  }

  void ReduceScatter(size_t i, ConstBytes in, Bytes out) {
    const Partition partition(thunk_.operand_shapes[i], thunk_.dimension, Size());
    if (partition.outer == 1) return communicator_.ReduceScatter(group_, in, out, ReductionOf(i), Number());
    const Bytes blocks = Stage(static_cast<int64_t>(in.size()));
    partition.Gather(in, blocks, partition.part_bytes());
    communicator_.ReduceScatter(group_, blocks, out, ReductionOf(i), Number());
  }

  void AllToAll(size_t i, ConstBytes in, Bytes out) {
    const Partition partition(thunk_.operand_shapes[i], thunk_.dimension, Size());
    // Through staging even when contiguous: the operand may be the result.
    const Bytes sent = Stage(static_cast<int64_t>(in.size())), received = Stage(static_cast<int64_t>(in.size()));
    partition.Gather(in, sent, partition.part_bytes());
    communicator_.AllToAll(group_, sent, received, Number());
    partition.Scatter(received, out, partition.part_bytes());
  }

  // Operand i goes to group[i]; result j comes from group[j].
  void TupleAllToAll() {
    staged_ = 0;
    int64_t total = 0;
    for (const Slice& slice : thunk_.operands) total += slice.bytes;
    const Bytes sent = Stage(total), received = Stage(total);
    int64_t at = 0;
    for (const Slice& slice : thunk_.operands) {
      if (slice.bytes > 0) runner_.Read(runner_.At(slice), sent.data() + at, slice.bytes, queue_);
      at += slice.bytes;
    }
    communicator_.AllToAll(group_, sent, received, Number());
    at = 0;
    for (const Slice& slice : thunk_.results) {
      if (slice.bytes > 0) runner_.Write(received.data() + at, runner_.At(slice), slice.bytes, queue_);
      at += slice.bytes;
    }
  }

  // What each member sends is known to the others only at run time, so everything is gathered and each member takes its
  // own. Operands: input, output, input offsets, send sizes, output offsets (on the receiver), receive sizes.
  void RaggedAllToAll() {
    staged_ = 0;
    const auto everyones = [&](size_t operand) {
      const ConstBytes in = Input(thunk_.operands[operand]);
      const Bytes all = Stage(static_cast<int64_t>(in.size()) * Size());
      communicator_.AllGather(group_, in, all, Number());
      return ConstBytes(all);
    };
    const ConstBytes inputs = everyones(0), input_offsets = everyones(2), send_sizes = everyones(3),
                     output_offsets = everyones(4);
    const Bytes out = Output(thunk_.results[0]);
    const ConstBytes initial = Input(thunk_.operands[1]);
    if (initial.data() != out.data()) std::memcpy(out.data(), initial.data(), out.size());
    const auto me =
        static_cast<int64_t>(std::find(group_.begin(), group_.end(), communicator_.device()) - group_.begin());
    const int64_t updates = thunk_.operand_shapes[2].ElementCount() / std::max<int64_t>(1, Size());
    const int64_t row = RowBytes(thunk_.operand_shapes[0]);
    const int64_t input_rows = thunk_.operand_shapes[0].dimension(0),
                  output_rows = thunk_.result_shapes[0].dimension(0);
    for (int64_t sender = 0; sender < Size(); ++sender) {
      for (int64_t u = 0; u < updates; ++u) {
        const int64_t entry = (sender * Size() + me) * updates + u;
        const int64_t from = IndexAt(input_offsets, 2, entry), count = IndexAt(send_sizes, 3, entry);
        const int64_t to = IndexAt(output_offsets, 4, entry);
        if (count == 0) continue;
        if (from < 0 || to < 0 || count < 0 || count > input_rows - from || count > output_rows - to) {
          Invalid(
              "ragged-all-to-all: device {} sends rows {} .. {} to row {} of device {}, beyond {} input or {} output rows",
              group_[static_cast<size_t>(sender)], from, from + count, to, communicator_.device(), input_rows,
              output_rows);
        }
        std::memcpy(out.data() + to * row, inputs.data() + (sender * input_rows + from) * row,
                    static_cast<size_t>(count * row));
      }
    }
    Publish(thunk_.results[0], out);
  }

  static int64_t RowBytes(const hlo::Shape& shape) {
    return shape.dimension(0) == 0 ? 0 : shape.ByteSize() / shape.dimension(0);
  }

  int64_t IndexAt(ConstBytes values, size_t operand, int64_t entry) const {
    if (thunk_.operand_shapes[operand].element_type() == hlo::ElementType::kS64) {
      return reinterpret_cast<const int64_t*>(values.data())[entry];
    }
    return reinterpret_cast<const int32_t*>(values.data())[entry];
  }

  const CollectiveThunk& thunk_;
  ThunkRunner& runner_;
  cl_command_queue queue_;
  collectives::Communicator& communicator_;
  std::vector<std::vector<std::byte>>& staging_;
  size_t staged_ = 0;
  std::vector<int64_t> group_;
};

}  // namespace

void RunCollective(const CollectiveThunk& thunk, ThunkRunner& runner, cl_command_queue queue) {
  ExchangeFaults();
  Collective(thunk, runner, queue).Run();
}

}  // namespace hlorun::opencl
