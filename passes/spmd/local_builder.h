// LocalBuilder: builds one device's program: collectives along mesh axes, the device's own position, neighbours'
// elements.
//
// One for each computation of the partitioned module; all of a module share one counter of channels.
#pragma once

#include <map>
#include <vector>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "passes/spmd/mesh_sharding.h"

namespace hlorun::passes::spmd {

// first + coordinate * step: where a part begins, as a function of the device's coordinate along some axes.
struct PartStart {
  int64_t first = 0;
  int64_t step = 0;
};

class LocalBuilder {
 public:
  LocalBuilder(hlo::Computation* computation, const Mesh& mesh, int64_t* next_channel)
      : computation_(computation), mesh_(mesh), next_channel_(next_channel) {}

  // Instructions made from now on take their metadata from `origin`.
  void set_origin(const hlo::Instruction* origin) { origin_ = origin; }
  hlo::Builder Make() const { return hlo::Builder(computation_, origin_); }
  const Mesh& mesh() const { return mesh_; }
  hlo::Computation* computation() const { return computation_; }

  // s32[]: this device's coordinate along the axes, read as one number.
  hlo::Instruction* Coordinate(const AxisList& axes);
  // s32[]: start.first + coordinate * start.step.
  hlo::Instruction* StartOf(const AxisList& axes, PartStart start);

  hlo::Instruction* AllReduce(hlo::Instruction* x, const AxisList& axes, hlo::Opcode reducer);
  hlo::Instruction* ReduceScatter(hlo::Instruction* x, int64_t dimension, const AxisList& axes, hlo::Opcode reducer);
  hlo::Instruction* AllGather(hlo::Instruction* x, int64_t dimension, const AxisList& axes);
  // Cuts along `split`, sends part i to device i of the group, joins what comes along `join`.
  hlo::Instruction* AllToAll(hlo::Instruction* x, int64_t split, int64_t join, const AxisList& axes);
  hlo::Instruction* Permute(hlo::Instruction* x, std::vector<std::pair<int64_t, int64_t>> pairs);

  // Elements [start, start + size) of one dimension; x is padded (with anything) where that is outside of it.
  hlo::Instruction* CutAt(hlo::Instruction* x, int64_t dimension, const AxisList& axes, PartStart start, int64_t size);
  // x is the part of a dimension of `global` elements that this device has under `axes`. Returns the elements
  // [start, start + size) of the whole, fetched from other devices; those outside of the whole hold anything.
  hlo::Instruction* Fetch(hlo::Instruction* x, int64_t dimension, const AxisList& axes, int64_t global, PartStart start,
                          int64_t size);
  // Element j of the dimension stands for element start + j of the whole: those outside [low, high) become `fill` (a
  // scalar).
  hlo::Instruction* Mask(hlo::Instruction* x, int64_t dimension, const AxisList& axes, PartStart start, int64_t low,
                         int64_t high, hlo::Instruction* fill);
  // pred of x's dimensions: start + j is in [low, high).
  hlo::Instruction* InRange(const hlo::Shape& shape, int64_t dimension, hlo::Instruction* start, int64_t low,
                            int64_t high);

  hlo::Instruction* Zero(hlo::ElementType type) { return Make().Constant(hlo::Literal(hlo::Shape::Scalar(type))); }
  hlo::Instruction* PadWith(hlo::Instruction* x, int64_t dimension, int64_t low, int64_t high, hlo::Instruction* value);
  hlo::Instruction* SliceOf(hlo::Instruction* x, int64_t dimension, int64_t start, int64_t limit, int64_t stride = 1);

 private:
  hlo::attr::Collective Groups(const AxisList& axes, std::optional<int64_t> dimension, bool global_ids);
  hlo::Computation* ReducerOf(hlo::Opcode opcode, hlo::ElementType type);

  hlo::Computation* computation_;
  const Mesh& mesh_;
  int64_t* next_channel_;
  const hlo::Instruction* origin_ = nullptr;
  hlo::Instruction* partition_id_ = nullptr;
  std::map<AxisList, hlo::Instruction*> coordinates_;
};

}  // namespace hlorun::passes::spmd
