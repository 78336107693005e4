// Communicator: the collectives of HLO over a Transport, on host-visible memory.
//
// Reductions associate as a binary tree over the position in the replica group whatever the algorithm, so in-process,
// MPI and any tuning give the same bits. f16 and bf16 are reduced in f32 and rounded once at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/collectives/transport.h"
#include "hlo/element_type.h"
#include "hlo/opcode.h"

namespace hlorun::collectives {

// a[i] = f(a[i], b[i]) for `count` elements; how a reduction that is no single opcode is given.
using ElementwiseReducer = std::function<void(std::byte* a, const std::byte* b, int64_t count)>;

struct Reduction {
  hlo::Opcode opcode = hlo::Opcode::kAdd;
  hlo::ElementType type = hlo::ElementType::kF32;
  ElementwiseReducer custom;  // when set, used instead of opcode
};

// Device `device`'s view of the job. Every call is collective over its group (global device numbers, in group order)
// and blocks, progressing the transport; `sequence` numbers the collectives of a run equally on all devices. One thread
// a communicator.
class Communicator {
 public:
  // Devices are numbered 0 .. transport.size() - 1 = ranks, unless several devices share a process (in-process hub).
  Communicator(std::shared_ptr<Transport> transport, int64_t device);
  int64_t device() const { return device_; }
  Transport& transport() { return *transport_; }

  void AllReduce(std::span<const int64_t> group, std::span<const std::byte> in, std::span<std::byte> out,
                 const Reduction& reduction, int64_t sequence);
  // in: this device's part; out: the parts in group order, each `in.size()` bytes.
  void AllGather(std::span<const int64_t> group, std::span<const std::byte> in, std::span<std::byte> out,
                 int64_t sequence);
  // in: group.size() blocks; out: this device's block, reduced.
  void ReduceScatter(std::span<const int64_t> group, std::span<const std::byte> in, std::span<std::byte> out,
                     const Reduction& reduction, int64_t sequence);
  // Block i of in goes to group[i]; block j of out comes from group[j].
  void AllToAll(std::span<const int64_t> group, std::span<const std::byte> in, std::span<std::byte> out,
                int64_t sequence);
  // Sends `in` along the pair whose source is this device, receives along the one whose target it is, else zeros `out`.
  void Permute(std::span<const std::pair<int64_t, int64_t>> pairs, std::span<const std::byte> in,
               std::span<std::byte> out, int64_t sequence);
  // group[0]'s `in` reaches every `out`.
  void Broadcast(std::span<const int64_t> group, std::span<const std::byte> in, std::span<std::byte> out,
                 int64_t sequence);

 private:
  void AllReduceInParts(std::span<const int64_t> group, int64_t me, std::span<const std::byte> in,
                        std::span<std::byte> out, const Reduction& reduction, int64_t sequence);
  // Room for what arrives; kept, for fresh pages cost as much as the exchange.
  std::span<std::byte> Scratch(size_t bytes);
  // Where the group's operands can meet without messages, or null.
  NodeWindow* WindowOf(std::span<const int64_t> group, std::span<const std::byte> in) const;
  void PermuteInNode(std::span<const std::pair<int64_t, int64_t>> pairs, std::span<const std::byte> in,
                     std::span<std::byte> out);

  std::shared_ptr<Transport> transport_;
  int64_t device_;
  std::vector<std::byte> scratch_;
};

}  // namespace hlorun::collectives
