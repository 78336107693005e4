#include "passes/dynamic/scan_lowering.h"

#include "passes/dynamic/carrier.h"
#include "passes/expand/counted_loop.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using Instructions = std::vector<Instruction*>;

namespace {

class ScanLowering {
 public:
  ScanLowering(OpLowering& at, const LowerInto& lower)
      : at_(at),
        lower_(lower),
        step_(*at.op.called()),
        attributes_(at.op.As<hlo::attr::Scan>()),
        along_(attributes_.scan_dimension),
        carries_(static_cast<size_t>(attributes_.num_carries)),
        inputs_(static_cast<size_t>(at.operand_count()) - carries_),
        outputs_(at.op.shape().tuple_shapes().size() - carries_) {}

  SizedValue Run() {
    for (size_t i = 0; i < inputs_; ++i) size_ = at_.Unify(size_, Input(i).size(along_));
    const int64_t bound = at_.OperandShape(0).dimension(along_);
    State initial = Initial(size_ != nullptr ? size_ : at_.Int(bound));
    if (bound == 0) return Result(initial, std::vector<Instructions>(outputs_));

    // What becomes sized on the way starts again with a size, its bound.
    Carrier carrier(ShapeOf(initial));
    SizedValue packed = Pack(initial);
    carrier.Include(packed);
    State first;
    for (bool grows = true; grows;) {
      initial = Unpack(carrier.Unpack(at_.build, carrier.Pack(at_.build, packed)));
      first = Next(at_.build, at_.Int(0), initial);
      packed = Pack(initial);
      SizedValue after = Pack(first);
      grows = carrier.Include(after);
    }
    const Instructions leaves = carrier.Pack(at_.build, packed)->operands();
    const LoopEnd end = [](hlo::Builder&, const Instructions& values) { return values[0]; };
    const LoopStep step = [&](hlo::Builder& in, Instruction* trip, const Instructions& values) {
      SizedValue next = Pack(Next(in, trip, Unpack(carrier.Unpack(in, in.Tuple(values)))));
      return carrier.Pack(in, next)->operands();
    };
    const Instructions last = CountedLoop(at_.build, at_.build.computation()->module(), end, leaves, step);
    return Result(Unpack(carrier.Unpack(at_.build, at_.build.Tuple(last))), first.slice_sizes);
  }

 private:
  struct State {
    Instruction* length = nullptr;
    std::vector<SizedValue> inputs, carries;
    Instructions outputs;
    std::vector<Instructions> slice_sizes;  // of a step's outputs
  };

  const SizedValue& Input(size_t i) const { return at_.operand(static_cast<int64_t>(i)); }

  State Initial(Instruction* length) {
    State state{length, {}, {}, {}, {}};
    for (size_t i = 0; i < inputs_; ++i) {
      state.inputs.push_back(Input(i));
      state.inputs.back().sizes[static_cast<size_t>(along_)] = nullptr;  // `length` says it
    }
    for (size_t i = 0; i < carries_; ++i) state.carries.push_back(Input(inputs_ + i));
    for (size_t i = 0; i < outputs_; ++i)
      state.outputs.push_back(
          at_.build.Splat(StaticShape(at_.op.shape().tuple_shape(static_cast<int64_t>(i))), int64_t{0}));
    return state;
  }

  // One tuple of all, as loops carry it.
  static SizedValue Pack(const State& state) {
    SizedValue all{nullptr, {}, {{state.length, {}, {}}}};
    for (const auto* values : {&state.inputs, &state.carries})
      all.elements.insert(all.elements.end(), values->begin(), values->end());
    for (Instruction* output : state.outputs)
      all.elements.push_back({output, Instructions(static_cast<size_t>(output->shape().rank()), nullptr), {}});
    return all;
  }
  State Unpack(const SizedValue& all) const {
    State state{all.elements[0].value, {}, {}, {}, {}};
    auto next = all.elements.begin() + 1;
    for (size_t i = 0; i < inputs_; ++i) state.inputs.push_back(*next++);
    for (size_t i = 0; i < carries_; ++i) state.carries.push_back(*next++);
    for (size_t i = 0; i < outputs_; ++i) state.outputs.push_back((next++)->value);
    return state;
  }
  static Shape ShapeOf(const State& state) {
    std::vector<Shape> shapes = {state.length->shape()};
    for (const auto* values : {&state.inputs, &state.carries}) {
      for (const SizedValue& value : *values) shapes.push_back(value.value->shape());
    }
    for (const Instruction* output : state.outputs) shapes.push_back(output->shape());
    return Shape::Tuple(std::move(shapes));
  }

  Instructions StartsAt(hlo::Builder& build, Instruction* index, int64_t rank) const {
    Instructions starts(static_cast<size_t>(rank), build.ScalarConstant(hlo::ElementType::kS32, int64_t{0}));
    starts[static_cast<size_t>(along_)] = index;
    return starts;
  }

  // The state after one slice more.
  State Next(hlo::Builder& build, Instruction* trip, State state) const {
    Instruction* index = trip;
    if (attributes_.is_reverse) {
      Instruction* one = build.ScalarConstant(hlo::ElementType::kS32, int64_t{1});
      index = build.Binary(Opcode::kSubtract, build.Binary(Opcode::kSubtract, state.length, one), trip);
    }
    std::vector<SizedValue> arguments;
    for (const SizedValue& input : state.inputs) {
      Dims dimensions = input.value->shape().dimensions();
      dimensions[static_cast<size_t>(along_)] = 1;
      Instruction* slice =
          build.DynamicSlice(input.value, StartsAt(build, index, input.value->shape().rank()), dimensions);
      dimensions.erase(dimensions.begin() + along_);
      arguments.push_back({build.Reshape(slice, dimensions), input.sizes, {}});
      arguments.back().sizes.erase(arguments.back().sizes.begin() + along_);
    }
    arguments.insert(arguments.end(), state.carries.begin(), state.carries.end());
    SizedValue results = lower_(step_, build.computation(), std::move(arguments));
    for (size_t i = 0; i < outputs_; ++i) {
      Dims dimensions = state.outputs[i]->shape().dimensions();
      dimensions[static_cast<size_t>(along_)] = 1;
      Instruction* slice = build.Reshape(results.elements[i].value, dimensions);
      const Instructions starts = StartsAt(build, index, static_cast<int64_t>(dimensions.size()));
      state.outputs[i] = build.DynamicUpdateSlice(state.outputs[i], slice, starts);
      state.slice_sizes.push_back(results.elements[i].sizes);
    }
    state.carries.assign(results.elements.begin() + static_cast<ptrdiff_t>(outputs_), results.elements.end());
    return state;
  }

  SizedValue Result(const State& last, std::vector<Instructions> slice_sizes) const {
    SizedValue result;
    for (size_t i = 0; i < outputs_; ++i) {
      Instructions sizes = std::move(slice_sizes[i]);
      sizes.resize(static_cast<size_t>(last.outputs[i]->shape().rank() - 1), nullptr);
      sizes.insert(sizes.begin() + along_, size_);
      result.elements.push_back({last.outputs[i], std::move(sizes), {}});
    }
    result.elements.insert(result.elements.end(), last.carries.begin(), last.carries.end());
    return result;
  }

  OpLowering& at_;
  const LowerInto& lower_;
  const hlo::Computation& step_;
  const hlo::attr::Scan& attributes_;
  int64_t along_;
  size_t carries_, inputs_, outputs_;
  Instruction* size_ = nullptr;
};

}  // namespace

SizedValue LowerScan(OpLowering& at, const LowerInto& lower) {
  if (at.op.HasSideEffect()) at.Refuse("of steps with side effects has no rule for dynamic dimensions");
  return ScanLowering(at, lower).Run();
}

}  // namespace hlorun::passes
